"""Where and why answers are wrong: fields, contracts, names."""
