"""The pages of cases and runs: outputs beside the ground truth, with the differences marked.

Long texts are cut, and the page says so.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from skill_evaluator.checks.declared import Check
from skill_evaluator.comparing.comparison import ComparedLeaf
from skill_evaluator.display import WHOLE, arrow, number
from skill_evaluator.display.addresses import case_address, field_anchor, run_address
from skill_evaluator.display.safe_text import abridged, value_pair, visible
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import read_bytes
from skill_evaluator.library.cases import Case
from skill_evaluator.library.prompts import File
from skill_evaluator.records.archive import RecordedRun
from skill_evaluator.records.record import PASSED_FROM, CaseRecord, Record, Row, check_path, remedy, served_text
from skill_evaluator.records.selection import newest_of_versions
from skill_evaluator.reports.explanation import FOUND_AS, how_compared, ranges
from skill_evaluator.runner.journal import ANSWERS, Manifest, has_other_outputs, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import MAX_OUTPUTS, CaseView, DistinctOutput, recorded_case_view
from skill_evaluator.site.component import is_flawless
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState
from skill_evaluator.site.versions import ComparedComponent
from skill_evaluator.site.writing import SiteFolder, first_rows
from skill_evaluator.text import counted, listed, marked_differences, version_words
from skill_evaluator.verdicts.component import RecordedComponent
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict

_MAX_DOCUMENT = 100_000  # characters
_MAX_TRUTH = 50_000
_MAX_TEXT = 10_000  # characters of an output as it came
_MAX_VALUE = 240  # characters of a value, around the first difference
_MAX_VALUES = 6_000  # characters of all values of an output, if they are few
_MAX_NAME = 200
_MAX_SHOWN_VALUES = 100  # values that differ come first
_MAX_ERRORS = 20
_MAX_TEXTS = 2  # texts that parse to the same output
_MAX_RUN, _MAX_RUNS = 200_000, 500_000  # characters of one run and of all runs on a page
_MAX_CASES = 600  # a row of the list of cases has one case with one model
_MAX_LINKS = 500
_MAX_FIELDS_WITH_CASES = 40
_MAX_CASES_OF_A_FIELD = 12
_VERSIONS = 2  # the newest versions of each model whose outputs are shown
# The page of a run.
_MAX_OUTPUTS = 50  # distinct outputs of a case
_MAX_RUN_ROWS = 300
_MAX_RUN_TEXTS = 300_000  # characters of all outputs; each has an equal part
_JUDGED_BY = ("schema", "contract", "datasets")


def case_list(component: str, newest: Mapping[str, Record]) -> dict[str, Any]:
    """Return the values for the list of cases on the page of a component, by name.

    `rows` has the cases with the score and stabilities of each model, the worst first; `sound` the cases that are right
    in every output; `rest` those for which the table has no room; `left` the number without a link; `by_field` the
    cases of each field.
    """
    rows: dict[str, dict[str, Any]] = {}
    for model_id, record in newest.items():
        for case_record in record.per_case:
            score = case_record.accuracy.get(record.primary_metric)
            case = {"id": case_record.case_id, "address": case_address(component, case_record.case_id), "models": {}}
            models = rows.setdefault(case_record.case_id, case)["models"]
            models[model_id] = [score and score.strict_mean, Counter(case_record.profile.values())]
    for row in rows.values():
        row["lowest"] = min(2.0 if score is None else score for score, _ in row["models"].values())
        row["sound"] = all(is_flawless(profile) for _, profile in row["models"].values())
    ordered = sorted(rows.values(), key=lambda row: (row["lowest"], row["id"]))
    sound = [row for row in ordered if row["sound"]]
    worst = [row for row in ordered if not row["sound"]]
    shown, _ = first_rows(worst, _MAX_CASES // len(newest))
    rest, rest_left = first_rows(worst[len(shown) :], _MAX_LINKS)
    sound, sound_left = first_rows(sound, _MAX_LINKS)
    return {
        "metric": ", ".join(sorted({record.primary_metric for record in newest.values()})),
        "rows": shown,
        "sound": sound,
        "rest": rest,
        "left": rest_left + sound_left,
        "by_field": first_rows(_cases_by_field(component, newest), _MAX_FIELDS_WITH_CASES)[0],
    }


def _cases_by_field(component: str, newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield each field that is wrong or flaky in a case, with the names of these cases for each model."""
    fields: dict[str, list[dict[str, Any]]] = {}
    for model_id, record in newest.items():
        for stability, title in (("stable_wrong", "wrong"), ("flaky", "flaky fields")):
            by_path: dict[str, list[str]] = {}
            for case_record in record.per_case:
                for path in [path for path, value in case_record.profile.items() if value == stability]:
                    by_path.setdefault(path, []).append(case_record.case_id)
            for path, ids in by_path.items():
                shown = [{"id": name, "address": case_address(component, name)} for name in ids[:_MAX_CASES_OF_A_FIELD]]
                part = {"title": title, "model": model_id, "cases": shown, "left": max(0, len(ids) - len(shown))}
                fields.setdefault(path, []).append(part)
    for path, parts in fields.items():
        yield {"field": path or WHOLE, "anchor": field_anchor(path), "parts": parts}


