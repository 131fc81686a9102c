"""Is a version worse than another, where, and how sure is that? Two records and a policy in, verdicts out."""
