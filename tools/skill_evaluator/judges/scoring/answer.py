"""An answer to `judge score` → the score of each criterion, or why there is none.

Every criterion is read by itself: one that is off its scale costs no other. A score without evidence and justification
is none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.judges.asking.grounds import Grounds, is_number, read_grounds
from skill_evaluator.judges.asking.reading import Unscored, read_criteria
from skill_evaluator.library.rubrics import Criterion


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionScore:
    """What a judge wrote on one criterion."""

    score: int
    grounds: Grounds
    suggestion: str = ""


ReadScore = CriterionScore | Unscored


def read_scores(answer: str | Unscored, criteria: Sequence[Criterion], texts: Sequence[str]) -> dict[str, ReadScore]:
    """Return what an answer says of each criterion; `texts` are those that the judge was shown."""
    written = read_criteria(answer, [criterion.id for criterion in criteria], texts)
    return {
        criterion.id: value if isinstance(value := written[criterion.id], Unscored) else _read(value, criterion, texts)
        for criterion in criteria
    }


def _read(written: Mapping[str, Any], criterion: Criterion, texts: Sequence[str]) -> ReadScore:
    score, suggestion = written.get("score"), written.get("suggestion")
    if not is_number(score) or score not in range(1, criterion.highest + 1):
        detail = f"score {score!r} is not on the scale 1 to {criterion.highest}"
        return Unscored(reason="off_scale", detail=detail[:200])
    grounds = read_grounds(written, "score", ["evidence"], criterion, texts)
    if isinstance(grounds, Unscored):
        return grounds
    return CriterionScore(
        score=int(score),
        grounds=grounds,
        suggestion=suggestion.strip() if isinstance(suggestion, str) else "",
    )
