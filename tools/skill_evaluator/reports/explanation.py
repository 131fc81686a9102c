"""A case with its ground truth and outputs → text, Markdown or JSON, and the table of changed answers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skill_evaluator.checks.declared import Check
from skill_evaluator.comparing.declarations import compared_as
from skill_evaluator.display import WHOLE, arrow, number
from skill_evaluator.display.pages import Block, Code, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.safe_text import abridged, name_text, value_pair, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.parsing import FoundBy
from skill_evaluator.records.record import PASSED_FROM, SCORED, check_path, remedy
from skill_evaluator.reports.ending import AGAIN, command
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.scoring.answer_views import (
    AnswerChange,
    CaseView,
    ChangedAnswers,
    DistinctOutput,
    FieldValue,
    Leaf,
)
from skill_evaluator.scoring.answers import CheckScore
from skill_evaluator.text import counted, letters_of, listed

_LINES, _FEW_LINES = 15, 6
_CHARACTERS = 1200
_MOST_ROWS = 12  # of a table in a terminal, unless all is wanted
FOUND_AS: Mapping[FoundBy | None, str] = {
    "fenced": "JSON in a code fence",
    "embedded": "JSON amid other text",
    "stated": "read as stated",
    "line": "read on a line of its own",
    "option_text": "read by the option's words",
}
_STYLES = {"right": "green", "wrong": "red", "missing": "yellow", "extra": "magenta", "unscored": "dim"}
_MOST_VALUES = 8  # of one case that changed


def print_explanation(
    views: Sequence[CaseView], manifest: Manifest, form: Format, folders: Sequence[str], *, full: bool = False
) -> None:
    """Print cases of a run: one in full, or the same field of several.

    `full` shortens no document and value (JSON never does), and text no table.
    """
    brief = form == "text" and not full
    print_page(
        form,
        json=lambda: _as_json(views, manifest),
        page=lambda: page_of(manifest.run_id, _explained(views, manifest, folders, full, brief)),
    )


def _explained(
    views: Sequence[CaseView], manifest: Manifest, folders: Sequence[str], full: bool, brief: bool
) -> Iterator[Block]:
    run = f"{manifest.skill} {manifest.skill_version} · {manifest.model_id} · run {manifest.run_id}"
    yield Heading(Cell(run, code=True), level=2)
    if len(views) == 1:
        yield from _outputs(views[0], manifest, full, brief)
    yield from _fields(views, full, brief)
    wrong = [at for view in views for at, values in view.fields.items() if any(map(_differs, values))]
    if any(output.answer.outcome == SCORED for view in views for output in view.outputs):
        yield _next(manifest, list(dict.fromkeys(wrong)), folders)
    else:
        yield Line(f"next: {AGAIN.format(command(folders, 'evaluate', manifest.skill))}")
    if len(views) == 1:
        document = views[0].case.document
        yield Heading(f"{views[0].case.shown_as} ({len(document):,} characters)")
        yield Code(document if full else _beginning(document, _FEW_LINES if brief else _LINES))


def _outputs(view: CaseView, manifest: Manifest, full: bool, brief: bool) -> Iterator[Block]:
    """Yield the outcomes and scores of a case's outputs, and the texts that no table shows."""
    heads = [line for output in view.outputs for line in _heads(output, manifest)]
    yield _facts([f"case {view.case.id}{'' if view.case.labelled else ', no ground truth'}", *heads])
    if view.case.options:
        yield Heading("options")
        yield _options(view, full)
    for output in view.outputs:
        answer, of = output.answer, f"of replicate {ranges(output.replicates)}"
        for name, text in answer.beside.items():
            yield Heading(f"{name.replace('_', ' ')} {of} ({len(text):,} characters)")
            yield Code(text if full else _beginning(text, _FEW_LINES if brief else _LINES))
        unread = answer.parsed is None or answer.parsed.found is None or answer.parsed.several
        if answer.replicate and answer.text is not None and (unread or view.case.options or output.checks):
            text = answer.replicate.output
            yield Heading(f"the answer {of} as it came ({len(text):,} characters)")
            yield Code(text if full else _beginning(text))
    errors = [(ranges(one.replicates), error) for one in view.outputs for error in one.schema_errors]
    if errors:
        yield Heading("schema errors")
        rows = [(Cell(who), Cell(error if full else abridged(error), code=True)) for who, error in errors]
        yield Sheet(columns=("replicates", "path: what is wrong"), rows=rows)


