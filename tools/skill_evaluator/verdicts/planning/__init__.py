"""Rank models, and size a test: the number of cases and replicates that detect a drop."""
