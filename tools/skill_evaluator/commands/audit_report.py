"""`skill-evaluator audit report`: what an audit's runs, or a table of scores, say: as a table, a page, JSON."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.audit.cube.cube import Cube, Missing, cube_of_outcomes
from skill_evaluator.audit.cube.tables import read_cube, write_cube
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.findings.results import AuditResult, Resampled, read_audit
from skill_evaluator.audit.report.charts import draw
from skill_evaluator.audit.report.page import audit_markdown, print_audit
from skill_evaluator.audit.run.gathering import GatheredAudit, gather
from skill_evaluator.audit.run.jobs import read_audit_plan
from skill_evaluator.audit.run.manifest import AUDIT
from skill_evaluator.audit.run.materials import Places
from skill_evaluator.audit.statistics.grades import QUARTERS
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, AuditError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.runner.journal import check_writable
from skill_evaluator.text import nearest

REPORT, RESULT, CHARTS = "report.md", "report.json", "charts"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReportOptions:
    """The command line, typed. `folders` empty and `cube` None: the newest audit below `audits`."""

    folders: tuple[Path, ...] = ()
    cube: Path | None = None
    plan: Path | None = None
    questions: int | None = None
    weights: Mapping[str, float]
    missing: Missing = "refuse"
    resampled: Resampled | None = None
    bins: int = len(QUARTERS)
    previous: Path | None = None
    out: Path | None = None
    audits: Path = Path("audits")
    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")
    platform: str | None = None
    format: Format = "text"

    @property
    def places(self) -> Places:
        """The folders that are read."""
        return Places(components=self.components, fixtures=self.fixtures, config=self.config)


def audit_report(options: AuditReportOptions) -> int:
    """Read, audit, write the files and print; exit code 4 where a model that was to be asked is not in it."""
    folders = () if options.cube else options.folders or (_newest(options.audits),)
    cube, absent, remarks = _from_table(options, options.cube) if options.cube else _from_runs(options, folders)
    previous = _previous(options, folders)
    result = audit(cube, resampled=options.resampled, bins=options.bins, previous=previous)
    if absent:
        remarks = [f"left out, as nothing is there of them: {', '.join(absent)}", *remarks]
    result = result.model_copy(update={"warnings": [*remarks, *result.warnings]})
    out = options.out or (folders[0] if len(folders) == 1 and (folders[0] / AUDIT).is_file() else None)
    print_audit(result, options.format)
    if out is not None:
        written = _write(result, cube, out)
        print(f"written to {out}: {', '.join(path.name for path in written)}", file=sys.stderr)
    if options.platform:
        PLATFORMS[options.platform].add_summary(audit_markdown(result, charts=False))
    return EXIT_INCOMPLETE if absent else EXIT_OK


def weights_of(given: Iterable[str]) -> dict[str, float]:
    """`NAME=W` → the weight of each benchmark; raises AuditError."""
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


def _newest(audits: Path) -> Path:
    found = sorted(path.parent for path in audits.glob(f"*/{AUDIT}"))
    if not found:
        raise AuditError(f"{audits} holds no audit; make one with audit run, or give a table with --cube FILE")
    return found[-1]


def _from_table(options: AuditReportOptions, path: Path) -> tuple[Cube, list[str], list[str]]:
    if options.folders or options.plan:
        raise AuditError("--cube does not go with folders of runs or a plan: it is either a table or an audit")
    cube = read_cube(path, weights=options.weights, missing=options.missing)
    _refuse_unknown(options.weights, cube.benchmarks)
    if options.questions is not None:
        if cube.outcomes is not None:
            raise AuditError("--questions is for a table of scores; this one has the questions themselves")
        cube = replace(cube, questions=dict.fromkeys(cube.benchmarks, options.questions))
    return cube, [], []


def _from_runs(options: AuditReportOptions, folders: tuple[Path, ...]) -> tuple[Cube, list[str], list[str]]:
    """The cube of an audit's runs, the models of which nothing is there, and what else a reader should know."""
    if options.questions is not None:
        raise AuditError("--questions is for a table of scores; an audit has the questions it was drawn with")
    planned = read_audit_plan(options.plan).audit if options.plan else None
    gathered = gather(folders, options.places, planned)
    _refuse_unknown(options.weights, gathered.outcomes)
    there = [place for place, name in enumerate(gathered.models) if _answered(gathered, name)]
    if not there:
        raise AuditError(f"{' '.join(map(str, folders))}: no model has answered anything; go on: audit run --resume")
    cube = cube_of_outcomes(
        [gathered.models[place] for place in there],
        gathered.scenarios,
        {name: replace(one, scores=one.scores[there]) for name, one in gathered.outcomes.items()},
        weights={**gathered.weights, **options.weights},
        missing=options.missing,
        spending=gathered.spending,
        answers={name: tally.outcomes for name, tally in gathered.tallies.items()},
        where=f"the audit {gathered.manifest.id}",
    )
    return cube, [name for place, name in enumerate(gathered.models) if place not in there], list(gathered.remarks)


def _answered(gathered: GatheredAudit, model_id: str) -> bool:
    return model_id in gathered.tallies and gathered.tallies[model_id].answered > 0


def _refuse_unknown(weights: Mapping[str, float], benchmarks: Mapping[str, object] | tuple[str, ...]) -> None:
    for name in weights:
        if name not in benchmarks:
            raise AuditError(f"--weight names an unknown benchmark '{name}' {nearest(name, benchmarks)}")


def _previous(options: AuditReportOptions, folders: tuple[Path, ...]) -> AuditResult | None:
    """The audit to compare the cohort with: the one named, else the last that was reported before this one."""
    if options.previous is not None:
        return read_audit(options.previous / RESULT if options.previous.is_dir() else options.previous)
    if len(folders) != 1:
        return None
    earlier = sorted(path for path in folders[0].parent.glob(f"*/{RESULT}") if path.parent.name < folders[0].name)
    try:
        return read_audit(earlier[-1]) if earlier else None
    except AuditError as problem:  # of a file that nobody named
        print(f"warning: whether the cohort changed is not known: {problem}", file=sys.stderr)
        return None


def _write(result: AuditResult, cube: Cube, out: Path) -> list[Path]:
    """The files, which are returned; a page whose charts cannot be drawn is written without them."""
    check_writable(out, "--out DIR")
    charts = [out / CHARTS]
    try:
        draw(result, out / CHARTS)
    except AuditError as problem:
        print(f"warning: {problem}", file=sys.stderr)
        charts = []
    replace_text(out / REPORT, audit_markdown(result, charts=bool(charts)))
    replace_text(out / RESULT, json_text(result.model_dump(mode="json")))
    return [out / REPORT, out / RESULT, *charts, *write_cube(cube, out)]
