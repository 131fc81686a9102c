"""An audit as it is drawn: benchmarks (components) with their labelled cases, scenarios and models, read and checked.

The questions of a benchmark are drawn by the seed alone, so that every model and scenario meets the same ones. An audit
that was drawn before must still be what it was. An audit is sized and planned here, without a call.
"""

import datetime
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

from skill_evaluator import __version__
from skill_evaluator.audit.request import AuditPlaces, AuditPlanRequest, AuditRequest, AuditRunRequest
from skill_evaluator.audit.run.plan import AuditedBenchmark, AuditManifest, AuditPlan, audit_jobs, parts_of
from skill_evaluator.ci.matrix import capped, sharing
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import json_text, read_text, replace_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.library.prompts import parse_prompt
from skill_evaluator.library.scenarios import BARE, Scenario, load_scenario, named_scenarios
from skill_evaluator.providers import Configuration, Kinds, key_note, read_configuration, refuse_unbatched
from skill_evaluator.providers.base import Request
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.journal import Transport
from skill_evaluator.runner.prices import (
    COST_OF_BATCHES,
    Estimate,
    InputSize,
    estimate,
    input_sizes,
    not_applicable,
    refuse_unpriced,
    sum_of,
)
from skill_evaluator.runner.runs import Run, new_invocation, settings_digest
from skill_evaluator.runner.schedule import Call, Shard, build_request, refuse_amounts
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import counted, listed, nearest

_BENCHMARK_OUTPUT = "choice"
_CHANGES_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A benchmark with its cases that have a ground truth, by id; `unlabelled`: how many have none."""

    component: Component
    cases: Mapping[str, Case]
    unlabelled: int


@dataclass(frozen=True, kw_only=True)  # no slots: each prompt is put into each scenario once
class DrawnAudit(Configuration):
    """An audit and everything that it asks, read and checked. `models`: those to be asked now."""

    manifest: AuditManifest
    benchmarks: Mapping[str, Material]
    scenarios: Mapping[str, Scenario]

    @cached_property
    def _under(self) -> dict[tuple[str, str], Component]:
        return {
            (name, scenario): template.around(material.component)
            for name, material in self.benchmarks.items()
            for scenario, template in self.scenarios.items()
        }

    def request(self, run: Run, call: Call) -> Request:
        """Build the request of a call; its seed derives from the cell, so that no two cells of a case share one."""
        component, case = self._prompt_and_case(call.case_id)
        most, seed = run.model.params.max_output_tokens, run.manifest.seed
        return build_request(component, case, replicate=call.replicate, seed=seed, max_output_tokens=most)

    def sizes(self, shard: Shard | None = None) -> dict[str, InputSize]:
        """Return the size of each cell's request, by cell."""
        sizes: dict[str, InputSize] = {}
        for cell in self.manifest.cells(shard):
            component, case = self._prompt_and_case(cell)
            sizes |= input_sizes(component, [case])
        return sizes

    def _prompt_and_case(self, cell: str) -> tuple[Component, Case]:
        benchmark, scenario, name = parts_of(cell)
        return self._under[benchmark, scenario], replace(self.benchmarks[benchmark].cases[name], id=cell)


def read_material(places: AuditPlaces, name: str) -> Material:
    """Read one benchmark; raise ComponentError, FixtureError or, where no case could be scored, AuditError."""
    component = load_component(places.components, name, places.limits, places.fixtures)
    cases = load_cases(component, places.fixtures)
    labelled = {case.id: case for case in cases if case.labelled}
    if not labelled:
        raise AuditError(f"no case of the benchmark '{name}' has a ground truth, so that no answer could be scored")
    return Material(component=component, cases=labelled, unlabelled=len(cases) - len(labelled))


