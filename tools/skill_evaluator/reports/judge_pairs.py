"""The results of `judge pairwise` → text, Markdown or JSON, and the page on what may be wrong with the judge."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.modes.pairwise import JudgePreferences, PairwiseCriterion, PairwiseResults, Ranking
from skill_evaluator.reports.judge_figures import bias_page, interval, panel_of_pairs, reasons
from skill_evaluator.text import counted

_COUNTS = ("1 better", "2 better", "ties", "of them by order")
_NUMBERS = (*_COUNTS, "1 wins", "95 %", "flips")
_COLUMNS = ("judge", "criterion", *_NUMBERS, "unscored")
_BIAS_COLUMNS = (
    "criterion",
    "flips",
    "beyond noise",
    "picks first",
    "lean",
    "1 wins",
    "pull of length",
    "confidence",
)
_BOTH_ORDERS = "That a judge says the same in both orders is no reason for trust: it can be wrong in both."


def print_judge_pairs(results: PairwiseResults, folder: str, form: Format, remarks: Sequence[str] = ()) -> None:
    """Print the preferences of all judges and further remarks; `folder` is where everything else lies."""
    notes = [*pair_notes(results), *remarks, f"written to {folder}"]
    rankings = [
        (judge.judge.model_id, ranking)
        for judge in results.judges
        for ranking in judge.rankings
        if ranking.criterion in judge.shown
    ]
    print_result(
        form,
        json=lambda: {"folder": folder, **results.model_dump(mode="json")},
        markdown=lambda: (
            f"## Comparisons by judges\n\n{markdown_table(pair_sheet(results))}\n"
            + "".join(
                f"{prose(ladder_heading(name, ranking))}\n\n{markdown_table(ladder_sheet(ranking))}\n"
                for name, ranking in rankings
            )
            + "".join(f"- {prose(note)}\n" for note in notes)
        ),
        text=lambda: [
            pair_sheet(results),
            Text(),
            *(
                piece
                for name, ranking in rankings
                for piece in (Text(visible(ladder_heading(name, ranking))), ladder_sheet(ranking), Text())
            ),
            *(Text(visible(note)) for note in notes),
        ],
    )


def pair_sheet(results: PairwiseResults) -> Sheet:
    """Return the preferences of all judges by criterion."""
    rows = [
        [
            Cell(judge.judge.model_id, code=True),
            Cell(criterion.criterion, code=True),
            *(Cell(str(criterion.counts.get(winner, 0))) for winner in ("1", "2", "tie")),
            Cell(str(criterion.disagreed)),
            Cell(number(criterion.wins.value)),
            Cell(interval(criterion.wins)),
            Cell(number(criterion.flips.value)),
            Cell(reasons(criterion.unscored)),
        ]
        for judge in results.judges
        for criterion in judge.criteria
        if criterion.criterion in judge.shown
    ]
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_NUMBERS))


def ladder_heading(judge: str, ranking: Ranking) -> str:
    """Say whose ranking it is, by which criterion, and what is to be known of it."""
    return f"{judge}, {ranking.criterion}: best first{f'; {ranking.remark}' if ranking.remark else ''}"


def ladder_sheet(ranking: Ranking) -> Sheet:
    """Return a ranking with its win matrix: a row's wins against each column."""
    beaten = (f"beat {place}" for place in range(1, len(ranking.names) + 1))
    columns = ("place", "output", "strength", "95 %", *beaten, "ties")
    rows = [
        [
            Cell(str(row + 1)),
            Cell(name, code=True),
            Cell("–" if ranking.strengths is None else number(ranking.strengths[row].value)),
            Cell("–" if ranking.strengths is None else interval(ranking.strengths[row])),
            *(Cell("" if row == column else str(count)) for column, count in enumerate(ranking.wins[row])),
            Cell(str(sum(ranking.ties[row]))),
        ]
        for row, name in enumerate(ranking.names)
    ]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns) - {"output"})


def pair_notes(results: PairwiseResults) -> Iterator[str]:
    """Yield what has to be said beside the tables."""
    yield from panel_of_pairs(results.panel, results.judges[0].shown if results.judges else ())
    for judge in results.judges:
        name, overall = judge.judge.model_id, judge.criteria[-1]
        if len(judge.strata) > 1:
            parts = (f"{stratum} {number(wins.value)} ({wins.n})" for stratum, wins in judge.strata.items())
            yield f"{name}: output 1 wins by stratum: {', '.join(parts)}"
        if overall.disagreed:
            yield f"{name}: {counted(overall.disagreed, 'verdict')} came from the order, and count as ties"
        if overall.unsure:
            yield f"{name}: {counted(overall.unsure, 'verdict')} below the threshold of confidence"


def pairs_bias_page(results: PairwiseResults) -> str:
    """Return bias_analysis_report.md."""
    judges = ((judge.judge.model_id, pair_doubt_sheet(judge), pair_doubts(judge)) for judge in results.judges)
    return bias_page(judges, _BOTH_ORDERS)


def pair_doubt_sheet(judge: JudgePreferences) -> Sheet:
    """Return the figures that may show what is wrong with a judge."""
    rows = [
        [
            Cell(criterion.criterion, code=True),
            *(
                Cell("–" if figure is None else f"{number(figure.value)} {interval(figure)}")
                for figure in (
                    criterion.flips,
                    criterion.flips_beyond_noise,
                    criterion.picks_first,
                    criterion.lean,
                    criterion.wins,
                    criterion.length,
                    criterion.confidence,
                )
            ),
        ]
        for criterion in judge.criteria
        if criterion.criterion in judge.shown
    ]
    return Sheet(columns=_BIAS_COLUMNS, rows=rows)


def pair_doubts(judge: JudgePreferences) -> Iterator[str]:
    """Yield what may be wrong with a judge, as far as it shows without labels."""
    for criterion in judge.criteria:
        if criterion.criterion in judge.shown:
            yield from _of_criterion(criterion)
    if all(criterion.noise is None for criterion in judge.criteria):
        yield "How much of the flips is the judge's own noise is not known; ask with --replicates 2 or more."


def _of_criterion(criterion: PairwiseCriterion) -> Iterator[str]:
    lean, length = criterion.lean.ci95, criterion.length.ci95
    if lean is not None and (lean[0] > 0 or lean[1] < 0):
        yield f"{criterion.criterion}: it leans to the {'first' if lean[0] > 0 else 'second'} place, beyond chance."
    if length is not None and (length[0] > 0 or length[1] < 0):
        which = "longer" if length[0] > 0 else "shorter"
        yield f"{criterion.criterion}: it prefers {which} outputs, beyond chance."
