"""The build of a site: pages of all components, audits, changes and judge runs."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from skill_evaluator.audit.page import site_audit
from skill_evaluator.audit.results import REPORTED, AuditResult, read_audit
from skill_evaluator.display import with_progress
from skill_evaluator.display.addresses import component_address, run_address
from skill_evaluator.display.options import (
    AUDITS,
    JUDGEMENTS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    Judgements,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.errors import (
    AuditError,
    ComponentError,
    ConfigError,
    FixtureError,
    InternalError,
    NotEvaluatedError,
    SkillEvaluatorError,
    StorageError,
)
from skill_evaluator.judges.prompting.judging import JUDGING
from skill_evaluator.library.cases import find_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import ComponentSite, Settings, load_models, load_settings, retiring
from skill_evaluator.library.sources import component_names
from skill_evaluator.providers.redaction import result_or_error
from skill_evaluator.records.archive import Archive, load_leaderboard
from skill_evaluator.records.record import Row
from skill_evaluator.reports.summary import Reader
from skill_evaluator.repository import Repository
from skill_evaluator.site.cases import case_list, write_cases, write_runs
from skill_evaluator.site.component import component_page, overview_rows
from skill_evaluator.site.judges import write_judges
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState, component_state
from skill_evaluator.site.versions import (
    ComparedComponent,
    version_changes,
    write_changes,
    write_comparisons,
    write_overview,
    write_verdicts,
)
from skill_evaluator.site.writing import SiteFolder, refuse_page_name
from skill_evaluator.text import counted, nearest
from skill_evaluator.verdicts.component import RecordedComponent

_HERE = Path(__file__).parent
_MAX_AUDIT_TEXT = 5_000  # characters; the sentence on a cohort names many figures
_REMEDY = "repair the named file, or restore it from git (git checkout -- FILE), and build again"
_ASSETS = ("site.css", "tables.js")


_Entries = tuple[ComponentState, list[dict[str, Any]], list[dict[str, Any]]]
"""The state of a component, its rows of the overview, and its versions on the page of changes."""


def _write_audits(pages: "Pages", folder: Path) -> dict[str, str | None]:
    """Write the page of each reported audit. Return the grades by model of the newest audit, {} if there is none."""
    results: dict[str, AuditResult] = {}
    for path in sorted(folder.glob(f"*/{REPORTED}"), reverse=True):
        name = path.parent.name
        try:
            refuse_page_name(name, AuditError)
            results[name] = read_audit(path)
        except AuditError as problem:
            pages.site.note(f"audit {name}", problem)
    if not results:
        pages.write("audit.html", "audit.html", name="")
        return {}

    newest = next(iter(results))
    addresses = {name: "audit.html" if name == newest else f"audits/{name}.html" for name in results}
    listed = [
        {"name": name, "address": addresses[name], "models": counted(len(result.cohort), "model")}
        for name, result in results.items()
    ]
    for name, result in results.items():
        others = [row for row in listed if row["name"] != name]
        page = {"name": name, "others": others, **site_audit(result)}
        pages.write(addresses[name], "audit.html", max_text=_MAX_AUDIT_TEXT, **page)
    return {model.model: model.grade for model in results[newest].models}


@options
class SiteBuild(ComponentsOption, FixturesOption, ConfigOption):
    """Options of `site build`."""

    out: Path = option("An empty folder, or one that holds an earlier build.", Path("site"), metavar="DIR")
    recorded: tuple[str, ...] = rare("Also read the records on this branch; repeatable.", (), metavar="REF")
    audits: Audits = AUDITS
    judgements: Judgements = JUDGEMENTS
    outputs: bool = flag("Include documents, ground truths and outputs.")


def build_site(build: SiteBuild) -> SiteFolder:
    """Write the pages of a site and remove those of earlier builds. Raise ComponentError if there is no component."""
    settings = load_settings(build.config)
    names = component_names(build.components)
    if not names:
        raise ComponentError(f"no component in {build.components}; name their folder with --components DIR")
    for name in sorted(settings.site.components.keys() - set(names)):
        where = f"site.components.{name} in {build.config / 'settings.yaml'}"
        print(f"warning: {where} does not name a component {nearest(name, names)}", file=sys.stderr)
    if build.outputs:
        documents = dict.fromkeys(names, ComponentSite(documents=True))
        settings = settings.model_copy(update={"site": settings.site.model_copy(update={"components": documents})})
    site = SiteFolder(build.out)
    pages = Pages(site)
    for asset in _ASSETS:
        site.write(f"assets/{asset}", (_HERE / "assets" / asset).read_text("utf-8"))
    grades = _write_audits(pages, build.audits)
    states, rows, changes = list[ComponentState](), list[dict[str, Any]](), list[dict[str, Any]]()
    for name in with_progress(names, len(names), "pages of components"):
        result = result_or_error(name, partial(_write_component, pages, build, name, settings, grades))
        if isinstance(result, StorageError):  # the site itself cannot be written
            raise result
        if isinstance(result, SkillEvaluatorError):
            if not isinstance(result, NotEvaluatedError):
                site.note(name, result)
            alarm = not isinstance(result, NotEvaluatedError)
            result = ComponentState(component=name, reason=str(result), alarm=alarm), [], []
        states.append(result[0])
        rows += result[1]
        changes += result[2]
    write_judges(pages, build.judgements, build.config, settings)
    retiring_models: list[str] = []
    with suppress(ConfigError):  # a site needs no models.yaml
        retiring_models = retiring(load_models(build.config, settings.limits))
    problems = [{"name": name, "reason": str(error)} for name, error in site.problems.items() if name not in names]
    write_overview(pages, states, rows, problems, retiring_models)
    write_changes(pages, changes, states)
    site.finish()
    bugs = sum(isinstance(problem, InternalError) for problem in site.problems.values())
    if unread := len(site.problems) - bugs:
        print(f"{counted(unread, 'part')} could not be read: {_REMEDY}", file=sys.stderr)
    if bugs:
        print(
            f"{counted(bugs, 'part')} missing because of a bug in skill-evaluator: report the traceback",
            file=sys.stderr,
        )
    return site


def _write_component(
    pages: "Pages", build: SiteBuild, name: str, settings: Settings, grades: Mapping[str, str | None]
) -> _Entries:
    component = load_component(build.components, name, settings.limits)
    archive = Archive(component, Repository(build.components) if build.recorded else None, build.recorded)
    recorded = RecordedComponent(component=component, archive=archive, settings=settings)
    status, runs = recorded.status(), _run_rows(recorded)
    if status is None:
        reason, alarm = _reason_unmeasured(recorded, runs, build.fixtures)
        return ComponentState(component=name, reason=reason, alarm=alarm), [], []
    names = None if settings.site.publishes_documents(name) else PublicNames(component)
    remarks = [] if names is None else names.remarks(status)
    status = status if names is None else names.status(status)
    comparisons = recorded.comparisons() if names is None else names.comparisons(recorded.comparisons())
    state = component_state(name, status, comparisons, runs)
    compared = ComparedComponent(
        recorded=recorded,
        rows=runs,
        status=status,
        comparisons=comparisons,
        state=state,
        fixtures=build.fixtures,
        shows_outputs=names is None,
    )
    write_comparisons(pages, compared)
    write_verdicts(pages, compared)
    answered, cases = write_cases(pages, compared, names)
    write_runs(pages, answered, cases, state)
    page = component_page(component.version, status, runs)
    pages.write(
        component_address(name),
        "component.html",
        component=name,
        state=state,
        page={**page, "remarks": [*page["remarks"], *remarks]},
        cases=case_list(name, status.newest),
        runs=[
            {"model": run.entry.model_id, "version": run.entry.version, "address": run_address(name, run.id)}
            for run in answered
        ],
        compare_address=compared.first_address,
        private=names is not None,
        judged=any(build.judgements.glob(f"*/{JUDGING}")),
    )
    return state, overview_rows(name, status, runs, grades), list(version_changes(compared))


def _reason_unmeasured(recorded: RecordedComponent, runs: Sequence[Row], fixtures: Path | None) -> tuple[str, bool]:
    """Return the reason that no run is complete, and True if too few outputs could be read."""
    component = recorded.component
    try:
        find_cases(component, fixtures)
    except (FixtureError, NotEvaluatedError):
        return f"no fixtures: fixtures/{component.fixtures} has no cases", False
    if any(row.usable is not None for row in runs):
        return f"{component.version} could not be measured: too few outputs could be read", True
    never = f"not evaluated yet; {Reader().command('evaluate', component.name)} records its first run"
    return "no run of it is complete" if recorded.archive.entries else never, False


def _run_rows(recorded: RecordedComponent) -> list[Row]:
    """Return the rows of the runs on the leaderboard, then those of runs that are recorded on other branches."""
    component, archive = recorded.component, recorded.archive
    run_ids = {entry.run_id for entry in archive.entries}  # the archive skips versions that are not semver
    board = load_leaderboard(component.leaderboard_path, component.name, component.formerly)
    rows = [row for row in board.runs if row.run_id in run_ids]
    here = {row.run_id for row in rows}
    return [*rows, *(archive.record(entry).row() for entry in archive.entries if entry.run_id not in here)]
