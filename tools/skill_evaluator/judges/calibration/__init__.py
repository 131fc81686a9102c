"""What judges are worth against people: labelled pairs and stored verdicts in, figures by judge and stratum out."""
