"""The recorded runs of a component: the baselines of its runs, its history and its current status."""
