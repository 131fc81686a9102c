"""audit.json, what a stability audit asks, and audit-plan.json, the same cut into jobs of CI.

Models × scenarios × benchmarks × cases × replicates, each with its digest. A call's case is a cell, named
`<benchmark>/<scenario>/<case>`. Running, planning for CI and gathering go by these files.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from skill_evaluator import __version__
from skill_evaluator.ci.matrix import Cut, environment_of, key_variable_of, shard_counts
from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, json_text, read_versioned, replace_text
from skill_evaluator.identifiers import (
    CaseId,
    Commit,
    ComponentName,
    Digest,
    FileName,
    Label,
    ModelId,
    ReplicateCount,
    RunId,
    ShardText,
    Timestamp,
    Usd,
    VersionText,
)
from skill_evaluator.library.config import Jobs, Limits, Model
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.runner.journal import Manifest, Transport
from skill_evaluator.runner.prices import InputSize, estimate
from skill_evaluator.runner.runs import run_id_of, slug
from skill_evaluator.runner.schedule import Shard
from skill_evaluator.text import counted, digest, listed

PLAN_VERSION = 1
AUDIT = "audit.json"
RUNS = "runs"  # beside it: one folder a model, or a shard of one
MANIFEST_VERSION = 1
FEWEST_MODELS, FEWEST_SCENARIOS, FEWEST_QUESTIONS, FEWEST_REPLICATES = 4, 6, 50, 2  # below them a reader is warned


class AuditedBenchmark(FrozenModel):
    """A component as it is asked: `cases` (id → digest) were drawn from the `of` that have a ground truth.

    `not_applicable`: cases that no model is asked, since one cannot take them, and why: models are compared on equal
    questions alone. `digests`: of its prompt, schema and declarations. `metric`: what an answer's score is.
    """

    name: ComponentName
    version: VersionText
    metric: Label
    weight: PositiveFloat
    of: PositiveInt
    unlabelled: NonNegativeInt = 0
    not_applicable: dict[CaseId, Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    cases: dict[CaseId, Digest] = Field(min_length=1)
    digests: dict[str, Digest]

    @property
    def left_out(self) -> list[str]:
        """A sentence on the cases that no model is asked since some model cannot take them; none without such cases."""
        named = listed([f"{case_id} ({why})" for case_id, why in self.not_applicable.items()])
        return [f"left out of '{self.name}' for every model, not applicable: {named}"] if named else []

    @property
    def shaping(self) -> dict[str, str]:
        """The digests of what shapes the answers: the declarations, left out here, only say how answers are scored."""
        return {name: value for name, value in sorted(self.digests.items()) if name != "datasets"}

    def cell_digest(self, case: str, template: str) -> str:
        """Return the digest of all that shapes the answers to a case under a scenario's template (as digest)."""
        shaping = (f"{name} {value}" for name, value in self.shaping.items())
        return digest("\n".join((self.cases[case], template, *shaping)))


class AuditManifest(FrozenModel):
    """The file audit.json. `models`: by id, a digest of the model's settings; `scenarios`: by name, of its template.

    `questions`: how many were to be drawn of each benchmark; None: all. `commit`: of the components. `transport`: each
    call by itself, or many in a batch, of which no latency is known. `max_cost_usd`: the cap it was begun with.
    """

    manifest_version: int = MANIFEST_VERSION
    id: RunId
    created: Timestamp
    commit: Commit | None = None
    seed: int
    replicates: ReplicateCount
    questions: PositiveInt | None
    models: dict[ModelId, Digest] = Field(min_length=1)
    scenarios: dict[Label, Digest] = Field(min_length=1)
    benchmarks: list[AuditedBenchmark] = Field(min_length=1)
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    max_cost_usd: Usd | None = Field(default=None, exclude_if=lambda cap: cap is None)
    evaluator_version: Label

    @property
    def questions_in_all(self) -> int:
        """The number of questions of all benchmarks together."""
        return sum(len(benchmark.cases) for benchmark in self.benchmarks)

    @property
    def calls_per_model(self) -> int:
        """The number of calls that each model is asked for."""
        return self.questions_in_all * len(self.scenarios) * self.replicates

    def cells(self, shard: Shard | None = None) -> dict[str, str]:
        """Return the digest of all that shapes a cell's answers, by cell, in the order in which cells are asked.

        A question is asked in every scenario before the next one is, and a shard has whole questions: wherever an
        audit is interrupted, the scenarios can be compared. The first question of every benchmark comes first, then
        the second, and so on.
        """
        by_place = zip_longest(*([(benchmark, case) for case in benchmark.cases] for benchmark in self.benchmarks))
        questions = {
            f"{benchmark.name}/{case}": (benchmark, case)
            for place in by_place
            for benchmark, case in filter(None, place)
        }
        return {
            f"{benchmark.name}/{scenario}/{case}": benchmark.cell_digest(case, template)
            for name in (questions if shard is None else shard.of(list(questions)))
            for benchmark, case in (questions[name],)
            for scenario, template in self.scenarios.items()
        }

    def run(self, model_id: str, provider: str, settings: str, part: Shard | None) -> Manifest:
        """Return what the run of a model, or of a shard of it, is to do; `settings` is a digest of the model's."""
        return Manifest(
            run_id=run_id_of(self.id, "", model_id, part),
            created=self.created,
            skill="audit",
            skill_version=str(MANIFEST_VERSION),
            model_id=model_id,
            provider=provider,
            replicates=self.replicates,
            seed=self.seed,
            shard=str(part) if part else None,
            audit=self.id,
            cases=self.cells(part),
            digests={"settings": settings},
            evaluator_version=__version__,
            transport=self.transport,
        )

    @property
    def doubts(self) -> list[str]:
        """A sentence on each lack that makes an audit of this size tell little, and on what it leaves out."""
        fewest = min(self.benchmarks, key=lambda benchmark: len(benchmark.cases))
        sizes = (
            (len(self.models), FEWEST_MODELS, "model", "", "quartiles are hardly more than an order"),
            (len(self.scenarios), FEWEST_SCENARIOS, "scenario", "", "a fluctuation is known only roughly"),
            (len(fewest.cases), FEWEST_QUESTIONS, "question", f" of '{fewest.name}'", "single questions weigh much"),
            (self.replicates, FEWEST_REPLICATES, "replicate", "", "how a model varies by itself is not known"),
        )
        sentences = [
            f"{counted(size, what)}{where}: below {least} {lack}"
            for size, least, what, where, lack in sizes
            if size < least
        ]
        for benchmark in self.benchmarks:
            if len(benchmark.cases) < (self.questions or 0):
                present = f"{counted(len(benchmark.cases), 'question')} of '{benchmark.name}'"
                sentences.append(f"{present}: {self.questions} were asked for, and it has no more")
        for benchmark in self.benchmarks:
            if benchmark.unlabelled:
                left_out = f"{counted(benchmark.unlabelled, 'case')} of '{benchmark.name}'"
                sentences.append(f"{left_out} left out: no ground truth")
            sentences += benchmark.left_out
        return sentences


