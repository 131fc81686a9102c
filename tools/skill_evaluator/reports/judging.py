"""What the reports of all judge modes say alike: figures, trust, charts, panels, cascades, doubts, sizes."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from skill_evaluator.display import number
from skill_evaluator.display.pages import (
    Block,
    Captioned,
    Heading,
    Line,
    Lines,
    SiteBlock,
    page_of,
    print_page,
    site_block,
)
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.story import JudgingSize
from skill_evaluator.judges.modes.pairwise import PanelPreferences
from skill_evaluator.judges.modes.regression_results import PanelRegressions
from skill_evaluator.judges.modes.scoring import PanelScores
from skill_evaluator.judges.panel.cascade import CascadeShares
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.runner.prices import AMOUNTS, sum_of
from skill_evaluator.text import counted

TRUSTED = {True: "trusted", False: "not trusted", None: "undecided"}
_TRUST_STYLES = {True: "green", False: "red", None: "yellow"}
_NO_LABELS = Line(
    "Nothing here was held against people: what this judge is worth is not known. ",
    Cell("judge calibrate", code=True),
    " says it, from labelled items.",
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


def is_off(figure: Figure, usual: float = 0.0) -> bool:
    """Say whether a figure is off its usual value beyond chance, by the six digits that files have."""
    return figure.ci95 is not None and not round(figure.ci95[0], 6) <= usual <= round(figure.ci95[1], 6)


def reasons(counts: Mapping[UnscoredReason, int]) -> str:
    """Return reasons with how often each occurred; a dash where none did."""
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "–"


def severity_counts(counts: Mapping[str, int]) -> str:
    """Return pairs by severity, as `none 30, low 2`."""
    return ", ".join(f"{level} {count}" for level, count in counts.items())


def trust_cell(trusted: bool | None) -> Cell:
    """Return whether a judge is trusted, coloured."""
    return Cell(TRUSTED[trusted], style=_TRUST_STYLES[trusted])


def trust_sentence(trusted: bool | None, kappa: Figure, more_labels: int | None, bar: float, name: str) -> str:
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
            f": about {counted(more_labels, 'more label')} would decide"
            if more_labels is not None
            else ": so close to the bar that no number of labels would decide"
        )
    else:
        coin = "worse than a coin" if high < 0 else "no better than a coin"
        beside = coin if low <= 0 else f"all of it below {bar:.2f}"
    return f"{words}. {name} {kappa.value:z.2f} ({low:z.2f} to {high:z.2f}), {beside}"


def point(label: str, series: str, figure: Figure) -> dict[str, Any]:
    """Return a point of a chart with its interval."""
    written = figure.model_dump()  # with the digits that files have
    low, high = written["ci95"] or (None, None)
    name = label if label == series else f"{label}, {series}"
    words = f"{name}: {share(figure)}, n {figure.n}"
    return {"label": label, "series": series, "value": written["value"], "low": low, "high": high, "words": words}


def interval_chart(
    title: str,
    note: str,
    rows: Sequence[Mapping[str, Any]],
    table: Captioned,
    *,
    axis: str,
    domain: tuple[float, float] = (0.0, 1.0),
    marks: Mapping[float, str] = MappingProxyType({}),
) -> SiteBlock:
    """Return a chart of points with their intervals, and its table; `marks` are lines to read them by."""
    measured = [row for row in rows if row["value"] is not None]
    words = {
        "labels": list(dict.fromkeys(row["label"] for row in measured)),
        "series": list(dict.fromkeys(row["series"] for row in measured)),
        "domain": list(domain),
        "title": axis,
    }
    more = {"marks": [{"at": at, "words": meaning} for at, meaning in marks.items()]}
    return chart_block("intervals", title, note, measured, table, words=words, more=more)


def chart_block(
    name: str,
    title: str,
    note: str,
    rows: Sequence[Mapping[str, Any]],
    table: Captioned,
    *,
    words: Mapping[str, Any],
    more: Mapping[str, Any],
) -> SiteBlock:
    """Return a chart by its specification's name; without a row its table stands alone."""
    sheet = site_block(table)
    if not rows:
        return {**sheet, "note": note} if sheet else {}
    return {
        "kind": "chart",
        "chart": name,
        "title": title,
        "note": note,
        "rows": list(rows),
        "words": words,
        "more": more,
        "sheet": sheet,
    }


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


