"""Metrics that compare one output with the ground truth, one file per metric."""
