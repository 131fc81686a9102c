"""What a prompt library has on disk, read once and checked."""
