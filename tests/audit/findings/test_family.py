"""Whether a trial's answers let a family carry an audit, on answers whose truth is drawn."""

from dataclasses import replace

import numpy as np
import pytest
from skill_evaluator.audit.cube import Cube, Floats, Outcomes, cube_of_outcomes
from skill_evaluator.audit.findings.family import FamilyCheck, ScenarioRemark, judge_family
from skill_evaluator.library.scenarios import SLOT, Scenario

NAMES = tuple(f"s{at}" for at in range(8))
SCENARIOS = [
    Scenario(name=name, intent=name, template=f"{letter * 40} {SLOT}")
    for name, letter in zip(NAMES, "abcdefgh", strict=True)
]


def asked(
    own: float, *, shift: Floats | None = None, copy: bool = False, replicates: int = 2, questions: int = 60
) -> Cube:
    """Four models; `own`: how far a question's chance moves with the scenario, `copy`: the last two are one."""
    random = np.random.default_rng(5)
    moves = own * random.choice([-1.0, 1.0], size=(4, 8, questions))
    if copy:
        moves[:, 7] = moves[:, 6]
    rates = random.choice([0.1, 0.9], size=questions) + moves + (0 if shift is None else shift[:, None])
    answers = random.random((*rates.shape, replicates)) < rates[..., None]
    outcomes = Outcomes(questions=tuple(f"q{at}" for at in range(questions)), scores=answers.astype(np.float32))
    return cube_of_outcomes([f"m{at}" for at in range(4)], NAMES, {"quiz": outcomes}, weights={})


def judged(cube: Cube | None, *remarks: ScenarioRemark) -> FamilyCheck:
    return judge_family("legal", SCENARIOS, remarks, cube)


def test_a_family_that_moves_models_beyond_their_own_noise_can_carry_an_audit_and_no_other() -> None:
    check = judged(asked(0.4))
    assert (check.verdict, check.remarks) == ("can carry an audit", [])
    assert check.trial.p < 0.001
    assert check.trial.moved > (check.trial.itself or 0) + 0.1
    check = judged(asked(0.0))
    assert check.verdict == "not settled"
    assert check.trial.moved == pytest.approx(check.trial.itself, abs=0.02)
    assert "no model was moved beyond chance" in check.reasons[0]


def test_an_error_decides_and_what_is_not_known_or_answered_once_leaves_it_open() -> None:
    check = judged(asked(0.4, replicates=1))
    assert (check.verdict, check.trial.p if check.trial else 0) == ("not settled", None)
    assert "one answer a question" in check.reasons[0]
    still = asked(0.0)
    same = replace(still, outcomes={"quiz": replace(still.outcomes["quiz"], scores=np.ones((4, 8, 60, 2), np.float32))})
    assert judged(same).reasons[0].startswith("no model was moved beyond chance (p = 1.00)")
    trap = ScenarioRemark(severity="error", scenario="s0", rule="adversarial", message="a trap")
    unread = ScenarioRemark(severity="warning", scenario="s0", rule="unreviewed", message="unread")
    assert judged(asked(0.4), trap).verdict == "cannot carry an audit"
    assert judged(asked(0.4), unread).verdict == "not settled"
    assert judged(None).reasons == ["no trial: nobody knows whether these templates move a model"]


def test_scenarios_answered_alike_are_named_and_one_harder_for_everybody_comes_with_advice() -> None:
    named = [(one.scenario, one.rule) for one in judged(asked(0.4, copy=True)).remarks]
    assert named == [("s7", "same answers")]
    shift = np.zeros(8)
    shift[3] = -0.4
    (remark,) = [one for one in judged(asked(0.2, shift=shift)).remarks if one.scenario == "s3"]
    assert (remark.severity, remark.rule) == ("warning", "harder for all")
    assert remark.message.endswith("drop it")


def test_what_was_not_answered_twice_is_not_taken_for_an_answer_that_stayed() -> None:
    """A trial that was stopped has first answers to all questions, and second ones to some of them."""
    for answered_twice in (0, 20, 60):
        whole = asked(0.0)
        quiz = whole.outcomes["quiz"]
        scores = quiz.scores.copy()
        scores[:, :, answered_twice:, 1] = np.nan
        check = judged(replace(whole, outcomes={"quiz": replace(quiz, scores=scores)}))
        assert check.verdict == "not settled", check.reasons
        assert (check.trial.p is None) == (answered_twice == 0), answered_twice
