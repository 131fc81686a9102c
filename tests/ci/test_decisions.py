"""The decision whether a component runs on a model, as a table of base version, new version and recorded version."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.ci.plan import OnModels
from skill_evaluator.ci.planning import decide_run, grouped
from skill_evaluator.library.versions import ComponentVersion
from skill_evaluator.records.archive import RecordedRun

NOTHING, UNREADABLE = None, "?"
KNOWN, UNKNOWN = True, False


def version(text: str | None, prompt: str | None = None, schema: str = "s") -> ComponentVersion:
    """A component whose prompt is another in every version, unless given."""
    return ComponentVersion(
        name="a",
        folder="components/a",
        file="components/a/prompt.md",
        version=None if text == UNREADABLE else text,
        line=2,
        problem="version '?' is not semver" if text == UNREADABLE else None,
        prompt=prompt or f"prompt of {text}",
        schema=schema,
    )


def run_of(version: str, schema: str | None) -> RecordedRun:
    digests = {} if schema is None else {"schema": schema}
    return RecordedRun(
        run_id="r", skill_version=version, model_id="m", complete=True, timestamp="2026", digests=digests
    )


def decided(before: str | None, after: str, recorded: str | None, base_known: bool) -> tuple[bool, str]:
    earlier = None if before is None else version(before)
    run = None if recorded is None else run_of(recorded, "s")
    return decide_run(earlier, version(after), run, base_known=base_known)


@pytest.mark.parametrize(
    ("before", "after", "recorded", "base", "runs", "reason"),
    [
        # A bump of this push.
        ("1.0.0", "1.1.0", "1.0.0", KNOWN, True, "MINOR 1.0.0 → 1.1.0"),
        ("1.0.0", "2.0.0", "1.0.0", KNOWN, True, "MAJOR 1.0.0 → 2.0.0"),
        ("1.0.0", "1.0.1", "1.0.0", KNOWN, False, "PATCH since the recorded 1.0.0"),
        ("1.0.0", "1.0.0", "1.0.0", KNOWN, False, "1.0.0 is recorded"),
        ("1.1.0-rc.1", "1.1.0", "1.1.0-rc.1", KNOWN, False, "PATCH since the recorded 1.1.0-rc.1"),
        # Several bumps, or several pushes since the record: what counts is how far the record is behind.
        ("1.0.0", "2.1.1", "1.0.0", KNOWN, True, "MAJOR 1.0.0 → 2.1.1"),
        ("1.0.1", "1.0.2", "1.0.0", KNOWN, False, "PATCH since the recorded 1.0.0"),
        # The run of an earlier push was lost, or cancelled: the next push makes up for it.
        ("1.1.0", "1.1.0", "1.0.0", KNOWN, True, "MINOR 1.0.0 → 1.1.0 (no run of 1.1.0 is complete)"),
        ("1.1.0", "1.1.1", "1.0.0", KNOWN, True, "MINOR 1.0.0 → 1.1.1 (no run of 1.1.1 is complete)"),
        # The record is there already: a run by hand, a re-run, a revert of a revert.
        ("1.0.0", "1.1.0", "1.1.0", KNOWN, False, "1.1.0 is recorded"),
        ("1.0.0", "1.1.0", "1.1.3", KNOWN, False, "1.1.0 is below the recorded 1.1.3"),
        ("1.0.0", "1.0.0", "2.0.0", KNOWN, False, "1.0.0 is below the recorded 2.0.0"),
        # New components, which a first push is full of.
        (NOTHING, "0.1.0", NOTHING, KNOWN, True, "new component at 0.1.0"),
        (NOTHING, "1.1.0", "1.0.0", KNOWN, True, "MINOR 1.0.0 → 1.1.0"),  # deleted, and back again
        (NOTHING, "1.0.0", "1.0.0", KNOWN, False, "1.0.0 is recorded"),
        # No record of this model (the tool, or the model, is new): nobody is billed by surprise.
        ("1.0.0", "1.0.0", NOTHING, KNOWN, False, "unchanged; no record of this model yet: start it by hand"),
        ("1.0.0", "1.0.1", NOTHING, KNOWN, False, "PATCH 1.0.0 → 1.0.1; no record of this model yet"),
        ("1.0.0", "1.1.0", NOTHING, KNOWN, True, "MINOR 1.0.0 → 1.1.0"),
        ("1.0.0", "2.0.0", NOTHING, KNOWN, True, "MAJOR 1.0.0 → 2.0.0"),
        (UNREADABLE, "1.0.0", NOTHING, KNOWN, True, "1.0.0, after a version that could not be read"),
        # A force push: what was there before is not to be had, so that only the records count.
        (NOTHING, "1.1.0", "1.0.0", UNKNOWN, True, "MINOR 1.0.0 → 1.1.0"),
        (NOTHING, "1.0.0", "1.0.0", UNKNOWN, False, "1.0.0 is recorded"),
        (NOTHING, "1.0.1", "1.0.0", UNKNOWN, False, "PATCH since the recorded 1.0.0"),
        (NOTHING, "1.0.0", NOTHING, UNKNOWN, False, "no record of this model, and the base of this push is unknown"),
    ],
)
def test_decision_by_bump_and_record(
    before: str | None, after: str, recorded: str | None, base: bool, runs: bool, reason: str
) -> None:
    is_run, words = decided(before, after, recorded, base)
    assert is_run is runs
    assert words.startswith(reason)


@pytest.mark.parametrize(
    ("head", "recorded_schema", "runs"),
    [("1.1.0", "old", False), ("1.1.0", None, True), ("2.0.0", "old", True), ("2.0.0", None, True)],
)
def test_schema_that_differs_from_the_recorded_one_requires_a_major(
    head: str, recorded_schema: str | None, runs: bool
) -> None:
    """The MINOR was raised in a later push than the schema, so that no single push is dishonest."""
    recorded = run_of("1.0.0", recorded_schema)
    assert decide_run(version("1.0.1"), version(head), recorded, base_known=True)[0] is runs


def test_equal_decisions_are_grouped_with_their_models() -> None:
    decisions = [
        OnModels(skill=skill, models=[model], reason="why" if model != "z" else "why not")
        for skill, model in product("ab", "xzy")
    ]
    told = [(one.skill, one.models, one.reason) for one in grouped(decisions)]
    assert told == [
        ("a", ["x", "y"], "why"),
        ("a", ["z"], "why not"),
        ("b", ["x", "y"], "why"),
        ("b", ["z"], "why not"),
    ]


VERSIONS = st.sampled_from(["0.1.0", "1.0.0", "1.0.1", "1.1.0", "1.1.1", "2.0.0"])


@given(before=st.none() | VERSIONS, after=VERSIONS, recorded=st.none() | VERSIONS, base_known=st.booleans())
def test_recorded_version_never_runs_again(
    before: str | None, after: str, recorded: str | None, base_known: bool
) -> None:
    runs, reason = decided(before if base_known else None, after, recorded, base_known)
    assert reason
    assert not (runs and recorded == after)
    if runs:
        assert not decided(after, after, after, True)[0]  # the next push, once this run is recorded
