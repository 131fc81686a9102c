"""Worlds in which verdicts are tried: made-up records of known truth, with the premises of a test kept or broken.

An answer has fields that are right or wrong. A field of a case is right with a probability p (`World.kind`). A latent
normal decides, correlated between the fields of an answer (Gaussian copula). `share` of its variance is common to the
replicates of a case within a run (temperature 0, caches). `day` is the standard deviation, on the logit scale, of a
shift that all answers of a run have in common. `reworded` is the share of fields whose common part is drawn again for
the other version, as a neutral rewording does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from skill_evaluator.library.config import Policy
from skill_evaluator.records.record import (
    SCORED,
    CaseRecord,
    CheckRecord,
    FieldCount,
    ModelSettings,
    Record,
    check_path,
)
from skill_evaluator.records.summaries import Cost, Latency, Tokens
from skill_evaluator.verdicts.decide.rules import VerdictRules

Floats = NDArray[np.float64]
Answers = NDArray[np.bool_]
CORRELATION = {"plain": 0.4}  # of the fields of an answer; 0.3 in the other worlds
Kind = Literal["plain", "flaky", "heavy", "broken", "fixed", "right", "wrong"]
DIGESTS = {"prompt": "p", "schema": "s", "settings": "m", "datasets": "d"}
COST = Cost(tokens=Tokens(input=None, output=None), cost_usd=None, latency_s=Latency(p50=None, p95=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The size of a run and what its answers have in common; `sampled`: the provider is known to sample each answer.

    `kind`: *plain* has 60 % of fields always right, 10 % always wrong, the others Beta(2, 1); *flaky* has logit p =
    2.2 + case N(0, 1.2) + field N(0, 0.7) + case × field N(0, 0.8), a mean of about 0.83; *heavy* the same with cases
    of t with 3 degrees of freedom; *broken* with one case always wrong; *fixed* has 85 % of fields always right and the
    rest always wrong. `beside`: both versions are asked in one run, on one day; `baseline` is then its replicates.
    The first `checks` of the fields are checks, and the others values of the truth.
    """

    cases: int = 20
    replicates: int = 5
    fields: int = 10
    share: float = 0.0
    day: float = 0.0
    reworded: float | None = None
    sampled: bool = False
    beside: bool = False
    baseline: int | None = None
    kind: Kind = "plain"
    checks: int = 0

    @property
    def size(self) -> str:
        """The size as tables name it."""
        return f"{self.cases} × " + (f"({self.replicates} + {self.before})" if self.beside else str(self.replicates))

    @property
    def primary(self) -> str:
        """The metric that decides: that of the truth, if there is one."""
        return "checks" if self.checks == self.fields else "field_level_f1"

    @property
    def before(self) -> int:
        """The replicates of the baseline."""
        return self.baseline or self.replicates


def probabilities(world: World, rng: np.random.Generator) -> Floats:
    """Return the probability that a field of a case is right, shape (cases, fields)."""
    shape = (world.cases, world.fields)
    if world.kind == "plain":
        kind = rng.random(shape)
        return np.where(kind < 0.6, 1.0, np.where(kind < 0.7, 0.0, rng.beta(2, 1, shape)))
    if world.kind == "fixed":
        return np.where(rng.random(shape) < 0.85, 1.0, 0.0)
    if world.kind in ("right", "wrong"):
        return np.full(shape, float(world.kind == "right"))
    tails = (
        rng.standard_t(3, (world.cases, 1)) / np.sqrt(3) if world.kind == "heavy" else rng.normal(size=(world.cases, 1))
    )
    p = expit(2.2 + 1.2 * tails + rng.normal(0, 0.7, (1, world.fields)) + rng.normal(0, 0.8, shape))
    if world.kind == "broken":
        p[0] = 0.0
    return np.asarray(p)


def spread(p: Floats, drop: float) -> Floats:
    """Lower every probability in proportion, so that the mean falls by the drop."""
    return p * (1 - drop / p.mean())


def shifted(p: Floats, drop: float) -> Floats:
    """Shift the log-odds of every probability alike, so that the mean falls by the drop."""
    odds, low, high = logit(p), 0.0, 12.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(odds - middle).mean() > p.mean() - drop else (low, middle)
    return np.asarray(expit(odds - low))


def one_field(p: Floats, drop: float) -> Floats:
    """Put all of a drop of the mean over fields into one field."""
    lowered = p.copy()
    lowered[:, 0] = np.clip(p[:, 0] - drop * p.shape[1], 0.0, 1.0)
    return lowered


def broken(p: Floats, count: int) -> Floats:
    """Set some cases to 0."""
    lowered = p.copy()
    lowered[:count] = 0.0
    return lowered


