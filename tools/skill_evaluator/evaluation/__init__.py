"""What `evaluate` and `mutate` decide beside the verdict: what is asked again, when that ends, what a mutant shows."""
