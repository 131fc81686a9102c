"""One module per command: its options, and what it runs and shows."""
