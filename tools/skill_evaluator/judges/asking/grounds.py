"""What a judge's decision on a criterion rests on: evidence and justification, without which it does not count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from skill_evaluator.judges.asking.criteria import mitigations_of
from skill_evaluator.judges.asking.reading import Unscored
from skill_evaluator.judges.regression.evidence import read_evidence
from skill_evaluator.library.rubrics import Criterion

_LONGEST_DETAIL = 200  # characters
_MOST_LOOKED_FOR = 20  # pieces of evidence; looking for one in a long text takes a while


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """The pieces of evidence that say something, of which `quotes` were found in the judged texts; and the argument."""

    evidence: tuple[str, ...]
    quotes: int
    justification: str
    confidence: float


def read_grounds(
    written: Mapping[str, Any], decision: str, evidence: Sequence[str], criterion: Criterion, texts: Sequence[str]
) -> Grounds | Unscored:
    """Return what a decision (the key `score` or `winner`) rests on, or why it does not count.

    `evidence`: the keys that hold some, each needed. `texts`: what the judge was shown.
    """
    confidence = written.get("confidence")
    if not is_number(confidence) or not 0 <= confidence <= 1:
        return Unscored(reason="off_scale", detail=f"confidence {confidence!r} is not from 0 to 1"[:_LONGEST_DETAIL])
    pieces = {key: _pieces(written.get(key)) for key in evidence}
    lacking = [key for key, given in pieces.items() if not given]
    if lacking:
        return Unscored(reason="no_evidence", detail=", ".join(lacking))
    justification = written.get("justification")
    if not _says_something(justification):
        return Unscored(reason="no_justification")
    mitigations, keys = mitigations_of(criterion), list(written)
    if "require_justification_first" in mitigations and keys.index(decision) < keys.index("justification"):
        return Unscored(reason="score_before_justification")
    every = tuple(piece for given in pieces.values() for piece in given)
    quotes = sum(
        any(read_evidence(piece, text).kind == "quote" for text in texts) for piece in every[:_MOST_LOOKED_FOR]
    )
    if "evidence_required" in mitigations and not quotes:
        return Unscored(reason="evidence_not_in_text", detail=every[0][:_LONGEST_DETAIL])
    return Grounds(evidence=every, quotes=quotes, justification=justification.strip(), confidence=float(confidence))


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a JSON value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pieces(value: Any) -> list[str]:
    """Return the pieces of evidence that say something: those of a list, or a text by itself."""
    return [piece.strip() for piece in (value if isinstance(value, list) else [value]) if _says_something(piece)]


def _says_something(value: Any) -> TypeGuard[str]:
    """Return whether a JSON value is a text with a letter or digit; the form's `…`, copied, has none."""
    return isinstance(value, str) and any(mark.isalnum() for mark in value)
