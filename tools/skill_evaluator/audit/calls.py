"""The calls of an audit: make them (`audit run`), read them, and score their outputs."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from skill_evaluator.audit.cube import Cube, Outcomes, cube_of_outcomes, without_gaps
from skill_evaluator.audit.manifest import (
    AUDIT,
    RUNS,
    AuditedBenchmark,
    AuditManifest,
    DrawnAudit,
    changed_cases,
    read_audit_manifest,
    read_benchmark,
)
from skill_evaluator.audit.request import AuditFolders, Missing
from skill_evaluator.display import visible
from skill_evaluator.errors import AuditError, RunError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.config import load_models
from skill_evaluator.library.options import FOLDERS, words_of
from skill_evaluator.providers import kinds_of
from skill_evaluator.records.record import ANSWERED, NOT_RUN, SCORED, strict_score
from skill_evaluator.runner import journal
from skill_evaluator.runner.engine import make_calls
from skill_evaluator.runner.prices import Priced, call_cost, hit_rate, price_of
from skill_evaluator.runner.schedule import Budget, Replicate
from skill_evaluator.runner.session import Session, Watch, with_keys
from skill_evaluator.scoring.scorer import Scored, open_scorer, wait_for
from skill_evaluator.stats import by_key, quantile, total_or_none
from skill_evaluator.text import counted

_IN_BATCHES = "the calls were made in batches (transport: batch): half the cost of direct calls, and no latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTally:
    """A model's calls, counted by outcome, with cost, cache hit rate and median latency. An unknown value is None."""

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
        """The cost of all calls ÷ the number of outputs, in USD. None if the cost is unknown or there is no output."""
        return None if self.cost_usd is None or not self.answered else self.cost_usd / self.answered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatheredAudit:
    """An audit with the scores of its outputs by benchmark, its call tallies by model, and warnings (`remarks`)."""

    manifest: AuditManifest
    outcomes: Mapping[str, Outcomes]
    tallies: Mapping[str, CallTally]
    remarks: tuple[str, ...]

    @property
    def absent(self) -> list[str]:
        """The models without any output."""
        return [name for name in self.manifest.models if not self.tallies[name].answered]

    def cube(self, weights: Mapping[str, float], missing: Missing) -> Cube:
        """Return the scores of the models that have an output. Raise AuditError if no model has an output.

        If scores are missing, exclude the incomplete models, scenarios or questions as `missing` says. If it is
        "refuse", raise AuditError. `weights` has weights by benchmark, which replace the weights in the manifest.
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
    """Read and score every run of an audit. Raise AuditError if `folder` has no audit, or its runs or cases changed."""
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
        tallies = {}
        for m, model_id in enumerate(manifest.models):
            journals = [(runs[model_id][1], _answers(*runs[model_id], remarks))] if model_id in runs else []
            answers = journal.merged_outcomes(journals).values()
            by_benchmark = by_key((replicate.call.case_id.partition("/")[0], replicate) for replicate in answers)
            outcomes = Counter[str]()
            for name, replicates in by_benchmark.items():
                outcomes += grids[name].add(m, replicates)
            planned = manifest.calls_per_model if journals else 0
            tallies[model_id] = CallTally.count(planned, outcomes, answers, prices.get(model_id))
    return GatheredAudit(
        manifest=manifest,
        outcomes={name: grid.outcomes for name, grid in grids.items()},
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
        name, self._metric = benchmark.name, benchmark.metric
        labelled = read_benchmark(folders, name)
        changed = changed_cases(benchmark, labelled)
        if changed:
            raise AuditError(f"{changed[0]} changed since the audit {audit.id} began; check out the audit's commit")
        if self._metric not in labelled.component.scoring.metrics:
            raise AuditError(
                f"benchmark '{name}' no longer declares {self._metric}, the metric of the audit {audit.id}; "
                "add it to the metrics of the benchmark"
            )
        self._scenarios, questions = list(audit.scenarios), tuple(benchmark.cases)
        shape = (len(audit.models), len(self._scenarios), len(questions), audit.replicates)
        self.outcomes = Outcomes(questions=questions, scores=np.full(shape, np.nan, dtype=np.float32))
        declared = labelled.component.digests["datasets"] == benchmark.digests.get("datasets")
        self.remarks = [] if declared else [f"the declarations of benchmark '{name}' changed since the audit began"]
        self.remarks += benchmark.left_out
        cases = [labelled.cases[case] for case in benchmark.cases]
        self._scorer = stack.enter_context(open_scorer(labelled.component, cases, self.outcomes.scores.size))
        self._scored: dict[tuple[str, str], Scored | Future[Scored]] = {}  # key: case id and text

    def add(self, model: int, replicates: Sequence[Replicate]) -> Counter[str]:
        """Store the scores of a model's calls (`model` is its index). Return the number of calls by outcome."""
        cells = [replicate.call.case_id.split("/")[1:] for replicate in replicates]
        usable = [replicate.completion if replicate.failure is None else None for replicate in replicates]
        for (_, case), completion in zip(cells, usable, strict=True):
            if completion is not None and (case, completion.text) not in self._scored:
                self._scored[case, completion.text] = self._scorer.begin(case, completion.text)
        outcomes, indices = Counter[str](), {case: index for index, case in enumerate(self.outcomes.questions)}
        for (scenario, case), completion, replicate in zip(cells, usable, replicates, strict=True):
            kind, score = replicate.failure.kind if replicate.failure else NOT_RUN, None
            if completion is not None:
                scored = wait_for(self._scored[case, completion.text])
                kind, score = scored.outcome, scored.metrics[self._metric]
            value = strict_score(kind, score)
            cell = model, self._scenarios.index(scenario), indices[case], replicate.call.replicate
            self.outcomes.scores[cell] = np.nan if value is None else value
            outcomes[kind] += 1
        return outcomes


