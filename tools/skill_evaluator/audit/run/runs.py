"""The runs of an audit and the requests that they make."""

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
    """Every cell that could be asked about; components are put into their scenarios once."""

    def __init__(self, materials: Materials) -> None:
        self._materials = materials
        self._under = {
            (name, scenario): template.around(material.component)
            for name, material in materials.benchmarks.items()
            for scenario, template in materials.scenarios.items()
        }

    def request(self, call: Call, *, seed: int, max_output_tokens: int) -> Request:
        """The request of a call; its seed derives from the cell, so that no two cells of a case share one."""
        component, case = self._asked(call.case_id)
        return build_request(component, case, replicate=call.replicate, seed=seed, max_output_tokens=max_output_tokens)

    def sizes(self, cells: Iterable[str]) -> dict[str, InputSize]:
        """By cell, the size of its request."""
        found: dict[str, InputSize] = {}
        for cell in cells:
            component, case = self._asked(cell)
            found |= input_sizes(component, [case])
        return found

    def _asked(self, cell: str) -> tuple[Component, Case]:
        benchmark, scenario, name = parts_of(cell)
        case = self._materials.benchmarks[benchmark].cases[name]
        return self._under[benchmark, scenario], replace(case, id=cell)


def runs_of(audit: AuditManifest, models: Sequence[Model], shard: Shard | None, folder: Path) -> list[Run]:
    """What these models are to be asked, or the shard of it; raises AuditError where that would be asked twice."""
    there = [read_manifest(path.parent) for path in sorted(folder.glob(f"{RUNS}/*/{MANIFEST}"))]
    runs = []
    for model in models:
        mine = _shard(model, shard, [one for one in there if one.model_id == model.id])
        planned = _planned(audit, model, mine)
        place = folder / RUNS / planned.run_id
        known = next((one for one in there if one.run_id == planned.run_id), None)
        if known is not None and _asked(known) != _asked(planned):
            raise AuditError(f"{place} was begun with other inputs than {folder / AUDIT} says; start a new one")
        runs.append(Run(model=model, manifest=known or planned, folder=place))
    return runs


def _shard(model: Model, wanted: Shard | None, there: Sequence[Manifest]) -> Shard | None:
    """The part that is meant: the one named, else the only one begun. A model is cut in one way, or not at all."""
    begun = [None if one.shard is None else Shard.parse(one.shard) for one in there]
    if wanted is None and len(begun) == 1:
        return begun[0]
    counts = {part.count if part else 1 for part in begun}
    if counts and counts != {wanted.count if wanted else 1}:
        raise AuditError(
            f"'{model.id}' was begun in parts {', '.join(str(part or 'whole') for part in begun)}; "
            "go on with one of them: --shard I/N as it was"
        )
    return wanted


def _planned(audit: AuditManifest, model: Model, shard: Shard | None) -> Manifest:
    return Manifest(
        run_id=run_id_of(audit.id, model.id, shard),
        created=audit.created,
        skill="audit",
        skill_version=str(MANIFEST_VERSION),
        model_id=model.id,
        provider=model.provider,
        replicates=audit.replicates,
        seed=audit.seed,
        shard=str(shard) if shard else None,
        audit=audit.id,
        cases=audit.cells(shard),
        digests={"settings": settings_digest(model)},
        evaluator_version=__version__,
    )


def _asked(run: Manifest) -> tuple[object, ...]:
    """What shapes the answers of a run."""
    return run.audit, run.model_id, run.shard, run.replicates, run.seed, run.cases, run.digests
