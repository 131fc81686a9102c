"""What an audit's runs left behind, scored and put together: per benchmark the score of every single answer.

Reads run folders at any depth, as they lie in an audit's folder or as artifacts come. Shards become one; an answer
that came twice counts once. Equal texts to a question are scored once, over all models and scenarios.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube.cube import ModelCost, Outcomes
from skill_evaluator.audit.run import manifest as audits
from skill_evaluator.audit.run.manifest import AuditedBenchmark, AuditManifest, parts_of
from skill_evaluator.audit.run.materials import Places, changed_cases, read_material
from skill_evaluator.errors import AuditError
from skill_evaluator.library.config import Price, load_models
from skill_evaluator.providers import kinds_of
from skill_evaluator.records.strict_score import ANSWERED, NOT_RUN, SCORED, strict_score
from skill_evaluator.runner.journal import MANIFEST, Manifest, merged_outcomes, read_answers, read_manifest
from skill_evaluator.runner.prices import price_of, usage_cost
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.stats import quantile, total_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTally:
    """What became of a model's calls. `planned`: of the runs that arrived; `outcomes`: by kind, `scored` among them."""

    planned: int
    outcomes: Mapping[str, int]
    cost_usd: float | None
    latency_s: float | None
    served_models: tuple[str, ...]

    @property
    def answered(self) -> int:
        """Calls the model answered, however badly."""
        return sum(count for kind, count in self.outcomes.items() if kind in ANSWERED)

    @property
    def failures(self) -> dict[str, int]:
        """Calls that were made and not scored, by kind."""
        return {kind: count for kind, count in sorted(self.outcomes.items()) if kind != SCORED}

    @property
    def unmade(self) -> int:
        """Calls of which nothing is known."""
        return self.planned - sum(self.outcomes.values())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatheredAudit:
    """All that is known of an audit. Models, scenarios and questions are in the order of their manifest.

    `remarks`: what a reader should know.
    """

    manifest: AuditManifest
    outcomes: Mapping[str, Outcomes]
    tallies: Mapping[str, CallTally]
    spending: Mapping[str, ModelCost]
    remarks: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The first axis of every array."""
        return tuple(self.manifest.models)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The second."""
        return tuple(self.manifest.scenarios)

    @property
    def weights(self) -> dict[str, float]:
        """How much each benchmark counts, as declared."""
        return {one.name: one.weight for one in self.manifest.benchmarks}


def gather(folders: Sequence[Path], places: Places, planned: AuditManifest | None = None) -> GatheredAudit:
    """Read, check and score everything below some folders; `planned`: what was asked, where no audit.json need be.

    Raises AuditError for what is of another audit or was asked otherwise, and where a case is not as it was.
    """
    manifest = planned or _manifest(folders)
    grids = {one.name: _Grid(one, manifest, places) for one in manifest.benchmarks}
    prices = _prices(places)
    tallies: dict[str, CallTally] = {}
    for place, (model_id, runs) in enumerate(_runs_by_model(folders, manifest).items()):
        answers = merged_outcomes((run, read_answers(folder)) for folder, run in runs)
        kinds = Counter(_place(replicate, grids, manifest, place) for replicate in answers.values())
        size = len({cell for _, run in runs for cell in run.cases}) * manifest.replicates
        tallies[model_id] = _tally(size, kinds, answers.values(), prices.get(model_id))
    return GatheredAudit(
        manifest=manifest,
        outcomes={name: Outcomes(questions=tuple(grid.questions), scores=grid.scores) for name, grid in grids.items()},
        tallies=tallies,
        spending={model_id: _spending(tally) for model_id, tally in tallies.items()},
        remarks=tuple(remark for grid in grids.values() for remark in grid.remarks),
    )


@dataclass(slots=True)
class _Grid:
    """One benchmark's scores as they come in."""

    benchmark: AuditedBenchmark
    manifest: AuditManifest
    places: Places
    scorer: Scorer = field(init=False)
    scores: NDArray[np.float32] = field(init=False)
    questions: dict[str, int] = field(init=False)
    scenarios: dict[str, int] = field(init=False)
    remarks: list[str] = field(init=False)

    def __post_init__(self) -> None:
        one, audit = self.benchmark, self.manifest
        material = read_material(self.places, one.name)
        changed = changed_cases(one, material)
        if changed:
            raise AuditError(f"{changed[0]} is not as it was when the audit {audit.id} began; check out its commit")
        if one.metric not in material.component.metrics:
            raise AuditError(f"'{one.name}' no longer declares {one.metric}, by which the audit {audit.id} scores it")
        shape = (len(audit.models), len(audit.scenarios), len(one.cases), audit.replicates)
        self.scorer = Scorer(material.component, [material.cases[name] for name in one.cases], audit.replicates)
        self.scores = np.full(shape, np.nan, dtype=np.float32)
        self.questions = {name: place for place, name in enumerate(one.cases)}
        self.scenarios = {name: place for place, name in enumerate(audit.scenarios)}
        declared = material.component.digests["datasets"] == one.digests["datasets"]
        self.remarks = [] if declared else [f"'{one.name}' declares otherwise than then how answers are compared"]


