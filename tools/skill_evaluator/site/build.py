"""The build of a site, and its server on this machine: pages of components, audits, changes and judge runs."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from skill_evaluator.files import read_versioned
from skill_evaluator.judges.calibration.results import JudgeCalibration, read_calibration
from skill_evaluator.judges.judge_run import JUDGING, RESULTS, JudgeMode, read_judge_run
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression import RegressionResults
from skill_evaluator.judges.modes.results import RESULTS_VERSION
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.review.queue import queue_in, status_lines
from skill_evaluator.library import options as cli
from skill_evaluator.library.cases import find_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import ComponentSite, Settings, load_models, load_settings, retiring
from skill_evaluator.library.sources import component_names
from skill_evaluator.providers.access import result_or_error
from skill_evaluator.records.archive import Archive, load_leaderboard
from skill_evaluator.records.record import Row
from skill_evaluator.reports.judge_results import JudgeRunResults, judge_outcome, judge_run_blocks
from skill_evaluator.reports.summary import ComparisonSummary, Reader
from skill_evaluator.repository import Repository
from skill_evaluator.site import POLICY, SiteFolder, refuse_page_name
from skill_evaluator.site import component as component_pages
from skill_evaluator.site.cases import case_list, write_cases
from skill_evaluator.site.component import ComponentState
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import write_page
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, nearest
from skill_evaluator.verdicts.component import RecordedComponent

_HERE = Path(__file__).parent
_ASSETS = ("site.css", "tables.js")
_MAX_ROWS = 600  # rows of the overview
_MAX_ENTRIES = 600  # versions with their models on the page of changes
_MAX_OPEN = 2  # versions whose state is not collapsed
_NEWEST = 5  # versions of a component on the page of changes
_MAX_AUDIT_TEXT = 5_000  # characters; the sentence on a cohort names many figures
_REMEDY = "repair the named file, or restore it from git (git checkout -- FILE), and build again"
_Entries = tuple[ComponentState, list[dict[str, Any]], list[dict[str, Any]]]  # state, rows of the overview, versions
_KINDS: Mapping[JudgeMode, tuple[type[JudgeRunResults], str]] = {  # the other modes have no results
    "score": (ScoreResults, "scores"),
    "pairwise": (PairwiseResults, "comparisons"),
    "regression": (RegressionResults, "regressions"),
    "calibrate": (JudgeCalibration, "calibration"),
}
_MAX_JUDGE_RUNS = 100  # the newest ones


@cli.options
class SiteBuild(cli.ComponentsOption, cli.FixturesOption, cli.ConfigOption):
    """Options of `site build`."""

    out: Path = cli.option("Folder to write to: empty, or with an earlier build.", Path("site"), metavar="DIR")
    recorded: tuple[str, ...] = cli.rare("Also read the records on this branch; repeatable.", (), metavar="REF")
    audits: cli.Audits = cli.AUDITS
    judgements: cli.Judgements = cli.JUDGEMENTS
    outputs: bool = cli.flag("Include documents, ground truths and outputs.")


def build_site(build: SiteBuild) -> SiteFolder:
    """Build a site. Raise ComponentError if there is no component, and StorageError if the site cannot be written."""
    settings = load_settings(build.config)
    names = component_names(build.components)
    if not names:
        raise errors.ComponentError(f"no component in {build.components}; name another folder with --components DIR")
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
    _write_judges(site, build, settings, {state.component: state for state in states})
    retiring_models: list[str] = []
    with suppress(errors.ConfigError):  # a site needs no models.yaml
        retiring_models = retiring(load_models(build.config, settings.limits))
    problems = {name: error for name, error in site.problems.items() if name not in names}
    _write_overview(site, states, rows, problems, retiring_models)
    _write_changes(site, changes, states)
    site.finish()
    bugs = sum(isinstance(problem, errors.InternalError) for problem in site.problems.values())
    if unread := len(site.problems) - bugs:
        print(f"{counted(unread, 'part')} could not be read: {_REMEDY}", file=sys.stderr)
    if bugs:
        reason = "because of a bug in skill-evaluator: report the traceback"
        print(f"{counted(bugs, 'part')} missing {reason}", file=sys.stderr)
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
    return {model.model: model.grading.grade for model in results[newest].models}


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
    names, remarks = None, list[str]()
    if not settings.site.publishes_documents(name):
        names = PublicNames(component)
        remarks = names.remarks(status)
        status = names.status(status)
    compared = component_pages.ComparedComponent(recorded=recorded, rows=rows, status=status, names=names)
    component_pages.write_comparisons(site, compared)
    component_pages.write_verdicts(site, compared)
    answered = write_cases(site, compared)
    compared.write_page(
        site,
        component_address(name),
        "component.html",
        disk_version=component.version,
        page=component_pages.component_page(status, rows),
        remarks=remarks,
        cases=case_list(status.newest),
        runs=answered,
        compare_page=compared.first_address,
        judged=any(build.judgements.glob(f"*/{JUDGING}")),
    )
    return compared.state, list(component_pages.overview_rows(status, grades)), list(_version_changes(compared))


def _version_changes(compared: component_pages.ComparedComponent) -> Iterator[dict[str, Any]]:
    """Yield the values of the page of changes for each of the five highest versions.

    `entries` has the verdict of each model, the worst first. `verdicts` has each verdict once, with its models.
    """
    for version, entries in list(compared.entries.items())[:_NEWEST]:
        by_verdict = by_key((entry["verdict"], entry["model"]) for entry in entries)
        verdicts = list(by_verdict.items())
        change = {"component": compared.name, "version": version, "entries": entries, "verdicts": verdicts}
        yield {**change, "timestamp": max(entry["point"].timestamp for entry in entries)}


def _write_changes(site: SiteFolder, changes: Iterable[dict[str, Any]], states: Iterable[ComponentState]) -> None:
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


def _write_overview(
    site: SiteFolder,
    states: Sequence[ComponentState],
    rows: Sequence[Mapping[str, Any]],
    problems: Mapping[str, Exception],
    retiring: Sequence[str],
) -> None:
    """Write the overview page: `states` by component, `rows` by component and model, `problems` by part of the site."""
    counts = Counter(verdict for row in rows for verdict in row["verdicts"])
    write_page(
        site,
        "index.html",
        "overview.html",
        states=sorted(states, key=lambda state: (not state.alarm, not state.version, state.component)),
        past=[(state.component, regression) for state in states for regression in state.past],
        every=sorted(rows, key=lambda row: (row["rank"], row["component"])),
        room=_MAX_ROWS,
        counts=[(verdict, counts[verdict]) for verdict in component_pages.ORDER if counts[verdict]],
        problems=problems,
        retiring=retiring,
    )


def _write_judges(site: SiteFolder, build: SiteBuild, settings: Settings, states: Mapping[str, ComponentState]) -> None:
    """Write the list of the newest judge runs, a page for each, and one for the calibration that the settings name."""
    # names begin with the time
    folders = sorted((path.parent for path in build.judgements.glob(f"*/{JUDGING}")), reverse=True)
    rows, problems, unfinished = [], [], []
    for folder in folders[:_MAX_JUDGE_RUNS]:
        try:
            refuse_page_name(folder.name, errors.JudgeError)
            mode = read_judge_run(folder).mode
            if mode in _KINDS and (folder / RESULTS).exists():
                rows.append(_write_judge_run(site, folder, mode, build.components, states))
            elif mode in _KINDS:
                unfinished.append(folder.name)
        except errors.JudgeError as problem:
            problems.append({"name": folder.name, "reason": str(problem)})
            site.note(f"judge run {folder.name}", problem)
    write_page(
        site,
        "judges.html",
        "judges.html",
        rows=sorted(rows, key=lambda row: (row["head"].created, row["id"]), reverse=True),
        calibration=_write_calibration(site, build, settings),
        problems=problems,
        unfinished=unfinished,
        left_out=max(0, len(folders) - _MAX_JUDGE_RUNS),
        queue=_queue_status(site, build.config),
    )


def _write_calibration(site: SiteFolder, build: SiteBuild, settings: Settings) -> ComparisonSummary | None:
    """Write the page of the calibration that the settings name, if it can be read, and return its conclusion."""
    try:
        calibration = read_calibration(build.config, settings)
    except errors.JudgeError as problem:
        site.note("calibration of the settings", problem)
        return None
    if calibration is None:
        return None
    summary = judge_outcome(calibration, build.components)
    row = {"id": settings.policy.judge.calibration, "of": "", "state": None, "summary": summary}
    write_page(site, "calibration.html", "judge_run.html", row=row, page_blocks=judge_run_blocks(calibration))
    return summary


def _write_judge_run(
    site: SiteFolder, folder: Path, mode: JudgeMode, components: Path, states: Mapping[str, ComponentState]
) -> dict[str, Any]:
    """Write the page of a judge run and return its row of the list. Raise errors.JudgeError for invalid results."""
    (kind, noun), path = _KINDS[mode], folder / RESULTS
    results: JudgeRunResults = read_versioned(kind, path, "results_version", RESULTS_VERSION, errors.JudgeError)
    if results.judging is None:
        raise errors.JudgeError(f"{path} is not the result of a judge run: it has no `judging`")
    judges = [judge.judge if isinstance(judge.judge, str) else judge.judge.model_id for judge in results.judges]
    address, state = f"judges/{folder.name}.html", states.get(results.judging.skill or "")
    row = {"head": results.judging, "judges": judges, "of": noun, "id": folder.name, "address": address, "state": state}
    row["summary"] = judge_outcome(results, components)
    write_page(site, address, "judge_run.html", row=row, page_blocks=judge_run_blocks(results))
    return row


def _queue_status(site: SiteFolder, config: Path) -> list[str] | None:
    """Return lines on the review queue without reviewers' names. Return None if it is empty or cannot be read."""
    queue = queue_in(config)
    try:
        items = queue.items()
        labels = queue.labels(items)
    except errors.JudgeError as problem:
        site.note("review queue", problem)
        return None
    names = {name: f"reviewer {number}" for number, name in enumerate(sorted({label.reviewer for label in labels}), 1)}
    nameless = [label.model_copy(update={"reviewer": names[label.reviewer], "note": ""}) for label in labels]
    return status_lines(items, nameless) if items else None