def _within(figure: Figure) -> str:
    return number(figure.value) if figure.ci95 is None else f"{number(figure.value)} {interval(figure)}"


def _agreement(disputed: int, noun: str, alpha: Figure) -> str:
    return f"judges differ on {counted(disputed, noun)}, α {_within(alpha)}"


def cascade_notes(result: CascadeShares) -> Iterator[str]:
    """Yield what a reader needs before believing a cascade."""
    cheap, strong = result.stages
    how = own = "by the criteria's own thresholds"
    if result.guarantee is not None:
        chosen = f"on {counted(cheap.labels, 'label')}"
        how = f"no threshold could be shown to be safe {chosen}"
        if cheap.threshold is not None:
            how = f"from a confidence of {number(cheap.threshold)}, chosen {chosen}"
    for stage, reason in ((cheap, how), (strong, own)):
        yield f"{stage.judge} settled {stage.settled:,} of {stage.asked:,}: {reason}"
    for name, words in (("wins", "output 1 wins"), ("summary", "scores from 0 to 1")):
        if (whole := getattr(result, name, None)) is not None:
            yield f"both together, {words}: {share(whole)} of the {whole.n:,} that they settled"
    yield f"left to people: {result.people:,}"
    if result.guarantee is not None:
        agreeing, sure = 1 - result.guarantee.alpha, 1 - result.guarantee.delta
        yield (
            f"with confidence {number(sure)}, at least {number(agreeing)} of what {cheap.judge} settled agrees with "
            "people, if the labelled items were drawn from these by chance"
        )
    else:
        if result.reviewed:
            yield (
                f"{counted(result.reviewed, 'label')} from review: too few to choose a threshold, which takes "
                f"{result.fewest_labels:,} on what is drawn by chance (--review-sample)"
            )
        yield (
            "nothing guarantees that what the judges settled agrees with people: no labels chose a threshold; give "
            "--labels FILE"
        )
    checked = f"{number(result.audit.value)} {interval(result.audit)}" if result.audited else "none was drawn"
    yield f"audit: {strong.judge} saw {result.audited:,} of what {cheap.judge} settled, and said the same: {checked}"


def doubt_blocks(judges: Iterable[tuple[str, Sheet, Iterable[str]]], *remarks: str) -> Iterator[Block]:
    """Yield what of a judge can be measured without labels, and that nothing else can.

    `judges`: of each its model's id, a table and sentences. `remarks` stand before them.
    """
    yield Heading("What may be wrong with the judge", level=1)
    yield from (_NO_LABELS, *map(Line, remarks))
    for model_id, table, sentences in judges:
        yield Captioned(table, f"As far as it shows without labels, {model_id}")
        yield Lines(list(sentences))


def print_judging_size(size: JudgingSize, form: Format) -> None:
    """Write the size of a judging to stdout."""
    judging, judges, notes = size.judging, size.judges, size.notes
    total = sum_of([judge.estimate for judge in judges])
    asked = counted(len(judging.questions), "question")
    rows = [cells_of([judge.model_id], judge.provider, judge.key, *judge.estimate.amounts) for judge in judges]
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
            "judges": [
                {"model_id": judge.model_id, "provider": judge.provider, "key": judge.key, **asdict(judge.estimate)}
                for judge in judges
            ],
            "total": asdict(total),
            "notes": list(notes),
        },
        page=lambda: page_of("the judging", blocks),
    )