def _place(replicate: Replicate, grids: Mapping[str, _Grid], manifest: AuditManifest, model: int) -> str:
    """Put the score of one call where it belongs; returns what became of the call."""
    benchmark, scenario, case = parts_of(replicate.call.case_id)
    grid = grids[benchmark]
    if replicate.completion is not None and replicate.failure is None:
        scored = grid.scorer.scored(case, replicate.completion.text)
        kind, score = scored.outcome, scored.metrics[grid.benchmark.metric]
    else:
        kind, score = replicate.failure.kind if replicate.failure else NOT_RUN, None
    value = strict_score(kind, score)
    cell = model, grid.scenarios[scenario], grid.questions[case], replicate.call.replicate
    grid.scores[cell] = np.nan if value is None else value
    return kind


def _manifest(folders: Sequence[Path]) -> AuditManifest:
    """The one audit that all folders are of."""
    found: AuditManifest | None = None
    for folder in folders:
        paths = sorted(folder.rglob(audits.AUDIT))
        if not paths:
            raise AuditError(f"{folder} holds no audit: there is no {audits.AUDIT} in it")
        for path in paths:
            one = audits.read_manifest(path)
            if found is not None and one != found:
                raise AuditError(f"{path.parent} is of the audit {one.id}, or asks otherwise than {found.id}")
            found = one
    if found is None:
        raise AuditError("no folder of an audit was given")
    return found


def _runs_by_model(folders: Iterable[Path], audit: AuditManifest) -> dict[str, list[tuple[Path, Manifest]]]:
    """Every run below the folders, by model in the audit's order; raises AuditError for one that is not its own."""
    cells = audit.cells()
    found: dict[str, list[tuple[Path, Manifest]]] = {model_id: [] for model_id in audit.models}
    for path in sorted(path for folder in folders for path in folder.rglob(MANIFEST)):
        run = read_manifest(path.parent)
        if run.audit != audit.id:
            whose = f"the audit {run.audit}" if run.audit else f"'{run.skill}'"
            raise AuditError(f"{path.parent} is a run of {whose}, not of the audit {audit.id}")
        asked = {"replicates": run.replicates, "seed": run.seed, "settings": run.digests.get("settings")}
        wanted = {"replicates": audit.replicates, "seed": audit.seed, "settings": audit.models.get(run.model_id, "")}
        if asked != wanted or any(cells.get(cell) != digest for cell, digest in run.cases.items()):
            raise AuditError(f"{path.parent} was not run on what {audits.AUDIT} of the audit {audit.id} says")
        found[run.model_id].append((path.parent, run))
    return found


def _tally(planned: int, kinds: Counter[str], replicates: Iterable[Replicate], price: Price | None) -> CallTally:
    answered = [(one.completion, one.latency_s) for one in replicates if one.completion is not None]
    return CallTally(
        planned=planned,
        outcomes=dict(sorted(kinds.items())),
        cost_usd=total_or_none(usage_cost(price, completion.usage) for completion, _ in answered),
        latency_s=quantile([latency_s for _, latency_s in answered], 0.5),
        served_models=tuple(sorted({one.served_model for one, _ in answered if one.served_model})),
    )


def _spending(tally: CallTally) -> ModelCost:
    known = tally.cost_usd is not None and tally.answered > 0
    return ModelCost(
        usd_per_call=(tally.cost_usd or 0.0) / tally.answered if known else None, latency_s=tally.latency_s
    )


def _prices(places: Places) -> dict[str, Price]:
    """By model, what its tokens cost, where models.yaml still has it and somebody knows."""
    models = load_models(places.config)
    kinds = kinds_of(models, str(places.config / "models.yaml"))
    known: Iterator[tuple[str, Price | None]] = ((one.id, price_of(one, kinds[one.provider])) for one in models)
    return {model_id: price for model_id, price in known if price is not None}
