"""A run and its folder: the plan (`manifest.json`), and the outcome of each call (`replicates.jsonl`).

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
JUDGE = "judge"  # subfolder of a run with the outputs of its judge
KNOWN_LATER = ("server", "in_flight")  # fields of a manifest that are set after the first output
_PLANNED = ("skill_version", "cases", "replicates", "shard", "selection", "role", "transport")
_MAX_RUNS_NAMED = 5
_MAX_BYTES_IN_MEMORY = 1_000_000  # size of a journal file; parsed it takes about five times as much
Role = Literal["baseline", "again"]
Transport = Literal["direct", "batch"]  # single calls, or batches (see batches.jsonl)


class Manifest(StrictModel):
    """The plan of one run: `replicates` calls for every case in `cases`. `digests`: of the inputs of its outputs.

    `inputs`: the inputs that its prompt uses. `not_applicable`: the reasons for the component's skipped cases.
    `audit`: the audit that it belongs to; its cases are then `<benchmark>/<scenario>/<case>`. `judging`: the judge run
    that it belongs to; its cases are then questions to a judge. `beside`: the run that it is interleaved with. `role`:
    `baseline` for an interleaved baseline, `again` for a repeated recorded version, with its `prompt_commit`. A `draft`
    is in no leaderboard and never a baseline. `server` and `in_flight` are set during the run.
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
        """The number of planned calls."""
        return len(self.cases) * self.replicates

    @property
    def whole(self) -> bool:
        """Whether the run covers all cases of the component."""
        return self.shard is None and not self.selection

    @property
    def asked_again(self) -> bool:
        """Whether failed cases are run again, with both versions interleaved."""
        return bool(self.selection) and self.beside is not None

    def asks_like(self, other: "Manifest") -> bool:
        """Return whether everything that determines the outputs is equal; false for drafts and repeated cases."""
        is_same = all(getattr(self, name) == getattr(other, name) for name in ("skill", "model_id", "digests"))
        return is_same and not any(run.draft or run.asked_again for run in (self, other))

    def is_planned_as(self, other: "Manifest") -> bool:
        """Return whether both plan the same calls with the same settings; seeds may differ."""
        is_same = all(getattr(self, name) == getattr(other, name) for name in _PLANNED)
        return is_same and self.asks_like(other) and (self.beside is None) == (other.beside is None)

    def is_part_of(self, other: "Manifest") -> bool:
        """Return whether another run of the same version includes all calls of this run. Both are direct and alone."""
        are_alone = all((run.role, run.beside, run.transport) == (None, None, "direct") for run in (self, other))
        is_same = (self.skill_version, self.shard) == (other.skill_version, other.shard) and self.asks_like(other)
        is_subset = self.replicates <= other.replicates and self.cases.items() <= other.cases.items()
        return are_alone and is_same and is_subset

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
    """Create a run folder with its manifest. Raise StorageError if it cannot be written."""
    replace_text(folder / MANIFEST, json_text(manifest.model_dump(mode="json")))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run folder; raise RunError if it is unreadable."""
    path = folder / MANIFEST
    if not path.exists():
        raise RunError(f"{folder} is not a run folder: it has no {MANIFEST}")
    return validated(Manifest, read_json(path, RunError), path, RunError)


def refuse_other(folder: Path, planned: Manifest) -> None:
    """Raise RunError if a folder has outputs of another component or model, or for other inputs."""
    existing = read_manifest(folder) if (folder / MANIFEST).exists() else planned
    others = [name for name in ("skill", "model_id") if getattr(existing, name) != getattr(planned, name)]
    if differences := others or planned.differences(existing):
        raise RunError(
            f"{folder} holds answers of '{existing.skill}' by '{existing.model_id}', but this run has a different "
            f"{listed(differences)}: choose a new folder with --results"
        )


def read_component_manifest(folder: Path) -> Manifest:
    """Read the manifest of a component's run; raise RunError also for the run of an audit or a judging."""
    manifest = read_manifest(folder)
    owner = f"audit {manifest.audit}" if manifest.audit else f"judging {manifest.judging}" if manifest.judging else None
    if owner is not None:
        raise RunError(f"{folder} is a part of the {owner}, not a run of a component; its outputs are in {ANSWERS}")
    return manifest


def find_run(run: str, components: Path) -> Path:
    """Find a run folder by its path, or by its id in the results of any component; raise RunError."""
    if Path(run).exists():
        return Path(run)  # validated when it is read
    folders = {path.parent.name: path.parent for path in components.glob(f"*/evals/results/*/{MANIFEST}")}
    if run in folders:
        return folders[run]
    if (components / run).is_dir():
        run_ids = sorted(name for name, folder in folders.items() if folder.is_relative_to(components / run))
        names = listed(run_ids[-_MAX_RUNS_NAMED:]) if run_ids else "there are none on this machine"
        raise RunError(f"'{run}' is a component: name one of its runs ({names})")
    newest = sorted(folders)[-_MAX_RUNS_NAMED:]
    raise RunError(f"no run folder '{run}', and no run of that id below {components} {nearest(run, newest)}")


