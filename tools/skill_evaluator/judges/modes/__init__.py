"""The modes of judging: scoring, pairwise comparison, regression, panels, and the sentences of judged checks."""
