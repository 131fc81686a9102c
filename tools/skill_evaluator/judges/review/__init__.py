"""Human review: the queue of items, the local page for labels, and the export of labels."""
