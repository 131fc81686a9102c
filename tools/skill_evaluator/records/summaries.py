"""Summaries of a run's outputs by metric, field, array and schema rule, as stored in records and rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from skill_evaluator.files import FrozenModel, NestingModel, flat_part
from skill_evaluator.identifiers import CaseId, Commit, Digest, Label, ModelId, RunId, Share, Usd
from skill_evaluator.stats import quantile

# omitted if None, to keep the digests of older records
LATER: Any = Field(default=None, exclude_if=lambda value: value is None)


class Summary(FrozenModel):
    """A metric over a run. `strict_mean` counts unreadable outputs as 0. `n` counts the values in `mean`.

    `stdev` is between replicates. `stdev_cases` and `ci95` are of `strict_mean`, over cases. None means too few values.
    """

    mean: float | None
    strict_mean: float | None
    stdev: float | None
    stdev_cases: float | None = None
    n: NonNegativeInt
    n_cases: NonNegativeInt
    ci95: tuple[float, float] | None


class Filled(FrozenModel):
    """The number of outputs, and of ground truths, that have a value in a field.

    `n` is the number of parsed outputs of labelled cases. A case's ground truth counts once per output of the case.
    """

    n: NonNegativeInt
    output: NonNegativeInt
    truth: NonNegativeInt


class Profile(FrozenModel):
    """The number of cases by stability of a field; `stable` counts stable cases without a ground truth."""

    stable_right: NonNegativeInt = 0
    stable_wrong: NonNegativeInt = 0
    stable: NonNegativeInt = 0
    flaky: NonNegativeInt = 0
    unscored: NonNegativeInt = 0


class ValueCounts(FrozenModel):
    """The compared values of a field or array by outcome; `n` is their sum."""

    n: NonNegativeInt
    right: NonNegativeInt
    wrong: NonNegativeInt
    missing: NonNegativeInt
    extra: NonNegativeInt


class FieldSummary(NestingModel):
    """A field over a run. `accuracy` is right ÷ n; a category has a `confusion` matrix, {truth: {output: count}}.

    `alpha` is Krippendorff's: the agreement of the replicates of a case. Free text has `token_f1` and `rouge_l`.
    """

    compare: str
    accuracy: float | None
    counts: ValueCounts = flat_part("counts")
    stability: float | None
    token_f1: float | None = None
    rouge_l: float | None = None
    confusion: dict[str, dict[str, NonNegativeInt]] | None = None
    macro_f1: float | None = None
    alpha: float | None = None
    filled: Filled | None = None
    profile: Profile | None = None


class ArraySummary(FrozenModel):
    """The stability of an array's length over the `n_cases` cases with at least two outputs.

    `varied` counts the cases whose outputs have different lengths, `widest` is the largest such difference.
    """

    stability: float
    n_cases: NonNegativeInt
    varied: NonNegativeInt
    widest: NonNegativeInt


def values_of_arrays(per_field: Mapping[str, FieldSummary]) -> dict[str, ValueCounts]:
    """Return the counts of the values in each array, by its path.

    A value in nested arrays counts for the inner array.

    >>> counts = ValueCounts(n=2, right=1, wrong=0, missing=0, extra=1)
    >>> name = FieldSummary(compare="exact", accuracy=0.5, counts=counts, stability=1.0)
    >>> values_of_arrays({"items[].name": name, "items[].price": name, "date": name})
    {'items': ValueCounts(n=4, right=2, wrong=0, missing=0, extra=2)}
    """
    sums: dict[str, Counter[str]] = {}
    for path, field in per_field.items():
        if "[]" in path:
            sums.setdefault(path.rpartition("[]")[0], Counter()).update(field.counts.model_dump(exclude={"n"}))
    return {array: ValueCounts(n=counts.total(), **counts) for array, counts in sums.items()}


class ContractFault(FrozenModel):
    """A schema rule that outputs violated: its path and keyword, the number of violations and an example.

    If the rule is violated in several items of an array, an output counts several times.
    """

    path: str
    rule: str
    count: NonNegativeInt
    message: str


class ContractSummary(FrozenModel):
    """The schema violations in n parsed outputs. `valid` is the share of valid outputs.

    `missing_keys` and `extra_keys` have the number of outputs that lack or add a key at the top level.
    """

    n: NonNegativeInt
    valid: float | None
    valid_apart_from_extra_keys: float | None
    errors: list[ContractFault]
    missing_keys: dict[str, NonNegativeInt]
    extra_keys: dict[str, NonNegativeInt]


class FailedCalls(FrozenModel):
    """The calls of a run that failed for the same reason. Kind `scored`: the output was scored, but is ambiguous.

    `cases` has the first of the `n_cases` cases. `message` is the error message of one of the calls.
    """

    kind: str
    reason: str
    count: PositiveInt
    n_cases: PositiveInt
    cases: list[CaseId]
    message: str = ""


class Tokens(FrozenModel):
    """Tokens of a run, counted by the vendor (None: unknown). `hit_rate`: share of input tokens read from a cache."""

    input: NonNegativeInt | None
    output: NonNegativeInt | None
    hit_rate: Share | None = LATER
    cache_read: NonNegativeInt | None = LATER
    cache_write: NonNegativeInt | None = LATER
    uncached: NonNegativeInt | None = LATER


class Server(FrozenModel):
    """The server of a run: its version, the limit of concurrent calls to it, and output counts by fingerprint."""

    concurrency: PositiveInt
    version: Label | None = LATER
    fingerprints: dict[Label, PositiveInt] = Field(default={}, exclude_if=lambda counts: not counts)
    renamed: dict[Label, Label] = Field(
        default={}, exclude_if=lambda names: not names, description="names of parameters as sent, by configured name"
    )


class InFlight(FrozenModel):
    """Concurrent calls of a run: the lowest (`least`) and highest (`most`) limit in force, and the mean number."""

    least: PositiveInt
    mean: NonNegativeFloat
    most: PositiveInt


class Latency(FrozenModel):
    """Median and 95 % quantile of the seconds from a call's last attempt to its output. None if unknown."""

    p50: NonNegativeFloat | None
    p95: NonNegativeFloat | None


