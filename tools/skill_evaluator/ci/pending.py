"""Runs whose calls lie with a vendor in batches: one small committed file a component and model, until they are taken.

Such a file is the part of the plan that the run is of, with the ids of its batches: no document, no answer.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from skill_evaluator.ci.plan import Plan, planned_runs
from skill_evaluator.errors import PlanError
from skill_evaluator.files import parse_json, validated
from skill_evaluator.identifiers import moment
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.record import PARTIAL
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.batch_journal import PendingRun, restore_run
from skill_evaluator.runner.runs import run_id_of
from skill_evaluator.text import nearest

_PARTS = ("entries", "chosen", "judgings", "pending")
_OVERDUE = datetime.timedelta(hours=26)
PENDING = "pending"  # the folder of these files, in a component's evals and among what is collected


def pending_words(runs: Sequence[PendingRun]) -> str:
    """Say what lies with a vendor: `2 batches at the vendor since 2026-03-01T08:00:00Z`."""
    batches = [batch for run in runs for batch in run.batches if batch.absent is None]
    since = min((batch.at for batch in batches), key=moment, default="")
    return f"{len(batches)} batch{'es' * (len(batches) != 1)} at the vendor since {since}"


def overdue(pending: Iterable[Plan], folder: str) -> list[Problem]:
    """Return the pending files whose batches should be collected by now: a vendor gives them up after 24 hours."""
    latest = datetime.datetime.now(datetime.UTC) - _OVERDUE
    return [
        Problem(
            file=within(folder, f"{each.entries[0].skill}/evals/{PENDING}/{run_of(each)}.json"),
            line=1,
            message=f"{pending_words(each.pending)} and not collected: start Actions → Batches → Run workflow",
        )
        for each in pending
        if any(moment(batch.at) < latest for run in each.pending for batch in run.batches if batch.absent is None)
    ]


def part_of_plan(plan: Plan, skill: str, model_id: str, runs: Sequence[PendingRun], fixtures: str | None) -> Plan:
    """Return what a pending file holds: the plan of one component and model, and its runs' batches."""
    entries = [entry for entry in plan.entries if (entry.skill, entry.model_id) == (skill, model_id)]
    return plan.model_copy(
        update={
            "entries": entries,
            "chosen": [
                chosen.model_copy(update={"models": [model_id]})
                for chosen in plan.chosen
                if chosen.skill == skill and model_id in chosen.models
            ],
            "skipped": [],
            "untouched": 0,
            "faults": [],
            "unjudged": [],
            "forecast": [],
            "judgings": [
                judging for judging in plan.judgings if (judging.skill, judging.candidate) == (skill, model_id)
            ],
            "pending": list(runs),
            "fixtures_commit": fixtures or plan.fixtures_commit,
        }
    )


def read_pending(repository: Repository, refs: Iterable[str], folder: str) -> tuple[list[Plan], list[Problem]]:
    """Return the pending files of some commits, of the same run that of the last; not of runs that are recorded there.

    The problems are of files that cannot be read.
    """
    commits = dict.fromkeys(filter(None, (repository.commit(ref) for ref in refs)))
    files = {path: blob for commit in commits for path, blob in repository.files(commit, folder).items()}
    waiting = _waiting(files, folder)
    contents = repository.contents(waiting.values())
    plans, problems = [], []
    for path, blob in sorted(waiting.items()):
        try:
            plans.append(parse_pending(contents[blob], Path(path)))
        except PlanError as problem:
            problems.append(Problem(file=path, line=1, message=str(problem)))
    return plans, problems


def component_of(path: str) -> str:
    """Return the component of a pending file, or of a record."""
    return path.split("/")[-4]  # no object for each, since there may be 100,000 records


def pending_changes(
    repository: Repository, parents: Sequence[str], folder: str, left: Mapping[tuple[str, str], bytes | None]
) -> dict[str, bytes | None]:
    """Return the pending files that a commit on top of its last parent adds, replaces or (None) removes.

    `left` has them by component and run. A first parent is a branch for review, whose files are carried over. A run
    that was recorded meanwhile leaves none.
    """
    listed = [repository.files(parent, folder) for parent in parents]
    there = listed[-1] if listed else {}
    together = {path: blob for files in listed for path, blob in files.items()}
    waiting = _waiting(together, folder)
    carried = {path: blob for path, blob in waiting.items() if path not in there}
    contents = repository.contents(carried.values())
    changes: dict[str, bytes | None] = {path: contents[blob] for path, blob in carried.items()}
    changes |= {path: None for path in there if _is_pending(path, folder) and path not in waiting}
    recorded = _recorded(together, folder)
    for (skill, run_id), content in left.items():
        path = within(folder, f"{skill}/evals/{PENDING}/{run_id}.json")
        if content is None or (skill, run_id) in recorded:
            changes.pop(path, None)
            content = None
        if content is not None or path in there:
            changes[path] = content
    return changes


def _waiting(files: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return those of some files that are pending, of runs without a record among them."""
    pending = {path: blob for path, blob in files.items() if _is_pending(path, folder)}
    recorded = _recorded(files, folder) if pending else ()
    return {
        path: blob for path, blob in pending.items() if (component_of(path), PurePosixPath(path).stem) not in recorded
    }


def _recorded(files: Iterable[str], folder: str) -> set[tuple[str, str]]:
    """Return component and id of the runs that have a record, be it of a part; `a-b-c` may be of `a` or of `a-b`."""
    records = [path for path in files if fnmatch(path, within(folder, "*/evals/records/*.json"))]
    return {(component_of(path), PurePosixPath(path).stem.partition(PARTIAL)[0]) for path in records}


def _is_pending(path: str, folder: str) -> bool:
    return PENDING in path and fnmatch(path, within(folder, f"*/evals/{PENDING}/*.json"))  # most files are records


def parse_pending(content: bytes, path: Path) -> Plan:
    """Read a pending file; raise PlanError if it is broken or belongs to a different run."""
    plan = validated(Plan, parse_json(content.decode("utf-8", "replace"), path, PlanError), path, PlanError)
    if len({(entry.skill, entry.model_id) for entry in plan.entries}) != 1 or path.stem != run_of(plan):
        raise PlanError(f"{path} does not belong to the run in its name")
    return plan


def run_of(pending: Plan) -> str:
    """Return the id of the run that a pending file is of."""
    first = pending.entries[0]
    return run_id_of(pending.invocation, first.skill, first.model_id)


def put_together(pending: Sequence[Plan]) -> Plan:
    """Return the plan of what is left of one earlier plan, out of its pending files."""
    parts = {name: [item for each in pending for item in getattr(each, name)] for name in _PARTS}
    return pending[0].model_copy(update=parts)


def restore_job(plan: Plan, job: str, results: Path) -> None:
    """Make the run folders of a job from what is pending of it; raise PlanError where the plan has no such job."""
    if job not in (entry.id for entry in plan.entries):
        raise PlanError(f"the plan has no job '{job}' {nearest(job, [entry.id for entry in plan.entries])}")
    pending = {run.run_id: run for run in plan.pending}
    for run in planned_runs(plan):
        if run.job == job and run.manifest.run_id in pending:
            restore_run(results / run.manifest.run_id, run.manifest, pending[run.manifest.run_id])


def lying_versions(pending: Iterable[Plan]) -> dict[tuple[str, str, str], str]:
    """Return by component, model and version why a plan does not ask it again: its calls are at the vendor."""
    return {
        (entry.skill, entry.model_id, entry.skill_version): f"{entry.skill_version}: {pending_words(each.pending)}"
        for each in pending
        for entry in each.entries
    }
