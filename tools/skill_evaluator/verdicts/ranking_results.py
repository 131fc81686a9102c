"""The result of ranking models, as people's reports and other programs get it.

Frozen models without a decision in them; their JSON Schema is generated.
"""

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.served import Served
from skill_evaluator.verdicts.results import Scope


class Score(FrozenModel):
    """The strict mean over the cases that all models share, and its 95 % interval with the case as unit."""

    strict_mean: float | None
    ci95: tuple[float, float] | None
    n_cases: int


class Dominance(FrozenModel):
    """A cheaper model that is at least as good on every metric.

    `shown`: on each of them a lead of the dearer model beyond the tolerance is excluded with 95 % confidence. Else the
    figures are so, and no more is known.
    """

    by: str
    shown: bool


class Contrast(FrozenModel):
    """Two models on the same cases by the primary metric: the lower one's score minus the higher one's.

    `q` is adjusted over the family. They are told apart where the lower one is worse beyond chance, and a drop larger
    than the tolerated one is not excluded; or it is better on cases that only these two have.
    """

    higher: str
    lower: str
    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    q: float | None
    n_cases: int
    detectable_drop: float | None
    verdict: VerdictName
    told_apart: bool


class RankedModel(FrozenModel):
    """One model: what it scored, what it costs, how old that is, and which others are better or as good.

    `place`: models of equal score share it. `groups`: two models with no group in common are told apart. `verdict` is
    on its version against a lower one, `prompt_adds` against its run with the schema alone. `frontier`: no other model
    is both as good and as cheap; None where its cost is not known.
    """

    place: int
    model_id: str
    groups: list[str]
    skill_version: str
    run_id: str
    timestamp: str
    age_days: int | None
    served_model: Served
    replicates: int
    coverage: float
    accuracy: dict[str, Score]
    reproducibility: dict[str, float | None]
    usd_per_1000_cases: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    verdict: VerdictName | None
    prompt_adds: Scope | None
    frontier: bool | None
    dominated_by: list[Dominance]


class Advice(FrozenModel):
    """The model to ship, and why it; None: why none is named."""

    model_id: str | None = None
    reason: str


class ModelRanking(FrozenModel):
    """The models of a component, best first, on the cases that all of them answered.

    q of the `pairs` is over `family` pairs: those of all models of the version, shown or not. `left_out`: models that
    are not ranked, and why.
    """

    skill: str
    metric: str
    gate: str
    alpha: float
    tolerance: float
    n_cases: int
    models: list[RankedModel]
    groups: dict[str, list[str]]
    pairs: list[Contrast]
    family: int
    advice: Advice
    left_out: dict[str, str] = {}
