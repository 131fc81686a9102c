"""Corrupted outputs have only the named defect; controls change only the layout."""

import json
import re
from random import Random

import pytest
from skill_evaluator.judges.calibration.corruption import CONTROL, CORRUPTIONS, CorruptedPair, corrupt, reformatted
from skill_evaluator.judges.prompting.questions import OutputItem

PROSE = "The archive was opened in 1987. It is kept in the old mill. Readers may order boxes. The index is complete."
LIST = "The library.\n\n1. It opens at 9 on weekdays\n2. The fee is 4.50 a year\n3. The archive is closed"
RECORD = json.dumps({"vendor": "Hill & Sons", "paid": True, "items": [{"name": "Nails", "amount": 12.5}]})
GOOD = [
    OutputItem(id="prose", input="When did it open?", output=PROSE),
    OutputItem(id="list", input="Summarize the notice in 3 bullet points.", output=LIST),
    OutputItem(id="record", input="Answer with one JSON object.", output=RECORD),
]


def apply(kind: str, prompt: str, text: str, seed: int = 1) -> tuple[str, str] | None:
    return CORRUPTIONS[kind].apply(prompt, text, Random(seed))


def test_changed_fact_is_a_number_but_never_that_of_a_bullet() -> None:
    for seed in range(20):
        text, impact = apply("fact_changed", "", LIST, seed) or ("", "")
        assert impact == "high"
        assert [line[:3] for line in text.splitlines()] == [line[:3] for line in LIST.splitlines()]
        changed = [(a, b) for a, b in zip(LIST, text, strict=True) if a != b]
        assert len(changed) == 1
        assert all(a.isdigit() and b.isdigit() and b != "0" for a, b in changed)


def test_changed_fact_negates_a_claim_without_a_number() -> None:
    assert apply("fact_changed", "", "Dogs are allowed.") == ("Dogs are not allowed.", "high")
    assert apply("fact_changed", "", "Dogs are not allowed.") is None
    assert apply("fact_changed", "", "It isn't open.") is None


def test_removed_part_has_the_impact_of_its_share_of_words() -> None:
    for count, expected in ((3, "high"), (6, "medium"), (7, "low")):
        text, impact = apply("part_removed", "", " ".join(["It is an abbey."] * count)) or ("", "")
        assert (text.count("."), impact) == (count - 1, expected)
    text, _ = apply("part_removed", "", LIST) or ("", "")
    assert len(text.splitlines()) == len(LIST.splitlines()) - 1
    value = json.loads((apply("part_removed", "", RECORD) or ("{}", ""))[0])
    assert len(value) == 2
    assert apply("part_removed", "", "One sentence. And another.") is None


def test_broken_format_keeps_the_content_and_needs_a_demand() -> None:
    text, _ = apply("format_broken", GOOD[1].input, LIST) or ("", "")
    assert text == "The library. It opens at 9 on weekdays The fee is 4.50 a year The archive is closed"
    text, _ = apply("format_broken", GOOD[2].input, RECORD) or ("", "")
    assert text.splitlines()[0] == "vendor is Hill & Sons"
    assert apply("format_broken", "What is new?", LIST) is None
    assert apply("format_broken", GOOD[1].input, PROSE) is None


def test_invented_claim_is_added_behind_a_sentence() -> None:
    text, impact = apply("claim_invented", "", PROSE) or ("", "")
    assert impact == "medium"
    assert len(re.findall(r"\.", text)) == 5
    assert apply("claim_invented", "", RECORD) is None


@pytest.mark.parametrize("text", [PROSE, LIST, RECORD, '- "a"\n- b'])
def test_control_keeps_every_word(text: str) -> None:
    assert reformatted(text) != text or text == LIST
    assert re.findall(r"\w+", reformatted(text)) == re.findall(r"\w+", text)


def test_corrupt_takes_the_kinds_in_turns_and_is_reproducible() -> None:
    pairs = corrupt(GOOD, 4, seed=3)
    assert [pair.corruption for pair in pairs if pair.corruption != CONTROL] == list(CORRUPTIONS)
    assert {pair.dimension for pair in pairs if pair.corruption == CONTROL} == {None}
    assert pairs == corrupt(list(GOOD), 4, seed=3)
    assert all(pair.candidate_output != pair.baseline_output for pair in pairs)
    every = corrupt(GOOD, 100, seed=3)
    assert len({pair.id for pair in every}) == len(every)
    assert corrupt([OutputItem(id="code", input="p", output="```\nx = 1\n```")], 5, seed=0) == []
    assert CorruptedPair.model_validate_json(every[0].model_dump_json()) == every[0]
