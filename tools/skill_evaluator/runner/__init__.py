"""Planning calls, executing them under limits, and keeping every answer on disk."""