def _reason_unmeasured(recorded: RecordedComponent, runs: Sequence[Row]) -> tuple[str, bool]:
    """Return the reason why no run is complete, and True if too few outputs could be read."""
    component = recorded.component
    try:
        find_cases(component)
    except (errors.FixtureError, errors.NotEvaluatedError):
        return f"no fixtures: fixtures/{component.files.cases.fixtures} has no cases", False
    if any(row.usable is not None for row in runs):
        return f"{component.version} could not be measured: too few outputs could be read", True
    never = f"not evaluated yet; {Reader().command('evaluate', component.name)} records its first run"
    return "no run of it is complete" if recorded.archive.entries else never, False


def _run_rows(recorded: RecordedComponent) -> list[Row]:
    """Return the rows of the runs on the leaderboard, then those of runs that are recorded on other branches."""
    component, archive = recorded.component, recorded.archive
    run_ids = {entry.run_id for entry in archive.entries}  # the archive skips versions that are not semver
    board = load_leaderboard(component.leaderboard_path, component.name, component.files.formerly)
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
def serving(request: ServedSite) -> Iterator[loopback.LoopbackServer]:
    """Build a site with outputs in a temporary folder and serve it until the context ends."""
    folders = {name: value for name, value in vars(request).items() if name != "port"}
    with tempfile.TemporaryDirectory(prefix="skill-evaluator-site-") as folder:
        build_site(SiteBuild(out=Path(folder), outputs=True, **folders))
        with loopback.LoopbackServer(request.port, partial(SiteRequest, directory=folder)) as server:
            yield server


class SiteRequest(loopback.PageHandler, SimpleHTTPRequestHandler):
    """A request for a file of the site in the folder `directory`."""

    server: loopback.LoopbackServer
    policy = f"{POLICY}; frame-ancestors 'none'"

    def send_head(self) -> Any:
        """Send the headers of a file of the site and return the open file.

        Send an error and return None if the host is foreign or the token is wrong, or if the path does not exist or is
        a folder (except the root).
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
