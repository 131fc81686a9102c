"""The probability that k outputs in a row are all right."""

from math import comb

KS = (1, 2, 3, 5, 10)


def pass_hat_k(successes: int, n: int, k: int) -> float | None:
    """Return the probability that k of a case's n outputs, drawn without replacement, all succeed: C(c, k) ÷ C(n, k).

    This is an unbiased estimate of the chance that k further outputs all succeed; a run's pass^k is the mean over its
    cases. With k = 1 it is the share of successes. Range 0 to 1, 1 is best; it falls with k; undefined for k > n.
    Yao et al. 2024 (τ-bench), https://arxiv.org/abs/2406.12045.

    >>> [pass_hat_k(3, 4, k) for k in (1, 2, 4)]
    [0.75, 0.5, 0.0]
    """
    return comb(successes, k) / comb(n, k) if k <= n else None
