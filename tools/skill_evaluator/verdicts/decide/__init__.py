"""Two records of a model → a verdict: what is comparable, how far it moved, and what the policy says of it."""
