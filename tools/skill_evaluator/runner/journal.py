"""A run folder: what the run is to do (`manifest.json`), and what became of each call (`replicates.jsonl`).

A call is on disk before it is scored. A run is resumed only if what shaped its answers is unchanged.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveInt

from skill_evaluator.errors import LeaderboardError, RunError, StorageError
from skill_evaluator.files import (
    LinesWriter,
    StrictModel,
    json_text,
    read_json,
    read_lines,
    read_text,
    replace_text,
    validated,
)
from skill_evaluator.library.config import VerdictName
from skill_evaluator.providers.base import Completion, Failure, Usage, first_answers
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.schedule import Call, Replicate

MANIFEST = "manifest.json"
ANSWERS = "replicates.jsonl"
RECORD = "record.json"
REPORT = "report.md"


Role = Literal["baseline", "again", "neutral"]


class Looks(StrictModel):
    """The looks at an adaptive run so far: after how many replicates, and against which run of a lower version.

    `models`: those that were run beside it. The last look may have settled the verdict: `enough` replicates are then
    asked in all, the last of them unseen by it.
    """

    after: tuple[PositiveInt, ...]
    against: str
    models: PositiveInt
    verdict: VerdictName | None = None
    enough: PositiveInt | None = None


class Manifest(StrictModel):
    """What one run was to do: ask every case in `cases` `replicates` times. `digests`: of what shapes the answers.

    An `adaptive` run asks no more once one of its `looks` settles the verdict: `settled_after` says after how many
    replicates. `tops_up` is such a run whose answers this one has taken over, to ask the rest.
    `audit`: the stability audit it is a part of; its cases are then `<benchmark>/<scenario>/<case>`.
    `beside` is the run whose calls alternate with this one's. A run of a recorded version has a `role`: the `baseline`
    beside the run of a new version, that version `again`, or it under a `neutral` scenario. `prompt_commit` then says
    where its prompt is.
    """

    run_id: str
    created: str
    skill: str
    skill_version: str
    model_id: str
    provider: str
    replicates: PositiveInt
    seed: int
    shard: str | None = None
    selection: tuple[str, ...] = ()
    scenario: str | None = None
    beside: str | None = None
    role: Role | None = None
    prompt_commit: str | None = None
    audit: str | None = None
    cases: dict[str, str]
    digests: dict[str, str]
    evaluator_version: str
    adaptive: bool = False
    settled_after: PositiveInt | None = None
    looks: Looks | None = None
    tops_up: str | None = None

    @property
    def asked(self) -> int:
        """Replicates a case that are to be asked, as far as is known."""
        return self.settled_after or self.replicates

    @property
    def saved_calls(self) -> int:
        """Calls that were planned and need not be made."""
        return len(self.cases) * (self.replicates - self.asked)

    @property
    def whole(self) -> bool:
        """Whether the run is of all the component's cases: only then is it a measurement of the component."""
        return self.shard is None and not self.selection

    def differences(self, other: "Manifest") -> list[str]:
        """Name the inputs that differ between two manifests."""
        changed = [name for name in self.digests if self.digests[name] != other.digests.get(name)]
        for case_id in sorted(self.cases.keys() | other.cases.keys()):
            if self.cases.get(case_id) != other.cases.get(case_id):
                changed.append(f"case '{case_id}'")
        return changed


def create_run(folder: Path, manifest: Manifest) -> None:
    """Make a run folder with its manifest; raise StorageError if it cannot be written."""
    replace_text(folder / MANIFEST, json_text(manifest.model_dump(mode="json")))


