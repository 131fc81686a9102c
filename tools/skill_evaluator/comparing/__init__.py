"""Compare an output with the truth: declarations of fields, alignment of arrays, leaves, tree distance."""
