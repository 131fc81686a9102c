"""Rank the models of a component by runs on the same cases, with frontier, dominance and advice."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations

from skill_evaluator.display import WHOLE, arrow
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record, is_mixed
from skill_evaluator.stats import ROUNDING, by_key, mean_or_none, rounded, unit_interval
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.comparability import (
    AGREEMENT,
    Pair,
    PairedScores,
    common_part,
    cut_to,
    mark_concurrent,
    pooled,
    strict_scores,
)
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.measuring import holm
from skill_evaluator.verdicts.decide.results import MeasureResult, ModelVerdict, per_1000
from skill_evaluator.verdicts.decide.rules import VerdictRules
from skill_evaluator.verdicts.planning.advice import (
    Contrast,
    ModelRanking,
    PromptEffect,
    RankedModel,
    Score,
    advise,
    on_frontier,
)

_SHARED = 0.5  # minimum share of the newest run's cases that a model must have answered to be ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A model with its runs on the cases that all models share, and its scores there."""

    pair: Pair
    accuracy: Mapping[str, Score]
    reproducibility: Mapping[str, float | None]
    score: float
    cost: float | None

    @property
    def record(self) -> Record:
        return self.pair.candidate

    @property
    def name(self) -> str:
        return self.record.model_id


def rank_models(
    skill: str,
    runs: Sequence[Pair],
    rules: VerdictRules,
    *,
    rest: Sequence[Pair] = (),
    prompts: Sequence[Pair] = (),
    verdicts: Mapping[str, VerdictName],
) -> ModelRanking:
    """Rank models, whose runs are the candidates of `runs`, by the strict mean of the primary metric.

    `rest` holds the runs of models that are not shown: all models of a version are one family. `prompts` holds pairs of
    a run with the schema alone and a run with the prompt. Only the cases that all models share count. A model is
    skipped if its run is not comparable with the newest or shares too few of its cases. The ranking is empty if there
    are no runs.
    """
    comparable, unlike = _comparable(runs, rest)
    shared = _on_shared_cases(comparable)
    if not shared:
        unlike |= {pair.candidate.model_id: "no case was answered by all models" for pair in comparable}
    family, hidden = _ranked(shared, rules.primary_metric), {pair.candidate.model_id for pair in rest}
    contrasts, dominated = _contrasts(skill, family, rules)
    pairs = [pair for pair in contrasts if not {pair.higher, pair.lower} & hidden]
    models = [model for model in family if model.name not in hidden]
    worse = {pair.lower for pair in pairs if pair.higher == models[0].name and pair.significant}
    added = {}
    for pair in prompts:  # one prompt effect per model, each a family of its own
        (result,) = compare_records(skill, [pair], rules, wanted=_is_metric).models
        primary = _primary(result, rules.primary_metric)
        added[result.model_id] = None if primary is None else PromptEffect.view(primary)
    now = datetime.now(UTC)
    rows = [
        RankedModel.view(
            model.record,
            age_days=None if (moment := model.record.moment) is None else max(0, (now - moment).days),
            accuracy=dict(model.accuracy),
            reproducibility=dict(model.reproducibility),
            usd_per_1000_cases=model.cost,
            latency_p50_s=model.record.latency_s.p50,
            latency_p95_s=model.record.latency_s.p95,
            place=1 + sum(other.score > model.score for other in models),
            like_best=model.name not in worse,
            verdict=verdicts.get(model.name),
            prompt_adds=added.get(model.name),
            frontier=on_frontier((model.cost, model.score), [(one.cost, one.score) for one in models]),
            dominated_by=[name for name in dominated.get(model.name, []) if name not in hidden],
        )
        for model in models
    ]
    return ModelRanking(
        skill=skill,
        metric=rules.primary_metric,
        alpha=rules.alpha,
        tolerance=rules.primary_tolerance,
        n_cases=len(models[0].record.per_case) if models else 0,
        models=rows,
        pairs=pairs,
        family=len(contrasts),
        advice=advise(rows, pairs, rules.primary_tolerance),
        left_out={name: reason for name, reason in unlike.items() if name not in hidden},
    )


def _comparable(runs: Sequence[Pair], rest: Sequence[Pair]) -> tuple[list[Pair], dict[str, str]]:
    """Return the runs that can be ranked with the newest run, and the reasons why others cannot, by model."""
    newest = max(
        (pair.candidate for pair in runs),
        key=lambda run: (not is_mixed(run.served_model), run.timestamp, run.run_id),
        default=None,
    )
    comparable, unlike = [], {}
    for pair in (*runs, *rest):
        common = None if newest is None or pair.candidate is newest else common_part(newest, pair.candidate)
        if newest is None or common is None:
            comparable.append(pair)
        elif common.barriers:
            unlike[pair.candidate.model_id] = f"not measured as {newest.model_id} was: {common.barriers[0]}"
        elif len(common.cases) < _SHARED * len(newest.per_case):
            shared = f"{len(common.cases)} of {counted(len(newest.per_case), 'case')}"
            unlike[pair.candidate.model_id] = f"it answered {shared} of {newest.model_id}"
        else:
            comparable.append(pair)
    return comparable, unlike


