"""Materials and settings → what an audit asks; and later, whether that is still what the files say.

The questions of a benchmark are drawn by the seed alone, so that every model and scenario meets the same ones.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator import __version__
from skill_evaluator.audit.run.manifest import AuditedBenchmark, AuditManifest
from skill_evaluator.audit.run.materials import Material, Materials
from skill_evaluator.library.config import Model
from skill_evaluator.runner.runs import settings_digest
from skill_evaluator.text import digest


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
