"""A model drafts a rubric, which a person has yet to read."""
