"""The answers that an audit's runs left behind, scored and put together: per benchmark the score of every answer.

Run folders are read at any depth, as they lie in an audit's folder or as artifacts come. Shards become one; an answer
that came twice counts once. Equal texts to a question are scored once, over all models and scenarios.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube.cube import ModelCost, Outcomes
from skill_evaluator.audit.run.manifest import AUDIT, AuditedBenchmark, AuditManifest, parts_of
from skill_evaluator.audit.run.manifest import read_manifest as read_audit_manifest
from skill_evaluator.audit.run.materials import Places, changed_cases, read_material
from skill_evaluator.errors import AuditError
from skill_evaluator.library.config import Price, load_models
from skill_evaluator.providers import kinds_of
from skill_evaluator.records.record import ANSWERED, NOT_RUN, SCORED, strict_score
from skill_evaluator.runner.journal import MANIFEST, Manifest, merged_outcomes, read_answers, read_manifest
from skill_evaluator.runner.prices import price_of, usage_cost
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.stats import quantile, total_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTally:
    """The calls of a model, counted. `planned`: in the runs that arrived; `outcomes`: by kind, `scored` among them."""

    planned: int
    outcomes: Mapping[str, int]
    cost_usd: float | None
    latency_s: float | None
    served_models: tuple[str, ...]

    @classmethod
    def count(
        cls, planned: int, outcomes: Mapping[str, int], replicates: Iterable[Replicate], price: Price | None
    ) -> Self:
        """Count what the replicates took; `price` None: not known."""
        answered = [(made.completion, made.latency_s) for made in replicates if made.completion is not None]
        return cls(
            planned=planned,
            outcomes=dict(sorted(outcomes.items())),
            cost_usd=total_or_none(usage_cost(price, completion.usage) for completion, _ in answered),
            latency_s=quantile([latency_s for _, latency_s in answered], 0.5),
            served_models=tuple(sorted({made.served_model for made, _ in answered if made.served_model})),
        )

    @property
    def answered(self) -> int:
        """The number of calls that the model answered, however badly."""
        return sum(count for kind, count in self.outcomes.items() if kind in ANSWERED)

    @property
    def failures(self) -> dict[str, int]:
        """The number of calls that were made and not scored, by kind."""
        return {kind: count for kind, count in sorted(self.outcomes.items()) if kind != SCORED}

    @property
    def unmade(self) -> int:
        """The number of calls of which nothing is known."""
        return self.planned - sum(self.outcomes.values())

    @property
    def model_cost(self) -> ModelCost:
        """The cost of an answer and how long it took."""
        spent = None if self.cost_usd is None or not self.answered else self.cost_usd / self.answered
        return ModelCost(usd_per_call=spent, latency_s=self.latency_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatheredAudit:
    """An audit with all its answers. Models, scenarios and questions are in the order of its manifest.

    `remarks`: sentences that a reader should know.
    """

    manifest: AuditManifest
    outcomes: Mapping[str, Outcomes]
    tallies: Mapping[str, CallTally]
    spending: Mapping[str, ModelCost]
    remarks: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models, the first axis of every array."""
        return tuple(self.manifest.models)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios, the second axis."""
        return tuple(self.manifest.scenarios)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each benchmark, as declared."""
        return {benchmark.name: benchmark.weight for benchmark in self.manifest.benchmarks}


def gather(folders: Sequence[Path], places: Places, planned: AuditManifest | None = None) -> GatheredAudit:
    """Read, check and score every run below some folders; `planned` stands for the folders' audit.json.

    Raise AuditError for a run of another audit or with other inputs, and where a case has changed.
    """
    manifest = planned or _read_the_manifest(folders)
    grids = {benchmark.name: _Grid(benchmark, manifest, places) for benchmark in manifest.benchmarks}
    models = load_models(places.config)
    kinds = kinds_of(models, str(places.config / "models.yaml"))
    prices = {model.id: price_of(model, kinds[model.provider]) for model in models}
    tallies: dict[str, CallTally] = {}
    for m, (model_id, runs) in enumerate(_runs_by_model(folders, manifest).items()):
        answers = merged_outcomes((run, read_answers(folder)) for folder, run in runs)
        outcomes: Counter[str] = Counter()
        for replicate in answers.values():
            benchmark, scenario, case = parts_of(replicate.call.case_id)
            outcomes[grids[benchmark].score(replicate, m, scenario, case)] += 1
        planned_calls = len({cell for _, run in runs for cell in run.cases}) * manifest.replicates
        tallies[model_id] = CallTally.count(planned_calls, outcomes, answers.values(), prices.get(model_id))
    return GatheredAudit(
        manifest=manifest,
        outcomes={name: Outcomes(questions=tuple(grid.questions), scores=grid.scores) for name, grid in grids.items()},
        tallies=tallies,
        spending={model_id: tally.model_cost for model_id, tally in tallies.items()},
        remarks=tuple(remark for grid in grids.values() for remark in grid.remarks),
    )