def new_audit(
    request: AuditRequest, *, keyed: bool, commit: str | None = None, transport: Transport = "direct"
) -> DrawnAudit:
    """Draw a new audit, with `keyed` only of models whose key is there; raise for what is wrong with any input."""
    configuration = read_configuration(request.config)
    settings, kinds = configuration.settings, configuration.kinds
    models = select_models(configuration.models, request.models)
    if request.max_cost is not None:
        refuse_unpriced(models, kinds)
    names = request.benchmarks or tuple(settings.audit.benchmarks) or _default_benchmarks(request)
    benchmarks = {name: read_material(request, name) for name in dict.fromkeys(names)}
    named = named_scenarios(request.config, request.scenarios or settings.audit.scenarios)
    scenarios = _read_scenarios(request, named or default_scenarios(request))
    if keyed:
        models = tuple(with_keys(models, configuration).values())
    if transport == "batch":
        refuse_unbatched(models)
    weights = {name: benchmark.weight for name, benchmark in settings.audit.benchmarks.items()}
    questions = settings.audit.questions if request.questions is None else request.questions
    seed = settings.seed if request.seed is None else request.seed
    now = datetime.datetime.now(datetime.UTC)
    manifest = AuditManifest(
        id=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        commit=commit,
        seed=seed,
        replicates=request.replicates or settings.audit.replicates,
        questions=questions,
        models={model.id: settings_digest(model) for model in models},
        scenarios={name: scenario.digest for name, scenario in scenarios.items()},
        benchmarks=[
            _draw_benchmark(material, weights.get(name, 1.0), questions, seed, _left_out(material, models, kinds))
            for name, material in benchmarks.items()
        ],
        transport=transport,
        max_cost_usd=request.max_cost,
        evaluator_version=__version__,
    )
    return DrawnAudit(
        settings=settings,
        models=models,
        kinds=kinds,
        keys=configuration.keys,
        manifest=manifest,
        benchmarks=benchmarks,
        scenarios=scenarios,
    )


def drawn_audit(
    manifest: AuditManifest, request: AuditRequest, configuration: Configuration | None = None
) -> DrawnAudit:
    """Read what an audit was drawn from, by a plan or an earlier command; raise AuditError where it has changed."""
    _refuse_other_draw(manifest, request)
    configuration = configuration or read_configuration(request.config)
    by_id = {model.id: model for model in configuration.models}
    for model_id in request.models:
        if model_id not in manifest.models:
            raise AuditError(
                f"'{model_id}' is no model of the audit {manifest.id} {nearest(model_id, manifest.models)}; "
                "start a new audit to add a model"
            )
    wanted = dict.fromkeys(request.models or manifest.models)
    for model_id in wanted:
        if model_id not in by_id:
            raise AuditError(
                f"'{model_id}' of the audit {manifest.id} is no longer in {request.config / 'models.yaml'}"
            )
    models = tuple(by_id[model_id] for model_id in wanted)
    if request.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    drawn = DrawnAudit(
        settings=configuration.settings,
        models=models,
        kinds=configuration.kinds,
        keys=configuration.keys,
        manifest=manifest,
        benchmarks={benchmark.name: read_material(request, benchmark.name) for benchmark in manifest.benchmarks},
        scenarios=_read_scenarios(request, manifest.scenarios),
    )
    if changed := _changes_in(drawn):
        raise AuditError(
            f"cannot go on with the audit {manifest.id}: changed since it was drawn: "
            f"{listed(changed, _CHANGES_NAMED)}; check out the commit it was drawn from, or start a new audit"
        )
    return drawn


def _default_benchmarks(places: AuditPlaces) -> tuple[str, ...]:
    """Return all components whose answer is a choice among options; warn of those that cannot be read."""
    names: tuple[str, ...] = ()
    for path in sorted(places.components.glob("*/prompt.md")):
        try:
            text = read_text(path, ComponentError, places.limits.size_of("prompt_bytes"))
            front, _ = parse_prompt(text, path, depth=places.limits.yaml_depth)
        except ComponentError as problem:
            print(f"warning: left out of the audit: {visible(str(problem))}", file=sys.stderr)
            continue
        if front.output == _BENCHMARK_OUTPUT:
            names += (path.parent.name,)
    if not names:
        raise AuditError(
            f"no component in {places.components} has output: {_BENCHMARK_OUTPUT}; say what to audit on with "
            f"--benchmark NAME, or in {places.config / 'settings.yaml'}: audit: {{benchmarks: [NAME, NAME]}}"
        )
    return names


