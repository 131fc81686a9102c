"""What the reports of all judge modes write alike: intervals, trust, panels, sizes, and the page of doubts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.modes.pairwise import PanelPreferences
from skill_evaluator.judges.modes.regression_results import PanelRegressions
from skill_evaluator.judges.modes.scoring import PanelScores
from skill_evaluator.runner.prices import Estimate, sum_of
from skill_evaluator.text import counted

TRUSTED = {True: "trusted", False: "not trusted", None: "undecided"}
TRUST_STYLES = {True: "green", False: "red", None: "yellow"}
_NO_LABELS = (
    "Nothing here was held against people: what this judge is worth is not known. `judge calibrate` says it, from "
    "labelled items."
)


def bias_page(judges: Iterable[tuple[str, Sheet, Iterable[str]]], *remarks: str) -> str:
    """Return bias_analysis_report.md: what of a judge can be measured without labels, and that nothing else can.

    `judges`: of each its model's id, a table and sentences. `remarks` stand before them.
    """
    parts = ["# What may be wrong with the judge\n", f"{_NO_LABELS}\n", *(f"{remark}\n" for remark in remarks)]
    for model_id, table, sentences in judges:
        parts.append(f"## {code_span(model_id)}\n")
        parts.append(markdown_table(table))
        parts += [f"- {prose(sentence)}\n" for sentence in sentences]
    return "\n".join(parts)


def interval(figure: FigureResult) -> str:
    """Return an interval as `(0.31–0.78)`; a dash where there is none."""
    if figure.ci95 is None:
        return "–"
    low, high = figure.ci95
    return f"({number(low)}–{number(high)})"


def reasons(counts: Mapping[UnscoredReason, int]) -> str:
    """Return reasons with how often each occurred; a dash where none did."""
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "–"


def share(figure: FigureResult) -> str:
    """Return a figure with its interval; a dash where it rests on nothing."""
    return f"{number(figure.value)} {interval(figure)}" if figure.n else "–"


def _within(figure: FigureResult) -> str:
    return number(figure.value) if figure.ci95 is None else f"{number(figure.value)} {interval(figure)}"


def panel_of_scores(panel: PanelScores | None) -> Iterator[str]:
    """Yield the panel's score of each criterion and of all."""
    if panel is None:
        return
    for criterion in panel.criteria:
        agree = _agreement(criterion.disputed, "item", criterion.agreement)
        yield f"panel ({panel.policy.scores}), {criterion.criterion}: {_within(criterion.score)}; {agree}"
    yield f"panel, all criteria from 0 to 1: {_within(panel.summary)}"


def panel_of_pairs(panel: PanelPreferences | None, shown: Collection[str]) -> Iterator[str]:
    """Yield what the majority prefers, by the criteria that are shown."""
    for criterion in () if panel is None else panel.criteria:
        if criterion.criterion in shown:
            counts = criterion.counts
            won = f"1 better {counts.get('1', 0)}, 2 better {counts.get('2', 0)}, ties {counts.get('tie', 0)}"
            agree = _agreement(criterion.disputed, "comparison", criterion.agreement)
            yield f"panel (majority), {criterion.criterion}: {won}; {agree}"


def panel_of_regressions(panel: PanelRegressions | None) -> Iterator[str]:
    """Yield in how many pairs the majority finds each dimension worse."""
    for dimension in () if panel is None else panel.dimensions:
        agree = _agreement(dimension.disputed, "pair", dimension.agreement)
        yield f"panel (majority), {dimension.dimension}: worse in {_within(dimension.worse)}; {agree}"


def pairs_of_panel(panel: PanelRegressions | None) -> Iterator[str]:
    """Yield the pairs that do not ship by all judges together, and why."""
    for pair in () if panel is None else panel.pairs:
        if pair.ship_decision != "ship":
            yield f"panel, {pair.id}: {pair.ship_decision or 'no decision'}: {'; '.join(pair.reasons)}"


