"""What an audit is made of: benchmarks (components) with their labelled cases, and scenarios; and its runs.

From them and a size the audit's questions are drawn, and later it is checked that the files still say the same. The
questions of a benchmark are drawn by the seed alone, so that every model and scenario meets the same ones. A run is of
one model, or a shard of it.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.audit.run.plan import AUDIT, MANIFEST_VERSION, RUNS, AuditedBenchmark, AuditManifest, parts_of
from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import read_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component, parse_prompt
from skill_evaluator.library.config import DEFAULT_LIMITS, Model, SafetyLimits
from skill_evaluator.library.scenarios import BARE, Scenario, load_scenario
from skill_evaluator.providers import Kinds
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.journal import MANIFEST, Manifest, Transport, read_manifest
from skill_evaluator.runner.prices import InputSize, input_sizes, not_applicable
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.runs import Run, run_id_of, settings_digest
from skill_evaluator.runner.schedule import Call, Shard
from skill_evaluator.text import digest

_BENCHMARK_OUTPUT = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The folders that an audit reads, and the limits it reads them under."""

    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")
    limits: SafetyLimits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A benchmark with its cases that have a ground truth, by id; `unlabelled`: how many have none."""

    component: Component
    cases: Mapping[str, Case]
    unlabelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """All benchmarks and scenarios of an audit by name, in the order in which they are asked."""

    benchmarks: Mapping[str, Material]
    scenarios: Mapping[str, Scenario]


def read_materials(places: Places, benchmarks: Sequence[str], scenarios: Sequence[str]) -> Materials:
    """Read benchmarks and scenarios; raise ComponentError, FixtureError, ConfigError or AuditError."""
    return Materials(
        benchmarks={name: read_material(places, name) for name in dict.fromkeys(benchmarks)},
        scenarios={name: load_scenario(places.config, name, places.limits) for name in dict.fromkeys(scenarios)},
    )


def read_material(places: Places, name: str) -> Material:
    """Read one benchmark; raise ComponentError, FixtureError or, where no case could be scored, AuditError."""
    component = load_component(places.components, name, places.limits, places.fixtures)
    cases = load_cases(component, places.fixtures)
    labelled = {case.id: case for case in cases if case.labelled}
    if not labelled:
        raise AuditError(f"no case of the benchmark '{name}' has a ground truth, so that no answer could be scored")
    return Material(component=component, cases=labelled, unlabelled=len(cases) - len(labelled))


def default_benchmarks(places: Places) -> tuple[tuple[str, ...], list[str]]:
    """Return all components whose answer is a choice among options, by name, and why others could not be read.

    Raise AuditError when there is none.
    """
    names: tuple[str, ...] = ()
    problems = []
    limit = places.limits.size_of("prompt_bytes")
    for path in sorted(places.components.glob("*/prompt.md")):
        try:
            text = read_text(path, ComponentError, limit)
            front, _ = parse_prompt(text, path, depth=places.limits.yaml_depth)
        except ComponentError as problem:
            problems.append(str(problem))
            continue
        if front.output == _BENCHMARK_OUTPUT:
            names += (path.parent.name,)
    if not names:
        raise AuditError(
            f"no component in {places.components} has output: {_BENCHMARK_OUTPUT}; say what to audit on with "
            f"--benchmark NAME, or in {places.config / 'settings.yaml'}: audit: {{benchmarks: [NAME, NAME]}}"
        )
    return names, problems


def default_scenarios(places: Places) -> tuple[str, ...]:
    """Return all scenarios by name, the bare prompt first; raise AuditError when there is none."""
    names = sorted(path.stem for path in (places.config / "scenarios").glob("*.md"))
    if not names:
        raise AuditError(f"{places.config / 'scenarios'} holds no scenario; an audit compares two or more")
    return tuple(sorted(names, key=lambda name: name != BARE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is asked of each model. `questions`: of each benchmark; None: all there are."""

    questions: int | None
    replicates: int
    seed: int


def draw_questions(names: Sequence[str], questions: int | None, seed: int, benchmark: str) -> list[str]:
    """Draw questions of a benchmark by the seed and the benchmark's name alone; sorted.

    >>> draw_questions(["c", "a", "b"], 2, 7, "geography") == draw_questions(["a", "b", "c"], 2, 7, "geography")
    True
    """
    ordered = sorted(names)
    if questions is None or questions >= len(ordered):
        return ordered
    return sorted(random.Random(f"{seed}/{benchmark}").sample(ordered, questions))  # noqa: S311 (no secret)


def not_applicable_cases(materials: Materials, models: Sequence[Model], kinds: Kinds) -> dict[str, dict[str, str]]:
    """Return by benchmark the cases that some model cannot take, and why; raise AuditError where no other is left."""
    left_out = {}
    for name, material in materials.benchmarks.items():
        cases = list(material.cases.values())
        sizes = input_sizes(material.component, cases)
        reasons = {
            case_id: f"{model.id}: {why}"
            for model in models
            for case_id, why in not_applicable(cases, sizes, model, kinds[model.provider]).items()
        }
        if len(reasons) == len(cases):
            raise AuditError(
                f"no case of the benchmark '{name}' is applicable to every model ({next(iter(reasons.values()))})"
            )
        left_out[name] = reasons
    return left_out


