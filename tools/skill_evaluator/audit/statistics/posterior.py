"""Scores and their noise → draws of the true fluctuations: of these very scenarios, and of others like them.

The measured score of a model in a scenario is its true score and noise: y ~ N(θ, v). The true score is
θ = μ + τ·(√ρ·c + √(1 − ρ)·u) + k·β: c is what the scenario does to every model, u what it does to this one, with the
tails of Student's t of ν degrees of freedom; k is 1 where the scenario breaks the model, as one in ten may, and β what
that costs. log τ ~ N(a, b²) over the models, k has the probability π and β ~ N(0, B²) for all of them. Everything
unknown is drawn by Gibbs sampling with Metropolis steps for τ: Gelman et al. 2013, Bayesian Data Analysis, §11, §17
(t as a scale mixture of normals) and §22 (mixtures).

`here` is the standard deviation of the drawn θ: it rests on the answers, and hardly on the model where noise is small.
`beyond` is √(τ²·(ρ + (1 − ρ)·ν ÷ (ν − 2)) + π·B²): it rests on the model of the effects, as no data tell how scenarios
that nobody asked behave.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from skill_evaluator.audit.cube import Floats

_CHAINS, _DISCARDED, _KEPT = 50, 35, 60
DRAWS = _CHAINS * _KEPT
_TAILS = np.array([4.0, 5.0, 8.0, 15.0, 60.0])  # ν, all as likely at first; 60 is nearly normal
_COSTS = np.geomspace(4.0, 32.0, 10)  # B, points
_NEVER = 1e-12  # a probability
_BROKEN_BEFORE = (1.0, 19.0)  # scenarios that break a model and ones that do not, as if they had been seen before
_SHARED = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])  # ρ
_APART = np.geomspace(0.03, 1.5, 20)  # b: from 3 % between models to factors
_USUAL_APART = 0.6  # b is half-normal with this scale: models seldom differ by more than a factor of three
_STEPS = (1.2, 0.5, 0.25)  # of log τ, so that a move is taken whether much or little is known of it
_LARGEST = np.log(100.0)  # of log τ: scores are between 0 and 100
_LEAST_NOISE = 0.02  # of the cohort's usual spread; a table without single answers has no other noise
_FEWEST_SHARING = 3  # models, so that what is common to them can be told


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """Draws of the true fluctuations, [draws, models]; `tails`: the median ν; `breaking`: the median π."""

    here: Floats
    beyond: Floats
    tails: float
    breaking: float


def draw_posterior(overall: Floats, noise: Floats | None, degrees: int, seed: int = 0) -> Posterior | None:
    """Draw true fluctuations, given scores S(m, t) and the variances of their noise, both [models, scenarios].

    `degrees`: the degrees of freedom that a model's noise is known with; each chain has a noise that fits them. None
    where no model moved. Without `noise` the scores are taken for the true ones.
    """
    spread = overall.std(axis=1, ddof=1)
    if not (spread > 0).any():
        return None
    least = (_LEAST_NOISE * np.median(spread[spread > 0])) ** 2
    random = np.random.default_rng(seed)
    known = np.zeros((_CHAINS, *overall.shape))
    if noise is not None:
        known = noise * (degrees / random.chisquare(degrees, (_CHAINS, len(overall), 1)))
    chains = _Chains(overall, np.maximum(known, least), random)
    for _ in range(_DISCARDED):
        chains.step()
    kept = []
    for _ in range(_KEPT):
        chains.step()
        kept.append((chains.truth.std(axis=2, ddof=1), chains.beyond, chains.tails, chains.breaking))
    here, beyond, tails, breaking = map(np.concatenate, zip(*kept, strict=True))
    return Posterior(here=here, beyond=beyond, tails=float(np.median(tails)), breaking=float(np.median(breaking)))


class _Chains:
    """The chains, side by side: arrays of [chains, models, scenarios], or what of these a quantity differs by."""

    def __init__(self, scores: Floats, noise: Floats, random: np.random.Generator) -> None:
        """Begin near the moments' estimates, each chain elsewhere."""
        models, scenarios = scores.shape
        usual = noise.mean(axis=2)
        start = np.log(np.maximum(scores.var(axis=1, ddof=1) - usual, 0.2 * usual)) / 2
        self.scores, self.noise, self.random = scores, noise, random
        self.truth: Floats = np.broadcast_to(scores, (_CHAINS, models, scenarios))  # θ
        self.centre: Floats = self.truth.mean(axis=2)  # μ
        self.log_scale: Floats = start + 0.3 * random.normal(size=(_CHAINS, models))  # log τ
        self.weight: Floats = np.ones((_CHAINS, models, scenarios))  # precision of an effect: Student's from a normal
        self.common: Floats = np.zeros((_CHAINS, scenarios))  # c
        self.shared: Floats = np.zeros(_CHAINS)  # ρ
        self.tails: Floats = random.choice(_TAILS, _CHAINS)  # ν
        self.broken: Floats = np.zeros((_CHAINS, models, scenarios))  # k·B², a variance in points²
        self.breaking: Floats = np.full(_CHAINS, _BROKEN_BEFORE[0] / sum(_BROKEN_BEFORE))  # π
        self.cost: Floats = random.choice(_COSTS, _CHAINS)  # B
        self.usual: Floats = self.log_scale.mean(axis=1)  # a
        self.apart: Floats = np.full(_CHAINS, _USUAL_APART)  # b

    @property
    def beyond(self) -> Floats:
        """The standard deviation over all scenarios that the model of the effects could draw."""
        own = self.tails / (self.tails - 2)
        usual = np.exp(2 * self.log_scale) * (self.shared + (1 - self.shared) * own)[:, None]
        return np.asarray(np.sqrt(usual + (self.breaking * self.cost**2)[:, None]))

    def step(self) -> None:
        """Draw each quantity anew, conditional on the others."""
        self._draw_scales()
        self._draw_truth()
        own = self._draw_common(self._draw_broken())
        self._draw_tails(own)
        self._draw_cohort()

    def _draw_scales(self) -> None:
        """Draw τ with θ and μ integrated out, so that the noise does not hold it where it is; then μ."""
        density, centre, precision = self._score(self.log_scale)
        for step in _STEPS:
            proposed = self.log_scale + step * self.random.normal(size=self.log_scale.shape)
            other, other_centre, other_precision = self._score(proposed)
            taken = np.log(self.random.random(density.shape)) < other - density
            taken &= proposed < _LARGEST
            self.log_scale = np.where(taken, proposed, self.log_scale)
            density = np.where(taken, other, density)
            centre = np.where(taken, other_centre, centre)
            precision = np.where(taken, other_precision, precision)
        self.centre = centre + self.random.normal(size=centre.shape) / np.sqrt(precision)

    def _score(self, log_scale: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the logarithm of the density of log τ, and mean and precision of μ there."""
        scale = np.exp(log_scale)[..., None]
        shifted = self.scores - scale * self._shift()
        weight = 1 / (scale**2 * self._own() + self.broken + self.noise)
        precision = weight.sum(axis=2)
        centre = (weight * shifted).sum(axis=2) / precision
        away = (weight * (shifted - centre[..., None]) ** 2).sum(axis=2)
        prior = ((log_scale - self.usual[:, None]) / self.apart[:, None]) ** 2
        density = (np.log(weight).sum(axis=2) - np.log(precision) - away - prior) / 2
        return density, centre, precision

    def _shift(self) -> Floats:
        """Return √ρ·c, what a scenario does to all models, in units of τ."""
        return np.asarray(np.sqrt(self.shared)[:, None, None] * self.common[:, None, :])

    def _own(self) -> Floats:
        """Return the variance of a model's own effects, in units of τ²."""
        return np.asarray((1 - self.shared)[:, None, None] / self.weight)

    def _draw_truth(self) -> None:
        scale = np.exp(self.log_scale)[..., None]
        prior = 1 / (scale**2 * self._own() + self.broken)
        precision = prior + 1 / self.noise
        mean = (prior * (self.centre[..., None] + scale * self._shift()) + self.scores / self.noise) / precision
        self.truth = mean + self.random.normal(size=mean.shape) / np.sqrt(precision)

    def _draw_broken(self) -> Floats:
        """Draw k, β, B and π; return the effects without β, in units of τ."""
        scale = np.exp(self.log_scale)[..., None]
        away = self.truth - self.centre[..., None] - scale * self._shift()
        own = scale**2 * self._own()
        largest = (self.cost**2)[:, None, None]
        odds = np.log(np.maximum(self.breaking, _NEVER) / (1 - self.breaking))[:, None, None]
        odds = odds - (np.log1p(largest / own) - away**2 * (1 / own - 1 / (own + largest))) / 2
        breaks = self.random.logistic(size=odds.shape) < odds
        self.broken = breaks * largest
        part = self.broken / (own + self.broken)
        cost = part * away + np.sqrt(part * own) * self.random.normal(size=away.shape)
        count, squares = breaks.sum(axis=(1, 2)), (cost**2).sum(axis=(1, 2))[:, None]
        self.cost = _COSTS[self._choose(-count[:, None] * np.log(_COSTS) - squares / _COSTS**2 / 2)]
        self.broken = breaks * (self.cost**2)[:, None, None]
        self._draw_breaking(count)
        return np.asarray((self.truth - self.centre[..., None] - cost) / scale)

    def _draw_breaking(self, count: NDArray[np.intp]) -> None:
        """Draw π; where none of the scenarios is broken, perhaps none ever is, which is as likely as not at first."""
        seen, whole = _BROKEN_BEFORE
        cells = self.scores.size
        never = (count == 0) & (self.random.random(_CHAINS) * (1 + whole / (whole + cells)) < 1)
        self.breaking = np.where(never, 0.0, self.random.beta(seen + count, whole + cells - count))

    def _draw_common(self, effects: Floats) -> Floats:
        """Draw c and ρ, where there are models enough; return u, each model's own effects."""
        if len(self.scores) >= _FEWEST_SHARING:
            ratio = np.sqrt(self.shared) / (1 - self.shared)
            precision = 1 + (np.sqrt(self.shared) * ratio)[:, None] * self.weight.sum(axis=1)
            mean = ratio[:, None] * (self.weight * effects).sum(axis=1) / precision
            self.common = mean + self.random.normal(size=mean.shape) / np.sqrt(precision)
            squares, products, commons = (  # of Σ weight·(effects − √ρ·c)², which has to be known for every ρ
                (self.weight * part).sum(axis=(1, 2))[:, None]
                for part in (effects**2, effects * self.common[:, None], (self.common**2)[:, None])
            )
            away = squares - 2 * np.sqrt(_SHARED) * products + _SHARED * commons
            self.shared = _SHARED[self._choose(-(away / (1 - _SHARED) + self.scores.size * np.log1p(-_SHARED)) / 2)]
        return np.asarray((effects - self._shift()) / np.sqrt(1 - self.shared)[:, None, None])

    def _draw_tails(self, own: Floats) -> None:
        """Draw ν by the density of Student's t, then the weights that make normal effects such ones."""
        squares = own**2
        constant = gammaln((_TAILS + 1) / 2) - gammaln(_TAILS / 2) - np.log(_TAILS) / 2
        far = np.stack([np.log1p(squares / tails).sum(axis=(1, 2)) for tails in _TAILS], axis=1)
        self.tails = _TAILS[self._choose(self.scores.size * constant - (_TAILS + 1) / 2 * far)]
        tails = self.tails[:, None, None]
        self.weight = self.random.standard_gamma(np.broadcast_to((tails + 1) / 2, own.shape)) * 2 / (tails + squares)

    def _draw_cohort(self) -> None:
        """Draw a, with all e^a as likely at first, and b."""
        models = len(self.scores)
        error = self.apart / np.sqrt(models)
        self.usual = self.log_scale.mean(axis=1) + error**2 + error * self.random.normal(size=_CHAINS)
        squares = ((self.log_scale - self.usual[:, None]) ** 2).sum(axis=1)[:, None]
        prior = np.log(np.gradient(_APART)) - (_APART / _USUAL_APART) ** 2 / 2
        self.apart = _APART[self._choose(prior - models * np.log(_APART) - squares / _APART**2 / 2)]

    def _choose(self, logarithms: Floats) -> NDArray[np.intp]:
        """Return a place by chance for each chain; `logarithms` of the odds of the places, [chains, places]."""
        return np.asarray((logarithms + self.random.gumbel(size=logarithms.shape)).argmax(axis=1))
