"""The stability audit: the cube of scores, the run that fills it, its statistics, findings and report."""
