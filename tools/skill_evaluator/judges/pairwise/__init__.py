"""Pairwise comparison: which of two outputs is better, asked in both orders; and which of several is best."""
