"""A run: one model's calls for one component, new or resumed, with its folder on disk."""

import datetime
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.errors import RunError, StorageError
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.providers import PROVIDERS, Kinds
from skill_evaluator.runner.journal import Manifest, Role, Transport, read_manifest
from skill_evaluator.runner.prices import input_sizes, not_applicable
from skill_evaluator.runner.schedule import Shard
from skill_evaluator.text import canonical_json, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One model's part of an invocation."""

    model: Model
    manifest: Manifest
    folder: Path


def new_runs(
    component: Component,
    cases: Sequence[Case],
    models: Sequence[Model],
    results_dir: Path,
    kinds: Kinds,
    *,
    replicates: int,
    seed: int,
    shard: Shard | None = None,
    selection: tuple[str, ...] = (),
    invocation: str | None = None,
    transport: Transport = "direct",
) -> list[Run]:
    """Return a run for every model, not yet on disk; their ids begin with the invocation (by default a new one).

    A model is asked the cases that are applicable to it, or its shard of these.
    """
    now = datetime.datetime.now(datetime.UTC)
    invocation = invocation or new_invocation(now)
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
            replicates=replicates,
            seed=seed,
            shard=str(shard) if shard else None,
            selection=selection,
            scenario=component.scenario,
            cases={case.id: case.digest for case in cases if case.id in mine},
            inputs=component.prompt.inputs,
            not_applicable=left_out,
            digests=input_digests(component, model),
            evaluator_version=__version__,
            transport=transport,
        )
        runs.append(Run(model=model, manifest=manifest, folder=results_dir / run_id))
    return runs


def new_invocation(now: datetime.datetime) -> str:
    """Return a new beginning for the run ids of one invocation: the second, then six hexadecimal digits.

    The first three are the part of the second that has passed, in 4,096ths, and the others are random: runs that one
    machine begins in the same second still sort by time.
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
    """Name what shaped the answers and has changed since the run began."""
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
