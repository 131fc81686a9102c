"""Skill Evaluator: regression tests for LLM prompts."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers read it as true; importing it from `typing` would slow the start
if TYPE_CHECKING:
    from skill_evaluator.api import Library
    from skill_evaluator.errors import SkillEvaluatorError
    from skill_evaluator.scoring.scores import (
        NO_TRUTH,
        LeafRow,
        NotJsonError,
        OutputScorer,
        OutputScores,
        score_output,
        score_text,
    )

__all__ = [
    "NO_TRUTH",
    "LeafRow",
    "Library",
    "NotJsonError",
    "OutputScorer",
    "OutputScores",
    "SkillEvaluatorError",
    "score_output",
    "score_text",
]


def __getattr__(name: str) -> object:
    """Import and return an object of `__all__`. Raise AttributeError for any other name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module("skill_evaluator.api" if name == "Library" else "skill_evaluator.scoring.scores")
    return getattr(module, name)
