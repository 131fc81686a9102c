"""A scorecard reduced to the numbers of a record: means, spreads and intervals, the case as unit.

Replicates are averaged within a case first; every mean over cases is a mean of those.

Fields and arrays over a run: what every case says of a path → one line of a record for it.

Sums over cases and replicates (a field's accuracy is right ÷ n); what compares replicates is a mean over cases.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from skill_evaluator.metrics.accuracy.pass_hat_k import KS
from skill_evaluator.metrics.accuracy.pass_hat_k import pass_hat_k as estimate
from skill_evaluator.metrics.agreement.array_lengths import ArrayLengths
from skill_evaluator.metrics.agreement.krippendorff_alpha import krippendorff_alpha
from skill_evaluator.metrics.base import AgreementMetric
from skill_evaluator.metrics.diagnosis.per_field import FieldTotal, macro_f1
from skill_evaluator.records.record import (
    ArraySummary,
    CaseAccuracy,
    ContractFault,
    ContractSummary,
    FieldSummary,
    Filled,
    Profile,
    Summary,
)
from skill_evaluator.records.strict_score import strict_score
from skill_evaluator.scoring.scorer import CaseScore, OutputContract, Scorecard
from skill_evaluator.stats import mean_or_none, rounded, stdev_or_none, unit_interval

_DIGITS = 6
Values = Sequence[float | None]
KeyT = TypeVar("KeyT", str, tuple[str, str])


def accuracy(scorecard: Scorecard, metrics: Iterable[str]) -> dict[str, Summary]:
    """Per metric: `mean` over scored replicates, `strict_mean` with unparseable, refused and truncated answers as 0.

    `stdev` is between replicates (of the means over cases of replicate 1, 2, …), `n` the scored replicates; `ci95` is
    of strict_mean.
    """
    return {name: _accuracy(scorecard, name) for name in metrics}


def _accuracy(scorecard: Scorecard, name: str) -> Summary:
    cases = [case for case in scorecard.cases if name not in case.undefined]
    scored = [_known(case.metrics[name]) for case in cases]
    case_means = [fmean(values) for case in cases if (values := _known(strict_values(case, name)))]
    by_replicate = zip(*(strict_values(case, name) for case in cases), strict=True)
    replicate_means = [fmean(values) for column in by_replicate if (values := _known(column))]
    return Summary(
        mean=rounded(mean_or_none([fmean(values) for values in scored if values])),
        strict_mean=rounded(mean_or_none(case_means)),
        stdev=rounded(stdev_or_none(replicate_means)),
        stdev_cases=rounded(stdev_or_none(case_means)),
        n=sum(map(len, scored)),
        n_cases=len(case_means),
        ci95=_interval(case_means),
    )


def strict_values(case: CaseScore, name: str) -> Values:
    """Return the strict score of each replicate by a metric."""
    return [strict_score(outcome, value) for outcome, value in zip(case.outcomes, case.metrics[name], strict=True)]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def case_accuracy(case: CaseScore) -> dict[str, CaseAccuracy]:
    """The same for one case, without the metrics that are undefined for it."""
    return {
        name: CaseAccuracy(
            mean=rounded(mean_or_none(scored := _known(case.metrics[name]))),
            strict_mean=rounded(mean_or_none(_known(strict_values(case, name)))),
            n=len(scored),
        )
        for name in case.metrics
        if name not in case.undefined
    }


def reproducibility(scorecard: Scorecard, metrics: Mapping[str, AgreementMetric]) -> dict[str, Summary]:
    """Per metric the mean over cases; `n` and `n_cases` are the cases that had at least two answers."""
    return {name: _reproducibility(scorecard, name, metric.is_count) for name, metric in metrics.items()}


def _reproducibility(scorecard: Scorecard, name: str, is_count: bool) -> Summary:
    values = [value for case in scorecard.cases if (value := case.reproducibility[name]) is not None]
    lowest, highest = (1.0, max(2.0, float(scorecard.replicates))) if is_count else (0.0, 1.0)
    return _over_cases(values, lowest, highest)


def _over_cases(values: Sequence[float], lowest: float, highest: float) -> Summary:
    """One value a case, summed up."""
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
    """pass^k with «equal to the truth» as success, per k up to the number of replicates: mean over cases.

    Unparseable, refused and truncated answers are failures; a case with fewer than k answers has no say.
    """
    return {k: _over_cases(_passes(scorecard, k), 0.0, 1.0) for k in KS if k <= scorecard.replicates}


def _passes(scorecard: Scorecard, k: int) -> list[float]:
    counted = [(case.exact, case.answered) for case in scorecard.cases if case.exact is not None]
    return _known(estimate(exact, answered, k) for exact, answered in counted)


def contract(scorecard: Scorecard) -> ContractSummary:
    """What the schema holds against the parsed outputs, each counted as often as it was given."""
    outputs = [output for case in scorecard.cases for output in case.contracts]
    n = sum(times for _, times in outputs)
    valid = sum(times for output, times in outputs if output.holds)
    apart_from_extra = sum(times for output, times in outputs if output.holds_but_for_extra_keys)
    missing: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    for output, times in outputs:
        missing.update(dict.fromkeys(output.drift.missing, times))
        extra.update(dict.fromkeys(output.drift.extra, times))
    return ContractSummary(
        n=n,
        valid=rounded(valid / n if n else None),
        valid_apart_from_extra_keys=rounded(apart_from_extra / n if n else None),
        errors=_faults(outputs),
        missing_keys=_commonest(missing),
        extra_keys=_commonest(extra),
    )


def _faults(outputs: Iterable[tuple[OutputContract, int]]) -> list[ContractFault]:
    """Errors summed by path and rule; of their messages the first by letters."""
    counts: Counter[tuple[str, str]] = Counter()
    messages: dict[tuple[str, str], str] = {}
    for output, times in outputs:
        for path, rule, message in output.errors:
            counts[path, rule] += times
            messages[path, rule] = min(message, messages.get((path, rule), message))
    return [
        ContractFault(path=path, rule=rule, count=count, message=messages[path, rule])
        for (path, rule), count in _commonest(counts).items()
    ]


def _commonest(counts: Counter[KeyT]) -> dict[KeyT, int]:
    """The counts from the largest down, equals by name, so that the order of answers does not show."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _interval(values: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> tuple[float, float] | None:
    span = highest - lowest
    bounds = unit_interval([min(1.0, max(0.0, (value - lowest) / span)) for value in values])
    return (
        None
        if bounds is None
        else (round(lowest + bounds[0] * span, _DIGITS), round(lowest + bounds[1] * span, _DIGITS))
    )


