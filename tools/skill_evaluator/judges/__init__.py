"""Language models as judges: how they are asked and read, and what their verdicts are worth against people."""
