"""The pages of versions: the comparison of two versions or models, the verdicts, the overview and the changes."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from skill_evaluator.display import ends, signed
from skill_evaluator.display.pages import MAX_ROWS, Block, Fold, Line, compare_address, verdict_address
from skill_evaluator.display.safe_text import abridged
from skill_evaluator.display.sheets import Sheet
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Row
from skill_evaluator.reports.comparison import all_sheets, model_words, reading_words
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.reports.summary import Reader, conclude, difference_words, worst_first
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site import SiteFolder
from skill_evaluator.site.component import ORDER, ComponentState, certainty, component_state, loss_parts, run_figures
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import write_page
from skill_evaluator.stats import by_key
from skill_evaluator.verdicts.component import ComponentStatus, RecordedComponent
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, ModelVerdict
from skill_evaluator.verdicts.shipping import Point

_CAPTIONS = {"metric": "Metrics", "field": "Fields"}
_FOLDED = frozenset({"metric", "the run", "the runs"})
_NEWEST = 5  # versions of a component on the page of changes
_MAX_DRAWN = 40  # measures in the chart of a comparison
_MAX_REASONS = 4
_MAX_NAME = 18  # characters of a model in the line of a version
_MAX_CASES = 12  # cases that a verdict names
_MAX_PAIRS = 600  # rows of the overview
_MAX_ENTRIES = 600  # versions with their models on the page of changes
_MAX_OPEN = 2  # versions whose state is not collapsed
_MAX_SENTENCE = 2_000  # characters


@dataclass(frozen=True, kw_only=True)
class ComparedComponent:
    """A component with its comparisons. If `names` is not None, documents are private and pages show only these names.

    `rows` are all its runs, complete or not.
    """

    recorded: RecordedComponent
    rows: Sequence[Row]
    status: ComponentStatus
    comparisons: Comparisons
    names: PublicNames | None

    @property
    def name(self) -> str:
        """The name of the component."""
        return self.recorded.component.name

    @property
    def is_private(self) -> bool:
        """Whether its documents, ground truths and outputs may not be shown."""
        return self.names is not None

    @cached_property
    def state(self) -> ComponentState:
        """The state of its newest version."""
        return component_state(self.status, self.comparisons, self.rows)

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """The cases by id. Raises SkillEvaluatorError if they cannot be read."""
        return {case.id: case for case in load_cases(self.recorded.component)}

    @cached_property
    def outcomes(self) -> Callable[[Path], Mapping[Call, Replicate]]:
        """The function that reads the outputs of a run folder; each run is in several comparisons."""
        return lru_cache(maxsize=16)(outcomes)

    @cached_property
    def versions(self) -> dict[str, ComparisonResult]:
        """The comparisons of the versions that have a baseline, by version."""
        results = self.comparisons.versions.items()
        return {version: result for version, result in results if any(model.baseline for model in result.models)}

    @cached_property
    def pairs(self) -> dict[tuple[str, str], ComparisonResult]:
        """The comparisons of two models by their model ids. The first id is the baseline."""
        by_pair = {}
        for result in self.comparisons.models:
            model = result.models[0]
            if model.baseline is not None and model.baseline.model_id is not None:
                by_pair[model.baseline.model_id, model.model_id] = result
        return by_pair

    @property
    def first_address(self) -> str:
        """The address of the newest version's comparison, or else of the first pair of models. "" if there is none."""
        newest = self.status.history.newest
        if newest in self.versions:
            return compare_address(self.name, newest)
        return next((compare_address(self.name, *pair) for pair in self.pairs), "")


def write_comparisons(site: SiteFolder, compared: ComparedComponent) -> None:
    """Write a page for the comparison of each of the newest versions and of each pair of models."""
    name = compared.name
    for names, result in [*compared.versions.items(), *compared.pairs.items()]:
        version, pair = (names, None) if isinstance(names, str) else ("", names)
        titles = pair or ("before", "after")
        conclusion = conclude(result, Reader())
        write_page(
            site,
            compare_address(name, *(pair or [version])),
            "compare.html",
            max_text=_MAX_SENTENCE,
            component=name,
            state=compared.state,
            private=compared.is_private,
            version=version,
            pair=pair,
            finding=[line for line in conclusion.lines if line not in (conclusion.ship, f"next: {conclusion.next}")],
            left_out=result.left_out,
            reading=reading_words(result),
            models=[
                {
                    **_model_entry(model, " against ".join(reversed(pair)) if pair else model.model_id),
                    "blocks": [*_tables(name, model, titles), *_changed_outputs(compared, model, titles)],
                }
                for model in worst_first(result)
            ],
            versions=[(version, compare_address(name, version)) for version in compared.versions],
            pairs=[(" with ".join(pair), compare_address(name, *pair)) for pair in compared.pairs],
        )


