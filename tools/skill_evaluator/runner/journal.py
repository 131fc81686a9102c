"""A run and its folder: its plan (`manifest.json`), and the outcome of each call (`replicates.jsonl`).

A call is on disk before it is scored. A run is resumed only if everything that determines its outputs is unchanged.
"""

import datetime
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from skill_evaluator import __version__
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import LeaderboardError, RunError, StorageError
from skill_evaluator.files import (
    LinesWriter,
    StrictModel,
    first_problem,
    json_text,
    read_json,
    read_placed_lines,
    replace_text,
    validated,
)
from skill_evaluator.identifiers import (
    CaseId,
    Commit,
    ComponentName,
    Digest,
    Label,
    ModelId,
    ReplicateCount,
    RunId,
    ShardText,
    Timestamp,
    VersionText,
    invocation_of,
)
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.library.prompts import DOCUMENT, UsedInputs
from skill_evaluator.providers import PROVIDERS, Kinds
from skill_evaluator.providers.base import first_answers
from skill_evaluator.providers.replay import AnswerLine, line_at
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.records.summaries import LATER, InFlight, Server
from skill_evaluator.runner.prices import input_sizes, not_applicable
from skill_evaluator.runner.schedule import Call, Replicate, Shard, digest_of_answers, schedule_calls
from skill_evaluator.text import canonical_json, digest, listed, nearest

MANIFEST = "manifest.json"
ANSWERS = "replicates.jsonl"
RECORD = "record.json"
REPORT = "report.md"
JUDGE = "judge"  # the folder in it that holds the answers of its judge
TOLD_LATER = ("server", "in_flight")  # of a manifest, known only once there are answers
_PLANNED = ("skill_version", "cases", "replicates", "shard", "selection", "role", "transport")
_RUNS_NAMED = 5
_HELD = 1_000_000  # bytes of answers, which take some five times as much in memory
Role = Literal["baseline", "again"]
Transport = Literal["direct", "batch"]  # each call by itself, or many in a batch (see batches.jsonl)


