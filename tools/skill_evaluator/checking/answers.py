"""Whether the answers that a run folder keeps are those that a record was made of."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.repository import within
from skill_evaluator.runner.journal import ANSWERS, RECORD, Manifest, outcomes, read_manifest
from skill_evaluator.runner.schedule import Call, Replicate, digest_of_answers, schedule_calls


def has_other_answers(
    record: Record, folder: Path, manifest: Manifest, answers: Mapping[Call, Replicate] | None = None
) -> bool:
    """Return whether a run folder keeps other answers than its record was made of; raise RunError.

    `answers` are those of the folder, where they are read already. A record from before it held their digest does not
    tell.
    """
    expected = record.digests.get("answers")
    if expected is None:
        return False
    journal = outcomes(folder) if answers is None else answers
    calls = schedule_calls(tuple(manifest.cases), manifest.asked)
    return digest_of_answers({call: journal[call].digest for call in calls if call in journal}) != expected


def answer_problems(components: Path, name: str, folder: str) -> Iterator[Problem]:
    """Yield each record of a component whose run folder is still here, and keeps other answers.

    `folder` names the folder of components in the problems. What cannot be read is left to the checks of its own file.
    """
    evals = components / name / "evals"
    for path in sorted((evals / "records").glob("*.json")):
        run = evals / "results" / path.stem
        if not (run / ANSWERS).exists():
            continue
        try:
            is_other = has_other_answers(read_record(path), run, read_manifest(run))
        except SkillEvaluatorError:
            continue
        if is_other:
            message = f"this record was not made of the answers in {run / ANSWERS}: one of the two was edited"
            yield Problem(file=within(folder, f"{name}/evals/records/{path.name}"), line=1, message=message)


def edited_since(folder: Path, manifest: Manifest, records: Path) -> Path | None:
    """Return the record of a run, in its folder or among those kept, that was made of other answers; None where none.

    Raise LeaderboardError or RunError for a file that cannot be read.
    """
    paths = (folder / RECORD, records / f"{manifest.run_id}.json")
    return next(
        (path for path in paths if path.exists() and has_other_answers(read_record(path), folder, manifest)), None
    )
