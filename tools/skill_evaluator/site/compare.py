"""The page that compares two versions or two models: the verdict, what moved and how surely, and which cases flipped.

Finished comparisons come in, of which every figure is that of `compare`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from skill_evaluator.display import WHOLE, ends, number, signed
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.pages import MOST_ROWS, SiteBlock, sheet_block, word_block
from skill_evaluator.display.sheets import Sheet
from skill_evaluator.reports.comparison import model_words, reading_words, verdict_words, worst_first
from skill_evaluator.reports.comparison_sheets import all_sheets
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, MeasureResult, ModelVerdict

_HERE = Site(".")  # the site itself: a case leads to its page
_MOST_DRAWN = 40
_CAPTIONS = {"metric": "Metrics", "field": "Fields", "noise from": "What moves the primary metric by chance"}
_FOLDED = frozenset({"noise from", "the run", "the runs"})
Answers = Callable[[ModelVerdict], str | None]  # under which key the answers that changed are, if they may be shown


def version_parts(comparisons: Comparisons, answers: Answers) -> dict[str, Any]:
    """Return what is shown of each version beside the one it is judged against, by its number."""
    return {version: _result(result, answers) for version, result in comparisons.versions.items()}


def model_parts(comparisons: Comparisons, answers: Answers) -> list[dict[str, Any]]:
    """Return what is shown of each pair of models, the first of which is the baseline."""
    return [
        {"first": result.models[0].baseline.model_id, "second": result.models[0].model_id, **_result(result, answers)}
        for result in comparisons.models
        if result.models[0].baseline is not None
    ]


def _result(result: ComparisonResult, answers: Answers) -> dict[str, Any]:
    return {
        "finding": verdict_words(result),
        "verdict": result.verdict,
        "reading": reading_words(result),
        "leftOut": result.left_out,
        "models": [
            {
                "model": model.model_id,
                "verdict": model.verdict,
                "before": None if model.baseline is None else model.baseline.title,
                "after": model.candidate.title,
                "words": model_words(model, result.gate),
                "forest": _forest(model),
                "blocks": list(_tables(result.skill, model)),
                "answers": answers(model),
            }
            for model in worst_first(result)
        ],
    }


def _forest(model: ModelVerdict) -> dict[str, Any]:
    """Return the rows of the chart: metrics first, then the fields that moved, the largest loss first."""
    fields = sorted((one for one in model.fields if one.difference), key=lambda one: one.difference or 0.0)
    drawn = [one for one in (*model.metrics, *fields) if one.difference is not None][:_MOST_DRAWN]
    sure = [
        f"{one.metric or WHOLE} {signed(one.difference)}" for one in drawn if one.verdict in ("regressed", "improved")
    ]
    return {
        "title": f"Beyond chance: {listed(sure, 3)}" if sure else "Nothing moved beyond chance",
        "rows": [_row(one) for one in drawn],
    }


def _row(one: MeasureResult) -> dict[str, Any]:
    low, high = ends(one.ci95, one.n_cases)
    return {
        "name": one.metric or WHOLE,
        "kind": one.kind,
        "difference": one.difference,
        "low": low,
        "high": high,
        "verdict": one.verdict,
        "words": f"{one.metric or WHOLE}: {number(one.baseline)} → {number(one.candidate)}, {one.verdict}",
    }


def _tables(skill: str, model: ModelVerdict) -> Iterator[SiteBlock]:
    for piece in all_sheets(model, narrow=False, skill=skill, site=_HERE, most=MOST_ROWS):
        if isinstance(piece, Sheet):
            head = piece.columns[0]
            yield sheet_block(_CAPTIONS.get(head, f"{head[:1].upper()}{head[1:]}"), piece, folded=head in _FOLDED)
        else:
            yield word_block(piece)
