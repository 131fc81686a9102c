"""Runs whose batches are at a vendor: which there are below some folders, and how each goes on as it was begun."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skill_evaluator.audit.run.plan import AUDIT
from skill_evaluator.ci.pending import PENDING
from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.files import storing
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.judges.asking.judging import JUDGING
from skill_evaluator.runner.batch import give_up
from skill_evaluator.runner.batch_journal import BATCHES, BatchJournal
from skill_evaluator.runner.journal import Kept, Manifest, read_manifest
from skill_evaluator.text import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedBatches:
    """What has batches whose results are still to be taken; `problems` are of folders that cannot be read.

    `evaluations` has an invocation at a time, `audits` the models to go on with by audit and shard, `judgings` folders.
    `given_up` says of each run, and of each pending file, what became of it.
    """

    evaluations: list[EvaluationRequest] = field(default_factory=list)
    audits: dict[tuple[Path, str | None], list[str]] = field(default_factory=dict)
    judgings: list[Path] = field(default_factory=list)
    problems: list[RunError] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)


def unfinished_batches(
    roots: Iterable[Path], components: Path, config: Path, fixtures: Path | None, give_up_on: str | None = None
) -> UnfinishedBatches:
    """Find the runs below some folders, to keep of each what was to be kept when it was begun.

    With `give_up_on`, an id or a folder, find that run alone, and give up what is left of it: its calls get failures,
    its pending file is removed. Raise RunError where nothing of the run is pending.
    """
    found = UnfinishedBatches()
    for folder, manifest in _open_runs(roots, found.problems):
        if give_up_on is not None:
            if give_up_on != folder.name and Path(give_up_on).resolve() != folder.resolve():
                continue
            lying = listed(give_up(folder)) or "none"
            found.given_up.append(f"{folder} is given up; batches that the vendor may go on with: {lying}")
        above = [*folder.parents, *[Path()] * 4]  # of a run of a judge: runs/, the judging, then what it is a part of
        audit, kept = above[1], manifest.kept or Kept()
        if manifest.audit is not None and not (audit / AUDIT).is_file():
            why = f"{folder} is a part of the audit {manifest.audit}, and {audit} has no {AUDIT}"
            found.problems.append(RunError(why))
        elif manifest.audit is not None:
            found.audits.setdefault((audit, manifest.shard), []).append(manifest.model_id)
        elif manifest.judging is not None:  # the strong judge of a cascade lies in the folder of the cheap one
            judging = above[2] if (above[2] / JUDGING).is_file() else above[1]
            found.judgings.extend([judging] if judging not in found.judgings else ())
        else:
            request = EvaluationRequest(
                skill=manifest.skill,
                resume=invocation_of(manifest.run_id),
                scenario=manifest.scenario,
                leaderboard=kept.leaderboard,
                max_cost=kept.max_cost_usd,
                results=folder.parent,
                components=components,
                fixtures=fixtures,
                config=config,
                submit_only=True,
            )
            found.evaluations.extend([request] if request not in found.evaluations else ())
    if give_up_on is not None:
        for path in components.glob(f"*/evals/{PENDING}/*.json"):
            if path.stem == Path(give_up_on).name:
                with storing(path):
                    path.unlink()
                found.given_up.append(f"{path} is removed; commit that to give the run up in CI")
        if not found.given_up:
            raise RunError(f"no run '{give_up_on}' has batches at a vendor")
    return found


def _open_runs(roots: Iterable[Path], problems: list[RunError]) -> Iterator[tuple[Path, Manifest]]:
    for path in dict.fromkeys(path for root in roots for path in sorted(root.rglob(BATCHES))):
        try:
            if BatchJournal.read(path.parent).open:
                yield path.parent, read_manifest(path.parent)
        except RunError as problem:
            problems.append(problem)