def _on_shared_cases(runs: Sequence[Pair]) -> list[Pair]:
    """Restrict the runs to the cases with equal content in all their records; return none if there are none."""
    digests = [{(case.case_id, case.digest) for case in pair.candidate.per_case} for pair in runs]
    shared = {case_id for case_id, _ in set.intersection(*digests)} if digests else set()
    if not shared or all(len(shared) == len(cases) for cases in digests):
        return list(runs) if shared else []
    return [
        Pair(
            baseline=None,
            candidate=cut_to(pair.candidate, shared),
            candidate_again=tuple(cut_to(record, shared) for record in pair.candidate_again),
        )
        for pair in runs
    ]


def _ranked(runs: Iterable[Pair], metric: str) -> list[_Candidate]:
    """Return the models, the best first, ties broken by cost."""
    models = []
    for pair in runs:
        record = pooled(pair.candidate, pair.candidate_again)
        accuracy = {name: _score(record, name) for name in record.accuracy if _is_scored(record, name)}
        agreement = {
            name: [share for case in record.per_case if (share := case.reproducibility.get(name)) is not None]
            for name in AGREEMENT
        }
        score = accuracy[metric].strict_mean if metric in accuracy else None
        models.append(
            _Candidate(
                pair=pair,
                accuracy=accuracy,
                reproducibility={name: rounded(mean_or_none(shares)) for name, shares in agreement.items()},
                score=-1.0 if score is None else score,
                cost=per_1000(pair.candidate.cost_usd, pair.candidate.outputs),
            )
        )
    return sorted(models, key=lambda model: (-model.score, math.inf if model.cost is None else model.cost, model.name))


def _is_scored(record: Record, metric: str) -> bool:
    """Return whether any output has a score by a metric; jaccard has none if no ground truth has an array."""
    return any(score is not None for case in record.per_case for score in case.replicates.get(metric, ()))


def _score(record: Record, metric: str) -> Score:
    means = [sum(scores) / len(scores) for case in record.per_case if (scores := strict_scores(case, metric))]
    interval = unit_interval(means)
    return Score(
        strict_mean=rounded(mean_or_none(means)),
        ci95=None if interval is None else (round(interval[0], 6), round(interval[1], 6)),
        n_cases=len(means),
    )


def _contrasts(
    skill: str, models: Sequence[_Candidate], rules: VerdictRules
) -> tuple[list[Contrast], dict[str, list[str]]]:
    """Compare all pairs of models (q adjusted by Holm). Return also, by model, the models that dominate it."""
    couples = list(combinations(models, 2))
    pairs = [
        mark_concurrent(
            Pair(
                baseline=higher.record,
                candidate=lower.record,
                baseline_again=higher.pair.candidate_again,
                candidate_again=lower.pair.candidate_again,
            )
        )
        for higher, lower in couples
    ]
    results = compare_records(skill, pairs, rules, wanted=_is_metric).models
    primaries = [_primary(result, rules.primary_metric) for result in results]
    q_values = holm([1.0 if primary is None or primary.p is None else primary.p for primary in primaries])
    contrasts = []
    for (higher, lower), result, primary, q in zip(couples, results, primaries, q_values, strict=True):
        contrast = Contrast(higher=higher.name, lower=lower.name)
        if primary is not None:
            as_good, is_lower = primary.verdict == "unchanged", (primary.difference or 0.0) < -ROUNDING
            significant = is_lower and q <= rules.alpha / 2 and not as_good
            changed = {"q": round(q, 6), "as_good": as_good, "significant": significant, "remedy": result.remedy}
            changed["fell_most"] = _fell_most(higher.record, lower.record, rules.primary_tolerance)
            contrast = Contrast.view(primary, higher=higher.name, lower=lower.name, **changed)
        contrasts.append(contrast)
    triples = zip(couples, results, strict=True)
    dominated = by_key((low.name, high.name) for (high, low), result in triples if _dominates(high, low, result))
    return contrasts, dominated


def _fell_most(higher: Record, lower: Record, tolerance: float) -> str:
    """Name the field that is lower by most and by more than the tolerance, with both accuracies; "" if none is."""
    falls = []
    for path, field in higher.per_field.items():
        other = lower.per_field.get(path)
        if other is not None and field.accuracy is not None and other.accuracy is not None:
            falls.append((other.accuracy - field.accuracy, path, arrow(field.accuracy, other.accuracy)))
    difference, path, scores = min(falls, default=(0.0, "", ""))
    return f"{path or WHOLE} {scores}" if difference < -tolerance else ""


def _dominates(higher: _Candidate, lower: _Candidate, result: ModelVerdict) -> bool:
    """Return whether the higher model is cheaper than the lower model and no worse on any metric."""
    if not result.metrics or higher.cost is None or lower.cost is None or higher.cost >= lower.cost:
        return False
    return all(one.difference is not None and one.difference <= ROUNDING for one in result.metrics)


def _is_metric(measure: PairedScores) -> bool:
    return measure.kind != "field"


def _primary(result: ModelVerdict, metric: str) -> MeasureResult | None:
    return next((one for one in result.metrics if (one.metric, one.kind) == (metric, "accuracy")), None)
