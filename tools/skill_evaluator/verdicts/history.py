"""The history of a component: each recorded version compared with the one before, and the versions that changed it.

Pairs of records and the rules come in, frozen models go out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from skill_evaluator.stats import rounded
from skill_evaluator.verdicts.change_points import Chance, Split, find_splits, means_by_case
from skill_evaluator.verdicts.comparability import Pair, common_part
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.effects import adjusted
from skill_evaluator.verdicts.history_results import Change, History, ModelHistory, Point, Step, Steps
from skill_evaluator.verdicts.kept import KeptVerdicts
from skill_evaluator.verdicts.noise import RunEffect
from skill_evaluator.verdicts.rules import VerdictRules
from skill_evaluator.verdicts.stretches import Stretch, chance_of, comparable_stretch, effect_of_runs


def history_of(
    skill: str, by_model: Mapping[str, Sequence[Pair]], rules: VerdictRules, kept: KeptVerdicts | None = None
) -> History:
    """Return the history of a component.

    Each version of a model is the candidate of a pair, lowest first, and the baseline is the version that it is judged
    against: None for the lowest. Steps that are kept are not drawn again.
    """
    families: dict[str, list[Pair]] = {}  # the models of a version are one family, as they are in `compare`
    for pair in chain.from_iterable(by_model.values()):
        if pair.baseline is not None:
            families.setdefault(pair.candidate.skill_version, []).append(pair)

    def drawn(pairs: Sequence[Pair]) -> Steps:
        models = compare_records(skill, pairs, rules).models
        return Steps(by_run={model.candidate.run_id: Step.of(model, rules.primary_metric) for model in models})

    steps: dict[str, Step] = {}
    for pairs in families.values():
        steps |= (kept.steps(pairs, drawn) if kept else drawn(pairs)).by_run
    run = effect_of_runs(chain.from_iterable(by_model.values()), rules.primary_metric)
    searched = search_changes(by_model, run, rules)
    models = [
        ModelHistory(
            model_id=model_id,
            points=[Point.of(pair, steps.get(pair.candidate.run_id), rules.primary_metric) for pair in versions],
            changes=searched[model_id].changes,
            remarks=[
                *searched[model_id].remarks,
                *dict.fromkeys(words for pair in versions for words in pair.passed_over),
            ],
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