def _model_entry(model: ModelVerdict, name: str) -> dict[str, Any]:
    """Return the verdict on a model, its reasons, and as `spans` the measures to draw with the ends of their intervals.

    The metrics come first, then the fields that changed, the largest loss first.
    """
    facts, *reasons = model_words(model)
    fields = sorted((field for field in model.fields if field.difference), key=lambda field: field.difference or 0.0)
    drawn = [measure for measure in (*model.metrics, *fields) if measure.difference is not None][:_MAX_DRAWN]
    spans = [(measure, *ends(measure.ci95, measure.n_cases)) for measure in drawn]
    values = [abs(value) for measure, *span in spans for value in (measure.difference, *span) if value is not None]
    return {
        "verdict": model,
        "name": name,
        "facts": facts,
        "reasons": [reason for reason in reasons if not reason.startswith("the models differ:")],  # the title says it
        "spans": spans,
        "reach": max([0.1, *values]),
    }


def _tables(component: str, model: ModelVerdict, titles: Sequence[str]) -> Iterator[Block]:
    for piece in all_sheets(model, component, MAX_ROWS):
        if not isinstance(piece, Sheet):
            yield Line(piece)
            continue
        head = piece.columns[0]
        caption = _CAPTIONS.get(head, f"{head[:1].upper()}{head[1:]}")
        table = replace(_titled(piece, titles), caption=caption)
        yield Fold(caption, [table]) if head in _FOLDED else table


def _titled(sheet: Sheet, titles: Sequence[str]) -> Sheet:
    def named(column: str) -> str:
        return re.sub("before|after", lambda word: titles[word[0] == "after"], column)

    return replace(sheet, columns=[*map(named, sheet.columns)], numbers=frozenset(map(named, sheet.numbers)))


def _changed_outputs(compared: ComparedComponent, model: ModelVerdict, titles: Sequence[str]) -> Iterator[Block]:
    """Yield the changed outputs with both values. Yield nothing if they are private or not on this machine."""
    component, archive = compared.recorded.component, compared.recorded.archive
    runs = [run.run_id for run in (model.baseline, model.candidate) if run is not None]
    folders = [component.results_dir / run for run in runs]
    if compared.is_private or len(runs) < 2 or not all((folder / ANSWERS).is_file() for folder in folders):
        return
    try:
        before, after = map(archive.record, runs)
        first, second = map(compared.outcomes, folders)
        cases = list(compared.cases.values())
        changed = ChangedAnswers(
            model_id=after.model_id,
            baseline=before.run_id,
            compared=len(common_part(before, after).cases),
            changes=tuple(answer_changes(component, cases, before, after, (first, second))),
        )
    except SkillEvaluatorError as problem:
        yield Line(f"The outputs cannot be read: {problem}")
        return
    sentence, sheet = changes_of(changed)
    table = [replace(_titled(sheet, titles), caption="Outputs that changed")] if sheet.rows else []
    yield Fold("Outputs that changed, with both values", [Line(sentence), *table])


def write_verdicts(site: SiteFolder, compared: ComparedComponent) -> None:
    """Write a page for each version with the verdict on every model."""
    status, rows = compared.status, {row.run_id: row for row in compared.rows}
    for version, points in _points_by_version(status).items():
        write_page(
            site,
            verdict_address(compared.name, version),
            "verdict.html",
            component=compared.name,
            state=compared.state,
            compare_address=compare_address(compared.name, version) if version in compared.versions else "",
            version=version,
            ranking=status.ranking,
            cards=_version_entries(compared, points),
            figures=[run_figures(rows[point.run_id]) for _, point in points if point.run_id in rows],
            max_text=_MAX_SENTENCE,
        )


def _points_by_version(status: ComponentStatus) -> dict[str, list[tuple[str, Point]]]:
    models = status.history.models
    points = by_key((point.version, (model.model_id, point)) for model in models for point in model.points)
    return {version: points[version] for version in sorted(points, key=precedence, reverse=True)}


def _version_entries(compared: ComparedComponent, points: Iterable[tuple[str, Point]]) -> list[dict[str, Any]]:
    """Return the verdicts on a version by model, the worst first."""
    entries = [_version_entry(compared, model, point) for model, point in points]
    entries.sort(key=lambda entry: (ORDER.index(entry["verdict"]), entry["difference"] or 0.0, entry["model"]))
    return entries


