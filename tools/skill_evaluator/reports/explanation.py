"""Answers beside their truth → text, Markdown or JSON: one answer leaf by leaf, one field of all, or what changed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from skill_evaluator.comparing.declarations import aligned_by, compared_as
from skill_evaluator.display import WHOLE, arrow, number, standing_word
from skill_evaluator.display.pages import Block, Code, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.safe_text import abridged, name_text, shortened, value_pair, value_text, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.parsing import FoundBy
from skill_evaluator.records.faults import remedy
from skill_evaluator.records.record import PASSED_FROM
from skill_evaluator.reports.ending import command
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.scoring.answer_views import AnswerChange, ArrayMatch, ChangedAnswers, Explanation, FieldView, Leaf
from skill_evaluator.stats import by_key
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
_OF_FIELDS = {"stable_right": "green", "stable": "green", "stable_wrong": "red", "flaky": "yellow", "unscored": "dim"}
_LONGEST = 200  # characters of the other answers to a case
_MOST_VALUES = 8  # of one case that changed


def print_explanation(
    explained: Explanation | FieldView, manifest: Manifest, form: Format, folders: Sequence[str], *, full: bool = False
) -> None:
    """Print an answer or a field; `full` shortens no document and value (JSON never does), and text no table."""
    brief = form == "text" and not full
    if isinstance(explained, Explanation):
        blocks, value = _explained(explained, manifest, folders, full, brief), _as_json(explained, manifest)
    else:
        blocks, value = _field(explained, manifest, folders, full, brief), _field_as_json(explained, manifest)
    print_page(form, json=lambda: value, page=lambda: page_of(manifest.run_id, blocks))


def _explained(
    explained: Explanation, manifest: Manifest, folders: Sequence[str], full: bool, brief: bool
) -> Iterator[Block]:
    first, *others = _heads(explained, manifest)
    yield Heading(Cell(first, code=True), level=2)
    yield _facts(others)
    yield from _outcomes(explained, full, brief)
    wrong = [leaf.at for leaf in explained.leaves if leaf.outcome not in ("right", "unscored")]
    yield _next(manifest, wrong, folders)
    document = explained.case.document
    yield Heading(f"{explained.case.shown_as} ({len(document):,} characters)")
    yield Code(document if full else _beginning(document, _FEW_LINES if brief else _LINES))


def _next(manifest: Manifest, wrong: Sequence[str], folders: Sequence[str]) -> Line:
    """Return what to do about the fields that are wrong in an answer or in many."""
    version = manifest.skill_version
    if not wrong:
        compare = command(folders, "compare", manifest.skill, "--candidate", version)
        return Line(f"next: {compare} says whether {version} is worse than the version before")
    fields, again = listed([name_text(path) or WHOLE for path in wrong], 2), command(folders, "try", manifest.skill)
    return Line(f"next: say more of {fields} in the prompt, and {again} shows whether that helps")


def _outcomes(explained: Explanation, full: bool, brief: bool) -> Iterator[Block]:
    """Yield the tables of an answer, and the answer itself where no table of leaves shows it."""
    answer = explained.answer
    if explained.case.options:
        yield Heading("options")
        yield _options(explained, full)
    unread = answer.parsed is None or answer.parsed.found is None
    for name, text in answer.beside.items():
        yield Heading(f"{name.replace('_', ' ')} ({len(text):,} characters)")
        yield Code(text if full else _beginning(text, _FEW_LINES if brief else _LINES))
    is_shown = unread or (answer.parsed and answer.parsed.several) or explained.case.options or explained.checks
    if answer.replicate and answer.text is not None and is_shown:
        text = answer.replicate.output
        yield Heading(f"the answer as it came ({len(text):,} characters)")
        yield Code(text if full else _beginning(text))
    if explained.checks:
        yield Heading("checks")
        yield _checks(explained, full)
    if unread:
        return
    outcomes: Counter[str] = Counter(leaf.outcome for leaf in explained.leaves)
    counts = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in _STYLES if outcomes[outcome]) or "none"
    yield Heading(f"leaves: {counts}")
    alike = [leaf.outcome in ("right", "unscored") for leaf in explained.leaves]
    yield from _worst(_leaves(explained, full), alike, brief)
    for array in explained.arrays:
        yield from _array(array, full, brief)
    if explained.schema_errors:
        errors = [(Cell(error if full else abridged(error), code=True),) for error in explained.schema_errors]
        yield Heading("schema errors")
        yield Sheet(columns=("path: what is wrong",), rows=errors)


def _worst(sheet: Sheet, alike: Sequence[bool], brief: bool) -> Iterator[Block]:
    """Yield a table; if it is to be brief and is long, the rows that are not `alike`, and how many are left out."""
    if not brief or len(sheet.rows) <= _MOST_ROWS:
        yield sheet
        return
    rows = [row for row, same in zip(sheet.rows, alike, strict=True) if not same][:_MOST_ROWS]
    yield replace(sheet, rows=rows)
    yield Line(f"… and {len(sheet.rows) - len(rows)} more: --full shows them", style="dim")


def _checks(explained: Explanation, full: bool) -> Sheet:
    rows = []
    for check, (score, reason) in explained.checks:
        verdict = Cell("not asked", "dim")
        if score is not None:
            verdict = Cell("passed", "green") if score >= PASSED_FROM else Cell("failed", "red")
        texts = [visible(text) for text in (check.words, reason or "")]
        says, why = (Cell(text if full else abridged(text), code=bool(text)) for text in texts)
        rows.append((verdict, Cell(number(score)), Cell(check.id, code=True), says, why))
    return Sheet(columns=("verdict", "score", "check", "what it says", "why"), rows=rows, whole=frozenset({"check"}))


def _options(explained: Explanation, full: bool) -> Sheet:
    """Return the options, with marks at the right one and at the answered one."""
    case, parsed = explained.case, explained.answer.parsed
    rows = []
    for letter, option in zip(letters_of(case.options), case.options, strict=True):
        right = case.labelled and letter == case.truth
        given = parsed is not None and letter == parsed.value
        marks = Cell("yes", "green") if right else Cell(""), Cell("yes", "cyan") if given else Cell("")
        shown = visible(option)
        rows.append((Cell(letter), *marks, Cell(shown if full else abridged(shown), code=True)))
    return Sheet(columns=("option", "truth", "answered", "text"), rows=rows)


def _leaves(explained: Explanation, full: bool) -> Sheet:
    rows = []
    for leaf in explained.leaves:
        row = leaf.row
        truth, output = value_pair(row.truth, row.output, None) if full else value_pair(row.truth, row.output)
        verdict = Cell(leaf.outcome, _STYLES[leaf.outcome])
        how = Cell(how_compared(leaf), "dim", code=True)
        rows.append((verdict, _path_cell(leaf.at), value_cell(truth), value_cell(output), how))
    return Sheet(columns=("verdict", "path", "truth", "output", "compared as"), rows=rows, whole=frozenset({"path"}))


def _facts(lines: Sequence[str]) -> Lines:
    return Lines([Line(Cell(line, code=True)) for line in lines])


def _path_cell(path: str) -> Cell:
    return Cell(name_text(path), code=True) if path else Cell(WHOLE)


def _heads(explained: Explanation, manifest: Manifest) -> list[str]:
    """Return the head lines: which answer this is, what became of the others, and its scores."""
    answer = explained.answer
    notes = [answer.outcome, *([answer.reason] if answer.reason else [])]
    if answer.parsed is not None and answer.parsed.found in FOUND_AS:
        notes.append(FOUND_AS[answer.parsed.found])
    if not explained.case.labelled:
        notes.append("no ground truth")
    by_outcome = by_key((other.outcome, other.index) for other in explained.answers)
    replicates = ", ".join(f"{len(indexes)} {kind} ({ranges(indexes)})" for kind, indexes in by_outcome.items())
    scores = " · ".join(f"{name} {number(value)}" for name, value in explained.metrics.items())
    failure = answer.replicate.failure if answer.replicate else None
    what = remedy(answer.reason, manifest.model_id) if answer.reason else None
    spoken = what and answer.text is not None and what.startswith("explain ")  # which is what this is
    return [
        f"{manifest.skill} {manifest.skill_version} · {manifest.model_id} · run {manifest.run_id}",
        f"case {explained.case.id} · replicate {answer.index}: {', '.join(notes)}",
        *([f"what was said: {failure.message}"] if failure and failure.message and failure.kind != "refused" else []),
        *([f"what to do: {what}"] if what and not spoken else []),
        f"replicates: {replicates}",
        f"scores: {scores}",
    ]


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


def _array(array: ArrayMatch, full: bool, brief: bool) -> Iterator[Block]:
    """Yield which items of an array met, and below them the rows that say why."""
    kinds: Counter[str] = Counter()
    rows = []
    for item in array.items:
        kind = "missing" if item.output is None else "extra" if item.truth is None else "met"
        kinds[kind] += 1
        places = [Cell("–" if index is None else str(index)) for index in (item.truth, item.output)]
        why = visible(item.why)
        cells = (*places, Cell(kind, _STYLES.get(kind, "")), Cell(why if full else abridged(why), code=True))
        rows.append(cells)
    title = f"array {name_text(array.at) or WHOLE}, aligned {aligned_by(array.rule)}"
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in ("met", "missing", "extra"))
    yield Heading(Cell(f"{title}: {counts}", code=True))
    columns = ("in truth", "in output", "", "why")
    met = [item.truth is not None and item.output is not None for item in array.items]
    yield from _worst(Sheet(columns=columns, rows=rows, numbers=frozenset(columns[:2])), met, brief)


def _as_json(explained: Explanation, manifest: Manifest) -> dict[str, Any]:
    answer = explained.answer
    parsed = answer.parsed
    checks = [
        {"id": check.id, "says": check.words, "score": score, "reason": reason}
        for check, (score, reason) in explained.checks
    ]
    return {
        "run_id": manifest.run_id,
        "component": manifest.skill,
        "version": manifest.skill_version,
        "model": manifest.model_id,
        "case": explained.case.id,
        "labelled": explained.case.labelled,
        "outcomes": [other.outcome for other in explained.answers],
        "replicate": answer.index,
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": answer.replicate.failure.message if answer.replicate and answer.replicate.failure else None,
        "found": parsed.found if parsed else None,
        "text": answer.text,
        **answer.beside,
        "document": explained.case.document,
        "options": list(explained.case.options),
        "truth": explained.case.truth,
        "output": parsed.value if parsed else None,
        "metrics": dict(explained.metrics),
        "leaves": [_leaf_as_json(leaf) for leaf in explained.leaves],
        "arrays": [
            {
                "path": array.path,
                "at": array.at,
                "align": array.rule.align,
                "key": list(array.rule.key),
                "items": [asdict(item) for item in array.items],
            }
            for array in explained.arrays
        ],
        "schema_errors": list(explained.schema_errors),
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


def _field(view: FieldView, manifest: Manifest, folders: Sequence[str], full: bool, brief: bool) -> Iterator[Block]:
    standings = ", ".join(f"{count} {_words(name, manifest.replicates)}" for name, count in _profile(view).items())
    yield Heading(Cell(f"{name_text(view.path) or WHOLE}, compared as {compared_as(view.rule)}", code=True), level=2)
    yield _facts(
        [
            f"{manifest.skill} {manifest.skill_version} · {manifest.model_id} · run {manifest.run_id}",
            f"{counted(len(view.cases), 'case')} × {counted(manifest.replicates, 'replicate')}: {standings}",
        ]
    )
    alike = [case.standing in ("stable_right", "stable") for case in view.cases]
    yield from _worst(_cases_of_field(view, full), alike, brief)
    yield _next(manifest, [] if all(alike) else [view.path], folders)


def _profile(view: FieldView) -> dict[str, int]:
    counts = Counter(case.standing for case in view.cases)
    return {name: counts[name] for name in _OF_FIELDS if counts[name]}  # type: ignore[index]


def _words(standing: str, asked: int) -> str:
    return standing.replace("_", "-") if standing != "unscored" else standing_word(standing, asked)


def _cases_of_field(view: FieldView, full: bool) -> Sheet:
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
                Cell(_words(case.standing, case.answered), _OF_FIELDS[case.standing]),
                Cell(rest if full else shortened(rest, limit=_LONGEST), code=bool(rest)),
            )
        )
    return Sheet(
        columns=("case", "truth", "commonest", "share", "standing", "other answers"),
        rows=rows,
        numbers=frozenset({"share"}),
        whole=frozenset({"case"}),
    )


def _field_as_json(view: FieldView, manifest: Manifest) -> dict[str, Any]:
    return {
        "run_id": manifest.run_id,
        "component": manifest.skill,
        "version": manifest.skill_version,
        "model": manifest.model_id,
        "replicates": manifest.replicates,
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
