"""`skill-evaluator audit run`: models × scenarios × benchmarks × cases × replicates, asked through the one runner.

Leaves answers, not judgements: `audits/<id>/` holds what was asked and one run a model. `audit report` reads it.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.audit.report.calls import AuditRun, AuditSize, print_audit_runs, print_size, warn_of_doubts
from skill_evaluator.audit.run.materials import Cells, runs_of
from skill_evaluator.audit.run.plan import (
    AUDIT,
    RUNS,
    AuditManifest,
    AuditPlan,
    read_audit_manifest,
    read_audit_plan,
    write_manifest,
)
from skill_evaluator.commands.audit_inputs import AuditInputs, AuditOptions, asked_models, drawn_audit, new_audit
from skill_evaluator.display.options import (
    AUDITS,
    Audits,
    Batch,
    Concurrency,
    MaxCalls,
    SubmitOnly,
    flag,
    option,
    options,
    words_of,
)
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, AuditError
from skill_evaluator.providers import Configuration, key_note
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.journal import Transport
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import COST_OF_BATCHES
from skill_evaluator.runner.runs import Run, check_writable
from skill_evaluator.runner.schedule import Shard, refuse_amounts, refuse_submit_only
from skill_evaluator.runner.session import (
    Asked,
    Questions,
    Session,
    mode_of,
    print_how_to_go_on,
    print_pending,
    with_keys,
)
from skill_evaluator.text import nearest

EXAMPLES = (
    "skill-evaluator audit run --benchmark <component> --questions 50 --dry-run",
    "skill-evaluator audit run --model <model> --max-cost 20",
    "skill-evaluator audit run --batch --submit-only",
    "skill-evaluator audit run --resume",
)
EXITS = {4: "incomplete (it prints the command that goes on)"}
_FOLDERS = ("components", "fixtures", "config")


@options
class AuditRunOptions(AuditOptions):
    """The options of `audit run` beside those of every audit."""

    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    shard: str | None = option("Only the I-th of N parts of the questions.", metavar="I/N")
    resume: str | None = option(
        "Go on with an audit (default: the newest): asks only what has no answer.", metavar="[ID]"
    )
    plan: Path | None = option("Ask what audit plan wrote; again, it goes on where it stopped.", metavar="FILE")
    dry_run: bool = flag("Check everything, make no call, print the size and the cost at most.")
    batch: Batch = False
    submit_only: SubmitOnly = False
    audits: Audits = AUDITS


def audit_run(options: AuditRunOptions, collecting: Configuration | None = None) -> int:
    """Ask every model every question in every scenario, and keep the answers in audits/<id>."""
    # With the configuration for `collecting`: take what batches have brought by now, and ask nothing anew.
    _refuse_wrong(options)
    if options.dry_run:
        return _print_size(options)
    plan = None if options.plan is None else read_audit_plan(options.plan)
    inputs, folder = _draw(options, plan, collecting)
    usable = with_keys(inputs.models, inputs)
    shard = Shard.parse(options.shard) if options.shard else None
    runs = runs_of(inputs.manifest, list(usable.values()), shard, folder)
    check_writable(folder / RUNS, "--audits DIR")
    if not (folder / AUDIT).exists():
        write_manifest(folder, inputs.manifest)
    planned_cost = None if plan is None else plan.max_cost_of(options.models, options.shard)
    max_cost = planned_cost if options.max_cost is None else options.max_cost
    session = Session(
        configuration=inputs,
        watch=watch,
        budget=Budget(max_cost, options.max_calls),
        concurrency=options.concurrency,
        mode=mode_of(submit_only=options.submit_only, collecting=collecting is not None),
    )
    session.hold_month(usable.values(), config=options.config, components=options.components, folder=folder)
    cells = Cells(inputs.materials)
    questions = Questions(
        request_for=lambda run, call: cells.request(
            call, seed=run.manifest.seed, max_output_tokens=run.model.params.max_output_tokens
        )
    )
    asked = session.ask(runs, questions)  # answers are scored when all are gathered; until then the journal has them
    print_pending(asked.pending)
    finished = [run for run in runs if run.manifest.run_id not in asked.pending]
    return _print_outcome(finished, asked, inputs, folder, options) if finished else EXIT_OK


def _refuse_wrong(options: AuditRunOptions) -> None:
    """Raise for what no audit can be asked."""
    counts = {
        "--replicates": options.replicates,
        "--questions": options.questions,
        "--concurrency": options.concurrency,
    }
    if options.dry_run and (options.resume is not None or options.plan is not None):
        raise AuditError("--dry-run is of a new audit: it does not go with --resume or --plan")
    refuse_amounts(counts, options.max_calls, options.max_cost)
    refuse_submit_only(submit_only=options.submit_only, batch=options.batch, resume=options.resume)
    if options.resume is not None and (not options.resume or options.plan is not None):
        raise AuditError("--resume takes an audit's id, its folder or nothing, and does not go with --plan")


def _print_size(options: AuditRunOptions) -> int:
    """Check every input and print what the audit would take; needs no key and no vendor's SDK, writes nothing."""
    inputs = new_audit(options, keyed=False, transport=_transport(options))
    shard = Shard.parse(options.shard) if options.shard else None
    sizes = Cells(inputs.materials).sizes(inputs.manifest.cells(shard))
    models = asked_models(inputs, sizes, lambda model: key_note(model, inputs.kinds[model.provider], inputs.keys))
    closing = f"{f'{COST_OF_BATCHES}; ' * options.batch}dry run: no call was made, nothing was written"
    print_size(AuditSize(audit=inputs.manifest, models=models, noted="key", closing=closing), options.format)
    warn_of_doubts(inputs.manifest)
    return EXIT_OK


