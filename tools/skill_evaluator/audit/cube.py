"""The cube: what every model scored in every scenario on every benchmark, and, where it is known, on every question.

The one value that reading tables, reading runs and all statistics of an audit share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what is derived is kept
class Outcomes:
    """One benchmark, question by question. `scores`: float32 [models, scenarios, questions, replicates] in [0, 1].

    NaN is «not measured»: a provider's failure or a call that was not made, never a wrong answer.
    """

    questions: tuple[str, ...]
    scores: NDArray[np.float32]

    @property
    def replicates(self) -> int:
        """Answers a question was asked for."""
        return int(self.scores.shape[3])

    @cached_property
    def means(self) -> Floats:
        """Over the replicates that were measured, [models, scenarios, questions] in [0, 1]; NaN where none was."""
        scores = self.scores
        if self.replicates == 1:
            return scores[..., 0].astype(np.float64)
        measured = ~np.isnan(scores)
        counts = measured.sum(axis=3)
        sums = np.where(measured, scores, 0.0).sum(axis=3, dtype=np.float64)
        return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a model took in the audit: USD a call (None: unknown) and the median seconds an answer took."""

    usd_per_call: float | None
    latency_s: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Cube:
    """`scores`: [models, scenarios, benchmarks], per cent right, without holes. `weights` of the benchmarks sum to 1.

    `outcomes` by benchmark, where single answers are known; `questions` by benchmark, where at least their number is.
    `spending` and `answers` (how many became what: scored, unparseable, …) by model, where runs tell.
    """

    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    benchmarks: tuple[str, ...]
    scores: Floats
    weights: Floats
    outcomes: Mapping[str, Outcomes] | None = None
    questions: Mapping[str, int] = field(default_factory=dict)
    spending: Mapping[str, Spending] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    treatment: str | None = None

    @cached_property
    def overall(self) -> Floats:
        """S(m, t): the weighted mean over the benchmarks, [models, scenarios], per cent."""
        return self.scores @ self.weights

    @property
    def replicates(self) -> int | None:
        """Answers a question, where they are known (the fewest over the benchmarks)."""
        return None if self.outcomes is None else min(one.replicates for one in self.outcomes.values())


def equal_or_given(benchmarks: Sequence[str], weights: Mapping[str, float]) -> Floats:
    """Weights of the benchmarks that sum to 1; 1 each unless given."""
    raw = np.array([weights.get(name, 1.0) for name in benchmarks], dtype=np.float64)
    return np.asarray(raw / raw.sum(), dtype=np.float64)
