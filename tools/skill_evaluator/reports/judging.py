"""Parts that the reports of all judge modes share: figures, trust, panels, cascades, biases and sizes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Captioned, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.judges.modes.results import CascadeResult, PanelResult
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.judges.prompting.session import JudgeRunSize
from skill_evaluator.judges.statistics import Figure, mean_within
from skill_evaluator.runner.prices import AMOUNTS, sum_of
from skill_evaluator.text import counted

TRUSTED = {True: "trusted", False: "not trusted", None: "undecided"}
_TRUST_STYLES = {True: "green", False: "red", None: "yellow"}
_NO_LABELS = Line(
    "No judge was compared with people here, and one that agrees with itself can still be wrong. ",
    Cell("judge calibrate", code=True),
    " measures it on labelled items.",
)


def interval(figure: Figure) -> str:
    """Return an interval as `(0.31–0.78)`; a dash if it is missing."""
    if figure.ci95 is None:
        return "–"
    low, high = figure.ci95
    return f"({number(low)}–{number(high)})"


def share(figure: Figure) -> str:
    """Return a figure with its interval; a dash where it rests on nothing."""
    return f"{number(figure.value)} {interval(figure)}" if figure.n else "–"


def row_of(names: Sequence[str], *values: Cell | Figure | str | int | None) -> list[Cell]:
    """Return the cells of a row, of a figure with its interval."""
    return cells_of(names, *(share(value) if isinstance(value, Figure) else value for value in values))


def reasons(counts: Mapping[UnscoredReason, int]) -> str:
    """Return the count of each reason, a dash without any."""
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "–"


def trust_cell(trusted: bool | None) -> Cell:
    """Return whether a judge is trusted, coloured."""
    return Cell(TRUSTED[trusted], style=_TRUST_STYLES[trusted])


def panel_blocks(words: str, panel: PanelResult | None) -> Iterator[Block]:
    """Yield the panel's figures, how far its judges agree, and a row for each judge."""
    if panel is None:
        return
    figures = ", ".join(f"{name} {share(one)}" for name, one in panel.figures.items())
    summary = "" if panel.summary is None else f" {share(panel.summary)};"
    yield Line(f"panel ({words}):{summary} {figures}; all judges agree on {share(panel.agreement)}")
    rows = [row_of([one.judge], f"{one.weight:g}", one.agrees) for one in panel.judges]
    yield Captioned(Sheet(columns=("judge", "weight", "agrees with the panel"), rows=rows), "Panel")


def cascade_blocks(cascade: CascadeResult | None) -> Iterator[Block]:
    """Yield the number of decisions of each judge and of people, and the verdicts in short."""
    if cascade is None:
        return
    parts = [f"{stage.judge} decided {stage.decided:,} of {stage.asked:,}" for stage in cascade.stages]
    yield Line(f"cascade: {', '.join(parts)}; left to people: {cascade.people:,}")
    verdicts = [one.verdict for one in cascade.decisions]
    measured = [verdict for verdict in verdicts if isinstance(verdict, int | float)]
    named = Counter(verdict for verdict in verdicts if isinstance(verdict, str))
    if measured:
        yield Line(f"both judges together: {share(mean_within(measured))} over {counted(len(measured), 'verdict')}")
    if named:
        yield Line(f"both judges together: {', '.join(f'{count} {name}' for name, count in named.items())}")


def bias_blocks(judges: Iterable[tuple[str, Sheet, Iterable[str]]]) -> Iterator[Block]:
    """Yield a table and sentences for each judge, by model, and that only labels show how good it is."""
    yield Heading("Biases of the judges", level=1)
    yield _NO_LABELS
    for model_id, table, sentences in judges:
        yield Captioned(table, f"Without labels, {model_id}")
        yield Lines(list(sentences))


def print_judge_run_size(size: JudgeRunSize, form: Format) -> None:
    """Print the size of a judge run to stdout."""
    judging, judges, notes = size.judging, size.judges, size.notes
    total = sum_of(judges)
    asked = counted(len(judging.questions), "question")
    rows = [cells_of([judge.model_id], judge.provider, judge.key, *judge.amounts) for judge in judges]
    rows.append(cells_of([], "all", "", "", *total.amounts))
    blocks: list[Block] = [
        Line(f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {asked} a judge"),
        Sheet(columns=("judge", "provider", "key", *AMOUNTS), rows=rows, numbers=frozenset(AMOUNTS)),
        Lines([*notes, "dry run: no call was made, nothing was written"]),
    ]
    print_page(
        form,
        json=lambda: {
            **judging.model_dump(mode="json", include={"mode", "rubric", "criteria", "prompts", "seed", "replicates"}),
            "items": len(judging.items),
            "questions": len(judging.questions),
            "judges": [asdict(judge) for judge in judges],
            "total": asdict(total),
            "notes": list(notes),
        },
        page=lambda: page_of("the judge run", blocks),
    )
