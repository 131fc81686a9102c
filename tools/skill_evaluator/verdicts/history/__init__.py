"""What is recorded of a component: which runs a run is held against, its history, and what is known today."""
