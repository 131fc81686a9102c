"""The cube: what every model scored in every scenario on every benchmark and, where it is known, on every question.

The one value that tables, runs and all statistics of an audit share. What a cube lacks is refused, or left out as the
user says, and then for every model; it is never filled in and never averaged over in silence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.request import Missing
from skill_evaluator.errors import AuditError
from skill_evaluator.text import listed

Floats = NDArray[np.float64]
_SHOWN = 4  # models and scenarios that an error names


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what is derived is kept
class Outcomes:
    """One benchmark, question by question. `scores`: float32 [models, scenarios, questions, replicates] in [0, 1].

    NaN is "not measured": a provider's failure or a call that was not made, never a wrong answer.
    """

    questions: tuple[str, ...]
    scores: NDArray[np.float32]

    @property
    def replicates(self) -> int:
        """The number of answers that each question was asked for."""
        return int(self.scores.shape[3])

    @cached_property
    def means(self) -> Floats:
        """The means over measured replicates, [models, scenarios, questions] in [0, 1]; NaN where none was measured."""
        scores = self.scores
        if self.replicates == 1:
            return scores[..., 0].astype(np.float64)
        measured = ~np.isnan(scores)
        counts = measured.sum(axis=3)
        sums = np.where(measured, scores, 0.0).sum(axis=3, dtype=np.float64)
        return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """The cost of a model in the audit: USD a call (None: unknown) and the median seconds of an answer."""

    usd_per_call: float | None
    latency_s: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Cube:
    """`scores`: [models, scenarios, benchmarks], per cent right, without holes. `weights` of the benchmarks sum to 1.

    `outcomes` by benchmark, where single answers are known; `questions` by benchmark, where at least their number is.
    `spending` and `answers` (how many were scored, unparseable, …) by model, where runs tell.
    `treatment`: what was left out, in words.
    """

    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    benchmarks: tuple[str, ...]
    scores: Floats
    weights: Floats
    outcomes: Mapping[str, Outcomes] | None = None
    questions: Mapping[str, int] = field(default_factory=dict)
    spending: Mapping[str, ModelCost] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    treatment: str | None = None

    @cached_property
    def overall(self) -> Floats:
        """S(m, t): the weighted mean over the benchmarks, [models, scenarios], per cent."""
        return self.scores @ self.weights

    def on(self, benchmark: str) -> Self:
        """Return the cube of one benchmark alone."""
        place = self.benchmarks.index(benchmark)
        return replace(
            self,
            benchmarks=(benchmark,),
            scores=self.scores[:, :, [place]],
            weights=np.ones(1),
            outcomes=None if self.outcomes is None else {benchmark: self.outcomes[benchmark]},
            questions={name: count for name, count in self.questions.items() if name == benchmark},
        )

    def within(self, scenarios: Sequence[str]) -> Self:
        """Return the cube of some scenarios alone, in their order."""
        places = [self.scenarios.index(name) for name in scenarios]
        outcomes = {
            name: replace(benchmark, scores=benchmark.scores[:, places])
            for name, benchmark in (self.outcomes or {}).items()
        }
        return replace(self, scenarios=tuple(scenarios), scores=self.scores[:, places], outcomes=outcomes or None)

    @property
    def replicates(self) -> int | None:
        """The number of answers a question, the fewest over the benchmarks; None where single answers are not known."""
        return None if self.outcomes is None else min(outcomes.replicates for outcomes in self.outcomes.values())


def cube_of_scores(
    models: Sequence[str],
    scenarios: Sequence[str],
    benchmarks: Sequence[str],
    scores: Floats,
    *,
    weights: Mapping[str, float],
    missing: Missing = "refuse",
    where: str = "the table",
    lacking: str = "cell",
) -> Cube:
    """Make a cube of scores in per cent, [models, scenarios, benchmarks], with NaN where a cell is missing.

    A benchmark without a weight weighs 1. Raise AuditError for missing cells, unless `missing` says what to leave out;
    `lacking`: what a hole lacks, in words.
    """
    holes = np.asarray(np.isnan(scores).any(axis=2))
    if holes.any() and missing in ("refuse", "questions"):
        raise AuditError(_lacks(models, scenarios, holes, lacking, where))
    keeps_models = np.asarray(~(holes.any(axis=1) & (missing == "models")))
    keeps_scenarios = np.asarray(~(holes.any(axis=0) & (missing == "scenarios")))
    if not keeps_models.any() or not keeps_scenarios.any():
        raise AuditError(f"{where}: nothing is left when incomplete {missing} are left out")
    gone = [name for name, keeps in zip(models, keeps_models, strict=True) if not keeps]
    gone += [f"scenario {name}" for name, keeps in zip(scenarios, keeps_scenarios, strict=True) if not keeps]
    raw = np.array([weights.get(name, 1.0) for name in benchmarks], dtype=np.float64)
    return Cube(
        models=tuple(compress(models, keeps_models)),
        scenarios=tuple(compress(scenarios, keeps_scenarios)),
        benchmarks=tuple(benchmarks),
        scores=scores[np.ix_(keeps_models, keeps_scenarios)],
        weights=raw / raw.sum(),
        treatment=f"left out {listed(gone)}: incomplete" if gone else None,
    )


def cube_of_outcomes(
    models: Sequence[str],
    scenarios: Sequence[str],
    outcomes: Mapping[str, Outcomes],
    *,
    weights: Mapping[str, float],
    missing: Missing = "refuse",
    spending: Mapping[str, ModelCost] | None = None,
    answers: Mapping[str, Mapping[str, int]] | None = None,
    where: str = "the audit",
) -> Cube:
    """Make a cube of single answers; a question that some replicate of a cell answered counts as answered there.

    Raise AuditError where a question has no answer at all in some cell, unless `missing` says what to leave out.
    """
    treatment = None
    if missing == "questions":
        outcomes, treatment = _keep_answered(outcomes, where)
    scores = np.stack([100.0 * benchmark.means.mean(axis=2) for benchmark in outcomes.values()], axis=2)
    cube = cube_of_scores(
        models,
        scenarios,
        tuple(outcomes),
        scores,
        weights=weights,
        missing=missing,
        where=where,
        lacking="answer",
    )
    kept = np.ix_([models.index(name) for name in cube.models], [scenarios.index(name) for name in cube.scenarios])
    return replace(
        cube,
        outcomes={name: replace(benchmark, scores=benchmark.scores[kept]) for name, benchmark in outcomes.items()},
        questions={name: len(benchmark.questions) for name, benchmark in outcomes.items()},
        spending={name: spent for name, spent in (spending or {}).items() if name in cube.models},
        answers={name: counts for name, counts in (answers or {}).items() if name in cube.models},
        treatment=treatment or cube.treatment,
    )


def _keep_answered(outcomes: Mapping[str, Outcomes], where: str) -> tuple[dict[str, Outcomes], str | None]:
    """Keep the questions that every model answered in every scenario; return also which were left out, in words."""
    kept, dropped = {}, []
    for name, benchmark in outcomes.items():
        complete = np.asarray(~np.isnan(benchmark.means).any(axis=(0, 1)))
        if not complete.any():
            raise AuditError(f"{where}: no question of '{name}' has an answer from every model in every scenario")
        questions = tuple(compress(benchmark.questions, complete))
        kept[name] = Outcomes(questions=questions, scores=benchmark.scores[:, :, complete])
        dropped += [f"{name}/{question}" for question in compress(benchmark.questions, ~complete)]
    return kept, f"left out {listed(dropped)}: some model has no answer to them" if dropped else None


def _lacks(models: Sequence[str], scenarios: Sequence[str], holes: NDArray[np.bool_], lacking: str, where: str) -> str:
    """Say where there are holes, and how to do without them."""
    places = [
        f"{model} in {listed(list(compress(scenarios, own)), _SHOWN)}"
        for model, own in zip(models, holes, strict=True)
        if own.any()
    ]
    more = f"; and {len(places) - _SHOWN} more models" if len(places) > _SHOWN else ""
    ways = "scenarios or --missing models" if lacking == "cell" else "questions, scenarios or models"
    return (
        f"{where} lacks {lacking}s of {'; '.join(places[:_SHOWN])}{more}: complete it, or leave out what is "
        f"incomplete with --missing {ways}"
    )