def _transport(options: AuditRunOptions) -> Transport:
    return "batch" if options.batch else "direct"


def _draw(
    options: AuditRunOptions, plan: AuditPlan | None, collecting: Configuration | None
) -> tuple[AuditInputs, Path]:
    """Take up the audit of a plan or of `--resume`, or draw a new one; return it with the folder it is kept in."""
    if plan is not None:
        plan.refuse_other_part(options.models, options.shard)
        folder = options.audits / plan.audit.id
        if (folder / AUDIT).exists() and read_audit_manifest(folder / AUDIT) != plan.audit:
            raise AuditError(f"{folder} asks otherwise than {options.plan}; move it away")
        return drawn_audit(_as_begun(plan.audit, options), options), folder
    if options.resume is not None:
        folder = Path(options.resume)
        if not (folder / AUDIT).is_file():  # then it is an id, or `latest`
            ids = sorted(path.parent.name for path in options.audits.glob(f"*/{AUDIT}"))
            audit_id = ids[-1] if options.resume == "latest" and ids else options.resume
            if audit_id not in ids:
                raise AuditError(f"no audit '{audit_id}' in {options.audits} to resume {nearest(audit_id, ids)}")
            folder = options.audits / audit_id
        return drawn_audit(_as_begun(read_audit_manifest(folder / AUDIT), options), options, collecting), folder
    inputs = new_audit(options, keyed=True, transport=_transport(options))
    warn_of_doubts(inputs.manifest)
    return inputs, options.audits / inputs.manifest.id


def _as_begun(audit: AuditManifest, options: AuditRunOptions) -> AuditManifest:
    """Return an audit that is there; raise AuditError where it is to be asked in batches and was not begun so."""
    if options.batch and audit.transport != "batch":
        raise AuditError(f"cannot go on with the audit {audit.id} with --batch: it was drawn without it")
    return audit


def _print_outcome(
    runs: Sequence[Run],
    asked: Asked,
    inputs: AuditInputs,
    folder: Path,
    options: AuditRunOptions,
) -> int:
    """Print what became of every run's calls, and the command that comes next; return the exit code."""
    from skill_evaluator.audit.run.gathering import gather  # imports numpy: not for a dry run

    gathered = gather([folder], options.places(inputs.settings))
    audited = []
    for run in runs:
        tally, stopped = gathered.tallies[run.model.id], asked.why_stopped(run)
        audited.append(
            AuditRun(
                model_id=run.model.id,
                shard=run.manifest.shard,
                tally=tally,
                stopped=stopped,
                complete=stopped is None and tally.answered >= inputs.settings.required_coverage * tally.planned,
            )
        )
    print_audit_runs(inputs.manifest, audited, options.format)
    waiting = len(asked.pending)  # in batches at the vendors
    complete = len(audited) + waiting == len(inputs.models) and all(run.complete for run in audited)
    if complete and waiting:
        return EXIT_OK
    if not complete or any(run.tally.answered < run.tally.planned for run in audited):
        audit = folder.name if folder.parent == options.audits else str(folder)
        words = ["skill-evaluator", "audit", "run"]
        words += ["--resume", audit] if options.plan is None else ["--plan", str(options.plan)]
        for model_id in options.models:
            if model_id in inputs.manifest.models:  # one without a key is none of the audit's
                words += ["--model", model_id]
        words += words_of(options, "shard", "audits", *_FOLDERS, "concurrency", "max_cost", "max_calls")
        print_how_to_go_on(words)
    else:
        words = ["skill-evaluator", "audit", "report", str(folder), *words_of(options, *_FOLDERS)]
        print(f"what it found: {shlex.join(words)}", file=sys.stderr)
    return EXIT_OK if complete else EXIT_INCOMPLETE
