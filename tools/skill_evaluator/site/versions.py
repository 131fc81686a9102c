"""The verdicts on versions: a page for each version, the overview of all components, and the page of what changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from skill_evaluator.display import WHOLE, arrow, probability, signed
from skill_evaluator.display.addresses import case_address, compare_address, component_address, verdict_address
from skill_evaluator.display.pages import Line
from skill_evaluator.display.sheets import Cell
from skill_evaluator.records.archive import precedence
from skill_evaluator.reports.summary import evidence_words, fell_most_words, interval_words
from skill_evaluator.site.compare import ComparedComponent
from skill_evaluator.site.component import run_figures
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState, certainty, links
from skill_evaluator.site.writing import first_rows
from skill_evaluator.verdicts.decide.results import ModelVerdict
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.history.component import ComponentStatus
from skill_evaluator.verdicts.history.series import Point

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


def write_verdicts(pages: Pages, compared: ComparedComponent) -> None:
    """Write the page of the verdict on each version, with every model."""
    standing, rows = compared.standing, {row.run_id: row for row in compared.rows}
    for version, points in _points_by_version(standing).items():
        pages.write(
            verdict_address(compared.name, version),
            "verdict.html",
            component=compared.name,
            state=compared.state,
            compare_address=compare_address(compared.name, version) if version in compared.versions else "",
            version=version,
            ship=standing.ranking.advice.words,
            heads=_HEADS,
            cards=_worst_first(_version_entry(compared, model, point) for model, point in points.items()),
            metric=standing.history.metric,
            figures=[run_figures(rows[point.run_id]) for point in points.values() if point.run_id in rows],
            rules={"tolerance": standing.ranking.tolerance, "alpha": standing.ranking.alpha},
            max_text=_MAX_SENTENCE,
        )


def _points_by_version(standing: ComponentStatus) -> dict[str, dict[str, Point]]:
    """Return the points of each model by version, the newest version first."""
    points: dict[str, dict[str, Point]] = {}
    for model in standing.history.models:
        for point in model.points:
            points.setdefault(point.version, {})[model.model_id] = point
    return {version: points[version] for version in sorted(points, key=precedence, reverse=True)}


def _worst_first(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        entries, key=lambda entry: (ORDER.index(entry["verdict"]), entry["difference"] or 0.0, entry["model"])
    )


def _version_entry(compared: ComparedComponent, model: str, point: Point) -> dict[str, Any]:
    """Return the verdict on a version with a model since the version before, what was lost, and the first reasons."""
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
    """Format the change to an older version, of which the site has no comparison."""
    step = point.step
    if step is None or step.difference is None:
        return ""
    change = f"{compared.standing.history.metric} {signed(step.difference)}"
    evidence = interval_words(step.ci95, point.n_cases), f"adjusted p-value {probability(step.q)}"
    return evidence_words(change, point.n_cases, *evidence)


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
    """Yield each of the newest versions of a component with its verdicts, the worst first."""
    component = compared.name
    for version, points in list(_points_by_version(compared.standing).items())[:NEWEST]:
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
    """Return each verdict with the number of its models. For a change, name the model that changed most."""
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
    """Write the page of changes, the newest versions first; the states are those of all components."""
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
    """Write the overview. A state without a version is a component that was never measured."""
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
