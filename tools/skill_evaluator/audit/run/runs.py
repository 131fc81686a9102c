"""The runs of an audit, one a model or a shard of one, and the request and size of each of their cells."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.audit.run.manifest import AUDIT, MANIFEST_VERSION, RUNS, AuditManifest, parts_of
from skill_evaluator.audit.run.materials import Materials
from skill_evaluator.errors import AuditError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.journal import MANIFEST, Manifest, read_manifest
from skill_evaluator.runner.prices import InputSize, input_sizes
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.runs import Run, run_id_of, settings_digest
from skill_evaluator.runner.schedule import Call, Shard


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
