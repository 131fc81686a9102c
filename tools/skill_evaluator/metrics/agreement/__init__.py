"""Metrics that compare the answers to one case with each other."""
