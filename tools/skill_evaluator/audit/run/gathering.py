"""The answers that an audit's runs left behind, scored and put together: per benchmark the score of every answer.

Run folders are read at any depth, as they lie in an audit's folder or as artifacts come. Shards become one; an answer
that came twice counts once. Equal texts to a question are scored once, over all models and scenarios.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube import Cube, ModelCost, Outcomes, cube_of_outcomes
from skill_evaluator.audit.request import AuditPlaces, Missing
from skill_evaluator.audit.run.drawing import changed_cases, read_material
from skill_evaluator.audit.run.plan import AUDIT, AuditedBenchmark, AuditManifest, parts_of, read_audit_manifest
from skill_evaluator.ci.arrivals import is_own_file
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError, RunError
from skill_evaluator.library.config import load_models
from skill_evaluator.providers import kinds_of
from skill_evaluator.records.record import ANSWERED, NOT_RUN, SCORED, strict_score
from skill_evaluator.runner.journal import (
    ANSWERS,
    MANIFEST,
    TOLD_LATER,
    Manifest,
    merged_outcomes,
    read_answers,
    read_manifest,
)
from skill_evaluator.runner.prices import Priced, call_cost, hit_rate, price_of
from skill_evaluator.runner.schedule import Replicate, Shard
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import quantile, total_or_none
from skill_evaluator.text import counted

_IN_BATCHES = "the models were asked in batches (transport: batch): costs are half those of direct calls, no latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTally:
    """The calls of a model, counted. `planned`: in the runs that arrived; `outcomes`: by kind, `scored` among them."""

    planned: int
    outcomes: Mapping[str, int]
    cost_usd: float | None
    hit_rate: float | None
    latency_s: float | None
    served_models: tuple[str, ...]

    @classmethod
    def count(
        cls, planned: int, outcomes: Mapping[str, int], replicates: Collection[Replicate], priced: Priced | None
    ) -> Self:
        """Count what the replicates took; `priced` None: the model is no longer in models.yaml."""
        answered = [(made.completion, made.latency_s) for made in replicates if made.completion is not None]
        return cls(
            planned=planned,
            outcomes=dict(sorted(outcomes.items())),
            cost_usd=total_or_none(call_cost(*priced, made) if priced else None for made in replicates),
            hit_rate=hit_rate([completion.usage for completion, _ in answered]),
            latency_s=quantile([latency_s for _, latency_s in answered if latency_s is not None], 0.5),
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
    remarks: tuple[str, ...] = ()

    @property
    def absent(self) -> list[str]:
        """The models that have answered nothing."""
        return [name for name in self.manifest.models if not self.tallies[name].answered]

    def cube(self, weights: Mapping[str, float], missing: Missing) -> Cube:
        """Return the cube of the models that answered; `weights` go before those declared. Raise AuditError."""
        rows = [m for m, name in enumerate(self.manifest.models) if self.tallies[name].answered]
        if not rows:
            raise AuditError(
                f"no model has answered anything yet; go on: skill-evaluator audit run --resume {self.manifest.id}"
            )
        models = list(self.manifest.models)
        return cube_of_outcomes(
            [models[row] for row in rows],
            list(self.manifest.scenarios),
            {name: replace(outcomes, scores=outcomes.scores[rows]) for name, outcomes in self.outcomes.items()},
            weights={one.name: one.weight for one in self.manifest.benchmarks} | dict(weights),
            missing=missing,
            spending={name: tally.model_cost for name, tally in self.tallies.items()},
            answers={name: tally.outcomes for name, tally in self.tallies.items()},
            where=f"the audit {self.manifest.id}",
        )


def gather(folders: Sequence[Path], places: AuditPlaces, planned: AuditManifest | None = None) -> GatheredAudit:
    """Read, check and score every run below some folders; `planned` stands for the folders' audit.json.

    Raise AuditError if a case has changed, or a run belongs to a different audit or has other inputs. With `planned`
    the folders are what jobs left: then such a run is left out, with a remark, and the others count.
    """
    manifest = planned or _read_the_manifest(folders)
    remarks: list[str] = []
    runs_by_model = _runs_by_model(folders, manifest, None if planned is None else remarks.append)
    with ExitStack() as stack:
        grids = {benchmark.name: _Grid(benchmark, manifest, places, stack) for benchmark in manifest.benchmarks}
        models = load_models(places.config, places.limits)
        kinds = kinds_of(models, str(places.config / "models.yaml"))
        prices = {model.id: (model, price_of(model, kinds[model.provider])) for model in models}
        tallies: dict[str, CallTally] = {}
        for m, (model_id, runs) in enumerate(runs_by_model.items()):
            answers = merged_outcomes((run, _answers(folder, run, remarks)) for folder, run in runs)
            parts = [(replicate, *parts_of(replicate.call.case_id)) for replicate in answers.values()]
            for replicate, benchmark, _, case in parts:
                grids[benchmark].begin(replicate, case)
            outcomes = Counter(
                grids[benchmark].score(replicate, m, scenario, case) for replicate, benchmark, scenario, case in parts
            )
            planned_calls = len({cell for _, run in runs for cell in run.cases}) * manifest.replicates
            tallies[model_id] = CallTally.count(planned_calls, outcomes, answers.values(), prices.get(model_id))
    return GatheredAudit(
        manifest=manifest,
        outcomes={name: Outcomes(questions=tuple(grid.questions), scores=grid.scores) for name, grid in grids.items()},
        tallies=tallies,
        remarks=(
            *([_IN_BATCHES] if manifest.transport == "batch" else []),
            *(remark for grid in grids.values() for remark in grid.remarks),
            *map(visible, remarks),
        ),
    )


class _Grid:
    """One benchmark's scores as they come in; NaN until a call is scored."""

    def __init__(
        self, benchmark: AuditedBenchmark, audit: AuditManifest, places: AuditPlaces, stack: ExitStack
    ) -> None:
        name = benchmark.name
        material = read_material(places, name)
        changed = changed_cases(benchmark, material)
        if changed:
            raise AuditError(f"{changed[0]} changed since the audit {audit.id} began; check out its commit")
        if benchmark.metric not in material.component.metrics:
            raise AuditError(f"'{name}' no longer declares {benchmark.metric}, by which the audit {audit.id} scores it")
        shape = (len(audit.models), len(audit.scenarios), len(benchmark.cases), audit.replicates)
        self.scores: NDArray[np.float32] = np.full(shape, np.nan, dtype=np.float32)
        self.questions = {case: place for place, case in enumerate(benchmark.cases)}
        declared = material.component.digests["datasets"] == benchmark.digests.get("datasets")
        self.remarks = [] if declared else [f"'{name}' compares answers otherwise than when the audit began"]
        self.remarks += benchmark.left_out
        self._metric = benchmark.metric
        self._scenarios = {scenario: place for place, scenario in enumerate(audit.scenarios)}
        cases = [material.cases[case] for case in benchmark.cases]
        calls = len(audit.models) * len(audit.scenarios) * len(cases) * audit.replicates
        scores = stack.enter_context(open_scores(material.component, cases, calls))
        self._scorer = Scorer(material.component, cases, audit.replicates, scores)

    def begin(self, replicate: Replicate, case: str) -> None:
        """Begin to score one call."""
        if replicate.completion is not None and replicate.failure is None:
            self._scorer.begin(case, replicate.completion.text)

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
    audits: list[AuditManifest] = []
    for folder in folders:
        paths = sorted(folder.rglob(AUDIT))
        if not paths:
            raise AuditError(f"{folder} holds no audit: there is no {AUDIT} in it")
        for path in paths:
            audits.append(read_audit_manifest(path))
            if audits[-1] != audits[0]:
                raise AuditError(
                    f"{path.parent} is of the audit {audits[-1].id}, or asks otherwise than {audits[0].id}"
                )
    return audits[0]


