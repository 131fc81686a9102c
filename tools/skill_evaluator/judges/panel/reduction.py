"""What several judges say of one thing → what the panel says: a majority by weight, a mean or a median."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from skill_evaluator.judges.asking.criteria import Writers
from skill_evaluator.library.config import JudgePanel, Model

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Voices:
    """How much each judge counts; half of it where it is of the writer's family and a criterion of `strict` is judged.

    `written`: by item, who wrote its outputs, where that is known.
    """

    policy: JudgePanel
    judges: Mapping[str, Model]
    writers: Writers
    written: Mapping[str, Sequence[str]]
    strict: frozenset[str] = frozenset()

    def weight(self, judge: str, item: str, criterion: str) -> float:
        """Return the weight of a judge's verdict."""
        whole = self.policy.weights.get(judge, 1.0)
        if self.policy.same_family != "half" or criterion not in self.strict:
            return whole
        own = any(self.writers.of_family(self.judges[judge], writer) for writer in self.written.get(item, ()))
        return whole / 2 if own else whole


def votes_of(said: Mapping[str, ValueT], weights: Mapping[str, float]) -> dict[ValueT, float]:
    """Return the weight behind each verdict; `said` and `weights` are by judge."""
    votes: dict[ValueT, float] = defaultdict(float)
    for judge, verdict in said.items():
        votes[verdict] += weights[judge]
    return dict(votes)


def majority(votes: Mapping[ValueT, float]) -> ValueT | None:
    """Return the verdict with more than half of the weight, None without one.

    >>> majority({"same": 2.0, "worse": 1.0}), majority({"same": 1.0, "worse": 1.0})
    ('same', None)
    """
    half = sum(votes.values()) / 2
    return next((verdict for verdict, weight in votes.items() if weight > half * (1 + 1e-9)), None)


def reduced_score(scores: Sequence[float], weights: Sequence[float], how: str) -> float:
    """Return the mean of scores by weight, or their median: the score that has half of the weight on either side.

    >>> reduced_score([1, 4, 5], [1, 1, 1], "median"), reduced_score([1, 4], [3, 1], "mean")
    (4, 1.75)
    """
    if how == "mean":
        return sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)
    half, passed = sum(weights) / 2, 0.0
    ranked = sorted(zip(scores, weights, strict=True))
    for place, (score, weight) in enumerate(ranked):
        passed += weight
        if abs(passed - half) < half * 1e-9:
            return fmean((score, ranked[place + 1][0]))
        if passed > half:
            return score
    return ranked[-1][0]
