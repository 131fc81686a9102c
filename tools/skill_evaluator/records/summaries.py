"""What a run's answers add up to: per metric, field, array and rule of the schema, as records and rows hold it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import CaseId, Digest, Label, ModelId, RunId, Share, Usd
from skill_evaluator.stats import by_key, quantile

LATER: Any = Field(default=None, exclude_if=lambda value: value is None)  # a key that older digests are without


class Summary(FrozenModel):
    """One metric over a run. `n` counts what entered `mean`; `ci95` has the case as unit (None for one case)."""

    mean: float | None
    strict_mean: float | None
    stdev: float | None
    stdev_cases: float | None = None
    n: NonNegativeInt
    n_cases: NonNegativeInt
    ci95: tuple[float, float] | None


class Filled(FrozenModel):
    """Of n parsed outputs of labelled cases, how many have a value in a field, and for how many the truth has one."""

    n: NonNegativeInt
    output: NonNegativeInt
    truth: NonNegativeInt


class Profile(FrozenModel):
    """The cases by how a field stands in them: right or wrong alike in every answer, or now this, now that.

    `stable` is for cases without truth; `unscored` where fewer than two answers, or none that was parsed, say nothing.
    """

    stable_right: NonNegativeInt = 0
    stable_wrong: NonNegativeInt = 0
    stable: NonNegativeInt = 0
    flaky: NonNegativeInt = 0
    unscored: NonNegativeInt = 0


class FieldSummary(FrozenModel):
    """One leaf path over a run: accuracy is right ÷ n, `confusion` is {truth: {output: count}} of a category.

    `macro_f1` is of that confusion, `alpha` Krippendorff's between replicates with the cases as units. `token_f1` and
    `rouge_l` are means over the values of a free text.
    """

    compare: str
    accuracy: float | None
    n: NonNegativeInt
    right: NonNegativeInt
    wrong: NonNegativeInt
    missing: NonNegativeInt
    extra: NonNegativeInt
    stability: float | None
    token_f1: float | None = None
    rouge_l: float | None = None
    confusion: dict[str, dict[str, NonNegativeInt]] | None = None
    macro_f1: float | None = None
    alpha: float | None = None
    filled: Filled | None = None
    profile: Profile | None = None


class ArraySummary(FrozenModel):
    """One array over a run: how steady its length is between replicates, mean over cases; where and how far it varied.

    `varied` counts the cases in which parsed answers differ in length, `widest` is the largest such difference.
    """

    stability: float
    n_cases: NonNegativeInt
    varied: NonNegativeInt
    widest: NonNegativeInt


def values_of_arrays(per_field: Mapping[str, FieldSummary]) -> dict[str, dict[str, int]]:
    """Add up what became of the leaves below each array, and all four as `n`.

    Those of an array in an array belong to the inner one.

    >>> leaf = {"compare": "exact", "accuracy": 0.5, "n": 2, "right": 1, "wrong": 0, "stability": 1.0}
    >>> one, other = (FieldSummary(**leaf, missing=m, extra=1 - m) for m in (0, 1))
    >>> values_of_arrays({"items[].name": one, "items[].price": other, "date": one})
    {'items': {'n': 4, 'right': 2, 'wrong': 0, 'missing': 1, 'extra': 1}}
    """
    below = by_key((path.rpartition("[]")[0], leaf) for path, leaf in per_field.items() if "[]" in path)
    values = {
        array: {name: sum(getattr(leaf, name) for leaf in leaves) for name in ("right", "wrong", "missing", "extra")}
        for array, leaves in below.items()
    }
    return {array: {"n": sum(counts.values()), **counts} for array, counts in values.items()}


class ContractFault(FrozenModel):
    """One rule that outputs broke: the path, the schema's keyword, how many times, and one of the messages."""

    path: str
    rule: str
    count: NonNegativeInt
    message: str


class ContractSummary(FrozenModel):
    """What the schema holds against the n parsed outputs of a run; the commonest errors first.

    The shares are of n. `missing_keys` and `extra_keys` count outputs by required top-level keys they lack and
    by keys the schema does not name.
    """

    n: NonNegativeInt
    valid: float | None
    valid_apart_from_extra_keys: float | None
    errors: list[ContractFault]
    missing_keys: dict[str, NonNegativeInt]
    extra_keys: dict[str, NonNegativeInt]