def _runs_by_model(
    folders: Iterable[Path], audit: AuditManifest, leave_out: Callable[[str], None] | None
) -> dict[str, list[tuple[Path, Manifest]]]:
    """Read every run below the folders, by model in the audit's order.

    `leave_out` is told of every run that is not the audit's; without it such a run raises AuditError.
    """
    runs: dict[str, list[tuple[Path, Manifest]]] = {model_id: [] for model_id in audit.models}
    for path in sorted(path for folder in folders for path in folder.rglob(MANIFEST)):
        try:
            run = _read_run(path.parent, audit)
        except (AuditError, RunError) as problem:
            if leave_out is None:
                raise
            leave_out(f"left out: {problem}")
            continue
        runs[run.model_id].append((path.parent, run))
    return runs


def _read_run(folder: Path, audit: AuditManifest) -> Manifest:
    """Read the manifest of a run; raise AuditError if it differs from the audit, RunError if it is unreadable."""
    for name in (MANIFEST, ANSWERS):
        if os.path.lexists(folder / name) and not is_own_file(folder / name):
            raise AuditError(f"{folder / name} is not a regular file")
    run = read_manifest(folder)
    if run.audit != audit.id:
        whose = f"the audit {run.audit}" if run.audit else f"'{run.skill}'"
        raise AuditError(f"{folder} is a run of {whose}, not of the audit {audit.id}")
    part = None if run.shard is None else Shard.parse(run.shard)
    planned = audit.run(run.model_id, run.provider, audit.models.get(run.model_id, "none"), part)
    fields = Manifest.model_fields.keys() - {"evaluator_version", *TOLD_LATER}  # the first may have been upgraded since
    wrong = sorted(name for name in fields if getattr(run, name) != getattr(planned, name))
    if wrong:
        raise AuditError(f"{folder} was not run on what {AUDIT} of the audit {audit.id} says: {', '.join(wrong)}")
    return run


def _answers(folder: Path, run: Manifest, remarks: list[str]) -> Iterator[Replicate]:
    """Yield the answers of a run as far as they can be read, and remark on the rest."""
    strangers = 0
    try:
        for replicate in read_answers(folder, remarks.append):
            strangers += not run.asks(replicate.call)
            yield replicate
    except RunError as problem:
        remarks.append(str(problem))
    if strangers:
        remarks.append(f"{folder}: {counted(strangers, 'answer')} left out, of calls that were not planned")
