"""Drops that rest on checks of a judge alone, of which nobody knows how often it errs → at most inconclusive."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from skill_evaluator.records.record import Record
from skill_evaluator.records.summaries import FEWEST_LABELS
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import ALONE, VerdictRules, component_verdict
from skill_evaluator.verdicts.decide.same_checks import cut_to_checks

NOT_CALIBRATED = "judged, not calibrated"


def unproved_judge(record: Record, rules: VerdictRules) -> str | None:
    """Return who judged checks of a record without labels enough, and is not trusted by name; None without one."""
    judged = record.judged
    if judged is None or judged.labels >= FEWEST_LABELS or judged.model_id in rules.policy.judge.trusted:
        return None
    return judged.model_id


def without_judged(pair: Pair) -> Pair:
    """Return a pair without what a judge decided."""

    def cut(run: Record) -> Record:
        kept = {
            case.case_id: {check_id: check for check_id, check in case.checks.items() if not check.judged}
            for case in run.per_case
        }
        return cut_to_checks(run, kept)

    return replace(
        pair,
        baseline=pair.baseline and cut(pair.baseline),
        candidate=cut(pair.candidate),
        baseline_again=tuple(map(cut, pair.baseline_again)),
        candidate_again=tuple(map(cut, pair.candidate_again)),
        anchor=pair.anchor and cut(pair.anchor),
        anchor_again=tuple(map(cut, pair.anchor_again)),
    )


def with_judged_drops(
    result: ComparisonResult, plain: ComparisonResult, pairs: Sequence[Pair], rules: VerdictRules
) -> ComparisonResult:
    """Return a verdict where a model that is regressed only by such checks is inconclusive; `plain` is without them."""
    models = list(_settled(result, plain, pairs, rules))
    return result.model_copy(
        update={
            "models": models,
            "verdict": component_verdict(model.verdict for model in models),
            "these": component_verdict(model.these for model in models),
            "beyond": component_verdict(model.beyond for model in models),
        }
    )


def _settled(
    result: ComparisonResult, plain: ComparisonResult, pairs: Sequence[Pair], rules: VerdictRules
) -> Iterator[ModelVerdict]:
    for model, without, pair in zip(result.models, plain.models, pairs, strict=True):
        judge = unproved_judge(pair.candidate, rules)
        if judge is None:
            yield model
            continue
        reasons = [f"{NOT_CALIBRATED}: {judge} decided checks, and no labels tell how often it errs", *model.reasons]
        update: dict[str, object] = {"reasons": reasons, "unproved_judge": judge}
        for scope in ("verdict", "these", "beyond"):
            if getattr(model, scope) == "regressed" != getattr(without, scope):
                update[scope] = "inconclusive"
        if "verdict" in update:
            update["reasons"] = [reason.replace(ALONE, "") for reason in reasons]
            update["remedy"] = (
                f"label 100 answers and measure {judge} with `judge calibrate`, or trust it as policy.judge.trusted"
            )
        yield model.model_copy(update=update)