_NO_LABEL = "null"


def fields(scorecard: Scorecard, compare_of: Callable[[str], str]) -> dict[str, FieldSummary]:
    """Per leaf path: accuracy with n and what went wrong, coverage, agreement between replicates, and the profile."""
    paths = dict.fromkeys(path for case in scorecard.cases for path in (*case.fields, *case.stability))
    return {path: _field(scorecard, path, compare_of(path)) for path in paths}


def _field(scorecard: Scorecard, path: str, compare: str) -> FieldSummary:
    cases = scorecard.cases
    totals = [case.fields[path] for case in cases if path in case.fields]
    right, wrong, missing, extra = (sum(total.counts[kind] for total in totals) for kind in range(4))
    n = right + wrong + missing + extra
    texts = sum(total.texts for total in totals)
    embedded = [total.embedding for total in totals if total.embedding is not None]
    confusion = _confusion(totals)
    return FieldSummary(
        compare=compare,
        accuracy=rounded(right / n if n else None),
        n=n,
        right=right,
        wrong=wrong,
        missing=missing,
        extra=extra,
        stability=rounded(mean_or_none([case.stability[path] for case in cases if path in case.stability])),
        token_f1=rounded(sum(total.token_f1 for total in totals) / texts if texts else None),
        rouge_l=rounded(sum(total.rouge_l for total in totals) / texts if texts else None),
        embedding=rounded(sum(embedded) / texts if embedded else None),
        confusion=_by_truth(confusion) or None,
        macro_f1=rounded(macro_f1({(_label(truth), _label(out)): count for (truth, out), count in confusion.items()})),
        alpha=rounded(krippendorff_alpha(_given(case, path) for case in cases)),
        filled=_filled(scorecard, path),
        profile=Profile.model_validate(Counter(case.profile[path] for case in cases if path in case.profile)),
    )


def _confusion(totals: list[FieldTotal]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for total in totals:
        counts.update(total.confusion)
    return counts


def _by_truth(confusion: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    lines: dict[str, dict[str, int]] = {}
    for (truth, output), count in confusion.items():
        lines.setdefault(truth, {})[output] = count
    return lines


def _label(label: str) -> str | None:
    return None if label == _NO_LABEL else label


def _given(case: CaseScore, path: str) -> Mapping[Hashable, int]:
    """How often each value was given; where no answer to the case has the path, all gave the same: none."""
    return case.values.get(path, {None: case.parsed})


def _filled(scorecard: Scorecard, path: str) -> Filled | None:
    labelled = [case for case in scorecard.cases if case.labelled]
    n = sum(case.parsed for case in labelled)
    if not n:
        return None
    found = [case.filled[path] for case in labelled if path in case.filled]
    return Filled(n=n, output=sum(one.output for one in found), truth=sum(one.truth for one in found))


def arrays(scorecard: Scorecard) -> dict[str, ArraySummary]:
    """Per array path: how steady its length is, over the cases that had at least two answers."""
    paths = dict.fromkeys(path for case in scorecard.cases for path in case.arrays)
    return {path: _array([case.arrays[path] for case in scorecard.cases if path in case.arrays]) for path in paths}


def _array(cases: list[ArrayLengths]) -> ArraySummary:
    spreads = [(one.longest or 0) - (one.shortest or 0) for one in cases]
    return ArraySummary(
        stability=round(sum(one.stability for one in cases) / len(cases), 6),
        n_cases=len(cases),
        varied=sum(spread > 0 for spread in spreads),
        widest=max(spreads),
    )
