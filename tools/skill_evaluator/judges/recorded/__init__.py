"""What judgings left on disk: their results read again, each beside what its judge is known to make up."""
