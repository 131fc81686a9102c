"""The records of runs, the leaderboards that list them, and the selection of the runs to compare."""
