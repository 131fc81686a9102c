"""The report of a case with its ground truth and outputs, or of one field in several cases, and changed outputs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import semver

from skill_evaluator.checks import Check
from skill_evaluator.comparing.comparison import ComparedLeaf
from skill_evaluator.comparing.declarations import compared_as
from skill_evaluator.display import WHOLE, abridged, arrow, count, name_text, number, value_pair, visible
from skill_evaluator.display.pages import Block, Cell, Code, Fold, Heading, Lines, Page, Sheet, page_of
from skill_evaluator.metrics.accuracy import text_similarity
from skill_evaluator.parsing import OutputForm
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import PASSED_FROM, SCORED, check_path, remedy
from skill_evaluator.reports.summary import AGAIN, ComparisonSummary, Reader, conclude, measure_step, try_step
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.scoring.answer_views import AnswerChange, CaseView, ChangedAnswers, DistinctOutput, leaf_texts
from skill_evaluator.scoring.scorer import CheckScore
from skill_evaluator.text import counted, letters_of, listed, ranges
from skill_evaluator.verdicts.decide.results import ComparisonResult

_MAX_LINES, _MAX_CHARACTERS = 6, 1200
_MAX_ROWS = 12
FOUND_AS: Mapping[OutputForm | None, str] = {
    "fenced": "JSON in a code fence",
    "embedded": "JSON amid other text",
    "stated": "read as stated",
    "line": "read on a line of its own",
    "option_text": "read by the option's words",
}
_STYLES = {"right": "green", "wrong": "red", "missing": "yellow", "extra": "magenta", "unscored": "dim"}
_MAX_VALUES = 8  # changed values of a case


def explanation_page(
    views: Sequence[CaseView],
    manifest: Manifest,
    folders: Sequence[str],
    newest: str,
    compared: ComparisonResult | None,
    ship: str,
) -> Page:
    """Build the page of a case or of a field. `newest` is the highest version, and `compared` is its comparison."""
    component, version, reader = manifest.skill, manifest.skill_version, Reader(folders=folders)
    title = Cell(f"{component} {version} · {manifest.model_id} · run {manifest.run_id}", code=True)
    outputs = _output_blocks(views[0], manifest) if len(views) == 1 else ()
    document = _text_blocks(views[0].case.shown_as, views[0].case.document) if len(views) == 1 else ()
    wrong = [leaf.path for view in views for values in view.fields.values() for leaf, _ in values if _differs(leaf)]
    newest = newest if semver.Version.is_valid(version) else ""  # other versions have no order
    shown = max(version, newest, key=precedence) if newest else version
    state = ": the newest version" if version == newest else ": not recorded"
    if shown != version:
        state = f": an earlier version; the newest is {shown}"
    if manifest.draft:
        state = f" (draft); the newest recorded version is {newest}"
    if shown == version and not any(output.answer.outcome == SCORED for view in views for output in view.outputs):
        following = AGAIN.format(reader.command("evaluate", component))
    elif shown == version and wrong:
        fields = listed([name_text(path) or "the output" for path in dict.fromkeys(wrong)], 2)
        following = f"describe {fields} more precisely in the prompt, then run {reader.command('try', component)}"
    elif compared is None or shown != newest:
        following = measure_step(component, reader)
    elif not any(model.baseline for model in compared.models):
        following = try_step(component, reader)
    else:
        compare = reader.command("compare", component, "--candidate", shown)
        following = f"compare {shown} with the version before: {compare}"
    result = ComparisonSummary(verdict="", next="") if compared is None else conclude(compared, reader)
    lost = "; ".join(filter(None, (result.verdict, result.lost)))
    verdict = f"{component} {version}{state if newest else ' (draft)' * manifest.draft}"
    closing = replace(result, verdict=verdict, lost=lost, ship=ship, next=following).closing
    return page_of(manifest.run_id, [Heading(title, level=2), *outputs, *document, *_field_blocks(views), closing])


def _output_blocks(view: CaseView, manifest: Manifest) -> Iterator[Block]:
    heads = [line for output in view.outputs for line in _outcome_lines(output, manifest)]
    yield Lines([f"case {view.case.id}{'' if view.case.labelled else ', no ground truth'}", *heads])
    if view.case.options:
        yield Heading("options")
        yield from _cut_tables("All options", _option_sheet(view))
    for output in view.outputs:
        answer, source = output.answer, f"of replicate {ranges(output.replicates)}"
        for name, text in answer.beside.items():
            yield from _text_blocks(f"{name.replace('_', ' ')} {source}", text)
        unread = answer.parsed is None or answer.parsed.form is None or answer.parsed.several
        if answer.replicate and answer.text is not None and (unread or view.case.options or output.checks):
            yield from _text_blocks(f"the output {source} as it came", answer.replicate.output)
    errors = [(ranges(one.replicates), error) for one in view.outputs for error in one.schema_errors]
    if errors:
        yield Heading("schema errors")
        rows = [[Cell(replicates), Cell(error, code=True)] for replicates, error in errors]
        yield from _cut_tables("All schema errors", Sheet(columns=("replicates", "path: what is wrong"), rows=rows))


def _text_blocks(title: str, text: str) -> Iterator[Block]:
    lines = text.splitlines()
    beginning = "\n".join(lines[:_MAX_LINES])[:_MAX_CHARACTERS]
    head = Heading(f"{title} ({count(len(text))} characters)")
    if len(beginning) >= len(text.rstrip()):
        yield from (head, Code(text))
        return
    remark = f"… of {counted(len(lines), 'line')}"
    yield Fold("The whole text", [head, Code(text)], brief=[head, Code(f"{beginning.rstrip()}\n{remark}")])


def _cut_tables(summary: str, whole: Sheet, short: Sheet | None = None) -> Iterator[Block]:
    """Yield a short table with the whole table collapsed. If the two tables are equal, yield only the whole table."""
    cut_rows = [[replace(cell, text=abridged(cell.text)) for cell in row] for row in whole.rows]
    brief = short or replace(whole, rows=cut_rows)
    more = len(whole.rows) - len(brief.rows)
    yield whole if brief == whole else Fold(summary, [whole], brief=[brief, f"… and {more} more" if more else ""])


def _outcome_lines(output: DistinctOutput, manifest: Manifest) -> list[str]:
    answer = output.answer
    form = FOUND_AS.get(answer.parsed.form) if answer.parsed else None
    notes = filter(None, (answer.outcome, answer.reason, form))
    scores = " · ".join(f"{name} {number(value)}" for name, value in answer.metrics.items() if value is not None)
    failure = answer.replicate.failure if answer.replicate else None
    advice = remedy(answer.reason, manifest.model_id) if answer.reason else None
    is_this_command = advice and answer.text is not None and advice.startswith("`explain`")
    return [
        f"replicate {ranges(output.replicates)}: {', '.join(notes)}{scores and ' · '}{scores}",
        *([f"message: {failure.message}"] if failure and failure.message and failure.kind != "refused" else []),
        *([f"what to do: {advice}"] if advice and not is_this_command else []),
    ]


def _differs(leaf: ComparedLeaf) -> bool:
    return leaf.outcome not in ("right", "unscored")


def _field_blocks(views: Sequence[CaseView]) -> Iterator[Block]:
    short, whole = (list(_field_rows(views, cut=cut)) for cut in (True, False))
    if not whole:
        return
    counts = Counter[str]()
    for leaf, replicates in (value for view in views for values in view.fields.values() for value in values):
        counts[leaf.outcome] += len(replicates)
    yield Heading("fields: " + (", ".join(f"{counts[name]} {name}" for name in _STYLES if counts[name]) or "none"))
    if len(short) > _MAX_ROWS:
        short = [row for row in short if not row[0]][:_MAX_ROWS]
    columns = ("verdict", "path", "truth", "output", "replicates", "compared as")
    names = ("case", *columns) if len(views) > 1 else columns
    tables = (
        Sheet(columns=names, rows=[row for _, row in rows], whole=frozenset({"case", "path"}))
        for rows in (whole, short)
    )
    yield from _cut_tables("All fields", *tables)


def _field_rows(views: Sequence[CaseView], *, cut: bool) -> Iterator[tuple[bool, list[Cell]]]:
    """Yield the cells of each row of the table of fields, checks and unscored outputs.

    The first member is true if the row shows no fault, so that a short table may omit it.
    """
    for view in views:
        case = [Cell(view.case.id, code=True)] if len(views) > 1 else []
        for index, values in view.fields.items():
            for leaf, indexes in values:
                truth, output = leaf_texts(leaf, *([] if cut else [None]))
                verdict = Cell(leaf.outcome, _STYLES[leaf.outcome])
                how = Cell(how_compared(leaf), "dim", code=True)
                cells = [verdict, _path_cell(index), _value_cell(truth), _value_cell(output)]
                yield not _differs(leaf), [*case, *cells, Cell(ranges(indexes)), how]
        for distinct in view.outputs:
            replicates = Cell(ranges(distinct.replicates))
            if case and distinct.answer.outcome != SCORED:
                gaps = [Cell("–"), Cell("–"), replicates, Cell("")]
                yield False, [*case, Cell(distinct.answer.outcome, "yellow"), Cell(WHOLE), *gaps]
            for check, score in distinct.checks:
                passed = score.score is not None and score.score >= PASSED_FROM
                yield passed, [*case, *_check_cells(check, score, replicates, cut=cut)]


def _check_cells(check: Check, score: CheckScore, replicates: Cell, *, cut: bool) -> list[Cell]:
    verdict = Cell("not run", "dim")
    if score.score is not None:
        verdict = Cell("passed", "green") if score.score >= PASSED_FROM else Cell("failed", "red")
    texts = [visible(text) for text in (check.text, score.reason or "")]
    says, reason = (Cell(abridged(text) if cut else text, code=bool(text)) for text in texts)
    how = Cell(f"check, scored {number(score.score)}", "dim")
    return [verdict, _path_cell(check_path(check.id)), says, reason, replicates, how]


def _option_sheet(view: CaseView) -> Sheet:
    case = view.case
    chosen = {output.answer.parsed.value: output for output in view.outputs if output.answer.parsed}
    rows = []
    for letter, option in zip(letters_of(case.options), case.options, strict=True):
        right = case.labelled and letter == case.truth
        replicates = ranges(chosen[letter].replicates) if letter in chosen else ""
        marks = Cell("yes", "green") if right else Cell(""), Cell(replicates, "cyan")
        rows.append([Cell(letter), *marks, Cell(visible(option), code=True)])
    return Sheet(columns=("option", "truth", "answered", "text"), rows=rows)


def _path_cell(path: str) -> Cell:
    return Cell(name_text(path), code=True) if path else Cell(WHOLE)


def how_compared(leaf: ComparedLeaf) -> str:
    """Name the comparator of a value, with the similarity of free texts. Add "not counted" if it does not count."""
    token_f1 = text_similarity(leaf)
    similarity = "" if token_f1 is None else f" (here {number(token_f1)})"
    return compared_as(leaf.rule) + similarity + ("" if leaf.rule.counts else ", not counted")


def _value_cell(text: str) -> Cell:
    return Cell(text, code=text != "–")


def explanation_json(views: Sequence[CaseView], manifest: Manifest) -> dict[str, Any]:
    """Return the JSON value of an explanation: `run_id`, `component`, `version`, `model` and `cases`."""
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
        {"id": check.id, "says": check.text, "score": score, "reason": reason}
        for check, (score, reason) in output.checks
    ]
    return {
        "replicates": list(output.replicates),
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": answer.replicate.failure.message if answer.replicate and answer.replicate.failure else None,
        "found": parsed.form if parsed else None,
        "text": answer.text,
        **answer.beside,
        "output": parsed.value if parsed else None,
        "metrics": dict(answer.metrics),
        "fields": [_leaf_as_json(leaf) for leaf in output.leaves],
        "schema_errors": list(output.schema_errors),
        **({"checks": checks} if checks else {}),
    }


def _leaf_as_json(leaf: ComparedLeaf) -> Mapping[str, Any]:
    return {
        "path": leaf.path,
        "at": leaf.location,
        "truth_at": leaf.truth_at,
        "output_at": leaf.output_at,
        "truth": leaf.truth,
        "output": leaf.output,
        "compared_as": compared_as(leaf.rule),
        "weight": leaf.rule.weight,
        "counted": leaf.rule.counts,
        "similarity": text_similarity(leaf),
        "verdict": leaf.outcome,
    }


def changes_of(model: ChangedAnswers) -> tuple[str, Sheet]:
    """Return the number of cases whose most frequent output changed, as a sentence, and the table of these outputs.

    If the outputs are missing, the sentence has the reason.
    """
    columns = ("case", "score", "path", "before", "after")
    rows = [row for change in model.changes for row in _change_rows(change)]
    text = f"the most frequent output changed in {len(model.changes)} of {counted(model.compared, 'case')}"
    if model.absent is not None:
        text = f"the outputs that changed since {model.baseline} cannot be shown: {model.absent}"
    return f"{model.model_id}: {text}", Sheet(columns=columns, rows=rows, whole=frozenset({"path"}))


def _change_rows(change: AnswerChange) -> Iterator[list[Cell]]:
    case = Cell(name_text(change.case_id), code=True)
    score = Cell(arrow(change.score_before, change.score_after))
    for value in change.values[:_MAX_VALUES]:
        before, after = value_pair(value.before, value.after)
        yield [case, score, _path_cell(value.path), _value_cell(before), _value_cell(after)]
        case = score = Cell("")
    remaining = len(change.values) - _MAX_VALUES
    if remaining > 0:
        yield [case, score, Cell(f"and {remaining} more"), Cell(""), Cell("")]
    if not change.values:
        before, after = value_pair(change.before.value, change.after.value)
        shown = [
            _value_cell(text) if side.failure is None else Cell(f"{side.failure} ({side.times} of {side.n})", "yellow")
            for side, text in ((change.before, before), (change.after, after))
        ]
        yield [case, score, Cell(WHOLE), *shown]
