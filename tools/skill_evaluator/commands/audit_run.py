"""`skill-evaluator audit run`: models × scenarios × benchmarks × cases × replicates, asked through the one runner.

Leaves answers, not judgements: `audits/<id>/` holds what was asked and one run a model. `audit report` reads it.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from skill_evaluator.audit.report.run import AuditRun, print_audit_runs
from skill_evaluator.audit.report.size import warn_of_doubts
from skill_evaluator.audit.run.gathering import GatheredAudit, gather
from skill_evaluator.audit.run.jobs import AuditPlan, read_audit_plan
from skill_evaluator.audit.run.manifest import AUDIT, RUNS, write_manifest
from skill_evaluator.audit.run.runs import Cells, runs_of
from skill_evaluator.commands.audit_inputs import (
    AuditInputs,
    AuditOptions,
    audit_folder,
    known_audit,
    new_audit,
    saved_audit,
)
from skill_evaluator.commands.inputs import words_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, AuditError
from skill_evaluator.providers.base import Failure
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.asking import assignment, redactor, with_keys
from skill_evaluator.runner.execute import Assignment, SpendingLimits, execute
from skill_evaluator.runner.journal import check_writable
from skill_evaluator.runner.runs import Run
from skill_evaluator.runner.schedule import Replicate, Shard


def audit_run(options: AuditOptions) -> int:
    """Draw an audit, or take up one that was drawn; ask what has no answer yet; returns the exit code."""
    plan = None if options.plan is None else read_audit_plan(options.plan)
    inputs, folder = _begun(options, plan)
    usable = with_keys(inputs.models, inputs.kinds)
    shard = Shard.parse(options.shard) if options.shard else None
    runs = runs_of(inputs.manifest, list(usable.values()), shard, folder)
    check_writable(folder / RUNS, "--audits DIR")
    if not (folder / AUDIT).exists():
        write_manifest(folder, inputs.manifest)
    halted = execute(
        _assignments(runs, inputs, options),
        inputs.settings,
        _spending(options, plan),
        redactor(inputs.models, inputs.kinds),
        watch,
        meanwhile=_nothing,
    )
    made = _made(runs, gather([folder], options.places), halted, inputs.settings.required_coverage)
    print_audit_runs(inputs.manifest, made, options.format)
    complete = len(usable) == len(inputs.models) and all(one.complete for one in made)
    if not complete or any(one.tally.answered < one.tally.planned for one in made):
        print(f"to go on where this stopped: {_same_command(options, inputs, folder)}", file=sys.stderr)
    else:
        _say_what_next(options, folder)
    return EXIT_OK if complete else EXIT_INCOMPLETE


def _begun(options: AuditOptions, plan: AuditPlan | None) -> tuple[AuditInputs, Path]:
    """What is asked, and the folder it is kept in."""
    if plan is not None:
        plan.refuse_other_part(options.models, options.shard)
        folder = options.audits / plan.audit.id
        if (folder / AUDIT).exists() and saved_audit(folder) != plan.audit:
            raise AuditError(f"{folder} asks otherwise than {options.plan}; move it away")
        return known_audit(plan.audit, options), folder
    if options.resume is not None:
        folder = audit_folder(options)
        return known_audit(saved_audit(folder), options), folder
    inputs = new_audit(options, keyed=True)
    warn_of_doubts(inputs.manifest)
    return inputs, options.audits / inputs.manifest.id


def _assignments(runs: Sequence[Run], inputs: AuditInputs, options: AuditOptions) -> list[Assignment]:
    cells = Cells(inputs.materials)
    wanted = options.concurrency or inputs.settings.concurrency
    return [_assignment(run, cells, inputs, wanted) for run in runs]


def _assignment(run: Run, cells: Cells, inputs: AuditInputs, concurrency: int) -> Assignment:
    limit = run.model.params.max_output_tokens
    return assignment(
        run,
        inputs.kinds,
        concurrency,
        lambda call: cells.request(call, seed=run.manifest.seed, max_output_tokens=limit),
        _in_the_journal,
    )


def _in_the_journal(_: Replicate) -> None:
    """An answer is scored when all are gathered; until then the journal has it."""


def _nothing() -> None:
    """There is nothing to prepare while the first calls are under way."""


def _spending(options: AuditOptions, plan: AuditPlan | None) -> SpendingLimits:
    """The limits that were given; a job of a plan has its part of the plan's cap."""
    planned = None if plan is None else plan.max_cost_of(options.models, options.shard)
    return SpendingLimits(
        max_cost_usd=planned if options.max_cost is None else options.max_cost, max_calls=options.max_calls
    )


def _made(
    runs: Sequence[Run], gathered: GatheredAudit, halted: Mapping[str, Failure | None], required_coverage: float
) -> list[AuditRun]:
    made = []
    for run in runs:
        tally, failure = gathered.tallies[run.model.id], halted[run.manifest.run_id]
        made.append(
            AuditRun(
                model_id=run.model.id,
                shard=run.manifest.shard,
                tally=tally,
                stopped=None if failure is None else f"{failure.reason}: {failure.message}",
                complete=failure is None and tally.answered >= required_coverage * tally.planned,
            )
        )
    return made


def _same_command(options: AuditOptions, inputs: AuditInputs, folder: Path) -> str:
    """The command that goes on; what the audit itself remembers need not be said again."""
    audit = folder.name if folder.parent == options.audits else str(folder)
    words = ["--resume", audit] if options.plan is None else ["--plan", str(options.plan)]
    for model_id in options.models:
        if model_id in inputs.manifest.models:  # one without a key is none of the audit's
            words += ["--model", model_id]
    words += words_of(
        [
            ("--shard", options.shard, None),
            ("--audits", options.audits, Path("audits")),
            *_read_from(options),
            ("--concurrency", options.concurrency, None),
            ("--max-cost", options.max_cost, None),
            ("--max-calls", options.max_calls, None),
        ]
    )
    return shlex.join(["skill-evaluator", "audit", "run", *words])


def _say_what_next(options: AuditOptions, folder: Path) -> None:
    """The command that says what the answers amount to, with the folders it reads."""
    words = ["skill-evaluator", "audit", "report", str(folder), *words_of(_read_from(options))]
    print(f"what it found: {shlex.join(words)}", file=sys.stderr)


def _read_from(options: AuditOptions) -> list[tuple[str, Path | None, Path | None]]:
    """The folders that running and reporting both read, as flags with their defaults."""
    return [
        ("--components", options.components, Path("components")),
        ("--fixtures", options.fixtures, None),
        ("--config", options.config, Path(".evaluator")),
    ]
