"""What an audit is asked and what it reads: the command line, typed, and every input, checked before any call.

Of a new audit, or of one that was drawn before: then it must still be what it was.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.audit.run.manifest import AUDIT, AuditManifest, read_manifest
from skill_evaluator.audit.run.materials import (
    Materials,
    Places,
    Size,
    changes_since,
    default_benchmarks,
    default_scenarios,
    draw_audit,
    read_materials,
)
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import AuditError
from skill_evaluator.library.config import Model, Settings, load_models, load_settings, select_models
from skill_evaluator.providers import Kinds, kinds_of
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.asking import refuse_amounts, refuse_unpriced, with_keys
from skill_evaluator.runner.runs import new_invocation
from skill_evaluator.text import listed, nearest

_CHANGES_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """The command line, typed. What is None or empty is as settings.yaml says, or as the audit was drawn."""

    benchmarks: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    questions: int | None = None
    replicates: int | None = None
    seed: int | None = None
    max_cost: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None
    shard: str | None = None
    resume: str | None = None
    plan: Path | None = None
    audits: Path = Path("audits")
    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")
    format: Format = "text"

    @property
    def places(self) -> Places:
        """The folders that are read."""
        return Places(components=self.components, fixtures=self.fixtures, config=self.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInputs:
    """Everything an audit reads, checked. `models`: those to be asked now."""

    manifest: AuditManifest
    materials: Materials
    models: tuple[Model, ...]
    kinds: Kinds
    settings: Settings


def new_audit(options: AuditOptions, *, keyed: bool) -> AuditInputs:
    """An audit drawn anew; with `keyed` only of models whose key is there. Raises what is wrong with any input."""
    refuse_wrong(options)
    settings = load_settings(options.config)
    known = load_models(options.config)
    kinds = kinds_of(known, str(options.config / "models.yaml"))
    chosen = select_models(known, options.models)
    if options.max_cost is not None:
        refuse_unpriced(chosen, kinds)
    materials = read_materials(
        options.places,
        options.benchmarks or tuple(settings.audit.benchmarks) or default_benchmarks(options.places),
        options.scenarios or settings.audit.scenarios or default_scenarios(options.places),
    )
    models = tuple(with_keys(chosen, kinds).values()) if keyed else chosen
    now = datetime.datetime.now(datetime.UTC)
    manifest = draw_audit(
        materials,
        models,
        {name: one.weight for name, one in settings.audit.benchmarks.items()},
        Size(
            questions=settings.audit.questions if options.questions is None else options.questions,
            replicates=options.replicates or settings.audit.replicates,
            seed=settings.seed if options.seed is None else options.seed,
        ),
        audit_id=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        commit=commit_of(options.components) if keyed else None,
    )
    return AuditInputs(manifest=manifest, materials=materials, models=models, kinds=kinds, settings=settings)


def known_audit(manifest: AuditManifest, options: AuditOptions) -> AuditInputs:
    """An audit that was drawn before, by a plan or an earlier command; raises AuditError where it is not the same."""
    refuse_wrong(options)
    _refuse_another(manifest, options)
    settings = load_settings(options.config)
    known = load_models(options.config)
    kinds = kinds_of(known, str(options.config / "models.yaml"))
    models = _models_of(manifest, options, known)
    if options.max_cost is not None:
        refuse_unpriced(models, kinds)
    materials = read_materials(options.places, [one.name for one in manifest.benchmarks], list(manifest.scenarios))
    changed = changes_since(manifest, materials, models)
    if changed:
        raise AuditError(
            f"cannot go on with the audit {manifest.id}: changed since it was drawn: "
            f"{listed(changed, _CHANGES_NAMED)}; check out what it was drawn from, or start a new one"
        )
    return AuditInputs(manifest=manifest, materials=materials, models=models, kinds=kinds, settings=settings)


def audit_folder(options: AuditOptions) -> Path:
    """The folder that `--resume` means: a path, an id, or `latest`, the newest; raises AuditError."""
    wanted = options.resume or ""
    if Path(wanted, AUDIT).is_file():
        return Path(wanted)
    known = sorted(path.parent.name for path in options.audits.glob(f"*/{AUDIT}"))
    if wanted == "latest" and known:
        return options.audits / known[-1]
    if wanted not in known:
        raise AuditError(f"no audit '{wanted}' in {options.audits} to resume {nearest(wanted, known)}")
    return options.audits / wanted


def saved_audit(folder: Path) -> AuditManifest:
    """What the audit in a folder asks; raises AuditError."""
    return read_manifest(folder / AUDIT)


def refuse_wrong(options: AuditOptions) -> None:
    """Raise for what no audit can be asked."""
    counts = {
        "--replicates": options.replicates,
        "--questions": options.questions,
        "--concurrency": options.concurrency,
    }
    refuse_amounts(counts, options.max_calls, options.max_cost)
    if options.resume is not None and (not options.resume or options.plan is not None):
        raise AuditError("--resume takes an audit's id, its folder or nothing, and does not go with --plan")


def _models_of(manifest: AuditManifest, options: AuditOptions, known: Sequence[Model]) -> tuple[Model, ...]:
    by_id = {model.id: model for model in known}
    for model_id in options.models:
        if model_id not in manifest.models:
            raise AuditError(
                f"'{model_id}' is no model of the audit {manifest.id} {nearest(model_id, manifest.models)}; "
                "another one needs a new audit"
            )
    wanted = dict.fromkeys(options.models or manifest.models)
    gone = [model_id for model_id in wanted if model_id not in by_id]
    if gone:
        raise AuditError(f"'{gone[0]}' of the audit {manifest.id} is no longer in {options.config / 'models.yaml'}")
    return tuple(by_id[model_id] for model_id in wanted)


def _refuse_another(manifest: AuditManifest, options: AuditOptions) -> None:
    """What was drawn stays as it is: a flag may repeat it and not change it."""
    for flag, asked, drawn in (
        ("--replicates", options.replicates, manifest.replicates),
        ("--questions", options.questions, manifest.questions),
        ("--seed", options.seed, manifest.seed),
        ("--benchmark", set(options.benchmarks) or None, {one.name for one in manifest.benchmarks}),
        ("--scenario", set(options.scenarios) or None, set(manifest.scenarios)),
    ):
        if asked is not None and asked != drawn:
            raise AuditError(
                f"the audit {manifest.id} was drawn with {flag} {_word(drawn)}, which {flag} {_word(asked)} cannot "
                "change; start a new one"
            )


def _word(value: object) -> str:
    return " ".join(sorted(value)) if isinstance(value, set) else "all" if value is None else str(value)
