"""The cube: what every model scored in every scenario on every benchmark, and, where it is known, on every question.

The one value that reading tables, reading runs and all statistics of an audit share.

What a cube lacks: named, and refused, or treated as the user says. Never filled in, never averaged over in silence.

A table may lack cells, runs may lack answers to questions; whatever is left out is left out for every model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.errors import AuditError
from skill_evaluator.text import listed

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
class ModelCost:
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
    spending: Mapping[str, ModelCost] = field(default_factory=dict)
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


Missing = Literal["refuse", "questions", "scenarios", "models"]
_SHOWN = 4


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
    """A cube of scores in per cent, [models, scenarios, benchmarks], NaN where a cell is missing; raises AuditError."""
    holes: NDArray[np.bool_] = np.asarray(np.isnan(scores).any(axis=2))
    kept_models, kept_scenarios = _kept(models, scenarios, holes, missing, where, "cell")
    return Cube(
        models=tuple(models[index] for index in kept_models),
        scenarios=tuple(scenarios[index] for index in kept_scenarios),
        benchmarks=tuple(benchmarks),
        scores=scores[np.ix_(kept_models, kept_scenarios)],
        weights=equal_or_given(benchmarks, weights),
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
    """A cube of single answers. A question that some replicate of a cell answered counts as answered there.

    Raises AuditError where a question has no answer at all in some cell, unless `missing` says what to leave out.
    """
    treatment = None
    if missing == "questions":
        outcomes, treatment = _answered_everywhere(outcomes, where)
    holes = np.zeros((len(models), len(scenarios)), dtype=bool)
    for one in outcomes.values():
        holes |= _unanswered(one).any(axis=2)
    kept_models, kept_scenarios = _kept(models, scenarios, holes, missing, where, "answer")
    kept = {
        name: Outcomes(questions=one.questions, scores=one.scores[np.ix_(kept_models, kept_scenarios)])
        for name, one in outcomes.items()
    }
    names = tuple(models[index] for index in kept_models)
    return Cube(
        models=names,
        scenarios=tuple(scenarios[index] for index in kept_scenarios),
        benchmarks=tuple(kept),
        scores=np.stack([100.0 * one.means.mean(axis=2) for one in kept.values()], axis=2),
        weights=equal_or_given(tuple(kept), weights),
        outcomes=kept,
        questions={name: len(one.questions) for name, one in kept.items()},
        spending={name: spent for name, spent in (spending or {}).items() if name in names},
        answers={name: counts for name, counts in (answers or {}).items() if name in names},
        treatment=treatment or _left_out(models, scenarios, kept_models, kept_scenarios),
    )


def _unanswered(outcomes: Outcomes) -> NDArray[np.bool_]:
    """[models, scenarios, questions]: not one replicate was measured."""
    return np.asarray(np.isnan(outcomes.scores).all(axis=3))


def _answered_everywhere(outcomes: Mapping[str, Outcomes], where: str) -> tuple[dict[str, Outcomes], str | None]:
    """The questions that every model answered in every scenario, and which were left out for it."""
    kept, dropped = {}, []
    for name, one in outcomes.items():
        complete = ~np.asarray(_unanswered(one).any(axis=(0, 1)))
        if not complete.any():
            raise AuditError(f"{where}: no question of '{name}' has an answer from every model in every scenario")
        kept[name] = Outcomes(
            questions=tuple(question for question, keeps in zip(one.questions, complete, strict=True) if keeps),
            scores=one.scores[:, :, complete],
        )
        dropped += [f"{name}/{question}" for question, keeps in zip(one.questions, complete, strict=True) if not keeps]
    return kept, f"left out {listed(dropped)}: some model has no answer to them" if dropped else None


def _kept(
    models: Sequence[str],
    scenarios: Sequence[str],
    holes: NDArray[np.bool_],
    missing: Missing,
    where: str,
    what: str,
) -> tuple[list[int], list[int]]:
    """The models and scenarios that are kept, by index; raises AuditError for holes nobody decided about."""
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
