"""The page of a case: its document and ground truth, and for each run the scores and the outputs, differences marked.

Every text is cut at a bound, and the page says so.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from skill_evaluator.checks.declared import Check
from skill_evaluator.display import WHOLE, number
from skill_evaluator.display.addresses import case_address, field_anchor, run_address
from skill_evaluator.display.safe_text import abridged, value_pair, visible
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import read_bytes
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.prompts import File
from skill_evaluator.records.archive import RecordedRun
from skill_evaluator.records.record import (
    PASSED_FROM,
    CaseRecord,
    FieldCount,
    Record,
    Row,
    check_path,
    remedy,
    served_text,
)
from skill_evaluator.records.selection import newest_of_versions
from skill_evaluator.reports.explanation import FOUND_AS, how_compared, ranges
from skill_evaluator.runner.journal import ANSWERS, Manifest, has_other_outputs, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import MAX_OUTPUTS, CaseView, DistinctOutput, Leaf, recorded_case_view
from skill_evaluator.site.component import is_flawless
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.writing import SiteFolder, fitting
from skill_evaluator.text import counted, listed, marked_differences
from skill_evaluator.verdicts.history.component import RecordedComponent

_MAX_DOCUMENT = 100_000  # characters
_MAX_TRUTH = 50_000
_MAX_TEXT = 10_000  # characters of an output as it came
_MAX_VALUE = 240  # characters of a value, around the first difference
_MAX_VALUES = 6_000  # characters of all values of an output, if they are few
_MAX_NAME = 200
_MAX_SHOWN_VALUES = 100  # values that differ come first
_MAX_ERRORS = 20
_MAX_TEXTS = 2  # texts that parse to the same output
_MAX_REPLICATES = 50
_MAX_FIELDS = 300
_MAX_RUN, _MAX_RUNS = 200_000, 500_000  # characters of one run and of all runs on a page
_MAX_CASES = 45_000  # characters of the data of the list of cases
_MAX_LINKS = 60_000  # characters of the data of links to cases
_MAX_CASES_OF_A_FIELD = 12
_VERSIONS = 2  # the newest versions of each model whose outputs are shown
_NOT_READ = FieldCount(right=0, n=0)
_MARKS = {"right": "✓", "wrong": "✗", "missing": "∅", "extra": "+", "unscored": "·"}
_STANDINGS = {
    "stable_right": "right in every output",
    "stable_wrong": "wrong in every output",
    "flaky": "flaky: now right, now wrong",
    "stable": "equal in every output, without a ground truth",
    "unscored": "not scored: a single output, or text that does not count",
}
_JUDGED_BY = ("schema", "contract", "datasets")


def case_list(component: str, newest: Mapping[str, Record]) -> dict[str, Any]:
    """Return the cases with each model's score and field stability, the worst first, and the cases of each field.

    `sound` are cases that are right in every output, `rest` those that have no room in the table, and `left` counts the
    cases without a link.
    """
    rows: dict[str, dict[str, Any]] = {}
    for model_id, record in newest.items():
        for kept in record.per_case:
            score = kept.accuracy.get(record.primary_metric)
            case = {"id": kept.case_id, "address": case_address(component, kept.case_id), "models": {}}
            models = rows.setdefault(kept.case_id, case)["models"]
            models[model_id] = [score and score.strict_mean, Counter(kept.profile.values())]
    ordered = sorted(rows.values(), key=lambda row: (_lowest(row), row["id"]))
    is_sound = [all(is_flawless(profile) for _, profile in row["models"].values()) for row in ordered]
    worst = [row for row, sound in zip(ordered, is_sound, strict=True) if not sound]
    shown, _ = fitting(worst, _MAX_CASES)
    rest, left = _links(worst[len(shown) :])
    sound, sound_left = _links(row for row, sound in zip(ordered, is_sound, strict=True) if sound)
    return {
        "metric": ", ".join(sorted({record.primary_metric for record in newest.values()})),
        "rows": shown,
        "sound": sound,
        "rest": rest,
        "left": left + sound_left,
        "by_field": fitting(_cases_by_field(component, newest), _MAX_LINKS)[0],
    }


def _links(rows: Iterable[Mapping[str, Any]]) -> tuple[list[Any], int]:
    return fitting(({"id": row["id"], "address": row["address"]} for row in rows), _MAX_LINKS)


def _lowest(row: Mapping[str, Any]) -> float:
    """Return the lowest score of a case with any model; a case that is not measured comes last."""
    return min(2.0 if score is None else score for score, _ in row["models"].values())


def _cases_by_field(component: str, newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield each field that is wrong or flaky in a case, with these cases by model."""
    fields: dict[str, list[dict[str, Any]]] = {}
    for model_id, record in newest.items():
        for standing, words in (("stable_wrong", "wrong"), ("flaky", "flaky fields")):
            by_path: dict[str, list[str]] = {}
            for kept in record.per_case:
                for path in [path for path, stands in kept.profile.items() if stands == standing]:
                    by_path.setdefault(path, []).append(kept.case_id)
            for path, ids in by_path.items():
                shown = [{"id": name, "address": case_address(component, name)} for name in ids[:_MAX_CASES_OF_A_FIELD]]
                part = {"standing": words, "model": model_id, "cases": shown, "left": max(0, len(ids) - len(shown))}
                fields.setdefault(path, []).append(part)
    for path, parts in fields.items():
        yield {"field": path or WHOLE, "anchor": field_anchor(path), "parts": parts}


