"""Drift of a model: a change of the primary mean beyond the stated day."""

import random
from pathlib import Path

import pytest
from skill_evaluator import Library as PromptLibrary
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.component import drifted
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.results import ModelVerdict

from tests.support.library import SKILL, Library
from tests.support.records import Score, a_record, a_run, keep
from tests.verdicts.rules import some_rules

HARD = [random.Random(0).uniform(0.5, 0.9) for _ in range(20)]


def a_day(shift: float, seed: int) -> Record:
    """A run of twenty cases, all of them better or worse by what the day, or the model, did."""
    dice = random.Random(seed)
    cases: dict[str, list[Score]] = {
        f"case-{at:02d}": [hard + shift + dice.gauss(0, 0.02) for _ in range(3)] for at, hard in enumerate(HARD)
    }
    return a_record(cases, run_id=f"202601{seed:02d}T000000Z-000000-m")


def asked_again(shift: float, *earlier: float) -> ModelVerdict:
    runs = [a_day(day, seed) for seed, day in enumerate(earlier, 1)]
    pair = Pair(baseline=runs[-1], candidate=a_day(shift, 20), baseline_again=tuple(runs[:-1]))
    (model,) = drifted([pair], some_rules({"tolerance": 0.01})).models
    return model


def test_move_is_drift_if_it_exceeds_the_stated_day() -> None:
    assert asked_again(-0.005, 0.0).moved == []
    assert asked_again(-0.05, 0.0).moved == ["field_level_f1 0.840 → 0.791"]
    assert asked_again(-0.08, 0.002, -0.002, 0.001, -0.001).moved == ["field_level_f1 0.835 → 0.761"]


def test_drifted_rerun_warns_and_has_its_drift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = ({f"c{at}": [score] * 3 for at in range(6)} for score in (1.0, 0.0))
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, right))
    recorded = PromptLibrary(library.root / "components", config=library.root / ".evaluator").recorded(SKILL)
    alike, moved = a_run("1.0.0", 2, right), a_run("1.0.0", 3, wrong)
    (alike,) = recorded.with_drift([alike], [True])
    assert alike.drift is not None
    assert (alike.drift.moved, capsys.readouterr().err) == ([], "")
    (moved,) = recorded.with_drift([moved], [True])
    assert moved.drift is not None
    assert moved.drift.moved == ["field_level_f1 1.000 → 0.000"]
    assert "warning: m drifted with an unchanged prompt: field_level_f1 1.000 → 0.000" in capsys.readouterr().err
