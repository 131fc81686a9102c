"""The story of `audit report`: an audit's runs, or a table of scores → its findings, with page, charts and cube."""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.audit.cube.cube import Cube
from skill_evaluator.audit.cube.tables import read_cube, write_cube
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.findings.results import AuditResult, read_audit
from skill_evaluator.audit.report.page import audit_page, draw
from skill_evaluator.audit.request import AuditReportRequest
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.plan import AUDIT, read_audit_plan
from skill_evaluator.errors import AuditError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.runner.runs import check_writable
from skill_evaluator.text import nearest

REPORT, RESULT, CHARTS = "report.md", "report.json", "charts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAudit:
    """The findings of an audit and the models that answered nothing; `out`: where its files belong (None: nowhere)."""

    result: AuditResult
    cube: Cube
    absent: list[str]
    out: Path | None

    def write(self) -> list[Path]:
        """Write page, result, charts and cube, and return their paths; do without charts that cannot be drawn."""
        if self.out is None:
            return []
        out, result = self.out, self.result
        check_writable(out, "--out DIR")
        charts = [out / CHARTS]
        try:
            draw(result, out / CHARTS)
        except AuditError as problem:
            print(f"warning: {problem}", file=sys.stderr)
            charts = []
        replace_text(out / REPORT, audit_page(result).markdown(CHARTS if charts else ""))
        replace_text(out / RESULT, json_text(result.model_dump(mode="json")))
        return [out / REPORT, out / RESULT, *charts, *write_cube(self.cube, out)]


def report_audit(request: AuditReportRequest) -> ReportedAudit:
    """Audit a table, or the runs below some folders; raise AuditError for what cannot be read or does not go with it.

    The cohort is compared with that of the report that is named, else of the last one beside a single folder.
    """
    weights = _read_weights(request.weights)
    folders: tuple[Path, ...] = ()
    absent: list[str] = []
    remarks: list[str] = []
    if request.cube:
        if request.folders or request.plan:
            raise AuditError("--cube does not go with folders of runs or a plan: it is either a table or an audit")
        cube = read_cube(request.cube, weights=weights, missing=request.missing)
        _refuse_unknown(weights, cube.benchmarks)
        if request.questions is not None and cube.outcomes is not None:
            raise AuditError("--questions is for a table of scores; this one has the questions themselves")
        if request.questions is not None:
            cube = replace(cube, questions=dict.fromkeys(cube.benchmarks, request.questions))
    else:
        folders = request.folders or tuple(sorted(path.parent for path in request.audits.glob(f"*/{AUDIT}"))[-1:])
        if not folders:
            raise AuditError(
                f"{request.audits} holds no audit; make one with audit run, or give a table with --cube FILE"
            )
        if request.questions is not None:
            raise AuditError("--questions is for a table of scores; an audit has the questions it was drawn with")
        gathered = gather(folders, request, read_audit_plan(request.plan).audit if request.plan else None)
        _refuse_unknown(weights, gathered.outcomes)
        cube, absent = gathered.cube(weights, request.missing), gathered.absent
        remarks = [f"left out, as nothing is there of them: {', '.join(absent)}"] if absent else []
        remarks += gathered.remarks
    previous = _read_previous(request.previous, folders)
    result = audit(cube, resampled=request.resampled, bins=request.grades, previous=previous)
    return ReportedAudit(
        result=result.model_copy(update={"warnings": [*remarks, *result.warnings]}),
        cube=cube,
        absent=absent,
        out=request.out or (folders[0] if len(folders) == 1 and (folders[0] / AUDIT).is_file() else None),
    )


def _read_weights(texts: Iterable[str]) -> dict[str, float]:
    """Read the weight of each benchmark from `NAME=W`; raise AuditError."""
    weights = {}
    for text in texts:
        name, _, weight = text.rpartition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = math.nan
        if not name or not 0 < weights[name] < math.inf:
            raise AuditError(f"--weight '{text}' is not NAME=W with W above 0, such as quiz-reasoning=2")
    return weights


def _refuse_unknown(weights: Iterable[str], benchmarks: Iterable[str]) -> None:
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
