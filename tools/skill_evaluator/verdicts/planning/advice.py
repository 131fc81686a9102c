"""The ranking of models for reports and other programs, the cost-quality frontier, and the model to ship."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Served
from skill_evaluator.text import listed, version_words


class Score(FrozenModel):
    """The strict mean over the cases that all models share, and its 95 % interval with the case as unit."""

    strict_mean: float | None
    ci95: tuple[float, float] | None
    n_cases: int


class Contrast(FrozenModel):
    """Two models on the same cases by the primary metric: the lower one's score minus the higher one's.

    `q` is adjusted over all pairs of models (Holm). `as_good`: a drop beyond the tolerance is ruled out. Otherwise the
    pair is `significant` if q ≤ α ÷ 2, because the scores also select which model is lower. `remedy` would decide an
    inconclusive pair. `fell_most` is the field in which the lower model is worst, with both scores; "" if none is.
    """

    higher: str
    lower: str
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    q: float | None = None
    n_cases: int = 0
    as_good: bool = False
    significant: bool = False
    remedy: str | None = None
    fell_most: str = Field(default="", exclude=True)


class PromptEffect(FrozenModel):
    """The primary metric with the prompt minus that with the schema alone."""

    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    verdict: VerdictName | None


class RankedModel(FrozenModel):
    """One model of the ranking: its scores, cost and age, and its comparison with the others.

    `like_best`: it is the best model or not significantly different from it. `verdict` compares its version with a
    lower one, `prompt_adds` with its run with the schema alone. `frontier`: no other model is both as good and as cheap
    (None if its cost is unknown). `dominated_by`: the models that are cheaper and no worse on any metric.
    """

    place: int
    model_id: str
    like_best: bool
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
    prompt_adds: PromptEffect | None
    frontier: bool | None
    dominated_by: list[str]


class Advice(FrozenModel):
    """The version and the model to ship, and the reason. Drafts have a best model and no version.

    `model_id` is None if no model is best; `alike` has the models of equal score, cost and latency.
    """

    version: str | None = None
    model_id: str | None = None
    alike: list[str] = Field(default=[], exclude_if=lambda names: not names)
    reason: str

    @property
    def words(self) -> str:
        """The advice as text, the same in reports, comments and pages."""
        model = self.model_id or " or ".join(self.alike)
        shipped = " with ".join(filter(None, [version_words(self.version or ""), model]))
        best = f"best model: {model or 'none'}"
        return f"{f'to ship: {shipped}' if self.version else best} ({self.reason})"


class ModelRanking(FrozenModel):
    """The models of a component, best first, ranked on the cases that all of them answered.

    q of the `pairs` is adjusted over `family` pairs, those of all models of the version, shown or not. `left_out` has
    the reasons why models are not ranked; `unmeasured` is a note that the version on disk has no complete run.
    """

    skill: str
    metric: str
    alpha: float
    tolerance: float
    n_cases: int
    models: list[RankedModel]
    pairs: list[Contrast]
    family: int
    advice: Advice
    left_out: dict[str, str] = {}
    unmeasured: str = ""


Point = tuple[float | None, float]  # cost in USD per 1,000 outputs, and score


def on_frontier(model: Point, models: Iterable[Point]) -> bool | None:
    """Return whether no other model dominates a model in score and cost. Return None if its cost is unknown."""
    cost, score = model
    if cost is None:
        return None
    others = ((other, of_other) for other, of_other in models if other is not None and (other, of_other) != model)
    return not any(other <= cost and of_other >= score for other, of_other in others)


def advise(rows: Sequence[RankedModel], pairs: Sequence[Contrast], tolerance: float) -> Advice:
    """Return the best model that the evidence supports.

    No other model is significantly better. Of several such models the cheapest is best, then the quickest, unless
    another scores higher and a drop beyond the tolerance is not ruled out. A model that regressed is never best.
    """
    if len(rows) < 2:
        return Advice(reason="there is no other model to compare it with" if rows else "no model can be ranked")
    beaten = {pair.lower for pair in pairs if pair.significant}
    best = [row for row in rows if row.model_id not in beaten] or list(rows)
    sound = [row for row in best if row.verdict != "regressed"]
    names = [row.model_id for row in sound]
    if not sound:
        worse = listed([row.model_id for row in best])
        return Advice(reason=f"{worse} regressed against the version before, and no other model is as good")
    if len(best) == 1:
        return Advice(model_id=names[0], reason=_lead_of(names[0], pairs))
    named, merits = _thriftiest(sound)
    alike = f"{listed(names)} are not shown to differ"
    if named is None:
        return Advice(alike=names, reason=f"{listed(names)} do not differ significantly in score, cost or latency")
    for pair in pairs:
        is_lower = pair.lower == named.model_id and (pair.difference is None or pair.difference < 0.0)
        if is_lower and pair.higher in names and not pair.as_good:
            gap = "" if pair.difference is None else f" ({pair.difference:+.3f})"
            still_open = f"a drop beyond {tolerance:g} from {pair.higher} is not ruled out{gap}"
            remedy = pair.remedy or "more cases would decide it"
            return Advice(reason=f"{alike}; {named.model_id} is {merits}, but {still_open}; {remedy}")
    others = listed([row.model_id for row in best if row.model_id != named.model_id])
    return Advice(model_id=named.model_id, reason=f"not shown to differ from {others}; {merits}")


def _lead_of(name: str, pairs: Iterable[Contrast]) -> str:
    """Format the smallest significant lead of a model over the others, with its adjusted p-value."""
    ahead = [pair for pair in pairs if pair.significant and name == pair.higher]
    lead = min((abs(pair.difference or 0.0) for pair in ahead), default=0.0)
    q = max([pair.q or 0.0 for pair in ahead] + [1e-6])
    others, by = listed([pair.lower for pair in ahead], 3), f"{lead:.3f}{' or more' * (len(ahead) > 1)}"
    return f"significantly better than {others}, by {by} (q ≤ {q:.2g})"


def _thriftiest(rows: Sequence[RankedModel]) -> tuple[RankedModel | None, str]:
    """Return the cheapest model, ties broken by latency, and the reason as text.

    Return (None, "") if no single model wins.
    """
    if len(rows) == 1:
        return rows[0], "the only model that did not regress"
    reasons = []
    for word, values in (
        ("cheapest", {row.model_id: row.usd_per_1000_cases for row in rows}),
        ("quickest", {row.model_id: row.latency_p50_s and round(row.latency_p50_s, 1) for row in rows}),
    ):
        known_values = [value for row in rows if (value := values[row.model_id]) is not None]
        if len(known_values) < len(rows) or min(known_values) == max(known_values):
            continue
        reasons.append(word)
        rows = [row for row in rows if values[row.model_id] == min(known_values)]
        if len(rows) == 1:
            return rows[0], f"the {' and '.join(reasons)} of them"
    return None, ""
