"""The runs of two versions → what moves a score though the prompt is the same: replicates, copies of them, and runs.

Two records hold one run each, so that a run and a version cannot be told apart in them. Further runs of one version
(A/A runs, and the baselines that were asked beside other versions) tell what a run adds; without them a stated value
stands in. Its own module because verdicts on recorded runs rest on this premise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.effects import Arm, Floats, Within

RUN_SD = 0.1  # standard deviation of a whole run on the logit scale, where nothing is known
RUN_DEGREES = 3.0  # the number of further runs that this value counts as much as


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """One measure in each run of the baseline's and of the candidate's version, on the same cases."""

    before: tuple[Within, ...]
    after: tuple[Within, ...]

    @classmethod
    def of(cls, before: Sequence[Arm], after: Sequence[Arm]) -> "Runs":
        """Summarise the scores of each run."""
        return cls(before=tuple(map(Within.of, before)), after=tuple(map(Within.of, after)))

    @property
    def repeats(self) -> list[Floats]:
        """The means of each version with several runs, shape (runs, cases), if two cases or more can be compared."""
        arms = (arms for arms in (self.before, self.after) if len(arms) > 1 and len(arms[0].means) > 1)
        return [np.array([arm.means for arm in arms]) for arms in arms]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEffect:
    """The standard deviation of a whole run on the logit scale, and the number of further runs that it rests on."""

    sd: float
    runs: int = 0

    def variance(self, runs: Runs) -> float:
        """Return the variance that runs as a whole add to the difference of two versions."""
        return (1 / len(runs.before) + 1 / len(runs.after)) * (self.sd * runs.before[0].slope) ** 2


ONE_RUN = RunEffect(sd=0.0)
"""Both versions were asked in one run: no day stands between them."""


def samples(record: Record) -> bool:
    """Return whether the replicates of a case are known to be independent draws: the provider samples each.

    Nothing is known of answers that were replayed or imported, and the deterministic profile asks for equal answers.
    """
    return record.settings is not None and record.settings.profile == "sampled" and record.provider != "replay"


def run_effect(models: Sequence[Runs]) -> RunEffect:
    """Return the effect of a run as a whole, from the further runs of all models and the stated value.

    Each version gives an estimate: the variance between its run means, less what cases explain (method of moments), on
    the logit scale. Estimates of few answers count for less; the stated value counts as `RUN_DEGREES` of them.
    """
    squares, weight, repeated = RUN_DEGREES * RUN_SD**2, RUN_DEGREES, 0
    for runs in models:
        slope = runs.before[0].slope
        for means in runs.repeats if slope else ():
            explained = _interaction(means) / means.shape[1] / slope**2
            between = float(means.mean(axis=1).var(ddof=1)) / slope**2
            counts = (len(means) - 1) * (RUN_SD**2 / (RUN_SD**2 + explained)) ** 2
            squares += counts * max(0.0, between - explained)
            weight += counts
            repeated += len(means) - 1
    return RunEffect(sd=math.sqrt(max(0.0, squares / weight)), runs=repeated)


def parts_of(runs: Runs, run: RunEffect, error: float) -> list[tuple[str, float, str]]:
    """Return each part of the noise with its standard deviation and what that is from, for people.

    `error` is the standard error over cases: what replicates and runs leave of it is how differently cases moved.
    """
    measured = f"{run.runs} further run{'s' * (run.runs != 1)} of one version"
    if run is ONE_RUN:
        of_run = "none: both versions were asked side by side"
    elif run.runs:
        of_run = f"{measured}, weighed with the value taken where there are none"
    else:
        of_run = f"taken to be {RUN_SD:g} on the logit scale, as no version was run twice"
    replicate = sum(arm.explained / len(arms) ** 2 for arms in (runs.before, runs.after) for arm in arms)
    of_runs = run.variance(runs)
    rest = max(0.0, error**2 - of_runs - replicate)
    return [
        ("replicate", math.sqrt(replicate), "the answers of each case"),
        ("case", math.sqrt(rest), "how differently the cases moved, and what answers of one case have in common"),
        ("run", math.sqrt(of_runs), of_run),
    ]


def _interaction(means: Floats) -> float:
    """Return the mean square of case × run, from the means by run (rows) and case (columns)."""
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    return float((rest**2).sum() / ((means.shape[0] - 1) * (means.shape[1] - 1)))