def write_cases(
    pages: Pages, compared: ComparedComponent, names: PublicNames | None
) -> tuple[list["ShownRun"], Mapping[str, Case]]:
    """Write the page of each case. Return the runs whose outputs are on this machine, and the cases by id.

    If `names` is not None, documents and outputs are private: pages show only these names, and no run is returned.
    """
    component = compared.recorded.component
    runs = list(_shown_runs(compared.recorded, compared.rows, names))
    answered = [run for run in runs if names is None and run.has_outputs]
    comparison = compared.comparisons.versions.get(compared.state.version)
    cases: Mapping[str, Case] = {}
    notice = None
    if names is None:
        try:
            cases = compared.cases
        except SkillEvaluatorError as problem:
            notice = f"The documents cannot be read: {problem}"
    ids = sorted({case_id for run in runs for case_id in run.case_ids})
    for case_id, *neighbours in zip(ids, [None, *ids], [*ids[1:], None], strict=False):
        case = cases.get(case_id)
        gone = f"Case '{case_id}' is no longer among the fixtures." if names is None and case is None else None
        here = [run for run in runs if case_id in run.case_ids]
        parts = [_fit_outputs(run.part(case_id, case), min(_MAX_RUN, _MAX_RUNS // len(here))) for run in here]
        lost = [part for part in parts if part["stability"]["stable_wrong"] or part["stability"]["flaky"]]
        pages.write(
            case_address(component.name, case_id),
            "case.html",
            component=component.name,
            state=compared.state,
            case=case_id,
            private=names is not None,
            notice=notice or gone,
            neighbours=[None if other is None else case_address(component.name, other) for other in neighbours],
            runs=parts,
            opened=next(iter([*lost, *parts]))["record"].model_id,
            changes=_changes_of_case(case_id, parts, comparison),
            files=[] if case is None else list(_copied_files(pages.site, case)),
            addresses={run.id: run_address(component.name, run.id) for run in here if run in answered},
            **_document_and_truth(case),
        )
    return answered, cases


def _shown_runs(recorded: RecordedComponent, rows: Sequence[Row], names: PublicNames | None) -> Iterator["ShownRun"]:
    """Yield the runs of the newest versions, model by model, each model's newest first."""
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


def _document_and_truth(case: Case | None) -> dict[str, Any]:
    """Return the `document`, its `title` and the ground `truth` for the page; None if they are private."""
    if case is None:
        return {"document": None, "title": "", "truth": None}
    truth = case.truth if isinstance(case.truth, str) else json.dumps(case.truth, indent=2, ensure_ascii=False)
    return {
        "document": _cut_text(case.document, _MAX_DOCUMENT),
        "title": case.shown_as.capitalize(),
        "truth": _cut_text(truth, _MAX_TRUTH) if case.labelled else None,
    }


def _changes_of_case(
    case_id: str, parts: Sequence[Mapping[str, Any]], comparison: ComparisonResult | None
) -> list[str]:
    """Return a sentence for each model on the change of a case since its version before, the largest loss first."""
    changes = []
    for newest, before in pairwise(parts):
        record, earlier, scores = newest["record"], before["record"], (before["score"], newest["score"])
        same_case = newest["case"].digest == before["case"].digest
        if record.model_id != earlier.model_id or not same_case or None in scores:
            continue
        model = None if comparison is None else comparison.on_run(record.run_id)
        difference = newest["score"] - before["score"]
        verdict = "worse" if difference < 0 else "better" if difference > 0 else "as before"
        change = f"{verdict} with {record.model_id} since {version_words(earlier.skill_version)}: {arrow(*scores)}"
        changes.append((difference, change + (_significance(case_id, model) if difference else "")))
    return [change for _, change in sorted(changes)]


def _significance(case_id: str, model: ModelVerdict | None) -> str:
    """Return the end of the sentence on a changed case: its significance, or "" if the version is not compared."""
    if model is None or model.baseline is None:
        return ""
    if any(change.case_id == case_id for change in (*model.cases.broke, *model.cases.fixed)):
        return ", significant by itself"
    return " in every output" if case_id in model.cases.every_answer_worse else ", within noise"


def _fit_outputs(part: dict[str, Any], room: int) -> dict[str, Any]:
    while part["outputs"] and len(escape(json.dumps(part["outputs"], ensure_ascii=False))) > room:
        others = "Not every output has room here; the run folder has all of them."
        part = {**part, "outputs": part["outputs"][:-1], "others": others}
    return part


def _case_scores(record: Record, case_record: CaseRecord) -> dict[str, Any]:
    score = case_record.accuracy.get(record.primary_metric)
    return {
        "record": record,
        "case": case_record,
        "score": None if score is None else score.strict_mean,
        "spread": _score_counts(record, case_record),
        "stability": Counter(case_record.profile.values()),
        "checks": case_record.pass_text(record.primary_metric) if case_record.checks else None,
        "notice": None,
        "remarks": [],
        "settings": [],
        "outputs": [],
        "others": "",
    }


def _case_outputs(record: Record, view: CaseView) -> dict[str, Any]:
    settings = {} if record.settings is None else record.settings.model_dump(mode="json")
    served = served_text(record.served_model)
    facts = {"served model": served, "run": record.run_id, "seed": record.seed, **settings}
    texts = {
        name.replace("_", " "): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in facts.items()
        if value not in (None, [], {})
    }
    others = (
        f"{counted(view.hidden_outputs, 'more distinct output')}, by {counted(view.hidden_replicates, 'replicate')}: "
        "the run folder has all of them."
    )
    return {
        "settings": [(name, abridged(text, 4 * _MAX_VALUE)) for name, text in texts.items()],
        "outputs": [_output_entry(record, output) for output in view.outputs],
        "others": others if view.hidden_outputs else "",
    }


def _score_counts(record: Record, case_record: CaseRecord) -> str:
    """Format the number of replicates with each score, or outcome if there is no score, the most frequent first."""
    scores = case_record.replicates.get(record.primary_metric, [])
    times = Counter(
        number(score) if score is not None else outcome
        for score, outcome in zip(scores, case_record.outcomes, strict=False)
    )
    return listed([f"{many} × {words}" for words, many in times.most_common()], 4)


def _output_entry(record: Record, output: DistinctOutput) -> dict[str, Any]:
    """Return the values that a page shows of a distinct output; values that differ are apart from the others."""
    answer = output.answer
    failure = answer.replicate.failure if answer.replicate else None
    longest = max(_MAX_VALUE, _MAX_VALUES // max(1, len(output.leaves)))
    checks = [_check_row(check, score) for check, (score, _) in output.checks if score is not None][:_MAX_SHOWN_VALUES]
    leaves = sorted(output.leaves, key=lambda leaf: leaf.outcome in ("right", "unscored"))
    values = [*checks, *(_value_row(leaf, longest) for leaf in leaves[:_MAX_SHOWN_VALUES])]
    differing = [value for value in values if value["outcome"] not in ("right", "unscored")]
    return {
        "replicates": ranges(output.replicates),
        "times": len(output.replicates),
        "outcome": answer.outcome,
        "reason": answer.reason,
        "message": abridged(failure.message, 2 * _MAX_VALUE) if failure and failure.kind != "refused" else "",
        "remedy": remedy(answer.reason, record.model_id) if answer.reason else None,
        "found": FOUND_AS.get(answer.parsed.form) if answer.parsed else None,
        "score": output.metrics.get(record.primary_metric),
        "unmarked": output.answer.unmarked,
        "differing": differing,
        "alike": [value for value in values if value not in differing],
        "counts": Counter([*(leaf.outcome for leaf in output.leaves), *(one["outcome"] for one in checks)]),
        "left": max(0, len(output.leaves) - _MAX_SHOWN_VALUES),
        "errors": [abridged(error, 2 * _MAX_VALUE) for error in output.schema_errors[:_MAX_ERRORS]],
        "texts": [_cut_text(text, _MAX_TEXT) for text in output.texts[:_MAX_TEXTS]],
        "others": len(output.texts) - min(len(output.texts), _MAX_TEXTS),
    }


def _check_row(check: Check, score: float) -> dict[str, Any]:
    passed = score >= PASSED_FROM
    return {
        "at": check_path(check.id),
        "field": check_path(check.id),
        "outcome": "right" if passed else "wrong",
        "truth": [(abridged(check.text, _MAX_VALUE), False)],
        "output": [("passed" if passed else "failed", False)],
        "how": f"check, scored {number(score)}",
    }


def _value_row(leaf: ComparedLeaf, longest: int) -> dict[str, Any]:
    """Return a value beside its ground truth; differing characters are marked if the two texts share a word."""
    texts = value_pair(leaf.truth, leaf.output, longest)
    parts = marked_differences(*texts) if leaf.outcome == "wrong" else ([], [])
    if not any(not own and any(map(str.isalnum, part)) for part, own in parts[0]):
        parts = [(texts[0], False)], [(texts[1], False)]
    return {
        "at": abridged(leaf.location, _MAX_NAME) or WHOLE,
        "field": leaf.path or WHOLE,
        "outcome": leaf.outcome,
        "truth": parts[0],
        "output": parts[1],
        "how": how_compared(leaf),
    }


def _cut_text(text: str, limit: int) -> dict[str, Any]:
    """Return the beginning of a text as `text`, the whole `length`, and whether it was `cut`."""
    whole = visible(text[:limit], keep="\n\t")
    shown = whole[: 2 * limit]
    while len(escape(shown).encode("utf-8", "backslashreplace")) > 3 * limit:
        shown = shown[: len(shown) * 3 // 4]
    return {"text": shown, "length": len(text), "cut": len(text) > limit or len(shown) < len(whole)}


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A run whose record and outputs are read on demand. If `names` is not None, only these names are shown."""

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
        """Whether the folder with its outputs is on this machine."""
        return (self._folder / ANSWERS).is_file()

    @cached_property
    def record(self) -> Record:
        """The record of the run, without private names."""
        record = self.recorded.archive.record(self.entry)
        return record if self.names is None else self.names.record(record)

    @cached_property
    def _case_records(self) -> Mapping[str, CaseRecord]:
        return {case_record.case_id: case_record for case_record in self.record.per_case}

    @cached_property
    def _outcomes(self) -> tuple[Manifest, Mapping[Call, Replicate]]:
        return read_component_manifest(self._folder), outcomes(self._folder)

    @cached_property
    def _remarks(self) -> list[str]:
        """Sentences on what was changed since the run was recorded: the scorer's files, the record or the outputs."""
        digests = self.recorded.component.digests
        changed = [name for name in _JUDGED_BY if self.record.digests.get(name) != digests.get(name)]
        remarks = []
        if changed:
            remarks.append(
                f"Changed since these outputs were scored: {listed(changed)}. The marks are by the new files."
            )
        if has_other_outputs(self.record, self._folder, *self._outcomes):
            remarks.append("The record does not match these outputs: the record or the outputs were edited.")
        return remarks

    def part(self, case_id: str, case: Case | None, limit: int = MAX_OUTPUTS) -> dict[str, Any]:
        """Return the scores of a case in this run, and its distinct outputs if they are stored here.

        At most `limit` outputs are returned, and none if the case no longer exists.
        """
        record, case_record = self.record, self._case_records[case_id]
        part = _case_scores(record, case_record)
        if case is None:
            return part
        if not self.has_outputs:
            notice = f"The outputs of this run are not here (evals/results/{record.run_id}): these are its scores."
            return {**part, "notice": notice}
        try:
            _, journal = self._outcomes
            changed = None if case.was(case_record.digest) else "the case was changed since the run"
            replicates = [journal.get(Call(case_id, index)) for index in range(len(case_record.outcomes))]
            view = recorded_case_view(self.recorded.component, case, replicates, case_record, changed, limit)
            return {**part, "remarks": self._remarks, **_case_outputs(record, view)}
        except SkillEvaluatorError as problem:
            return {**part, "notice": f"The outputs cannot be shown: {problem}"}


def write_runs(pages: Pages, runs: Sequence[ShownRun], cases: Mapping[str, Case], state: ComponentState) -> None:
    """Write the page of each run; `cases` has the cases by id."""
    newest = {run.entry.model_id: run for run in reversed(runs)}
    for run in runs:
        later = newest[run.entry.model_id]
        pages.write(
            run_address(state.component, run.id),
            "run.html",
            component=state.component,
            state=state,
            newest_run="" if later is run else run_address(state.component, later.id),
            **_run_page(run, cases),
        )


def _run_page(run: ShownRun, cases: Mapping[str, Case]) -> dict[str, Any]:
    record, notices = run.record, dict[str, list[str]]()
    rows: list[dict[str, Any]] = []
    for case_id in sorted(run.case_ids):
        part = run.part(case_id, cases.get(case_id), _MAX_OUTPUTS)
        rows += [{**output, "case": case_id, "planned": len(part["case"].outcomes)} for output in part["outputs"]]
        gone = [] if case_id in cases else ["no longer among the fixtures."]
        for notice in filter(None, (*gone, part["notice"], part["others"], *part["remarks"])):
            notices.setdefault(notice, []).append(case_id)
    for row in rows:
        score = 2.0 if row["score"] is None else row["score"]
        row["order"] = row["outcome"] == "scored", score, -len(row["differing"]), row["case"], -row["times"]
    rows.sort(key=lambda row: row["order"])
    shown, more = first_rows(rows, _MAX_RUN_ROWS)
    return {
        "record": record,
        "remarks": [
            notice if len(ids) == len(run.case_ids) else f"{listed(sorted(ids), 4)}: {notice}"
            for notice, ids in notices.items()
        ],
        "rows": shown,
        "room": _MAX_RUN_TEXTS // max(1, len(shown)),
        "more": more,
    }
