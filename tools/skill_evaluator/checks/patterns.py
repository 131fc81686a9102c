"""Regular expressions of RE2: their time grows with the text alone, whatever the pattern.

It knows no look-around and no back-reference; a pattern with one is refused where it is read.
"""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, StringConstraints


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> Any:
    """Return a compiled pattern; raise ValueError for what RE2 refuses."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        why = problem.args[0].decode("utf-8", "replace") if isinstance(problem.args[0], bytes) else problem
        raise ValueError(
            f"RE2 refuses the pattern ({why}); it has no look-around and no back-reference: use two checks, or python"
        ) from None


def _refuse_unreadable(pattern: str) -> str:
    _compiled(pattern)
    return pattern


Pattern = Annotated[str, StringConstraints(min_length=1, max_length=100_000), AfterValidator(_refuse_unreadable)]


def regex(text: str, pattern: str) -> bool:
    """Return whether a pattern matches anywhere in a text."""
    whole = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no text to RE2
    return _compiled(pattern).search(whole) is not None
