"""What a comparison found, as files and programs get it: a frozen model whose JSON Schema is generated."""

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import Tier, VerdictName


class Scope(FrozenModel):
    """One question's answer: on these fixtures (n replicates), or beyond them (n cases).

    `p` is two-sided, `q` adjusted over the family. A drop of `detectable_drop` in this measure alone would have been
    beyond chance in the family with 80 % power; null: no drop would, whatever its size.
    """

    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    q: float | None = None
    n: int = 0
    detectable_drop: float | None = None
    verdict: VerdictName


class Waived(FrozenModel):
    """Somebody's acceptance of a regression, in force or expired."""

    reason: str
    expires: str
    in_force: bool


class MeasureResult(FrozenModel):
    """One metric or field. The keys of the scope that gates stand here too, for who reads one number."""

    metric: str
    kind: str
    tier: Tier
    tolerance: float
    baseline: float | None
    candidate: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    q: float | None
    n_cases: int
    detectable_drop: float | None
    verdict: VerdictName
    fixtures: Scope
    generalises: Scope
    waived: Waived | None = None
    profile_before: dict[str, int] | None = None
    profile_after: dict[str, int] | None = None


class CaseChange(FrozenModel):
    """A case whose primary metric moved beyond the tolerance: its mean before and after, and the fields that moved."""

    case_id: str
    before: float
    after: float
    fields: dict[str, str] = {}


class Cases(FrozenModel):
    """The cases that broke and were fixed, the largest change first, and those that were left out and why."""

    broke: list[CaseChange]
    fixed: list[CaseChange]
    left_out: dict[str, str]


class RunSummary(FrozenModel):
    """What a run cost and how it went."""

    run_id: str
    skill_version: str
    served_model: str | None
    coverage: float
    replicates: int
    failures: dict[str, int]
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None


class ModelVerdict(FrozenModel):
    """One model: the verdict on these fixtures and beyond them, on its agreement with itself, and why."""

    model_id: str
    verdict: VerdictName
    generalises: VerdictName
    stability: VerdictName
    coverage: float
    metrics: list[MeasureResult]
    fields: list[MeasureResult]
    cases: Cases
    baseline: RunSummary | None
    candidate: RunSummary
    reasons: list[str]


class ComparisonResult(FrozenModel):
    """A component: the verdict is that of its worst model. `gate` says which question decides.

    `left_out`: models that have no run to judge, and why; they are in no verdict.
    """

    skill: str
    verdict: VerdictName
    generalises: VerdictName
    gate: str
    alpha: float
    family: str
    models: list[ModelVerdict]
    left_out: dict[str, str] = {}
