"""Which recorded runs a verdict rests on: the baseline, the anchor, and the other runs of each version."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator import Library as PromptLibrary
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Policy, Settings
from skill_evaluator.records.archive import Acceptance, Archive, accept_version, append_rows, entry_of
from skill_evaluator.records.record import Record, write_record
from skill_evaluator.records.selection import default_baseline
from skill_evaluator.verdicts.component import RecordedComponent
from skill_evaluator.verdicts.decide.comparability import Pair, common_part

from tests.support.library import SKILL, Library
from tests.support.records import Score, a_record, a_run, keep

CASES: dict[str, list[Score]] = {"a": [1.0], "b": [0.5], "c": [0.0]}
DIGESTS = {"prompt": "p", "schema": "s", "settings": "m", "datasets": "d"}


def run(version: str, day: int, **changed: Any) -> Record:
    return a_run(version, day, changed.pop("cases", CASES), **changed)


def accept(library: Library, *versions: str, models: list[str] | None = None) -> None:
    for version in versions:
        acceptance = Acceptance(
            version=version, by="me", why="good", date=datetime.date(2026, 1, 1), run_ids={}, models=models
        )
        accept_version(library.component / "evals" / "accepted.json", library.root / "lock", SKILL, acceptance)


def recorded_in(library: Library, **policy: Any) -> RecordedComponent:
    component = load_component(library.root / "components", SKILL)
    settings = Settings(policy=Policy(**policy))
    return RecordedComponent(component=component, archive=Archive(component), settings=settings)


def pair_for(library: Library, candidate: Record, **policy: Any) -> Pair:
    recorded = recorded_in(library, **policy)
    baseline = default_baseline(entry_of(candidate), recorded.archive, recorded.settings.policy)
    return recorded.pair_of(candidate, baseline)


def days(records: Sequence[Record]) -> list[int]:
    return [int(record.timestamp[8:10]) for record in records]


def in_short(pair: Pair) -> dict[str, Any]:
    """The days of all records of a pair, without what is empty."""
    sides = {
        "baseline": [pair.baseline] if pair.baseline else [],
        "baseline_again": pair.baseline_again,
        "candidate_again": pair.candidate_again,
        "anchor": [pair.anchor] if pair.anchor else [],
        "anchor_again": pair.anchor_again,
    }
    return {name: days(records) for name, records in sides.items() if records}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


def test_draft_is_not_pooled_with_its_baseline(library: Library) -> None:
    keep(library, run("1.0.0", 1))
    pair = pair_for(library, run("1.0.0", 2, draft=True))
    assert in_short(pair)["baseline"] == [1]
    assert not pair.baseline_again


HISTORY = [run("1.0.0", 1), run("1.1.0", 2), run("1.2.0", 3), run("1.3.0", 4)]


@pytest.mark.parametrize(
    ("accepted", "policy", "expected"),
    [
        ((), {}, {"baseline": [3], "anchor": [1]}),
        ((), {"anchor": "previous"}, {"baseline": [3]}),
        (("1.0.0",), {}, {"baseline": [1], "anchor": [1]}),
        (("1.1.0",), {}, {"baseline": [2], "anchor": [2]}),
        (("1.1.0",), {"anchor": "previous"}, {"baseline": [3]}),
        (("1.2.0", "1.0.0"), {}, {"baseline": [3], "anchor": [3]}),
        (("1.3.0",), {}, {"baseline": [3], "anchor": [1]}),  # it is not its own anchor
        (("1.3.0", "1.1.0"), {}, {"baseline": [2], "anchor": [2]}),
        (("1.2.5",), {}, {"baseline": [3], "anchor": [1]}),  # nothing is recorded of it
    ],
)
def test_baseline_and_anchor_are_the_last_accepted_version(
    library: Library, accepted: tuple[str, ...], policy: dict[str, str], expected: dict[str, Any]
) -> None:
    keep(library, *HISTORY)
    accept(library, *accepted)
    assert in_short(pair_for(library, HISTORY[-1], **policy)) == expected


def test_acceptance_may_name_some_models_only(library: Library) -> None:
    keep(library, *HISTORY, *(run(record.skill_version, 5 + at, model_id="n") for at, record in enumerate(HISTORY)))
    accept(library, "1.1.0", models=["n"])
    assert in_short(pair_for(library, HISTORY[-1])) == {"baseline": [3], "anchor": [1]}
    of_n = pair_for(library, run("1.3.0", 8, model_id="n"))
    assert of_n.baseline is not None
    assert (of_n.baseline.skill_version, of_n.baseline.model_id) == ("1.1.0", "n")


def test_unrecorded_run_is_paired_like_a_recorded_run(library: Library) -> None:
    keep(library, run("1.0.0", 1), run("1.1.0", 2), run("1.2.0", 3))
    expected = {"baseline": [2], "candidate_again": [3], "anchor": [1]}
    assert in_short(pair_for(library, run("1.2.0", 4))) == expected


@pytest.mark.parametrize(
    "changed",
    [{"scorer_version": 0}, *({"digests": {**DIGESTS, name: "other"}} for name in ("schema", "datasets", "settings"))],
)
def test_runs_with_other_settings_are_not_pooled(library: Library, changed: dict[str, Any]) -> None:
    keep(library, run("1.0.0", 1, **changed), run("1.0.0", 2))
    assert in_short(pair_for(library, run("1.0.0", 2))) == {}


def test_accepted_version_with_another_schema_is_no_baseline(library: Library) -> None:
    """Otherwise every later version would be incomparable, and none would be gated."""
    new = {**DIGESTS, "schema": "2"}
    keep(library, run("1.0.0", 1), run("2.0.0", 2, digests=new), run("2.1.0", 3, digests=new))
    accept(library, "1.0.0")
    assert in_short(pair_for(library, run("2.0.0", 2, digests=new))) == {"baseline": [1]}
    assert in_short(pair_for(library, run("2.1.0", 3, digests=new))) == {"baseline": [2], "anchor": [2]}


def test_rerun_is_compared_with_runs_of_an_equal_prompt_since_the_drift(library: Library) -> None:
    other = {**DIGESTS, "prompt": "q"}
    moved = {"since": "earlier", "moved": ["field_level_f1 0.500 → 0.100"]}
    keep(library, run("1.0.0", 1), run("1.0.1", 2), run("1.0.2", 3, digests=other), run("1.1.0", 4))
    keep(library, run("1.1.0", 5, drift=moved))
    recorded = recorded_in(library)
    pairs = [
        recorded.drift_pair(record)
        for record in (run("1.0.1", 6), run("1.0.2", 6, digests=other), run("1.1.0", 6), run("1.0.0", 1))
    ]
    assert [in_short(pair) if pair else None for pair in pairs] == [
        {"baseline": [2], "baseline_again": [1]},
        {"baseline": [3]},
        {"baseline": [5]},
        None,
    ]


def test_anchor_shares_at_least_half_of_the_cases(library: Library) -> None:
    keep(
        library,
        run("1.0.0", 1, cases={"a": [1.0], "x": [1.0], "y": [1.0]}),
        run("1.1.0", 2, cases={"a": [1.0], "b": [1.0]}),
        run("1.2.0", 3),
        run("1.3.0", 4),
    )
    assert in_short(pair_for(library, run("1.3.0", 4))) == {"baseline": [3], "anchor": [2]}


def test_run_under_a_scenario_is_not_pooled(library: Library) -> None:
    under: dict[str, Any] = {"scenario": "cautious", "digests": {**DIGESTS, "scenario": "c"}}
    keep(library, run("1.0.0", 1, **under), run("1.0.0", 2, **under), run("1.1.0", 3, **under), run("1.0.0", 4))
    accept(library, "1.0.0")
    assert in_short(pair_for(library, run("1.1.0", 3, **under))) == {"baseline": [2]}


@given(
    st.dictionaries(st.sampled_from(["prompt", "schema", "settings", "datasets", "scenario"]), st.sampled_from("12")),
    st.dictionaries(st.sampled_from(["prompt", "schema", "settings", "datasets", "scenario"]), st.sampled_from("12")),
    st.integers(1, 2),
)
def test_rows_are_comparable_exactly_if_records_have_no_barriers(
    before: dict[str, str], after: dict[str, str], scorer: int
) -> None:
    records = a_record(CASES, digests=before), a_record(CASES, digests=after, scorer_version=scorer)
    first, second = map(entry_of, records)
    assert first.is_comparable(second) == second.is_comparable(first) == (not common_part(*records).barriers)


BASELINE = run("1.0.0", 5, beside="candidate", run_id="candidate@baseline")
CANDIDATE = run("1.1.0", 5, beside="candidate@baseline", run_id="candidate")


def compared(library: Library, *made: Record) -> list[tuple[str, str]]:
    recorded = PromptLibrary(library.root / "components", config=library.root / ".evaluator").recorded(SKILL)
    verdict = recorded.with_records(made).verdict_on(made)
    assert verdict is not None
    return [(model.baseline.run_id if model.baseline else "none", model.candidate.run_id) for model in verdict.models]


def test_interleaved_run_is_the_baseline_and_gets_no_verdict(library: Library) -> None:
    keep(library, run("0.9.0", 1), run("1.0.0", 9))
    assert compared(library, BASELINE, CANDIDATE) == [("candidate@baseline", "candidate")]
    keep(library, BASELINE, CANDIDATE)
    assert compared(library, CANDIDATE) == [("candidate@baseline", "candidate")]
    assert compared(library, CANDIDATE, BASELINE) == [("candidate@baseline", "candidate")]


def test_candidate_without_its_baseline_meets_the_newest_record(library: Library) -> None:
    older = run("1.0.0", 1)
    keep(library, older)
    assert compared(library, CANDIDATE) == [(older.run_id, "candidate")]


def test_interleaved_runs_are_compared_without_older_runs(library: Library) -> None:
    before, after = (
        run("1.0.0", 5, run_id="after@baseline", beside="after"),
        run("1.1.0", 5, run_id="after", beside="after@baseline"),
    )
    keep(library, run("1.0.0", 1), run("1.0.0", 2), run("1.1.0", 3), before, after, run("1.2.0", 6))
    assert in_short(pair_for(library, after)) == {"baseline": [5], "anchor": [5], "anchor_again": [1, 2]}
    expected = {"anchor": [2], "anchor_again": [1, 5]}
    of_next = {"baseline": [5], "baseline_again": [3], **expected}
    assert in_short(pair_for(library, run("1.2.0", 6))) == of_next
    of_plain = {"baseline": [2], "baseline_again": [1, 5], "candidate_again": [5], **expected}
    assert in_short(pair_for(library, run("1.1.0", 3))) == of_plain


def test_missing_interleaved_baseline_is_replaced_by_a_recorded_run(library: Library) -> None:
    keep(library, run("1.0.0", 1), CANDIDATE)
    pair = pair_for(library, CANDIDATE)
    assert in_short(pair) == {"baseline": [1], "anchor": [1]}
    assert pair.skipped_notes == ("its interleaved baseline is not complete, so it is compared with a recorded run",)


@pytest.mark.parametrize("has_row", [True, False])
def test_interleaved_baseline_is_found_only_by_its_candidate(library: Library, has_row: bool) -> None:
    """Rows of such runs were added once; now there is their record alone."""
    keep(library, run("0.9.0", 1), CANDIDATE)
    if has_row:
        path = library.component / "evals" / "records" / "candidate@baseline.json"
        append_rows(library.leaderboard, SKILL, [BASELINE.row()], {path: BASELINE})
    else:
        write_record(library.component / "evals" / "records" / "candidate@baseline.json", BASELINE)
    archive = Archive(load_component(library.root / "components", SKILL))
    assert [entry.version for entry in archive.entries] == ["1.1.0", "0.9.0"]
    assert [entry.version for entry in archive.runs_of("m")] == ["1.1.0", "0.9.0", "1.0.0"]
    assert archive.interleaved_baseline(entry_of(CANDIDATE)) == entry_of(BASELINE)
    assert archive.interleaved_baseline(entry_of(BASELINE)) is None
    assert compared(library, CANDIDATE) == [("candidate@baseline", "candidate")]


@pytest.mark.parametrize(
    ("provider", "unavailable", "seed", "pooled"),
    [("openai", [], 0, 0), ("openai", [], 1, 1), ("anthropic", ["seed"], 0, 1), ("replay", ["seed"], 1, 0)],
    ids=["of an equal seed", "of another seed", "of a provider without seeds", "of replayed answers"],
)
def test_run_that_may_be_a_copy_is_not_pooled(
    library: Library, provider: str, unavailable: list[str], seed: int, pooled: int
) -> None:
    settings = run("1.0.0", 1).settings.model_copy(update={"unavailable": unavailable}).model_dump()
    again = run("1.0.0", 1, provider=provider, settings=settings, seed=seed)
    keep(library, again, run("1.0.0", 2, provider=provider, settings=settings))
    assert len(pair_for(library, run("1.1.0", 3)).baseline_again) == pooled
