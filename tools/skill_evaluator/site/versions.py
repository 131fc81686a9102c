"""The pages of versions: the comparison of two versions or models, the verdicts, the overview and the changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from skill_evaluator.display import WHOLE, arrow, ends, signed
from skill_evaluator.display.addresses import case_address, compare_address, component_address, verdict_address
from skill_evaluator.display.pages import MAX_ROWS, Block, Fold, Line
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Row
from skill_evaluator.reports.comparison import all_sheets, model_words, reading_words
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.reports.summary import difference_words, fell_most_words, verdict_words, worst_first
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site.component import run_figures
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState, certainty, links
from skill_evaluator.site.writing import first_rows
from skill_evaluator.text import listed, version_words
from skill_evaluator.verdicts.component import ComponentStatus, RecordedComponent
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, ModelVerdict
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.shipping import Point

_MAX_DRAWN = 40
_CAPTIONS = {"metric": "Metrics", "field": "Fields"}
_FOLDED = frozenset({"metric", "the run", "the runs"})
NEWEST = 5  # versions of a component
ORDER = (*WORST_FIRST, "first")
_MAX_REASONS = 4
_MAX_NAME = 18  # characters of a model in the line of a version
_MAX_LOST = 12  # fields and cases that a verdict names
_MAX_PAIRS = 600  # rows of the overview
_MAX_ENTRIES = 600  # versions with their models on the page of changes
_MAX_OPEN = 2  # versions whose state is not collapsed
_MAX_SENTENCE = 2_000  # characters
_HEADS = {
    "regressed": "Do not ship",
    "improved": "Nothing is in the way of",
    "unchanged": "Nothing is in the way of",
    "inconclusive": "Not decided:",
    "incomparable": "Not compared:",
    "first": "Measured:",
}


@dataclass(frozen=True, kw_only=True)
class ComparedComponent:
    """A component with its comparisons; `shows_outputs`: its documents and outputs may be on the site."""

    recorded: RecordedComponent
    rows: Sequence[Row]
    status: ComponentStatus
    comparisons: Comparisons
    state: ComponentState
    fixtures: Path | None
    shows_outputs: bool

    @property
    def name(self) -> str:
        """The name of the component."""
        return self.recorded.component.name

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """The cases by id. Raises SkillEvaluatorError if they cannot be read."""
        return {case.id: case for case in load_cases(self.recorded.component, self.fixtures)}

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
        """The comparisons of two models by their ids, the baseline first."""
        by_pair = {}
        for result in self.comparisons.models:
            model = result.models[0]
            if model.baseline is not None and model.baseline.model_id is not None:
                by_pair[model.baseline.model_id, model.model_id] = result
        return by_pair

    @property
    def first_address(self) -> str:
        """The address of the newest version's comparison, else of the first pair of models, else ""."""
        newest = self.status.history.newest
        if newest in self.versions:
            return compare_address(self.name, newest)
        return next((compare_address(self.name, *pair) for pair in self.pairs), "")


def write_comparisons(pages: Pages, compared: ComparedComponent) -> None:
    """Write a page for the comparison of each of the newest versions and of each pair of models."""
    versions = [(version, compare_address(compared.name, version)) for version in compared.versions]
    pairs = [(f"{pair[0]} with {pair[1]}", compare_address(compared.name, *pair)) for pair in compared.pairs]
    results: list[tuple[ComparisonResult, str, tuple[str, str] | None]] = [
        *((result, version, None) for version, result in compared.versions.items()),
        *((result, "", pair) for pair, result in compared.pairs.items()),
    ]
    for (_, address), (result, version, pair) in zip([*versions, *pairs], results, strict=True):
        titles = pair or ("before", "after")
        pages.write(
            address,
            "compare.html",
            max_text=_MAX_SENTENCE,
            component=compared.name,
            state=compared.state,
            private=not compared.shows_outputs,
            version=version,
            pair=pair,
            finding=verdict_words(result, f"{pair[1]} against {pair[0]}" if pair else version_words(version)),
            left_out=result.left_out,
            reading=reading_words(result),
            models=[
                {
                    **_model_entry(model, pair),
                    "blocks": [
                        *_tables(compared.name, model, titles),
                        *(_changed_outputs(compared, model, titles) if compared.shows_outputs else ()),
                    ],
                }
                for model in worst_first(result)
            ],
            versions=versions,
            pairs=pairs,
        )