def default_scenarios(places: AuditPlaces) -> tuple[str, ...]:
    """Return all scenarios by name, the bare prompt first; raise AuditError without any."""
    names = sorted(path.stem for path in (places.config / "scenarios").glob("*.md"))
    if not names:
        raise AuditError(f"{places.config / 'scenarios'} holds no scenario; an audit compares two or more")
    return tuple(sorted(names, key=lambda name: name != BARE))


def _read_scenarios(places: AuditPlaces, names: Iterable[str]) -> dict[str, Scenario]:
    return {name: load_scenario(places.config, name, places.limits) for name in names}


def draw_questions(names: Sequence[str], questions: int | None, seed: int, benchmark: str) -> list[str]:
    """Draw questions of a benchmark by the seed and the benchmark's name alone; sorted.

    >>> draw_questions(["c", "a", "b"], 2, 7, "geography") == draw_questions(["a", "b", "c"], 2, 7, "geography")
    True
    """
    ordered = sorted(names)
    if questions is None or questions >= len(ordered):
        return ordered
    return sorted(random.Random(f"{seed}/{benchmark}").sample(ordered, questions))  # noqa: S311 (no secret)


def _left_out(material: Material, models: Sequence[Model], kinds: Kinds) -> dict[str, str]:
    """Return the cases that some model cannot take, and why; raise AuditError where no other is left."""
    cases = list(material.cases.values())
    sizes = input_sizes(material.component, cases)
    reasons = {
        case_id: f"{model.id}: {why}"
        for model in models
        for case_id, why in not_applicable(cases, sizes, model, kinds[model.provider]).items()
    }
    if len(reasons) == len(cases):
        raise AuditError(
            f"no case of the benchmark '{material.component.name}' is applicable to every model "
            f"({next(iter(reasons.values()))})"
        )
    return reasons


def _draw_benchmark(
    material: Material, weight: float, questions: int | None, seed: int, left_out: dict[str, str]
) -> AuditedBenchmark:
    component, cases = material.component, material.cases
    applicable = [case_id for case_id in cases if case_id not in left_out]
    chosen = draw_questions(applicable, questions, seed, component.name)
    return AuditedBenchmark(
        name=component.name,
        version=component.version,
        metric=component.primary_metric,
        weight=weight,
        of=len(applicable),
        unlabelled=material.unlabelled,
        not_applicable=left_out,
        cases={case_id: cases[case_id].digest for case_id in chosen},
        digests=dict(component.digests),
    )


def _changes_in(drawn: DrawnAudit) -> list[str]:
    """List what shapes the answers and has changed since the audit was drawn."""
    manifest = drawn.manifest
    changed = [f"scenario '{name}'" for name, was in manifest.scenarios.items() if drawn.scenarios[name].digest != was]
    for benchmark in manifest.benchmarks:
        material = drawn.benchmarks[benchmark.name]
        digests = material.component.digests
        changed += [
            f"{part} of '{benchmark.name}'" for part, was in benchmark.shaping.items() if digests.get(part) != was
        ]
        changed += changed_cases(benchmark, material)
    settings = {model.id: settings_digest(model) for model in drawn.models}
    return changed + [f"the settings of '{name}'" for name, now in settings.items() if now != manifest.models.get(name)]


def changed_cases(benchmark: AuditedBenchmark, material: Material) -> list[str]:
    """List the cases whose document or truth changed or vanished since they were drawn."""
    digests = {name: case.digest for name, case in material.cases.items()}
    changed = (name for name, drawn in benchmark.cases.items() if digests.get(name) != drawn)
    return [f"case '{name}' of '{benchmark.name}'" for name in changed]


def _refuse_other_draw(manifest: AuditManifest, request: AuditRequest) -> None:
    """Raise AuditError for a flag that would change what was drawn; it may repeat it."""
    benchmarks = {benchmark.name for benchmark in manifest.benchmarks}
    for flag, wanted, drawn in (
        ("--replicates", request.replicates, manifest.replicates),
        ("--questions", request.questions, manifest.questions),
        ("--seed", request.seed, manifest.seed),
        ("--benchmark", set(request.benchmarks) or None, benchmarks),
        ("--scenario", set(named_scenarios(request.config, request.scenarios)) or None, set(manifest.scenarios)),
    ):
        if wanted is not None and wanted != drawn:
            raise AuditError(
                f"the audit {manifest.id} was drawn with {flag} {_wording(drawn)}, which {flag} {_wording(wanted)} "
                "cannot change; start a new one"
            )


