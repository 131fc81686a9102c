"""What an audit asks about, read and checked, and the questions drawn from it."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.audit.run.manifest import AuditedBenchmark, AuditManifest
from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import read_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component, parse_prompt
from skill_evaluator.library.config import Model
from skill_evaluator.library.scenarios import Scenario, load_scenario
from skill_evaluator.runner.runs import settings_digest
from skill_evaluator.text import digest

_FIRST_SCENARIO = "bare"  # what the others are compared with
_BENCHMARK_OUTPUT = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The folders that are read."""

    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A benchmark with its cases that have a ground truth, by id; `unlabelled` is how many have none."""

    component: Component
    cases: Mapping[str, Case]
    unlabelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """Everything an audit asks about, by name, in the order in which it is asked."""

    benchmarks: Mapping[str, Material]
    scenarios: Mapping[str, Scenario]


def read_materials(places: Places, benchmarks: Sequence[str], scenarios: Sequence[str]) -> Materials:
    """Read them; raises ComponentError, FixtureError, ConfigError or AuditError."""
    return Materials(
        benchmarks={name: read_material(places, name) for name in dict.fromkeys(benchmarks)},
        scenarios={name: load_scenario(places.config, name) for name in dict.fromkeys(scenarios)},
    )


def read_material(places: Places, name: str) -> Material:
    """Read one benchmark; raises ComponentError, FixtureError or, where no case could be scored, AuditError."""
    component = load_component(places.components, name)
    cases = load_cases(component, places.fixtures)
    labelled = {case.id: case for case in cases if case.labelled}
    if not labelled:
        raise AuditError(f"no case of the benchmark '{name}' has a ground truth, so that no answer could be scored")
    return Material(component=component, cases=labelled, unlabelled=len(cases) - len(labelled))


def default_benchmarks(places: Places) -> tuple[str, ...]:
    """All components whose answer is a choice among options, by name; raises AuditError when there is none."""
    paths = sorted(places.components.glob("*/prompt.md"))
    chosen = (path for path in paths if _output_of(path) == _BENCHMARK_OUTPUT)
    found = tuple(path.parent.name for path in chosen)
    if not found:
        raise AuditError(
            f"no component in {places.components} has output: {_BENCHMARK_OUTPUT}; say what to audit on with "
            f"--benchmark NAME, or in {places.config / 'settings.yaml'}: audit: {{benchmarks: [NAME, NAME]}}"
        )
    return found


def _output_of(path: Path) -> str:
    front, _ = parse_prompt(read_text(path, ComponentError), path)
    return str(front.output)


def default_scenarios(places: Places) -> tuple[str, ...]:
    """All scenarios by name, the bare prompt first; raises AuditError when there is none."""
    names = sorted(path.stem for path in (places.config / "scenarios").glob("*.md"))
    if not names:
        raise AuditError(f"{places.config / 'scenarios'} holds no scenario; an audit compares two or more")
    return tuple(sorted(names, key=lambda name: name != _FIRST_SCENARIO))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is asked of each model; `questions` None: all there are."""

    questions: int | None
    replicates: int
    seed: int


def drawn(names: Sequence[str], questions: int | None, seed: int, benchmark: str) -> list[str]:
    """So many of the names, by the seed and the benchmark alone; sorted.

    >>> drawn(["c", "a", "b"], 2, 7, "geography") == drawn(["a", "b", "c"], 2, 7, "geography")
    True
    """
    ordered = sorted(names)
    if questions is None or questions >= len(ordered):
        return ordered
    return sorted(random.Random(f"{seed}/{benchmark}").sample(ordered, questions))  # noqa: S311 (no secret)


def draw_audit(
    materials: Materials,
    models: Sequence[Model],
    weights: Mapping[str, float],
    size: Size,
    *,
    audit_id: str,
    created: str,
    commit: str | None = None,
) -> AuditManifest:
    """What an audit of these models asks."""
    return AuditManifest(
        id=audit_id,
        created=created,
        commit=commit,
        seed=size.seed,
        replicates=size.replicates,
        questions=size.questions,
        models={model.id: settings_digest(model) for model in models},
        scenarios={name: digest(one.template) for name, one in materials.scenarios.items()},
        benchmarks=[_benchmark(one, weights.get(name, 1.0), size) for name, one in materials.benchmarks.items()],
        evaluator_version=__version__,
    )


def _benchmark(material: Material, weight: float, size: Size) -> AuditedBenchmark:
    component, cases = material.component, material.cases
    return AuditedBenchmark(
        name=component.name,
        version=component.version,
        metric=component.primary_metric,
        weight=weight,
        of=len(cases),
        unlabelled=material.unlabelled,
        cases={name: cases[name].digest for name in drawn(list(cases), size.questions, size.seed, component.name)},
        digests=dict(component.digests),
    )


def changes_since(manifest: AuditManifest, materials: Materials, models: Sequence[Model]) -> list[str]:
    """What shapes the answers and is not as it was when the audit was drawn, in words."""
    return [*_changed_materials(manifest, materials), *_changed_models(manifest, models)]


def _changed_models(manifest: AuditManifest, models: Sequence[Model]) -> Iterator[str]:
    for model in models:
        if manifest.models.get(model.id) != settings_digest(model):
            yield f"the settings of '{model.id}'"


def _changed_materials(manifest: AuditManifest, materials: Materials) -> Iterator[str]:
    for name, template in manifest.scenarios.items():
        if digest(materials.scenarios[name].template) != template:
            yield f"scenario '{name}'"
    for one in manifest.benchmarks:
        material = materials.benchmarks[one.name]
        for part, known in one.shaping.items():
            if material.component.digests.get(part) != known:
                yield f"{part} of '{one.name}'"
        yield from changed_cases(one, material)


def changed_cases(benchmark: AuditedBenchmark, material: Material) -> Iterator[str]:
    """The cases that are gone, or another document or truth, since they were drawn, in words."""
    for name, known in benchmark.cases.items():
        if name not in material.cases or material.cases[name].digest != known:
            yield f"case '{name}' of '{benchmark.name}'"
