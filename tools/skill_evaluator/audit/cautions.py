"""What a reader of an audit must be told before the figures are used: one sentence each, the weightiest first."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from skill_evaluator.audit.cube import Cube
from skill_evaluator.audit.regimes import is_settled
from skill_evaluator.audit.results import (
    FEWEST_MODELS,
    FEWEST_QUESTIONS,
    FEWEST_SCENARIOS,
    AuditResult,
    ModelResult,
)
from skill_evaluator.paired_tests import ALPHA
from skill_evaluator.scoring import ANSWERED, SCORED

_MOST_UNREAD = 0.1  # of a model's answers
_MOST_OF_ONE = 0.8  # share of σ² that one benchmark may carry
_SHOWN = 5


def cautions(cube: Cube, models: Sequence[ModelResult], most_stable: float | None) -> list[str]:
    """Warnings about the sample, the grades and what carries the fluctuation."""
    found = [
        *_about_size(cube),
        *_about_answers(models),
        *_about_likeness(cube),
        *_about_grades(models, most_stable),
        *_about_shares(models),
    ]
    if cube.treatment is not None:
        found.append(f"{cube.treatment}; all figures are of what is left")
    return found


def cohort_changes(cohort: Sequence[str], previous: AuditResult) -> list[str]:
    """A warning where the models are not those of the last audit: grades are relative to the cohort."""
    came = [name for name in cohort if name not in previous.cohort]
    went = [name for name in previous.cohort if name not in cohort]
    if not came and not went:
        return []
    changes = [f"new: {_some(came)}"] * bool(came) + [f"gone: {_some(went)}"] * bool(went)
    return [
        f"the cohort changed since the last audit ({'; '.join(changes)}): grades are relative to it, so compare none"
    ]


def _about_size(cube: Cube) -> list[str]:
    found = []
    models, scenarios = cube.overall.shape
    if models < FEWEST_MODELS:
        known = (
            "a grade needs others to compare with"
            if models == 1
            else "quartiles of so few are hardly more than an order"
        )
        found.append(f"{_counted(models, 'model')}, fewer than {FEWEST_MODELS}: {known}")
    if scenarios < FEWEST_SCENARIOS:
        found.append(
            f"{_counted(scenarios, 'scenario')}, fewer than {FEWEST_SCENARIOS}: a fluctuation of so few is a guess"
        )
    few = {name: count for name, count in cube.questions.items() if count < FEWEST_QUESTIONS}
    if few:
        counts = ", ".join(f"{name} {count}" for name, count in few.items())
        found.append(
            f"fewer than {FEWEST_QUESTIONS} questions ({counts}): which they are may be much of the fluctuation"
        )
    if cube.outcomes is not None and cube.replicates == 1:
        found.append("one answer a question: the noise of replicates cannot be told from the effect of scenarios")
    return found


def _about_answers(models: Sequence[ModelResult]) -> list[str]:
    """Models whose score says as much of the form of their answers as of what they know."""
    lost = [
        f"{one.model} {share:.0%}"
        for one in models
        if (share := _unread_share(one)) is not None and share > _MOST_UNREAD
    ]
    if not lost:
        return []
    return [f"answers that are unparseable, refused or cut off count as wrong, and are many of {_some(lost)}"]


def _unread_share(model: ModelResult) -> float | None:
    """Of a model's answers, those that could not be scored and count as wrong; None where it is not known."""
    if model.answers is None:
        return None
    answered = sum(model.answers.get(kind, 0) for kind in ANSWERED)
    return 1 - model.answers.get(SCORED, 0) / answered if answered else None


def _about_likeness(cube: Cube) -> list[str]:
    """All fluctuations alike: Brown and Forsythe's test (1974) of equal spreads."""
    overall = cube.overall
    if len(overall) < 2 or overall.shape[1] < 3:
        return []
    if np.ptp(overall, axis=1).max() == 0:
        return ["no model moved at all: every score is the same in every scenario"]
    p = float(stats.levene(*overall, center="median").pvalue)
    if p <= ALPHA:
        return []
    return [f"the fluctuations do not differ beyond chance (Brown and Forsythe's p = {p:.2f}): the grades rank noise"]


def _about_grades(models: Sequence[ModelResult], most_stable: float | None) -> list[str]:
    found = []
    unsettled = [one for one in models if not is_settled(one)]
    if unsettled:
        names = [
            f"{one.model} {one.grade} {(one.grade_probability or {}).get(one.grade or '', 0):.2f}" for one in unsettled
        ]
        found.append(
            f"{len(unsettled)} of {_counted(len(models), 'grade')} are not settled (the odds of each): {_some(names)}"
        )
    if most_stable is not None and most_stable < 0.5:
        found.append(
            f"which model is the most stable is not settled: the first is so with probability {most_stable:.2f}"
        )
    return found


def _about_shares(models: Sequence[ModelResult]) -> list[str]:
    return [
        f"{'all' if share >= 1 else f'{share:.0%}'} of the variance of {one.model} is from {benchmark} alone"
        for one in models
        if len(one.shares) > 1
        for benchmark, share in one.shares.items()
        if share > _MOST_OF_ONE
    ]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
