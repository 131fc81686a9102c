"""Judges made up with known biases, and what each estimator should say of them; for `judging.py` and for tests.

A judge sees pairs with a label by people. On a share of the pairs it goes by position, by length or by who wrote it, on
the others it is right so often; and some of its calls are a coin's. Every world draws one sample and gives what the
estimator says of it; `truth` is what it should say, worked out, not estimated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from skill_evaluator.judges.statistics import (
    Estimate,
    cohen_kappa,
    confusion,
    corrected_rate,
    difference,
    mean_within,
    position_bias,
    rate,
    repeatability,
    shift,
    spearman,
)

LONGER_IS_RIGHT = 0.6  # how often people prefer the longer output
LENGTH, OWN = "length: picks the longer beyond people", "self-preference: picks its own beyond people"
Draw = Callable[[np.random.Generator], Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Shares of pairs that it decides by position, length and authorship; of calls that are a coin's; and how right."""

    position: float = 0.15
    length: float = 0.1
    own: float = 0.1
    noise: float = 0.1
    accuracy: float = 0.85

    @property
    def attentive(self) -> float:
        """Share of pairs on which it looks at what matters."""
        return 1 - self.position - self.length - self.own

    def heard(self, share: float) -> float:
        """Return a share of the verdicts once the coin's are among them."""
        return (1 - self.noise) * share + self.noise / 2

    @property
    def right(self) -> float:
        """Share of its verdicts that are people's."""
        by_chance = (self.position + self.own) / 2 + self.length * LONGER_IS_RIGHT
        return self.heard(by_chance + self.attentive * self.accuracy)

    @property
    def longer(self) -> float:
        """Share of its verdicts for the longer output."""
        when_attentive = self.accuracy * LONGER_IS_RIGHT + (1 - self.accuracy) * (1 - LONGER_IS_RIGHT)
        return self.heard((self.position + self.own) / 2 + self.length + self.attentive * when_attentive)

    @property
    def noisy_flips(self) -> float:
        """Share of pairs of calls that differ for no reason."""
        return (1 - (1 - self.noise) ** 2) / 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Pairs: people's label, which output is longer, which the judge's own, and its verdicts: each 1 or 2, [pairs]."""

    label: np.ndarray
    longer: np.ndarray
    own: np.ndarray
    in_order: np.ndarray
    swapped: np.ndarray
    again: np.ndarray


def judged(judge: Judge, n: int, rng: np.random.Generator) -> Pairs:
    """Draw pairs and the judge's verdicts in both orders, and in order once more."""
    label, own = rng.integers(1, 3, n), rng.integers(1, 3, n)
    longer = np.where(rng.random(n) < LONGER_IS_RIGHT, label, 3 - label)
    thought = np.where(rng.random(n) < judge.accuracy, label, 3 - label)
    mode = rng.choice(4, n, p=[judge.position, judge.length, judge.own, judge.attentive])

    def call(first: int) -> np.ndarray:
        verdict = np.choose(mode, [np.full(n, first), longer, own, thought])
        return np.where(rng.random(n) < judge.noise, rng.integers(1, 3, n), verdict)

    return Pairs(label=label, longer=longer, own=own, in_order=call(1), swapped=call(2), again=call(1))