def _heads(output: DistinctOutput, manifest: Manifest) -> list[str]:
    """Return what became of the replicates with an output, with its scores, and what to do if it failed."""
    answer = output.answer
    notes = [answer.outcome, *([answer.reason] if answer.reason else [])]
    if answer.parsed is not None and answer.parsed.found in FOUND_AS:
        notes.append(FOUND_AS[answer.parsed.found])
    scores = " · ".join(f"{name} {number(value)}" for name, value in output.metrics.items() if value is not None)
    failure = answer.replicate.failure if answer.replicate else None
    what = remedy(answer.reason, manifest.model_id) if answer.reason else None
    spoken = what and answer.text is not None and what.startswith("`explain`")  # which is what this is
    return [
        f"replicate {ranges(output.replicates)}: {', '.join(notes)}{scores and ' · '}{scores}",
        *([f"what was said: {failure.message}"] if failure and failure.message and failure.kind != "refused" else []),
        *([f"what to do: {what}"] if what and not spoken else []),
    ]


def _differs(value: FieldValue) -> bool:
    return value.leaf.outcome not in ("right", "unscored")


def _fields(views: Sequence[CaseView], full: bool, brief: bool) -> Iterator[Block]:
    """Yield the table of fields and checks, a row for each value.

    If it is to be brief and is long, only rows that are not right are shown.
    """
    rows, alike, counts = [], [], Counter[str]()
    for view in views:
        case = [Cell(view.case.id, code=True)] if len(views) > 1 else []
        for at, values in view.fields.items():
            for value in values:
                row = value.leaf.row
                truth, output = value_pair(row.truth, row.output, None) if full else value_pair(row.truth, row.output)
                verdict = Cell(value.leaf.outcome, _STYLES[value.leaf.outcome])
                how = Cell(how_compared(value.leaf), "dim", code=True)
                who = Cell(ranges(value.replicates))
                rows.append([*case, verdict, _path_cell(at), value_cell(truth), value_cell(output), who, how])
                alike.append(not _differs(value))
                counts[value.leaf.outcome] += len(value.replicates)
        for distinct in view.outputs:
            if case and distinct.answer.outcome != SCORED:
                gaps = [Cell("–"), Cell("–"), Cell(ranges(distinct.replicates)), Cell("")]
                rows.append([*case, Cell(distinct.answer.outcome, "yellow"), Cell(WHOLE), *gaps])
                alike.append(False)
            for check, score in distinct.checks:
                rows.append([*case, *_check(check, score, ranges(distinct.replicates), full)])
                alike.append(score.score is not None and score.score >= PASSED_FROM)
    if not rows:
        return
    yield Heading("fields: " + (", ".join(f"{counts[name]} {name}" for name in _STYLES if counts[name]) or "none"))
    shown = rows
    if brief and len(rows) > _MOST_ROWS:
        shown = [row for row, same in zip(rows, alike, strict=True) if not same][:_MOST_ROWS]
    columns = ("verdict", "path", "truth", "output", "replicates", "compared as")
    names = ("case", *columns) if len(views) > 1 else columns
    yield Sheet(columns=names, rows=shown, whole=frozenset({"case", "path"}))
    if len(shown) < len(rows):
        yield Line(f"… and {len(rows) - len(shown)} more: --full shows them", style="dim")


def _check(check: Check, score: CheckScore, replicates: str, full: bool) -> list[Cell]:
    """Return the row of a check: what it says in place of the truth, and its reason in place of the output."""
    verdict = Cell("not asked", "dim")
    if score.score is not None:
        verdict = Cell("passed", "green") if score.score >= PASSED_FROM else Cell("failed", "red")
    texts = [visible(text) for text in (check.words, score.reason or "")]
    says, why = (Cell(text if full else abridged(text), code=bool(text)) for text in texts)
    how = Cell(f"check, scored {number(score.score)}", "dim")
    return [verdict, _path_cell(check_path(check.id)), says, why, Cell(replicates), how]


def _next(manifest: Manifest, wrong: Sequence[str], folders: Sequence[str]) -> Line:
    """Return what to do about the fields that are wrong in an answer or in many."""
    version = manifest.skill_version
    if not wrong:
        compare = command(folders, "compare", manifest.skill, "--candidate", version)
        return Line(f"next: {compare} says whether {version} is worse than the version before")
    fields, again = listed([name_text(path) or WHOLE for path in wrong], 2), command(folders, "try", manifest.skill)
    return Line(f"next: say more of {fields} in the prompt, and {again} shows whether that helps")


def _options(view: CaseView, full: bool) -> Sheet:
    """Return the options, with a mark at the right one and the replicates that chose each."""
    case = view.case
    chosen = {output.answer.parsed.value: output for output in view.outputs if output.answer.parsed}
    rows = []
    for letter, option in zip(letters_of(case.options), case.options, strict=True):
        right = case.labelled and letter == case.truth
        given = ranges(chosen[letter].replicates) if letter in chosen else ""
        marks = Cell("yes", "green") if right else Cell(""), Cell(given, "cyan")
        shown = visible(option)
        rows.append((Cell(letter), *marks, Cell(shown if full else abridged(shown), code=True)))
    return Sheet(columns=("option", "truth", "answered", "text"), rows=rows)


