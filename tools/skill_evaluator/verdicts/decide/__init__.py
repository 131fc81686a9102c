"""Compare two records of a model: the comparable cases, the effect on each measure, and the verdict by the policy."""
