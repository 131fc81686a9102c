"""Alerts of `judge regression` if the corrected rate of regressions is significantly above the policy's limit."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.judges.calibration.corruption import CONTROL, CORRUPTIONS

from tests.support.asked_judges import ITEMS, JudgingLibrary
from tests.support.judged import CHANGE, SAME, answer
from tests.support.library import REPLAY, Ended

PAIRS, N, LOST = "pairs.jsonl", 40, 30
CALIBRATION = ".evaluator/calibration.json"
REVIEW, ALERT = 4, 3


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> JudgingLibrary:
    """A library with the calibration of a judge that finds every corruption, and a batch with 30 regressions of 40."""
    library = JudgingLibrary(tmp_path_factory.mktemp("calibrated"))
    text = "- It opened in {}.\n- It is {} metres long.\n- It is dry."
    asked = {"human": 1, "input": "Describe the hall in bullet points.", "output_2": "- It is a hall."}
    halls = [{"id": f"hall-{n}", "output_1": text.format(1950 + n, 30 + n), **asked} for n in range(20)]
    library.items(*halls)
    found = {
        kind: json.dumps(answer({**SAME, corruption.dimension: ("worse", "high")}))
        for kind, corruption in CORRUPTIONS.items()
    }
    given = {CONTROL: json.dumps(answer(SAME)), **found}
    texts = {f"{hall['id']}/{kind}": text for hall in halls for kind, text in given.items()}
    lost = json.dumps(answer({**SAME, "completeness": ("worse", "low")}))
    texts |= {f"p{place}": lost if place < LOST else json.dumps(answer(SAME)) for place in range(N)}
    library.record_answers({(f"{pair}/{order}", 0): text for pair, text in texts.items() for order in (1, 2)})
    done = library.call("judge", "calibrate", "--labels", ITEMS, "--judge", "recorded", "--corrupt", "50")
    assert done.code == 0, done.err
    shutil.copy(library.judging() / "evaluation_results.json", library.root / CALIBRATION)
    shutil.rmtree(library.judgements)
    library.lines(PAIRS, *({"id": f"p{place}", **CHANGE} for place in range(N)))
    return library


@pytest.fixture
def library(calibrated: JudgingLibrary, tmp_path: Path) -> JudgingLibrary:
    return calibrated.copy(tmp_path)


def judged(library: JudgingLibrary, *arguments: str, **policy: Any) -> Ended:
    library.settings(policy={"judge": policy})
    return library.call("judge", "regression", "--items", PAIRS, "--judge", "recorded", *arguments)


def test_rate_above_the_policy_alerts_with_its_figures(library: JudgingLibrary) -> None:
    done = judged(library, alert_above=0.1, calibration="calibration.json")
    assert done.code == ALERT, done.err
    assert "ALERT: completeness by recorded: corrected rate of regressions 0.750 (0.6" in done.out
    assert "at most 0.1 is allowed; reported 0.750, corrected by sensitivity 1.000 of " in done.out
    assert "of pairs.jsonl; a rate of regressions is too high or rose\nwhere: " in done.out
    alerts = {alert["dimension"]: alert["above"] for alert in library.judged()["alerts"]}
    assert alerts == {"factuality": False, "completeness": True, "format_adherence": False}


def test_cascade_computes_no_alert_and_says_so(library: JudgingLibrary) -> None:
    library.models(REPLAY, {**REPLAY, "id": "strong"})
    library.settings(policy={"judge": {"alert_above": 0.1, "calibration": "calibration.json"}})
    done = library.call("judge", "regression", "--items", PAIRS, "--cascade", "recorded,strong")
    assert done.code == REVIEW, done.err
    assert "no alert is computed for a cascade, because its judges see different pairs" in done.out
