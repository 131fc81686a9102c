"""The recorded versions of a model → those that can be searched for changes, and what moves them by chance.

Its own module because it decides what is searched; `change_points` searches, and `history` says what was found.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from scipy.special import ndtri

from skill_evaluator.library.config import Gate
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.change_points import Chance, Floats, Sequences, means_by_case
from skill_evaluator.verdicts.comparability import Pair, common_part, strict_scores
from skill_evaluator.verdicts.effects import Within
from skill_evaluator.verdicts.noise import RunEffect, Runs, run_effect, samples
from skill_evaluator.verdicts.pooling import pooled

_ENOUGH_STEPS = 8  # between versions, to tell how much they scatter
_KEPT = 0.75  # of the steps: the larger ones may be changes
_DEGREES_OF_A_STEP = 0.45  # 2 ÷ the squared coefficient of variation of the scatter, by simulation for 9 to 30 versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The latest versions of a model that are comparable, and the scores of the cases that all of them have.

    `versions` holds the runs of each version, the newest first; `cases` the scores of the primary metric by case,
    version and answer, of all runs.
    """

    versions: tuple[tuple[Record, ...], ...]
    cases: Sequences
    remarks: tuple[str, ...]


def comparable_stretch(versions: Sequence[Pair], primary_metric: str) -> Stretch:
    """Return the stretch up to the highest of the versions, each the candidate of a pair, lowest first.

    A version of which every run was stopped early by `--adaptive` is left out: its scores are those that it stops at.
    """
    stopped = [pair.candidate.skill_version for pair in versions if pair.candidate.saved_calls]
    measured = [pair for pair in versions if not pair.candidate.saved_calls]
    remarks = [f"stopped early by --adaptive, at a mean too high or too low: {', '.join(stopped)}"] if stopped else []
    start = 0
    for place, (before, after) in enumerate(pairwise(measured), 1):
        barriers = common_part(before.candidate, after.candidate).barriers
        if barriers:
            since = f"changes are looked for from {after.candidate.skill_version} on: {'; '.join(barriers)}"
            start, remarks = place, [*remarks[: len(stopped) > 0], since]
    kept = measured[start:]
    # the cases with the same document and truth in every version
    records = [pooled(pair.candidate, pair.candidate_again) for pair in kept]
    by_digest = [{(case.case_id, case.digest): case for case in record.per_case} for record in records]
    shared = [key for key in by_digest[0] if all(key in cases for cases in by_digest)] if by_digest else []
    scores = [[strict_scores(cases[key], primary_metric) for cases in by_digest] for key in shared]
    cases = [sequence for sequence in scores if all(sequence)]
    most = max((len(record.per_case) for record in records), default=0)
    if len(kept) > 1 and len(cases) < most:
        remarks.append(
            f"changes are looked for on {len(cases)} of {most} cases: those that all versions have unchanged"
        )
    versions_runs = tuple((pair.candidate, *pair.candidate_again) for pair in kept)
    return Stretch(versions=versions_runs, cases=cases, remarks=tuple(remarks))


def effect_of_runs(versions: Iterable[Pair], primary_metric: str) -> RunEffect:
    """Return the effect of a run as a whole, from the A/A runs of all versions and models of a history."""
    repeated = []
    for pair in versions:
        runs = (pair.candidate, *pair.candidate_again)
        scores = [
            {(case.case_id, case.digest): strict_scores(case, primary_metric) for case in run.per_case} for run in runs
        ]
        shared = [key for key in scores[0] if all(run.get(key) for run in scores)]
        if len(runs) > 1 and shared:
            arms = [[run[key] for key in shared] for run in scores]
            repeated.append(Runs.of(arms, arms[1:2]))
    return run_effect(repeated)


def chance_of(stretch: Stretch, run: RunEffect, gate: Gate) -> Chance:
    """Return what moves the versions of a stretch by chance.

    The larger of two is taken for the noise of a whole run: its effect, in the standard deviation of one answer of
    these versions, and the scatter between successive versions. So no change is seen in versions that go up and down
    all the time, and a few true changes among many versions do not count as noise.
    """
    independent = all(samples(record) for runs in stretch.versions for record in runs)
    if len(stretch.versions) < 2 or not stretch.cases:
        return Chance(gate=gate, independent=independent)
    arms = [Within.of([case[at] for case in stretch.cases]) for at in range(len(stretch.versions))]
    unit = median(Runs(before=(old,), after=(new,)).unit for old, new in pairwise(arms))
    of_runs = [run.share * unit / math.sqrt(len(runs)) for runs in stretch.versions]
    scatter = scatter_of(means_by_case(stretch.cases))
    steps = len(arms) - 1
    more = (
        f"versions go up and down by {scatter:.3f} (standard deviation), more than the {max(of_runs):.3f} of a run: "
        "that much is taken for noise"
    )
    return Chance(
        gate=gate,
        independent=independent,
        runs=tuple(max(sd, scatter) for sd in of_runs),
        degrees=run.degrees + _DEGREES_OF_A_STEP * steps * (steps >= _ENOUGH_STEPS),
        remarks=(more,) if scatter > max(of_runs) else (),
    )


def scatter_of(by_case: Floats) -> float:
    """Return the standard deviation of versions as a whole, less what cases explain; 0 for fewer than nine versions.

    It is read off the smaller three quarters of the differences between successive versions, as if these were normal,
    so that a few changes and a steady slope leave it as it is.
    """
    differences = np.diff(by_case, axis=1)
    cases, steps = differences.shape
    if steps < _ENOUGH_STEPS or cases < 2:
        return 0.0
    means = differences.mean(axis=0)
    sizes = np.sort(np.abs(means - np.median(means)))[: math.ceil(_KEPT * steps)]
    spread = float((sizes**2).mean()) / _variance_of_smaller(len(sizes) / steps)
    explained = float((differences.var(axis=0, ddof=1) / cases).mean())
    return math.sqrt(max(0.0, spread - explained) / 2)


def _variance_of_smaller(share: float) -> float:
    """Return the variance of a standard normal variable, of that share of its values that is nearest to 0."""
    edge = float(ndtri((1 + share) / 2))
    return 1 - 2 * edge * math.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi) / share