def _model_entry(model: ModelVerdict, pair: tuple[str, str] | None) -> dict[str, Any]:
    """Return the verdict on a model, its reasons, and as `spans` the measures to draw with their intervals' ends.

    Metrics are drawn first, then the fields that moved, the largest loss first.
    """
    facts, *reasons = model_words(model)
    fields = sorted((field for field in model.fields if field.difference), key=lambda field: field.difference or 0.0)
    drawn = [measure for measure in (*model.metrics, *fields) if measure.difference is not None][:_MAX_DRAWN]
    moved = [one for one in drawn if one.verdict in ("regressed", "improved")]
    named = listed([f"{one.metric or WHOLE} {signed(one.difference)}" for one in moved], 3)
    spans = [(measure, *ends(measure.ci95, measure.n_cases)) for measure in drawn]
    values = [abs(value) for measure, *span in spans for value in (measure.difference, *span) if value is not None]
    return {
        "verdict": model,
        "name": f"{pair[1]} against {pair[0]}" if pair else model.model_id,
        "facts": facts,
        "reasons": [reason for reason in reasons if not (pair and reason.startswith("the models differ:"))],
        "title": f"Significant: {named}" if moved else "No significant change",
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

    def named(title: str) -> str:
        return title.replace("before", "\0").replace("after", titles[1]).replace("\0", titles[0])

    return replace(sheet, columns=[*map(named, sheet.columns)], numbers=frozenset(map(named, sheet.numbers)))


def _changed_outputs(compared: ComparedComponent, model: ModelVerdict, titles: Sequence[str]) -> Iterator[Block]:
    """Yield the changed outputs with both values, or nothing if the outputs are not on this machine."""
    component, archive = compared.recorded.component, compared.recorded.archive
    runs = [run.run_id for run in (model.baseline, model.candidate) if run is not None]
    folders = [component.results_dir / run for run in runs]
    if len(runs) < 2 or not all((folder / ANSWERS).is_file() for folder in folders):
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


def write_verdicts(pages: Pages, compared: ComparedComponent) -> None:
    """Write a page for each version with the verdict on every model."""
    status, rows = compared.status, {row.run_id: row for row in compared.rows}
    for version, points in _points_by_version(status).items():
        pages.write(
            verdict_address(compared.name, version),
            "verdict.html",
            component=compared.name,
            state=compared.state,
            compare_address=compare_address(compared.name, version) if version in compared.versions else "",
            version=version,
            ship=status.ranking.advice.words,
            heads=_HEADS,
            cards=_worst_first(_version_entry(compared, model, point) for model, point in points.items()),
            metric=status.history.metric,
            figures=[run_figures(rows[point.run_id]) for point in points.values() if point.run_id in rows],
            rules={"tolerance": status.ranking.tolerance, "alpha": status.ranking.alpha},
            max_text=_MAX_SENTENCE,
        )


def _points_by_version(status: ComponentStatus) -> dict[str, dict[str, Point]]:
    """Return the points of each model as `{version: {model id: point}}`, the newest version first."""
    points: dict[str, dict[str, Point]] = {}
    for model in status.history.models:
        for point in model.points:
            points.setdefault(point.version, {})[model.model_id] = point
    return {version: points[version] for version in sorted(points, key=precedence, reverse=True)}


def _worst_first(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        entries, key=lambda entry: (ORDER.index(entry["verdict"]), entry["difference"] or 0.0, entry["model"])
    )


def _version_entry(compared: ComparedComponent, model: str, point: Point) -> dict[str, Any]:
    """Return the verdict on a version with a model, its evidence, what was `lost`, and the first reasons.

    `repeated` has the reasons that name a lost field.
    """
    entry: dict[str, Any] = {
        "model": model,
        "timestamp": point.timestamp,
        "verdict": "first",
        "before": None,
        "difference": None,
    }
    step = point.step
    if step is None:
        return {**entry, "figures": "", "lost": (), "reasons": (), "repeated": ()}
    entry |= {"verdict": step.verdict, "before": step.before, "difference": step.difference}
    entry["reasons"] = step.reasons[:_MAX_REASONS]
    result = compared.versions.get(point.version)
    verdict = None if result is None else result.on_run(point.run_id)
    if verdict is None or verdict.baseline is None:
        return {**entry, "figures": _step_figures(compared, point), "lost": (), "repeated": ()}
    fell = sorted((field for field in verdict.fields if field.verdict == "regressed"), key=lambda f: f.difference or 0)
    names = {field.metric: f"{field.metric or WHOLE} {arrow(field.baseline, field.candidate)}" for field in fell}
    return {
        **entry,
        "figures": "" if verdict.verdict == "incomparable" else certainty(verdict),
        "lost": list(_lost_lines(compared.name, verdict, names)),
        "repeated": [reason for reason in step.reasons if any(name in reason for name in names.values())],
    }


def _step_figures(compared: ComparedComponent, point: Point) -> str:
    """Format the change of a version that has no comparison on the site; "" if there is no change to show."""
    step = point.step
    if step is None or step.difference is None:
        return ""
    change = f"{compared.status.history.metric} {signed(step.difference)}"
    return difference_words(change, point.n_cases, step.ci95, step.q)


def _lost_lines(component: str, model: ModelVerdict, fields: Mapping[str, str]) -> Iterator[Line]:
    """Yield the fields that fell significantly, else the field that fell most, and the cases that broke."""
    largest_fall = "" if fields else fell_most_words(model)
    if fields:
        pages = [(name, component_address(component, path)) for path, name in fields.items()]
        yield Line(Cell("Fields that fell: ", "bold"), *links(pages, _MAX_LOST))
    if largest_fall:
        yield Line(Cell("Fell most, not significantly: ", "bold"), largest_fall)
    cases = model.cases.worse
    if cases:
        noise = "Worse in every output, though each case by itself may be noise"
        pages = [(case_id, case_address(component, case_id)) for case_id in cases]
        title = Cell(f"{'Cases that broke' if model.cases.broke else noise}: ", "bold")
        yield Line(title, *links(pages, _MAX_LOST))
    if not (fields or largest_fall or cases):
        yield Line("No field and no case fell significantly.")


def version_changes(compared: ComparedComponent) -> Iterator[dict[str, Any]]:
    """Yield an entry for each of the newest versions of a component, with its verdicts, the worst first."""
    component = compared.name
    for version, points in list(_points_by_version(compared.status).items())[:NEWEST]:
        entries = _worst_first(_version_entry(compared, model, point) for model, point in points.items())
        yield {
            "component": component,
            "address": component_address(component),
            "verdict_address": verdict_address(component, version),
            "version": version,
            "timestamp": max(entry["timestamp"] for entry in entries),
            "verdicts": _verdict_counts(entries),
            "entries": entries,
        }


def _verdict_counts(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return each verdict with the number of its models, or for a change with the model that changed most."""
    by_verdict: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_verdict.setdefault(entry["verdict"], []).append(entry)
    summary = []
    for verdict, models in by_verdict.items():
        summary_words = f"× {len(models)}"
        if verdict in ("regressed", "improved"):
            largest = max(models, key=lambda entry: abs(entry["difference"] or 0.0))
            moved = "" if largest["difference"] is None else f" {signed(largest['difference'])}"
            name = (
                largest["model"]
                if len(largest["model"]) <= _MAX_NAME
                else f"{largest['model'][:7]}…{largest['model'][-9:]}"
            )
            summary_words = f"{name}{moved}{f', {len(models) - 1} more' * (len(models) > 1)}"
        summary.append({"verdict": verdict, "words": summary_words})
    return summary


def write_changes(pages: Pages, changes: Iterable[dict[str, Any]], states: Iterable[ComponentState]) -> None:
    """Write the page of changes, the newest versions first; `states` has the state of every component."""
    newest = sorted(changes, key=lambda change: (change["timestamp"], change["component"]), reverse=True)
    models = max((len(change["entries"]) for change in newest), default=1)
    shown, more = first_rows(newest, _MAX_ENTRIES // models)
    by_version = {(state.component, state.version): state for state in states}
    current = [at for at, change in enumerate(shown) if (change["component"], change["version"]) in by_version]
    alarms = [at for at in current if by_version[shown[at]["component"], shown[at]["version"]].alarm]
    opened = (alarms or current)[:_MAX_OPEN]
    pages.write("changes.html", "changes.html", versions=shown, states=by_version, more=more, opened=opened)


def write_overview(
    pages: "Pages",
    states: Sequence[ComponentState],
    rows: Sequence[Mapping[str, Any]],
    problems: Sequence[Mapping[str, str]],
    retiring: Sequence[str],
) -> None:
    """Write the overview; `states` has every component, and `rows` each component with each model."""
    measured = []
    for row in rows:
        verdicts = [verdict["verdict"] or "first" for verdict in (row, row["also"]) if verdict is not None]
        worst = min(map(ORDER.index, verdicts))
        address = component_address(row["component"])
        measured.append({**row, "verdicts": verdicts, "rank": worst, "address": address})
    shown, more = first_rows(sorted(measured, key=lambda row: (row["rank"], row["component"])), _MAX_PAIRS)
    counts = [(verdict, sum(verdict in row["verdicts"] for row in measured)) for verdict in ORDER]
    pages.write(
        "index.html",
        "overview.html",
        states=sorted(states, key=lambda state: (not state.alarm, not state.version, state.component)),
        past=[(state.component, regression) for state in states for regression in state.past],
        rows=shown,
        more=more,
        counts=[(verdict, many) for verdict, many in counts if many],
        graded=any(row["grade"] for row in shown),
        problems=problems,
        retiring=retiring,
    )
