"""audit-plan.json: an audit cut into jobs of CI, one a model or a shard of its questions.

Written once by `audit plan`; the jobs and the report go by it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import NonNegativeFloat, NonNegativeInt

from skill_evaluator.audit.run.manifest import AuditManifest
from skill_evaluator.ci.matrix import Cut, environment_of, key_variable_of, shard_counts
from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.identifiers import FileName, Label, ModelId, ShardText
from skill_evaluator.library.config import Jobs, Limits, Model
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.runner.prices import InputSize, estimate
from skill_evaluator.runner.runs import slug
from skill_evaluator.runner.schedule import Shard

PLAN_VERSION = 1


class AuditJob(FrozenModel):
    """One job: a model, or a shard of its questions. `max_cost_usd`: its part of the plan's cap."""

    id: FileName
    model_id: ModelId
    provider: Label
    environment: Label
    key_variable: str
    shard: ShardText | None
    calls: NonNegativeInt
    cost_upper_usd: NonNegativeFloat | None
    max_cost_usd: NonNegativeFloat | None = None
    limits: Limits | None = None


class AuditPlan(FrozenModel):
    """The file audit-plan.json."""

    plan_version: int = PLAN_VERSION
    reason: str = ""
    audit: AuditManifest
    jobs: list[AuditJob]

    def refuse_other_part(self, models: Sequence[str], shard: str | None) -> None:
        """Raise AuditError for a shard that is none of the plan's."""
        planned = {job.shard for job in self.jobs if not models or job.model_id in models}
        if shard is not None and shard not in planned:
            raise AuditError(f"--shard {shard} is no part of the audit {self.audit.id} as it was planned")

    def max_cost_of(self, models: Sequence[str], shard: str | None) -> float | None:
        """Return what the jobs of these models, or those of this shard, may cost together; None: without a cap."""
        caps = [
            job.max_cost_usd
            for job in self.jobs
            if (not models or job.model_id in models) and (shard is None or job.shard == shard)
        ]
        given = [cap for cap in caps if cap is not None]
        return sum(given) if given else None


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
