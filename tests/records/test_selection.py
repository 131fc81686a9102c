"""The choice of the runs to compare, from the entries of a leaderboard."""

import json
from pathlib import Path

import pytest
import semver
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.records.archive import RecordedRun, order, precedence, read_entries
from skill_evaluator.records.selection import choose, newest_of_versions, next_lower_version, runs_of_versions


def entry(
    version: str, day: int = 1, model_id: str = "m", scenario: str | None = None, complete: bool = True
) -> RecordedRun:
    return RecordedRun(
        run_id=f"{version}-{day}-{model_id}",
        skill_version=version,
        model_id=model_id,
        scenario=scenario,
        complete=complete,
        timestamp=f"2026-01-{day:02d}T00:00:00Z",
    )


def pairs(
    entries: list[RecordedRun], candidate: str | RecordedRun | None = None, baseline: str | RecordedRun | None = None
) -> list[str]:
    newest_first = sorted(entries, key=order, reverse=True)
    choices = [
        (run, named if baseline else next_lower_version(newest_first, run))
        for run, named in choose(newest_first, candidate, baseline)[0]
    ]
    return [f"{lower.run_id if lower else None} → {run.run_id}" for run, lower in choices]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("1.0.0"), entry("1.1.0", 2)], "1.0.0-1-m → 1.1.0-2-m"),
        ([entry("1.1.0"), entry("1.0.0", 2)], "1.0.0-2-m → 1.1.0-1-m"),
        ([entry("1.9.0"), entry("1.10.0", 2), entry("1.2.0", 3)], "1.9.0-1-m → 1.10.0-2-m"),
        ([entry("1.0.0"), entry("1.0.0", 2), entry("2.0.0", 3), entry("2.0.0", 4)], "1.0.0-2-m → 2.0.0-4-m"),
        ([entry("2.0.0-rc.1"), entry("1.0.0", 2), entry("2.0.0", 3)], "2.0.0-rc.1-1-m → 2.0.0-3-m"),
        ([entry("1.0.0"), entry("1.1.0", 2, complete=False), entry("1.2.0", 3)], "1.0.0-1-m → 1.2.0-3-m"),
        ([entry("1.0.0"), entry("1.1.0", 2), entry("1.2.0", 3, complete=False)], "1.0.0-1-m → 1.1.0-2-m"),
        ([entry("1.0.0"), entry("1.1.0", 2, scenario="x"), entry("1.2.0", 3)], "1.0.0-1-m → 1.2.0-3-m"),
        ([entry("1.0.0"), entry("1.0.0", 2)], "None → 1.0.0-2-m"),
    ],
)
def test_default_candidate_and_baseline(entries: list[RecordedRun], expected: str) -> None:
    assert pairs(entries) == [expected]


def test_named_baseline_may_have_a_higher_version_or_another_model() -> None:
    entries = [entry("1.0.0"), entry("2.0.0", 2), entry("1.0.0", 3, "n")]
    assert pairs(entries, "1.0.0-1-m", "2.0.0") == ["2.0.0-2-m → 1.0.0-1-m"]
    assert pairs(entries, "2.0.0-2-m", "1.0.0-3-n") == ["1.0.0-3-n → 2.0.0-2-m"]


def test_run_with_an_invalid_version_has_no_lower_version() -> None:
    """A record from elsewhere may have a version that is not semver: it has no lower one."""
    assert pairs([entry("1.0.0")], entry("draft", 9)) == ["None → draft-9-m"]
    assert pairs([], entry("1.0.0", 9), entry("1.0.0", 8)) == ["1.0.0-8-m → 1.0.0-9-m"]


def test_unknown_version_is_an_error_with_the_nearest() -> None:
    for candidate, baseline in (("3.0.0", None), (None, "3.0.0")):
        with pytest.raises(LeaderboardError, match=r"version or id '3\.0\.0' \(did you mean '2\.0\.0'\?\)"):
            pairs([entry("1.0.0"), entry("2.0.0", 2)], candidate, baseline)


def test_rows_with_an_invalid_version_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.json"
    row = {"skill_version": "draft", "run_id": "r", "model_id": "m", "complete": True, "timestamp": "t", "more": {}}
    path.write_text(json.dumps({"skill": "s", "runs": [row, {**row, "skill_version": "1.0.0"}]}))
    assert [one.version for one in read_entries(path)] == ["1.0.0"]
    assert read_entries(tmp_path / "none.json") == []


def test_runs_of_versions_are_sorted_and_the_last_is_the_newest() -> None:
    entries = [
        entry("1.10.0", 4),
        entry("1.9.0", 2),
        entry("1.9.0", 1),
        entry("1.9.0", 3, complete=False),
        entry("1.10.0", 5, scenario="x"),
        entry("0.1.0", 6, "n"),
    ]
    found = runs_of_versions(entries)
    assert {
        model: {version: [one.run_id for one in runs] for version, runs in of.items()} for model, of in found.items()
    } == {"m": {"1.9.0": ["1.9.0-1-m", "1.9.0-2-m"], "1.10.0": ["1.10.0-4-m"]}, "n": {"0.1.0": ["0.1.0-6-n"]}}
    assert [list(of) for of in found.values()] == [["0.1.0"], ["1.9.0", "1.10.0"]]
    newest = newest_of_versions(entries)
    assert {model: [one.run_id for one in runs] for model, runs in newest.items()} == {
        "m": ["1.9.0-2-m", "1.10.0-4-m"],
        "n": ["0.1.0-6-n"],
    }


NUMBERS = st.integers(0, 12).map(str)
IDENTIFIERS = st.one_of(NUMBERS, st.sampled_from(["rc", "alpha", "1a", "a1", "-", "RC"]))
VERSIONS = st.builds(
    lambda release, pre, build: (
        ".".join(release) + (f"-{'.'.join(pre)}" if pre else "") + (f"+{build}" if build else "")
    ),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
    st.lists(IDENTIFIERS, max_size=3),
    st.sampled_from(["", "b1"]),
)


@given(VERSIONS, VERSIONS)
def test_precedence_agrees_with_semver(one: str, other: str) -> None:
    expected = semver.Version.parse(one).compare(other)
    assert (precedence(one) > precedence(other)) - (precedence(one) < precedence(other)) == expected
