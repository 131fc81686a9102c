"""One field over all answers of a run → text, Markdown or JSON: a row a case."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from rich.text import Text

from skill_evaluator.comparing.declarations import compared_as
from skill_evaluator.display import WHOLE
from skill_evaluator.display.safe_text import code_span, name_text, shortened, value_pair, value_text, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.reports.explanation import ranges, value_cell
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.scoring.answer_views import FieldView
from skill_evaluator.text import counted

_COLUMNS = ("case", "truth", "commonest", "share", "standing", "other answers")
_STYLES = {"stable_right": "green", "stable": "green", "stable_wrong": "red", "flaky": "yellow", "unscored": "dim"}
_LONGEST = 200


def print_field(view: FieldView, manifest: Manifest, form: Format, *, full: bool = False) -> None:
    """Print one field over all answers; `full` shortens no value (JSON never does)."""
    title = f"{name_text(view.path) or WHOLE}, compared as {compared_as(view.rule)}"
    standings = ", ".join(f"{count} {_words(name)}" for name, count in _profile(view).items())
    facts = [
        f"{manifest.skill} {manifest.skill_version} · {manifest.model_id} · run {manifest.run_id}",
        f"{counted(len(view.cases), 'case')} × {counted(manifest.asked, 'replicate')}: {standings}",
    ]
    print_result(
        form,
        json=lambda: _as_json(view, manifest),
        markdown=lambda: (
            f"## {code_span(title)}\n\n"
            + "".join(f"- {code_span(fact)}\n" for fact in facts)
            + f"\n{markdown_table(_sheet(view, full))}"
        ),
        text=lambda: [
            *(Text(visible(line), style="bold") for line in (title, *facts)),
            Text(),
            _sheet(view, full),
        ],
    )


def _profile(view: FieldView) -> dict[str, int]:
    counts = Counter(case.standing for case in view.cases)
    return {name: counts[name] for name in _STYLES if counts[name]}  # type: ignore[index]


def _words(standing: str) -> str:
    return standing.replace("_", "-")


def _sheet(view: FieldView, full: bool) -> Sheet:
    rows = []
    for case in view.cases:
        common = case.values[0].value if case.values else None
        truth, modal = value_pair(case.truth, common, None) if full else value_pair(case.truth, common)
        others = [f"{value_text(given.value)} ({ranges(given.replicates)})" for given in case.values[1:]]
        others += [f"{outcome} ({ranges(indexes)})" for outcome, indexes in case.unparsed.items()]
        rest = "; ".join(other if full else shortened(other) for other in others)
        rows.append(
            (
                Cell(case.case_id, code=True),
                value_cell(truth) if case.labelled else Cell("no ground truth", "dim"),
                value_cell(modal) if case.values else Cell("none parsed", "dim"),
                Cell(f"{len(case.values[0].replicates) if case.values else 0}/{case.answered}"),
                Cell(_words(case.standing), _STYLES[case.standing]),
                Cell(rest if full else shortened(rest, limit=_LONGEST), code=bool(rest)),
            )
        )
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset({"share"}), whole=frozenset({"case"}))


def _as_json(view: FieldView, manifest: Manifest) -> dict[str, Any]:
    return {
        "run_id": manifest.run_id,
        "component": manifest.skill,
        "version": manifest.skill_version,
        "model": manifest.model_id,
        "replicates": manifest.asked,
        "field": view.path,
        "compared_as": compared_as(view.rule),
        "profile": _profile(view),
        "cases": [
            {
                "case": case.case_id,
                "labelled": case.labelled,
                "truth": case.truth,
                "standing": case.standing,
                "answered": case.answered,
                "share": case.share,
                "values": [asdict(given) for given in case.values],
                "unparsed": dict(case.unparsed),
            }
            for case in view.cases
        ],
    }
