"""`plan --detect`: what would show a drop, from the newest record of each model; plans no evaluation."""

import json

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.library import SKILL, Ended, Library
from tests.support.records import Score, a_run, keep


def cases(spread: float, replicates: int = 5) -> dict[str, list[Score]]:
    return {
        f"case-{at:02d}": [0.5 + spread * (at % 5 - 2) + 0.02 * ((at + 2 * one) % 4) for one in range(replicates)]
        for at in range(12)
    }


@pytest.fixture
def recorded(library: Library) -> Library:
    library.settings(policy={"design": "beside"})
    keep(library, a_run("1.0.0", 1, cases(0.2)), a_run("1.1.0", 2, cases(0.05), cost_usd=0.6))
    keep(library, a_run("1.1.0", 3, cases(0.1, 1), model_id="n"), a_run("1.1.0", 4, cases(0.3), complete=False))
    return library


def detect(library: Library, drop: str = "0.05", *arguments: str) -> Ended:
    return library.call("ci", "plan", "--detect", drop, *(arguments or (SKILL,)))


def test_it_says_whether_the_present_cases_do_and_what_more_would_cost(recorded: Library) -> None:
    found = detect(recorded)
    assert found.code == 0, found.err
    assert f"{SKILL}: what shows a drop of 0.05 with 80 % power at α 0.05" in found.out
    assert "m: its 12 cases × 5 show a drop of about 0.04" in found.out
    assert "3 replicates of these cases would show 0.05" in found.out
    assert "n: its record has one replicate a case: evaluate with --replicates 2 or more" in found.out
    assert max(map(len, found.out.splitlines())) <= 110
    assert not (recorded.root / "plan.json").exists()


def test_json_validates_against_its_schema_and_is_of_the_newest_complete_record(recorded: Library) -> None:
    found = detect(recorded, "0.05", SKILL, "--format", "json").json
    written = json.loads(schema_text("sizing"))
    jsonschema.Draft202012Validator(written).validate(found)
    m, n = found["models"]
    assert (m["run_id"], m["skill_version"], m["cost_per_call_usd"]) == ("20260102T080000Z-abc002-m", "1.1.0", 0.01)
    assert [choice["replicates"] for choice in m["choices"]] == [1, 2, 3, 5, 10, 20]
    assert n["choices"] == []


def test_the_design_of_the_policy_is_planned(recorded: Library) -> None:
    def planned() -> tuple[str, float]:
        plan = detect(recorded, "0.05", SKILL, "-m", "m", "--format", "json").json
        return plan["design"], plan["models"][0]["shows"]

    recorded.settings(policy={"design": "recorded"})
    day = planned()
    recorded.settings(policy={"design": "beside"})
    assert (day[0], planned()[0]) == ("recorded", "beside")
    assert planned()[1] < day[1]


def test_a_drop_that_two_days_hide_has_its_remedy_named(recorded: Library) -> None:
    recorded.settings(policy={"design": "recorded"})
    found = detect(recorded, "0.005", SKILL, "-m", "m")
    assert "no number of replicates of these cases shows 0.005: ask the baseline beside it" in found.out


def test_what_is_wrong_is_said_in_a_line(recorded: Library) -> None:
    for drop, arguments, says in (
        ("0", (SKILL,), "--detect must be a drop between 0 and 1"),
        ("5", (SKILL,), "--detect must be a drop between 0 and 1, such as 0.05, not 5"),
        ("nan", (SKILL,), "--detect must be a drop between 0 and 1"),
        ("0.05", ("--model", "m"), "--detect takes one component"),
        ("0.05", (SKILL, "other"), "--detect takes one component"),
        ("0.05", ("notice-extractio",), "did you mean 'notice-extraction'?"),
        ("0.05", (SKILL, "--model", "o"), "no run of model 'o'"),
    ):
        assert detect(recorded, drop, *arguments).refuses(says), (drop, arguments)
