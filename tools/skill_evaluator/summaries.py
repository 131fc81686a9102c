"""A scorecard reduced to the numbers of a record: means, spreads and intervals, the case as unit.

Replicates are averaged within a case first; every mean over cases is a mean of those.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TypeVar

from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.metrics.pass_hat_k import KS
from skill_evaluator.metrics.pass_hat_k import pass_hat_k as estimate
from skill_evaluator.records import CaseAccuracy, ContractFault, ContractSummary, Summary
from skill_evaluator.scoring import ANSWERED, SCORED, CaseScore, OutputContract, Scorecard
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
    """A metric per replicate, an answer without parsable output as 0; None for a failed call."""
    return [
        0.0 if value is None and outcome in ANSWERED and outcome != SCORED else value
        for value, outcome in zip(case.metrics[name], case.outcomes, strict=True)
    ]


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


def reproducibility(scorecard: Scorecard) -> dict[str, Summary]:
    """Per metric the mean over cases; `n` and `n_cases` are the cases that had at least two answers."""
    return {name: _reproducibility(scorecard, name) for name in REPRODUCIBILITY}


def _reproducibility(scorecard: Scorecard, name: str) -> Summary:
    values = [value for case in scorecard.cases if (value := case.reproducibility[name]) is not None]
    lowest, highest = (1.0, max(2.0, float(scorecard.replicates))) if name == "distinct_outputs" else (0.0, 1.0)
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
