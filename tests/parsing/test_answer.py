"""Parsed JSON and text outputs: a table of texts as models write them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.parsing import Expected, Output, Parsed, parse_output, split_reasoning
from skill_evaluator.text import canonical_json

from tests.support.json_values import json_values, thorough

EMPTY = Parsed(problem="empty")
CITIES = ("Lyon", "Nice")
NOT_JSON = Parsed(problem="not_json")
CUT_OFF = Parsed(problem="cut_off")
PROSE = Parsed(problem="prose")
QUOTES = Parsed(problem="quotes")
NAN = Parsed(problem="nan")


def whole(value: Any) -> Parsed:
    return Parsed(value=value, form="whole")


def fenced(value: Any, *, several: bool = False) -> Parsed:
    return Parsed(value=value, form="fenced", several=several)


def embedded(value: Any, *, several: bool = False) -> Parsed:
    return Parsed(value=value, form="embedded", several=several)


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
    ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', fenced({"a": 2}, several=True)),
    ('```json\n{"a": "a fence: ``` "}\n```', fenced({"a": "a fence: ``` "})),
    ('```json {"a": 1} ```', fenced({"a": 1})),
    ('```json\n{"a": 1}', fenced({"a": 1})),  # the fence was never closed, the value was
    # in prose
    ('The answer is {"a": 1}.', embedded({"a": 1})),
    ('As stated in [1], {"a": 1, "b": [2]}', embedded({"a": 1, "b": [2]}, several=True)),
    ('Use {braces} so: {"a": 1}', embedded({"a": 1})),
    ('{"a": 1} or rather {"a": 1, "b": 2}', embedded({"a": 1, "b": 2}, several=True)),
    ('{"a": 1}{"b": 2}', embedded({"b": 2}, several=True)),
    ('He said "look: {" and then {"a": "}"}', NOT_JSON),  # a bracket that is never closed takes the rest with it
    ('\ufeff{"a": 1}', embedded({"a": 1})),
    # cut off, or broken: never a part of it
    ('The answer: {"a": {"b": 1}, "c"', CUT_OFF),
    ("{'a': {\"b\": 1}}", QUOTES),
    ('{a: {"b": 1}}', QUOTES),
    ('{"a": 1, // so\n "b": [1, 2]}', Parsed(problem="comment")),
    ('[{"a": 1}, {"b": "an "inner" quote"}, {"c": 3}]', NOT_JSON),
    ('{"a": {"b": 1},}', Parsed(problem="trailing_comma")),
    ('{"a": "one\nline"}', NOT_JSON),
    ('{"a": {"b": 1}} }', embedded({"a": {"b": 1}})),
    ('{"a": True, "b": {"c": 1}} {"d": 4}', embedded({"d": 4})),
    # no JSON values
    ("NaN", PROSE),
    ('{"a": Infinity}', NAN),
    ("1e400", PROSE),
    ('{"a": [-1e999]}', NOT_JSON),
    ('{"a": -Infinity, "b": {"c": 1}}', NAN),
    ('{"a": ' + "9" * 5000 + "}", NOT_JSON),
    ('{"a": 1e999}', NOT_JSON),  # a number that no float can hold
    ('{"a": 1e308}', whole({"a": 1e308})),
    ("I cannot read the document.", PROSE),
    ("{}}{", embedded({})),
    ("}{", CUT_OFF),
    # nothing
    ("", EMPTY),
    (" \n\t", EMPTY),
    # nested too deeply for any contract
    ("[" * 20_000, CUT_OFF),
    ("[" * 20_000 + "]" * 20_000, NOT_JSON),
    ('{"a":' * 20_000, CUT_OFF),
    ('{"a":' * 65 + "1" + "}" * 65, NOT_JSON),
    ('[{"a":' * 20_000 + "1" + "}]" * 20_000, NOT_JSON),
    ("see: " + "[" * 20_000, CUT_OFF),
    ("```json\n" + '{"a":[' * 10_000 + "\n```", CUT_OFF),
    ("[" * 65 + "]" * 65, NOT_JSON),
    ("see " + "[" * 500 + "]" * 500, NOT_JSON),
    ("```json\n" + "[" * 500 + "]" * 500 + "\n```", NOT_JSON),
    # of a model in a loop: minutes each, if any part were gone over again from every place in it
    ("```\n{" + " " * 60_000 + "x", PROSE),
    ("```\n" * 10_000, PROSE),
    ("[" + '"\\' * 20_000, CUT_OFF),
    ('["' + '\\"' * 20_000, CUT_OFF),
    ('["' + '\\"' * 20_000 + "\\", CUT_OFF),
    ("{" * 1000 + '"' * 20_001, CUT_OFF),
    ("{a} " * 10_000, PROSE),
    ("[1] " * 10_000, embedded([1], several=True)),
]


def test_json_is_parsed_from_texts_of_models() -> None:
    for text, expected in ANSWERS:
        assert parse_output(text, "json") == expected, text[:99]


DRAFT, FINAL = '{"a": 1}', '{"a": 2}'
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}}
REASONING = [  # text, the output in it
    (f"<think>Is it {DRAFT}?</think>\n{FINAL}", FINAL),
    (f"Is it {DRAFT}?</think>{FINAL}", FINAL),
    (f"<THINKING>{DRAFT}</THINKING>{FINAL}", FINAL),
    (f"<reasoning>{DRAFT}</reasoning>{FINAL}", FINAL),
    (f"<think>a<think>b</think>c</think>{FINAL}", FINAL),
    (f'<think>"</think>" ends it.</think>{FINAL}', FINAL),
    (f"{FINAL}\n<think>Was it {DRAFT}?</think>", f"{FINAL}\n"),
    ("<answer>a</reasoning>", "<answer>a</reasoning>"),  # XML
    ('{"a": "</think>"}', '{"a": "</think>"}'),
    ('<think>so</think>{"a": "</think> b"} <b>', '{"a": "</think> b"} <b>'),
    ("The tag <think> begins it.", "The tag <think> begins it."),
    (f"<think>{DRAFT}", ""),
    (f"So.\n <think>{DRAFT}", ""),
    (f"<think>{DRAFT}</think>\n", ""),
    (f"{DRAFT}</think>", ""),
    ("<think>" * 10_000, ""),
    ("</think>" * 10_000 + "B", "B"),
    ("<reasoning>" * 10_000 + "</think>", ""),
]


def test_reasoning_is_split_from_the_output() -> None:
    for text, output in REASONING:
        reasoning, rest = split_reasoning(text)
        assert rest.strip() == output.strip(), text[:99]
        assert bool(reasoning) is (output != text), text[:99]


@pytest.mark.parametrize("kind", ["json", "choice", "text"])
def test_no_output_is_parsed_from_reasoning(kind: Output) -> None:
    assert parse_output("<think>B", kind, CITIES).problem == "in_reasoning"
    assert parse_output("<think>A?</think>", kind, CITIES).problem == "in_reasoning"
    answer = {"json": 1, "choice": "B", "text": "1"}[kind]
    written = "B" if kind == "choice" else "1"
    assert parse_output(f"<think>Answer: A, 0</think>{written}", kind, CITIES).value == answer


def test_last_candidate_is_parsed_and_json_fences_come_first() -> None:
    objects = Expected((dict,), SCHEMA)
    for text, value, several in (
        (f"Draft: {DRAFT} Final: {FINAL}", {"a": 2}, True),
        (f"{FINAL}\n\nSources: [1], [2]", {"a": 2}, False),
        (f"```json\n{FINAL}\n```\nnot {DRAFT}", {"a": 2}, True),
        (f"```json\n{FINAL}\n```\n```\n{DRAFT}\n```", {"a": 2}, True),
        (f"```ts\nconst a = {DRAFT};\n```\n```json\n{FINAL}\n```", {"a": 2}, True),
        (f"{json.dumps(SCHEMA)}\n{FINAL}", {"a": 2}, False),
        (f"```json\n{json.dumps({'$schema': 'x', **SCHEMA})}\n```\n{FINAL}", {"a": 2}, False),
        ('```json\n{"a": "```b```"}\n```', {"a": "```b```"}, False),
    ):
        parsed = parse_output(text, "json", (), objects)
        assert (parsed.value, parsed.several) == (value, several), text
    for text in (f"```json\n{json.dumps(SCHEMA)}\n```", "```json\n[1]\n```"):
        assert parse_output(text, "json", (), objects).problem == "no_candidate", text
    assert parse_output("It is illegible (see [1]).", "json", (), objects).problem == "prose"
    assert parse_output(f"[1, 2] {FINAL}", "json", (), Expected().or_type_of([])).value == [1, 2]


def test_text_is_stripped() -> None:
    for text, expected in (("  a summary\n", whole("a summary")), ('{"a": 1}', whole('{"a": 1}')), (" \n", EMPTY)):
        assert parse_output(text, "text") == expected


def test_json_may_have_64_levels() -> None:
    assert parse_output("[" * 64 + "]" * 64, "json").form == "whole"
    wide = [[[]] for _ in range(1000)]
    assert parse_output(json.dumps(wide), "json") == whole(wide)


@thorough
@given(text=st.text(st.characters(exclude_categories=())) | st.text('{}[]",:\\`\n 1a', max_size=60))
def test_parsing_never_raises(text: str) -> None:
    parsed = parse_output(text, "json")
    assert (parsed.form is None) is (parsed.problem is not None)
    assert (parsed.problem == "empty") is (not text.strip())


@thorough
@given(value=json_values, before=st.text("ab .,", max_size=9), after=st.text("ab .,", max_size=9))
def test_json_is_found_amid_other_text(value: Any, before: str, after: str) -> None:
    text = json.dumps({"value": value}, indent=1)
    for written in (text, f"{before}{text}{after}", f"{before}\n```json\n{text}\n```\n{after}"):
        assert canonical_json(parse_output(written, "json").value) == canonical_json({"value": value})


@thorough
@given(value=json_values, share=st.floats(0, 1))
def test_output_cut_off_anywhere_is_not_read(value: Any, share: float) -> None:
    text = json.dumps({"value": value, "more": [{"a": 1}]})
    cut = text[: 1 + int((len(text) - 2) * share)]
    assert parse_output(cut, "json").problem in ("cut_off", "not_json")
