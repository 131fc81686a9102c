"""Made-up models whose true scores are known: what the simulation of verdicts draws its answers from.

A case has a true score p, drawn from a Beta distribution around the accuracy; its replicates scatter around p by shape.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Generator = np.random.Generator
SPREAD = 3.0  # Beta(3a, 3(1 − a)): cases from hopeless to trivial
FAILING = 0.01  # of the answers of a model that now and then gives nothing usable


def rate(p: Floats, k: int, rng: Generator) -> Floats:
    """Right or wrong."""
    return (rng.random((len(p), k)) < p[:, None]).astype(float)


def leaves(p: Floats, k: int, rng: Generator) -> Floats:
    """The share of 20 leaves that is right."""
    return rng.binomial(20, np.repeat(p[:, None], k, axis=1)) / 20


def continuous(p: Floats, k: int, rng: Generator) -> Floats:
    """Close around the case's true score."""
    near = np.repeat(np.clip(p, 1e-4, 1 - 1e-4)[:, None], k, axis=1)
    return rng.beta(200 * near, 200 * (1 - near))


def steady(p: Floats, k: int, rng: Generator) -> Floats:
    """No noise between replicates at all."""
    return np.repeat(p[:, None], k, axis=1)


def failing(p: Floats, k: int, rng: Generator, share: float = FAILING) -> Floats:
    """Close around the true score, but now and then 0 (nothing usable came)."""
    return continuous(p, k, rng) * (rng.random((len(p), k)) >= share)


SHAPES: dict[str, Callable[[Floats, int, Generator], Floats]] = {
    "0/1": rate,
    "leaves": leaves,
    "continuous": continuous,
    "no noise": steady,
    "rare failures": failing,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One model as it is simulated."""

    shape: str
    cases: int
    replicates: int
    accuracy: float
    drop: float = 0.0

    @property
    def size(self) -> str:
        """As tables name it."""
        return f"{self.cases} × {self.replicates}"


def cases_of(accuracy: float, n: int, rng: Generator) -> Floats:
    """True scores of n cases drawn anew."""
    return rng.beta(SPREAD * accuracy, SPREAD * (1 - accuracy), n)


def on_fixtures(setting: Setting, rng: Generator) -> tuple[Floats, Floats, float]:
    """Both arms on the same cases, and the true difference: exactly the drop, all cases lower in proportion."""
    before, after, true_before, true_after = scored(setting, rng)
    return before, after, true_after - true_before


def scored(setting: Setting, rng: Generator) -> tuple[Floats, Floats, float, float]:
    """Both arms on the same cases, and the true mean of each."""
    k, shape = setting.replicates, SHAPES[setting.shape]
    p = cases_of(setting.accuracy, setting.cases, rng)
    while p.mean() <= setting.drop:
        p = cases_of(setting.accuracy, setting.cases, rng)
    if setting.shape == "rare failures":
        share = min(1.0, FAILING + setting.drop / p.mean())
        before, after = failing(p, k, rng), failing(p, k, rng, share)
        return before, after, float(p.mean() * (1 - FAILING)), float(p.mean() * (1 - share))
    q = p * (1 - setting.drop / p.mean())
    return shape(p, k, rng), shape(q, k, rng), float(p.mean()), float(q.mean())


def beyond(setting: Setting, rng: Generator) -> tuple[Floats, float]:
    """Differences of case means of cases drawn anew, each with a true difference of its own; and their true mean."""
    if setting.shape == "breaking cases":
        broken = rng.random(setting.cases) < (0.02 + setting.drop) / 0.8
        fixed = rng.random(setting.cases) < 0.02 / 0.8
        return np.clip(rng.normal(0, 0.02, setting.cases) + 0.8 * fixed - 0.8 * broken, -1, 1), -setting.drop
    k, shape, lower = setting.replicates, SHAPES[setting.shape], setting.accuracy - setting.drop
    p = cases_of(setting.accuracy, setting.cases, rng)
    fresh = rng.random(setting.cases) < 0.3
    q = np.where(fresh, cases_of(lower, setting.cases, rng), p * lower / setting.accuracy)
    scale = 1 - FAILING if setting.shape == "rare failures" else 1.0
    return shape(q, k, rng).mean(axis=1) - shape(p, k, rng).mean(axis=1), -setting.drop * scale
