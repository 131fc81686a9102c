"""The stories of `evaluate` (`story.py`), `try`, `mutate` and `switch`, and what they decide beside the verdict."""
