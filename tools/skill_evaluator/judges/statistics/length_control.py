"""How often would an output win if both were equally long? The win rate with what length does to it taken out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skill_evaluator.judges.statistics.bounded import Bounded, Z, mean_within
from skill_evaluator.judges.statistics.kappa import Floats

_STEPS = 200
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRates:
    """The raw win rate (a tie is half a win), the one at equal length, and the pull of length on a verdict.

    `length`: the log-odds that an output gains by being longer than the other by one standard deviation of the
    differences, before tanh; 0 is none.
    """

    raw: Bounded
    controlled: Bounded
    length: Bounded


def win_rates(wins: Sequence[float], longer_by: Sequence[float]) -> WinRates:
    """Fit wins (1, 0 or 0.5 for a tie; one a pair) on how much longer the output is than the other, in any unit.

    logit P(win) = a + b tanh(difference ÷ its standard deviation about 0); the controlled rate is P at difference 0, so
    that swapping the two outputs turns w into 1 − w. Dubois et al. 2024 (arXiv 2404.04475), without their term for the
    difficulty of an instruction. Fitted with Firth's penalty (1993, doi:10.1093/biomet/80.1.27), which is finite though
    length tell wins and losses apart; intervals from the information matrix. Undefined for fewer than three pairs.

    >>> rates = win_rates([1, 1, 1, 0, 1, 0, 0, 0], [90, 80, 70, 60, -50, -60, -70, -80])
    >>> rates.raw.value, round(rates.controlled.value, 2), rates.length.value > 0
    (0.5, 0.49, True)
    """
    n = len(wins)
    if n < 3:
        nothing = Bounded(value=None, ci95=None, n=n)
        return WinRates(raw=mean_within(wins), controlled=nothing, length=nothing)
    differences = np.asarray(longer_by, float)
    spread = float(np.sqrt((differences**2).mean()))
    pull = np.tanh(differences / spread) if spread else np.zeros(n)
    varies = float(np.ptp(pull)) > 0.0
    design = np.stack([np.ones(n), pull], axis=1) if varies else np.ones((n, 1))
    fitted, errors = _firth(design, np.asarray(wins, float))
    low, high = fitted - Z * errors, fitted + Z * errors
    return WinRates(
        raw=mean_within(wins),
        controlled=Bounded(value=float(expit(fitted[0])), ci95=(float(expit(low[0])), float(expit(high[0]))), n=n),
        length=Bounded(
            value=float(fitted[1]) if varies else None,
            ci95=(float(low[1]), float(high[1])) if varies else None,
            n=n,
        ),
    )


def _firth(design: Floats, wins: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and standard errors of a logistic regression with the penalty ½ log |information|."""
    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chances = expit(design @ coefficients)
        weights = chances * (1 - chances)
        covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
        leverage = weights * np.einsum("nk,kl,nl->n", design, covariance, design)
        step = covariance @ (design.T @ (wins - chances + leverage * (0.5 - chances)))
        coefficients = coefficients + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _CLOSE:
            break
    return coefficients, np.sqrt(np.diag(covariance))
