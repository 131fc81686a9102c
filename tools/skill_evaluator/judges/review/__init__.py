"""Human review: a queue of items, a local page to label them, and the export of labels."""
