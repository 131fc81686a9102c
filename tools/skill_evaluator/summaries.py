"""A scorecard reduced to the numbers of a record: means, spreads and intervals, the case as unit.

Replicates are averaged within a case first; every mean over cases is a mean of those.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.records import CaseAccuracy, FieldSummary, Summary
from skill_evaluator.scoring import ANSWERED, SCORED, CaseScore, Scorecard
from skill_evaluator.stats import mean_or_none, rounded, stdev_or_none, unit_interval

_DIGITS = 6
Values = Sequence[float | None]


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


def fields(scorecard: Scorecard, compare_of: Callable[[str], str]) -> dict[str, FieldSummary]:
    """Per leaf path: accuracy with n and what went wrong, over all cases and replicates; stability, mean over cases."""
    paths = dict.fromkeys(path for case in scorecard.cases for path in (*case.fields, *case.stability))
    return {path: _field(scorecard, path, compare_of(path)) for path in paths}


def _field(scorecard: Scorecard, path: str, compare: str) -> FieldSummary:
    totals = [case.fields[path] for case in scorecard.cases if path in case.fields]
    right, wrong, missing, extra = (sum(total.counts[kind] for total in totals) for kind in range(4))
    n = right + wrong + missing + extra
    texts = sum(total.texts for total in totals)
    confusion: dict[str, dict[str, int]] = {}
    for total in totals:
        for (truth, output), count in total.confusion.items():
            line = confusion.setdefault(truth, {})
            line[output] = line.get(output, 0) + count
    return FieldSummary(
        compare=compare,
        accuracy=rounded(right / n if n else None),
        n=n,
        right=right,
        wrong=wrong,
        missing=missing,
        extra=extra,
        stability=rounded(mean_or_none([case.stability[path] for case in scorecard.cases if path in case.stability])),
        token_f1=rounded(sum(total.token_f1 for total in totals) / texts if texts else None),
        rouge_l=rounded(sum(total.rouge_l for total in totals) / texts if texts else None),
        confusion=confusion or None,
    )


def _interval(values: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> tuple[float, float] | None:
    span = highest - lowest
    bounds = unit_interval([min(1.0, max(0.0, (value - lowest) / span)) for value in values])
    return (
        None
        if bounds is None
        else (round(lowest + bounds[0] * span, _DIGITS), round(lowest + bounds[1] * span, _DIGITS))
    )
