"""`cases audit`: which cases never told two versions or models apart, and which disagree with the rest."""

import json

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.library import SKILL, Library
from tests.support.records import Score, a_run, keep

ABILITY = {"1.0.0": 0.2, "1.1.0": 0.35, "1.2.0": 0.5, "1.3.0": 0.65, "1.4.0": 0.8, "1.5.0": 0.95}


def scores(ability: float) -> dict[str, list[Score]]:
    """Five cases that follow ability, one that goes the other way, and some that everybody does alike."""
    ordinary: dict[str, list[Score]] = {f"case-{at}": [ability, ability + 0.01 * at] for at in range(5)}
    others: dict[str, list[Score]] = {"upside-down": [1 - ability] * 2, "easy": [1.0, 1.0], "hopeless": [0.0, 0.0]}
    return {**ordinary, **others, "stuck": [0.5, 0.5]}


@pytest.fixture
def recorded(library: Library) -> Library:
    keep(library, *(a_run(version, at, scores(ability)) for at, (version, ability) in enumerate(ABILITY.items(), 1)))
    return library


def test_every_case_is_called_what_it_was_planted_as(recorded: Library) -> None:
    audit = recorded.call("cases", "audit", SKILL, "--format", "json").json
    schema = json.loads(schema_text("case-audit"))
    jsonschema.Draft202012Validator(schema).validate(audit)
    standings = {case["case_id"]: case["standing"] for case in audit["cases"]}
    assert standings == {
        **{f"case-{at}": "tells apart" for at in range(5)},
        "upside-down": "disagrees",
        "easy": "all right",
        "hopeless": "all wrong",
        "stuck": "all alike",
    }
    by_id = {case["case_id"]: case for case in audit["cases"]}
    assert by_id["upside-down"]["discrimination"] == pytest.approx(-1.0)
    assert by_id["case-0"]["discrimination"] > 0.9
    assert by_id["easy"]["discrimination"] is None
    assert by_id["case-0"]["lowest_by"].startswith("1.0.0 ")
    assert by_id["case-0"]["n"] == len(ABILITY)


def test_what_wants_a_look_stands_first(recorded: Library) -> None:
    text = recorded.call("cases", "audit", SKILL).out
    page = recorded.call("cases", "audit", SKILL, "--format", "markdown").out
    assert f"{SKILL}: 6 of 9 cases tell 6 versions and models apart" in text
    assert "look at its ground truth): upside-down" in text
    rows = [line.split()[0] for line in text.splitlines() if line.startswith(("upside", "case-", "easy", "stuck"))]
    assert rows[0] == "upside-down"
    assert "| `upside-down` | disagrees | -1.000 |" in page


def test_a_case_whose_truth_changed_is_not_held_against_old_answers(library: Library) -> None:
    first = a_run("1.0.0", 1, scores(0.2))
    second = a_run("1.1.0", 2, scores(0.8))
    cases = [case.model_copy(update={"digest": "sha256:new"}) for case in second.per_case if case.case_id == "case-0"]
    rest = [case for case in second.per_case if case.case_id != "case-0"]
    keep(library, first, second.model_copy(update={"per_case": [*cases, *rest]}))
    audit = library.call("cases", "audit", SKILL, "--format", "json").json
    by_id = {case["case_id"]: case for case in audit["cases"]}
    assert (by_id["case-0"]["standing"], by_id["case-0"]["n"]) == ("too few", 1)
    assert by_id["case-1"]["standing"] == "tells apart"
    assert by_id["upside-down"]["discrimination"] is None  # two say nothing of a correlation


def test_one_version_of_one_model_tells_nothing(library: Library) -> None:
    keep(library, a_run("1.0.0", 1, scores(0.5)))
    done = library.call("cases", "audit", SKILL)
    assert done.code == 2
    assert "2 are needed" in done.err
