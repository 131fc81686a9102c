"""`collect --batches`: take what the batches of evaluations and audits have brought by now; needs no plan.

Every command that left batches goes on as it was begun, in this process, and asks nothing that it had not asked before.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from skill_evaluator.audit.run.manifest import AUDIT
from skill_evaluator.ci.pending import restore_job
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.commands.audit_run import AuditRunOptions, audit_run
from skill_evaluator.commands.evaluate_measure import measure
from skill_evaluator.commands.evaluate_options import EvaluateOptions
from skill_evaluator.commands.options import AUDITS
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_REGRESSED,
    EXIT_USER_ERROR,
    RunError,
    SkillEvaluatorError,
)
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.runner.batch_journal import BATCHES, BatchJournal
from skill_evaluator.runner.begun import Kept
from skill_evaluator.runner.journal import Manifest, invocation_of, read_manifest

_Story = Callable[[Configuration], int]
_Open = tuple[Path, Manifest]  # a run folder that has a batch whose results are still to be taken


def collect_batches(artifacts: Path | None, components: Path, fixtures: Path | None, config: Path, form: Format) -> int:
    """Collect run by run, and return the worst exit code; what goes on at a vendor is no failure."""
    roots = [components, AUDITS] if artifacts is None else [artifacts]
    return _collect(roots, read_configuration(config), components, fixtures, config, form)


def collect_planned(
    plan: Path, job: str, results: Path, components: Path, fixtures: Path | None, config: Path, form: Format
) -> int:
    """Do the same for a job of a plan made by `plan --pending`, whose run folders were of another machine.

    Nothing is deleted at the vendor: what was taken is safe only once a later job has published it.
    """
    restore_job(read_plan(plan), job, results)
    configuration = read_configuration(config)
    batch = configuration.settings.batch.model_copy(update={"delete_results": False})
    settings = configuration.settings.model_copy(update={"batch": batch})
    return _collect([results], replace(configuration, settings=settings), components, fixtures, config, form)


def _collect(
    roots: Iterable[Path],
    configuration: Configuration,
    components: Path,
    fixtures: Path | None,
    config: Path,
    form: Format,
) -> int:
    found = list(_open_runs(roots))
    stories: list[_Story] = [
        *_evaluations([run for run in found if run[1].audit is None], components, fixtures, config, form),
        *_audits([run for run in found if run[1].audit is not None], components, fixtures, config, form),
    ]
    if not stories:
        print("no batch is left to collect", file=sys.stderr)
    codes = {EXIT_OK}
    for story in stories:
        try:
            codes.add(story(configuration))
        except SkillEvaluatorError as problem:  # the others are collected all the same
            print(f"error: {visible(str(problem))}", file=sys.stderr)
            codes.add(problem.exit_code)
    return next(code for code in (EXIT_USER_ERROR, EXIT_REGRESSED, EXIT_INCOMPLETE, EXIT_OK) if code in codes)


def _open_runs(roots: Iterable[Path]) -> Iterator[_Open]:
    paths = dict.fromkeys(path for root in roots for path in sorted(root.rglob(BATCHES)))
    for path in paths:
        if BatchJournal.read(path.parent).open:
            yield path.parent, read_manifest(path.parent)


def _evaluations(
    found: Iterable[_Open], components: Path, fixtures: Path | None, config: Path, form: Format
) -> list[_Story]:
    """Return how to go on with evaluations, an invocation at a time, to keep what was to be kept when it was begun."""
    begun: dict[EvaluateOptions, None] = {}
    for folder, manifest in found:
        kept = manifest.kept or Kept()
        options = EvaluateOptions(
            skill=manifest.skill,
            resume=invocation_of(manifest.run_id),
            scenario=None if manifest.role == "neutral" else manifest.scenario,
            leaderboard=kept.leaderboard,
            max_cost=kept.max_cost_usd,
            results=folder.parent,
            components=components,
            fixtures=fixtures,
            config=config,
            submit_only=True,
            format=form,
        )
        begun[options] = None
    return [partial(_collect_evaluation, options) for options in begun]


def _collect_evaluation(options: EvaluateOptions, configuration: Configuration) -> int:
    return measure(options, collecting=configuration)


def _audits(
    found: Iterable[_Open], components: Path, fixtures: Path | None, config: Path, form: Format
) -> list[_Story]:
    """Return how to go on with audits, each one's models together, or those of one shard."""
    models: dict[tuple[Path, str | None], list[str]] = {}
    for folder, manifest in found:
        audit = folder.parent.parent
        if not (audit / AUDIT).is_file():
            raise RunError(f"{folder} is a part of the audit {manifest.audit}, and {audit} has no {AUDIT}")
        models.setdefault((audit, manifest.shard), []).append(manifest.model_id)
    return [
        partial(
            _collect_audit,
            AuditRunOptions(
                resume=str(audit),
                shard=shard,
                models=tuple(ids),
                audits=audit.parent,
                components=components,
                fixtures=fixtures,
                config=config,
                submit_only=True,
                format=form,
            ),
        )
        for (audit, shard), ids in models.items()
    ]


def _collect_audit(options: AuditRunOptions, configuration: Configuration) -> int:
    return audit_run(options, collecting=configuration)