def note_looks(folder: Path, manifest: Manifest, looks: Looks) -> Manifest:
    """Note the looks so far in the manifest; raise StorageError if it cannot be written."""
    noted = manifest.model_copy(update={"settled_after": looks.enough, "looks": looks})
    replace_text(folder / MANIFEST, json_text(noted.model_dump(mode="json")))
    return noted


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run folder; raise RunError if it is none."""
    path = folder / MANIFEST
    if not path.exists():
        raise RunError(f"{folder} is not a run folder: it has no {MANIFEST}")
    return validated(Manifest, read_json(path, RunError), path, RunError)


def read_component_manifest(folder: Path) -> Manifest:
    """Read the manifest of a component's run; raise RunError also for an audit's run, which has several components."""
    manifest = read_manifest(folder)
    if manifest.audit is not None:
        raise RunError(
            f"{folder} is a part of the audit {manifest.audit}, not of a component; "
            f"see audit report, and {ANSWERS} for the answers"
        )
    return manifest


def find_runs(results_dir: Path, wanted: str, skill: str) -> list[tuple[Path, Manifest]]:
    """Find a component's runs by `--resume RUN`: a path, a run id, or the common beginning of an invocation's run ids.

    `latest` takes the newest invocation that has an unfinished run. Raise RunError when nothing fits.
    """
    if Path(wanted, MANIFEST).is_file():
        return [(Path(wanted), read_manifest(Path(wanted)))]
    folders = sorted(path.parent for path in results_dir.glob(f"*/{MANIFEST}"))
    runs = [(folder, manifest) for folder in folders if (manifest := read_manifest(folder)).skill == skill]
    if wanted == "latest":
        unfinished = [folder for folder, _ in runs if _is_unfinished(folder)]
        if not unfinished:
            raise RunError(f"no unfinished run of '{skill}' in {results_dir} to resume")
        wanted = invocation_of(unfinished[-1].name)
    fitting = [run for run in runs if wanted in (run[0].name, invocation_of(run[0].name))]
    if not fitting:
        raise RunError(f"no run '{wanted}' of '{skill}' in {results_dir} to resume")
    return fitting


def _is_unfinished(folder: Path) -> bool:
    """Check for a record that is missing (the run was killed) or says that the run is not complete."""
    try:
        return not read_record(folder / RECORD).complete
    except LeaderboardError:
        return True


def invocation_of(run_id: str) -> str:
    """Return the part of a run id that all models of one invocation share: `<time>-<token>`."""
    return "-".join(run_id.split("-", 2)[:2])


class Journal:
    """The answers of one run, appended as they come."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ANSWERS
        self._lines = LinesWriter(self.path)

    def append(self, replicate: Replicate) -> None:
        """Keep one call's outcome; raise StorageError if it cannot be written."""
        self._lines.append(_write_line(replicate))

    def close(self) -> None:
        """Flush to the disk itself; raise StorageError if that fails."""
        self._lines.close()


def copy_answers(source: Path, target: Path) -> None:
    """Copy the answers of a run into a new folder; raise StorageError if they cannot be written."""
    replace_text(target / ANSWERS, read_text(source / ANSWERS, RunError))


def read_answers(folder: Path) -> Iterator[Replicate]:
    """Yield every outcome in a run folder, in the order written; a call that was made again occurs again."""
    path = folder / ANSWERS
    if not path.exists():
        return
    for number, line in read_lines(path, RunError, torn_lines=True):
        try:
            yield _read_line(line)
        except (KeyError, TypeError, AttributeError) as problem:
            raise RunError(f"{path}:{number}: not a journal line ({problem!r})") from None


def outcomes(folder: Path) -> dict[Call, Replicate]:
    """Return the outcome of each call in a run folder: its first answer, else its last error."""
    return _first_answers(read_answers(folder))


def _first_answers(replicates: Iterable[Replicate]) -> dict[Call, Replicate]:
    return first_answers(
        ((replicate.call, replicate) for replicate in replicates), lambda replicate: replicate.answered
    )


def merged_outcomes(parts: Iterable[tuple[Manifest, Iterable[Replicate]]]) -> dict[Call, Replicate]:
    """Put the outcomes of a run's parts (shards, or repeated jobs) together: one outcome for each call planned."""
    return _first_answers(
        replicate
        for manifest, replicates in parts
        for replicate in replicates
        if replicate.call.case_id in manifest.cases and 0 <= replicate.call.replicate < manifest.replicates
    )


def _write_line(replicate: Replicate) -> dict[str, Any]:
    line: dict[str, Any] = {"case_id": replicate.call.case_id, "replicate": replicate.call.replicate}
    if replicate.completion is not None:
        line |= asdict(replicate.completion)
    if replicate.error is not None:
        line["error"] = asdict(replicate.error)
    return {**line, "latency_s": round(replicate.latency_s, 4), "attempts": replicate.attempts}


def _read_line(line: Mapping[str, Any]) -> Replicate:
    error = line.get("error")
    text = line.get("text")
    return Replicate(
        call=Call(line["case_id"], line["replicate"]),
        completion=None
        if text is None
        else Completion(
            text=text,
            stop_reason=line.get("stop_reason") or "stop",
            usage=Usage(**(line.get("usage") or {})),
            served_model=line.get("served_model"),
            request_id=line.get("request_id"),
        ),
        error=None if error is None else Failure(**error),
        latency_s=line.get("latency_s", 0.0),
        attempts=line.get("attempts", 1),
    )


def check_writable(folder: Path, remedy: str = "--results DIR and --no-leaderboard") -> None:
    """Raise StorageError before any call if answers could not be kept in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        raise StorageError(f"cannot write to {folder}: {problem.strerror}; see {remedy}") from None
