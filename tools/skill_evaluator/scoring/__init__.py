"""Score outputs and runs, build the records of runs, and show the outputs of a case."""
