"""Recorded answers of a regression judge: code decides, whatever the answers say of shipping."""

import json
from pathlib import Path

import jsonschema
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import JudgingLibrary
from tests.support.judged import CHANGE, SAME, answer

FINE = json.dumps(answer(SAME))
FACTS = json.dumps(answer({**SAME, "factuality": ("worse", "low")}))  # it says ship, as FINE does
ANSWERS = {"fine": FINE, "facts": FACTS, "prose": "The candidate is fine."}
REGRESSED = ["regression_detected", "regression_severity", "ship_decision"]


def test_recorded_answers_are_decided_and_validate_against_the_schema(tmp_path: Path) -> None:
    library = JudgingLibrary(tmp_path)
    library.lines("pairs.jsonl", *({"id": name, **CHANGE} for name in ANSWERS))
    library.lines(
        "answers.jsonl",
        *(
            {"case_id": f"{name}/{order}", "replicate": 0, "text": text}
            for name, text in ANSWERS.items()
            for order in (1, 2)
        ),
    )
    done = library.call(
        "judge", "regression", "--items", "pairs.jsonl", "--judge", "recorded", "--format", "json", env=None
    )
    assert done.code == 3, done.err
    schema = json.loads(schema_text("judge-regression"))
    jsonschema.validate({key: value for key, value in done.json.items() if key != "folder"}, schema)
    (judge,) = done.json["judges"]
    pairs = {pair["id"]: pair for pair in judge["pairs"]}
    decisions = {name: pair["ship_decision"] for name, pair in pairs.items()}
    assert decisions == {"fine": "ship", "facts": "block", "prose": None}
    assert pairs["facts"]["answers"][0]["mismatches"] == REGRESSED
    assert (judge["unscored"], judge["undecided"]) == ({"not_json": 2}, 1)
