"""A case's page: document and truth, and for each run the scores of its record and its distinct outputs, marked.

Every text is cut at a bound, and says so: a page stays usable whatever a document or an answer holds.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from skill_evaluator.checks.declared import Check
from skill_evaluator.display import WHOLE, number
from skill_evaluator.display.addresses import case_address, field_anchor
from skill_evaluator.display.safe_text import abridged, value_pair, visible
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.messages import File
from skill_evaluator.records.archive import RecordedRun
from skill_evaluator.records.faults import remedy
from skill_evaluator.records.record import PASSED_FROM, CaseRecord, FieldCount, Record, Row, check_path
from skill_evaluator.records.selection import newest_of_versions
from skill_evaluator.records.served import served_text
from skill_evaluator.reports.explanation import FOUND_AS, how_compared, ranges
from skill_evaluator.runner.journal import ANSWERS, Manifest, has_other_answers, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import MOST_OUTPUTS, CaseView, DistinctOutput, Leaf, recorded_case_view
from skill_evaluator.site.component import is_flawless
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.writing import SiteFolder, data_script, fitting, program_digest
from skill_evaluator.text import canonical_json, counted, digest, listed, marked_differences
from skill_evaluator.verdicts.history.component import RecordedComponent

_DOCUMENT = 100_000  # characters of a document
_TRUTH = 50_000
_TEXT = 10_000  # of an answer as it came
_VALUE = 240  # of a value, around the place where truth and output differ
_VALUES = 6_000  # of all values of an output together, where they are few
_NAME = 200
_LEAVES = 100  # of an output, those that differ first
_ERRORS = 20
_TEXTS = 2  # that say the same
_REPLICATES = 50
_FIELDS = 300  # of a run
_FIELD_NAMES = 100_000  # characters, in the list of cases
_CASES = 45_000  # characters of the data of the list of cases
_LINKS = 60_000  # of the data of links to cases
_CASES_OF_A_FIELD = 12
_NONE = FieldCount(right=0, n=0)  # of a field of which nothing was read
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,80}")


def case_key(component: str, case_id: str) -> str:
    """Return the key of a case's data, and so the name of its file: the case's id, or a digest where that cannot be.

    >>> case_key("receipts", "booking"), case_key("receipts", "../Ä")
    ('cases/receipts/booking', 'cases/receipts/-----e0a15ce81b')
    """
    if _PLAIN.fullmatch(case_id):
        return f"cases/{component}/{case_id}"
    plain = re.sub(r"[^a-z0-9_-]", "-", case_id[:40])
    return f"cases/{component}/{plain}-{digest(case_id)[-10:]}"


def case_list(component: str, newest: Mapping[str, Record]) -> dict[str, Any]:
    """Return the cases with each model's score and how the fields stand, the worst first, and the cases of each field.

    Cases that are right in every output, and those for which a page has no room, are `sound` and `rest`.
    """
    by_case: dict[str, dict[str, Any]] = {}
    for model_id, record in newest.items():
        for kept in record.per_case:
            score = kept.accuracy.get(record.primary_metric)
            by_case.setdefault(kept.case_id, {})[model_id] = [
                score and score.strict_mean,
                Counter(kept.profile.values()),
            ]
    rows: list[dict[str, Any]] = [
        {"id": case_id, "address": case_address(component, case_id), "models": by_case[case_id]}
        for case_id in sorted(by_case)
    ]
    sound = [row for row in rows if all(is_flawless(profile) for _, profile in row["models"].values())]
    worst = sorted((row for row in rows if row not in sound), key=_lowest)
    shown, _ = fitting(worst, _CASES)
    links = [{"id": row["id"], "address": row["address"]} for row in worst[len(shown) :]]
    rest, left = fitting(links, _LINKS)
    kept_sound, sound_left = fitting(({"id": row["id"], "address": row["address"]} for row in sound), _LINKS)
    return {
        "metric": ", ".join(sorted({record.primary_metric for record in newest.values()})),
        "rows": shown,
        "sound": kept_sound,
        "rest": rest,
        "left": left + sound_left,
        "by_field": fitting(_cases_by_field(component, newest), _LINKS)[0],
    }


def _lowest(row: Mapping[str, Any]) -> float:
    """Return the lowest score of a case with any model; a case that is not measured comes last."""
    return min(2.0 if score is None else score for score, _ in row["models"].values())


def _cases_by_field(component: str, newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield each field that is wrong or flaky in a case, with these cases by model."""
    fields: dict[str, list[dict[str, Any]]] = {}
    for model_id, record in newest.items():
        for standing, words in (("stable_wrong", "wrong"), ("flaky", "flaky")):
            by_path: dict[str, list[str]] = {}
            for kept in record.per_case:
                for path in [path for path, stands in kept.profile.items() if stands == standing]:
                    by_path.setdefault(path, []).append(kept.case_id)
            for path, ids in by_path.items():
                shown = [{"id": name, "address": case_address(component, name)} for name in ids[:_CASES_OF_A_FIELD]]
                part = {"standing": words, "model": model_id, "cases": shown, "left": max(0, len(ids) - len(shown))}
                fields.setdefault(path, []).append(part)
    for path, parts in fields.items():
        yield {"field": path or WHOLE, "anchor": field_anchor(path), "parts": parts}


