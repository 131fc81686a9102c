"""Skill Evaluator: how right, how repeatable and how much worse than last time is a versioned prompt?"""

__version__ = "0.1.0"
