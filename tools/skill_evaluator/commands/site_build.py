"""`skill-evaluator site build`: everything that is recorded as static pages, without a call and without a network."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from skill_evaluator.commands.options import (
    AUDITS,
    JUDGEMENTS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    Judgements,
    option,
    options,
)
from skill_evaluator.commands.site_audits import write_audits
from skill_evaluator.commands.site_cases import write_cases
from skill_evaluator.commands.site_compare import write_comparisons
from skill_evaluator.commands.site_judges import write_judges
from skill_evaluator.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    ComponentError,
    ConfigError,
    FixtureError,
    NotEvaluatedError,
    SkillEvaluatorError,
    StorageError,
)
from skill_evaluator.library.cases import find_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Settings, load_models, load_settings, retiring
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.leaderboard import load_leaderboard
from skill_evaluator.records.record import Row
from skill_evaluator.repository import Repository
from skill_evaluator.site.changes import MOST_CHANGES, change_rows
from skill_evaluator.site.component import component_page
from skill_evaluator.site.overview import bare_row, overview_rows
from skill_evaluator.site.pages import write_pages
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.writing import SiteFolder, fitting
from skill_evaluator.text import counted, nearest
from skill_evaluator.verdicts.history.component import ComponentStanding, standing_of

EXAMPLES = ("skill-evaluator site build --out site",)
EXITS = {4: "a component or an audit could not be read; the site lists it with why, and has all others"}
INDEX = "index.html"
_REMEDY = "mend the file that is named, or take it back from git (git checkout -- FILE), and build again"


@options
class SiteBuildOptions(ComponentsOption, FixturesOption, ConfigOption):
    """The options of `site build`."""

    out: Path = option("An empty folder, or one that holds an earlier build.", Path("site"), metavar="DIR")
    recorded: tuple[str, ...] = option(
        "A branch that holds records beside the work tree; repeatable.", (), metavar="REF"
    )
    audits: Audits = AUDITS
    judgements: Judgements = JUDGEMENTS


def site_build(options: SiteBuildOptions) -> int:
    """Write what is recorded as static pages, which open from the file system and from any server. Makes no call.

    Building again writes only what changed. Documents, truths and raw answers are in it only of components whose
    settings say so: `site: {components: {NAME: {documents: true}}}`. What cannot be read is listed with why, beside
    everything else.
    """
    site = build(options)
    changed = f"{counted(site.written, 'file')} written, {site.removed} removed"
    print(f"{options.out / INDEX} ({changed})", flush=True)
    return EXIT_INCOMPLETE if site.problems else EXIT_OK


def build(options: SiteBuildOptions, *, own: bool = False) -> SiteFolder:
    """Build the site of a library; raise ComponentError where there is no component.

    One for nobody else's eyes (`own`) shows the documents of every component, each case when it is opened.
    """
    settings = load_settings(options.config)
    names = sorted(path.parent.name for path in options.components.glob("*/prompt.md"))
    if not names:
        raise ComponentError(f"no component in {options.components}; name their folder with --components DIR")
    for name in sorted(settings.site.components.keys() - set(names)):
        where = f"site.components.{name} in {options.config / 'settings.yaml'}"
        print(f"warning: {where} is no component {nearest(name, names)}", file=sys.stderr)
    if own:
        settings = settings.model_copy(update={"site": settings.site.with_documents(names)})
    site = SiteFolder(options.out, own=own)
    write_pages(site)
    audit, grades = write_audits(site, options.audits)
    rows: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    for name in names:
        standing, of_overview = _listed(site, name, options, settings, grades)
        rows += of_overview
        changes += [] if standing is None else change_rows(name, standing)
    write_judges(site, options.judgements, options.config, settings)
    leaving: list[str] = []
    with suppress(ConfigError):  # a site needs no models.yaml
        leaving = retiring(load_models(options.config, settings.limits))
    problems = [{"name": name, "why": why} for name, why in site.problems.items() if name not in names]
    site.write_data("overview", {"rows": rows, "problems": problems, "audit": audit, "retiring": leaving})
    newest = sorted(changes, key=lambda row: (row["timestamp"], row["run"]), reverse=True)
    site.write_data("changes", dict(zip(("rows", "left"), fitting(newest, MOST_CHANGES), strict=True)))
    site.finish()
    if site.problems:
        print(f"{counted(len(site.problems), 'part')} could not be read: {_REMEDY}", file=sys.stderr)
    return site


def _listed(
    site: SiteFolder, name: str, options: SiteBuildOptions, settings: Settings, grades: Mapping[str, str | None]
) -> tuple[ComponentStanding | None, list[dict[str, Any]]]:
    """Write the page of a component; one that cannot be read, or is not to be evaluated, is listed with why."""
    try:
        return _write_component(site, name, options, settings, grades)
    except NotEvaluatedError as problem:
        return None, [bare_row(name, None, str(problem))]
    except StorageError:  # of the site itself
        raise
    except SkillEvaluatorError as problem:
        site.note(name, problem)
        return None, [bare_row(name, None, str(problem))]


def _write_component(
    site: SiteFolder, name: str, options: SiteBuildOptions, settings: Settings, grades: Mapping[str, str | None]
) -> tuple[ComponentStanding | None, list[dict[str, Any]]]:
    """Write the page of a component; return what is known of it, and its rows of the overview."""
    component = load_component(options.components, name, settings.limits)
    archive = Archive(component, Repository(options.components) if options.recorded else None, options.recorded)
    standing = standing_of(component, archive, settings, options.config)
    if standing is None:
        try:
            find_cases(component, options.fixtures)
            why = "never scored" if not archive.entries else "no run of it is complete"
        except (FixtureError, NotEvaluatedError):
            why = "no fixtures"
        return None, [bare_row(name, component.version, why)]
    names = None if settings.site.publishes_documents(name) else PublicNames(component)
    remarks = [] if names is None else names.remarks(standing)
    standing = standing if names is None else names.standing(standing)
    runs = _rows(component, archive)
    page = component_page(name, component.version, standing, runs)
    site.write_data(f"components/{name}", {**page, "remarks": [*page["remarks"], *remarks]})
    write_cases(site, component, archive, runs, standing.kept.records, standing.newest, options.fixtures, names)
    write_comparisons(site, component, archive, standing, settings, options.config, options.fixtures, names)
    return standing, overview_rows(name, standing, grades)


def _rows(component: Component, archive: Archive) -> list[Row]:
    """Return the rows of an archive's runs: those of the leaderboard, then of runs recorded at another commit alone."""
    known = {entry.run_id for entry in archive.entries}  # none whose version is no version
    rows = [row for row in load_leaderboard(component.leaderboard_path, component.name).runs if row.run_id in known]
    here = {row.run_id for row in rows}
    return [*rows, *(archive.record(entry).row() for entry in archive.entries if entry.run_id not in here)]