def read_runs(folder: Path, audit: AuditManifest) -> dict[str, tuple[Path, journal.Manifest]]:
    """Return (folder, manifest) of each run by model id. Raise AuditError if a run does not match the audit's plan."""
    runs = {}
    for path in sorted(path.parent for path in folder.glob(f"{RUNS}/*/{journal.MANIFEST}")):
        run = journal.read_manifest(path)
        if run.audit != audit.id:
            owner = f"the audit {run.audit}" if run.audit else f"'{run.skill}'"
            raise AuditError(f"{path} is a run of {owner}, not of the audit {audit.id}; move it away")
        planned = audit.run(run.model_id, run.provider, audit.models.get(run.model_id, "none"))
        fields = journal.Manifest.model_fields.keys() - {"evaluator_version", *journal.SET_DURING_RUN}
        changed = sorted(name for name in fields if getattr(run, name) != getattr(planned, name))
        if changed:
            names = ", ".join(changed)
            raise AuditError(f"the run {path} does not match {AUDIT} in {names}; start a new audit")
        runs[run.model_id] = path, run
    return runs


def _answers(folder: Path, run: journal.Manifest, remarks: list[str]) -> Iterator[Replicate]:
    """Yield the replicates in a run's journal, even unplanned ones. Append the journal's problems to `remarks`."""
    unplanned = 0
    try:
        for replicate in journal.read_journal(folder, remarks):
            unplanned += not run.includes(replicate.call)
            yield replicate
    except RunError as problem:
        remarks.append(str(problem))
    if unplanned:
        remarks.append(f"{folder}: ignored {counted(unplanned, 'line')} of calls that were not planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResults:
    """The result of `audit run`. `tallies` counts all calls of the audit by model, including those of earlier commands.

    `stopped` has the models that this command calls. The value is the reason why calls were not made, or None.
    """

    drawn: DrawnAudit
    tallies: Mapping[str, CallTally]
    stopped: Mapping[str, str | None]

    def is_complete(self, model_id: str) -> bool:
        """Return whether all calls of a model were made, and enough of them (`required_coverage`) have an output."""
        tally, required = self.tallies[model_id], self.drawn.configuration.settings.required_coverage
        return self.stopped[model_id] is None and tally.answered >= required * tally.planned

    @property
    def complete(self) -> bool:
        """Whether each model of this command has a key, and the calls of each model are complete."""
        has_all = len(self.stopped) == len(self.drawn.configuration.models)
        return has_all and all(map(self.is_complete, self.stopped))

    @property
    def next_step(self) -> str:
        """The command to run next, with a label: `report: …` or `to continue: …`.

        The label is `report` if each model of this command has a key and all calls of these models have an output.
        """
        request, folder = self.drawn.options, self.drawn.folder
        unanswered = sum(self.tallies[name].planned - self.tallies[name].answered for name in self.stopped)
        if self.complete and not unanswered:
            command = ["skill-evaluator", "audit", "report", str(folder), *words_of(request)]
            return f"report: {shlex.join(command)}"
        audit = folder.name if folder.parent == request.audits else str(folder)
        command = ["skill-evaluator", "audit", "run", "--run", audit]
        for model_id in request.models:
            if model_id in self.drawn.manifest.models:  # a model without a key is not part of the audit
                command += ["--model", model_id]
        reasons = [reason or "" for reason in self.stopped.values()]
        if any("max_calls" in reason for reason in reasons):
            request = replace(request, max_calls=unanswered)
        if any("max_cost" in reason for reason in reasons):  # suggest a cap that covers the whole audit
            request = replace(request, max_cost=round((self.drawn.total.cost_upper_usd or 0.0) + 0.01, 2))
        command += words_of(request, "audits", *FOLDERS, "concurrency", "max_cost", "max_calls")
        return f"to continue: {shlex.join(command)}"


def run_audit(drawn: DrawnAudit, watch: Watch) -> AuditResults:
    """Write a new audit's audit.json and make the missing calls. Return the counts of all calls of the audit."""
    audit, configuration, folder, request = drawn.manifest, drawn.configuration, drawn.folder, drawn.options
    earlier = read_runs(folder, audit)
    runs = []
    for model in with_keys(configuration.models, configuration).values():
        planned = audit.run(model.id, model.provider, journal.settings_digest(model))
        path, manifest = earlier.get(model.id, (folder / RUNS / planned.run_id, planned))
        runs.append(journal.Run(model=model, manifest=manifest, folder=path))
    journal.check_writable(folder / RUNS, "--audits DIR")
    if not (folder / AUDIT).exists():
        replace_text(folder / AUDIT, json_text(audit.model_dump(mode="json")))
    max_cost = audit.max_cost_usd if request.max_cost is None else request.max_cost
    session = Session(
        configuration=configuration,
        watch=watch,
        budget=Budget(max_cost, request.max_calls),
        concurrency=request.concurrency,
    )
    requests = drawn.requests()
    failures = make_calls(session, [(run, requests) for run in runs])
    stopped = {run.model.id: failures[run.manifest.run_id] for run in runs}
    return AuditResults(
        drawn=drawn,
        tallies=gather(folder, request).tallies,
        stopped={name: None if failure is None else str(failure) for name, failure in stopped.items()},
    )
