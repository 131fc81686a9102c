"""One file a command: its options and its story."""
