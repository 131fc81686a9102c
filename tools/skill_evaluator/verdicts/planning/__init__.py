"""Which model to take, and how many cases and replicates show a drop."""
