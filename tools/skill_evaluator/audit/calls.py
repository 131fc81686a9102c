"""The calls of an audit: make them (`audit run`), read them, and score their outputs."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube import Cube, Outcomes, cube_of_outcomes, without_gaps
from skill_evaluator.audit.drawing import changed_cases, draw_audit, read_benchmark
from skill_evaluator.audit.manifest import AUDIT, RUNS, AuditedBenchmark, AuditManifest, read_audit_manifest
from skill_evaluator.audit.request import AuditFolders, AuditRunRequest, Missing
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError, RunError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.config import load_models
from skill_evaluator.library.options import FOLDERS, words_of
from skill_evaluator.providers import kinds_of
from skill_evaluator.records.record import ANSWERED, NOT_RUN, SCORED, strict_score
from skill_evaluator.runner.engine import CallHandlers
from skill_evaluator.runner.journal import (
    MANIFEST,
    SET_DURING_RUN,
    Manifest,
    Run,
    check_writable,
    merged_outcomes,
    read_answers,
    read_manifest,
    settings_digest,
)
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import Priced, call_cost, hit_rate, price_of, sum_of
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.runner.session import Session, Watch, with_keys
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import quantile, total_or_none
from skill_evaluator.text import counted

_IN_BATCHES = "the calls were made in batches (transport: batch): half the cost of direct calls, and no latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTally:
    """A model's calls. `outcomes` counts them by kind, such as `scored`. `latency_s` is the median. None: unknown."""

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
        """Build the tally of a model's calls. `priced` is None if the model is no longer in models.yaml."""
        answered = [(call.completion, call.latency_s) for call in replicates if call.completion is not None]
        return cls(
            planned=planned,
            outcomes=dict(sorted(outcomes.items())),
            cost_usd=total_or_none(call_cost(*priced, call) if priced else None for call in replicates),
            hit_rate=hit_rate([completion.usage for completion, _ in answered]),
            latency_s=quantile([latency_s for _, latency_s in answered if latency_s is not None], 0.5),
            served_models=tuple(sorted({call.served_model for call, _ in answered if call.served_model})),
        )

    @property
    def answered(self) -> int:
        """The number of calls with an output, including unparseable, refused and truncated outputs."""
        return sum(count for kind, count in self.outcomes.items() if kind in ANSWERED)

    @property
    def failures(self) -> dict[str, int]:
        """The number of calls with an outcome other than `scored`, by kind."""
        return {kind: count for kind, count in sorted(self.outcomes.items()) if kind != SCORED}

    @property
    def unmade(self) -> int:
        """The number of planned calls without an outcome."""
        return self.planned - sum(self.outcomes.values())

    @property
    def usd_per_output(self) -> float | None:
        """The cost of all calls in USD per output. None if the cost is unknown or there is no output."""
        return None if self.cost_usd is None or not self.answered else self.cost_usd / self.answered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatheredAudit:
    """An audit with the scores of its outputs by benchmark, its call tallies by model, and warnings (`remarks`)."""

    manifest: AuditManifest
    outcomes: Mapping[str, Outcomes]
    tallies: Mapping[str, CallTally]
    remarks: tuple[str, ...] = ()

    @property
    def absent(self) -> list[str]:
        """The models without any output."""
        return [name for name in self.manifest.models if not self.tallies[name].answered]

    def cube(self, weights: Mapping[str, float], missing: Missing) -> Cube:
        """Build the cube of the models with outputs, and treat missing scores as in `without_gaps`.

        `weights` by benchmark replace those of the manifest. Raise AuditError if no model has an output.
        """
        models = [name for name in self.manifest.models if self.tallies[name].answered]
        if not models:
            raise AuditError(
                f"no model has an output yet; continue: skill-evaluator audit run --run {self.manifest.id}"
            )
        scenarios = list(self.manifest.scenarios)
        all_weights = {benchmark.name: benchmark.weight for benchmark in self.manifest.benchmarks} | dict(weights)
        cube = cube_of_outcomes(list(self.manifest.models), scenarios, self.outcomes, weights=all_weights)
        return without_gaps(cube.select(models, scenarios), missing, f"the audit {self.manifest.id}")


