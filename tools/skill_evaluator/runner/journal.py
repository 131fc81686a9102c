"""A run and its folder: its plan (`manifest.json`), and the outcome of each call (`replicates.jsonl`).

A run is resumed only if everything that determines its outputs is unchanged.
"""

import datetime
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from skill_evaluator import __version__
from skill_evaluator import identifiers as ids
from skill_evaluator.display import visible
from skill_evaluator.errors import LeaderboardError, RunError, StorageError
from skill_evaluator.files import (
    FrozenModel,
    LinesWriter,
    first_problem,
    json_text,
    read_json,
    read_lines,
    replace_text,
    validated,
)
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.library.prompts import DOCUMENT, UsedInputs
from skill_evaluator.providers import Kinds
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.providers.replay import AnswerLine
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.records.summaries import LATER, InFlight, Server
from skill_evaluator.runner.prices import InputSize, input_sizes, not_applicable
from skill_evaluator.runner.schedule import Call, Replicate, Shard, digest_of_outputs, schedule_calls
from skill_evaluator.text import canonical_json, digest, listed, nearest

MANIFEST = "manifest.json"
ANSWERS = "replicates.jsonl"
RECORD = "record.json"
REPORT = "report.md"
JUDGE = "judge"  # subfolder with the run of the judge
SET_DURING_RUN = ("server", "in_flight")  # manifest keys that are known after the first output
_PLAN_KEYS = ("skill_version", "cases", "replicates", "shard", "selection", "role", "transport")
_MAX_LISTED = 5
Role = Literal["baseline", "again"]
Transport = Literal["direct", "batch"]  # single calls, or batches (see batches.jsonl)


