"""Metrics of the answers to one case among each other."""