def _wording(value: object) -> str:
    return " ".join(sorted(value)) if isinstance(value, set) else "all" if value is None else str(value)


def refuse_wrong(request: AuditRunRequest) -> None:
    """Raise ConfigError, RunError or AuditError for what no audit can be asked."""
    counts = {"--replicates": request.replicates, "--questions": request.questions}
    refuse_amounts({**counts, "--concurrency": request.concurrency}, request.max_calls, request.max_cost)
    if request.resume is not None and (not request.resume or request.plan is not None):
        raise AuditError("--resume takes an audit's id, its folder or nothing, and cannot be combined with --plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel(Estimate):
    """The calls, tokens and cost that an audit takes of one model, with a note on it."""

    model_id: str
    provider: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSize:
    """An audit with what it takes. `noted`: the heading of the notes on the models; `closing`: the last sentence."""

    audit: AuditManifest
    models: Sequence[AskedModel]
    noted: Literal["key", "jobs"]
    closing: str

    @property
    def total(self) -> Estimate:
        """The calls, tokens and cost of all models together; the cost is None where a model's is."""
        return sum_of(self.models)


def size_audit(request: AuditRunRequest) -> AuditSize:
    """Check every input and say what an audit would take; needs no key, writes nothing."""
    if request.resume is not None or request.plan is not None:
        raise AuditError("--dry-run cannot be combined with --resume or --plan")
    refuse_wrong(request)
    drawn = new_audit(request, keyed=False, transport="batch" if request.batch else "direct")
    return AuditSize(
        audit=drawn.manifest,
        models=asked_models(
            drawn,
            drawn.sizes(Shard.parse(request.shard) if request.shard else None),
            lambda model: key_note(model, drawn.kinds[model.provider], drawn.keys),
        ),
        noted="key",
        closing=f"{f'{COST_OF_BATCHES}; ' * request.batch}dry run: no call was made, nothing was written",
    )


def plan_audit(request: AuditPlanRequest) -> tuple[AuditPlan, AuditSize]:
    """Draw an audit, cut it into jobs of CI and write the plan; return it with what it may cost. Needs no key."""
    counts = {"--replicates": request.replicates, "--questions": request.questions}
    refuse_amounts(counts, max_calls=None, max_cost=request.max_cost)
    drawn = new_audit(request, keyed=False, commit=commit_of(request.components))
    settings, sizes = drawn.settings, drawn.sizes()
    jobs = audit_jobs(drawn.manifest, drawn.models, drawn.kinds, sizes, settings.jobs)
    jobs = capped(jobs, request.max_cost)
    jobs = sharing(jobs, drawn.models, settings.ceilings)
    plan = AuditPlan(reason=request.reason, audit=drawn.manifest, jobs=jobs)
    replace_text(request.out, json_text(plan.model_dump(mode="json")))
    cap = "" if request.max_cost is None else f", capped at ${request.max_cost:,.2f}"
    return plan, AuditSize(
        audit=drawn.manifest,
        models=asked_models(drawn, sizes, lambda model: str(sum(job.model_id == model.id for job in jobs))),
        noted="jobs",
        closing=f"{counted(len(jobs), 'job')}{cap}; no call was made",
    )


def asked_models(drawn: DrawnAudit, sizes: Mapping[str, InputSize], note: Callable[[Model], str]) -> list[AskedModel]:
    """Return what cells of these sizes take of each model."""
    audit, kinds = drawn.manifest, drawn.kinds
    asked = []
    for model in drawn.models:
        amounts = estimate(sizes, model, kinds[model.provider], audit.replicates, batch=audit.transport == "batch")
        asked.append(AskedModel(model_id=model.id, provider=model.provider, note=note(model), **asdict(amounts)))
    return asked