def write_cases(
    pages: "Pages",
    recorded: RecordedComponent,
    rows: Sequence[Row],
    state: Mapping[str, Any],
    fixtures: Path | None,
    names: PublicNames | None,
) -> tuple[list["ShownRun"], Mapping[str, Case]]:
    """Write the page of each case. Return the runs whose outputs are here, and the cases by id.

    With `names` documents and outputs are private: only these names are on the pages, and no run is returned.
    """
    component = recorded.component
    runs = list(_shown_runs(recorded, rows, names))
    answered = [run for run in runs if names is None and run.has_outputs]
    cases: Mapping[str, Case] = {}
    why = None
    if names is None:
        try:
            cases = {case.id: case for case in load_cases(component, fixtures)}
        except SkillEvaluatorError as problem:
            why = f"The documents cannot be read: {problem}"
    ids = sorted({case_id for run in runs for case_id in run.case_ids})
    for case_id, *neighbours in zip(ids, [None, *ids], [*ids[1:], None], strict=False):
        case = cases.get(case_id)
        gone = f"Case '{case_id}' is no longer among the fixtures." if names is None and case is None else None
        here = [run for run in runs if case_id in run.case_ids]
        parts = [_fitted(run.part(case_id, case), min(_MAX_RUN, _MAX_RUNS // len(here))) for run in here]
        pages.write(
            case_address(component.name, case_id),
            "case.html",
            component=component.name,
            state=state,
            case=case_id,
            private=names is not None,
            why=why or gone,
            neighbours=[None if other is None else case_address(component.name, other) for other in neighbours],
            runs=parts,
            opened=_opened(parts),
            files=[] if case is None else list(_copied_files(pages.site, case)),
            addresses={run.id: run_address(component.name, run.id) for run in here if run in answered},
            marks=_MARKS,
            standings=_STANDINGS,
            **_texts_of(case),
        )
    return answered, cases


def _shown_runs(recorded: RecordedComponent, rows: Sequence[Row], names: PublicNames | None) -> Iterator["ShownRun"]:
    """Yield the runs of the newest versions of each model, the newest first."""
    case_ids = {row.run_id: frozenset(case.case_id for case in row.per_case) for row in rows}
    for versions in newest_of_versions(recorded.archive.entries).values():
        for entry in reversed(versions[-_VERSIONS:]):
            if entry.run_id in case_ids:
                yield ShownRun(entry=entry, case_ids=case_ids[entry.run_id], recorded=recorded, names=names)


def _copied_files(site: SiteFolder, case: Case) -> Iterator[tuple[str, str, str, str]]:
    """Copy the files of a document; yield the address, kind, name and description of each."""
    for file in (case.inputs[name] for name in case.used):
        if isinstance(file, File):
            address = f"files/{file.digest.removeprefix('sha256:')[:32]}.{file.media_type.rpartition('/')[2]}"
            site.write(address, read_bytes(file.path))
            yield address, file.kind, file.path.name, str(file)


def _texts_of(case: Case | None) -> dict[str, Any]:
    """Return the document and the ground truth of a case as the page shows them; None if they are private."""
    if case is None:
        return {"document": None, "title": "", "truth": None}
    truth = case.truth if isinstance(case.truth, str) else json.dumps(case.truth, indent=2, ensure_ascii=False)
    return {
        "document": _cut(case.document, _MAX_DOCUMENT),
        "title": case.shown_as.capitalize(),
        "truth": _cut(truth, _MAX_TRUTH) if case.labelled else None,
    }


def _opened(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the model whose runs are unfolded: the first with a field that is wrong or flaky."""
    lost = [part for part in parts if part["standing"]["stable_wrong"] or part["standing"]["flaky"]]
    return str([*lost, *parts][0]["model"])


def _fitted(part: dict[str, Any], room: int) -> dict[str, Any]:
    """Drop the last outputs and fields of a run until it takes at most `room` characters."""
    while part["outputs"] and _size(part) > room:
        others = "Not every output has room here; the run folder has all of them."
        part = {**part, "outputs": part["outputs"][:-1], "others": others}
    while part["fields"] and _size(part) > room:
        kept = part["fields"][: len(part["fields"]) // 2]
        part = {**part, "fields": kept, "more_fields": part["more_fields"] + len(part["fields"]) - len(kept)}
    return part


def _size(part: Mapping[str, Any]) -> int:
    """Estimate the characters of a part of a page: every quote of the JSON counts as an escape."""
    return len(escape(json.dumps(part, ensure_ascii=False)))


def _part(record: Record, kept: CaseRecord) -> dict[str, Any]:
    """Return the scores of a case in a run, as its record has them."""
    score = kept.accuracy.get(record.primary_metric)
    return {
        "run": record.run_id,
        "model": record.model_id,
        "version": record.skill_version,
        "metric": record.primary_metric,
        "score": None if score is None else score.strict_mean,
        "metrics": list(kept.replicates),
        "replicates": [
            [outcome, *(values[at] if at < len(values) else None for values in kept.replicates.values())]
            for at, outcome in enumerate(kept.outcomes[:_MAX_REPLICATES])
        ],
        "planned": len(kept.outcomes),
        "spread": _spread(record, kept),
        "standing": Counter(kept.profile.values()),
        "checks": kept.pass_text(record.primary_metric) if kept.checks else None,
        "fields": [
            {"field": path or WHOLE, "standing": standing, "right": counts.right, "n": counts.n}
            for path, standing in list(kept.profile.items())[:_MAX_FIELDS]
            for counts in [kept.fields.get(path, _NOT_READ)]
        ],
        "more_fields": max(0, len(kept.profile) - _MAX_FIELDS),
        "why": None,
        "remarks": [],
        "settings": [],
        "outputs": [],
        "others": "",
    }


def _outputs(record: Record, view: CaseView) -> dict[str, Any]:
    """Return the distinct outputs of a case in a run, and the settings of its requests."""
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
        "the run folder has all of them."
    )
    return {
        "settings": [(name, abridged(text, 4 * _MAX_VALUE)) for name, text in texts.items()],
        "outputs": [_output(record, output) for output in view.outputs],
        "others": others if view.others else "",
        "fields": [],
        "more_fields": 0,
    }


def _spread(record: Record, kept: CaseRecord) -> str:
    """Count each score, or the outcome of a call without a score, the commonest first."""
    scores = kept.replicates.get(record.primary_metric, [])
    times = Counter(
        number(score) if score is not None else outcome for score, outcome in zip(scores, kept.outcomes, strict=False)
    )
    return listed([f"{many} × {words}" for words, many in times.most_common()], 4)


def _output(record: Record, output: DistinctOutput) -> dict[str, Any]:
    """Return a distinct output: its values and ground truth, differences first, and its texts."""
    answer = output.answer
    failure = answer.replicate.failure if answer.replicate else None
    longest = max(_MAX_VALUE, _MAX_VALUES // max(1, len(output.leaves)))
    checks = [_check(check, score) for check, (score, _) in output.checks if score is not None][:_MAX_SHOWN_VALUES]
    leaves = sorted(output.leaves, key=lambda leaf: leaf.outcome in ("right", "unscored"))
    values = [*checks, *(_value(leaf, longest) for leaf in leaves[:_MAX_SHOWN_VALUES])]
    differing = [value for value in values if value["outcome"] not in ("right", "unscored")]
    return {
        "replicates": ranges(output.replicates),
        "times": len(output.replicates),
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": abridged(failure.message, 2 * _MAX_VALUE) if failure and failure.kind != "refused" else "",
        "remedy": remedy(answer.reason, record.model_id) if answer.reason else None,
        "found": FOUND_AS.get(answer.parsed.found) if answer.parsed else None,
        "score": output.metrics.get(record.primary_metric),
        "metrics": dict(output.metrics),
        "unmarked": output.unmarked,
        "differing": differing,
        "alike": [value for value in values if value not in differing],
        "counts": Counter([*(leaf.outcome for leaf in output.leaves), *(one["outcome"] for one in checks)]),
        "left": max(0, len(output.leaves) - _MAX_SHOWN_VALUES),
        "errors": [abridged(error, 2 * _MAX_VALUE) for error in output.schema_errors[:_MAX_ERRORS]],
        "texts": [_cut(text, _MAX_TEXT) for text in output.texts[:_MAX_TEXTS]],
        "others": len(output.texts) - min(len(output.texts), _MAX_TEXTS),
    }


def _check(check: Check, score: float) -> dict[str, Any]:
    passed = score >= PASSED_FROM
    return {
        "at": check_path(check.id),
        "field": check_path(check.id),
        "outcome": "right" if passed else "wrong",
        "truth": [(abridged(check.words, _MAX_VALUE), False)],
        "output": [("passed" if passed else "failed", False)],
        "how": f"check, scored {number(score)}",
    }


def _value(leaf: Leaf, longest: int) -> dict[str, Any]:
    """Return a value and its ground truth; differing characters are marked if the two have a word in common."""
    texts = value_pair(leaf.row.truth, leaf.row.output, longest)
    parts = marked_differences(*texts) if leaf.outcome == "wrong" else ([], [])
    if not any(not own and any(map(str.isalnum, part)) for part, own in parts[0]):
        parts = [(texts[0], False)], [(texts[1], False)]
    return {
        "at": abridged(leaf.at, _MAX_NAME) or WHOLE,
        "field": leaf.row.path or WHOLE,
        "outcome": leaf.outcome,
        "truth": parts[0],
        "output": parts[1],
        "how": how_compared(leaf),
    }


def _cut(text: str, most: int) -> dict[str, Any]:
    """Return the beginning of a text with every character visible, and the length of the text."""
    whole = visible(text[:most], keep="\n\t")
    shown = whole[: 2 * most]
    while len(escape(shown).encode("utf-8", "backslashreplace")) > 3 * most:
        shown = shown[: len(shown) * 3 // 4]
    return {"text": shown, "length": len(text), "cut": len(text) > most or len(shown) < len(whole)}


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A run on the pages of cases; its record and its outputs are read when they are needed."""

    entry: RecordedRun
    case_ids: frozenset[str]
    recorded: RecordedComponent
    names: PublicNames | None

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.entry.run_id

    @property
    def _folder(self) -> Path:
        return self.recorded.component.results_dir / self.id

    @property
    def has_outputs(self) -> bool:
        """Whether the folder with its outputs is here."""
        return (self._folder / ANSWERS).is_file()

    @cached_property
    def record(self) -> Record:
        """The record of the run, without the names that are private."""
        record = self.recorded.archive.record(self.entry)
        return record if self.names is None else self.names.record(record)

    @cached_property
    def _kept(self) -> Mapping[str, CaseRecord]:
        return {kept.case_id: kept for kept in self.record.per_case}

    @cached_property
    def _outcomes(self) -> tuple[Manifest, Mapping[Call, Replicate]]:
        return read_component_manifest(self._folder), outcomes(self._folder)

    @cached_property
    def _remarks(self) -> list[str]:
        """The changes since the record of the run was made."""
        digests = self.recorded.component.digests
        changed = [name for name in _JUDGED_BY if self.record.digests.get(name) != digests.get(name)]
        remarks = []
        if changed:
            remarks.append(f"Changed since these outputs were scored, and marked by the new files: {listed(changed)}.")
        if has_other_outputs(self.record, self._folder, *self._outcomes):
            remarks.append("The record was made from other outputs: one of the two was edited.")
        return remarks

    def part(self, case_id: str, case: Case | None, most: int = MAX_OUTPUTS) -> dict[str, Any]:
        """Return the scores of a case, with at most `most` distinct outputs if they are here."""
        record, kept = self.record, self._kept[case_id]
        part = _part(record, kept)
        if case is None:
            return part
        if not self.has_outputs:
            why = f"The outputs of this run are not here (evals/results/{record.run_id}): these are its scores."
            return {**part, "why": why}
        try:
            _, journal = self._outcomes
            changed = None if case.was(kept.digest) else "the case was changed since the run"
            replicates = [journal.get(Call(case_id, index)) for index in range(len(kept.outcomes))]
            view = recorded_case_view(self.recorded.component, case, replicates, kept, changed, most)
            return {**part, "remarks": self._remarks, **_outputs(record, view)}
        except SkillEvaluatorError as problem:
            return {**part, "why": f"The outputs cannot be shown: {problem}"}