class _Grid:
    """One benchmark's scores as they come in; NaN until a call is scored."""

    def __init__(self, benchmark: AuditedBenchmark, audit: AuditManifest, places: Places) -> None:
        name = benchmark.name
        material = read_material(places, name)
        changed = changed_cases(benchmark, material)
        if changed:
            raise AuditError(f"{changed[0]} is not as it was when the audit {audit.id} began; check out its commit")
        if benchmark.metric not in material.component.metrics:
            raise AuditError(f"'{name}' no longer declares {benchmark.metric}, by which the audit {audit.id} scores it")
        shape = (len(audit.models), len(audit.scenarios), len(benchmark.cases), audit.replicates)
        self.scores: NDArray[np.float32] = np.full(shape, np.nan, dtype=np.float32)
        self.questions = {case: place for place, case in enumerate(benchmark.cases)}
        declared = material.component.digests["datasets"] == benchmark.digests["datasets"]
        self.remarks = [] if declared else [f"'{name}' compares answers otherwise than when the audit began"]
        self._metric = benchmark.metric
        self._scenarios = {scenario: place for place, scenario in enumerate(audit.scenarios)}
        self._scorer = Scorer(material.component, [material.cases[case] for case in benchmark.cases], audit.replicates)

    def score(self, replicate: Replicate, model: int, scenario: str, case: str) -> str:
        """Score one call and put its score where it belongs; return what became of the call."""
        if replicate.completion is not None and replicate.failure is None:
            scored = self._scorer.scored(case, replicate.completion.text)
            kind, score = scored.outcome, scored.metrics[self._metric]
        else:
            kind, score = replicate.failure.kind if replicate.failure else NOT_RUN, None
        value = strict_score(kind, score)
        cell = model, self._scenarios[scenario], self.questions[case], replicate.call.replicate
        self.scores[cell] = np.nan if value is None else value
        return kind


def _read_the_manifest(folders: Sequence[Path]) -> AuditManifest:
    """Read the audit.json that all folders share; raise AuditError where they hold none, or not the same one."""
    audit: AuditManifest | None = None
    for folder in folders:
        paths = sorted(folder.rglob(AUDIT))
        if not paths:
            raise AuditError(f"{folder} holds no audit: there is no {AUDIT} in it")
        for path in paths:
            manifest = read_audit_manifest(path)
            if audit is not None and manifest != audit:
                raise AuditError(f"{path.parent} is of the audit {manifest.id}, or asks otherwise than {audit.id}")
            audit = manifest
    if audit is None:
        raise AuditError("no folder of an audit was given")
    return audit


def _runs_by_model(folders: Iterable[Path], audit: AuditManifest) -> dict[str, list[tuple[Path, Manifest]]]:
    """Read every run below the folders, by model in the audit's order; raise AuditError for one of another audit."""
    cells = audit.cells()
    runs: dict[str, list[tuple[Path, Manifest]]] = {model_id: [] for model_id in audit.models}
    for path in sorted(path for folder in folders for path in folder.rglob(MANIFEST)):
        run = read_manifest(path.parent)
        if run.audit != audit.id:
            whose = f"the audit {run.audit}" if run.audit else f"'{run.skill}'"
            raise AuditError(f"{path.parent} is a run of {whose}, not of the audit {audit.id}")
        same_settings = run.digests.get("settings") == audit.models.get(run.model_id, "")
        same_calls = (run.replicates, run.seed) == (audit.replicates, audit.seed)
        same_cells = all(cells.get(cell) == digest for cell, digest in run.cases.items())
        if not (same_settings and same_calls and same_cells):
            raise AuditError(f"{path.parent} was not run on what {AUDIT} of the audit {audit.id} says")
        runs[run.model_id].append((path.parent, run))
    return runs
