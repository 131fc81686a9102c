"""The verdict on a mutant: what chance does is not called a kill, and what a mutant does is."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from skill_evaluator.evaluation.mutation import adjusted_p_values, decide_mutant, mutants_of
from skill_evaluator.library.config import Policy
from skill_evaluator.library.prompts import Prompt
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.rules import VerdictRules

from tests.support.records import a_record

RULES = VerdictRules(policy=Policy(), skill="s", primary_metric="field_level_f1", required_coverage=0.9)
MUTANT, _ = mutants_of(Prompt.of("Read.\n\n- Trim it."))
CASES = [f"case-{at}" for at in range(10)]
World = Callable[[random.Random, str], float]


def status(original: World, mutant: World, dice: random.Random, replicates: int = 4) -> str:
    """Return the status of a mutant; the first four runs are those of the original prompt."""
    records: list[Record] = [
        a_record({case: [world(dice, case) for _ in range(replicates)] for case in CASES}, run_id=f"run-{at}")
        for at, world in enumerate([*[original] * 4, mutant])
    ]
    return decide_mutant(MUTANT, records[:4], records[4], RULES).status


def noisy(mean: float) -> World:
    return lambda dice, case: float(dice.random() < mean)


def test_parts_of_a_prompt_are_sections_bullets_and_sentences_outside_of_code() -> None:
    text = (
        "# Read\n\nRead it.\n\n```\nAn example. It stays.\n```\n\n- Trim it.\n  Always.\n\n## Dates\n\nUse ISO dates.\n"
    )
    mutants = {mutant.id: mutant.text for mutant in mutants_of(Prompt.of(f"{text}\n# Answer\n\nWrite JSON."))}
    assert " ".join(mutants) == "section-1 sentence-3 bullet-9 section-12 sentence-14 section-16 sentence-18"
    assert (mutants["bullet-9"], mutants["section-12"]) == ("- Trim it. Always.", "## Dates Use ISO dates.")


def test_mutants_without_effect_are_seldom_killed() -> None:
    dice = random.Random(7)
    killed = sum(status(noisy(0.8), noisy(0.8), dice) == "killed" for _ in range(40))
    assert killed <= 6  # 5 % are allowed; more than 6 of 40 has a probability of 0.3 %


def test_three_lost_cases_kill_a_mutant_and_one_does_not() -> None:
    for lost, becomes in ((1, "survived"), (3, "killed"), (5, "killed")):

        def damaged(dice: random.Random, case: str, lost: int = lost) -> float:
            return 0.0 if case in CASES[:lost] else 1.0

        assert status(lambda dice, case: 1.0, damaged, random.Random(0)) == becomes


def test_mutant_is_killed_by_a_field_of_two_cases() -> None:
    scores: dict[str, list[float | str]] = {case: [1.0] * 4 for case in CASES}

    def run(name: str, right: int) -> Record:
        fields = {"rare": dict.fromkeys(CASES[:2], (right, 4)), "plain": dict.fromkeys(CASES, (4, 4))}
        return a_record(scores, run_id=name, fields=fields)

    result = decide_mutant(MUTANT, [run(f"u{at}", 4) for at in range(4)], run("m", 0), RULES)
    assert [(one.kind, one.name) for one in result.reactions] == [("field", "rare")]


def test_changes_that_controls_share_do_not_kill() -> None:
    dice = random.Random(1)

    def status_of_coin() -> str:
        worlds = [{case: float(dice.random() < 0.5) for case in CASES} for _ in range(5)]
        at = iter([world for world in worlds for _ in range(len(CASES) * 4)])
        draw: World = lambda _, case: next(at)[case]  # noqa: E731 - every answer of a case is the same in one run
        return status(draw, draw, dice)

    killed = sum(status_of_coin() == "killed" for _ in range(30))
    assert killed <= 5


def scores(*lost: int, cases: int = 14, figures: int = 4) -> np.ndarray:
    """Five versions in which all is right, but that the last of them loses the first figure in some cases."""
    table = np.ones((figures, cases, 5))
    table[0, list(lost), -1] = 0.0
    return table


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_p_of_a_mutant_is_the_share_of_permutations(count: int) -> None:
    p_values = adjusted_p_values(scores(*range(count)))
    assert p_values == [pytest.approx(0.2**count), 1.0, 1.0, 1.0]


def test_noise_of_the_controls_raises_p() -> None:
    calm, noisy = scores(1, 2, 3), scores(1, 2, 3)
    noisy[0, [4, 5, 6], [0, 1, 2]] = 0.0
    assert adjusted_p_values(calm)[0] < 0.01 < adjusted_p_values(noisy)[0]


def test_exchangeable_versions_seldom_differ() -> None:
    dice = np.random.default_rng(5)
    least = [min(adjusted_p_values(dice.normal(size=(6, 8, 4)))) for _ in range(200)]
    assert sum(p <= 0.05 for p in least) <= 22  # 10 are expected; more than 22 has a probability below 0.1 %
