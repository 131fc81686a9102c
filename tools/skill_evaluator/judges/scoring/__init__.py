"""Direct and reference-based scoring: each output by itself, on a criterion's scale."""
