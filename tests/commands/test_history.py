"""`history` through the command line: versions beside models, and what made it worse."""

import json

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text
from skill_evaluator.verdicts.sizing import can_show

from tests.support.library import SKILL, Ended, Library
from tests.support.records import Score, a_run, keep


def cases(level: float, version: int = 0) -> dict[str, list[Score]]:
    """Scores around a level; each case is a little up in one version and down in another, and all stay as they are."""
    return {
        f"case-{at:02d}": [level + 0.01 * ((at + version) % 3 - 1 + (at + 2 * one) % 4) for one in range(5)]
        for at in range(12)
    }


@pytest.fixture
def recorded(library: Library) -> Library:
    levels = {"1.0.0": (0.8, 0.7), "1.1.0": (0.8, 0.7), "1.10.0": (0.5, 0.7), "2.0.0": (0.5, 0.9)}
    for day, (version, (m, n)) in enumerate(levels.items(), 1):
        keep(library, a_run(version, day, cases(m, day)), a_run(version, day, cases(n, day), model_id="n"))
    keep(library, a_run("1.0.0", 20, cases(0.81), complete=False), a_run("1.0.0", 21, cases(0.1), scenario="cautious"))
    return library


def history(library: Library, *arguments: str) -> Ended:
    return library.call("history", SKILL, *arguments)


def test_history_names_regressions_first(recorded: Library) -> None:
    found = history(recorded)
    assert found.code == 0, found.err
    lines = [" ".join(line.split()) for line in found.out.splitlines()]
    starts = (
        "m: ▼ 1.10.0 regressed against 1.1.0: -0.300 (-0.3",
        "m: ▼ 2.0.0 regressed since 1.0.0; against 1.10.0: 0.000 (",
        "m: all changes since 1.0.0: field_level_f1 -0.300 (95 % confidence interval -0.",
        "n: ▲ 2.0.0 improved against 1.10.0: +0.200 (",
    )
    assert [start for start in starts if not any(line.startswith(start) for line in lines)] == []
    reasons = (
        "2.0.0: regressed since 1.0.0 with m",
        "over all runs of 1.1.0, m is significantly better than n, by 0.100 (q ≤ 1e-06)",
    )
    assert lines[-2] == f"to ship: 1.1.0 with m ({'; '.join(reasons)})"
    assert lines[-1] == f"next: compare the two versions: `skill-evaluator compare {SKILL}`"
    assert [line for line in lines if line[:2] in ("1.", "2.")] == [
        "1.0.0 0.815 0.715",
        "1.1.0 0.815 = 0.715 =",
        "1.10.0 0.515 ▼ 0.715 =",
        "2.0.0 0.515 ▼ 0.915 ▲",
    ]


def test_first_version_shows_the_detectable_drop(library: Library) -> None:
    keep(library, a_run("1.0.0", 1, cases(0.8)))
    assert f"nothing to compare with yet; {can_show(len(cases(0.8)))}\n" in history(library).out
    assert f"how sure: {can_show(len(cases(0.8)))}\n" in library.call("compare", SKILL).out


def test_json_validates_against_its_schema(recorded: Library) -> None:
    written = json.loads(schema_text("history"))
    jsonschema.Draft202012Validator(written).validate(history(recorded, "--format", "json").json)


def test_history_fails_on_the_verdict_of_the_highest_version(recorded: Library) -> None:
    for arguments, code in (
        (("regressed", "--model", "n"), 0),
        (("improved", "--model", "n"), 4),
        (("unchanged", "--model", "n"), 0),
        (("regressed",), 3),
    ):
        assert history(recorded, "--fail-on", *arguments).code == code, arguments


def test_small_losses_that_add_up_are_regressed(library: Library) -> None:
    for at in range(5):
        keep(library, a_run(f"1.{at}.0", at + 1, cases(0.8 - 0.03 * at, at)))
    found = history(library, "--fail-on", "regressed", "--format", "json")
    steps = [point["step"] for point in found.json["models"][0]["points"]]
    assert [step and step["verdict"] for step in steps] == [None, "unchanged", "unchanged", "unchanged", "regressed"]
    assert [step and step["since_accepted"] and step["since_accepted"]["version"] for step in steps] == [
        *[None] * 4,
        "1.0.0",
    ]
    assert found.code == 3
