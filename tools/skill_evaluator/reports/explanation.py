"""An explained answer → text, Markdown or JSON: the document, the leaves, the arrays and the schema errors."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from skill_evaluator.comparing.declarations import aligned_by, compared_as
from skill_evaluator.display import WHOLE, number
from skill_evaluator.display.safe_text import abridged, code_block, code_span, name_text, value_pair, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.parsing import FoundBy
from skill_evaluator.records.faults import remedy
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.scoring.answer_views import ArrayMatch, Explanation, Leaf
from skill_evaluator.text import letters_of

_LINES = 15
_CHARACTERS = 1200
FOUND_AS: Mapping[FoundBy | None, str] = {
    "fenced": "JSON in a code fence",
    "embedded": "JSON amid other text",
    "stated": "read as stated",
    "line": "read on a line of its own",
    "option_text": "read by the option's words",
}
_STYLES = {"right": "green", "wrong": "red", "missing": "yellow", "extra": "magenta", "unscored": "dim"}


def print_explanation(explained: Explanation, manifest: Manifest, form: Format, *, full: bool = False) -> None:
    """Print an explanation; `full` leaves nothing out of documents and values (JSON never does)."""
    print_result(
        form,
        json=lambda: _as_json(explained, manifest),
        markdown=lambda: "\n".join(_page(explained, manifest, full)),
        text=lambda: _text(explained, manifest, full),
    )


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading over a table or over a text as it is; `names` says that the heading holds names from outside."""

    title: str
    sheet: Sheet | None = None
    text: str | None = None
    names: bool = False


def _sections(explained: Explanation, full: bool) -> Iterator[_Section]:
    document = explained.case.document
    yield _Section(f"document ({len(document):,} characters)", text=document if full else _beginning(document))
    answer = explained.answer
    if explained.case.options:
        options = []  # with marks at the right one and at the answered one
        for letter, option in zip(letters_of(explained.case.options), explained.case.options, strict=True):
            right = explained.case.labelled and letter == explained.case.truth
            given = answer.parsed is not None and letter == answer.parsed.value
            marks = Cell("yes", "green") if right else Cell(""), Cell("yes", "cyan") if given else Cell("")
            shown = visible(option)
            options.append((Cell(letter), *marks, Cell(shown if full else abridged(shown), code=True)))
        yield _Section("options", sheet=Sheet(columns=("option", "truth", "answered", "text"), rows=options))
    unread = answer.parsed is None or answer.parsed.found is None
    if answer.text is not None and (unread or explained.case.options):
        text = answer.text if full else _beginning(answer.text)
        yield _Section(f"the answer as it came ({len(answer.text):,} characters)", text=text)
    if unread:
        return
    outcomes: Counter[str] = Counter(leaf.outcome for leaf in explained.leaves)
    counts = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in _STYLES if outcomes[outcome]) or "none"
    rows = []
    for leaf in explained.leaves:
        row = leaf.row
        truth, output = value_pair(row.truth, row.output, None) if full else value_pair(row.truth, row.output)
        how = how_compared(leaf)
        path = Cell(name_text(leaf.at), code=True) if leaf.at else Cell(WHOLE)
        verdict = Cell(leaf.outcome, _STYLES[leaf.outcome])
        rows.append((verdict, path, value_cell(truth), value_cell(output), Cell(how, "dim", code=True)))
    columns = ("verdict", "path", "truth", "output", "compared as")
    yield _Section(f"leaves: {counts}", sheet=Sheet(columns=columns, rows=rows, whole=frozenset({"path"})))
    for array in explained.arrays:
        yield _array_section(array, full)
    if explained.schema_errors:
        errors = [(Cell(error if full else abridged(error), code=True),) for error in explained.schema_errors]
        yield _Section("schema errors", sheet=Sheet(columns=("path: what is wrong",), rows=errors))


def _heads(explained: Explanation, manifest: Manifest) -> list[str]:
    """Return the head lines: which answer this is, what became of the others, and its scores."""
    answer = explained.answer
    notes = [answer.outcome, *([answer.reason] if answer.reason else [])]
    if answer.parsed is not None and answer.parsed.found in FOUND_AS:
        notes.append(FOUND_AS[answer.parsed.found])
    if not explained.case.labelled:
        notes.append("no ground truth")
    by_outcome: dict[str, list[int]] = {}
    for other in explained.answers:
        by_outcome.setdefault(other.outcome, []).append(other.index)
    replicates = ", ".join(f"{len(indexes)} {kind} ({ranges(indexes)})" for kind, indexes in by_outcome.items())
    scores = " · ".join(f"{name} {number(value)}" for name, value in explained.metrics.items())
    failure = answer.replicate.failure if answer.replicate else None
    what = remedy(answer.reason, manifest.model_id, manifest.run_id, explained.case.id) if answer.reason else None
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


def _beginning(text: str) -> str:
    """Return the first lines of a text, with a note on how much is left out."""
    lines = text.splitlines()
    kept = "\n".join(lines[:_LINES])[:_CHARACTERS]
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


def _array_section(array: ArrayMatch, full: bool) -> _Section:
    """Return which items of an array met, and below them the rows that say why."""
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
    columns = ("in truth", "in output", "", "why")
    sheet = Sheet(columns=columns, rows=rows, numbers=frozenset(columns[:2])) if rows else None
    return _Section(f"{title}: {counts}", sheet=sheet, names=True)


def _text(explained: Explanation, manifest: Manifest, full: bool) -> Iterator[Sheet | Text]:
    for place, line in enumerate(_heads(explained, manifest)):
        yield Text(visible(line), style="bold" if place < 2 else "")
    for section in _sections(explained, full):
        yield Text()
        yield Text(visible(section.title), style="bold cyan")
        if section.text is not None:
            yield Text(visible(section.text.rstrip("\n"), keep="\n\t"))
        if section.sheet is not None:
            yield section.sheet


def _page(explained: Explanation, manifest: Manifest, full: bool) -> Iterator[str]:
    first, *others = _heads(explained, manifest)
    yield f"## {code_span(first)}\n"
    yield "".join(f"- {code_span(line)}\n" for line in others)
    for section in _sections(explained, full):
        yield f"### {code_span(section.title) if section.names else section.title}\n"
        if section.text is not None:
            yield code_block(section.text) + "\n"
        if section.sheet is not None:
            yield markdown_table(section.sheet)


def _as_json(explained: Explanation, manifest: Manifest) -> dict[str, Any]:
    answer = explained.answer
    parsed = answer.parsed
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