def gather(folder: Path, folders: AuditFolders) -> GatheredAudit:
    """Read and score every run of an audit. Raise AuditError if its folder, cases or runs do not match its manifest."""
    if not (folder / AUDIT).is_file():
        raise AuditError(f"{folder} is not an audit: it has no {AUDIT}")
    manifest = read_audit_manifest(folder / AUDIT)
    runs = read_runs(folder, manifest)
    remarks: list[str] = []
    with ExitStack() as stack:
        grids = {benchmark.name: _Grid(benchmark, manifest, folders, stack) for benchmark in manifest.benchmarks}
        models = load_models(folders.config, folders.limits)
        kinds = kinds_of(models, str(folders.config / "models.yaml"))
        prices = {model.id: (model, price_of(model, kinds[model.provider])) for model in models}
        tallies: dict[str, CallTally] = {}
        for m, model_id in enumerate(manifest.models):
            journals = []
            if model_id in runs:
                path, run = runs[model_id]
                journals = [(run, _answers(path, run, remarks))]
            answers = merged_outcomes(journals)
            for replicate in answers.values():
                benchmark, _, case = replicate.call.case_id.split("/")
                grids[benchmark].begin(replicate, case)
            outcomes: Counter[str] = Counter()
            for replicate in answers.values():
                benchmark, scenario, case = replicate.call.case_id.split("/")
                outcomes[grids[benchmark].score(replicate, m, scenario, case)] += 1
            planned = manifest.calls_per_model if journals else 0
            tallies[model_id] = CallTally.count(planned, outcomes, answers.values(), prices.get(model_id))
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
    """The scores of an audit on one benchmark. The score of a call without an output is NaN."""

    def __init__(
        self, benchmark: AuditedBenchmark, audit: AuditManifest, folders: AuditFolders, stack: ExitStack
    ) -> None:
        name = benchmark.name
        labelled = read_benchmark(folders, name)
        changed = changed_cases(benchmark, labelled)
        if changed:
            raise AuditError(f"{changed[0]} changed since the audit {audit.id} began; check out its commit")
        if benchmark.metric not in labelled.component.metrics:
            raise AuditError(
                f"benchmark '{name}' no longer declares {benchmark.metric}, the metric of the audit {audit.id}"
            )
        shape = (len(audit.models), len(audit.scenarios), len(benchmark.cases), audit.replicates)
        self.scores: NDArray[np.float32] = np.full(shape, np.nan, dtype=np.float32)
        self.questions = {case: place for place, case in enumerate(benchmark.cases)}
        declared = labelled.component.digests["datasets"] == benchmark.digests.get("datasets")
        self.remarks = [] if declared else [f"the declarations of benchmark '{name}' changed since the audit began"]
        self.remarks += benchmark.left_out
        self._metric = benchmark.metric
        self._scenarios = {scenario: place for place, scenario in enumerate(audit.scenarios)}
        cases = [labelled.cases[case] for case in benchmark.cases]
        calls = len(audit.models) * len(audit.scenarios) * len(cases) * audit.replicates
        scores = stack.enter_context(open_scores(labelled.component, cases, calls))
        self._scorer = Scorer(labelled.component, cases, audit.replicates, scores)

    def begin(self, replicate: Replicate, case: str) -> None:
        if replicate.completion is not None and replicate.failure is None:
            self._scorer.begin(case, replicate.completion.text)

    def score(self, replicate: Replicate, model: int, scenario: str, case: str) -> str:
        """Store the score of a call. Return the kind of its outcome, such as `scored`."""
        if replicate.completion is not None and replicate.failure is None:
            scored = self._scorer.scored(case, replicate.completion.text)
            kind, score = scored.outcome, scored.metrics[self._metric]
        else:
            kind, score = replicate.failure.kind if replicate.failure else NOT_RUN, None
        value = strict_score(kind, score)
        cell = model, self._scenarios[scenario], self.questions[case], replicate.call.replicate
        self.scores[cell] = np.nan if value is None else value
        return kind


def read_runs(folder: Path, audit: AuditManifest) -> dict[str, tuple[Path, Manifest]]:
    """Return (folder, manifest) of each run by model id. Raise AuditError if a run is not as the audit planned it."""
    runs = {}
    for path in sorted(path.parent for path in folder.glob(f"{RUNS}/*/{MANIFEST}")):
        run = read_manifest(path)
        if run.audit != audit.id:
            owner = f"the audit {run.audit}" if run.audit else f"'{run.skill}'"
            raise AuditError(f"{path} is a run of {owner}, not of the audit {audit.id}")
        planned = audit.run(run.model_id, run.provider, audit.models.get(run.model_id, "none"))
        fields = Manifest.model_fields.keys() - {"evaluator_version", *SET_DURING_RUN}
        changed = sorted(name for name in fields if getattr(run, name) != getattr(planned, name))
        if changed:
            raise AuditError(f"{path} differs from {AUDIT} of the audit {audit.id} in: {', '.join(changed)}")
        runs[run.model_id] = path, run
    return runs


