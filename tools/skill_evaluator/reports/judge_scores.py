"""The results of `judge score` → text, Markdown or JSON, and the page on what may be wrong with the judge."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.modes.scoring import CriterionScores, JudgeScores, ScoreResults
from skill_evaluator.reports.judge_figures import bias_page, interval, panel_of_scores, reasons
from skill_evaluator.text import counted

_NUMBERS = ("items", "score", "95 %", "0 to 1", "confidence", "unscored")
_COLUMNS = ("judge", "criterion", "method", *_NUMBERS)
_WHOLE = "all, weighted"
_CROWDED = 0.8  # share of judgements with one score, from which a scale tells little apart

_ALWAYS_SURE = 0.95


def print_judge_scores(results: ScoreResults, folder: str, form: Format, remarks: Sequence[str] = ()) -> None:
    """Print the scores of all judges and further remarks; `folder` is where everything else lies."""
    table, notes = score_sheet(results), [*score_notes(results), *remarks, f"written to {folder}"]
    print_result(
        form,
        json=lambda: {"folder": folder, **results.model_dump(mode="json")},
        markdown=lambda: (
            f"## Scores by judges\n\n{markdown_table(table)}\n" + "".join(f"- {prose(note)}\n" for note in notes)
        ),
        text=lambda: [table, Text(), *(Text(visible(note)) for note in notes)],
    )


def score_sheet(results: ScoreResults) -> Sheet:
    """Return the scores of all judges by criterion."""
    rows = []
    for judge in results.judges:
        rows += [
            [
                Cell(judge.judge.model_id, code=True),
                Cell(criterion.criterion, code=True),
                Cell(criterion.method),
                Cell(f"{criterion.score.n}/{len(judge.items)}"),
                Cell(f"{number(criterion.score.value)} of {criterion.highest}"),
                Cell(interval(criterion.score)),
                Cell(number(criterion.normalised.value)),
                Cell(number(criterion.confidence.value)),
                Cell(reasons(criterion.unscored)),
            ]
            for criterion in judge.criteria
        ]
        summary = judge.summary
        rows.append(
            [
                Cell(judge.judge.model_id, code=True),
                Cell(_WHOLE),
                Cell(""),
                Cell(f"{summary.n}/{len(judge.items)}"),
                Cell(""),
                Cell(interval(summary)),
                Cell(number(summary.value)),
                Cell(""),
                Cell(""),
            ]
        )
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_NUMBERS[:-1]))


def score_notes(results: ScoreResults) -> Iterator[str]:
    """Yield what has to be said beside the table."""
    yield from panel_of_scores(results.panel)
    if results.left_out:
        listed = ", ".join(f"{name} ({why})" for name, why in list(results.left_out.items())[:5])
        yield f"{counted(len(results.left_out), 'case')} without an output to judge: {listed}"
    for judge in results.judges:
        if len(judge.strata) > 1:
            parts = (f"{name} {number(value.value)} ({value.n})" for name, value in judge.strata.items())
            yield f"{judge.judge.model_id} by stratum: {', '.join(parts)}"
        unsure = sum(criterion.unsure for criterion in judge.criteria)
        if unsure:
            yield f"{judge.judge.model_id}: {counted(unsure, 'judgement')} below the threshold of confidence"


def scores_bias_page(results: ScoreResults) -> str:
    """Return bias_analysis_report.md."""
    judges = ((judge.judge.model_id, score_doubt_sheet(judge), score_doubts(judge)) for judge in results.judges)
    return bias_page(judges)


def score_doubt_sheet(judge: JudgeScores) -> Sheet:
    """Return the figures that may show what is wrong with a judge."""
    rows = [
        [
            Cell(criterion.criterion, code=True),
            Cell(_spread(criterion)),
            Cell(f"{number(criterion.length.value)} {interval(criterion.length)}"),
            Cell(f"{number(criterion.repeats.value)} {interval(criterion.repeats)}"),
            Cell(f"{number(criterion.confidence.value)} {interval(criterion.confidence)}"),
            Cell(f"{number(criterion.quoted.value)} {interval(criterion.quoted)}"),
            Cell(reasons(criterion.unscored)),
        ]
        for criterion in judge.criteria
    ]
    columns = (
        "criterion",
        "judgements by score",
        "rises with length (ρ)",
        "replicates agree",
        "confidence",
        "evidence found",
        "unscored",
    )
    return Sheet(columns=columns, rows=rows)


def score_doubts(judge: JudgeScores) -> Iterator[str]:
    """Yield what may be wrong with a judge, as far as it shows without labels."""
    for criterion in judge.criteria:
        name, length, total = criterion.criterion, criterion.length, sum(criterion.counts.values())
        if length.ci95 is not None and (length.ci95[0] > 0 or length.ci95[1] < 0):
            way = "higher" if length.ci95[0] > 0 else "lower"
            yield f"{name}: longer outputs score {way}, beyond chance. That is a bias only where length is no merit."
        if total and max(criterion.counts.values()) > _CROWDED * total:
            commonest = max(criterion.counts, key=lambda score: criterion.counts[score])
            yield f"{name}: most judgements have the score {commonest}, so that the scale tells little apart."
        if criterion.repeats.n == 0:
            yield f"{name}: how well the judge repeats itself is not known; ask with --replicates 2 or more."
        if criterion.confidence.ci95 is not None and criterion.confidence.ci95[0] > _ALWAYS_SURE:
            yield f"{name}: the judge is always sure. Without labels nobody knows whether it may be."
    yield "Position: each output is judged by itself, so that there is none."


def _spread(criterion: CriterionScores) -> str:
    return " ".join(f"{score}: {criterion.counts.get(score, 0)}" for score in range(1, criterion.highest + 1))
