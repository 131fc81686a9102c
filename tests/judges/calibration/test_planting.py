"""Broken outputs and controls: nothing changes but the planted place, and dimension and impact are what they say."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as some
from skill_evaluator.judges.calibration.planting import (
    CONTROLS,
    DAMAGES,
    REWORDINGS,
    GoodOutput,
    NoPlaceError,
    break_output,
    plant,
    reword_output,
)
from skill_evaluator.text import canonical_json, words

PROSE = (
    "The archive was opened in 1987 and holds 41 boxes. It is kept in the old mill, because the town hall cannot be "
    "heated. Readers may order three boxes a day. The index is complete."
)
LIST = "The library.\n\n- It opens at 9 on weekdays\n- The fee is 4.50 a year\n- The archive is closed until 2027"
BULLETS = "Summarize the notice in 3 bullet points."
RECORD = json.dumps(
    {
        "vendor": "Hill & Sons",
        "date": "2024-03-09",
        "paid": True,
        "items": [{"name": "Nails, not galvanized", "amount": 12.5}, {"name": "A saw that is sharp", "amount": 30}],
    }
)
JSON = "Answer with one JSON object."
GOOD = [
    GoodOutput(id="prose", input="When did it open?", output=PROSE, replicate_output=PROSE + " "),
    GoodOutput(id="list", input=BULLETS, output=LIST),
    GoodOutput(id="record", input=JSON, output=RECORD),
]


@some.composite
def outputs(draw: Any) -> tuple[str, str]:
    """Draw a prompt and an output: prose, a list, or JSON, of sentences with dates, numbers and claims."""
    sentence = some.sampled_from(
        [
            "The bridge was built in 1931.",
            "It is 240 metres long.",
            "Trams are not allowed on it.",
            "Its toll rose to 3.20 on 4 May 2019.",
            "Walkers cross it without a fee.",
            "The keeper lives nearby (see there).",
        ]
    )
    sentences = draw(some.lists(sentence, min_size=1, max_size=6))
    kind = draw(some.sampled_from(["prose", "list", "json"]))
    if kind == "prose":
        return "Describe the bridge.", " ".join(sentences)
    if kind == "list":
        return "Describe it in bullet points.", "\n".join(f"- {sentence}" for sentence in sentences)
    value = {"notes": sentences, "length": draw(some.integers(0, 999)), "open": draw(some.booleans())}
    return JSON, json.dumps(value, indent=draw(some.sampled_from([None, 2])))


def changed(before: Sequence[str], after: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return what is between the common beginning and the common end of two texts, or of their words."""
    start = next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new),
        min(len(before), len(after)),
    )
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


@given(outputs(), some.integers(0, 9))
def test_a_changed_number_differs_in_one_digit(output: tuple[str, str], seed: int) -> None:
    old, new = changed(output[1], applied("number_changed", *output, seed))
    assert old != new
    assert re.fullmatch(r"\d \d", f"{old} {new}")


@given(outputs(), some.integers(0, 9))
def test_a_changed_date_differs_in_its_year(output: tuple[str, str], seed: int) -> None:
    broken = applied("date_changed", *output, seed)
    years = [re.findall(r"\b\d{4}\b", text) for text in (output[1], broken)]
    assert [abs(int(old) - int(new)) for old, new in zip(*years, strict=True) if old != new] in ([4], [8])
    assert re.sub(r"\b\d{4}\b", "", output[1]) == re.sub(r"\b\d{4}\b", "", broken)


@given(outputs(), some.integers(0, 9))
def test_an_inverted_claim_differs_in_one_negation_or_one_word(output: tuple[str, str], seed: int) -> None:
    before, after = (re.findall(r"\w+|\W", text) for text in (output[1], applied("claim_inverted", *output, seed)))
    old, new = ("".join(part).strip() for part in changed(before, after))
    assert (old, new) in {
        ("", "not"),
        ("not", ""),
        ("rose", "fell"),
        ("without", "with"),
        ("allowed", "forbidden"),
        ("true", "false"),
        ("false", "true"),
    }


@given(outputs(), some.integers(0, 9))
def test_an_invented_fact_is_added_and_takes_nothing_away(output: tuple[str, str], seed: int) -> None:
    broken = applied("fact_invented", *output, seed)
    old, new = changed(output[1], broken)
    assert old == ""
    assert 5 <= len(new.split()) <= 20


@given(outputs(), some.integers(0, 9))
def test_a_cut_end_is_the_beginning_of_its_source(output: tuple[str, str], seed: int) -> None:
    broken = applied("end_cut", *output, seed)
    assert output[1].startswith(broken)
    assert 0.4 < len(broken.split()) / len(output[1].split()) < 0.9
    assert broken[-1].isalnum()


@given(outputs(), some.integers(0, 9))
def test_a_dropped_item_is_one_item_less(output: tuple[str, str], seed: int) -> None:
    prompt, text = output
    broken = applied("item_dropped", prompt, text, seed)
    if prompt == JSON:
        before, after = (Counter(map(str, leaves(json.loads(one)))) for one in (text, broken))
        assert not after - before
        assert before - after
    else:
        assert changed(text, broken)[1] == ""
        assert statements(text) - statements(broken) == 1


