"""The history of a component: each recorded version compared with the one before, and the versions that changed it.

Pairs of records and the rules come in, frozen models go out: programs read them, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import fmean
from typing import Literal

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.stats import mean_or_none, rounded
from skill_evaluator.verdicts.change_points import Chance, Split, find_splits, means_by_case
from skill_evaluator.verdicts.comparability import Pair, common_part, pooled, strict_scores
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.effects import adjusted
from skill_evaluator.verdicts.noise import RunEffect
from skill_evaluator.verdicts.results import ModelVerdict, Watch
from skill_evaluator.verdicts.rules import VerdictRules
from skill_evaluator.verdicts.stretches import Stretch, chance_of, comparable_stretch, effect_of_runs


class Step(FrozenModel):
    """A version's verdict against the recorded version before it, as `compare` draws it.

    `watch` is what became of it since the anchor: of the highest version alone, and no verdict of another knows it.
    """

    before: str
    verdict: VerdictName
    generalises: VerdictName
    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    reasons: list[str]
    watch: Watch | None = None

    @classmethod
    def of(cls, model: ModelVerdict, primary_metric: str) -> "Step":
        """Return the step that a comparison with the version before found."""
        primary = next((result for result in model.metrics if result.metric == primary_metric), None)
        return cls(
            before=model.baseline.skill_version if model.baseline else "",
            verdict=model.verdict,
            generalises=model.generalises,
            difference=primary.difference if primary else None,
            ci95=primary.ci95 if primary else None,
            q=primary.q if primary else None,
            reasons=model.reasons,
            watch=model.watch,
        )


class Point(FrozenModel):
    """A version: the strict mean of the primary metric over all its runs, and the step that led there.

    `run_id` and `timestamp` are those of its newest complete run, and `runs` counts the runs that are pooled.
    """

    version: str
    run_id: str
    timestamp: str
    strict_mean: float | None
    n_cases: int
    step: Step | None = None
    runs: int = 1

    @classmethod
    def of(cls, pair: Pair, step: Step | None, primary_metric: str) -> "Point":
        """Return the point of a version, the candidate of a pair."""
        newest = pair.candidate
        scores = [strict_scores(case, primary_metric) for case in pooled(newest, pair.candidate_again).per_case]
        means = [fmean(case) for case in scores if case]
        return cls(
            version=newest.skill_version,
            run_id=newest.run_id,
            timestamp=newest.timestamp,
            strict_mean=rounded(mean_or_none(means)),
            n_cases=len(means),
            step=step,
            runs=1 + len(pair.candidate_again),
        )


class Change(FrozenModel):
    """A version from which on the primary metric has another level; `q` is adjusted over its family of splits.

    `before` and `after` are the mean levels up to this change and from it to the next. `remarks` name what else changed
    with the version.
    """

    version: str
    direction: Literal["worse", "better"]
    before: float
    after: float
    p: float
    q: float
    n_cases: int
    remarks: list[str]


class ModelHistory(FrozenModel):
    """One model, the lowest version first.

    `remarks` name what was not searched for changes and why, and what hides them. `run_sd` is the standard deviation
    of a whole run that changes are held against, the largest of any version.
    """

    model_id: str
    points: list[Point]
    changes: list[Change]
    remarks: list[str]
    run_sd: float | None = None


class History(FrozenModel):
    """The history of a component; `gate` names the question that the verdicts answer.

    `aa_runs` counts the further runs of a version that tell what a run as a whole does.
    """

    skill: str
    metric: str
    gate: str
    alpha: float
    models: list[ModelHistory]
    aa_runs: int = 0


def history_of(skill: str, by_model: Mapping[str, Sequence[Pair]], rules: VerdictRules) -> History:
    """Return the history of a component.

    Each version of a model is the candidate of a pair, lowest first, and the baseline is the version that it is judged
    against: None for the lowest.
    """
    families: dict[str, list[Pair]] = {}  # the models of a version are one family, as they are in `compare`
    for pair in chain.from_iterable(by_model.values()):
        if pair.baseline is not None:
            families.setdefault(pair.candidate.skill_version, []).append(pair)
    steps = {
        model.candidate.run_id: Step.of(model, rules.primary_metric)
        for pairs in families.values()
        for model in compare_records(skill, pairs, rules).models
    }
    run = effect_of_runs(chain.from_iterable(by_model.values()), rules.primary_metric)
    searched = search_changes(by_model, run, rules)
    models = [
        ModelHistory(
            model_id=model_id,
            points=[Point.of(pair, steps.get(pair.candidate.run_id), rules.primary_metric) for pair in versions],
            changes=searched[model_id].changes,
            remarks=searched[model_id].remarks,
            run_sd=rounded(max(searched[model_id].chance.runs, default=None)),
        )
        for model_id, versions in by_model.items()
    ]
    return History(
        skill=skill,
        metric=rules.primary_metric,
        gate=rules.policy.gate,
        alpha=rules.alpha,
        models=models,
        aa_runs=run.runs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The versions of a model that were searched, what moves them by chance, and their changes beyond that."""

    stretch: Stretch
    chance: Chance
    changes: list[Change]

    @property
    def remarks(self) -> list[str]:
        """What was not searched and why, and what hides changes."""
        return [*self.stretch.remarks, *self.chance.remarks]


