"""What is read out of an answer: a table of texts as models write them."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.parsing.answer import Parsed, parse_output
from skill_evaluator.text import canonical_json

from tests.support.json_values import json_values, thorough

EMPTY = Parsed(problem="empty")
NOT_JSON = Parsed(problem="not_json")


def whole(value: Any) -> Parsed:
    return Parsed(value=value, found="whole")


def fenced(value: Any) -> Parsed:
    return Parsed(value=value, found="fenced")


def embedded(value: Any) -> Parsed:
    return Parsed(value=value, found="embedded")


ANSWERS = [
    # the whole text
    ('{"a": 1}', whole({"a": 1})),
    (' \n{"a": 1}\r\n', whole({"a": 1})),
    ("[1, 2]", whole([1, 2])),
    ('"x"', whole("x")),
    ("5", whole(5)),
    ("null", whole(None)),
    ("false", whole(False)),
    ('{"a": "\\ud800"}', whole({"a": "\ud800"})),
    (
        '{"a": 1, "b": {"c": 1, "c": 2}, "a": [3]}',
        whole({"a": [3], "b": {"c": 2}}),
    ),  # the last of two equal keys, as RFC 8259 parsers do
    # in a code fence
    ('```json\n{"a": 1}\n```', fenced({"a": 1})),
    ('```\n{"a": 1}\n```', fenced({"a": 1})),
    ('```JSON  \r\n{"a": 1}\r\n   ```', fenced({"a": 1})),
    ('Here it is:\n```json\n{"a": 1}\n```\nAnything else?', fenced({"a": 1})),
    ('```\nnot this\n```\n```json\n{"a": 1}\n```', fenced({"a": 1})),
    ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', fenced({"a": 1})),
    ('```json\n{"a": "a fence: ``` "}\n```', embedded({"a": "a fence: ``` "})),
    ('```json {"a": 1} ```', embedded({"a": 1})),
    ('```json\n{"a": 1}', embedded({"a": 1})),  # the fence was never closed, the value was
    # in prose
    ('The answer is {"a": 1}.', embedded({"a": 1})),
    ('As stated in [1], {"a": 1, "b": [2]}', embedded({"a": 1, "b": [2]})),
    ('Use {braces} so: {"a": 1}', embedded({"a": 1})),
    ('{"a": 1} or rather {"a": 1, "b": 2}', embedded({"a": 1, "b": 2})),
    ('{"a": 1}{"b": 2}', embedded({"a": 1})),  # of equals the first
    ('He said "look: {" and then {"a": "}"}', NOT_JSON),  # a bracket that is never closed takes the rest with it
    ('\ufeff{"a": 1}', embedded({"a": 1})),
    # cut off, or broken: never a part of it
    ('The answer: {"a": {"b": 1}, "c"', NOT_JSON),
    ("{'a': {\"b\": 1}}", NOT_JSON),
    ('{a: {"b": 1}}', NOT_JSON),
    ('{"a": 1, // so\n "b": [1, 2]}', NOT_JSON),
    ('[{"a": 1}, {"b": "an "inner" quote"}, {"c": 3}]', NOT_JSON),
    ('{"a": {"b": 1},}', NOT_JSON),
    ('{"a": "one\nline"}', NOT_JSON),
    ('{"a": {"b": 1}} }', embedded({"a": {"b": 1}})),
    ('{"a": True, "b": {"c": 1}} {"d": 4}', embedded({"d": 4})),
    # no JSON values
    ("NaN", NOT_JSON),
    ('{"a": Infinity}', NOT_JSON),
    ("1e400", NOT_JSON),
    ('{"a": [-1e999]}', NOT_JSON),
    ('{"a": -Infinity, "b": {"c": 1}}', NOT_JSON),
    ('{"a": ' + "9" * 5000 + "}", NOT_JSON),
    ('{"a": 1e999}', NOT_JSON),  # a number that no float can hold
    ('{"a": 1e308}', whole({"a": 1e308})),
    ("I cannot read the document.", NOT_JSON),
    ("{}}{", embedded({})),
    ("}{", NOT_JSON),
    # nothing
    ("", EMPTY),
    (" \n\t", EMPTY),
    # nested too deeply for any contract
    ("[" * 100_000, NOT_JSON),
    ("[" * 100_000 + "]" * 100_000, NOT_JSON),
    ('{"a":' * 100_000, NOT_JSON),
    ('{"a":' * 65 + "1" + "}" * 65, NOT_JSON),
    ('[{"a":' * 20_000 + "1" + "}]" * 20_000, NOT_JSON),
    ("see: " + "[" * 100_000, NOT_JSON),
    ("```json\n" + '{"a":[' * 50_000 + "\n```", NOT_JSON),
    ("[" * 65 + "]" * 65, NOT_JSON),
    ("see " + "[" * 500 + "]" * 500, NOT_JSON),
    ("```json\n" + "[" * 500 + "]" * 500 + "\n```", NOT_JSON),
    # of a model in a loop: minutes each, if any part were gone over again from every place in it
    ("```\n{" + " " * 300_000 + "x", NOT_JSON),
    ("```\n" * 50_000, NOT_JSON),
    ("[" + '"\\' * 100_000, NOT_JSON),
    ('["' + '\\"' * 100_000, NOT_JSON),
    ('["' + '\\"' * 100_000 + "\\", NOT_JSON),
    ("{" * 1000 + '"' * 100_001, NOT_JSON),
    ("{a} " * 50_000, NOT_JSON),
    ("[1] " * 50_000, embedded([1])),
]


def test_json_answers() -> None:
    for text, expected in ANSWERS:
        assert parse_output(text, "json") == expected, text[:99]


def test_text_answers() -> None:
    for text, expected in (("  a summary\n", whole("a summary")), ('{"a": 1}', whole('{"a": 1}')), (" \n", EMPTY)):
        assert parse_output(text, "text") == expected


def test_a_value_nested_deeply_is_json() -> None:
    assert parse_output("[" * 64 + "]" * 64, "json").found == "whole"
    wide = [[[]] for _ in range(1000)]
    assert parse_output(json.dumps(wide), "json") == whole(wide)


@thorough
@given(text=st.text(st.characters(exclude_categories=())) | st.text('{}[]",:\\`\n 1a', max_size=60))
def test_no_answer_makes_it_raise(text: str) -> None:
    parsed = parse_output(text, "json")
    assert (parsed.found is None) is (parsed.problem is not None)
    assert (parsed.problem == "empty") is (not text.strip())


@thorough
@given(value=json_values, before=st.text("ab .,", max_size=9), after=st.text("ab .,", max_size=9))
def test_every_object_and_array_is_found_wherever_it_stands(value: Any, before: str, after: str) -> None:
    text = json.dumps({"value": value}, indent=1)
    for written in (text, f"{before}{text}{after}", f"{before}\n```json\n{text}\n```\n{after}"):
        assert canonical_json(parse_output(written, "json").value) == canonical_json({"value": value})


@thorough
@given(value=json_values, share=st.floats(0, 1))
def test_an_answer_cut_off_anywhere_is_not_json(value: Any, share: float) -> None:
    text = json.dumps({"value": value, "more": [{"a": 1}]})
    cut = text[: 1 + int((len(text) - 2) * share)]
    assert parse_output(cut, "json") == NOT_JSON
