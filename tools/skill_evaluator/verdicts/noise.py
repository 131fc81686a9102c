"""The runs of two versions → what moves a score though the prompt is the same, and how much of it no run alone shows.

A score is case + version + version × case + run + case × run + replicate. Two records hold one run each, so that run
and version cannot be told apart in them: runs of the same version (A/A runs) tell, and where there are none a stated
value stands in. Its own module because every verdict rests on these premises.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.effects import NO_EXTRA, Extra, Within, together
from skill_evaluator.verdicts.randomisation import Arm, Floats

RUN_SHARE = 0.15  # standard deviation of a whole run, in those of one answer within its case: where nothing is known
RUN_DEGREES = 3.0  # the degrees of freedom that this value counts with
_SLACK = 1e-18


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
    def weight(self) -> float:
        """The variance of a difference of versions, in that of one run."""
        return 1 / len(self.before) + 1 / len(self.after)

    @property
    def repeated_arms(self) -> list[tuple[Within, ...]]:
        """The runs of each version that has several, if two cases or more are there to compare them."""
        return [arms for arms in (self.before, self.after) if len(arms) > 1 and len(arms[0].means) > 1]

    @property
    def repeats(self) -> list[Floats]:
        """The means of each version with several runs, shape (runs, cases)."""
        return [np.array([arm.means for arm in arms]) for arms in self.repeated_arms]

    @property
    def unit(self) -> float:
        """The standard deviation of one answer within its case and run, the mean over both.

        It is the baseline's, since a version that breaks varies more. With one replicate a case, the differences
        between the versions are all there is to tell it by.
        """
        repeated = [np.sqrt(arm.variances[arm.counts > 1]) for arm in self.before]
        if any(map(len, repeated)):
            return float(np.concatenate(repeated).mean())
        differences = self.after[0].means - self.before[0].means
        return float(differences.std(ddof=1)) / math.sqrt(2) if len(differences) > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEffect:
    """The standard deviation of a whole run in those of one answer (`share`), and what it rests on.

    `degrees` are those of its estimate, `runs` the A/A runs in it.
    """

    share: float
    degrees: float
    runs: int = 0


ONE_RUN = RunEffect(share=0.0, degrees=math.inf)
"""Both versions were asked in one run: none stands between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNoise:
    """What moves the difference of two versions by chance: variances of the difference of the means over cases.

    `replicate`: as if the replicates of a case were independent draws. `case_run`: what answers of a case have in
    common within a run, from A/A runs; None where nothing tells. `run`: what all cases have in common within a run.
    """

    replicate: float
    case_run: Extra | None
    run: Extra

    @property
    def unshown(self) -> Extra:
        """The noise of these cases that replicates within a run do not show."""
        return together(self.case_run or NO_EXTRA, self.run)


def samples(record: Record) -> bool:
    """Return whether the replicates of a case are known to be independent draws: the provider samples each.

    Nothing is known of answers that were replayed or imported, and the deterministic profile asks for equal answers.
    """
    return record.settings is not None and record.settings.profile == "sampled" and record.provider != "replay"


def run_effect(models: Sequence[Runs]) -> RunEffect:
    """Return the effect of a run as a whole, from the A/A runs of all models and the stated value.

    Each model gives an estimate with the variance between its run means, less what cases and replicates explain
    (method of moments). Estimates of few answers count for less; the stated value counts as `RUN_DEGREES` of them.
    """
    squares, weight, repeated = RUN_DEGREES * RUN_SHARE**2, RUN_DEGREES, 0
    for runs in models:
        unit = runs.unit
        for means in runs.repeats:
            if not unit:
                continue
            explained = _interaction(means) / means.shape[1] / unit**2
            between = float(means.mean(axis=1).var(ddof=1)) / unit**2
            counts = (len(means) - 1) * (RUN_SHARE**2 / (RUN_SHARE**2 + explained)) ** 2
            squares += counts * max(0.0, between - explained)
            weight += counts
            repeated += len(means) - 1
    return RunEffect(share=math.sqrt(max(0.0, squares / weight)), degrees=weight, runs=repeated)


def noise_of(runs: Runs, run: RunEffect, *, independent: bool) -> RunNoise:
    """Return the noise of one measure. Without A/A runs, `independent` replicates leave no noise of case × run."""
    variance_of_run = runs.weight * (run.share * runs.unit) ** 2
    return RunNoise(
        replicate=sum(arm.explained / len(arms) ** 2 for arms in (runs.before, runs.after) for arm in arms),
        case_run=_case_run(runs) if runs.repeats else Extra() if independent else None,
        run=Extra(variance=variance_of_run, degrees=run.degrees) if variance_of_run > _SLACK else Extra(),
    )


def parts_of(noise: RunNoise, run: RunEffect, error: float) -> list[tuple[str, float | None, str]]:
    """Return each part of the noise with its standard deviation and what that is from, for people.

    `error` is the standard error between cases: what is left of it is of case × run where nothing else tells that.
    """
    measured = f"{run.runs} A/A run{'s' * (run.runs != 1)}"
    if run.degrees == math.inf:
        of_run = "none: both versions were asked in one run"
    elif run.runs:
        of_run = f"{measured}, weighed with the value taken where there are none"
    else:
        of_run = f"taken to be {RUN_SHARE:g} of the deviation of one answer, as no version was run twice"
    if noise.case_run is None:
        rest = max(0.0, error**2 - noise.run.variance - noise.replicate)
        case_run, of_case_run = math.sqrt(rest), "the differences between cases; a case's answers count as one draw"
    else:
        case_run = math.sqrt(noise.case_run.variance)
        of_case_run = measured if run.runs else "none: the provider samples every answer anew"
    return [
        ("replicate", math.sqrt(noise.replicate), "the answers of each case"),
        ("case × run", case_run, of_case_run),
        ("run", math.sqrt(noise.run.variance), of_run),
    ]


def _case_run(runs: Runs) -> Extra:
    """Return the noise of case × run in the difference: the interaction of A/A runs, less what replicates explain."""
    squares = degrees = 0.0
    for means, arms in zip(runs.repeats, runs.repeated_arms, strict=True):
        own, cases = (len(means) - 1) * (means.shape[1] - 1), means.shape[1]
        squares += own * (_interaction(means) / cases - float(np.mean([arm.explained for arm in arms])))
        degrees += own
    return Extra(variance=squares / degrees * runs.weight, degrees=degrees) if squares > 0.0 else Extra()


def _interaction(means: Floats) -> float:
    """Return the mean square of case × run, from the means by run (rows) and case (columns)."""
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    return float((rest**2).sum() / ((means.shape[0] - 1) * (means.shape[1] - 1)))