def _answers(folder: Path, run: Manifest, remarks: list[str]) -> Iterator[Replicate]:
    """Yield the replicates in a run's journal, even unplanned ones. Append the journal's problems to `remarks`."""
    unplanned = 0
    try:
        for replicate in read_answers(folder, remarks.append):
            unplanned += not run.includes(replicate.call)
            yield replicate
    except RunError as problem:
        remarks.append(str(problem))
    if unplanned:
        remarks.append(f"{folder}: ignored {counted(unplanned, 'line')} of calls that were not planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """The calls of one model. `stopped`: why some were not made, or None. `complete`: not stopped, enough outputs."""

    model_id: str
    tally: CallTally
    stopped: str | None
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResults:
    """An audit and the runs of this request. `models` is the number of models to call; one without a key has no run."""

    request: AuditRunRequest
    audit: AuditManifest
    folder: Path
    models: int
    runs: Sequence[AuditRun]

    @property
    def complete(self) -> bool:
        """Whether every model to call has a complete run."""
        return len(self.runs) == self.models and all(run.complete for run in self.runs)

    @property
    def next_step(self) -> str:
        """The next command after its purpose: `report: <command>` or `to continue: <command>`."""
        request = self.request
        if self.complete and all(run.tally.answered == run.tally.planned for run in self.runs):
            command = ["skill-evaluator", "audit", "report", str(self.folder), *words_of(request)]
            return f"report: {shlex.join(command)}"
        audit = self.folder.name if self.folder.parent == request.audits else str(self.folder)
        command = ["skill-evaluator", "audit", "run", "--run", audit]
        for model_id in request.models:
            if model_id in self.audit.models:  # a model without a key is not part of the audit
                command += ["--model", model_id]
        if any("max_calls" in (run.stopped or "") for run in self.runs):
            request = replace(request, max_calls=sum(run.tally.planned - run.tally.answered for run in self.runs))
        command += words_of(request, "audits", *FOLDERS, "concurrency", "max_cost", "max_calls")
        return f"to continue: {shlex.join(command)}"


def run_audit(request: AuditRunRequest, *, watch: Watch) -> AuditResults:
    """Draw a new audit or resume one, and make its missing calls. Return the runs with their outcomes counted."""
    drawn, folder = draw_audit(request)
    audit, configuration = drawn.manifest, drawn.configuration
    earlier = read_runs(folder, audit)
    runs = []
    for model in with_keys(configuration.models, configuration).values():
        planned = audit.run(model.id, model.provider, settings_digest(model))
        path, manifest = earlier.get(model.id, (folder / RUNS / planned.run_id, planned))
        runs.append(Run(model=model, manifest=manifest, folder=path))
    check_writable(folder / RUNS, "--audits DIR")
    if not (folder / AUDIT).exists():
        replace_text(folder / AUDIT, json_text(audit.model_dump(mode="json")))
    max_cost = audit.max_cost_usd if request.max_cost is None else request.max_cost
    session = Session(
        configuration=configuration,
        watch=watch,
        budget=Budget(max_cost, request.max_calls),
        concurrency=request.concurrency,
    )
    failures = session.make_calls(runs, CallHandlers(request_for=drawn.request))
    tallies = gather(folder, request).tallies
    results = []
    for run in runs:
        tally, failure = tallies[run.model.id], failures[run.manifest.run_id]
        stopped = str(failure) if failure else None
        enough = tally.answered >= configuration.settings.required_coverage * tally.planned
        results.append(
            AuditRun(model_id=run.model.id, tally=tally, stopped=stopped, complete=stopped is None and enough)
        )
    if any("max_cost" in (run.stopped or "") for run in results):  # suggest a cap that covers the whole audit
        upper = sum_of(drawn.estimates()).cost_upper_usd or 0.0
        request = replace(request, max_cost=round(upper + 0.01, 2))
    return AuditResults(request=request, audit=audit, folder=folder, models=len(configuration.models), runs=results)
