"""`skill-evaluator audit report`: what an audit's runs, or a table of scores, say: as a table, a page, JSON."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from skill_evaluator.audit.cube.cube import Cube, Missing
from skill_evaluator.audit.cube.tables import read_cube, write_cube
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.findings.results import AuditResult, Resampled, read_audit
from skill_evaluator.audit.report.page import audit_page, draw, print_audit
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.materials import Places
from skill_evaluator.audit.run.plan import AUDIT, read_audit_plan
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display.options import (
    AUDITS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    PlatformOption,
    argument,
    option,
    options,
)
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, AuditError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.config import load_settings
from skill_evaluator.runner.runs import check_writable
from skill_evaluator.text import nearest

EXAMPLES = (
    "skill-evaluator audit report",
    "skill-evaluator audit report audits/<id> --format markdown",
    "skill-evaluator audit report --cube scores.csv --questions 100 --out report",
)
EXITS = {4: "a model that was to be asked is not in it"}
REPORT, RESULT, CHARTS = "report.md", "report.json", "charts"


@options
class AuditReportOptions(ComponentsOption, FixturesOption, ConfigOption, PlatformOption, FormatOption):
    """The options of `audit report`. No folder and no `cube`: the newest audit below `audits`."""

    folders: tuple[Path, ...] = argument(
        "An audit's folder, or any that hold its runs; default: the newest below --audits.", (), metavar="folder"
    )
    cube: Path | None = option(
        "Instead of runs a CSV: model,template,<benchmark>,… in per cent, or an outcomes.csv of an audit.",
        metavar="FILE",
    )
    questions: int | None = option("How many questions each benchmark of the table has.", metavar="N", min=1)
    weights: tuple[str, ...] = option(
        "How much a benchmark counts; repeatable; default: as the audit was drawn, else 1 each.",
        (),
        "--weight",
        metavar="NAME=W",
    )
    missing: Missing = option("Where scores or answers are missing: refuse, or leave out for all.", "refuse")
    resampled: Resampled | None = option(
        "What intervals and odds are over. cases: these very scenarios (default where single answers are known); "
        "scenarios, both: others like them.",
        None,
        "--resample",
    )
    grades: int = option("8: finer grades, from 20 models on.", 4, metavar="4|8")
    previous: Path | None = option("An earlier report.json; default: the last beside this audit.", metavar="FILE")
    out: Path | None = option(
        "Where page, charts and cube go; default: the audit's folder, of a table nowhere.", metavar="DIR"
    )
    plan: Path | None = option("The plan whose jobs' artifacts the folders are.", metavar="FILE")
    audits: Audits = AUDITS


def audit_report(options: AuditReportOptions) -> int:
    """Say how able and how steady each model is, how sure that is, and which to take for what; with page and charts."""
    weights = _read_weights(options.weights)
    folders: tuple[Path, ...] = ()
    absent: list[str] = []
    remarks: list[str] = []
    if options.cube:
        if options.folders or options.plan:
            raise AuditError("--cube does not go with folders of runs or a plan: it is either a table or an audit")
        cube = read_cube(options.cube, weights=weights, missing=options.missing)
        _refuse_unknown(weights, cube.benchmarks)
        if options.questions is not None and cube.outcomes is not None:
            raise AuditError("--questions is for a table of scores; this one has the questions themselves")
        if options.questions is not None:
            cube = replace(cube, questions=dict.fromkeys(cube.benchmarks, options.questions))
    else:
        folders = options.folders or tuple(sorted(path.parent for path in options.audits.glob(f"*/{AUDIT}"))[-1:])
        if not folders:
            raise AuditError(
                f"{options.audits} holds no audit; make one with audit run, or give a table with --cube FILE"
            )
        cube, absent, remarks = _read_runs(options, folders, weights)
    previous = _read_previous(options.previous, folders)
    result = audit(cube, resampled=options.resampled, bins=options.grades, previous=previous)
    if absent:
        remarks = [f"left out, as nothing is there of them: {', '.join(absent)}", *remarks]
    result = result.model_copy(update={"warnings": [*remarks, *result.warnings]})
    out = options.out or (folders[0] if len(folders) == 1 and (folders[0] / AUDIT).is_file() else None)
    print_audit(result, options.format)
    if out is not None:
        written = _write(result, cube, out)
        print(f"written to {out}: {', '.join(path.name for path in written)}", file=sys.stderr)
    if options.platform:
        PLATFORMS[options.platform].add_summary(audit_page(result))
    return EXIT_INCOMPLETE if absent else EXIT_OK


def _read_weights(given: Iterable[str]) -> dict[str, float]:
    """Read the weight of each benchmark from `NAME=W`; raise AuditError."""
    weights = {}
    for text in given:
        name, equals, weight = text.rpartition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            equals = ""
        if not equals or not name or not 0 < weights[name] < math.inf:
            raise AuditError(f"--weight '{text}' is not NAME=W with W above 0, such as quiz-reasoning=2")
    return weights


def _read_runs(
    options: AuditReportOptions, folders: tuple[Path, ...], weights: Mapping[str, float]
) -> tuple[Cube, list[str], list[str]]:
    """Return the cube of an audit's runs, the models that have answered nothing, and what a reader should know."""
    if options.questions is not None:
        raise AuditError("--questions is for a table of scores; an audit has the questions it was drawn with")
    planned = read_audit_plan(options.plan).audit if options.plan else None
    limits = load_settings(options.config).limits
    places = Places(components=options.components, fixtures=options.fixtures, config=options.config, limits=limits)
    gathered = gather(folders, places, planned)
    _refuse_unknown(weights, gathered.outcomes)
    return gathered.cube(weights, options.missing), gathered.absent, list(gathered.remarks)


def _refuse_unknown(weights: Mapping[str, float], benchmarks: Mapping[str, object] | tuple[str, ...]) -> None:
    for name in weights:
        if name not in benchmarks:
            raise AuditError(f"--weight names an unknown benchmark '{name}' {nearest(name, benchmarks)}")


def _read_previous(named: Path | None, folders: tuple[Path, ...]) -> AuditResult | None:
    """Read the audit to compare the cohort with: the one named, else the last that was reported before this one."""
    if named is not None:
        return read_audit(named / RESULT if named.is_dir() else named)
    if len(folders) != 1:
        return None
    earlier = sorted(path for path in folders[0].parent.glob(f"*/{RESULT}") if path.parent.name < folders[0].name)
    try:
        return read_audit(earlier[-1]) if earlier else None
    except AuditError as problem:  # of a file that nobody named
        print(f"warning: whether the cohort changed is not known: {problem}", file=sys.stderr)
        return None


def _write(result: AuditResult, cube: Cube, out: Path) -> list[Path]:
    """Write page, result, charts and cube, and return their paths; do without charts that cannot be drawn."""
    check_writable(out, "--out DIR")
    charts = [out / CHARTS]
    try:
        draw(result, out / CHARTS)
    except AuditError as problem:
        print(f"warning: {problem}", file=sys.stderr)
        charts = []
    replace_text(out / REPORT, audit_page(result).markdown(CHARTS if charts else ""))
    replace_text(out / RESULT, json_text(result.model_dump(mode="json")))
    return [out / REPORT, out / RESULT, *charts, *write_cube(cube, out)]