def _version_entry(compared: ComparedComponent, model_id: str, point: Point) -> dict[str, Any]:
    """Return the verdict on a version with one model, its evidence, lost fields and cases, and first reasons."""
    step = point.step
    entry: dict[str, Any] = {
        "model": model_id,
        "timestamp": point.timestamp,
        "verdict": "first" if step is None else step.verdict,
        "before": step and step.before,
        "difference": step and step.difference,
        "reasons": step.reasons[:_MAX_REASONS] if step else (),
        "figures": "",
        "where": None,
    }
    if step is None:
        return entry
    result = compared.versions.get(point.version)
    model = None if result is None else result.on_run(point.run_id)
    if model is None or model.baseline is None:
        change = f"{compared.status.history.metric} {signed(step.difference)}"
        figures = "" if step.difference is None else difference_words(change, point.n_cases, step.ci95, step.q)
        return {**entry, "figures": figures}
    if model.verdict == "incomparable":
        return entry
    return {**entry, "figures": certainty(model), "where": Line(*loss_parts(compared.name, model, _MAX_CASES))}


def version_changes(compared: ComparedComponent) -> list[dict[str, Any]]:
    """Return one dict for each of the five highest versions, for the page of changes.

    Its `entries` are the verdicts by model, worst first. Its `verdicts` are pairs of a distinct verdict and a text on
    its models.
    """
    changes = []
    for version, points in list(_points_by_version(compared.status).items())[:_NEWEST]:
        entries = _version_entries(compared, points)
        by_verdict = by_key((entry["verdict"], entry) for entry in entries)
        change = {
            "component": compared.name,
            "version": version,
            "timestamp": max(entry["timestamp"] for entry in entries),
            "verdicts": [(verdict, _models_words(verdict, models)) for verdict, models in by_verdict.items()],
            "entries": entries,
        }
        changes.append(change)
    return changes


def _models_words(verdict: str, models: Sequence[Mapping[str, Any]]) -> str:
    if verdict not in ("regressed", "improved"):
        return f"× {len(models)}"
    largest = max(models, key=lambda entry: abs(entry["difference"] or 0.0))
    moved = "" if largest["difference"] is None else f" {signed(largest['difference'])}"
    more = f", {len(models) - 1} more" if len(models) > 1 else ""
    return f"{abridged(largest['model'], _MAX_NAME)}{moved}{more}"


def write_changes(site: SiteFolder, changes: Iterable[dict[str, Any]], states: Iterable[ComponentState]) -> None:
    """Write the page of changes, the newest versions first; `states` has the state of every component."""
    newest = sorted(changes, key=lambda change: (change["timestamp"], change["component"]), reverse=True)
    models = max((len(change["entries"]) for change in newest), default=1)
    shown = newest[: _MAX_ENTRIES // models]
    by_version = {(state.component, state.version): state for state in states}
    current = [at for at, change in enumerate(shown) if (change["component"], change["version"]) in by_version]
    alarms = [at for at in current if by_version[shown[at]["component"], shown[at]["version"]].alarm]
    opened = (alarms or current)[:_MAX_OPEN]
    more = len(newest) - len(shown)
    write_page(site, "changes.html", "changes.html", versions=shown, states=by_version, more=more, opened=opened)


def write_overview(
    site: SiteFolder,
    states: Sequence[ComponentState],
    rows: Sequence[Mapping[str, Any]],
    problems: Mapping[str, Exception],
    retiring: Sequence[str],
) -> None:
    """Write the overview page. `states` has one entry per component, `rows` one per component and model.

    `problems` has the errors of other parts of the site by name, `retiring` the models that retire soon.
    """
    shown = sorted(rows, key=lambda row: (row["rank"], row["component"]))[:_MAX_PAIRS]
    counts = Counter(verdict for row in rows for verdict in row["verdicts"])
    write_page(
        site,
        "index.html",
        "overview.html",
        states=sorted(states, key=lambda state: (not state.alarm, not state.version, state.component)),
        past=[(state.component, regression) for state in states for regression in state.past],
        rows=shown,
        more=len(rows) - len(shown),
        counts=[(verdict, counts[verdict]) for verdict in ORDER if counts[verdict]],
        graded=any(row["grade"] for row in shown),
        problems=problems,
        retiring=retiring,
    )