def _facts(lines: Sequence[str]) -> Lines:
    return Lines([Line(Cell(line, code=True)) for line in lines])


def _path_cell(path: str) -> Cell:
    return Cell(name_text(path), code=True) if path else Cell(WHOLE)


def ranges(indexes: Sequence[int]) -> str:
    """Shorten ascending numbers to ranges.

    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _beginning(text: str, most: int = _LINES) -> str:
    """Return the first lines of a text, with a note on how much is left out."""
    lines = text.splitlines()
    kept = "\n".join(lines[:most])[:_CHARACTERS]
    if len(kept) >= len(text.rstrip()):
        return text
    return f"{kept.rstrip()}\n… ({len(lines):,} lines, {len(text):,} characters in all: --full shows them)"


def how_compared(leaf: Leaf) -> str:
    """Say by which rule a leaf was compared, how alike two free texts are, and whether it counts."""
    here = "" if leaf.similarity is None else f" (here {leaf.similarity:.3f})"
    return compared_as(leaf.row.rule) + here + ("" if leaf.row.rule.counts else ", not counted")


def value_cell(text: str) -> Cell:
    """Return the cell of a JSON value; a dash stands for none."""
    return Cell(text, code=text != "–")


def _as_json(views: Sequence[CaseView], manifest: Manifest) -> dict[str, Any]:
    return {
        "run_id": manifest.run_id,
        "component": manifest.skill,
        "version": manifest.skill_version,
        "model": manifest.model_id,
        "cases": [
            {
                "case": view.case.id,
                "labelled": view.case.labelled,
                "document": view.case.document,
                "options": list(view.case.options),
                "truth": view.case.truth,
                "outcomes": [answer.outcome for answer in view.answers],
                "outputs": [_output_as_json(output) for output in view.outputs],
            }
            for view in views
        ],
    }


def _output_as_json(output: DistinctOutput) -> dict[str, Any]:
    answer = output.answer
    parsed = answer.parsed
    checks = [
        {"id": check.id, "says": check.words, "score": score, "reason": reason}
        for check, (score, reason) in output.checks
    ]
    return {
        "replicates": list(output.replicates),
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": answer.replicate.failure.message if answer.replicate and answer.replicate.failure else None,
        "found": parsed.found if parsed else None,
        "text": answer.text,
        **answer.beside,
        "output": parsed.value if parsed else None,
        "metrics": dict(output.metrics),
        "fields": [_leaf_as_json(leaf) for leaf in output.leaves],
        "schema_errors": list(output.schema_errors),
        **({"checks": checks} if checks else {}),
    }


def _leaf_as_json(leaf: Leaf) -> Mapping[str, Any]:
    row = leaf.row
    return {
        "path": row.path,
        "at": leaf.at,
        "truth_at": row.truth_at,
        "output_at": row.output_at,
        "truth": row.truth,
        "output": row.output,
        "compared_as": compared_as(row.rule),
        "weight": row.rule.weight,
        "counted": row.rule.counts,
        "similarity": leaf.similarity,
        "verdict": leaf.outcome,
    }


def changes_of(model: ChangedAnswers) -> tuple[str, Sheet]:
    """Return what became of a model's answers in a sentence, and the table of those that changed."""
    columns = ("case", "score", "path", "before", "after")
    rows = [row for change in model.changes for row in _rows(change)]
    words = f"the commonest answer changed in {len(model.changes)} of {counted(model.compared, 'case')}"
    if model.absent is not None:
        words = f"which answers changed since {model.baseline} cannot be shown: {model.absent}"
    return f"{model.model_id}: {words}", Sheet(columns=columns, rows=rows, whole=frozenset({"path"}))


def _rows(change: AnswerChange) -> Iterator[list[Cell]]:
    case = Cell(name_text(change.case_id), code=True)
    score = Cell(arrow(change.score_before, change.score_after))
    for value in change.values[:_MOST_VALUES]:
        before, after = value_pair(value.before, value.after)
        yield [case, score, _path_cell(value.path), value_cell(before), value_cell(after)]
        case = score = Cell("")
    left = len(change.values) - _MOST_VALUES
    if left > 0:
        yield [case, score, Cell(f"and {left} more"), Cell(""), Cell("")]
    if not change.values:
        before, after = value_pair(change.before.value, change.after.value)
        shown = [
            value_cell(text) if side.failure is None else Cell(f"{side.failure} ({side.times} of {side.n})", "yellow")
            for side, text in ((change.before, before), (change.after, after))
        ]
        yield [case, score, Cell(WHOLE), *shown]
