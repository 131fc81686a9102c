"""`skill-evaluator cases`: make cases of the rows of a table, fetch them, and say what each one tells."""

from pathlib import Path

from skill_evaluator.ci.fixtures import fetched_fixtures
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.options import leave_out
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    OnlyModels,
    PlatformOption,
    Skill,
    SkipInvalid,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.errors import EXIT_OK, ComponentError, FixtureError, LeaderboardError, refuse
from skill_evaluator.library.case_table import Columns, cases_of, read_rows, write_cases
from skill_evaluator.library.components import load_component, places_of
from skill_evaluator.library.config import load_settings
from skill_evaluator.providers.weights import cache_dir
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_of_models
from skill_evaluator.reports.cases import print_case_audit
from skill_evaluator.text import counted

EXAMPLES = {
    "cases_audit": ("skill-evaluator cases audit <component>",),
    "cases_fetch": ("skill-evaluator cases fetch",),
    "cases_import": (
        "skill-evaluator cases import letters.csv --skill letter-kind --input text --truth kind=label --truth due",
        "skill-evaluator cases import logs.jsonl --skill summary --input article --truth summary --id number --yes",
    ),
}
EXITS = {
    "cases_fetch": {0: "done, or none is named"},
}

_SHOWN = 3


@options
class CasesImportOptions(ComponentsOption, FixturesOption, ConfigOption):
    """The options of `cases import`."""

    file: Path = argument("A table: .csv or .tsv with a row of names, or .jsonl.", metavar="FILE")
    document: str = option("The column of the documents.", ..., "--input", metavar="COLUMN")
    truth: tuple[str, ...] = option(
        "The column of the whole ground truth; or, repeated or with FIELD=, of one field of it.",
        (),
        metavar="[FIELD=]COLUMN",
    )
    id: str | None = option("The column of the cases' ids; default: numbered.", metavar="COLUMN")
    skill: str | None = option("The component, where there are several.", metavar="NAME")
    yes: bool = flag("Write the cases; without it they are only checked.")
    skip_invalid: SkipInvalid = False


def cases_import(options: CasesImportOptions) -> int:
    """Make cases of the rows of a table, each checked against the contract; overwrites nothing."""
    names = sorted(path.parent.name for path in options.components.glob("*/prompt.md"))
    if options.skill is None and len(names) != 1:
        raise ComponentError(f"name the component with --skill NAME: there are {len(names)} in {options.components}")
    settings = load_settings(options.config)
    if settings.fixtures and options.fixtures and options.fixtures.is_relative_to(cache_dir()):
        raise FixtureError(
            f"the cases belong into {settings.fixtures.repository}; name a clone of it with --fixtures DIR"
        )
    limits = settings.limits
    component = load_component(options.components, options.skill or names[0], limits, options.fixtures)
    if component.output == "choice":
        raise FixtureError(f"'{component.name}' asks questions: its cases are lines of questions.jsonl, not documents")
    odd = leave_out if options.skip_invalid else refuse
    rows = read_rows(options.file, limits.size_of("document_bytes"), odd)
    columns = Columns(document=options.document, truth=options.truth, id=options.id)
    cases = cases_of(options.file, rows, columns, component, odd)
    places = places_of(component.folder, component.fixtures, options.fixtures, "cases")
    place = next((place for place in places if place.is_dir()), places[0])
    there = [case_id for case_id in cases if (place / case_id).exists()]
    if there:
        raise FixtureError(f"{place / there[0]} is there, and nothing is overwritten; take other ids with --id COLUMN")
    labelled = sum(len(files) > 1 for files in cases.values())
    print(f"{counted(len(cases), 'case')} of {component.name}, {labelled} with ground truth, in {place}:")
    for case_id, files in list(cases.items())[:_SHOWN]:
        print(f"  {case_id}: {', '.join(files)}")
    if len(cases) > _SHOWN:
        print(f"  … and {len(cases) - _SHOWN} more, to {list(cases)[-1]}")
    if not options.yes:
        print("nothing was written; --yes writes them")
        return EXIT_OK
    write_cases(place, cases)
    print("written")
    return EXIT_OK


@options
class CasesFetchOptions(ConfigOption, PlatformOption):
    """The options of `cases fetch`."""


def cases_fetch(options: CasesFetchOptions) -> int:
    """Bring the fixtures that settings.yaml names in another repository, and say at which commit they are.

    Every command that reads cases does the same first.
    """
    elsewhere = load_settings(options.config).fixtures
    if elsewhere is None:
        print("settings.yaml names no other repository for fixtures; nothing was fetched")
        return EXIT_OK
    folder, commit = fetched_fixtures(elsewhere)
    print(f"{elsewhere.repository} at {commit} is in {folder}")
    if options.platform:
        PLATFORMS[options.platform].set_outputs({"commit": commit})
    return EXIT_OK


@options
class CasesAuditOptions(ComponentsOption, ConfigOption, FormatOption):
    """The options of `cases audit`."""

    skill: Skill
    models: OnlyModels = ()


def cases_audit(options: CasesAuditOptions) -> int:
    """Say which cases never told two versions or models apart, and which disagree with the rest. Makes no call."""
    from skill_evaluator.evaluation.discrimination import audit_cases  # imports scipy: not for help

    settings = load_settings(options.config)
    component = load_component(options.components, options.skill, settings.limits)
    archive = Archive(component)
    entries = [
        entry
        for entry in runs_of_models(archive.entries, options.models, component.leaderboard_path)
        if entry.complete and entry.scenario is None and not entry.edited
    ]
    runs: dict[str, list[Record]] = {}
    for entry in sorted(entries, key=lambda entry: entry.standing):
        runs.setdefault(f"{entry.version} {entry.model_id}", []).append(archive.record(entry))
    if len(runs) < 2:
        raise LeaderboardError(
            f"{component.leaderboard_path} holds complete runs of {len(runs)} version and model; two are needed"
        )
    newest = archive.record(max(entries, key=lambda entry: entry.order))
    own = settings.policy.components.get(component.name)
    tolerance = settings.policy.tolerance if own is None or own.tolerance is None else own.tolerance
    print_case_audit(audit_cases(component.name, newest.primary_metric, runs, newest, tolerance), options.format)
    return EXIT_OK
