"""Metrics of one output against the truth, one file a metric."""
