"""`collect --batches`: take what the batches of evaluations, audits and judgings have brought by now; needs no plan.

Every command that left batches goes on as it was begun, in this process, and asks nothing that it had not asked before.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.audit.run.plan import AUDIT
from skill_evaluator.ci.pending import restore_job
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.commands.audit import AuditRunOptions, audit_run
from skill_evaluator.commands.evaluating import measure
from skill_evaluator.display.options import AUDITS, JUDGEMENTS
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
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.judges.asking.judging import JUDGING
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.batch_journal import BATCHES, BatchJournal
from skill_evaluator.runner.journal import Kept, Manifest, read_manifest

_Story = Callable[[Configuration], int]
_Open = tuple[Path, Manifest]  # a run folder that has a batch whose results are still to be taken


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectingPlaces:
    """Where everything lies, and how results are printed: what the command that collects says itself."""

    components: Path
    fixtures: Path | None
    config: Path
    format: Format


def collect_batches(artifacts: Path | None, places: CollectingPlaces) -> int:
    """Collect run by run, and return the worst exit code; what goes on at a vendor is no failure."""
    if artifacts is not None and not artifacts.is_dir():
        raise RunError(f"{artifacts} is not a folder; name the one that holds the runs, or none")
    roots = [places.components, AUDITS, JUDGEMENTS] if artifacts is None else [artifacts]
    return _collect(roots, read_configuration(places.config), places)


def collect_planned(plan: Path, job: str, results: Path, places: CollectingPlaces) -> int:
    """Do the same for a job of a plan made by `plan --pending`, whose run folders were of another machine.

    Nothing is deleted at the vendor: what was taken is safe only once a later job has published it.
    """
    restore_job(read_plan(plan), job, results)
    configuration = read_configuration(places.config)
    batch = configuration.settings.batch.model_copy(update={"delete_results": False})
    settings = configuration.settings.model_copy(update={"batch": batch})
    return _collect([results], replace(configuration, settings=settings), places)


def _collect(roots: Iterable[Path], configuration: Configuration, places: CollectingPlaces) -> int:
    evaluated, audited, judged = list[_Open](), list[_Open](), dict[Path, None]()
    problems: list[SkillEvaluatorError] = []
    for folder, manifest in _open_runs(roots, problems):
        above = [*folder.parents, *[Path()] * 4]  # of a run of a judge: runs/, the judging, then what it is a part of
        if manifest.audit is not None and not (folder.parents[1] / AUDIT).is_file():
            audit = folder.parents[1]
            problems.append(RunError(f"{folder} is a part of the audit {manifest.audit}, and {audit} has no {AUDIT}"))
        elif manifest.audit is not None:
            audited.append((folder, manifest))
        elif manifest.judging is None:
            evaluated.append((folder, manifest))
        else:  # the strong judge of a cascade lies in the folder of the cheap one
            judged[above[2] if (above[2] / JUDGING).is_file() else above[1]] = None
    stories: list[_Story] = [
        *_evaluations(evaluated, places),
        *_audits(audited, places),
        *(partial(_collect_judging, folder, places) for folder in judged),
    ]
    if not stories and not problems:
        print("no batch is left to collect", file=sys.stderr)
    codes = {EXIT_OK, *map(_tell, problems)}
    for story in stories:
        try:
            codes.add(story(configuration))
        except SkillEvaluatorError as problem:  # the others are collected all the same
            codes.add(_tell(problem))
    return next(code for code in (EXIT_USER_ERROR, EXIT_REGRESSED, EXIT_INCOMPLETE, EXIT_OK) if code in codes)


def _tell(problem: SkillEvaluatorError) -> int:
    """Print what keeps one run from being collected, and return its exit code."""
    print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
    return problem.exit_code


def _open_runs(roots: Iterable[Path], problems: list[SkillEvaluatorError]) -> Iterator[_Open]:
    """Yield the runs that have an open batch; a folder that cannot be read is one of the problems."""
    paths = dict.fromkeys(path for root in roots for path in sorted(root.rglob(BATCHES)))
    for path in paths:
        try:
            if BatchJournal.read(path.parent).open:
                yield path.parent, read_manifest(path.parent)
        except RunError as problem:
            problems.append(problem)


def _evaluations(found: Iterable[_Open], places: CollectingPlaces) -> list[_Story]:
    """Return how to go on with evaluations, an invocation at a time, to keep what was to be kept when it was begun."""
    begun: dict[EvaluationRequest, None] = {}
    for folder, manifest in found:
        kept = manifest.kept or Kept()
        options = EvaluationRequest(
            skill=manifest.skill,
            resume=invocation_of(manifest.run_id),
            scenario=None if manifest.role == "neutral" else manifest.scenario,
            leaderboard=kept.leaderboard,
            max_cost=kept.max_cost_usd,
            results=folder.parent,
            components=places.components,
            fixtures=places.fixtures,
            config=places.config,
            submit_only=True,
        )
        begun[options] = None
    return [partial(_collect_evaluation, request, places.format) for request in begun]


def _collect_evaluation(request: EvaluationRequest, form: Format, configuration: Configuration) -> int:
    return measure(request, form, collecting=configuration)


def _audits(found: Iterable[_Open], places: CollectingPlaces) -> list[_Story]:
    """Return how to go on with audits, each one's models together, or those of one shard."""
    models: dict[tuple[Path, str | None], list[str]] = {}
    for folder, manifest in found:
        models.setdefault((folder.parents[1], manifest.shard), []).append(manifest.model_id)
    return [
        partial(
            _collect_audit,
            AuditRunOptions(
                resume=str(audit),
                shard=shard,
                models=tuple(ids),
                audits=audit.parent,
                components=places.components,
                fixtures=places.fixtures,
                config=places.config,
                submit_only=True,
                format=places.format,
            ),
        )
        for (audit, shard), ids in models.items()
    ]


def _collect_audit(options: AuditRunOptions, configuration: Configuration) -> int:
    return audit_run(options, collecting=configuration)


def _collect_judging(folder: Path, places: CollectingPlaces, configuration: Configuration) -> int:
    library = Library(places.components, config=places.config, fixtures=places.fixtures)
    return print_judged(library.judge.collect(folder, configuration, watch=watch), places.format)