class RunPlan(FrozenModel):
    """The planned calls of a model: `replicates` calls for each case of a component or shard."""

    skill: ids.ComponentName
    skill_version: ids.VersionText
    model_id: ids.ModelId
    provider: ids.Label
    shard: ids.ShardText | None = None
    replicates: ids.ReplicateCount
    seed: int
    cases: dict[ids.CaseId, ids.Digest]
    inputs: UsedInputs = (DOCUMENT,)  # inputs that the prompt uses
    # the cases of the component that the model is not called with: the reason by case id
    not_applicable: dict[ids.CaseId, ids.Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    digests: dict[str, ids.Digest]  # prompt, schema, scenario and model settings


class Manifest(RunPlan):
    """The plan of one run, saved in the run folder."""

    run_id: ids.RunId
    created: ids.Timestamp
    selection: tuple[str, ...] = ()
    scenario: ids.Label | None = None
    beside: ids.RunId | None = None  # the run whose calls are interleaved with those of this run
    role: Role | None = None  # set if the version is recorded: the interleaved baseline, or a rerun
    prompt_commit: ids.Commit | None = None  # the commit of a recorded version
    audit: ids.RunId | None = None  # if set, case ids are `<benchmark>/<scenario>/<case>`
    judging: ids.RunId | None = None  # the judge run; if set, the cases are the judge's questions
    evaluator_version: ids.Label
    draft: bool = False  # has no leaderboard row and is never a baseline
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    server: Server | None = LATER  # `server` and `in_flight` are set during the run
    in_flight: InFlight | None = LATER

    @property
    def calls(self) -> int:
        """The number of planned calls."""
        return len(self.cases) * self.replicates

    @property
    def whole(self) -> bool:
        """Whether the run covers all cases of the component, so that its record measures the component."""
        return self.shard is None and not self.selection

    @property
    def reruns_failing(self) -> bool:
        """Whether the run is one of two interleaved runs of failed cases (`--failing`)."""
        return bool(self.selection) and self.beside is not None

    def has_same_inputs(self, manifest: "Manifest") -> bool:
        """Return whether component, model and digests are equal. Return False for drafts and runs of `--failing`."""
        has_equal_keys = all(getattr(self, key) == getattr(manifest, key) for key in ("skill", "model_id", "digests"))
        return has_equal_keys and not any(run.draft or run.reruns_failing for run in (self, manifest))

    def has_same_plan(self, manifest: "Manifest") -> bool:
        """Return whether `has_same_inputs` is true, and version, planned calls, role and transport are equal.

        Seeds may differ. Return False if only one of the runs is interleaved.
        """
        has_equal_keys = all(getattr(self, name) == getattr(manifest, name) for name in _PLAN_KEYS)
        return has_equal_keys and self.has_same_inputs(manifest) and (self.beside is None) == (manifest.beside is None)

    def is_part_of(self, manifest: "Manifest") -> bool:
        """Return whether the run of `manifest` includes all calls of this run and has the same inputs and shard.

        Return False if either run is a draft, a rerun, interleaved or in batches.
        """
        is_plain = all((run.role, run.beside, run.transport) == (None, None, "direct") for run in (self, manifest))
        has_equal_keys = (self.skill_version, self.shard) == (manifest.skill_version, manifest.shard)
        is_subset = self.replicates <= manifest.replicates and self.cases.items() <= manifest.cases.items()
        return is_plain and has_equal_keys and is_subset and self.has_same_inputs(manifest)

    def includes(self, call: Call) -> bool:
        """Return whether a call belongs to the run."""
        return call.case_id in self.cases and 0 <= call.replicate < self.replicates

    def differences(self, manifest: "Manifest") -> list[str]:
        """Return the names of the digests that differ, and `case 'ID'` for each case that differs."""
        names = [name for name in self.digests if self.digests[name] != manifest.digests.get(name)]
        case_ids = sorted({case_id for case_id, _ in self.cases.items() ^ manifest.cases.items()})
        return [*names, *(f"case '{case_id}'" for case_id in case_ids)]


def create_run(folder: Path, manifest: Manifest) -> None:
    """Write or replace the manifest of a run folder. Create the folder if necessary. Raise StorageError on failure."""
    replace_text(folder / MANIFEST, json_text(manifest.model_dump(mode="json")))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run folder. Raise RunError if it is missing or invalid."""
    path = folder / MANIFEST
    if not path.exists():
        raise RunError(f"{folder} is not a run folder: it has no {MANIFEST}")
    return validated(Manifest, read_json(path, RunError), path, RunError)


def check_same_inputs(folder: Path, planned: Manifest) -> None:
    """Raise RunError if the run in a folder has another component or model, or other inputs, than the planned run."""
    existing = read_manifest(folder) if (folder / MANIFEST).exists() else planned
    differing_keys = [name for name in ("skill", "model_id") if getattr(existing, name) != getattr(planned, name)]
    if reasons := differing_keys or planned.differences(existing):
        raise RunError(
            f"{folder} has outputs of '{existing.skill}' by '{existing.model_id}', but this run has a different "
            f"{listed(reasons)}: choose a new folder with --results"
        )


def read_component_manifest(folder: Path) -> Manifest:
    """Read the manifest of a component's run. Raise RunError if the run belongs to an audit or a judge."""
    manifest = read_manifest(folder)
    if manifest.audit or manifest.judging:
        owner = f"audit {manifest.audit} (see `audit report`)" if manifest.audit else f"judge run {manifest.judging}"
        raise RunError(f"{folder} is a run of the {owner}, not of a component; its outputs are in {ANSWERS}")
    return manifest


def find_run(run: str, components: Path) -> Path:
    """Find a run folder by path, or by run id in the results of any component. Raise RunError if there is none."""
    if Path(run).exists():
        return Path(run)  # reading it reports missing files
    folders = {path.parent.name: path.parent for path in components.glob(f"*/evals/results/*/{MANIFEST}")}
    if run in folders:
        return folders[run]
    if (components / run).is_dir():
        names = sorted(name for name, folder in folders.items() if folder.is_relative_to(components / run))
        newest_first = listed(names[: -_MAX_LISTED - 1 : -1])
        hint = f"newest first: {newest_first}" if names else "there are none on this machine"
        raise RunError(f"'{run}' is a component: name one of its runs ({hint})")
    newest = sorted(folders)[-_MAX_LISTED:]
    raise RunError(f"there is no run folder '{run}', and no run with this id in {components} {nearest(run, newest)}")


def find_runs(results_dir: Path, name: str, skill: str) -> list[tuple[Path, Manifest]]:
    """Find a component's runs by path, run id or invocation (a prefix of run ids). Return folders and manifests.

    `latest` names the newest invocation with an unfinished run. Raise RunError if no run matches.
    """
    if Path(name, MANIFEST).is_file():
        return [(Path(name), read_manifest(Path(name)))]
    folders = sorted(path.parent for path in results_dir.glob(f"*/{MANIFEST}"))
    runs = [(folder, manifest) for folder in folders if (manifest := read_manifest(folder)).skill == skill]
    if name == "latest":
        unfinished = [folder for folder, _ in runs if is_unfinished(folder)]
        if not unfinished:
            raise RunError(f"no unfinished run of '{skill}' in {results_dir} to resume; run without --resume")
        name = ids.invocation_of(unfinished[-1].name)
    matching = [run for run in runs if name in (run[0].name, ids.invocation_of(run[0].name))]
    if not matching:
        raise RunError(f"no run '{name}' of '{skill}' in {results_dir} to resume")
    return matching


def is_unfinished(folder: Path) -> bool:
    """Return whether a run folder lacks a report, or a record that is valid and final."""
    try:
        return not read_record(folder / RECORD).is_final or not (folder / REPORT).exists()
    except LeaderboardError:
        return True


def append_outcome(journal: LinesWriter, replicate: Replicate) -> None:
    """Write the outcome of one call as a line of a journal; raise StorageError if that fails."""
    line: dict[str, Any] = {"case_id": replicate.call.case_id, "replicate": replicate.call.replicate}
    if replicate.completion is not None:
        line |= asdict(replicate.completion)
        line["usage"] = {name: count for name, count in line["usage"].items() if count is not None}
        for name in ("fingerprint", "reasoning", "tool_call"):
            if not line[name]:
                del line[name]
    if replicate.error is not None:
        line["error"] = asdict(replicate.error)
    line["latency_s"] = replicate.latency_s and round(replicate.latency_s, 4)
    journal.append({**line, "attempts": replicate.attempts})


def read_journal(folder: Path, problems: list[str]) -> Iterator[Replicate]:
    """Yield all outcomes in a run folder in file order, also of repeated calls. Skip invalid lines.

    After the last line, append a message about the invalid lines to `problems`.
    """
    path = folder / ANSWERS
    if not path.exists():
        return
    messages: list[str] = []
    for number, value in read_lines(path, RunError, torn_lines=True):
        try:
            line = AnswerLine.model_validate(value)
        except ValidationError as problem:
            messages.append(f"{path}:{number} is skipped, it is not a journal line: {first_problem(problem)}")
            continue
        yield Replicate(
            call=Call(sys.intern(line.case_id), line.replicate),
            completion=line.completion,
            error=line.failure,
            latency_s=line.latency_s,
            attempts=line.attempts,
        )
    if messages:
        problems.append(messages[0] + (f" (and {len(messages) - 1} more lines)" if len(messages) > 1 else ""))


def read_outcomes(folder: Path) -> Iterator[Replicate]:
    """Yield the outcomes that `read_journal` yields, and print a warning about invalid lines."""
    problems = list[str]()
    yield from read_journal(folder, problems)
    for problem in problems:
        print(f"warning: {visible(problem)}; its call counts as not made", file=sys.stderr)


def answered_calls(folder: Path) -> set[Call]:
    """Return the calls with an output in a run folder."""
    return {replicate.call for replicate in read_outcomes(folder) if replicate.answered}


def outcomes(folder: Path) -> Mapping[Call, Replicate]:
    """Read the outcome of each call in a run folder: its first output, else its last error."""
    return {replicate.call: replicate for replicate in _first_outputs(read_outcomes(folder))}


def made_calls(manifest: Manifest, replicates: Iterable[Replicate]) -> Iterator[Replicate]:
    """Yield the outcome of each planned call that was made: its first output, else its last error.

    Outputs are read one at a time, since all together may be large.
    """
    return _first_outputs(replicate for replicate in replicates if manifest.includes(replicate.call))


def _first_outputs(replicates: Iterable[Replicate]) -> Iterator[Replicate]:
    """Yield the first output of each call, and at the end the last error of each call without an output."""
    answered, errors = set[Call](), dict[Call, Replicate]()
    for replicate in replicates:
        if replicate.call in answered:
            continue
        if replicate.answered:
            answered.add(replicate.call)
            errors.pop(replicate.call, None)
            yield replicate
        else:
            errors[replicate.call] = replicate
    yield from errors.values()


def has_other_outputs(record: Record, manifest: Manifest, answers: Mapping[Call, Replicate]) -> bool:
    """Return whether the outputs of a run, `answers`, differ from those of its record.

    Return False for an old record without the digest of its outputs.
    """
    expected = record.digests.get("answers")
    calls = schedule_calls(tuple(manifest.cases), manifest.replicates)
    digests = {call: answers[call].digest for call in calls if call in answers}
    return expected is not None and digest_of_outputs(digests) != expected


def edited_since(folder: Path, manifest: Manifest, records: Path) -> Path | None:
    """Return the path of a run's record if the outputs in `folder` were changed after the record was made.

    The record is in `folder` or `records`. Return None if there is no record, or if the outputs are unchanged.
    """
    for path in (folder / RECORD, records / f"{manifest.run_id}.json"):
        if path.exists() and has_other_outputs(read_record(path), manifest, outcomes(folder)):
            return path
    return None


def merged_outcomes(parts: Iterable[tuple[Manifest, Iterable[Replicate]]]) -> dict[Call, Replicate]:
    """Merge the parts of a run (shards or repeated jobs): each call's first output, else its last error."""
    planned = (each for manifest, replicates in parts for each in replicates if manifest.includes(each.call))
    return {replicate.call: replicate for replicate in _first_outputs(planned)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One model's run: the model, the manifest and the run folder."""

    model: Model
    manifest: Manifest
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRun(Run):
    """A run of one version of a component."""

    component: Component


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """The options of new runs: replicates per case, seed, cases (`shard`, `selection`), invocation id and transport.

    A `draft` is in no leaderboard and never a baseline.
    """

    replicates: int
    seed: int
    shard: Shard | None = None
    selection: tuple[str, ...] = ()
    invocation: str | None = None
    draft: bool = False
    transport: Transport = "direct"


def new_runs(
    component: Component, cases: Sequence[Case], models: Sequence[Model], results_dir: Path, kinds: Kinds, size: RunSize
) -> list[ComponentRun]:
    """Plan one run per model, with the cases that apply to the model, or their shard. Write no file."""
    now = datetime.datetime.now(datetime.UTC)
    invocation = size.invocation or new_invocation(now)
    sizes = input_sizes(component, cases)
    runs = []
    for model in models:
        run_id = run_id_of(invocation, component.name, model.id, size.shard)
        manifest = Manifest.view(
            plan_run(component, cases, model, kinds[model.provider], size, sizes),
            run_id=run_id,
            created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            selection=size.selection,
            scenario=component.scenario,
            evaluator_version=__version__,
            draft=size.draft,
            transport=size.transport,
        )
        folder = results_dir / run_id
        runs.append(ComponentRun(model=model, manifest=manifest, folder=folder, component=component))
    return runs


def plan_run(
    component: Component,
    cases: Sequence[Case],
    model: Model,
    kind: ProviderKind,
    size: RunSize,
    sizes: Mapping[str, InputSize],
) -> RunPlan:
    """Plan the calls of a model, with the cases that apply to it, or their shard. `sizes`: input sizes by case id."""
    excluded = not_applicable(cases, sizes, model, kind)
    applicable = [case.id for case in cases if case.id not in excluded]
    selected = set(size.shard.of(applicable) if size.shard else applicable)
    return RunPlan(
        skill=component.name,
        skill_version=component.version,
        model_id=model.id,
        provider=model.provider,
        shard=str(size.shard) if size.shard else None,
        replicates=size.replicates,
        seed=size.seed,
        cases={case.id: case.digest for case in cases if case.id in selected},
        inputs=component.prompt.inputs,
        not_applicable=excluded,
        digests=input_digests(component, model),
    )


def new_invocation(now: datetime.datetime) -> str:
    """Return a new invocation id, the prefix of run ids: the UTC time in steps of 1/4096 s, then random hex digits."""
    return f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond * 4096 // 1_000_000:03x}{os.urandom(2).hex()[:3]}"


def run_id_of(invocation: str, skill: str, model_id: str, shard: Shard | None = None, mark: str = "") -> str:
    """Return the run id of a component, a model and a shard, if any. `mark` distinguishes the runs of an invocation."""
    skill_part = skill if len(skill) <= 40 else f"{skill[:33]}-{digest(skill)[-6:]}"  # the id names a file
    mark_suffix = f"@{slug(mark)}" if mark else ""  # a slug has no @
    shard_suffix = f"-{shard.index}of{shard.count}" if shard else ""
    return "-".join(filter(None, (invocation, skill_part, slug(model_id)))) + mark_suffix + shard_suffix


def input_digests(component: Component, model: Model) -> dict[str, str]:
    """Return the digests of prompt, schema, scenario and model settings, which affect the outputs, by name."""
    digests = {name: value for name, value in component.digests.items() if name != "datasets"}
    return {**digests, "settings": settings_digest(model)}


# Versions of providers, which rise when equal settings give other outputs. Version 1 is not part of a digest.
_REVISIONS = {"local": 2}  # version 1 evaluated every prompt in one piece
_WITHOUT_EFFECT = {"accepts", "limits", "price", "cache", "api_key_env", "auth", "family", "judge", "retires"}


def settings_digest(model: Model) -> str:
    """Return the digest of the model settings that affect outputs. Include the provider's revision if it is above 1."""
    values = model.model_dump(mode="json", exclude=_WITHOUT_EFFECT)
    if model.provider == "google" and model.auth == "oidc":
        values["served_by"] = "vertex"  # another service than with API keys
    if model.provider in _REVISIONS:
        values["revision"] = _REVISIONS[model.provider]
    return digest(canonical_json(values))


def saved_run(folder: Path, component: Component, models: Mapping[str, Model]) -> ComponentRun:
    """Read a run from its folder, even if inputs changed. Raise RunError for another component or an unknown model."""
    manifest = read_manifest(folder)
    if manifest.skill != component.name:
        raise RunError(f"{folder} is a run of '{manifest.skill}', not of '{component.name}'")
    model = models.get(manifest.model_id)
    if model is None:
        raise RunError(f"{folder} is a run of model '{manifest.model_id}', which is no longer in models.yaml")
    return ComponentRun(model=model, manifest=manifest, folder=folder, component=component)


def changes_since(run: Run, component: Component, cases: Mapping[str, Case]) -> list[str]:
    """Return the names of the inputs that changed since the run began (see `Manifest.differences`)."""
    current = {case_id: cases[case_id].digest for case_id in run.manifest.cases if case_id in cases}
    digests = input_digests(component, run.model)
    return run.manifest.differences(run.manifest.model_copy(update={"cases": current, "digests": digests}))


def slug(model_id: str) -> str:
    """Convert a model id to a part of a folder name. A digest keeps the name unique if characters are replaced."""
    name = "".join(character if character.isalnum() or character in "._-" else "-" for character in model_id)
    return name if name == model_id else f"{name}-{digest(model_id)[-6:]}"


def check_writable(folder: Path, remedy: str = "--results DIR or --no-leaderboard") -> None:
    """Create a folder if necessary. If it is not writable, raise StorageError; the message suggests `remedy`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        raise StorageError(f"cannot write to {folder}: {problem.strerror}; use {remedy}") from None
