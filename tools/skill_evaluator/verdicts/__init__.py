"""Compare versions: whether a version regressed against the recorded baseline, where, and how significantly."""