def search_changes(by_model: Mapping[str, Sequence[Pair]], run: RunEffect, rules: VerdictRules) -> dict[str, Searched]:
    """Search the versions of each model: a change is a split beyond chance."""
    stretches = {
        model_id: comparable_stretch(versions, rules.primary_metric) for model_id, versions in by_model.items()
    }
    chances = {model_id: chance_of(stretch, run, rules.policy.gate) for model_id, stretch in stretches.items()}
    tested = [
        (model_id, split)
        for model_id, stretch in stretches.items()
        for split in find_splits(stretch.cases, rules.alpha, chances[model_id])
    ]
    certain = _beyond_chance(tested, rules.alpha)
    return {
        model_id: Searched(
            stretch=stretch,
            chance=chances[model_id],
            changes=_changes_of_level(stretch, [(split, q) for other, split, q in certain if other == model_id]),
        )
        for model_id, stretch in stretches.items()
    }


def _beyond_chance(tested: Sequence[tuple[str, Split]], alpha: float) -> list[tuple[str, Split, float]]:
    """Return the splits with q ≤ α, each with its q.

    The splits of a depth are a family, over all models; a side is tested only where the split that made it is certain
    (Yekutieli 2008, doi:10.1198/016214507000001373).
    """
    certain: list[tuple[str, Split, float]] = []
    for depth in range(1 + max((split.depth for _, split in tested), default=-1)):
        family = [
            (model_id, split)
            for model_id, split in tested
            if split.depth == depth
            and (
                depth == 0
                or any(
                    other == model_id and above.depth == depth - 1 and split.at in range(above.first, above.end)
                    for other, above, _ in certain
                )
            )
        ]
        q_values = adjusted([split.p for _, split in family])
        certain += [(*own, q) for own, q in zip(family, q_values, strict=True) if q <= alpha]
    return certain


def _changes_of_level(stretch: Stretch, splits: Sequence[tuple[Split, float]]) -> list[Change]:
    """Return the changes in the order of versions, with the mean level of the versions between two of them."""
    if not splits:
        return []
    ordered = sorted(splits, key=lambda split: split[0].at)
    newest = [runs[0] for runs in stretch.versions]
    edges = [0, *(split.at for split, _ in ordered), len(newest)]
    means = means_by_case(stretch.cases).mean(axis=0)
    levels = [float(means[start:end].mean()) for start, end in pairwise(edges)]
    return [
        Change(
            version=newest[split.at].skill_version,
            direction="worse" if after < before else "better",
            before=round(before, 6),
            after=round(after, 6),
            p=round(split.p, 6),
            q=round(q, 6),
            n_cases=len(stretch.cases),
            remarks=list(common_part(newest[split.at - 1], newest[split.at]).remarks),
        )
        for (split, q), (before, after) in zip(ordered, pairwise(levels), strict=True)
    ]