def answers_in(results_dir: Path) -> dict[str, str]:
    """Return the ids of the runs with outputs in a component's results."""
    return {path.parent.name: path.parent.name for path in results_dir.glob(f"*/{ANSWERS}")}


def find_runs(results_dir: Path, reference: str, skill: str) -> list[tuple[Path, Manifest]]:
    """Find a component's runs by `--run ID`: a path, a run id, or the common prefix of an invocation's run ids.

    `latest` selects the newest invocation with an unfinished run. Raise RunError if there is no such run.
    """
    if Path(reference, MANIFEST).is_file():
        return [(Path(reference), read_manifest(Path(reference)))]
    folders = sorted(path.parent for path in results_dir.glob(f"*/{MANIFEST}"))
    runs = [(folder, manifest) for folder in folders if (manifest := read_manifest(folder)).skill == skill]
    if reference == "latest":
        unfinished = [folder for folder, _ in runs if is_unfinished(folder)]
        if not unfinished:
            raise RunError(f"no unfinished run of '{skill}' in {results_dir} to resume")
        reference = invocation_of(unfinished[-1].name)
    matches = [run for run in runs if reference in (run[0].name, invocation_of(run[0].name))]
    if not matches:
        raise RunError(f"no run '{reference}' of '{skill}' in {results_dir} to resume")
    return matches


def is_unfinished(folder: Path) -> bool:
    """Return whether the record or report is missing (the run was killed), or the record is not final."""
    try:
        return not read_record(folder / RECORD).is_final or not (folder / REPORT).exists()
    except LeaderboardError:
        return True


class Journal:
    """The journal of one run, to which outcomes are appended."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ANSWERS
        self._lines = LinesWriter(self.path)

    def append(self, replicate: Replicate) -> None:
        """Append one call's outcome. Raise StorageError if it cannot be written."""
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
        """Sync the journal to disk. Raise StorageError if that fails."""
        self._lines.close()


def read_answers(folder: Path, on_problem: Callable[[str], None] | None = None) -> Iterator[Replicate]:
    """Yield every outcome in a run folder in the order written; a repeated call occurs again.

    Unreadable lines are skipped, so their calls count as not made, but they stay in the file. At the end `on_problem`
    receives the place of the first one and their number; without `on_problem` a warning is printed.
    """
    return (replicate for _, replicate in _placed_answers(folder / ANSWERS, on_problem))


def _placed_answers(path: Path, on_problem: Callable[[str], None] | None) -> Iterator[tuple[int, Replicate]]:
    if not path.exists():
        return
    problems: list[str] = []
    for number, position, value in read_placed_lines(path, RunError, torn_lines=True):
        try:
            yield position, _replicate_of(AnswerLine.model_validate(value))
        except ValidationError as problem:
            problems.append(f"{path}:{number} is skipped, it is not a journal line: {first_problem(problem)}")
    if not problems:
        return
    sentence = problems[0] + (f" (and {len(problems) - 1} more lines)" if len(problems) > 1 else "")
    if on_problem is None:
        print(f"warning: {visible(sentence)}; its call counts as not made", file=sys.stderr)
    else:
        on_problem(sentence)


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
        attempts = ((each.call, (each.answered, position)) for position, each in _placed_answers(path, None))
        self._path = path
        first = first_answers(attempts, lambda attempt: attempt[0])
        self._positions = {call: position for call, (_, position) in first.items()}

    def __getitem__(self, call: Call) -> Replicate:
        return _replicate_of(line_at(self._path, self._positions[call]))

    def __contains__(self, call: object) -> bool:
        return call in self._positions

    def __iter__(self) -> Iterator[Call]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


def outcomes(folder: Path) -> Mapping[Call, Replicate]:
    """Return the outcome of each call in a run folder: its first output, else its last error."""
    path = folder / ANSWERS
    if path.is_file() and path.stat().st_size > _MAX_BYTES_IN_MEMORY:
        return _Outcomes(path)
    return first_answers(((each.call, each) for each in read_answers(folder)), lambda each: each.answered)