class FailedCalls(FrozenModel):
    """The calls of a run that were not scored for one reason: in how many cases, the first of them, and the message.

    The kind `scored` is of outputs with several candidates, which were scored.
    `message` is that of one of the calls: the server's words, or empty where the reason says all.
    """

    kind: str
    reason: str
    count: PositiveInt
    n_cases: PositiveInt
    cases: list[CaseId]
    message: str = ""


class RowTokens(FrozenModel):
    """Tokens the vendor counted; None where it counted none for some answer.

    `hit_rate` is the share of the input that was read from a cache.
    """

    input: NonNegativeInt | None
    output: NonNegativeInt | None
    hit_rate: Share | None = LATER


class Tokens(FrozenModel):
    """The same with the parts of the input: read from a cache, written to one, and `uncached`, the rest."""

    input: NonNegativeInt | None
    output: NonNegativeInt | None
    hit_rate: Share | None = LATER
    cache_read: NonNegativeInt | None = LATER
    cache_write: NonNegativeInt | None = LATER
    uncached: NonNegativeInt | None = LATER


class Server(FrozenModel):
    """The most calls in flight, what a server told, and how many answers had its commonest fingerprints."""

    concurrency: PositiveInt
    version: Label | None = LATER
    fingerprints: dict[Label, PositiveInt] = Field(default={}, exclude_if=lambda counts: not counts)
    renamed: dict[Label, Label] = Field(
        default={}, exclude_if=lambda names: not names, description="parameters sent under another name, by their own"
    )


class InFlight(FrozenModel):
    """Calls in flight: the fewest and the most places there were for them, and how many there were on average."""

    least: PositiveInt
    mean: NonNegativeFloat
    most: PositiveInt


class Latency(FrozenModel):
    """Seconds from sending a call's last attempt to its answer."""

    p50: NonNegativeFloat | None
    p95: NonNegativeFloat | None


class Quantiles(FrozenModel):
    """How the calls of a run are spread: the values that 5, 25, 50, 75 and 95 % of them do not exceed."""

    p5: NonNegativeFloat
    p25: NonNegativeFloat
    p50: NonNegativeFloat
    p75: NonNegativeFloat
    p95: NonNegativeFloat

    @classmethod
    def of(cls, values: Sequence[float | None], digits: int) -> "Quantiles | None":
        """Return the quantiles of some calls; None of none, and where one of them is not known.

        >>> Quantiles.of([1.0, 2.0, 3.0], 3)
        Quantiles(p5=1.1, p25=1.5, p50=2.0, p75=2.5, p95=2.9)
        """
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        return cls(**{f"p{share}": round(quantile(known, share / 100) or 0.0, digits) for share in (5, 25, 50, 75, 95)})


class CallSpreads(FrozenModel):
    """What single calls took: seconds from sending the last attempt to its answer, and USD; None: not known."""

    latency_s: Quantiles | None
    cost_usd: Quantiles | None


FEWEST_LABELS = 100  # of people, from which on it is known how often a judge errs


class CorrectedShare(FrozenModel):
    """The share of answers of which a sentence holds: as `judged`, and without the errors of the judge."""

    judged: Share
    value: Share | None
    ci95: tuple[Share, Share] | None


class JudgedChecks(FrozenModel):
    """Who judged the checks with `expect`: the digests of its settings and prompt, its calls and what they cost.

    `labels` of people tell how often it errs; with enough of them `shares` are there, by sentence, under `""` all.
    """

    model_id: ModelId
    digests: dict[str, Digest]
    calls: NonNegativeInt
    cost_usd: Usd | None
    labels: NonNegativeInt = 0
    shares: dict[str, CorrectedShare] = Field(default={}, exclude_if=lambda shares: not shares)


class Drift(FrozenModel):
    """What a run of a recorded version was held against: the newest run `since` which the same prompt gave it.

    `moved` says which measures fell or rose beyond chance, so that the model is a different one; empty if none did.
    """

    since: RunId
    moved: list[str]
