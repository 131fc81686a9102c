"""The options that every audit is drawn by, and everything it reads, checked before any call.

An audit that was drawn before must still be what it was.
"""

import datetime
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from skill_evaluator.audit.report.calls import AskedModel
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
from skill_evaluator.audit.run.plan import AuditManifest
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    MaxCost,
    OnlyModels,
    option,
    options,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError
from skill_evaluator.library.config import Model, Settings, select_models
from skill_evaluator.library.scenarios import named_scenarios
from skill_evaluator.providers import Configuration, read_configuration, refuse_unbatched
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.journal import Transport
from skill_evaluator.runner.prices import InputSize, estimate, refuse_unpriced
from skill_evaluator.runner.runs import new_invocation
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import listed, nearest

_CHANGES_NAMED = 3


@options
class AuditOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `audit run` and `audit plan`; None and empty: as settings.yaml says, or as the audit was drawn."""

    benchmarks: tuple[str, ...] = option(
        "A component to ask; repeatable; default: audit.benchmarks (settings.yaml), else all with output: choice.",
        (),
        "--benchmark",
        metavar="NAME",
    )
    scenarios: tuple[str, ...] = option(
        "A scenario of .evaluator/scenarios, or a folder there; repeatable; default: all outside of folders.",
        (),
        "--scenario",
        metavar="NAME",
    )
    models: OnlyModels = ()
    questions: int | None = option("Draw N cases of each benchmark, by the seed; default: all.", metavar="N")
    replicates: int | None = option("Answers per question and scenario; default 2.", None, "-n")
    seed: int | None = option("Seed of the draw and of the replicates' seeds; default 0.")
    max_cost: MaxCost = None

    def places(self, settings: Settings) -> Places:
        """Return the folders that are read, with the limits of the settings."""
        return Places(components=self.components, fixtures=self.fixtures, config=self.config, limits=settings.limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInputs(Configuration):
    """Everything an audit reads, checked. `models`: those to be asked now."""

    manifest: AuditManifest
    materials: Materials


def new_audit(options: AuditOptions, *, keyed: bool, transport: Transport = "direct") -> AuditInputs:
    """Draw a new audit, with `keyed` only of models whose key is there; raise for what is wrong with any input."""
    configuration = read_configuration(options.config)
    settings, kinds = configuration.settings, configuration.kinds
    models = select_models(configuration.models, options.models)
    if options.max_cost is not None:
        refuse_unpriced(models, kinds)
    places = options.places(settings)
    benchmarks = options.benchmarks or tuple(settings.audit.benchmarks)
    if not benchmarks:
        benchmarks, problems = default_benchmarks(places)
        for problem in problems:
            print(f"warning: left out of the audit: {visible(problem)}", file=sys.stderr)
    materials = read_materials(
        places,
        benchmarks,
        named_scenarios(options.config, options.scenarios or settings.audit.scenarios) or default_scenarios(places),
    )
    if keyed:
        models = tuple(with_keys(models, configuration).values())
    if transport == "batch":
        refuse_unbatched(models)
    now = datetime.datetime.now(datetime.UTC)
    manifest = draw_audit(
        materials,
        models,
        kinds,
        {name: benchmark.weight for name, benchmark in settings.audit.benchmarks.items()},
        Size(
            questions=settings.audit.questions if options.questions is None else options.questions,
            replicates=options.replicates or settings.audit.replicates,
            seed=settings.seed if options.seed is None else options.seed,
        ),
        audit_id=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        commit=commit_of(options.components) if keyed else None,
        transport=transport,
    )
    return AuditInputs(
        manifest=manifest,
        materials=materials,
        models=models,
        kinds=kinds,
        keys=configuration.keys,
        settings=settings,
    )


def drawn_audit(
    manifest: AuditManifest, options: AuditOptions, configuration: Configuration | None = None
) -> AuditInputs:
    """Read what an audit was drawn from, by a plan or an earlier command; raise AuditError where it has changed."""
    _refuse_other_draw(manifest, options)
    configuration = configuration or read_configuration(options.config)
    by_id = {model.id: model for model in configuration.models}
    for model_id in options.models:
        if model_id not in manifest.models:
            raise AuditError(
                f"'{model_id}' is no model of the audit {manifest.id} {nearest(model_id, manifest.models)}; "
                "another one needs a new audit"
            )
    wanted = dict.fromkeys(options.models or manifest.models)
    for model_id in wanted:
        if model_id not in by_id:
            raise AuditError(
                f"'{model_id}' of the audit {manifest.id} is no longer in {options.config / 'models.yaml'}"
            )
    models = tuple(by_id[model_id] for model_id in wanted)
    if options.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    benchmarks = [benchmark.name for benchmark in manifest.benchmarks]
    materials = read_materials(options.places(configuration.settings), benchmarks, list(manifest.scenarios))
    changed = changes_since(manifest, materials, models)
    if changed:
        raise AuditError(
            f"cannot go on with the audit {manifest.id}: changed since it was drawn: "
            f"{listed(changed, _CHANGES_NAMED)}; check out what it was drawn from, or start a new one"
        )
    return AuditInputs(
        manifest=manifest,
        materials=materials,
        models=models,
        kinds=configuration.kinds,
        keys=configuration.keys,
        settings=configuration.settings,
    )


def _refuse_other_draw(manifest: AuditManifest, options: AuditOptions) -> None:
    """Raise AuditError for a flag that would change what was drawn; it may repeat it."""
    benchmarks = {benchmark.name for benchmark in manifest.benchmarks}
    for flag, given, drawn in (
        ("--replicates", options.replicates, manifest.replicates),
        ("--questions", options.questions, manifest.questions),
        ("--seed", options.seed, manifest.seed),
        ("--benchmark", set(options.benchmarks) or None, benchmarks),
        ("--scenario", set(named_scenarios(options.config, options.scenarios)) or None, set(manifest.scenarios)),
    ):
        if given is not None and given != drawn:
            raise AuditError(
                f"the audit {manifest.id} was drawn with {flag} {_wording(drawn)}, which {flag} {_wording(given)} "
                "cannot change; start a new one"
            )


def _wording(value: object) -> str:
    return " ".join(sorted(value)) if isinstance(value, set) else "all" if value is None else str(value)


def asked_models(inputs: AuditInputs, sizes: Mapping[str, InputSize], note: Callable[[Model], str]) -> list[AskedModel]:
    """Return what cells of these sizes take of each model."""
    return [
        AskedModel(
            model_id=model.id,
            provider=model.provider,
            note=note(model),
            **asdict(
                estimate(
                    sizes,
                    model,
                    inputs.kinds[model.provider],
                    inputs.manifest.replicates,
                    batch=inputs.manifest.transport == "batch",
                )
            ),
        )
        for model in inputs.models
    ]
