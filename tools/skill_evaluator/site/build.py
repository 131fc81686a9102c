"""The build of a site, and its server on this machine: pages of components, audits, changes and judge runs."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

from skill_evaluator import errors
from skill_evaluator.audit.page import site_audit
from skill_evaluator.audit.results import REPORTED, AuditResult, read_audit
from skill_evaluator.display import loopback, with_progress
from skill_evaluator.display.pages import component_address
from skill_evaluator.judges.prompting.judging import JUDGING
from skill_evaluator.library import options as cli
from skill_evaluator.library.cases import find_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import ComponentSite, Settings, load_models, load_settings, retiring
from skill_evaluator.library.sources import component_names
from skill_evaluator.providers.redaction import result_or_error
from skill_evaluator.records.archive import Archive, load_leaderboard
from skill_evaluator.records.record import Row
from skill_evaluator.reports.summary import Reader
from skill_evaluator.repository import Repository
from skill_evaluator.site import POLICY, SiteFolder, refuse_page_name, versions
from skill_evaluator.site.cases import case_list, write_cases
from skill_evaluator.site.component import ComponentState, component_page, overview_rows
from skill_evaluator.site.judges import write_judges
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import write_page
from skill_evaluator.text import counted, nearest
from skill_evaluator.verdicts.component import RecordedComponent

_HERE = Path(__file__).parent
_ASSETS = ("site.css", "tables.js")
_MAX_AUDIT_TEXT = 5_000  # characters; the sentence on a cohort names many figures
_REMEDY = "repair the named file, or restore it from git (git checkout -- FILE), and build again"
_Entries = tuple[ComponentState, list[dict[str, Any]], list[dict[str, Any]]]  # state, rows of the overview, versions


@cli.options
class SiteBuild(cli.ComponentsOption, cli.FixturesOption, cli.ConfigOption):
    """Options of `site build`."""

    out: Path = cli.option("Folder to write to: empty, or with an earlier build.", Path("site"), metavar="DIR")
    recorded: tuple[str, ...] = cli.rare("Also read the records on this branch; repeatable.", (), metavar="REF")
    audits: cli.Audits = cli.AUDITS
    judgements: cli.Judgements = cli.JUDGEMENTS
    outputs: bool = cli.flag("Include documents, ground truths and outputs.")


def build_site(build: SiteBuild) -> SiteFolder:
    """Build a site and return its folder.

    Raise ComponentError if there is no component. Raise StorageError if the site cannot be written.
    """
    settings = load_settings(build.config)
    names = component_names(build.components)
    if not names:
        raise errors.ComponentError(f"no component in {build.components}; name their folder with --components DIR")
    for name in sorted(settings.site.components.keys() - set(names)):
        where = f"site.components.{name} in {build.config / 'settings.yaml'}"
        print(f"warning: {where} does not name a component {nearest(name, names)}", file=sys.stderr)
    if build.outputs:
        documents = dict.fromkeys(names, ComponentSite(documents=True))
        settings = settings.model_copy(update={"site": settings.site.model_copy(update={"components": documents})})
    site = SiteFolder(build.out)
    for asset in _ASSETS:
        site.write(f"assets/{asset}", (_HERE / "assets" / asset).read_text("utf-8"))
    grades = _write_audits(site, build.audits)
    states, rows, changes = list[ComponentState](), list[dict[str, Any]](), list[dict[str, Any]]()
    for name in with_progress(names, len(names), "pages of components"):
        result = result_or_error(name, partial(_write_component, site, build, name, settings, grades))
        if isinstance(result, errors.StorageError):  # the site itself cannot be written
            raise result
        if isinstance(result, errors.SkillEvaluatorError):
            alarm = not isinstance(result, errors.NotEvaluatedError)
            if alarm:
                site.note(name, result)
            result = ComponentState(component=name, reason=str(result), alarm=alarm), [], []
        states.append(result[0])
        rows += result[1]
        changes += result[2]
    write_judges(site, build.judgements, build.config, settings)
    retiring_models: list[str] = []
    with suppress(errors.ConfigError):  # a site needs no models.yaml
        retiring_models = retiring(load_models(build.config, settings.limits))
    problems = {name: error for name, error in site.problems.items() if name not in names}
    versions.write_overview(site, states, rows, problems, retiring_models)
    versions.write_changes(site, changes, states)
    site.finish()
    bugs = sum(isinstance(problem, errors.InternalError) for problem in site.problems.values())
    if unread := len(site.problems) - bugs:
        print(f"{counted(unread, 'part')} could not be read: {_REMEDY}", file=sys.stderr)
    if bugs:
        missing = f"{counted(bugs, 'part')} missing because of a bug in skill-evaluator"
        print(f"{missing}: report the traceback", file=sys.stderr)
    return site


def _write_audits(site: SiteFolder, folder: Path) -> dict[str, str | None]:
    """Write the page of each reported audit. Return the grades in the newest audit by model id."""
    results: dict[str, AuditResult] = {}
    for path in sorted(folder.glob(f"*/{REPORTED}"), reverse=True):
        name = path.parent.name
        try:
            refuse_page_name(name, errors.AuditError)
            results[name] = read_audit(path)
        except errors.AuditError as problem:
            site.note(f"audit {name}", problem)
    if not results:
        write_page(site, "audit.html", "audit.html", name="")
        return {}
    newest = next(iter(results))
    addresses = {name: "audit.html" if name == newest else f"audits/{name}.html" for name in results}
    for name, result in results.items():
        others = [(other, addresses[other], len(results[other].cohort)) for other in results if other != name]
        page = {"name": name, "others": others, **site_audit(result)}
        write_page(site, addresses[name], "audit.html", max_text=_MAX_AUDIT_TEXT, **page)
    return {model.model: model.grade for model in results[newest].models}


def _write_component(
    site: SiteFolder, build: SiteBuild, name: str, settings: Settings, grades: Mapping[str, str | None]
) -> _Entries:
    component = load_component(build.components, name, settings.limits, build.fixtures)
    archive = Archive(component, Repository(build.components) if build.recorded else None, build.recorded)
    recorded = RecordedComponent(component=component, archive=archive, settings=settings)
    status, rows = recorded.status(), _run_rows(recorded)
    if status is None:
        reason, alarm = _reason_unmeasured(recorded, rows)
        return ComponentState(component=name, reason=reason, alarm=alarm), [], []
    names, comparisons, remarks = None, recorded.comparisons(), list[str]()
    if not settings.site.publishes_documents(name):
        names = PublicNames(component)
        remarks = names.remarks(status)
        status, comparisons = names.status(status), names.comparisons(comparisons)
    compared = versions.ComparedComponent(
        recorded=recorded, rows=rows, status=status, comparisons=comparisons, names=names
    )
    versions.write_comparisons(site, compared)
    versions.write_verdicts(site, compared)
    answered = write_cases(site, compared)
    write_page(
        site,
        component_address(name),
        "component.html",
        component=name,
        state=compared.state,
        disk_version=component.version,
        page=component_page(status, rows),
        remarks=remarks,
        cases=case_list(name, status.newest),
        runs=answered,
        compare_address=compared.first_address,
        private=compared.is_private,
        judged=any(build.judgements.glob(f"*/{JUDGING}")),
    )
    return compared.state, list(overview_rows(status, rows, grades)), versions.version_changes(compared)


def _reason_unmeasured(recorded: RecordedComponent, runs: Sequence[Row]) -> tuple[str, bool]:
    """Return the reason why no run is complete, and whether the reason is that too few outputs could be read."""
    component = recorded.component
    try:
        find_cases(component)
    except (errors.FixtureError, errors.NotEvaluatedError):
        return f"no fixtures: fixtures/{component.case_files.fixtures} has no cases", False
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


@cli.options
class ServedSite(cli.ComponentsOption, cli.FixturesOption, cli.ConfigOption):
    """Options of `site serve`."""

    port: int = cli.option("Port of the page; by default any free one.", 0, min=0, max=65535)
    audits: cli.Audits = cli.AUDITS
    judgements: cli.Judgements = cli.JUDGEMENTS


@contextmanager
def serving(request: ServedSite) -> Iterator["SiteServer"]:
    """Build a site with outputs in a temporary folder and serve it until the context ends."""
    folders = {name: value for name, value in vars(request).items() if name != "port"}
    with tempfile.TemporaryDirectory(prefix="skill-evaluator-site-") as folder:
        build_site(SiteBuild(out=Path(folder), outputs=True, **folders))
        with SiteServer(Path(folder), request.port) as server:
            yield server


class SiteServer(loopback.LoopbackServer):
    """A server of a folder with a site, at an address with a token; `port` 0 selects a free port."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(port, partial(_Request, directory=str(folder)))


class _Request(loopback.PageHandler, SimpleHTTPRequestHandler):
    server: SiteServer
    policy = f"{POLICY}; frame-ancestors 'none'"

    def send_head(self) -> Any:
        """Send the headers of a file of the site and return the open file.

        Send an error and return None if the host is foreign, the token is missing, or the path is a folder (except the
        root) or does not exist.
        """
        try:
            name = self.server.path_inside(self).partition("?")[0] or "index.html"
        except loopback.RefusedError as problem:
            self.send_error(problem.status, str(problem))
            return None
        self.path = f"/{name}"
        if not Path(self.translate_path(self.path)).is_file():  # no listing and no redirect
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()
