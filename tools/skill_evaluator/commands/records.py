"""`skill-evaluator compare`, `history`, `leaderboard`, `accept`, `explain`, `score`, `export` and `records import`."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import get_args

from skill_evaluator.api import library_of
from skill_evaluator.display import number, visible
from skill_evaluator.display.pages import Page, print_page, write
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError, LeaderboardError, SkillEvaluatorError, refuse
from skill_evaluator.exchange.exported import ExportRequest, export_records
from skill_evaluator.exchange.imported import ImportRequest, import_results
from skill_evaluator.files import replace_text
from skill_evaluator.library import options as cli
from skill_evaluator.library.config import VerdictName
from skill_evaluator.reports.comparison import comparison_page
from skill_evaluator.reports.evaluation import report_page, run_json
from skill_evaluator.reports.explanation import explanation_json, explanation_page
from skill_evaluator.reports.history import acceptances_page, accepted_json, accepted_page, history_page, rankings_page
from skill_evaluator.reports.live import leave_out
from skill_evaluator.reports.summary import Reader
from skill_evaluator.runner.journal import ANSWERS
from skill_evaluator.text import counted, nearest
from skill_evaluator.verdicts.decide.rules import exit_code

EXAMPLES = {
    "compare": (
        "skill-evaluator compare <component>",
        "skill-evaluator compare <component> --baseline 1.2.0 --model <model>",
        "skill-evaluator compare old.csv new.csv",
        "skill-evaluator compare <component> --models <model> <model>",
    ),
    "history": ("skill-evaluator history <component>", "skill-evaluator history <component> --fail-on regressed"),
    "leaderboard": (
        "skill-evaluator leaderboard",
        "skill-evaluator leaderboard <component> --model <model> --model <model>",
    ),
    "accept": (
        'skill-evaluator accept <component> --reason "dates now come from the parser"',
        'skill-evaluator accept <component> 1.4.0 --reason "cheaper, and good enough"',
        "skill-evaluator accept <component> --list",
    ),
    "explain": (
        "skill-evaluator explain <run-id> --case <case-id>",
        "skill-evaluator explain <run-folder> --field <path>",
    ),
    "score": ("skill-evaluator score components/<component>/evals/results/<run-id>",),
    "export": (
        "skill-evaluator export --table cases --to jsonl --out cases.jsonl",
        "skill-evaluator export <component> --table leaves > leaves.csv",
        "skill-evaluator export --to junit --out verdicts.xml",
    ),
    "records_import": (
        "skill-evaluator records import results.json --skill <component>",
        "skill-evaluator records import capitals.json",
        "skill-evaluator records import scores.csv --version 1.2.0 --model <model>",
    ),
}
EXITS = {
    "compare": {3: "regression", 4: "another model answered, or a verdict of --fail-on"},
    "history": {3: "regression, if --fail-on names it", 4: "another verdict of --fail-on"},
    "score": {4: "incomplete record"},
}


@cli.options
class CompareOptions(cli.RecordOptions):
    skill: str | None = cli.argument("A component, a record file, or another tool's results.", None, "COMPONENT")
    second_file: str | None = cli.argument("The new file, if the first argument is a file (the old one).", None, "FILE")
    baseline: str | None = cli.option("Old version, run or file; default: usually the accepted one.", metavar="VERSION")
    candidate: str | None = cli.option("New version, run or file; default: the highest version.", metavar="VERSION")
    models: cli.OnlyModels = ()
    between: tuple[str, str] | None = cli.option("Compare two models on one version.", None, "--models", metavar="A B")
    full: cli.Full = False
    different_days: bool = cli.flag("Files are from different days: allow for noise between days.")
    fail_on: tuple[str, ...] = cli.option("Verdicts to fail on; default: policy.fail_on.", (), metavar="VERDICT,...")


def compare(options: CompareOptions) -> int:
    """Compare a version with its baseline; show what got worse, and how sure that is. Makes no call.

    Without --baseline, the baseline is the version that ran interleaved with the candidate; else the highest accepted
    version below it; else the next lower version. A draft or an edited prompt is compared with the record of the same
    version. To compare two files, name the old one first.
    """
    if options.second_file is not None:
        if options.baseline or options.candidate or options.between:
            raise LeaderboardError("two files are compared: remove --baseline, --candidate and --models")
        options = replace(options, skill=None, baseline=options.skill, candidate=options.second_file)
    elif options.skill and Path(options.skill).is_file():
        raise LeaderboardError(f"{options.skill} is one file; name a second file: skill-evaluator compare OLD NEW")
    fail_on = _named_verdicts(options.fail_on)
    library = library_of(options)
    result = library.compare(
        options.skill,
        baseline=options.baseline,
        candidate=options.candidate,
        models=options.models,
        between=options.between,
        different_days=options.different_days,
    )
    outputs = None
    if options.skill is not None:
        journals = library.component(options.skill).results_dir.glob(f"*/{ANSWERS}")
        outputs = {journal.parent.name: journal.parent.name for journal in journals}
    reader, site = Reader(outputs=outputs, folders=cli.words_of(options)), library.settings.site.address
    print_page(
        options.format, json=lambda: result, page=lambda: comparison_page(result, reader, site), full=options.full
    )
    return library.exit_code([result], fail_on)


@cli.options
class HistoryOptions(cli.RecordOptions):
    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    models: cli.OnlyModels = ()
    fail_on: tuple[str, ...] = cli.option("Verdicts to fail on; default: none.", (), metavar="VERDICT,...")


def history(options: HistoryOptions) -> int:
    """Show the score and the verdict of each version and model.

    The highest version is also compared with the accepted or else the lowest version, to show small losses that add up.
    """
    fail_on = _named_verdicts(options.fail_on)
    library = library_of(options)
    judged = library.history(options.skill, options.models)
    site = library.settings.site.address
    print_page(options.format, json=lambda: judged, page=lambda: history_page(judged, site, cli.words_of(options)))
    return exit_code(judged.newest_verdict, fail_on)


@cli.options
class LeaderboardOptions(cli.RecordOptions):
    skills: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    models: cli.OnlyModels = ()
    version: str | None = cli.option("Version to rank on; default: the highest of each component.", metavar="VERSION")
    full: cli.Full = False


def leaderboard(options: LeaderboardOptions) -> int:
    """Rank the models of each component; name the one to ship. Makes no call."""
    library = library_of(options)
    problems: list[SkillEvaluatorError] = []
    rankings = library.leaderboard(
        options.skills, models=options.models, version=options.version, on_problem=problems.append
    )
    if rankings:
        page = rankings_page(rankings, cli.words_of(options))
        print_page(options.format, json=lambda: rankings, page=lambda: page, full=options.full)
    for problem in problems:
        print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
    return min((problem.exit_code for problem in problems), default=EXIT_OK)


@cli.options
class AcceptOptions(cli.RecordOptions):
    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    version: str | None = cli.argument("The version; default: the highest with a complete record.", None)
    reason: str = cli.option("Why the version is accepted; required.", "", metavar="TEXT")
    by: str = cli.option("Who accepts it; default: the user of git.", "", metavar="NAME")
    models: cli.OnlyModels = ()
    show: bool = cli.flag("List the accepted versions; accept nothing.", "--list")


def accept(options: AcceptOptions) -> int:
    """Accept a version as the baseline of later versions. Makes no call.

    Later versions are compared with the accepted version, which shows small losses that add up. A version that
    regressed may be accepted. The acceptance is written to `evals/accepted.json`; commit that file.
    """
    library = library_of(options)
    if options.show:
        shown = library.accepted(options.skill)
        value = {"skill": options.skill, "accepted": shown}
        print_page(options.format, json=lambda: value, page=lambda: acceptances_page(options.skill, shown))
    else:
        accepted = library.accept(
            options.skill, options.version, reason=options.reason, by=options.by, models=options.models
        )
        print_page(options.format, json=lambda: accepted_json(accepted), page=lambda: accepted_page(accepted))
    return EXIT_OK


@cli.options
class ExplainOptions(cli.LibraryOptions):
    run: str = cli.argument("A run folder, or the id of a run in evals/results.")
    case: str | None = cli.option("Show this case, field by field.", metavar="ID")
    field: str | None = cli.option("Show this field in all cases; `lint` lists the fields.", metavar="PATH")
    full: cli.Full = False


def explain(options: ExplainOptions) -> int:
    """Show the outputs of a case beside its ground truth; or one field in all cases."""
    library = library_of(options)
    manifest, explained = library.explain(options.run, case=options.case, field=options.field)

    def page() -> Page:
        newest, compared, ship = "", None, ""
        with suppress(LeaderboardError):  # outputs are also shown if a record cannot be read
            recorded = library.recorded(manifest.skill)
            newest = recorded.newest_version or manifest.skill_version * (not manifest.draft)
            ship = recorded.ship_words()
            if recorded.newest_version:
                compared = recorded.compare(*recorded.choose_runs(None, newest))
        return explanation_page(explained, manifest, cli.words_of(options), newest, compared, ship)

    print_page(options.format, json=lambda: explanation_json(explained, manifest), page=page, full=options.full)
    return EXIT_OK


@cli.options
class ScoreOptions(cli.LibraryOptions):
    run: Path = cli.argument("A run folder.")


def score(options: ScoreOptions) -> int:
    """Score a saved run again; rewrite record.json and report.md in its folder only. Makes no call."""
    library = library_of(options)
    finished, component = library.score(options.run)
    value = {"skill": component.name, "runs": [run_json(finished)], "comparison": None, "spreads": []}
    print_page(options.format, json=lambda: value, page=lambda: report_page(finished), full=True)
    return EXIT_OK if finished.record.complete else EXIT_INCOMPLETE


def export(options: ExportRequest) -> int:
    """Export records as tables, or verdicts as JUnit XML. Makes no call."""
    exported = export_records(options, library_of(options).recorded)
    if options.out is None:
        write(exported.text)
        return EXIT_OK
    replace_text(options.out, exported.text)
    if options.to != "junit":
        print(f"{counted(exported.rows, 'row')} written to {visible(str(options.out))}")
    return EXIT_OK


def records_import(options: ImportRequest) -> int:
    """Import results of a different tool as records, for compare, history and leaderboard.

    A missing component is created, with a prompt.md that names the source of the results.
    """
    on_problem = leave_out if options.skip_invalid else refuse
    imported = import_results(options, library_of(options).settings, on_problem)
    for record, path, is_new in imported:
        score = number(record.accuracy[record.primary_metric].strict_mean)
        score += "" if record.complete else f", incomplete ({record.stopped or 'too few outputs'})"
        size = f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}"
        added = f": {record.provider}, {record.model_id}, {size}, {record.primary_metric} {score}"
        print(visible(f"{path}{added if is_new else ' exists already'}"))
    return EXIT_OK


def _named_verdicts(fail_on: Sequence[str]) -> list[str]:
    names = [name.strip() for part in fail_on for name in part.split(",") if name.strip()]
    for name in names:
        if name not in get_args(VerdictName):
            raise ConfigError(f"unknown verdict '{name}' for --fail-on {nearest(name, get_args(VerdictName))}")
    return names
