"""Fields and arrays over a run: what every case says of a path → one line of a record for it.

Sums over cases and replicates (a field's accuracy is right ÷ n); what compares replicates is a mean over cases.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping

from skill_evaluator.metrics.array_lengths import ArrayLengths
from skill_evaluator.metrics.categories import macro_f1
from skill_evaluator.metrics.krippendorff_alpha import krippendorff_alpha
from skill_evaluator.metrics.per_field import FieldTotal
from skill_evaluator.records import ArraySummary, FieldSummary, Filled, Profile
from skill_evaluator.scoring import CaseScore, Scorecard
from skill_evaluator.stats import mean_or_none, rounded

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