def latent(world: World, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return normals with correlated fields (the last axis)."""
    common, correlation = rng.standard_normal((*shape[:-1], 1)), CORRELATION.get(world.kind, 0.3)
    return np.asarray(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.standard_normal(shape))


def answer(
    world: World,
    p: Floats,
    rng: np.random.Generator,
    common: Floats | None = None,
    day: float = 0.0,
    replicates: int | None = None,
) -> Answers:
    """Return which fields are right in each answer of a run, shape (cases, replicates, fields)."""
    shape = (world.cases, replicates or world.replicates, world.fields)
    normals = np.sqrt(1 - world.share) * latent(world, rng, shape)
    if world.share:
        shared = latent(world, rng, (world.cases, 1, world.fields)) if common is None else common
        normals = normals + np.sqrt(world.share) * shared
    with np.errstate(divide="ignore"):
        return np.asarray(normals < ndtri(expit(logit(p) + day))[:, None, :])


def two_runs(world: World, before: Floats, after: Floats, rng: np.random.Generator) -> tuple[Answers, Answers]:
    """Return one run of either version, each on its own day."""
    days = world.day * rng.standard_normal(2)
    if world.beside:
        days[1] = days[0]
    common: list[Floats | None] = [None, None]
    if world.reworded is not None:
        first = latent(world, rng, (world.cases, 1, world.fields))
        again = rng.random((world.cases, 1, world.fields)) < world.reworded
        common = [first, np.where(again, latent(world, rng, first.shape), first)]
    return (
        answer(world, before, rng, common[0], days[0], world.before),
        answer(world, after, rng, common[1], days[1]),
    )


def another_run(world: World, p: Floats, rng: np.random.Generator) -> Answers:
    """Return a further run of a version, on a day of its own."""
    return answer(world, p, rng, day=float(world.day * rng.standard_normal()))


def record_of(world: World, answers: Answers, version: str, run: int = 0, model: str = "m", **keys: object) -> Record:
    """Return the record of a run, without the checks that a file would pass."""
    return Record.model_construct(
        run_id=f"{version}-{run}-{model}",
        timestamp=f"2026-01-01T00:00:{run:02}Z",
        skill="s",
        skill_version=version,
        model_id=model,
        served_model=model,
        provider="openai",
        replicates=answers.shape[1],
        coverage=1.0,
        n_cases=world.cases,
        planned=world.cases * answers.shape[1],
        scored=world.cases * answers.shape[1],
        complete=True,
        stopped=None,
        failures={},
        cost=COST,
        primary_metric=world.primary,
        accuracy=dict.fromkeys(_metrics(world)),
        settings=ModelSettings.model_construct(
            api_model=model, profile="sampled" if world.sampled else "deterministic"
        ),
        per_field={},
        digests=DIGESTS,
        evaluator_version="1",
        scorer_version=1,
        per_case=[_case(at, own, world) for at, own in enumerate(answers)],
        **keys,
    )


def _metrics(world: World) -> list[str]:
    of_truth = ["field_level_f1", "exact_match"] if world.checks < world.fields else []
    return of_truth + ["checks"] * (world.checks > 0)


def _case(at: int, own: Answers, world: World) -> CaseRecord:
    """Return one case; `own` has shape (replicates, fields)."""
    right, checks, values = own.sum(axis=0), own[:, : world.checks], own[:, world.checks :]
    names = [check_path(f"c{path}") if path < world.checks else f"f{path}" for path in range(world.fields)]
    scores: dict[str, Any] = {
        "field_level_f1": lambda: values.mean(axis=1).tolist(),
        "exact_match": lambda: values.all(axis=1).astype(float).tolist(),
        "checks": lambda: checks.mean(axis=1).tolist(),
    }
    return CaseRecord.model_construct(
        case_id=f"c{at:03}",
        digest="d",
        outcomes=[SCORED] * len(own),
        replicates={name: scores[name]() for name in _metrics(world)},
        fields={
            name: FieldCount.model_construct(right=int(count), n=len(own))
            for name, count in zip(names, right, strict=True)
        },
        checks={
            f"c{path}": CheckRecord.model_construct(digest=str(path), scores=passed.astype(float).tolist())
            for path, passed in enumerate(checks.T)
        },
        reproducibility={"pairwise_exact_match": _agreement(own), "pairwise_field_f1": _field_agreement(right, own)},
        accuracy=dict.fromkeys(_metrics(world)),
        profile={},
        failures={},
    )


def _agreement(own: Answers) -> float | None:
    if len(own) < 2:
        return None
    _, counts = np.unique(own, axis=0, return_counts=True)
    return float((counts * (counts - 1)).sum() / (len(own) * (len(own) - 1)))


def _field_agreement(right: NDArray[np.int_], own: Answers) -> float | None:
    count = len(own)
    if count < 2:
        return None
    equal = right * (right - 1) + (count - right) * (count - right - 1)
    return float(equal.mean() / (count * (count - 1)))


def rules_of(primary: str = "field_level_f1") -> VerdictRules:
    """Return the rules of the default policy with a primary metric."""
    return VerdictRules(
        policy=Policy(),
        skill="s",
        primary_metric=primary,
        required_coverage=0.9,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The promised rate of a verdict in per cent: at most or at least this."""

    most: float | None = None
    least: float | None = None

    @property
    def words(self) -> str:
        """The limit in words."""
        return f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}"

    def is_missed(self, count: int, size: int) -> bool:
        """Return whether a rate is beyond the limit by more than two standard errors."""
        share = count / size
        slack = 200 * float(np.sqrt(share * (1 - share) / size))
        too_many = self.most is not None and 100 * share - slack > self.most
        return too_many or (self.least is not None and 100 * share + slack < self.least)


def rate(hits: Sequence[bool] | Sequence[int], of: int) -> str:
    """Write a rate in per cent with its standard error."""
    share = sum(hits) / of
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / of):.1f}"
