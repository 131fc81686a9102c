"""Language models as judges: prompts, modes, calibration against human labels, and human review."""
