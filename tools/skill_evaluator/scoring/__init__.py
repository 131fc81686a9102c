"""Replicates to a scorecard to a record, and the explanation of an answer."""
