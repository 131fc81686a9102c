"""The calls of a run: their order, shards, interleaving and digest."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import RunError
from skill_evaluator.providers.base import Completion, Failure
from skill_evaluator.runner.schedule import (
    Call,
    Replicate,
    Shard,
    digest_of_outputs,
    interleaved,
    replicates_of_baseline,
    schedule_calls,
)
from skill_evaluator.text import canonical_json, digest

case_ids = st.lists(st.text("abcdef-", min_size=1, max_size=6), min_size=1, max_size=12, unique=True)


@given(case_ids, st.integers(1, 6))
def test_every_case_is_called_equally_often(cases: list[str], replicates: int) -> None:
    calls = schedule_calls(cases, replicates)
    assert sorted((call.case_id, call.replicate) for call in calls) == sorted(
        (case_id, replicate) for case_id in cases for replicate in range(replicates)
    )


@given(case_ids, st.integers(1, 6), st.data())
def test_stopped_schedule_has_no_case_ahead_by_more_than_one(
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


def test_shard_is_parsed_and_anything_else_is_refused() -> None:
    for text, shard in (("1/1", Shard(1, 1)), ("2/4", Shard(2, 4)), ("10/10", Shard(10, 10))):
        assert (Shard.parse(text), str(shard)) == (shard, text)
    for text in ("", "2", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/2 ", "1.0/2"):
        with pytest.raises(RunError, match="such as 2/4"):
            Shard.parse(text)


def test_shard_without_a_case_is_refused() -> None:
    with pytest.raises(RunError, match="shard 4/4 has no case: there are only 3"):
        Shard(4, 4).of(["a", "b", "c"])


@given(case_ids, st.integers(1, 5), st.integers(1, 4), st.data())
def test_interleaved_runs_alternate_call_by_call(
    cases: list[str], replicates: int, arms: int, data: st.DataObject
) -> None:
    schedule = schedule_calls(cases, replicates)
    turns = interleaved([schedule] * arms)
    for arm in range(arms):
        assert {call for index, call in turns if index == arm} == set(schedule)
    made = turns[: data.draw(st.integers(0, len(turns)))]
    for case_id in cases:
        counts = [sum((index, call.case_id) == (arm, case_id) for index, call in made) for arm in range(arms)]
        assert max(counts) - min(counts) <= 1


@given(case_ids, st.integers(2, 6))
def test_interleaved_runs_alternate_who_comes_first(cases: list[str], replicates: int) -> None:
    schedule = schedule_calls(cases, replicates)
    firsts = [index for index, _ in interleaved([schedule, schedule])[::2]]
    assert abs(firsts.count(0) - firsts.count(1)) <= 1
    for place in range(len(cases)):
        of_case = firsts[place :: len(cases)]
        assert abs(of_case.count(0) - of_case.count(1)) <= 1


@pytest.mark.parametrize("replicates", range(3, 12))
def test_runs_of_different_length_alternate_who_comes_first(replicates: int) -> None:
    longer, shorter = (schedule_calls(["a"], count) for count in (replicates, replicates_of_baseline(replicates)))
    rounds: dict[int, list[int]] = {}
    for index, call in interleaved([longer, shorter]):
        rounds.setdefault(call.replicate if index == 0 else call.replicate * len(longer) // len(shorter), []).append(
            index
        )
    shared = [indices[0] for indices in rounds.values() if len(indices) == 2]
    assert shared == [number % 2 for number in range(len(shorter))]


def test_parts_with_different_cases_are_interleaved() -> None:
    turns = interleaved([schedule_calls(["a", "c"], 2), schedule_calls(["b"], 1)])
    assert [(call.case_id, call.replicate, index) for index, call in turns] == [
        ("a", 0, 0),
        ("c", 0, 0),
        ("b", 0, 1),
        ("a", 1, 0),
        ("c", 1, 0),
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.text(max_size=3)), unique_by=lambda it: it[:2]))
def test_digest_of_outputs_ignores_their_order(answers: list[tuple[str, int, str]]) -> None:
    digests = {Call(case_id, index): said(text) for case_id, index, text in answers}
    assert digest_of_outputs(dict(reversed(digests.items()))) == digest_of_outputs(digests)
    ordered = [[case_id, index, said(text)] for case_id, index, text in sorted(answers, key=lambda it: (it[1], it[0]))]
    assert digest_of_outputs(digests) == digest(canonical_json(ordered))
    for call in digests:
        assert digest_of_outputs({**digests, call: said("another text")}) != digest_of_outputs(digests)
        assert digest_of_outputs({key: digests[key] for key in digests if key != call}) != digest_of_outputs(digests)


def test_digest_of_an_output_depends_on_its_outcome() -> None:
    call = Call("a", 0)
    replicates = [
        Replicate(call=call, completion=Completion(text="x")),
        Replicate(call=call, completion=Completion(text="x", stop_reason="length")),
        Replicate(call=call, completion=Completion(text="")),
        Replicate(call=call, error=Failure(kind="timeout", reason="timeout")),
        Replicate(call=call, error=Failure(kind="provider_error", reason="server_error")),
    ]
    assert len({replicate.digest for replicate in replicates}) == len(replicates)


def said(text: str) -> str:
    return Replicate(call=Call("a", 0), completion=Completion(text=text)).digest