class Manifest(StrictModel):
    """What one run was to do: ask every case in `cases` `replicates` times. `digests`: of what shapes the answers.
    `inputs`: those that its version uses.

    `not_applicable`: the component's other cases that this model is not asked, and why. `audit`: the stability audit it
    is a part of; its cases are then `<benchmark>/<scenario>/<case>`. `judging`: the judging it is a part of; its cases
    are then the questions that the judge was asked. `beside` is the run whose calls alternate with this one's. A run of
    a recorded version has a `role`: the `baseline` beside the run of a new version, or that version `again`.
    `prompt_commit` then says where its prompt is. A `draft` is recorded as such: in no leaderboard, and never a
    baseline. `server` and `in_flight` become known while it is asked.
    """

    run_id: RunId
    created: Timestamp
    skill: ComponentName
    skill_version: VersionText
    model_id: ModelId
    provider: Label
    replicates: ReplicateCount
    seed: int
    shard: ShardText | None = None
    selection: tuple[str, ...] = ()
    scenario: Label | None = None
    beside: RunId | None = None
    role: Role | None = None
    prompt_commit: Commit | None = None
    audit: RunId | None = None
    judging: RunId | None = None
    cases: dict[CaseId, Digest]
    inputs: UsedInputs = (DOCUMENT,)
    not_applicable: dict[CaseId, Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    digests: dict[str, Digest]
    evaluator_version: Label
    draft: bool = False
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    server: Server | None = LATER
    in_flight: InFlight | None = LATER

    @property
    def calls(self) -> int:
        """Calls that were planned."""
        return len(self.cases) * self.replicates

    @property
    def whole(self) -> bool:
        """Whether the run covers all cases of the component; only then does it measure the component."""
        return self.shard is None and not self.selection

    @property
    def asked_again(self) -> bool:
        """Whether failed cases are run again, with both versions interleaved."""
        return bool(self.selection) and self.beside is not None

    def asks_like(self, other: "Manifest") -> bool:
        """Return whether everything that determines the outputs is equal; false for drafts and repeated cases."""
        same = all(getattr(self, name) == getattr(other, name) for name in ("skill", "model_id", "digests"))
        return same and not any(run.draft or run.asked_again for run in (self, other))

    def is_planned_as(self, other: "Manifest") -> bool:
        """Return whether both plan the same calls with the same settings, whatever the seeds."""
        same = all(getattr(self, name) == getattr(other, name) for name in _PLANNED)
        return same and self.asks_like(other) and (self.beside is None) == (other.beside is None)

    def is_part_of(self, other: "Manifest") -> bool:
        """Return whether another run of the same version makes all calls of this one. Both are direct and alone."""
        alone = all((run.role, run.beside, run.transport) == (None, None, "direct") for run in (self, other))
        same = (self.skill_version, self.shard) == (other.skill_version, other.shard) and self.asks_like(other)
        fewer = self.replicates <= other.replicates and self.cases.items() <= other.cases.items()
        return alone and same and fewer

    def asks(self, call: Call) -> bool:
        """Return whether a call belongs to the run."""
        return call.case_id in self.cases and 0 <= call.replicate < self.replicates

    def differences(self, other: "Manifest") -> list[str]:
        """Return the names of the inputs that differ between two manifests."""
        changed = [name for name in self.digests if self.digests[name] != other.digests.get(name)]
        for case_id in sorted(self.cases.keys() | other.cases.keys()):
            if self.cases.get(case_id) != other.cases.get(case_id):
                changed.append(f"case '{case_id}'")
        return changed


def create_run(folder: Path, manifest: Manifest) -> None:
    """Make a run folder with its manifest; raise StorageError if it cannot be written."""
    replace_text(folder / MANIFEST, json_text(manifest.model_dump(mode="json")))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run folder; raise RunError if it is unreadable."""
    path = folder / MANIFEST
    if not path.exists():
        raise RunError(f"{folder} is not a run folder: it has no {MANIFEST}")
    return validated(Manifest, read_json(path, RunError), path, RunError)


def refuse_other(folder: Path, planned: Manifest) -> None:
    """Raise RunError if a folder has outputs of another component or model, or for other inputs."""
    begun = read_manifest(folder) if (folder / MANIFEST).exists() else planned
    others = [name for name in ("skill", "model_id") if getattr(begun, name) != getattr(planned, name)]
    if why := others or planned.differences(begun):
        raise RunError(
            f"{folder} holds answers of '{begun.skill}' by '{begun.model_id}', but this run has a different "
            f"{listed(why)}: choose a new folder with --results"
        )


def read_component_manifest(folder: Path) -> Manifest:
    """Read the manifest of a component's run; raise RunError also for the run of an audit or a judging."""
    manifest = read_manifest(folder)
    whole = f"audit {manifest.audit}" if manifest.audit else f"judging {manifest.judging}" if manifest.judging else None
    if whole is not None:
        raise RunError(
            f"{folder} is a part of the {whole}, not of a component; see audit report, and {ANSWERS} for the answers"
        )
    return manifest


def find_run(run: str, components: Path) -> Path:
    """Find a run folder by its path, or by its id in the results of any component; raise RunError."""
    if Path(run).exists():
        return Path(run)  # what it lacks is said where it is read
    folders = {path.parent.name: path.parent for path in components.glob(f"*/evals/results/*/{MANIFEST}")}
    if run in folders:
        return folders[run]
    if (components / run).is_dir():
        own = sorted(name for name, folder in folders.items() if folder.is_relative_to(components / run))
        named = listed(own[-_RUNS_NAMED:]) if own else "it has none on this machine"
        raise RunError(f"'{run}' is a component: name one of its runs ({named})")
    newest = sorted(folders)[-_RUNS_NAMED:]
    raise RunError(f"no run folder '{run}', and no run of that id below {components} {nearest(run, newest)}")


def answers_in(results_dir: Path) -> dict[str, str]:
    """Return the ids of the runs with outputs in a component's results."""
    return {path.parent.name: path.parent.name for path in results_dir.glob(f"*/{ANSWERS}")}


def find_runs(results_dir: Path, wanted: str, skill: str) -> list[tuple[Path, Manifest]]:
    """Find a component's runs by `--run ID`: a path, a run id, or the common beginning of an invocation's run ids.

    `latest` takes the newest invocation that has an unfinished run. Raise RunError when nothing fits.
    """
    if Path(wanted, MANIFEST).is_file():
        return [(Path(wanted), read_manifest(Path(wanted)))]
    folders = sorted(path.parent for path in results_dir.glob(f"*/{MANIFEST}"))
    runs = [(folder, manifest) for folder in folders if (manifest := read_manifest(folder)).skill == skill]
    if wanted == "latest":
        unfinished = [folder for folder, _ in runs if is_unfinished(folder)]
        if not unfinished:
            raise RunError(f"no unfinished run of '{skill}' in {results_dir} to resume")
        wanted = invocation_of(unfinished[-1].name)
    fitting = [run for run in runs if wanted in (run[0].name, invocation_of(run[0].name))]
    if not fitting:
        raise RunError(f"no run '{wanted}' of '{skill}' in {results_dir} to resume")
    return fitting


def is_unfinished(folder: Path) -> bool:
    """Check for a record or report that is missing (the run was killed), or a record of a run that is not final."""
    try:
        return not read_record(folder / RECORD).is_final or not (folder / REPORT).exists()
    except LeaderboardError:
        return True


class Journal:
    """The answers of one run, appended as they come."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ANSWERS
        self._lines = LinesWriter(self.path)

    def append(self, replicate: Replicate) -> None:
        """Keep one call's outcome; raise StorageError if it cannot be written."""
        call, completion = replicate.call, replicate.completion
        line: dict[str, Any] = {"case_id": call.case_id, "replicate": call.replicate}
        if completion is not None:
            line |= {part.name: getattr(completion, part.name) for part in fields(completion)}
            counts = ((part.name, getattr(completion.usage, part.name)) for part in fields(completion.usage))
            line["usage"] = {name: count for name, count in counts if count is not None}
            for name in ("fingerprint", "reasoning", "tool_call"):
                if not line[name]:
                    del line[name]
        if replicate.error is not None:
            line["error"] = asdict(replicate.error)
        line["latency_s"] = replicate.latency_s and round(replicate.latency_s, 4)
        self._lines.append({**line, "attempts": replicate.attempts})

    def close(self) -> None:
        """Flush to the disk itself; raise StorageError if that fails."""
        self._lines.close()


def read_answers(folder: Path, wrong: Callable[[str], None] | None = None) -> Iterator[Replicate]:
    """Yield every outcome in a run folder in the order written; a repeated call occurs again.

    Unreadable lines are skipped, so their calls count as not made, but they stay in the file. At the end `wrong`
    receives the place of the first one and their number; without `wrong` a warning is printed.
    """
    return (replicate for _, replicate in _placed_answers(folder / ANSWERS, wrong))


def _placed_answers(path: Path, wrong: Callable[[str], None] | None) -> Iterator[tuple[int, Replicate]]:
    if not path.exists():
        return
    left_out: list[str] = []
    for number, place, value in read_placed_lines(path, RunError, torn_lines=True):
        try:
            yield place, _replicate_of(AnswerLine.model_validate(value))
        except ValidationError as problem:
            left_out.append(f"{path}:{number} is left out, it is not a journal line: {first_problem(problem)}")
    if not left_out:
        return
    sentence = left_out[0] + (f" (and {len(left_out) - 1} more lines)" if len(left_out) > 1 else "")
    if wrong is None:
        print(f"warning: {visible(sentence)}; its call counts as not made", file=sys.stderr)
    else:
        wrong(sentence)


def _replicate_of(line: AnswerLine) -> Replicate:
    return Replicate(
        call=Call(sys.intern(line.case_id), line.replicate),
        completion=line.completion,
        error=line.failure,
        latency_s=line.latency_s,
        attempts=line.attempts,
    )


class _Outcomes(Mapping[Call, Replicate]):
    """The outcomes of a journal, read from the file on access to save memory."""

    def __init__(self, path: Path) -> None:
        attempts = ((each.call, (each.answered, place)) for place, each in _placed_answers(path, None))
        self._path = path
        self._places = {call: place for call, (_, place) in first_answers(attempts, lambda attempt: attempt[0]).items()}

    def __getitem__(self, call: Call) -> Replicate:
        return _replicate_of(line_at(self._path, self._places[call]))

    def __contains__(self, call: object) -> bool:
        return call in self._places

    def __iter__(self) -> Iterator[Call]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def outcomes(folder: Path) -> Mapping[Call, Replicate]:
    """Return the outcome of each call in a run folder: its first output, else its last error."""
    path = folder / ANSWERS
    if path.is_file() and path.stat().st_size > _HELD:
        return _Outcomes(path)
    return first_answers(((each.call, each) for each in read_answers(folder)), lambda each: each.answered)


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
    calls = schedule_calls(tuple(manifest.cases), manifest.replicates)
    return digest_of_answers({call: journal[call].digest for call in calls if call in journal}) != expected


def edited_since(folder: Path, manifest: Manifest, records: Path) -> Path | None:
    """Return the record of a run that was made from other outputs than the folder has, or None.

    Raise LeaderboardError or RunError if a file cannot be read.
    """
    paths = (folder / RECORD, records / f"{manifest.run_id}.json")
    return next(
        (path for path in paths if path.exists() and has_other_answers(read_record(path), folder, manifest)), None
    )


def merged_outcomes(parts: Iterable[tuple[Manifest, Iterable[Replicate]]]) -> dict[Call, Replicate]:
    """Merge the outcomes of a run's parts (shards or repeated jobs): one outcome per planned call."""
    return first_answers(
        (
            (replicate.call, replicate)
            for manifest, replicates in parts
            for replicate in replicates
            if manifest.asks(replicate.call)
        ),
        lambda replicate: replicate.answered,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One model's part of an invocation."""

    model: Model
    manifest: Manifest
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """Which calls new runs make: replicates per case, the cases (by `shard` and `selection`), and the transport."""

    replicates: int
    seed: int
    shard: Shard | None = None
    selection: tuple[str, ...] = ()
    invocation: str | None = None
    transport: Transport = "direct"


def new_runs(
    component: Component,
    cases: Sequence[Case],
    models: Sequence[Model],
    results_dir: Path,
    kinds: Kinds,
    size: RunSize,
) -> list[Run]:
    """Return a run for every model, not yet on disk; their ids begin with the invocation (by default a new one).

    A model is called for the cases that are applicable to it, or its shard of these.
    """
    now, shard = datetime.datetime.now(datetime.UTC), size.shard
    invocation = size.invocation or new_invocation(now)
    sizes = input_sizes(component, cases)
    runs = []
    for model in models:
        left_out = not_applicable(cases, sizes, model, kinds[model.provider])
        applicable = [case.id for case in cases if case.id not in left_out]
        mine = set(shard.of(applicable) if shard else applicable)
        run_id = run_id_of(invocation, component.name, model.id, shard)
        manifest = Manifest(
            run_id=run_id,
            created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            skill=component.name,
            skill_version=component.version,
            model_id=model.id,
            provider=model.provider,
            replicates=size.replicates,
            seed=size.seed,
            shard=str(shard) if shard else None,
            selection=size.selection,
            scenario=component.scenario,
            cases={case.id: case.digest for case in cases if case.id in mine},
            inputs=component.prompt.inputs,
            not_applicable=left_out,
            digests=input_digests(component, model),
            evaluator_version=__version__,
            transport=size.transport,
        )
        runs.append(Run(model=model, manifest=manifest, folder=results_dir / run_id))
    return runs


def new_invocation(now: datetime.datetime) -> str:
    """Return a new invocation id, which begins its run ids: the time in seconds, then six hexadecimal digits.

    The first three are the fraction of the second in 1/4096, the others are random, so runs started by one machine in
    the same second still sort by time.
    """
    return f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond * 4096 // 1_000_000:03x}{os.urandom(2).hex()[:3]}"


def run_id_of(invocation: str, skill: str, model_id: str, shard: Shard | None = None, mark: str = "") -> str:
    """Return the id of a model's run of a component, or of its part of the cases; a `mark` tells several runs apart."""
    of_skill = skill if len(skill) <= 40 else f"{skill[:33]}-{digest(skill)[-6:]}"  # the id names a file
    marked = f"@{slug(mark)}" if mark else ""  # a slug has no @
    part = f"-{shard.index}of{shard.count}" if shard else ""
    return "-".join(filter(None, (invocation, of_skill, slug(model_id)))) + marked + part


def run_of_other(run: Run, component: Component, mark: str, role: Role, prompt_commit: str | None) -> Run:
    """Return a run of a second prompt, or of a prompt under a scenario: same model, cases and invocation."""
    shard = None if run.manifest.shard is None else Shard.parse(run.manifest.shard)
    run_id = run_id_of(invocation_of(run.manifest.run_id), component.name, run.model.id, shard, mark)
    update = {
        "run_id": run_id,
        "skill_version": component.version,
        "scenario": component.scenario,
        "inputs": component.prompt.inputs,
        "digests": input_digests(component, run.model),
        "role": role,
        "prompt_commit": prompt_commit,
    }
    return replace(run, manifest=run.manifest.model_copy(update=update), folder=run.folder.parent / run_id)


def input_digests(component: Component, model: Model) -> dict[str, str]:
    """Digest what shapes the answers: prompt, schema, scenario, the model's settings (not its limits, price or use)."""
    shaping = {name: value for name, value in component.digests.items() if name != "datasets"}
    return {**shaping, "settings": settings_digest(model)}


_NOT_TOLD = {"accepts", "limits", "price", "cache", "api_key_env", "auth", "family", "judge", "retires"}


def settings_digest(model: Model) -> str:
    """Digest what a model is told, where it is reached, and the revision of a shipped provider that has a later one."""
    told = model.model_dump(mode="json", exclude=_NOT_TOLD)
    if model.provider == "google" and model.auth == "oidc":
        told["served_by"] = "vertex"  # another service than that which takes keys
    kind = PROVIDERS.get(model.provider)
    revision = {"revision": kind.revision} if kind and kind.revision > 1 else {}
    return digest(canonical_json(told | revision))


def resumed_run(folder: Path, component: Component, cases: Mapping[str, Case], models: Mapping[str, Model]) -> Run:
    """Read a run from its folder; raise RunError naming what changed since it began."""
    run = saved_run(folder, component, models)
    if changes := changes_since(run, component, cases):
        raise RunError(f"cannot resume {folder}: changed since it began: {', '.join(changes)}; start a new run")
    return run


def saved_run(folder: Path, component: Component, models: Mapping[str, Model]) -> Run:
    """Read a run from its folder, whatever changed since; raise RunError when component or model are not its own."""
    manifest = read_manifest(folder)
    if manifest.skill != component.name:
        raise RunError(f"{folder} is a run of '{manifest.skill}', not of '{component.name}'")
    model = models.get(manifest.model_id)
    if model is None:
        raise RunError(f"{folder} is a run of model '{manifest.model_id}', which is no longer in models.yaml")
    return Run(model=model, manifest=manifest, folder=folder)


def changes_since(run: Run, component: Component, cases: Mapping[str, Case]) -> list[str]:
    """Return the names of the inputs that changed since the run began."""
    now = {case_id: cases[case_id].digest for case_id in run.manifest.cases if case_id in cases}
    digests = input_digests(component, run.model)
    return run.manifest.differences(run.manifest.model_copy(update={"cases": now, "digests": digests}))


def slug(model_id: str) -> str:
    """Return a model's id as part of a folder's name; where a mark is replaced, a digest keeps similar ids apart."""
    slug = "".join(mark if mark.isalnum() or mark in "._-" else "-" for mark in model_id)
    return slug if slug == model_id else f"{slug}-{digest(model_id)[-6:]}"


def check_writable(folder: Path, remedy: str = "--results DIR and --no-leaderboard") -> None:
    """Raise StorageError before any call if answers could not be kept in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        raise StorageError(f"cannot write to {folder}: {problem.strerror}; see {remedy}") from None
