"""The pages of cases and runs: outputs beside the ground truth, with the differences marked."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from skill_evaluator.checks import Check
from skill_evaluator.comparing.comparison import ComparedLeaf
from skill_evaluator.display import WHOLE, abridged, arrow, number, visible
from skill_evaluator.display.pages import field_anchor, page_address, run_address
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import read_bytes
from skill_evaluator.library.cases import Case
from skill_evaluator.library.prompts import File
from skill_evaluator.records.archive import RecordedRun
from skill_evaluator.records.record import PASSED_FROM, SCORED, CaseRecord, Record, check_path, remedy, served_text
from skill_evaluator.records.selection import newest_of_versions
from skill_evaluator.reports.explanation import FOUND_AS, how_compared
from skill_evaluator.runner.journal import ANSWERS, Manifest, has_other_outputs, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import MAX_OUTPUTS, DistinctOutput, leaf_texts, recorded_case_view
from skill_evaluator.site import SiteFolder
from skill_evaluator.site.component import ComparedComponent, is_flawless
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed, marked_differences
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict

_VERSIONS = 2  # the newest versions of each model whose outputs are shown
_MAX_DOCUMENT, _MAX_TRUTH, _MAX_TEXT = 100_000, 50_000, 10_000  # characters; a text is the raw text of an output
_MAX_VALUE = 240  # characters of a value, around the first difference
_MAX_VALUES = 6_000  # characters of all values of an output, if they are few
_MAX_NAME = 200
_MAX_SHOWN_VALUES = 100  # values that differ come first
_MAX_ERRORS = 20
_MAX_TEXTS = 2  # texts that parse to the same output
_MAX_RUN, _MAX_RUNS = 200_000, 500_000  # characters of one run and of all runs on the page of a case
_MAX_CASES = 600  # a row of the list of cases has one case with one model
_MAX_FIELDS_WITH_CASES = 40
# The page of a run.
_MAX_OUTPUTS = 50  # distinct outputs of a case
_MAX_RUN_ROWS = 300
_MAX_RUN_TEXTS = 300_000  # characters of all outputs; each has an equal part
_SCORED_BY = ("schema", "contract", "datasets")


def case_list(newest: Mapping[str, Record]) -> dict[str, Any]:
    """Return the values for the list of cases on a component's page; `newest` has a record per model.

    `sound` has the cases in which every field is `stable_right` with every model. `rows` has the other cases, the worst
    first, with score and stabilities by model. The page shows `room` rows in a table and links to the others.
    `by_field` has the wrong and flaky cases by field.
    """
    rows: dict[str, dict[str, Any]] = {}
    for model_id, record in newest.items():
        for case in record.per_case:
            score = case.accuracy.get(record.primary_metric)
            models = rows.setdefault(case.case_id, {"id": case.case_id, "models": {}})["models"]
            models[model_id] = [score and score.strict_mean, Counter(case.profile.values())]
    worst, sound = list[dict[str, Any]](), list[dict[str, Any]]()
    for row in sorted(rows.values(), key=_lowest_score):
        (sound if all(is_flawless(profile) for _, profile in row["models"].values()) else worst).append(row)
    return {
        "metric": ", ".join(sorted({record.primary_metric for record in newest.values()})),
        "rows": worst,
        "room": _MAX_CASES // len(newest),
        "sound": sound,
        "by_field": _cases_by_field(newest),
    }


def _lowest_score(row: Mapping[str, Any]) -> tuple[float, str]:
    return min(2.0 if score is None else score for score, _ in row["models"].values()), row["id"]


def _cases_by_field(newest: Mapping[str, Record]) -> list[dict[str, Any]]:
    """Return a row per field that is wrong or flaky in any case; `parts` has the ids of these cases by model."""
    fields: dict[str, list[dict[str, Any]]] = {}
    for model_id, record in newest.items():
        values = [(path, value, case.case_id) for case in record.per_case for path, value in case.profile.items()]
        for stability, title in (("stable_wrong", "wrong"), ("flaky", "flaky fields")):
            case_ids = by_key((path, case_id) for path, value, case_id in values if value == stability)
            for path, ids in case_ids.items():
                fields.setdefault(path, []).append({"title": title, "model": model_id, "cases": ids})
    rows = [{"field": path or WHOLE, "anchor": field_anchor(path), "parts": parts} for path, parts in fields.items()]
    return rows[:_MAX_FIELDS_WITH_CASES]


def write_cases(site: SiteFolder, compared: ComparedComponent) -> list["ShownRun"]:
    """Write the pages of the cases and runs of a component. Return the runs that have a page of outputs."""
    newest = newest_of_versions(compared.recorded.archive.entries)
    runs = [ShownRun(entry, compared) for entries in newest.values() for entry in reversed(entries[-_VERSIONS:])]
    cases: Mapping[str, Case] = {}
    notice = None
    if not compared.is_private:
        try:
            cases = compared.cases
        except SkillEvaluatorError as problem:
            notice = f"The documents cannot be read: {problem}"
    ids = sorted({case_id for run in runs for case_id in run.cases})
    for case_id, *neighbours in zip(ids, [None, *ids], [*ids[1:], None], strict=False):
        is_gone = not compared.is_private and case_id not in cases
        compared.write_page(
            site,
            page_address("cases", compared.name, case_id),
            "case.html",
            notice=notice or (f"Case '{case_id}' is no longer among the fixtures." if is_gone else None),
            neighbours=[None if other is None else page_address("cases", compared.name, other) for other in neighbours],
            **_case_page(case_id, cases.get(case_id), [run for run in runs if case_id in run.cases], compared),
            files=list(_copied_files(site, cases.get(case_id))),
        )
    answered = [run for run in runs if run.has_outputs]
    latest = {run.entry.model_id: run for run in reversed(answered)}
    for run in answered:
        later = latest[run.entry.model_id]
        compared.write_page(
            site,
            run.address,
            "run.html",
            newest_run="" if later is run else later.address,
            **_run_page(run, cases),
        )
    return answered


def _case_page(
    case_id: str, case: Case | None, runs: Sequence["ShownRun"], compared: ComparedComponent
) -> dict[str, Any]:
    parts = [_fit_outputs(run.part(case_id, case), min(_MAX_RUN, _MAX_RUNS // len(runs))) for run in runs]
    lost = [part for part in parts if part["stability"]["stable_wrong"] or part["stability"]["flaky"]]
    comparison = compared.status.versions.get(compared.state.version)
    truth = None
    if case is not None and case.labelled:
        text = case.truth if isinstance(case.truth, str) else json.dumps(case.truth, indent=2, ensure_ascii=False)
        truth = _cut_text(text, _MAX_TRUTH)
    return {
        "case": case_id,
        "runs": parts,
        "opened": (lost or parts)[0]["record"].model_id,
        "changes": _changes_of_case(case_id, parts, comparison),
        "addresses": {run.entry.run_id: run.address for run in runs if run.has_outputs},
        "document": None if case is None else _cut_text(case.document, _MAX_DOCUMENT),
        "title": "" if case is None else case.shown_as.capitalize(),
        "truth": truth,
    }


def _copied_files(site: SiteFolder, case: Case | None) -> Iterator[tuple[str, str, str, str]]:
    """Copy the files of a document to the site; yield the address, kind, name and description of each."""
    for file in [] if case is None else [case.inputs[name] for name in case.used]:
        if isinstance(file, File):
            address = f"files/{file.digest.removeprefix('sha256:')[:32]}.{file.media_type.rpartition('/')[2]}"
            site.write(address, read_bytes(file.path))
            yield address, file.kind, file.path.name, str(file)


def _changes_of_case(
    case_id: str, parts: Sequence[Mapping[str, Any]], comparison: ComparisonResult | None
) -> list[str]:
    changes = []
    for newest, before in pairwise(parts):
        record, earlier, scores = newest["record"], before["record"], (before["score"], newest["score"])
        same_case = newest["case"].digest == before["case"].digest
        if record.model_id != earlier.model_id or not same_case or None in scores:
            continue
        difference = newest["score"] - before["score"]
        verdict = "worse" if difference < 0 else "better" if difference > 0 else "as before"
        change = f"{verdict} with {record.model_id} since {earlier.skill_version}: {arrow(*scores)}"
        model = comparison.on_run(record.run_id) if comparison is not None and difference else None
        changes.append((difference, change + _significance(case_id, model)))
    return [change for _, change in sorted(changes)]


def _significance(case_id: str, model: ModelVerdict | None) -> str:
    """Return the significance of a changed case as the end of a sentence, or "" if the version is not compared."""
    if model is None or model.baseline is None:
        return ""
    if any(change.case_id == case_id for change in (*model.cases.broke, *model.cases.fixed)):
        return ", significant by itself"
    return " in every output" if case_id in model.cases.every_answer_worse else ", within noise"


def _fit_outputs(part: dict[str, Any], room: int) -> dict[str, Any]:
    while part["outputs"] and len(escape(json.dumps(part["outputs"], ensure_ascii=False, default=lambda _: ""))) > room:
        others = "Not every output has room here; the run folder has all of them."
        part = {**part, "outputs": part["outputs"][:-1], "others": others}
    return part


def _score_counts(record: Record, case_record: CaseRecord) -> str:
    scores = case_record.replicates.get(record.primary_metric, [])
    times = Counter(
        number(score) if score is not None else outcome
        for score, outcome in zip(scores, case_record.outcomes, strict=False)
    )
    return listed([f"{many} × {words}" for words, many in times.most_common()], 4)


def _output_entry(record: Record, output: DistinctOutput) -> dict[str, Any]:
    """Return the template's values for a distinct output. `differing` has its wrong values and failed checks."""
    answer = output.answer
    longest = max(_MAX_VALUE, _MAX_VALUES // max(1, len(output.leaves)))
    checks = [_check_row(check, score) for check, (score, _) in output.checks if score is not None][:_MAX_SHOWN_VALUES]
    leaves = sorted(output.leaves, key=lambda leaf: leaf.outcome in ("right", "unscored"))
    values = [*checks, *(_value_row(leaf, longest) for leaf in leaves[:_MAX_SHOWN_VALUES])]
    differing = [value for value in values if value["outcome"] not in ("right", "unscored")]
    return {
        "output": output,
        "remedy": remedy(answer.reason, record.model_id) if answer.reason else None,
        "found": FOUND_AS.get(answer.parsed.form) if answer.parsed else None,
        "score": answer.metrics.get(record.primary_metric),
        "differing": differing,
        "alike": [value for value in values if value not in differing],
        "counts": Counter([*(leaf.outcome for leaf in output.leaves), *(one["outcome"] for one in checks)]),
        "errors": [abridged(error, 2 * _MAX_VALUE) for error in output.schema_errors[:_MAX_ERRORS]],
        "texts": [_cut_text(text, _MAX_TEXT) for text in output.texts[:_MAX_TEXTS]],
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
    """Return a row with a value and its ground truth. Differing words are marked if the texts have a word in common."""
    texts = leaf_texts(leaf, longest)
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


@dataclass(frozen=True)
class ShownRun:
    """A run on the site. Its record and outputs are read on demand, and private names are removed from the record."""

    entry: RecordedRun
    compared: ComparedComponent

    @property
    def address(self) -> str:
        """The address of the page with the outputs of the run."""
        return run_address(self.compared.name, self.entry.run_id)

    @property
    def _folder(self) -> Path:
        return self.compared.recorded.component.results_dir / self.entry.run_id

    @property
    def has_outputs(self) -> bool:
        """Whether the outputs of the run are on this machine and may be shown."""
        return not self.compared.is_private and (self._folder / ANSWERS).is_file()

    @cached_property
    def record(self) -> Record:
        """The record of the run."""
        record = self.compared.recorded.archive.record(self.entry)
        return record if self.compared.names is None else self.compared.names.record(record)

    @cached_property
    def cases(self) -> Mapping[str, CaseRecord]:
        """The recorded cases by id."""
        return {case.case_id: case for case in self.record.per_case}

    @cached_property
    def _outcomes(self) -> tuple[Manifest, Mapping[Call, Replicate]]:
        return read_component_manifest(self._folder), self.compared.outcomes(self._folder)

    @cached_property
    def _remarks(self) -> list[str]:
        digests = self.compared.recorded.component.digests
        changed = [name for name in _SCORED_BY if self.record.digests.get(name) != digests.get(name)]
        remark = f"Changed since these outputs were scored: {listed(changed)}. The marks are by the new files."
        remarks = [remark] if changed else []
        if has_other_outputs(self.record, *self._outcomes):
            remarks.append("The record does not match these outputs: the record or the outputs were edited.")
        return remarks

    @property
    def _settings(self) -> dict[str, Any]:
        record = self.record
        settings = {} if record.settings is None else record.settings.model_dump(mode="json")
        return {"served model": served_text(record.served_model), "run": record.run_id, "seed": record.seed, **settings}

    def part(self, case_id: str, case: Case | None, limit: int = MAX_OUTPUTS) -> dict[str, Any]:
        """Return the scores of a case in this run, and the first `limit` distinct outputs if this machine has them.

        Return no outputs if `case` is None: the case no longer exists, or the outputs are private.
        """
        record, recorded = self.record, self.cases[case_id]
        score = recorded.accuracy.get(record.primary_metric)
        part: dict[str, Any] = {
            "record": record,
            "case": recorded,
            "score": score and score.strict_mean,
            "spread": _score_counts(record, recorded),
            "stability": Counter(recorded.profile.values()),
            "notice": None,
            "remarks": [],
            "settings": {},
            "outputs": [],
            "others": "",
        }
        if case is None:
            return part
        if not self.has_outputs:
            notice = f"The outputs of this run are not here (evals/results/{record.run_id}): these are its scores."
            return {**part, "notice": notice}
        try:
            _, journal = self._outcomes
            changed = None if case.was(recorded.digest) else "the case was changed since the run"
            replicates = [journal.get(Call(case_id, index)) for index in range(len(recorded.outcomes))]
            view = recorded_case_view(self.compared.recorded.component, case, replicates, recorded, changed, limit)
            outputs = [_output_entry(record, output) for output in view.outputs]
            part |= {"remarks": self._remarks, "settings": self._settings, "outputs": outputs}
        except SkillEvaluatorError as problem:
            return {**part, "notice": f"The outputs cannot be shown: {problem}"}
        if view.hidden_outputs:
            hidden = counted(view.hidden_outputs, "more distinct output"), counted(view.hidden_replicates, "replicate")
            part["others"] = f"{', by '.join(hidden)}: the run folder has all of them."
        return part


def _run_page(run: ShownRun, cases: Mapping[str, Case]) -> dict[str, Any]:
    notices: dict[str, list[str]] = {}
    rows: list[dict[str, Any]] = []
    for case_id in sorted(run.cases):
        part = run.part(case_id, cases.get(case_id), _MAX_OUTPUTS)
        rows += [{**output, "case": case_id, "planned": len(part["case"].outcomes)} for output in part["outputs"]]
        gone = None if case_id in cases else "no longer among the fixtures."
        for notice in filter(None, (gone, part["notice"], part["others"], *part["remarks"])):
            notices.setdefault(notice, []).append(case_id)
    shown = sorted(rows, key=_worst_output_first)[:_MAX_RUN_ROWS]
    return {
        "record": run.record,
        "remarks": [
            notice if len(ids) == len(run.cases) else f"{listed(sorted(ids), 4)}: {notice}"
            for notice, ids in notices.items()
        ],
        "rows": shown,
        "room": _MAX_RUN_TEXTS // max(1, len(shown)),
        "more": len(rows) - len(shown),
    }


def _worst_output_first(row: Mapping[str, Any]) -> tuple[bool, float, int, str, int]:
    score, output = 2.0 if row["score"] is None else row["score"], row["output"]
    is_scored = output.answer.outcome == SCORED
    return is_scored, score, -len(row["differing"]), row["case"], -len(output.replicates)
