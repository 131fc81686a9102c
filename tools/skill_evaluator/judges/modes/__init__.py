"""What the modes of judging ask and how they read the answers: scoring, pairwise comparison, regression."""
