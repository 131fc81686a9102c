"""`accept`: the file that it writes, what it refuses, and what `lint` checks."""

import json
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text
from skill_evaluator.identifiers import now

from tests.support.library import SKILL, Ended, Library, read
from tests.support.records import Score, a_run, keep

GIT = {
    "GIT_AUTHOR_NAME": "A Reader",
    "GIT_AUTHOR_EMAIL": "reader@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}
NOBODY = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
FILE = f"components/{SKILL}/evals/accepted.json"


def level(score: float) -> dict[str, list[Score]]:
    return {f"case-{at:02d}": [score, score + 0.02, score - 0.02, score + 0.01, score] for at in range(12)}


def accept(library: Library, *arguments: str, env: dict[str, str] | None = None) -> Ended:
    return library.call("accept", SKILL, *arguments, env=GIT if env is None else env)


def accepted(library: Library) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = read(library.root / FILE)["accepted"]
    return entries


@pytest.fixture
def creeping(library: Library) -> Library:
    """Each version is a little worse than the one before; the model `n` was not asked 1.2.0."""
    keep(
        library,
        a_run("1.0.0", 1, level(0.90)),
        a_run("1.1.0", 2, level(0.84)),
        a_run("1.1.0", 3, level(0.86)),
        a_run("1.2.0", 4, level(0.80)),
        a_run("1.0.0", 5, level(0.70), model_id="n"),
        a_run("1.1.0", 6, level(0.70), model_id="n"),
        a_run("1.9.0", 7, level(0.80), complete=False),
    )
    return library


def test_accept_records_who_when_and_why(creeping: Library) -> None:
    before = now()
    found = accept(creeping, "1.1.0", "--reason", "dates  are read\nelsewhere")
    assert (found.code, found.err) == (0, "")
    (entry,) = accepted(creeping)
    assert before[:10] <= entry.pop("date") <= now()[:10]
    assert entry == {
        "version": "1.1.0",
        "by": "A Reader <reader@example.org>",
        "why": "dates are read elsewhere",
        "run_ids": {
            "m": ["20260102T080000Z-abc002-m", "20260103T080000Z-abc003-m"],
            "n": ["20260106T080000Z-abc006-n"],
        },
        "models": None,
    }
    written = json.loads(schema_text("accepted"))
    jsonschema.Draft202012Validator(written).validate(read(creeping.root / FILE))


def test_accept_prints_and_lists_what_is_accepted(creeping: Library) -> None:
    assert f"no version of {SKILL} was accepted" in accept(creeping, "--list").out
    keep(creeping, a_run("1.3.0", 8, level(0.5), accuracy={"field_level_f1": figures(0.5)}))
    keep(creeping, a_run("1.3.0", 9, level(0.6), accuracy={"field_level_f1": figures(0.6)}))
    found = accept(creeping, "--reason", "cheaper", "--by", "Them")
    assert [" ".join(line.split()) for line in found.out.splitlines()] == [
        f"{SKILL} 1.3.0 is accepted",
        "by Them: cheaper",
        "",
        "model runs field_level_f1",
        "m 2 0.550",
        "",
        f"commit {FILE}: later versions are compared with 1.3.0 from then on",
    ]
    found = accept(creeping, "1.3.0", "--reason", "cheaper", "--format", "json")
    assert (found.json["skill"], found.json["new"], found.json["metric"]) == (SKILL, False, "field_level_f1")
    assert found.json["strict_means"] == {"m": 0.55}
    assert found.json["acceptance"] == accepted(creeping)[0]
    assert accept(creeping, "--list", "--format", "json").json == {"skill": SKILL, "accepted": accepted(creeping)}
    accept(creeping, "--reason", "good", "--model", "n")  # of the models named the highest complete version
    assert [(entry["version"], entry["models"]) for entry in accepted(creeping)][1:] == [("1.1.0", ["n"])]


def figures(mean: float) -> dict[str, Any]:
    return {"mean": mean, "strict_mean": mean, "stdev": 0.0, "n": 60, "n_cases": 12, "ci95": None}


def test_history_and_leaderboard_mark_the_accepted_version(creeping: Library) -> None:
    for command in ("history", "leaderboard"):
        assert "(accepted)" not in creeping.call(command, SKILL).out
    accept(creeping, "1.1.0", "--reason", "cheaper")
    rows = creeping.call("history", SKILL).out.splitlines()
    assert [row.split()[:2] for row in rows if "(accepted)" in row] == [["1.1.0", "(accepted)"]]
    assert "(accepted)" not in creeping.call("leaderboard", SKILL).out  # of 1.2.0
    accept(creeping, "--reason", "cheaper still")
    assert f"{SKILL} 1.2.0 (accepted): " in creeping.call("leaderboard", SKILL).out


def test_accept_adds_no_second_acceptance_for_the_same_reason(creeping: Library) -> None:
    accept(creeping, "--reason", "good")
    before = (creeping.root / FILE).read_bytes()
    found = accept(creeping, "1.2.0", "--reason", "good", "--by", "Them")
    assert "was accepted before, for the same reason" in found.out
    assert (creeping.root / FILE).read_bytes() == before
    accept(creeping, "1.2.0", "--reason", "another reason")
    accept(creeping, "1.2.0", "--reason", "good", "--model", "m")
    assert [(entry["why"], entry["models"]) for entry in accepted(creeping)] == [
        ("good", None),
        ("another reason", None),
        ("good", ["m"]),
    ]


def test_accept_refuses_an_unrecorded_version_or_no_reason(creeping: Library) -> None:
    for arguments, words in (
        (
            ("1.9.0", "--reason", "x"),
            "no complete run of '1.9.0' to accept; versions with a complete run: 1.2.0, 1.1.0, 1.0.0",
        ),
        (
            ("1.2.0", "--reason", "x", "--model", "n"),
            "no complete run of '1.2.0' with n to accept; versions with a complete run: 1.1.0",
        ),
        (("1.2.0", "--reason", "x", "-m", "n", "-m", "m"), "no complete run of '1.2.0' with n to accept"),
        (("--reason", "x", "--model", "o"), "no run of model 'o'"),
        (("1.2.0",), "a reason is required"),
        (("1.2.0", "--reason", " "), "a reason is required"),
    ):
        assert accept(creeping, *arguments).refuses(words), arguments
    assert not (creeping.root / FILE).exists()


def test_accept_requires_a_name(creeping: Library) -> None:
    assert accept(creeping, "--reason", "x", env=NOBODY).refuses("name who accepts the version: --by NAME")


def test_invalid_file_of_acceptances_is_refused_and_kept(creeping: Library) -> None:
    creeping.write(FILE, {"skill": SKILL, "accepted": [{"version": "1.0.0"}]})
    before = (creeping.root / FILE).read_bytes()
    for command in (("accept", SKILL, "--reason", "x", "--by", "me"), ("compare", SKILL)):
        refused = creeping.call(*command)
        assert refused.refuses(f"at accepted[0].by in components/{SKILL}/evals/accepted.json"), (command, refused)
    assert (creeping.root / FILE).read_bytes() == before
    problems = creeping.call("lint", "--format", "json").json["components"][0]["problems"]
    assert any(FILE in problem and "at accepted[0].by" in problem for problem in problems)


def test_lint_names_acceptances_without_a_record(creeping: Library) -> None:
    accept(creeping, "1.1.0", "--reason", "good")
    (good,) = accepted(creeping)
    entries = [
        good,
        {**good, "version": "1.1.1"},
        {**good, "version": "1.2.0", "models": ["n"], "run_ids": {"m": ["20260104T080000Z-abc004-m", "gone"]}},
    ]
    creeping.write(FILE, {"skill": SKILL, "accepted": entries})
    found = creeping.call("lint", "--format", "json")
    assert found.code == 2
    assert [problem for problem in found.json["components"][0]["problems"] if "accepted" in problem] == [
        f"no complete run of version '1.1.1' at accepted[1] in {FILE} (did you mean '1.1.0'?)",
        f"no complete run of version '1.2.0' by model 'n' at accepted[2] in {FILE}",
        f"'gone' is not a complete run of 1.2.0 by 'm' at accepted[2] in {FILE}",
    ]