def _of_pairs(judge: Judge, n: int) -> dict[str, tuple[Draw, float]]:
    def estimate(figure: Callable[[Pairs], Estimate]) -> Draw:
        return lambda rng: figure(judged(judge, n, rng))

    lean = (1 - judge.noise) * judge.position
    own = judge.heard((judge.position + judge.length + judge.attentive) / 2 + judge.own)
    beyond_noise = (1 - judge.noise) ** 2 * judge.position
    return {
        "accuracy": (
            estimate(lambda pairs: rate(int((pairs.in_order == pairs.label).sum()), n)),
            judge.right,
        ),
        "κ with people": (
            estimate(lambda pairs: cohen_kappa(confusion(pairs.in_order.tolist(), pairs.label.tolist(), [1, 2]))),
            2 * judge.right - 1,
        ),
        "flips": (
            estimate(lambda pairs: position_bias(pairs.in_order.tolist(), pairs.swapped.tolist()).flips),
            judge.noisy_flips + beyond_noise,
        ),
        "picks first": (
            estimate(lambda pairs: position_bias(pairs.in_order.tolist(), pairs.swapped.tolist()).picks_first),
            0.5 + lean / 2,
        ),
        "lean": (
            estimate(lambda pairs: position_bias(pairs.in_order.tolist(), pairs.swapped.tolist()).lean),
            lean,
        ),
        LENGTH: (
            estimate(
                lambda pairs: shift(
                    (pairs.label == pairs.longer).astype(float), (pairs.in_order == pairs.longer).astype(float)
                )
            ),
            judge.longer - LONGER_IS_RIGHT,
        ),
        OWN: (
            estimate(
                lambda pairs: shift(
                    (pairs.label == pairs.own).astype(float), (pairs.in_order == pairs.own).astype(float)
                )
            ),
            own - 0.5,
        ),
        "repeatability": (
            estimate(
                lambda pairs: repeatability(list(zip(pairs.in_order.tolist(), pairs.again.tolist(), strict=True)))
            ),
            1 - judge.noisy_flips,
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A judge of sentences that errs so often each way and time, and how often sentences hold of what has labels."""

    error: float
    labelled: float = 0.8
    labels: int = 100
    answers: int = 200

    def verdicts(self, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw what it says in the end: a yes at once, or the majority of three."""
        votes = truth ^ (rng.random((3, len(truth))) < self.error)
        return votes[0] | (votes.sum(axis=0) >= 2)

    def corrected(self, holds: float, rng: np.random.Generator) -> Estimate:
        """Draw labels and answers of which a share `holds`; return the share of the answers without its errors."""
        people, truth = rng.random(self.labels) < self.labelled, rng.random(self.answers) < holds
        said, passed = self.verdicts(people, rng), int(self.verdicts(truth, rng).sum())
        errors = [rate(int((said == people)[people == way].sum()), int((people == way).sum())) for way in (True, False)]
        return corrected_rate(rate(passed, self.answers), *errors)


def padded(n: int, gain: float, rng: np.random.Generator) -> Estimate:
    """Draw picks of a text against another, plain and padded; padding turns a share `gain` of the lost ones."""
    plain = rng.random(n) < 0.5
    return shift(plain.astype(float), (plain | (rng.random(n) < gain)).astype(float))


def raised(n: int, chance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw people's scores from 1 to 4, and a judge's: a level off in 1 of 5, and a level higher in such a share."""
    people = rng.integers(1, 5, n)
    off = np.where(rng.random(n) < 0.2, rng.choice([-1, 1], n), 0)
    return people, people + off + (rng.random(n) < chance)  # from 0 to 6: no end of the scale hides a level


def favoured(n: int, rng: np.random.Generator) -> Estimate:
    """Draw how far a judge's scores are above people's, for its own outputs (3 of 10) a level higher in 2 of 5."""
    own = max(2, round(0.3 * n))
    gaps = [(judge - people) / 6 for people, judge in (raised(own, 0.4, rng), raised(n - own, 0.0, rng))]
    return difference(*(mean_within(gap.tolist(), -1.0, 1.0) for gap in gaps))


def rated(n: int, raters: int, rng: np.random.Generator) -> np.ndarray:
    """Draw scores 1 to 4, [raters, n]: each rater gives the text's own score, and any score for 3 in 10."""
    own = rng.integers(1, 5, n)
    return np.where(rng.random((raters, n)) < 0.3, rng.integers(1, 5, (raters, n)), own)


def _of_scores(n: int) -> dict[str, tuple[Draw, float]]:
    kappa = 0.7 * 0.7  # whatever the weights: either both give the text's own score, or they are independent

    def weighted(rng: np.random.Generator) -> Estimate:
        left, right = rated(n, 2, rng).tolist()
        return cohen_kappa(confusion(left, right, [1, 2, 3, 4]), "linear")

    return {
        "weighted κ": (weighted, kappa),
        "Spearman's ρ": (lambda rng: spearman(*rated(n, 2, rng).tolist()), kappa),
        "scores: higher than people's": (lambda rng: shift(*raised(n, 0.3, rng), (0, 6)), 0.05),
        "scores: own outputs beyond people": (lambda rng: favoured(n, rng), 0.4 / 6),
        "verbosity: share of a pair": (lambda rng: padded(n, 0.2, rng), 0.1),
    }


def worlds(n: int = 200) -> Mapping[str, tuple[Draw, float]]:
    """Return a world of n pairs for each estimator, and the true value."""
    return {
        **_of_pairs(Judge(), n),
        LENGTH: _of_pairs(Judge(position=0.0, length=0.3, own=0.0), n)[LENGTH],
        OWN: _of_pairs(Judge(position=0.0, length=0.0, own=0.3), n)[OWN],
        **_of_scores(n),
    }


def coverage(draw: Draw, truth: float, seeds: int) -> float:
    """Return in what share of the seeds the interval holds the truth."""
    held = 0
    for seed in range(seeds):
        low, high = draw(np.random.default_rng(seed)).ci95 or (np.nan, np.nan)
        held += bool(low <= truth <= high)
    return held / seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Numbers of pairs in the batch, of known positives and of known negatives."""

    pairs: int
    positives: int
    negatives: int


def corrected(
    design: Design, truth: float, sensitivity: float, specificity: float, rng: np.random.Generator
) -> Estimate:
    """Draw the reports of a judge on a batch of this true rate and on known pairs, and correct its rate."""
    reported = rng.binomial(design.pairs, truth * sensitivity + (1 - truth) * (1 - specificity))
    return corrected_rate(
        rate(int(reported), design.pairs),
        rate(int(rng.binomial(design.positives, sensitivity)), design.positives),
        rate(int(rng.binomial(design.negatives, specificity)), design.negatives),
    )
