"""Summarize a scorecard for a record: by metric, field and array, and for the schema.

Replicates are averaged within a case, then cases. Only field counts are summed over cases and replicates.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TypeVar

from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.metrics.accuracy import KS
from skill_evaluator.metrics.accuracy import pass_hat_k as estimate
from skill_evaluator.metrics.agreement import krippendorff_alpha
from skill_evaluator.metrics.fields import FieldCounts, macro_f1
from skill_evaluator.records.record import CHECK, CaseAccuracy, check_path, strict_score
from skill_evaluator.records.summaries import (
    ArraySummary,
    ContractFault,
    ContractSummary,
    FieldSummary,
    Filled,
    Profile,
    Summary,
)
from skill_evaluator.scoring.answers import CaseScore, Scorecard
from skill_evaluator.stats import by_key, mean_or_none, rounded, stdev_or_none, unit_interval

_NULL_LABEL = "null"
Values = Sequence[float | None]
KeyT = TypeVar("KeyT", str, tuple[str, str])


def accuracy(scorecard: Scorecard, metrics: Iterable[str]) -> dict[str, Summary]:
    """Return the summary of each metric over the cases for which it is defined.

    `mean` is the mean of the cases' means over the outputs with a score. `strict_mean` counts refused, truncated and
    unparseable outputs as 0. `stdev` is over the replicates' strict means, `stdev_cases` over the cases'. `n` counts
    the outputs with a score, `n_cases` the cases with a strict mean. `ci95` is the interval of `strict_mean`.
    """
    summaries = {}
    for name in metrics:
        cases = [case for case in scorecard.cases if name not in case.undefined]
        scored = [_measured(case.metrics[name]) for case in cases]
        strict = [_strict_values(case, name) for case in cases]
        case_means = [fmean(measured) for values in strict if (measured := _measured(values))]
        replicate_means = [fmean(measured) for values in zip(*strict, strict=True) if (measured := _measured(values))]
        summaries[name] = Summary(
            mean=rounded(mean_or_none([fmean(values) for values in scored if values])),
            strict_mean=rounded(mean_or_none(case_means)),
            stdev=rounded(stdev_or_none(replicate_means)),
            stdev_cases=rounded(stdev_or_none(case_means)),
            n=sum(map(len, scored)),
            n_cases=len(case_means),
            ci95=_interval(case_means),
        )
    return summaries


def _strict_values(case: CaseScore, name: str) -> Values:
    return [strict_score(outcome, value) for outcome, value in zip(case.outcomes, case.metrics[name], strict=True)]


def _measured(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def case_accuracy(case: CaseScore) -> dict[str, CaseAccuracy]:
    """Return the accuracy of one case by metric. Metrics that are undefined for the case are omitted."""
    return {
        name: CaseAccuracy(
            mean=rounded(mean_or_none(scored := _measured(case.metrics[name]))),
            strict_mean=rounded(mean_or_none(_measured(_strict_values(case, name)))),
            n=len(scored),
        )
        for name in case.metrics
        if name not in case.undefined
    }


def reproducibility(scorecard: Scorecard, metrics: Iterable[str] = REPRODUCIBILITY) -> dict[str, Summary]:
    """Return the summary of each agreement metric over the cases with a value. `n` and `n_cases` count these cases."""
    summaries = {}
    for name in metrics:
        bounds = (1.0, max(2.0, float(scorecard.replicates))) if REPRODUCIBILITY[name].is_count else (0.0, 1.0)
        summaries[name] = _over_cases(_measured(case.agreement.metrics[name] for case in scorecard.cases), *bounds)
    return summaries


def _over_cases(values: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> Summary:
    mean = rounded(mean_or_none(values))
    return Summary(
        mean=mean,
        strict_mean=mean,
        stdev=None,
        stdev_cases=rounded(stdev_or_none(values)),
        n=len(values),
        n_cases=len(values),
        ci95=_interval(values, lowest, highest),
    )


def pass_hat_k(scorecard: Scorecard) -> dict[int, Summary]:
    """Return the summary of pass^k over cases, by k. k is 1, 2, 3, 5 and 10, up to the number of replicates.

    An output succeeds if it equals the truth; unparseable, refused and truncated outputs fail. Cases without ground
    truth or with fewer than k outputs are excluded.
    """
    counts = [(case.exact, case.answered) for case in scorecard.cases if case.exact is not None]
    return {
        k: _over_cases(_measured(estimate(exact, answered, k) for exact, answered in counts))
        for k in KS
        if k <= scorecard.replicates
    }


def contract(scorecard: Scorecard) -> ContractSummary:
    """Summarize the validity, schema errors, missing keys and extra keys of all parsed outputs."""
    outputs = [output for case in scorecard.cases for output in case.contracts]
    n = sum(times for _, times in outputs)
    valid = sum(times for output, times in outputs if output.holds)
    apart_from_extra = sum(times for output, times in outputs if output.holds_but_for_extra_keys)
    missing: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    faults: Counter[tuple[str, str]] = Counter()
    messages: dict[tuple[str, str], str] = {}  # the alphabetically first message of each fault
    for output, times in outputs:
        missing.update(dict.fromkeys(output.missing_keys, times))
        extra.update(dict.fromkeys(output.extra_keys, times))
        for path, rule, message in output.errors:
            faults[path, rule] += times
            messages[path, rule] = min(message, messages.get((path, rule), message))
    return ContractSummary(
        n=n,
        valid=rounded(valid / n if n else None),
        valid_apart_from_extra_keys=rounded(apart_from_extra / n if n else None),
        errors=[
            ContractFault(path=path, rule=rule, count=count, message=messages[path, rule])
            for (path, rule), count in _commonest(faults).items()
        ],
        missing_keys=_commonest(missing),
        extra_keys=_commonest(extra),
    )


def _commonest(counts: Counter[KeyT]) -> dict[KeyT, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _interval(values: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> tuple[float, float] | None:
    span = highest - lowest
    bounds = unit_interval([min(1.0, max(0.0, (value - lowest) / span)) for value in values])
    return bounds and (round(lowest + bounds[0] * span, 6), round(lowest + bounds[1] * span, 6))


def fields(scorecard: Scorecard, plan: FieldPlan) -> dict[str, FieldSummary]:
    """Return the summary of each field and check by path. `plan` has the comparators of the fields."""
    cases = scorecard.cases
    paths = dict.fromkeys(path for case in cases for path in (*case.fields, *case.agreement.stability))
    checks = {check_path(check_id) for case in cases for check_id in case.checks}
    return {
        path: _summarize_field(cases, path, CHECK if path in checks else plan.leaf(path).compare or "exact")
        for path in paths
    }


def _summarize_field(cases: Sequence[CaseScore], path: str, compare: str) -> FieldSummary:
    if compare == CHECK:
        cases = [case for case in cases if path in case.fields]
    total = FieldCounts()
    for case in cases:
        total.add(case.fields.get(path, FieldCounts()))
    confusion: dict[str, dict[str, int]] = {}
    for (truth, output), count in total.confusion.items():
        confusion.setdefault(truth, {})[output] = count
    labelled = {(_label(truth), _label(output)): count for (truth, output), count in total.confusion.items()}
    stabilities = [case.agreement.stability[path] for case in cases if path in case.agreement.stability]
    parsed = sum(case.parsed for case in cases if case.labelled and compare != CHECK)
    return FieldSummary(
        compare=compare,
        accuracy=rounded(total.right / total.n if total.n else None),
        n=total.n,
        right=total.right,
        wrong=total.wrong,
        missing=total.missing,
        extra=total.extra,
        stability=rounded(mean_or_none(stabilities)),
        token_f1=rounded(total.token_f1 / total.texts if total.texts else None),
        rouge_l=rounded(total.rouge_l / total.texts if total.texts else None),
        confusion=confusion or None,
        macro_f1=rounded(macro_f1(labelled)),
        # outputs without the path agree with each other
        alpha=rounded(krippendorff_alpha(case.agreement.values.get(path, {None: case.parsed}) for case in cases)),
        filled=Filled(n=parsed, output=total.filled, truth=total.filled_in_truth) if parsed else None,
        profile=Profile.model_validate(Counter(case.profile[path] for case in cases if path in case.profile)),
    )


def _label(label: str) -> str | None:
    return None if label == _NULL_LABEL else label


def arrays(scorecard: Scorecard) -> dict[str, ArraySummary]:
    """Return the summary of each array's lengths by path, over cases with at least two outputs."""
    by_path = by_key(each for case in scorecard.cases for each in case.agreement.arrays.items())
    summaries = {}
    for path, cases in by_path.items():
        spreads = [(lengths.longest or 0) - (lengths.shortest or 0) for lengths in cases]
        summaries[path] = ArraySummary(
            stability=round(sum(lengths.stability for lengths in cases) / len(cases), 6),
            n_cases=len(cases),
            varied=sum(spread > 0 for spread in spreads),
            widest=max(spreads),
        )
    return summaries