class Commits(FrozenModel):
    """The commits that last changed a component's prompt and cases. They are None if there is no commit.

    They end in `-dirty` if the files had uncommitted changes.
    """

    prompt_commit: Commit | None
    dataset_commit: Commit | None


class Cost(FrozenModel):
    """The tokens of a run, its cost in USD (None: unknown price) and the latency of its calls."""

    tokens: Tokens
    cost_usd: Usd | None
    latency_s: Latency


class Quantiles(FrozenModel):
    """Quantiles of a value over calls."""

    p5: NonNegativeFloat
    p25: NonNegativeFloat
    p50: NonNegativeFloat
    p75: NonNegativeFloat
    p95: NonNegativeFloat

    @classmethod
    def of(cls, values: Sequence[float | None], digits: int) -> "Quantiles | None":
        """Return the quantiles of `values`, rounded to `digits`. Return None if there are no values or one is None.

        >>> Quantiles.of([1.0, 2.0, 3.0], 3)
        Quantiles(p5=1.1, p25=1.5, p50=2.0, p75=2.5, p95=2.9)
        """
        numbers = [value for value in values if value is not None]
        if not numbers or len(numbers) < len(values):
            return None
        return cls(
            **{f"p{share}": round(quantile(numbers, share / 100) or 0.0, digits) for share in (5, 25, 50, 75, 95)}
        )


AMOUNTS = ("output_tokens", "cost_usd", "latency_s")


class CaseAmount(FrozenModel):
    """The mean of an amount (tokens, USD or seconds) over the n outputs of a case whose amount is known."""

    mean: NonNegativeFloat
    n: PositiveInt


class CallSpreads(FrozenModel):
    """The distributions of latency in seconds and cost in USD over calls; None: unknown."""

    latency_s: Quantiles | None
    cost_usd: Quantiles | None


MIN_LABELS = 100  # human labels required to estimate a judge's error rates


class CorrectedShare(FrozenModel):
    """The share of outputs for which a sentence holds: `judged` by the judge, `value` corrected for its errors."""

    judged: Share
    value: Share | None
    ci95: tuple[Share, Share] | None


class JudgedChecks(FrozenModel):
    """The judge of `expect` checks, with the digests of its settings and prompt.

    `labels` counts the human labels that estimate its errors. If there are enough, `shares` has the corrected share of
    outputs for which each sentence holds; `""` is for all sentences together.
    """

    model_id: ModelId
    digests: dict[str, Digest]
    calls: NonNegativeInt
    cost_usd: Usd | None
    labels: NonNegativeInt = 0
    shares: dict[str, CorrectedShare] = Field(default={}, exclude_if=lambda shares: not shares)


class Drift(FrozenModel):
    """The measures that changed significantly (`moved`) since earlier runs; `since` is the newest of these runs."""

    since: RunId
    moved: list[str]