def _file_of(file: File) -> dict[str, str]:
    """Return how a page shows a file, and where it is copied to."""
    name = f"files/{file.digest.removeprefix('sha256:')[:32]}.{file.media_type.rpartition('/')[2]}"
    return {"at": name, "kind": file.kind, "name": file.path.name, "words": str(file)}


def _files_of(case: Case | None) -> list[File]:
    values = [] if case is None else [case.inputs[name] for name in case.used]
    return [value for value in values if isinstance(value, File)]


def case_head(
    component: str, case_id: str, case: Case | None, why: str | None, run_ids: Sequence[str]
) -> dict[str, Any]:
    """Return what is the same for all runs of a case; `why` says why its texts are not shown."""
    head: dict[str, Any] = {"component": component, "case": case_id, "why": why, "runs": list(run_ids)}
    head["files"] = [_file_of(file) for file in _files_of(case)]
    if case is None:
        return {**head, "document": None, "truth": None}
    truth = case.truth if isinstance(case.truth, str) else json.dumps(case.truth, indent=2, ensure_ascii=False)
    return {
        **head,
        "document": _cut(case.document, _DOCUMENT),
        "title": case.shown_as.capitalize(),
        "truth": _cut(truth, _TRUTH) if case.labelled else None,
    }


def run_part(record: Record, kept: CaseRecord, why: str | None, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the record of a run says of a case; `why` says why no answer is shown."""
    score = kept.accuracy.get(record.primary_metric)
    return {
        "run": record.run_id,
        "model": record.model_id,
        "version": record.skill_version,
        "timestamp": record.timestamp,
        "metric": record.primary_metric,
        "score": None if score is None else score.strict_mean,
        "scores": {
            name: {
                "strict_mean": kept.accuracy[name].strict_mean if name in kept.accuracy else None,
                "replicates": values[:_REPLICATES],
            }
            for name, values in kept.replicates.items()
        },
        "outcomes": kept.outcomes[:_REPLICATES],
        "planned": len(kept.outcomes),
        "spread": _spread(record, kept),
        "standing": Counter(kept.profile.values()),
        "fields": [
            {"field": path or WHOLE, "standing": standing, "right": counts.right, "n": counts.n}
            for path, standing in list(kept.profile.items())[:_FIELDS]
            for counts in [kept.fields.get(path, _NONE)]
        ],
        "fieldsLeft": max(0, len(kept.profile) - _FIELDS),
        "words": _words(kept, record.primary_metric),
        "why": why,
        "remarks": list(remarks),
        "settings": None,
        "outputs": None,
        "others": "",
    }


def with_answers(part: Mapping[str, Any], record: Record, view: CaseView) -> dict[str, Any]:
    """Return a run's part with its distinct outputs and the settings of its requests."""
    settings = {} if record.settings is None else record.settings.model_dump(mode="json")
    served = served_text(record.served_model)
    facts = {"served model": served, "run": record.run_id, "seed": record.seed, **settings}
    texts = {
        name.replace("_", " "): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in facts.items()
        if value not in (None, [], {})
    }
    others = (
        f"{counted(view.others, 'more distinct output')}, by {counted(view.others_replicates, 'replicate')}: "
        "the run folder has them all."
    )
    return {
        **part,
        "settings": [{"name": name, "value": abridged(text, 4 * _VALUE)} for name, text in texts.items()],
        "outputs": [_output(record, output) for output in view.outputs],
        "others": others if view.others else "",
    }


def _words(kept: CaseRecord, primary_metric: str) -> str:
    """Say how often a case with checks passes, which fields are wrong and which are flaky, as the record has them."""
    standings: dict[str, list[str]] = {}
    for path, standing in kept.profile.items():
        standings.setdefault(standing, []).append(path or WHOLE)
    passes = kept.words(primary_metric) if kept.checks else None
    said = [passes] if passes else []
    said += [
        f"{words}: {listed(standings[standing], 4)}"
        for standing, words in (("stable_wrong", "wrong in every answer"), ("flaky", "now right, now wrong"))
        if standing in standings
    ]
    if said:
        words = "; ".join(said)
        return words[0].upper() + words[1:]
    return "Right in every answer" if "stable_right" in standings else ""


def _spread(record: Record, kept: CaseRecord) -> str:
    """Say how often which score was reached, or what became of the call instead, the commonest first."""
    scores = kept.replicates.get(record.primary_metric, [])
    times = Counter(
        number(score) if score is not None else outcome for score, outcome in zip(scores, kept.outcomes, strict=False)
    )
    return listed([f"{many} × {words}" for words, many in times.most_common()], 4)


def _output(record: Record, output: DistinctOutput) -> dict[str, Any]:
    answer = output.answer
    parsed = answer.parsed
    failure = answer.replicate.failure if answer.replicate else None
    differing = [leaf for leaf in output.leaves if leaf.outcome not in ("right", "unscored")]
    alike = [leaf for leaf in output.leaves if leaf.outcome in ("right", "unscored")]
    checks = [_check(check, score) for check, (score, _) in output.checks if score is not None][:_LEAVES]
    shown = differing[:_LEAVES]
    longest = max(_VALUE, _VALUES // max(1, len(output.leaves)))
    return {
        "replicates": ranges(output.replicates),
        "times": len(output.replicates),
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": abridged(failure.message, 2 * _VALUE) if failure and failure.kind != "refused" else "",
        "remedy": remedy(answer.reason, record.model_id) if answer.reason else None,
        "found": FOUND_AS.get(parsed.found) if parsed else None,
        "score": output.metrics.get(record.primary_metric),
        "metrics": dict(output.metrics),
        "unmarked": output.unmarked,
        "differing": [one for one in checks if one["outcome"] != "right"] + [_leaf(leaf, longest) for leaf in shown],
        "alike": [one for one in checks if one["outcome"] == "right"]
        + [_leaf(leaf, longest) for leaf in alike[: _LEAVES - len(shown)]],
        "counts": Counter([*(leaf.outcome for leaf in output.leaves), *(one["outcome"] for one in checks)]),
        "left": max(0, len(output.leaves) - _LEAVES),
        "errors": [abridged(error, 2 * _VALUE) for error in output.schema_errors[:_ERRORS]],
        "texts": [_cut(text, _TEXT) for text in output.texts[:_TEXTS]],
        "others": len(output.texts) - min(len(output.texts), _TEXTS),
    }


def _check(check: Check, score: float) -> dict[str, Any]:
    passed = score >= PASSED_FROM
    return {
        "at": check_path(check.id),
        "field": check_path(check.id),
        "outcome": "right" if passed else "wrong",
        "truth": [(abridged(check.words, _VALUE), False)],
        "output": [("passed" if passed else "failed", False)],
        "how": f"check, scored {number(score)}",
    }


def _leaf(leaf: Leaf, longest: int) -> dict[str, Any]:
    texts = value_pair(leaf.row.truth, leaf.row.output, longest)
    parts = marked_differences(*texts) if leaf.outcome == "wrong" else ([], [])
    if not any(
        not own and any(map(str.isalnum, part)) for part, own in parts[0]
    ):  # nothing in common to stand out from
        parts = [(texts[0], False)], [(texts[1], False)]
    return {
        "at": abridged(leaf.at, _NAME) or WHOLE,
        "field": leaf.row.path or WHOLE,
        "outcome": leaf.outcome,
        "truth": parts[0],
        "output": parts[1],
        "how": how_compared(leaf),
    }


def _cut(text: str, most: int) -> dict[str, Any]:
    """Return the beginning of a text, and how long it is in all."""
    shown = visible(text[:most], keep="\n\t")
    return {"text": shown[: 2 * most], "length": len(text), "cut": len(text) > most or len(shown) > 2 * most}


_VERSIONS = 2  # of each model, the newest: their answers are shown
_LARGEST_FILE = 3_000_000  # bytes of all runs of a case together
_LARGEST_RUN = 200_000
_LONGEST_ID = 1_000  # characters: a case is looked up by its whole id
SHOWN_BY = ("text.py", "comparing/*.py", "parsing/*.py", "scoring/*.py", "display/*.py", "reports/*.py", "site/*.py")
JUDGED_BY = ("schema", "contract", "datasets")
_PRIVATE = (
    "Documents, ground truths and outputs of this component are private: here are the scores of its records. "
    "On a machine that has them `skill-evaluator site serve` shows them, and `skill-evaluator site build --outputs` "
    "writes them; site: {{components: {{{}: {{documents: true}}}}}} in .evaluator/settings.yaml publishes them."
)


def write_cases(
    site: SiteFolder,
    recorded: RecordedComponent,
    rows: Sequence[Row],
    fixtures: Path | None,
    names: PublicNames | None,
) -> tuple[list["ShownRun"], Mapping[str, Case]]:
    """Write the list of a component's cases and a file for each; return the runs whose answers are here, and the cases.

    With `names` its texts are private: only these may be in the files, and no run is returned.
    """
    component = recorded.component
    digests = recorded.archive.digests()
    case_ids = {row.run_id: frozenset(case.case_id for case in row.per_case) for row in rows}
    runs = [
        ShownRun(
            entry=entry,
            case_ids=case_ids[entry.run_id],
            digest=digests.get(entry.run_id, ""),
            recorded=recorded,
            names=names,
        )
        for versions in newest_of_versions(recorded.archive.entries).values()
        for entry in reversed(versions[-_VERSIONS:])
        if entry.run_id in case_ids
    ]
    answered = [run for run in runs if names is None and run.has_answers]
    keys = {
        case_id: case_key(component.name, case_id) for case_id in sorted({id for run in runs for id in run.case_ids})
    }
    index = {
        "cases": [{"id": case_id, "key": key} for case_id, key in keys.items()],
        "runs": [{"run": run.id, "model": run.entry.model_id, "version": run.entry.version} for run in answered],
    }
    site.write_data(f"cases/{component.name}", index, _LONGEST_ID)
    cases: Mapping[str, Case] = {}
    why = None if names is None else _PRIVATE.format(component.name)
    if names is None:
        try:
            cases = {case.id: case for case in load_cases(component, fixtures)}
        except SkillEvaluatorError as problem:
            why = f"The documents cannot be read: {problem}"
    for case_id in dict.fromkeys(case_id for run in runs for case_id in run.case_ids):
        mine = [run for run in runs if case_id in run.case_ids]
        case = cases.get(case_id)
        absent = why or (None if case is not None else f"Case '{case_id}' is no longer among the fixtures.")
        make = partial(_write_case, site, component, case_id, case, absent, mine)
        site.when_opened(f"data/{case_key(component.name, case_id)}.js", make)
    return answered, cases


def _write_case(
    site: SiteFolder, component: Component, case_id: str, case: Case | None, why: str | None, runs: Sequence["ShownRun"]
) -> None:
    """Write the file of a case, unless one is there that shows the same, and copy what its document is."""
    for file in _files_of(case):
        site.copy(_file_of(file)["at"], file.path)
    key = case_key(component.name, case_id)
    name = f"data/{key}.js"
    room = min(_LARGEST_RUN, _LARGEST_FILE // max(1, len(runs)))
    shared = {
        "program": program_digest(*SHOWN_BY),
        "case": None if case is None else case.digest,
        "why": why,
        "rules": {name: component.digests.get(name) for name in JUDGED_BY},
        "room": room,
    }
    digests = [digest(canonical_json({**shared, **run.shown(case is not None)})) for run in runs]
    first_line = f"/* {digest(canonical_json([shared, digests]))} */"
    if site.keeps(name, first_line):
        return
    earlier = {line.split(" ", 2)[1]: line for line in site.lines(name)[2:] if line.startswith("/* ")}
    head = data_script(key, case_head(component.name, case_id, case, why, [run.id for run in runs]))
    lines = [
        earlier.get(mark) or f"/* {mark} */ {run.script(key, case_id, case, room)}".rstrip("\n")
        for mark, run in zip(digests, runs, strict=True)
    ]
    site.write(name, "\n".join([first_line, head.rstrip("\n"), *lines, ""]))


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A run that is shown case by case; its record and its answers are read when something of them is needed.

    `digest` is that of its record as it is now.
    """

    entry: RecordedRun
    case_ids: frozenset[str]
    digest: str
    recorded: RecordedComponent
    names: PublicNames | None

    @property
    def id(self) -> str:
        """The run's id, which is the name of a file."""
        return self.entry.run_id

    @property
    def _folder(self) -> Path:
        return self.recorded.component.results_dir / self.id

    @property
    def has_answers(self) -> bool:
        """Whether the folder with its answers is here."""
        return (self._folder / ANSWERS).is_file()

    def shown(self, with_answers: bool) -> dict[str, object]:
        """Return what tells whether anything that is shown of the run changed."""
        path = self._folder / ANSWERS
        stat = path.stat() if with_answers and path.is_file() else None
        return {
            "run": self.id,
            "record": self.digest,
            "answers": None if stat is None else [stat.st_size, stat.st_mtime_ns],
        }

    @cached_property
    def record(self) -> Record:
        """Its record, without the names that are private."""
        record = self.recorded.archive.record(self.entry)
        return record if self.names is None else self.names.record(record)

    @cached_property
    def _answers(self) -> tuple[Manifest, Mapping[Call, Replicate]]:
        return read_component_manifest(self._folder), outcomes(self._folder)

    @cached_property
    def _remarks(self) -> list[str]:
        """What of the run changed since its record was made."""
        digests = self.recorded.component.digests
        changed = [name for name in JUDGED_BY if self.record.digests.get(name) != digests.get(name)]
        remarks = []
        if changed:
            what = ", ".join(changed)
            remarks.append(f"Changed since these answers were scored, and marked by what it is now: {what}.")
        if has_other_answers(self.record, self._folder, *self._answers):
            remarks.append("These are not the answers that the record was made of: one of the two was edited.")
        return remarks

    def part(self, case_id: str, case: Case | None, most: int = MOST_OUTPUTS) -> dict[str, Any]:
        """Return what is shown of a case, with at most `most` distinct outputs."""
        record = self.record
        kept = next(kept for kept in record.per_case if kept.case_id == case_id)
        if case is None:
            return run_part(record, kept, None)
        if not self.has_answers:
            why = f"The raw answers of this run are not here (evals/results/{record.run_id}): these are its scores."
            return run_part(record, kept, why)
        try:
            _, journal = self._answers
            changed = None if case.was(kept.digest) else "the case was changed since it was asked"
            replicates = [journal.get(Call(case_id, index)) for index in range(len(kept.outcomes))]
            view = recorded_case_view(self.recorded.component, case, replicates, kept, changed, most)
            return with_answers(run_part(record, kept, None, self._remarks), record, view)
        except SkillEvaluatorError as problem:
            return run_part(record, kept, f"The raw answers cannot be shown: {problem}")

    def script(self, key: str, case_id: str, case: Case | None, room: int) -> str:
        """Return the shown part of a case, within a number of bytes."""
        part, place = self.part(case_id, case), f"{key}/{self.record.run_id}"
        all_outputs = "Not every output has room here; the run folder has them all."
        script = data_script(place, part)
        while len(script.encode("utf-8", "backslashreplace")) > room and part["outputs"]:
            part = {**part, "outputs": part["outputs"][:-1], "others": all_outputs}
            script = data_script(place, part)
        return script
