"""The cases of a component on the site: what is written of each, from its records and the answers at hand.

A file of a case has a line for each run, after the digest of all that it shows. So a case of which nothing changed is
not looked at, and of another only the runs that are new are read and explained.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.records.record import Record, Row
from skill_evaluator.records.selection import newest_of_versions
from skill_evaluator.runner.journal import ANSWERS, Manifest, has_other_answers, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.case_view import case_view
from skill_evaluator.site.case import (
    case_head,
    case_key,
    cases_index,
    run_part,
    with_answers,
    without_last_output,
)
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.writing import SiteFolder, data_script
from skill_evaluator.text import canonical_json, digest
from skill_evaluator.verdicts.history.cache import program_digest

_VERSIONS = 2  # of each model, the newest: their answers are shown
_LARGEST_FILE = 3_000_000  # bytes of all runs of a case together
_LARGEST_RUN = 200_000
_LONGEST_ID = 1_000  # characters: a case is looked up by its whole id
_SHOWN_BY = ("text.py", "comparing/*.py", "parsing/*.py", "scoring/*.py", "display/*.py", "reports/**/*.py")
_JUDGED_BY = ("schema", "contract", "datasets")


def write_cases(
    site: SiteFolder,
    component: Component,
    archive: Archive,
    rows: Sequence[Row],
    digests: Mapping[str, str],
    newest: Mapping[str, Record],
    fixtures: Path | None,
    names: PublicNames | None,
) -> None:
    """Write the list of a component's cases and a file for each.

    `digests` are those of its records by run id. With `names` its texts are private, and only these may be in the
    files; `newest` holds no others.
    """
    index = cases_index(component.name, newest)
    keys = index.pop("keys")
    site.write_data(f"cases/{component.name}", index, _LONGEST_ID)
    if keys:
        site.write_data(f"case-keys/{component.name}", keys, _LONGEST_ID)
    by_run = {row.run_id: row for row in rows}
    runs = [
        _Run(entry, by_run[entry.run_id], archive, component, digests.get(entry.run_id, ""), names)
        for versions in newest_of_versions(archive.entries).values()
        for entry in reversed(versions[-_VERSIONS:])
        if entry.run_id in by_run
    ]
    cases, why = _texts(component, fixtures) if names is None else ({}, _private(component.name))
    for case_id in dict.fromkeys(case_id for run in runs for case_id in run.case_ids):
        mine = [run for run in runs if case_id in run.case_ids]
        case = cases.get(case_id)
        absent = why or (None if case is not None else f"Case '{case_id}' is no longer among the fixtures.")
        make = partial(_write_case, site, component, case_id, case, absent, mine)
        site.when_opened(f"data/{case_key(component.name, case_id)}.js", make)


def _texts(component: Component, fixtures: Path | None) -> tuple[Mapping[str, Case], str | None]:
    """Return the cases whose documents and truths are here, or why there are none."""
    try:
        return {case.id: case for case in load_cases(component, fixtures)}, None
    except SkillEvaluatorError as problem:
        return {}, f"The documents cannot be read: {problem}"


def _private(name: str) -> str:
    return (
        "Documents, ground truths and answers of this component are private: here are the scores of its records. "
        "skill-evaluator site serve shows the rest on a machine that has it; "
        f"site: {{components: {{{name}: {{documents: true}}}}}} in .evaluator/settings.yaml publishes it."
    )


def _write_case(
    site: SiteFolder, component: Component, case_id: str, case: Case | None, why: str | None, runs: Sequence["_Run"]
) -> None:
    """Write the file of a case, unless one is there that shows the same."""
    key = case_key(component.name, case_id)
    name = f"data/{key}.js"
    room = min(_LARGEST_RUN, _LARGEST_FILE // max(1, len(runs)))
    shared = {
        "program": program_digest(_SHOWN_BY),
        "case": None if case is None else case.digest,
        "why": why,
        "rules": {name: component.digests.get(name) for name in _JUDGED_BY},
        "room": room,
    }
    digests = [digest(canonical_json({**shared, **run.shown(case is not None)})) for run in runs]
    first_line = f"/* {digest(canonical_json([shared, digests]))} */"
    if site.keeps(name, first_line):
        return
    earlier = {line.split(" ", 2)[1]: line for line in site.lines(name)[2:] if line.startswith("/* ")}
    head = data_script(key, case_head(component.name, case_id, case, why, [run.entry.run_id for run in runs]))
    lines = [
        earlier.get(mark) or f"/* {mark} */ {run.script(key, case_id, case, room)}".rstrip("\n")
        for mark, run in zip(digests, runs, strict=True)
    ]
    site.write(name, "\n".join([first_line, head.rstrip("\n"), *lines, ""]))


class _Run:
    """A run that is shown case by case; its record and its answers are read when something of them is needed."""

    def __init__(
        self,
        entry: RecordedRun,
        row: Row,
        archive: Archive,
        component: Component,
        digest: str,
        names: PublicNames | None,
    ) -> None:
        """`digest` is that of its record as it is now."""
        self.entry = entry
        self.case_ids = frozenset(case.case_id for case in row.per_case)
        self._digest = digest
        self._names = names
        self._archive = archive
        self._component = component
        self._folder = component.results_dir / entry.run_id

    def shown(self, with_answers: bool) -> dict[str, object]:
        """Return what tells whether anything that is shown of the run changed."""
        path = self._folder / ANSWERS
        stat = path.stat() if with_answers and path.is_file() else None
        return {
            "run": self.entry.run_id,
            "record": self._digest,
            "answers": None if stat is None else [stat.st_size, stat.st_mtime_ns],
        }

    @cached_property
    def _record(self) -> Record:
        record = self._archive.record(self.entry)
        return record if self._names is None else self._names.record(record)

    @cached_property
    def _answers(self) -> tuple[Manifest, Mapping[Call, Replicate]]:
        return read_component_manifest(self._folder), outcomes(self._folder)

    @cached_property
    def _remarks(self) -> list[str]:
        """What of the run is not as it was when its record was made."""
        digests = self._component.digests
        changed = [name for name in _JUDGED_BY if self._record.digests.get(name) != digests.get(name)]
        remarks = []
        if changed:
            remarks.append(
                f"Changed since these answers were scored, and marked by what it is now: {', '.join(changed)}."
            )
        if has_other_answers(self._record, self._folder, *self._answers):
            remarks.append("These are not the answers that the record was made of: one of the two was edited.")
        return remarks

    def script(self, key: str, case_id: str, case: Case | None, room: int) -> str:
        """Return what is shown of a case in at most so many bytes."""
        record = self._record
        kept = next(kept for kept in record.per_case if kept.case_id == case_id)
        place = f"{key}/{record.run_id}"
        if case is None:
            return data_script(place, run_part(record, kept, None))
        if not (self._folder / ANSWERS).is_file():
            why = f"The raw answers of this run are not here (evals/results/{record.run_id}): these are its scores."
            return data_script(place, run_part(record, kept, why))
        try:
            _, journal = self._answers
            changed = None if kept.digest == case.digest else "the case was changed since it was asked"
            replicates = [journal.get(Call(case_id, index)) for index in range(len(kept.outcomes))]
            view = case_view(self._component, case, replicates, kept, changed)
            remarks = self._remarks
        except SkillEvaluatorError as problem:
            return data_script(place, run_part(record, kept, f"The raw answers cannot be shown: {problem}"))
        part = with_answers(run_part(record, kept, None, remarks), record, view)
        script = data_script(place, part)
        while len(script.encode("utf-8", "backslashreplace")) > room and part["outputs"]:
            part = without_last_output(part, record, case_id)
            script = data_script(place, part)
        return script
