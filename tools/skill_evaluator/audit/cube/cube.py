"""The cube: what every model scored in every scenario on every benchmark and, where it is known, on every question.

The one value that tables, runs and all statistics of an audit share. What a cube lacks is refused, or left out as the
user says, and then for every model; it is never filled in and never averaged over in silence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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


def normalised_weights(benchmarks: Sequence[str], weights: Mapping[str, float]) -> Floats:
    """Return weights of the benchmarks that sum to 1, in proportion to those given; a benchmark not named weighs 1."""
    raw = np.array([weights.get(name, 1.0) for name in benchmarks], dtype=np.float64)
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def cube_of_scores(
    models: Sequence[str],
    scenarios: Sequence[str],
    benchmarks: Sequence[str],
    scores: Floats,
    *,
    weights: Mapping[str, float],
    missing: Missing = "refuse",
    where: str = "the table",
) -> Cube:
    """Make a cube of scores in per cent, [models, scenarios, benchmarks], with NaN where a cell is missing.

    Raise AuditError for missing cells, unless `missing` says what to leave out.
    """
    holes: NDArray[np.bool_] = np.asarray(np.isnan(scores).any(axis=2))
    kept_models, kept_scenarios = _keep_complete(models, scenarios, holes, missing, where, "cell")
    return Cube(
        models=tuple(models[index] for index in kept_models),
        scenarios=tuple(scenarios[index] for index in kept_scenarios),
        benchmarks=tuple(benchmarks),
        scores=scores[np.ix_(kept_models, kept_scenarios)],
        weights=normalised_weights(benchmarks, weights),
        treatment=_left_out(models, scenarios, kept_models, kept_scenarios),
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
    holes = np.zeros((len(models), len(scenarios)), dtype=bool)
    for benchmark in outcomes.values():
        holes |= _unanswered(benchmark).any(axis=2)
    kept_models, kept_scenarios = _keep_complete(models, scenarios, holes, missing, where, "answer")
    kept = {
        name: Outcomes(questions=benchmark.questions, scores=benchmark.scores[np.ix_(kept_models, kept_scenarios)])
        for name, benchmark in outcomes.items()
    }
    names = tuple(models[index] for index in kept_models)
    return Cube(
        models=names,
        scenarios=tuple(scenarios[index] for index in kept_scenarios),
        benchmarks=tuple(kept),
        scores=np.stack([100.0 * benchmark.means.mean(axis=2) for benchmark in kept.values()], axis=2),
        weights=normalised_weights(tuple(kept), weights),
        outcomes=kept,
        questions={name: len(benchmark.questions) for name, benchmark in kept.items()},
        spending={name: spent for name, spent in (spending or {}).items() if name in names},
        answers={name: counts for name, counts in (answers or {}).items() if name in names},
        treatment=treatment or _left_out(models, scenarios, kept_models, kept_scenarios),
    )


def _unanswered(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return where not one replicate was measured, [models, scenarios, questions]."""
    return np.asarray(np.isnan(outcomes.scores).all(axis=3))


def _keep_answered(outcomes: Mapping[str, Outcomes], where: str) -> tuple[dict[str, Outcomes], str | None]:
    """Keep the questions that every model answered in every scenario; return also which were left out, in words."""
    kept, dropped = {}, []
    for name, benchmark in outcomes.items():
        complete = ~np.asarray(_unanswered(benchmark).any(axis=(0, 1)))
        if not complete.any():
            raise AuditError(f"{where}: no question of '{name}' has an answer from every model in every scenario")
        questions = list(zip(benchmark.questions, complete, strict=True))
        kept[name] = Outcomes(
            questions=tuple(question for question, keeps in questions if keeps),
            scores=benchmark.scores[:, :, complete],
        )
        dropped += [f"{name}/{question}" for question, keeps in questions if not keeps]
    return kept, f"left out {listed(dropped)}: some model has no answer to them" if dropped else None


def _keep_complete(
    models: Sequence[str],
    scenarios: Sequence[str],
    holes: NDArray[np.bool_],
    missing: Missing,
    where: str,
    what: str,
) -> tuple[list[int], list[int]]:
    """Return the models and scenarios to keep, by index; raise AuditError for holes that nobody decided about."""
    if not holes.any():
        return list(range(len(models))), list(range(len(scenarios)))
    if missing in ("refuse", "questions"):
        places = [
            f"{models[m]} in {listed([scenarios[t] for t in map(int, np.flatnonzero(holes[m]))], _SHOWN)}"
            for m in map(int, np.flatnonzero(holes.any(axis=1)))
        ]
        ways = "scenarios or --missing models" if what == "cell" else "questions, scenarios or models"
        raise AuditError(
            f"{where} lacks {what}s of {'; '.join(places[:_SHOWN])}"
            f"{f'; and {len(places) - _SHOWN} more models' if len(places) > _SHOWN else ''}: "
            f"complete it, or leave out what is incomplete with --missing {ways}"
        )
    keeps_models = ~np.asarray(holes.any(axis=1)) if missing == "models" else np.ones(len(models), dtype=bool)
    keeps_scenarios = ~np.asarray(holes.any(axis=0)) if missing == "scenarios" else np.ones(len(scenarios), dtype=bool)
    if not keeps_models.any() or not keeps_scenarios.any():
        raise AuditError(f"{where}: nothing is left when incomplete {missing} are left out")
    return list(map(int, np.flatnonzero(keeps_models))), list(map(int, np.flatnonzero(keeps_scenarios)))


def _left_out(
    models: Sequence[str], scenarios: Sequence[str], kept_models: Sequence[int], kept_scenarios: Sequence[int]
) -> str | None:
    gone = [name for index, name in enumerate(models) if index not in kept_models]
    gone += [f"scenario {name}" for index, name in enumerate(scenarios) if index not in kept_scenarios]
    return f"left out {listed(gone)}: incomplete" if gone else None
