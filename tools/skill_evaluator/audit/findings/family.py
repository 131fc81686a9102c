"""Scenarios and the answers of a trial → whether the family can carry an audit, and what stands against it.

Whether templates move models at all is told by answers to the same question: those in two scenarios must differ more
often than those in one, which differ by themselves. Where a question has one answer a scenario, nobody knows that.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from skill_evaluator.audit.cube.cube import Cube, Floats
from skill_evaluator.audit.findings.results import Shift
from skill_evaluator.audit.statistics.figures import neutrality_of
from skill_evaluator.checking.scenarios import REVIEW, ScenarioRemark, likeness
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.scenarios import Scenario
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.effects import ALPHA

FamilyVerdict = Literal["can carry an audit", "cannot carry an audit", "not settled"]
_PAIRS_SHOWN = 5
_LESS = 0.5  # of what two scenarios of the family usually differ by
_SAME = 1e-6  # scores are float32


class ScenarioPair(FrozenModel):
    """Two scenarios: how alike their texts are (0 to 1), and the share of answers that have the same score in both."""

    first: str
    second: str
    likeness: float
    agreement: float | None = None


class Trial(FrozenModel):
    """What answers say of a family. `moved`: how often answers to a question differ between two scenarios; `itself`:
    how often within one (None: one answer each); `p`: that the first is no more than the second (Student's t over the
    questions; None: not known). `shifts`: how far each scenario moves all models.
    """

    models: int
    questions: int
    replicates: int
    moved: float
    itself: float | None
    p: float | None
    neutrality: str
    shifts: list[Shift] = []


class FamilyCheck(FrozenModel):
    """The result of `scenarios check`. `review`: what only a person can say; `pairs`: the most alike first."""

    family: str | None
    scenarios: list[str]
    verdict: FamilyVerdict
    reasons: list[str]
    remarks: list[ScenarioRemark]
    pairs: list[ScenarioPair]
    trial: Trial | None
    review: list[str]


def judge_family(
    family: str | None, scenarios: Sequence[Scenario], remarks: Sequence[ScenarioRemark], cube: Cube | None
) -> FamilyCheck:
    """Put together what code says of the texts (`remarks`) and what the answers of a trial say."""
    trial, agreements, seen = None, {}, list(remarks)
    if cube is not None and cube.outcomes is not None:
        differing = _differing(cube)
        trial = _trial_of(cube, differing)
        agreements = {
            pair: 1 - float(differing.between[at].mean()) for at, pair in enumerate(combinations(cube.scenarios, 2))
        }
        seen += [*_about_answers(cube, differing, trial), *_about_difficulty(trial)]
    pairs = [
        ScenarioPair(
            first=first.name,
            second=second.name,
            likeness=likeness(first, second),
            agreement=agreements.get((first.name, second.name)),
        )
        for first, second in combinations(scenarios, 2)
    ]
    verdict, reasons = _verdict(seen, trial)
    return FamilyCheck(
        family=family,
        scenarios=[scenario.name for scenario in scenarios],
        verdict=verdict,
        reasons=reasons,
        remarks=seen,
        pairs=sorted(pairs, key=lambda pair: -pair.likeness)[:_PAIRS_SHOWN],
        trial=trial,
        review=list(REVIEW),
    )


def _verdict(remarks: Sequence[ScenarioRemark], trial: Trial | None) -> tuple[FamilyVerdict, list[str]]:
    """Return the verdict and its reasons: errors decide against a family, what is not known leaves it open."""
    errors = [remark for remark in remarks if remark.severity == "error"]
    if errors:
        return "cannot carry an audit", [f"{counted(len(errors), 'error')} below"]
    unknown = []
    unread = sum(remark.rule == "unreviewed" for remark in remarks)
    if unread:
        unknown.append(f"{counted(unread, 'scenario')} unreviewed")
    if trial is None:
        unknown.append("no trial: nobody knows whether these templates move a model")
    elif trial.p is None:
        unknown.append("one answer a question: nobody knows what differs by itself; ask two replicates")
    elif trial.p > ALPHA:
        unknown.append(f"no model was moved beyond chance (p = {trial.p:.2f}): ask more questions, or write bolder")
    return ("not settled", unknown) if unknown else ("can carry an audit", ["models answer differently in it"])


class _Differing:
    """How often answers differ, question by question: means over the models, [questions of all benchmarks].

    `between` scenarios, [pairs, questions]; within one (`itself`: None where no model answered twice); and how much
    more often between, of the models and questions that were answered twice (`excess`).
    """

    def __init__(self, between: Floats, itself: Floats) -> None:
        twice = ~np.isnan(itself).all(axis=0)
        self.between: Floats = between.mean(axis=1)
        self.itself: Floats | None = np.nanmean(itself[:, twice], axis=0) if twice.any() else None
        self.excess: Floats = np.nanmean((between - itself)[:, :, twice], axis=1) if twice.any() else self.between


def _differing(cube: Cube) -> _Differing:
    between, itself = [], []
    for outcomes in (cube.outcomes or {}).values():
        scores = outcomes.scores
        pairs = [
            _apart(scores[:, first, :, :, None], scores[:, second, :, None, :])
            for first, second in combinations(range(len(cube.scenarios)), 2)
        ]
        between.append(np.stack(pairs))
        replicates = list(combinations(range(outcomes.replicates), 2))
        one, other = ([pair[at] for pair in replicates] for at in (0, 1))
        itself.append(_apart(scores[..., one].swapaxes(1, 2), scores[..., other].swapaxes(1, 2)))
    return _Differing(np.concatenate(between, axis=2), np.concatenate(itself, axis=1))


def _apart(first: np.ndarray, second: np.ndarray) -> Floats:
    """Return how often two answers of a model to a question differ; [models, questions, …, …] → [models, questions].

    It is NaN where no two answers were measured: they may have failed, or not have been asked yet.
    """
    measured = ~(np.isnan(first) | np.isnan(second))
    differ = (np.abs(np.nan_to_num(first) - np.nan_to_num(second)) > _SAME) & measured
    counts = measured.sum(axis=(2, 3))
    shares = differ.sum(axis=(2, 3)) / np.maximum(counts, 1)
    return np.where(counts > 0, shares, np.nan).astype(np.float64)


def _trial_of(cube: Cube, differing: _Differing) -> Trial:
    neutrality = neutrality_of(cube)
    excess = differing.excess.mean(axis=0)
    p = None
    if not differing.between.any():
        p = 1.0
    elif differing.itself is not None and len(excess) > 1:
        error = float(excess.std(ddof=1)) / math.sqrt(len(excess))
        p = float(stdtr(len(excess) - 1, -float(excess.mean()) / error)) if error else float(excess.mean() <= 0)
    return Trial(
        models=len(cube.models),
        questions=differing.between.shape[1],
        replicates=cube.replicates or 1,
        moved=float(differing.between.mean()),
        itself=None if differing.itself is None else float(differing.itself.mean()),
        p=p,
        neutrality=neutrality.verdict,
        shifts=neutrality.shifts,
    )


def _about_answers(cube: Cube, differing: _Differing, trial: Trial) -> list[ScenarioRemark]:
    """Name pairs that answers hardly tell apart, where the family as a whole moves models beyond chance."""
    questions = differing.excess.shape[1]
    if trial.p is None or trial.p > ALPHA or len(cube.scenarios) < 3:
        return []
    usual = float(differing.excess.mean())
    margin = float(stdtrit(questions - 1, 1 - ALPHA)) / math.sqrt(questions)
    remarks = []
    for (first, second), excess, between in zip(
        combinations(cube.scenarios, 2), differing.excess, differing.between, strict=True
    ):
        most = float(excess.mean()) + margin * float(excess.std(ddof=1))
        if most < _LESS * usual:
            message = (
                f"{1 - float(between.mean()):.0%} of its answers score as in {first}, where the family usually differs "
                "more than twice as often; keep one of them, or both count as one"
            )
            remarks.append(ScenarioRemark(severity="warning", scenario=second, rule="same answers", message=message))
    return remarks


def _about_difficulty(trial: Trial) -> list[ScenarioRemark]:
    """Name scenarios that are harder, or easier, for everybody."""
    remarks = []
    for shift in trial.shifts:
        if shift.significant:
            harder = "harder" if shift.shift < 0 else "easier"
            message = f"it is {harder} for everybody by {abs(shift.shift):.1f} points (q = {shift.q:.3f}): drop it"
            remarks.append(
                ScenarioRemark(severity="warning", scenario=shift.scenario, rule=f"{harder} for all", message=message)
            )
    return remarks