def draw_audit(
    materials: Materials,
    models: Sequence[Model],
    kinds: Kinds,
    weights: Mapping[str, float],
    size: Size,
    *,
    audit_id: str,
    created: str,
    commit: str | None = None,
    transport: Transport = "direct",
) -> AuditManifest:
    """Draw what an audit of these models asks: of cases that every model can take."""
    left_out = not_applicable_cases(materials, models, kinds)
    return AuditManifest(
        id=audit_id,
        created=created,
        commit=commit,
        seed=size.seed,
        replicates=size.replicates,
        questions=size.questions,
        models={model.id: settings_digest(model) for model in models},
        scenarios={name: digest(scenario.template) for name, scenario in materials.scenarios.items()},
        benchmarks=[
            AuditedBenchmark(
                name=material.component.name,
                version=material.component.version,
                metric=material.component.primary_metric,
                weight=weights.get(name, 1.0),
                of=len(material.cases) - len(left_out[name]),
                unlabelled=material.unlabelled,
                not_applicable=left_out[name],
                cases={
                    case_id: material.cases[case_id].digest
                    for case_id in draw_questions(
                        [case_id for case_id in material.cases if case_id not in left_out[name]],
                        size.questions,
                        size.seed,
                        material.component.name,
                    )
                },
                digests=dict(material.component.digests),
            )
            for name, material in materials.benchmarks.items()
        ],
        transport=transport,
        evaluator_version=__version__,
    )


def changes_since(manifest: AuditManifest, materials: Materials, models: Sequence[Model]) -> list[str]:
    """List what shapes the answers and has changed since the audit was drawn."""
    templates = manifest.scenarios.items()
    changed = [f"scenario '{name}'" for name, drawn in templates if digest(materials.scenarios[name].template) != drawn]
    for benchmark in manifest.benchmarks:
        material = materials.benchmarks[benchmark.name]
        digests = material.component.digests
        parts = (part for part, drawn in benchmark.shaping.items() if digests.get(part) != drawn)
        changed += [f"{part} of '{benchmark.name}'" for part in parts]
        changed += changed_cases(benchmark, material)
    for model in models:
        if manifest.models.get(model.id) != settings_digest(model):
            changed.append(f"the settings of '{model.id}'")
    return changed


def changed_cases(benchmark: AuditedBenchmark, material: Material) -> list[str]:
    """List the cases that are gone, or have another document or truth, since they were drawn."""
    digests = {name: case.digest for name, case in material.cases.items()}
    changed = (name for name, drawn in benchmark.cases.items() if digests.get(name) != drawn)
    return [f"case '{name}' of '{benchmark.name}'" for name in changed]


class Cells:
    """The cells of an audit as they are asked; each component is put into each scenario once."""

    def __init__(self, materials: Materials) -> None:
        self._materials = materials
        self._under = {
            (name, scenario): template.around(material.component)
            for name, material in materials.benchmarks.items()
            for scenario, template in materials.scenarios.items()
        }

    def request(self, call: Call, *, seed: int, max_output_tokens: int) -> Request:
        """Build the request of a call; its seed derives from the cell, so that no two cells of a case share one."""
        component, case = self._prompt_and_case(call.case_id)
        return build_request(component, case, replicate=call.replicate, seed=seed, max_output_tokens=max_output_tokens)

    def sizes(self, cells: Iterable[str]) -> dict[str, InputSize]:
        """Return the size of each cell's request, by cell."""
        sizes: dict[str, InputSize] = {}
        for cell in cells:
            component, case = self._prompt_and_case(cell)
            sizes |= input_sizes(component, [case])
        return sizes

    def _prompt_and_case(self, cell: str) -> tuple[Component, Case]:
        benchmark, scenario, name = parts_of(cell)
        case = self._materials.benchmarks[benchmark].cases[name]
        return self._under[benchmark, scenario], replace(case, id=cell)


def runs_of(audit: AuditManifest, models: Sequence[Model], shard: Shard | None, folder: Path) -> list[Run]:
    """Return the run of each model, or of a shard of it: the one begun in the audit's folder, else a new one.

    Raise AuditError where a run was begun with other inputs, or a model was cut in another way.
    """
    begun = [read_manifest(path.parent) for path in sorted(folder.glob(f"{RUNS}/*/{MANIFEST}"))]
    runs = []
    for model in models:
        mine = [run.shard for run in begun if run.model_id == model.id]
        parts = [None if text is None else Shard.parse(text) for text in mine]
        part = parts[0] if shard is None and len(parts) == 1 else shard  # the one that was named, or the only one begun
        counts = {earlier.count if earlier else 1 for earlier in parts}
        if counts and counts != {part.count if part else 1}:
            raise AuditError(
                f"'{model.id}' was begun in parts {', '.join(str(earlier or 'whole') for earlier in parts)}; "
                "go on with one of them: --shard I/N as it was"
            )
        planned = planned_run(audit, model.id, model.provider, settings_digest(model), part)
        place = folder / RUNS / planned.run_id
        earlier = next((run for run in begun if run.run_id == planned.run_id), planned)
        if _shaping(earlier) != _shaping(planned):
            raise AuditError(f"{place} was begun with other inputs than {folder / AUDIT} says; start a new one")
        runs.append(Run(model=model, manifest=earlier, folder=place))
    return runs


def planned_run(audit: AuditManifest, model_id: str, provider: str, settings: str, part: Shard | None) -> Manifest:
    """Return what the run of a model, or of a shard of it, is to do; `settings` is a digest of the model's."""
    return Manifest(
        run_id=run_id_of(audit.id, "", model_id, part),
        created=audit.created,
        skill="audit",
        skill_version=str(MANIFEST_VERSION),
        model_id=model_id,
        provider=provider,
        replicates=audit.replicates,
        seed=audit.seed,
        shard=str(part) if part else None,
        audit=audit.id,
        cases=audit.cells(part),
        digests={"settings": settings},
        evaluator_version=__version__,
        transport=audit.transport,
    )


def _shaping(run: Manifest) -> tuple[object, ...]:
    """Return what shapes the answers of a run."""
    return run.audit, run.model_id, run.shard, run.replicates, run.seed, run.cases, run.digests
