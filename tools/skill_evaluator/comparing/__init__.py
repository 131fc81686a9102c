"""Compare an output with the ground truth: field declarations, alignment of array items, comparison of leaves."""
