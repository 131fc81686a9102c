"""A run's page: every answer of a run, failures first, each with the leaves in which it differs.

Its rows have the beginning of each answer; the texts are a file of their own, loaded when one is unfolded or sought.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import NonNegativeInt, StringConstraints

from skill_evaluator.display.safe_text import abridged, code_block
from skill_evaluator.errors import FixtureError, RunError, SkillEvaluatorError
from skill_evaluator.files import LinesWriter, StrictModel, read_checked
from skill_evaluator.identifiers import CaseId, FileName
from skill_evaluator.library.case_table import place_of_new, write_cases
from skill_evaluator.library.cases import SOURCE, Case
from skill_evaluator.site.cases import JUDGED_BY, SHOWN_BY, ShownRun
from skill_evaluator.site.writing import SiteFolder, data_script, fitting
from skill_evaluator.text import canonical_json, digest, listed
from skill_evaluator.verdicts.history.cache import program_digest

_OUTPUTS = 50  # distinct ones of a case
_ROWS = 2_000_000  # characters of all rows of a run
_TEXTS = 10_000_000  # of all its answers, each of which has an equal part
_BEGINNING = 160  # characters of an answer in its row
_LEAVES = 5  # that differ
_VALUE = 60


def write_runs(site: SiteFolder, runs: Sequence[ShownRun], cases: Mapping[str, Case], fixtures: Path | None) -> None:
    """Write the page of each run; their answers may be shown, and `cases` are what they answer."""
    for run in runs:
        key = f"runs/{run.recorded.component.name}/{run.id}"
        for part in ("rows", "texts"):
            site.when_opened(f"data/{key}/{part}.js", partial(_write_run, site, run, cases, key))
        if site.own:
            site.later[f"data/{key}/notes.js"] = partial(_write_notes, site, run, key)
            site.noting[key] = partial(_keep, site, run, cases, fixtures, key)


def _write_run(site: SiteFolder, run: ShownRun, cases: Mapping[str, Case], key: str) -> None:
    """Write the rows and the texts of a run, unless those are there that show the same."""
    digests = run.recorded.component.digests
    known = {
        "program": program_digest(SHOWN_BY),
        "rules": [digests.get(name) for name in JUDGED_BY],
        "cases": [cases[case_id].digest if case_id in cases else None for case_id in sorted(run.case_ids)],
        **run.shown(True),
    }
    first_line = f"/* {digest(canonical_json(known))} */\n"
    if all(site.keeps(f"data/{key}/{part}.js", first_line.strip()) for part in ("rows", "texts")):
        return
    record, whys = run.record, dict[str, list[str]]()
    rows: list[dict[str, Any]] = []
    for case_id in run.case_ids:
        part = run.part(case_id, cases.get(case_id), _OUTPUTS)
        rows += [_row(case_id, part["planned"], output) for output in part["outputs"] or ()]
        gone = [] if case_id in cases else ["no longer among the fixtures."]
        for why in filter(None, (*gone, part["why"], part["others"], *part["remarks"])):
            whys.setdefault(why, []).append(case_id)
    rows.sort(key=_worst)
    score = record.accuracy.get(record.primary_metric)
    kept, left = fitting(({**row, "text": row["text"][:_BEGINNING]} for row in rows), _ROWS)
    head = {
        "run": run.id,
        "model": record.model_id,
        "version": record.skill_version,
        "metric": record.primary_metric,
        "score": None if score is None else score.strict_mean,
        "planned": record.planned,
        "remarks": [
            why if len(ids) == len(run.case_ids) else f"{listed(sorted(ids), 4)}: {why}" for why, ids in whys.items()
        ],
        "own": site.own,
        "rows": kept,
        "left": left,
    }
    room = _TEXTS // max(1, len(kept))
    texts = [row["text"][:room] for row in rows[: len(kept)]]
    for name, value in (("rows", head), ("texts", texts)):
        site.write(f"data/{key}/{name}.js", first_line + data_script(f"{key}/{name}", value))


def _row(case_id: str, planned: int, output: Mapping[str, Any]) -> dict[str, Any]:
    text = output["texts"][0] if output["texts"] else {"text": output["message"], "length": 0}
    off = []
    for leaf in output["differing"]:
        values = [abridged("".join(text for text, _ in leaf[side]), _VALUE) for side in ("truth", "output")]
        off.append([leaf["at"], leaf["field"], leaf["outcome"], *values])
    return {
        "case": case_id,
        **{name: output[name] for name in ("replicates", "times", "outcome", "reason", "score", "metrics")},
        "planned": planned,
        "off": off[:_LEAVES],
        "fields": sorted({field for _, field, *_ in off}),
        "more": max(0, len(off) - _LEAVES) + output["left"],
        **text,
    }


def _worst(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what puts the rows in order: what was not scored, then the lowest scores, those without one last."""
    score = 2.0 if row["score"] is None else row["score"]
    return row["outcome"] == "scored", score, -len(row["off"]), row["case"], -row["times"]


class Note(StrictModel):
    """What a person says of an answer: a line of the run's notes. `new_case` waits for its document."""

    case_id: CaseId
    replicate: NonNegativeInt
    note: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
    new_case: FileName | None = None


def _notes_of(run: ShownRun) -> Path:
    return run.recorded.component.records_dir.with_name("notes") / f"{run.id}.jsonl"


def _write_notes(site: SiteFolder, run: ShownRun, key: str) -> None:
    shown: dict[str, Any] = {"notes": [], "problem": ""}
    try:
        if (path := _notes_of(run)).exists():
            shown["notes"] = [note.model_dump() for _, note in read_checked(path, Note.model_validate, RunError)]
    except SkillEvaluatorError as problem:
        shown["problem"] = str(problem)
    site.write_data(f"{key}/notes", shown, None)


def _keep(
    site: SiteFolder, run: ShownRun, cases: Mapping[str, Case], fixtures: Path | None, key: str, note: Note
) -> str:
    """Keep a note, and make the case that it asks for; return where they are."""
    path, told = _notes_of(run), ""
    answer = run.answer(note.case_id, note.replicate)
    if note.new_case is not None:
        if note.new_case in cases:
            raise FixtureError(f"case '{note.new_case}' exists already; choose a different id")
        place = place_of_new(run.recorded.component, fixtures, [note.new_case], "choose a different id")
        of = f"Noted on case {note.case_id}, replicate {note.replicate} of run {run.entry.run_id}, which answered:"
        write_cases(place, {note.new_case: {SOURCE: f"{note.note}\n\n{of}\n\n{code_block(answer)}\n"}})
        told = f" {place / note.new_case} waits for its document and ground truth; {SOURCE} there says why."
    lines = LinesWriter(path)
    lines.append(note.model_dump(exclude_none=True))
    lines.close()
    _write_notes(site, run, key)
    return f"Kept in {path}.{told}"