def has_other_answers(
    record: Record, folder: Path, manifest: Manifest, answers: Mapping[Call, Replicate] | None = None
) -> bool:
    """Return whether a run folder has other outputs than its record was made from; raise RunError.

    `answers` are the folder's outputs if they are already read. Return False for an old record without their digest.
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
    """The run of one model in an invocation."""

    model: Model
    manifest: Manifest
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """The size of new runs: replicates per case, the cases (by `shard` and `selection`), and the transport."""

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
    """Plan a run for every model, without writing to disk. Run ids begin with the invocation, by default a new one.

    A model's run has its applicable cases, or its shard of them.
    """
    created, shard = datetime.datetime.now(datetime.UTC), size.shard
    invocation = size.invocation or new_invocation(created)
    sizes = input_sizes(component, cases)
    runs = []
    for model in models:
        left_out = not_applicable(cases, sizes, model, kinds[model.provider])
        applicable = [case.id for case in cases if case.id not in left_out]
        own_cases = set(shard.of(applicable) if shard else applicable)
        run_id = run_id_of(invocation, component.name, model.id, shard)
        manifest = Manifest(
            run_id=run_id,
            created=f"{created:%Y-%m-%dT%H:%M:%SZ}",
            skill=component.name,
            skill_version=component.version,
            model_id=model.id,
            provider=model.provider,
            replicates=size.replicates,
            seed=size.seed,
            shard=str(shard) if shard else None,
            selection=size.selection,
            scenario=component.scenario,
            cases={case.id: case.digest for case in cases if case.id in own_cases},
            inputs=component.prompt.inputs,
            not_applicable=left_out,
            digests=input_digests(component, model),
            evaluator_version=__version__,
            transport=size.transport,
        )
        runs.append(Run(model=model, manifest=manifest, folder=results_dir / run_id))
    return runs


def new_invocation(time: datetime.datetime) -> str:
    """Return a new invocation id, which begins its run ids: the time in seconds, then six hexadecimal digits.

    The first three are the fraction of the second in 1/4096, the others are random, so runs started by one machine in
    the same second still sort by time.
    """
    return f"{time:%Y%m%dT%H%M%SZ}-{time.microsecond * 4096 // 1_000_000:03x}{os.urandom(2).hex()[:3]}"


def run_id_of(invocation: str, skill: str, model_id: str, shard: Shard | None = None, mark: str = "") -> str:
    """Return the id of a model's run of a component or of a shard; `mark` distinguishes several runs."""
    of_skill = skill if len(skill) <= 40 else f"{skill[:33]}-{digest(skill)[-6:]}"  # bounds the length of file names
    mark_suffix = f"@{slug(mark)}" if mark else ""  # slugs never contain @
    shard_suffix = f"-{shard.index}of{shard.count}" if shard else ""
    return "-".join(filter(None, (invocation, of_skill, slug(model_id)))) + mark_suffix + shard_suffix


def interleaved_run(run: Run, component: Component, mark: str, role: Role, prompt_commit: str | None) -> Run:
    """Return a run of another prompt, or of a prompt in a scenario, with the same model, cases and invocation."""
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
    """Return the digests of the inputs of an output: prompt, schema, scenario and the model's settings."""
    shaping = {name: value for name, value in component.digests.items() if name != "datasets"}
    return {**shaping, "settings": settings_digest(model)}


_NOT_SENT = {"accepts", "limits", "price", "cache", "api_key_env", "auth", "family", "judge", "retires"}


def settings_digest(model: Model) -> str:
    """Return the digest of a model's settings that affect outputs, with the revision of its provider if above 1."""
    settings = model.model_dump(mode="json", exclude=_NOT_SENT)
    if model.provider == "google" and model.auth == "oidc":
        settings["served_by"] = "vertex"  # not the service that accepts keys
    kind = PROVIDERS.get(model.provider)
    revision = {"revision": kind.revision} if kind and kind.revision > 1 else {}
    return digest(canonical_json(settings | revision))


def resumed_run(folder: Path, component: Component, cases: Mapping[str, Case], models: Mapping[str, Model]) -> Run:
    """Read a run from its folder. Raise RunError with the changed inputs if any changed since it started."""
    run = saved_run(folder, component, models)
    if changes := changes_since(run, component, cases):
        raise RunError(f"cannot resume {folder}: changed since it began: {', '.join(changes)}; start a new run")
    return run


def saved_run(folder: Path, component: Component, models: Mapping[str, Model]) -> Run:
    """Read a run from its folder without checking inputs. Raise RunError for another component or unknown model."""
    manifest = read_manifest(folder)
    if manifest.skill != component.name:
        raise RunError(f"{folder} is a run of '{manifest.skill}', not of '{component.name}'")
    model = models.get(manifest.model_id)
    if model is None:
        raise RunError(f"{folder} is a run of model '{manifest.model_id}', which is no longer in models.yaml")
    return Run(model=model, manifest=manifest, folder=folder)


def changes_since(run: Run, component: Component, cases: Mapping[str, Case]) -> list[str]:
    """Return the names of the inputs that changed since the run started."""
    current_digests = {case_id: cases[case_id].digest for case_id in run.manifest.cases if case_id in cases}
    digests = input_digests(component, run.model)
    return run.manifest.differences(run.manifest.model_copy(update={"cases": current_digests, "digests": digests}))


def slug(model_id: str) -> str:
    """Return a model's id as part of a folder's name. If a character is replaced, a digest keeps it unique."""
    slug = "".join(mark if mark.isalnum() or mark in "._-" else "-" for mark in model_id)
    return slug if slug == model_id else f"{slug}-{digest(model_id)[-6:]}"


def check_writable(folder: Path, remedy: str = "--results DIR and --no-leaderboard") -> None:
    """Raise StorageError if outputs cannot be written to `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        raise StorageError(f"cannot write to {folder}: {problem.strerror}; see {remedy}") from None