def _agreement(disputed: int, noun: str, alpha: FigureResult) -> str:
    return f"judges differ on {counted(disputed, noun)}, α {_within(alpha)}"


def trust_sentence(trusted: bool | None, kappa: FigureResult, more_labels: int | None, bar: float, name: str) -> str:
    """Say whether a judge is trusted, what would decide if that is open, and by which κ."""
    words = TRUSTED[trusted]
    if kappa.value is None or kappa.ci95 is None:
        return f"{words}: labels and verdicts are all of one kind, so that there is nothing to tell it by"
    low, high = kappa.ci95
    if trusted:
        beside = f"all of it at {bar:.2f} or above"
    elif trusted is None:
        beside = f"on both sides of {bar:.2f}"
        words += (
            f": about {more_labels:,} more labels would decide"
            if more_labels is not None
            else ": so close to the bar that no number of labels would decide"
        )
    else:
        coin = "worse than a coin" if high < 0 else "no better than a coin"
        beside = coin if low <= 0 else f"all of it below {bar:.2f}"
    return f"{words}. {name} {_two(kappa.value)} ({_two(low)} to {_two(high)}), {beside}"


def severity_counts(counts: Mapping[str, int]) -> str:
    """Return pairs by severity, as `none 30, low 2`."""
    return ", ".join(f"{level} {count}" for level, count in counts.items())


def _two(value: float) -> str:
    """Write a figure to two places; what rounds to zero has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


_AMOUNTS = ("calls", "input tokens (estimate)", "output tokens (at most)", "cost (at most)")
_CLOSING = "dry run: no call was made, nothing was written"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSize:
    """What one judge is asked, and whether its key is there."""

    model_id: str
    provider: str
    key: str
    estimate: Estimate


def print_judging_size(judging: Judging, judges: Sequence[JudgeSize], notes: Sequence[str], form: Format) -> None:
    """Write the size of a judging to stdout; `notes` are sentences about how its calls come about."""
    total = sum_of([judge.estimate for judge in judges])
    asked = counted(len(judging.questions), "question")
    heading = f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {asked} a judge"
    print_result(
        form,
        json=lambda: {
            **judging.model_dump(mode="json", include={"mode", "rubric", "criteria", "prompts", "seed", "replicates"}),
            "items": len(judging.items),
            "questions": len(judging.questions),
            "judges": [_row(judge) for judge in judges],
            "total": asdict(total),
            "notes": list(notes),
        },
        markdown=lambda: "\n".join(
            [f"{visible(heading)}\n", markdown_table(_sheet(judges, total)), *(f"{note}\n" for note in notes), _CLOSING]
        ),
        text=lambda: [
            Text(visible(heading)),
            Text(),
            _sheet(judges, total),
            *(Text(note) for note in notes),
            Text(_CLOSING),
        ],
    )


def _row(judge: JudgeSize) -> Mapping[str, object]:
    return {"model_id": judge.model_id, "provider": judge.provider, "key": judge.key, **asdict(judge.estimate)}


def _sheet(judges: Sequence[JudgeSize], total: Estimate) -> Sheet:
    rows = [
        (Cell(judge.model_id, code=True), Cell(judge.provider), Cell(judge.key), *_amounts(judge.estimate))
        for judge in judges
    ]
    rows.append((Cell("all"), Cell(""), Cell(""), *_amounts(total)))
    return Sheet(columns=("judge", "provider", "key", *_AMOUNTS), rows=rows, numbers=frozenset(_AMOUNTS))


def _amounts(estimate: Estimate) -> tuple[Cell, ...]:
    cost = "unknown" if estimate.cost_upper_usd is None else f"${estimate.cost_upper_usd:,.2f}"
    counts = (estimate.calls, estimate.input_tokens_estimate, estimate.output_tokens_upper)
    return (*(Cell(f"{count:,}") for count in counts), Cell(cost))
