"""The results of `judge regression` → text, Markdown or JSON: what blocks and why, and how far to believe the judge."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import prose, shortened, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.calibration.results import FEWEST_PAIRS
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    CheckedFinding,
    DimensionResult,
    JudgeRegressions,
    Mismatch,
    PairResult,
    RateAlert,
    RegressionResults,
)
from skill_evaluator.reports.judge_figures import (
    bias_page,
    interval,
    pairs_of_panel,
    panel_of_regressions,
    severity_counts,
)
from skill_evaluator.text import counted

_STYLES = {"ship": "green", "review_required": "yellow", "block": "red", None: "yellow"}
_COUNTS = ("pairs", "better", "same", "uncertain", "worse", "low", "medium", "high", "flips")
_MOST_PAIRS = 20
_EVIDENCE = 160  # characters of each piece that are shown
_LEGS = {"quote": "a quote was found", "omission": "left out of the candidate", "form": "a rule of the prompt broken"}
_FLAGS = {
    "unsupported": "unsupported: code can confirm none of it",
    "no_evidence": "no evidence",
    "quote_not_found": "a quotation is in no text",
    "style_only": "speaks of style alone",
}


def print_judge_regressions(results: RegressionResults, folder: str, form: Format, remarks: Sequence[str] = ()) -> None:
    """Print the decision, each dimension, every pair that does not ship with its evidence, and further remarks."""
    notes = [*regression_notes(results), *remarks, f"everything else is in {folder}"]
    conclusion = _decision(results.ship_decision) + ", and a rate of regressions alerts" * results.alerting
    print_result(
        form,
        json=lambda: {"folder": folder, **results.model_dump(mode="json")},
        markdown=lambda: "\n".join(
            [
                f"## Regressions by judges: {conclusion}\n",
                *(judge_markdown(judge) for judge in results.judges),
                *(f"- {prose(note)}" for note in notes),
                "",
            ]
        ),
        text=lambda: [
            *(piece for judge in results.judges for piece in _pieces(judge)),
            *(Text(visible(note)) for note in notes),
            Text(),
            Text(conclusion, style="red" if results.alerting else _STYLES[results.ship_decision]),
        ],
    )


def _decision(decision: str | None) -> str:
    return decision or "no decision"


def _pieces(judge: JudgeRegressions) -> Iterator[Sheet | Text]:
    yield dimension_sheet(judge)
    yield Text()
    for pair in _shown(judge):
        yield Text(visible(_headline(judge, pair)), style=_STYLES[pair.ship_decision])
        yield from (Text(visible("  " * depth + line)) for depth, line in _lines(pair))
    yield Text()


def judge_markdown(judge: JudgeRegressions) -> str:
    """Return what one judge found: each dimension, and the pairs that do not ship with the evidence."""
    parts = [markdown_table(dimension_sheet(judge))]
    for pair in _shown(judge):
        parts.append(f"- {prose(_headline(judge, pair))}")
        parts += [f"{'  ' * depth}- {prose(line)}" for depth, line in _lines(pair)]
    return "\n".join([*parts, ""])


def dimension_sheet(judge: JudgeRegressions) -> Sheet:
    """Return what a judge found of each dimension."""
    rows = []
    for summary in judge.dimensions:
        counts = (summary.worse.n, summary.better, summary.same, summary.uncertain)
        rows.append(
            [
                Cell(judge.judge.model_id, code=True),
                Cell(summary.dimension, code=True),
                Cell("blocks" if summary.blocking else ""),
                *(Cell(str(count)) for count in counts),
                Cell(_share(summary.worse)),
                *(Cell(str(count)) for count in summary.impacts.values()),
                Cell(_share(summary.flips)),
            ]
        )
    return Sheet(columns=("judge", "dimension", "", *_COUNTS), rows=rows, numbers=frozenset(_COUNTS))


def _share(figure: FigureResult) -> str:
    return f"{number(figure.value)} {interval(figure)}" if figure.n else "–"


def _shown(judge: JudgeRegressions) -> list[PairResult]:
    """Return the pairs that do not ship, blocks first; no more than a page of them."""
    held = [pair for pair in judge.pairs if pair.ship_decision != "ship"]
    return sorted(held, key=lambda pair: pair.ship_decision != "block")[:_MOST_PAIRS]


def _headline(judge: JudgeRegressions, pair: PairResult) -> str:
    return f"{pair.id}: {_decision(pair.ship_decision)} by {judge.judge.model_id}: {'; '.join(pair.reasons)}"


def _lines(pair: PairResult) -> Iterator[tuple[int, str]]:
    """Yield depth and line: every dimension in which an answer calls the candidate worse, with its evidence."""
    for dimension in pair.dimensions:
        finding = _finding(pair, dimension)
        if finding is None:
            continue
        impact = finding.impact if dimension.impact is None else dimension.impact
        marks = [_LEGS[leg] for leg in dimension.legs] + [_FLAGS[flag] for flag in dimension.flags]
        yield 1, f"{dimension.dimension}, {dimension.verdict}, {impact}: {'; '.join(marks)}"
        for role, evidence in (("baseline", finding.baseline), ("candidate", finding.candidate)):
            if evidence.kind != "none":
                yield 2, f"{role}, {evidence.kind}: {shortened(evidence.text, limit=_EVIDENCE)}"


def _finding(pair: PairResult, dimension: DimensionResult) -> CheckedFinding | None:
    """Return the first finding that calls the candidate worse in a dimension."""
    return next(
        (
            finding
            for answer in pair.answers
            if answer.replicate == 0
            for finding in answer.findings
            if finding.dimension == dimension.dimension and finding.verdict == "candidate_worse"
        ),
        None,
    )


def alert_sentences(alerts: Iterable[RateAlert]) -> Iterator[str]:
    """Yield what there is to say of each rate that the policy bounds, alerts first."""
    for alert in sorted(alerts, key=lambda alert: not alert.above):
        name = f"{alert.dimension} by {alert.judge}"
        if alert.corrected is None or alert.reported is None:
            yield f"no alert can be computed of {name} (at most {alert.allowed:g} is allowed): {alert.problem}"
            continue
        errors = (alert.sensitivity, alert.specificity)
        found, quiet = (f"{number(one.value)} of {one.n}" for one in errors if one is not None)
        few = f"; {alert.reported.n} pairs, and under {FEWEST_PAIRS} say little" * (alert.reported.n < FEWEST_PAIRS)
        yield (
            f"{'ALERT' if alert.above else 'no alert'}: {name}: corrected rate of regressions {_share(alert.corrected)}"
            f", at most {alert.allowed:g} is allowed; reported {number(alert.reported.value)}, corrected by "
            f"sensitivity {found} and specificity {quiet} (calibration {alert.calibration}){few}"
        )


def regression_notes(results: RegressionResults, *, of_pairs: bool = True) -> Iterator[str]:
    """Yield what has to be said beside the tables; `of_pairs`: also which pairs a panel holds back, and why."""
    yield from alert_sentences(results.alerts)
    yield from panel_of_regressions(results.panel)
    if of_pairs:
        yield from pairs_of_panel(results.panel)
    for judge in results.judges:
        shares = ", ".join(f"{name} {_share(judge.decisions[name])}" for name in DECISIONS)
        name = judge.judge.model_id
        undecided = f", no decision on {judge.undecided}" if judge.undecided else ""
        yield f"{name}, {counted(len(judge.pairs), 'pair')}: {shares}{undecided}"
        yield f"{name}: the orders disagree on {_share(judge.flips)} of pairs"
        if judge.unscored:
            yield f"{name}: of {counted(judge.answers, 'answer')} unscored: {_counts(judge.unscored)}"
        if judge.mismatches:
            yield f"{name}: its own conclusion did not follow from its findings: {_counts(judge.mismatches)}"
        held = sum(pair.ship_decision != "ship" for pair in judge.pairs)
        if of_pairs and held > _MOST_PAIRS:
            yield f"{name}: {_MOST_PAIRS} of the {held} pairs that do not ship are shown"
    if results.left_out:
        listed = ", ".join(f"{name} ({why})" for name, why in list(results.left_out.items())[:5])
        yield f"{counted(len(results.left_out), 'case')} that could not be compared: {listed}"


def _counts(counts: Mapping[UnscoredReason, int] | Mapping[Mismatch, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def regressions_bias_page(results: RegressionResults) -> str:
    """Return bias_analysis_report.md."""
    judges = ((judge.judge.model_id, _bias_table(judge), regression_doubts(judge)) for judge in results.judges)
    return bias_page(judges)


def _bias_table(judge: JudgeRegressions) -> Sheet:
    rows = [
        [
            Cell(summary.dimension, code=True),
            Cell(_share(summary.flips)),
            Cell(f"{summary.unsupported} of {sum(summary.impacts.values())}"),
            Cell(str(summary.style_only)),
        ]
        for summary in judge.dimensions
    ]
    return Sheet(columns=("dimension", "orders disagree", "worse without support", "worse by style alone"), rows=rows)


def regression_doubts(judge: JudgeRegressions) -> Iterator[str]:
    """Yield what may be wrong with a judge, as far as it shows without labels."""
    yield (
        f"On {_share(judge.flips)} of pairs the orders disagree in some dimension. A judge that agrees with itself can "
        "still be wrong."
    )
    if judge.lean.ci95 is not None and (judge.lean.ci95[0] > 0 or judge.lean.ci95[1] < 0):
        place = "first" if judge.lean.ci95[0] > 0 else "second"
        yield f"It judges an output better where that stands {place}, beyond chance: lean {_share(judge.lean)}."
    if judge.repeats.n == 0:
        yield "How well the judge repeats itself is not known; ask with --replicates 2 or more."
    else:
        yield f"Asked the same again it says the same in every dimension in {_share(judge.repeats)}."
    yield (
        f"Own conclusions that do not follow from its findings: {_counts(judge.mismatches) or 'none'}, of "
        f"{counted(judge.answers, 'answer')}."
    )
    yield f"Severity: {severity_counts(judge.severity)}."
    yield f"Answers that did not count: {_counts(judge.unscored) or 'none'}."
    if not judge.declared_strong:
        yield "models.yaml does not declare it strong enough (judge: strong)."
