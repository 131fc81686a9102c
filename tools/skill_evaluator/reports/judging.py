"""The parts that all judge reports share: rows of figures, trust, panels, cascades, biases and sizes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from skill_evaluator.display import count, number, plain
from skill_evaluator.display.pages import Block, Captioned, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.judges.modes.results import CascadeResult, PanelResult
from skill_evaluator.judges.prompting.judging import JudgeRunSize
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.judges.statistics import Estimate, mean_within
from skill_evaluator.runner.prices import AMOUNTS, sum_of
from skill_evaluator.text import counted

TRUSTED = {True: "trusted", False: "not trusted", None: "undecided"}
_TRUST_STYLES = {True: "green", False: "red", None: "yellow"}
_NO_LABELS = Line(
    "These figures need no human labels, so a judge with good figures can still be wrong. ",
    Cell("judge calibrate", code=True),
    " compares judges with human labels.",
)


def interval(figure: Estimate) -> str:
    """Format a confidence interval as `(0.310–0.780)`; a dash if there is none."""
    if figure.ci95 is None:
        return "–"
    low, high = figure.ci95
    return f"({number(low)}–{number(high)})"


def share(figure: Estimate) -> str:
    """Format a figure with its confidence interval; a dash if it is based on nothing."""
    return f"{number(figure.value)} {interval(figure)}" if figure.n else "–"


def row_of(names: Sequence[str], *values: Cell | Estimate | str | int | None) -> list[Cell]:
    """Return the cells of a row: names, which are text from outside, and values; a figure has its interval."""
    return cells_of(names, *(share(value) if isinstance(value, Estimate) else value for value in values))


def reasons(counts: Mapping[UnscoredReason, int]) -> str:
    """Format the number of unscored outputs by reason; a dash if there are none."""
    return ", ".join(f"{times} {reason}" for reason, times in counts.items()) or "–"


def trust_cell(trusted: bool | None) -> Cell:
    """Return the cell of the decision whether a judge is trusted."""
    return Cell(TRUSTED[trusted], style=_TRUST_STYLES[trusted])


def panel_blocks(method: str, panel: PanelResult | None) -> Iterator[Block]:
    """Yield the figures of a panel, the agreement of its judges, and a table of the judges."""
    if panel is None:
        return
    figures = ", ".join(f"{name} {share(one)}" for name, one in panel.figures.items())
    summary = "" if panel.summary is None else f" {share(panel.summary)};"
    yield Line(f"panel ({method}):{summary} {figures}; all judges agree on {share(panel.agreement)}")
    rows = [row_of([one.judge], plain(one.weight), one.agrees) for one in panel.judges]
    yield Captioned(Sheet(columns=("judge", "weight", "agrees with the panel"), rows=rows), "Panel")


def cascade_blocks(cascade: CascadeResult | None) -> Iterator[Block]:
    """Yield the number of decisions of each judge and of people, and a summary of the verdicts."""
    if cascade is None:
        return
    parts = [f"{stage.judge} decided {count(stage.decided)} of {count(stage.asked)}" for stage in cascade.stages]
    yield Line(f"cascade: {', '.join(parts)}; sent to human review: {count(cascade.people)}")
    verdicts = [one.verdict for one in cascade.decisions]
    measured = [verdict for verdict in verdicts if isinstance(verdict, int | float)]
    named = Counter(verdict for verdict in verdicts if isinstance(verdict, str))
    if measured:
        yield Line(f"both judges together: {share(mean_within(measured))} over {counted(len(measured), 'verdict')}")
    if named:
        yield Line(f"both judges together: {', '.join(f'{times} {name}' for name, times in named.items())}")


def bias_blocks(judges: Iterable[tuple[str, Sheet, Iterable[str]]]) -> Iterator[Block]:
    """Yield a remark on the missing labels, and for each judge, by model, a table and sentences on its biases."""
    yield Heading("Biases of the judges", level=1)
    yield _NO_LABELS
    for model_id, table, sentences in judges:
        yield Captioned(table, f"Without labels, {model_id}")
        yield Lines(list(sentences))


def print_judge_run_size(size: JudgeRunSize, form: Format) -> None:
    """Print the size of a judge run to stdout."""
    judging, judges, notes = size.judging, size.judges, size.notes
    total = sum_of(judges)
    calls = counted(len(judging.questions), "call")
    rows = [cells_of([judge.model_id], judge.provider, judge.key, *judge.amounts) for judge in judges]
    rows.append(cells_of([], "all", "", "", *total.amounts))
    blocks: list[Block] = [
        Line(f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {calls} per judge"),
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