def parts_of(cell: str) -> tuple[str, str, str]:
    """Return benchmark, scenario and case of a cell.

    >>> parts_of("geography/bare/q-17")
    ('geography', 'bare', 'q-17')
    """
    benchmark, scenario, case = cell.split("/")
    return benchmark, scenario, case


def write_manifest(folder: Path, manifest: AuditManifest) -> None:
    """Write what an audit asks into its folder; raise StorageError."""
    replace_text(folder / AUDIT, json_text(manifest.model_dump(mode="json")))


def read_audit_manifest(path: Path) -> AuditManifest:
    """Read an audit.json; raise AuditError when it is broken or of a newer version."""
    return read_versioned(AuditManifest, path, "manifest_version", MANIFEST_VERSION, AuditError)


class AuditJob(FrozenModel):
    """One job: a model, or a shard of its questions. `max_cost_usd`: its part of the plan's cap."""

    id: FileName
    model_id: ModelId
    provider: Label
    environment: Label
    key_variable: str
    shard: ShardText | None
    calls: NonNegativeInt
    cost_upper_usd: Usd | None
    max_cost_usd: Usd | None = None
    limits: Limits | None = None


class AuditPlan(FrozenModel):
    """The file audit-plan.json."""

    plan_version: int = PLAN_VERSION
    reason: str = ""
    audit: AuditManifest
    jobs: list[AuditJob]

    def max_cost_of(self, models: Sequence[str], shard: str | None) -> float | None:
        """Return what the jobs of these models, or those of this shard, may cost together; None: without a cap."""
        mine = [job for job in self.jobs if (not models or job.model_id in models) and shard in (None, job.shard)]
        caps = [job.max_cost_usd for job in mine if job.max_cost_usd is not None]
        return sum(caps) if caps else None


def audit_jobs(
    audit: AuditManifest,
    models: Iterable[Model],
    kinds: Mapping[str, ProviderKind],
    sizes: Mapping[str, InputSize],
    jobs: Jobs,
) -> list[AuditJob]:
    """Cut an audit into jobs; raise AuditError when the models alone are too many. `sizes`: by cell."""
    models = list(models)
    if len(models) > jobs.max_jobs:
        raise AuditError(f"{len(models)} models are more than the {jobs.max_jobs} jobs a run may have; name fewer")
    cut = Cut(pieces=audit.questions_in_all, calls_each=len(audit.scenarios) * audit.replicates)
    counts = shard_counts([cut] * len(models), jobs)
    made = []
    for model, count in zip(models, counts, strict=True):
        kind = kinds[model.provider]
        for index in range(1, count + 1):
            shard = Shard(index, count) if count > 1 else None
            size = estimate({cell: sizes[cell] for cell in audit.cells(shard)}, model, kind, audit.replicates)
            job = AuditJob(
                id=f"audit@{slug(model.id)}" + (f"@{index}of{count}" if shard else ""),
                model_id=model.id,
                provider=model.provider,
                environment=environment_of(model, kind),
                key_variable=key_variable_of(model, kind),
                shard=None if shard is None else str(shard),
                calls=size.calls,
                cost_upper_usd=size.cost_upper_usd,
            )
            made.append(job)
    return made


def read_audit_plan(path: Path) -> AuditPlan:
    """Read a plan; raise AuditError when it is broken or of a newer version."""
    return read_versioned(AuditPlan, path, "plan_version", PLAN_VERSION, AuditError)
