"""Which calls a run makes, in what order, and how they are shared out."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import RunError
from skill_evaluator.runner.schedule import Shard, schedule_calls

case_ids = st.lists(st.text("abcdef-", min_size=1, max_size=6), min_size=1, max_size=12, unique=True)


@given(case_ids, st.integers(1, 6))
def test_every_case_is_asked_as_often_as_every_other(cases: list[str], replicates: int) -> None:
    calls = schedule_calls(cases, replicates)
    assert sorted((call.case_id, call.replicate) for call in calls) == sorted(
        (case_id, replicate) for case_id in cases for replicate in range(replicates)
    )


@given(case_ids, st.integers(1, 6), st.data())
def test_broken_off_anywhere_no_case_is_ahead_by_more_than_one(
    cases: list[str], replicates: int, data: st.DataObject
) -> None:
    calls = schedule_calls(cases, replicates)
    made = Counter(call.case_id for call in calls[: data.draw(st.integers(0, len(calls)))])
    counts = [made[case_id] for case_id in cases]
    assert max(counts) - min(counts) <= 1


@given(case_ids, st.data())
def test_shards_partition_the_cases_evenly(cases: list[str], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(cases)))
    parts = [Shard(index, count).of(cases) for index in range(1, count + 1)]
    assert Counter(case_id for part in parts for case_id in part) == Counter(cases)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@given(case_ids, st.integers(1, 4), st.data())
def test_a_shard_keeps_the_replicates_of_its_cases_together(
    cases: list[str], replicates: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(cases)))
    mine = Shard(1, count).of(cases)
    planned = Counter(call.case_id for call in schedule_calls(mine, replicates))
    assert planned == Counter(dict.fromkeys(mine, replicates))


@pytest.mark.parametrize(("text", "shard"), [("1/1", Shard(1, 1)), ("2/4", Shard(2, 4)), ("10/10", Shard(10, 10))])
def test_a_shard_is_read_as_it_is_written(text: str, shard: Shard) -> None:
    assert Shard.parse(text) == shard
    assert str(shard) == text


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/2 ", "1.0/2"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RunError, match="such as 2/4"):
        Shard.parse(text)


def test_a_shard_without_a_case_is_refused() -> None:
    with pytest.raises(RunError, match="shard 4/4 has no case: there are only 3"):
        Shard(4, 4).of(["a", "b", "c"])
