"""Checks by a regular expression, in RE2: its time grows with the text alone, whatever the pattern.

It knows no look-around and no back-reference; a pattern with one is refused where it is read.
"""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator

from skill_evaluator.checks.base import Subject
from skill_evaluator.checks.texts import Text


@lru_cache(maxsize=1_000)
def _compiled(pattern: str, ignore_case: bool) -> Any:
    """Return a compiled pattern; raise ValueError for what RE2 refuses."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        why = problem.args[0].decode("utf-8", "replace") if isinstance(problem.args[0], bytes) else problem
        raise ValueError(
            f"RE2 refuses the pattern ({why}); it has no look-around and no back-reference: use two checks, or python"
        ) from None


def _refuse_unreadable(pattern: str) -> str:
    _compiled(pattern, False)
    return pattern


Pattern = Annotated[Text, AfterValidator(_refuse_unreadable)]


def regex(subject: Subject, pattern: str, ignore_case: bool) -> bool:
    """Return whether a pattern matches anywhere in a text."""
    text = subject.text.encode("utf-8", "replace").decode()  # half a surrogate pair is no text to RE2
    return _compiled(pattern, ignore_case).search(text) is not None