@given(outputs(), some.integers(0, 9))
def test_a_broken_format_has_all_that_was_said(output: tuple[str, str], seed: int) -> None:
    prompt, text = output
    broken = applied("format_broken", prompt, text, seed)
    said = words(" ".join(map(str, leaves(json.loads(text))))) if prompt == JSON else words(text)
    assert not Counter(said) - Counter(words(broken))
    if prompt == JSON:
        with pytest.raises(ValueError, match="Expecting"):
            json.loads(broken)
    else:
        assert "\n" not in broken


@given(outputs(), some.sampled_from(sorted(REWORDINGS)), some.integers(0, 9))
def test_a_control_says_what_its_source_says(output: tuple[str, str], name: str, seed: int) -> None:
    prompt, text = output
    try:
        written = reword_output(name, prompt, text, Random(seed))
    except NoPlaceError:
        return
    assert written != text
    if prompt == JSON:
        assert canonical_json(json.loads(written)) == canonical_json(json.loads(text))
    elif name != "other_words":
        assert Counter(words(written)) == Counter(words(text))
    assert sorted(re.findall(r"\d+", written)) == sorted(re.findall(r"\d+", text))


def applied(name: str, prompt: str, text: str, seed: int) -> str:
    """Break an output, or leave the example: no place is no damage."""
    try:
        return break_output(name, prompt, text, Random(seed)).text
    except NoPlaceError:
        reject()


def statements(text: str) -> int:
    return len(re.findall(r"[.)](?=\s|$)", text.replace(").", ".")))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        return [leaf for inside in (value.values() if isinstance(value, dict) else value) for leaf in leaves(inside)]
    return [value]


def test_every_way_is_planted_evenly_and_the_same_seed_plants_the_same() -> None:
    planted = plant(GOOD, broken=9, controls=8, seed=1)
    broken = [pair for pair in planted.pairs if not pair.is_control]
    assert Counter(pair.dimension for pair in broken) == {"completeness": 4, "factuality": 3, "format_adherence": 2}
    everything = plant(GOOD, broken=99, controls=99, seed=1)
    assert {pair.planted for pair in everything.pairs} == {*DAMAGES, *CONTROLS}
    assert len({pair.id for pair in everything.pairs}) == len(everything.pairs)
    first, again, other = (plant(GOOD, broken=20, controls=9, seed=seed) for seed in (4, 4, 5))
    assert first == again
    assert [pair.candidate_output for pair in first.pairs] != [pair.candidate_output for pair in other.pairs]


def test_an_output_without_a_place_is_refused_and_counted() -> None:
    planted = plant([GoodOutput(id="bare", input="Why?", output="Nobody knows")], broken=50, controls=50, seed=0)
    assert [pair.planted for pair in planted.pairs] == ["same_text"]
    assert planted.without_place == {
        "item_dropped": {"it has neither two list items nor three sentences": 1},
        "end_cut": {"it has fewer than 12 words": 1},
        "number_changed": {"it has no number": 1},
        "claim_inverted": {"it has no claim that a word can turn": 1},
        "date_changed": {"it has no date with a year": 1},
        "fact_invented": {"it has no sentence that another one could follow": 1},
        "format_broken": {"it is neither a list nor JSON": 1},
        "replicate": {"it has no replicate_output": 1},
        "reordered": {"it has no list without numbers": 1},
        "other_words": {"it has nothing that can be written otherwise": 1},
        "typography": {"it has nothing that can be written otherwise": 1},
    }


def test_what_code_cannot_change_for_certain_it_leaves() -> None:
    for name, prompt, output, reason in (
        ("format_broken", "Tell me.", LIST, "demands no form"),
        ("format_broken", BULLETS, PROSE, "neither a list nor JSON"),
        ("number_changed", "Write it.", "def mean(xs):\n    return sum(xs) / 2", "code"),
        ("date_changed", "When?", "At nine, in room 1987.", "no date"),
        ("number_changed", "How?", "1. Open it.\n2. Close it.", "no number"),
        ("number_changed", "When?", "It opened in 1987.", "no number"),
    ):
        with pytest.raises(NoPlaceError, match=reason):
            break_output(name, prompt, output, Random(0))
    for name, prompt, output in (
        ("reordered", "List the steps in order.", "- Open it\n- Close it"),
        ("reordered", "What to do?", "- First open it\n- Close it"),
        ("reordered", "What to do?", "1. Open it\n2. Close it"),
        ("other_words", JSON, '{"note": "it is not large, such as this"}'),
        ("typography", "Write it.", "def mean(xs):\n    return 'x'"),
    ):
        with pytest.raises(NoPlaceError):
            reword_output(name, prompt, output, Random(0))


def test_a_loss_has_the_impact_of_how_much_is_lost_and_a_record_is_broken_inside_its_values() -> None:
    def of(items: int) -> str:
        text = "\n".join(f"- The item {place} is there" for place in range(items))
        return break_output("item_dropped", "List them.", text, Random(0)).impact

    assert [of(items) for items in (2, 3, 4, 6, 7, 12)] == ["high", "high", "medium", "medium", "low", "low"]
    for name in ("number_changed", "date_changed", "claim_inverted", "fact_invented", "item_dropped"):
        for seed in range(12):
            broken = json.loads(break_output(name, JSON, RECORD, Random(seed)).text)
            assert canonical_json(broken) != canonical_json(json.loads(RECORD))
            if name != "item_dropped":
                assert list(broken) == list(json.loads(RECORD))
