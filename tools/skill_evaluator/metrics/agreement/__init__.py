"""Metrics of the answers to one case among each other, one file a metric."""
