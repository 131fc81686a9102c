"""GitHub Models' .prompt.yml: what is sent, which answers pass as with `gh models eval`, and what is left out."""

import json
import time
from pathlib import Path

import pytest
from skill_evaluator.checks import DeclaredCheck, passes, read_checks
from skill_evaluator.errors import ComponentError, SkillEvaluatorError
from skill_evaluator.library.config import DEFAULT_LIMITS
from skill_evaluator.library.sources import SOURCES
from skill_evaluator.library.sources.tree import FileTree, SourceComponent, folder_tree
from skill_evaluator.parsing import Parsed

PROMPT_YML = SOURCES["prompt_yml"]
MESSAGES = "messages: [{role: user, content: 'Say {{input}}'}]\n"


def tree_of(files: dict[str, str]) -> FileTree:
    return FileTree(where=Path("lib"), paths=tuple(sorted(files)), read=files.__getitem__, limits=DEFAULT_LIMITS)


def written(text: str) -> SourceComponent:
    return PROMPT_YML.read(tree_of({"a.prompt.yml": text}), "a.prompt.yml")


def passed(file: SourceComponent, answer: str) -> bool:
    """Return whether an answer to the first test passes all checks, held against them as in a run."""
    declared = [DeclaredCheck.model_validate(check) for check in file.cases.rows[0][2]["checks"]]
    checks = read_checks([*file.checks, *declared], Path(), Path("x"), ComponentError, lambda path: path)
    return all(passes(check, answer, Parsed()) for check in checks)


SPECIFIED = [  # by hand, from cmd/eval/eval.go and pkg/prompt/prompt.go: string, test data, answer, passed
    # the answer is trimmed, and equals is exact
    ("equals: Paris", "input: x", "  Paris \n", True),
    ("equals: Paris", "input: x", "\u00a0Paris\u2003", True),
    ("equals: Paris", "input: x", "\u001cParis", False),
    ("equals: 'a\n\n  b'", "input: x", "a\nb\n", True),
    ("equals: a.c", "input: x", "abc", False),
    # contains, startsWith and endsWith take A and a for the same
    ("contains: PARIS", "input: x", "It is Paris, of course.", True),
    ("startsWith: Dear", "input: x", "\n\ndear Ms Ray", True),
    ("startsWith: Dear", "input: x", "Oh dear", False),
    ("endsWith: Regards", "input: x", "Best regards \n", True),
    # of several texts the first counts, in this order whatever the order in the file; an empty one is none
    ("{contains: b, equals: a}", "input: x", "a", True),
    ("{startsWith: a, contains: b}", "input: x", "xb", True),
    ("{endsWith: a, startsWith: b}", "input: x", "a", False),
    # variables are replaced plainly, and those without a value stay
    ("contains: '{{input}} and {{want}}'", "{input: x, want: y}", "X and Y", True),
    ("contains: '{{ want }}'", "{input: x, want: y}", "y", False),
    ("equals: '{{other}}'", "{input: x, want: y}", "{{other}}", True),
    # a value that is not a text is written as JSON
    ("equals: '{{want}}'", "{input: x, want: 1.50}", "1.5", True),
    ("equals: '{{want}}'", "{input: x, want: [a, true, no]}", '["a",true,"no"]', True),
    ("equals: '{{want}}'", "{input: x, want: 2026-01-02}", "2026-01-02", True),
]


@pytest.mark.parametrize(("string", "test", "answer", "expected"), SPECIFIED)
def test_output_passes_where_gh_models_eval_passes_it(string: str, test: str, answer: str, expected: bool) -> None:
    string, test = (text if text.startswith("{") else f"{{{text}}}" for text in (string, test))
    file = written(f"{MESSAGES}testData: [{test}]\nevaluators: [{{name: it, string: {string}}}]\n")
    assert passed(file, answer) is expected


WHOLE = """name: Replies
description: To customers
model: openai/gpt-4o-mini
modelParameters: {temperature: 0.5, maxTokens: 50, topP: 1, seed: 7}
responseFormat: json_schema
jsonSchema: '{"name": "reply", "strict": true, "schema": {"type": "object", "required": ["reply"]}}'
messages:
  - {role: system, content: You are {{persona}}.}
  - role: user
    content: |
      {{user name}} asks: {{input}} {{#if x}}
testData:
  - {persona: kind, user name: Ann, input: "Hi {{persona}}", expected: a greeting}
  - {persona: curt, user name: Bo, input: No, category: bye}
  - {persona: curt, input: Nobody's}
evaluators:
  - {name: says hello!, string: {contains: "{{category}}"}}
  - {name: says hello!, string: {startsWith: "{", regex: x}}
  - {name: similar, uses: github/similarity}
  - {name: judged, llm: {modelId: a, prompt: "{{completion}}", choices: [{choice: yes, score: 1}]}}
  - {name: nothing, string: {equals: ""}}
""".replace("content: You are {{persona}}.", 'content: "You are {{persona}}."')


def test_whole_file_is_read_and_unused_keys_are_named() -> None:
    file = written(WHOLE)
    assert file.version is None
    assert file.prompt.inputs == ("persona", "user name", "input")
    assert [message.text for message in file.prompt.filled(file.cases.rows[0][2]["inputs"])] == [
        "You are kind.",
        "Ann asks: Hi {{persona}} {{#if x}}",
    ]
    assert [(case_id, line) for case_id, line, _ in file.cases.rows] == [("Hi-persona-6f75df", 13), ("No-d03360", 14)]
    assert file.cases.rows[1][2]["checks"] == [{"id": "says-hello", "contains": "bye", "ignore_case": True}]
    assert [check.id for check in file.checks] == ["says-hello-2"]
    assert (file.output, file.schema) == ("json", {"type": "object", "required": ["reply"]})
    assert file.hints == {"model": "openai/gpt-4o-mini", "max_output_tokens": 50, "temperature": 0.5, "top_p": 1}
    assert [left.split(";")[0] for left in file.left_out] == [
        "left out: key: gh models eval has no such key (seed)",
        "left out: column: no message and no evaluator with a text names it (expected)",
        "left out: test: it has no value for a variable of the messages, which would be sent unfilled (#3)",
        "left out: evaluator: only startsWith has an effect, not regex (says hello!)",
        "left out: evaluator (2): a model grades it",
        "left out: evaluator: it has no equals, contains, startsWith or endsWith (nothing)",
        "left out: filling {{#if x}}: it is sent unchanged",
    ]


def test_prompt_without_tests_has_no_case() -> None:
    file = written("messages: [{role: user, content: 'Compare {{a}} and {{b}}'}]\nmodel: openai/gpt-4o\n")
    assert (file.prompt.inputs, file.cases.rows, file.output, file.left_out) == (("a", "b"), [], "text", ())


def test_prompt_files_are_found_by_their_ending() -> None:
    paths = (
        "x/a.prompt.yml",
        "x/b.prompt.yaml",
        "x/c_prompt.yml",
        ".prompt.yml",
        "x/prompts.yml",
        "x/d.prompt.yml.bak",
    )
    places = PROMPT_YML.find(tree_of(dict.fromkeys(paths, "")))
    assert list(places.values()) == [("prompt",), ("x", "a"), ("x", "b"), ("x", "c")]


HOSTILE = {
    "nothing": ("", "a mapping of keys to values is expected"),
    "no messages": ("model: x\n", "a required key is missing at messages"),
    "no user": ("messages: [{role: system, content: x}]\n", "the last message must be from the user"),
    "an empty message": ("messages: [{role: user, content: ''}]\n", "a message is empty"),
    "a schema without a name": (f"{MESSAGES}responseFormat: json_schema\njsonSchema: '{{}}'\n", "`name` and `schema`"),
    "a format of its own": (f"{MESSAGES}responseFormat: xml\n", "at responseFormat"),
    "a variable called turns": ("messages: [{role: user, content: '{{turns}}'}]\n", "rename the variable"),
    "a bomb": (f"{MESSAGES}a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
               "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n"
               "testData: [{x: [" + "*d, " * 24 + "]}]\n", "more than 100,000 values"),
    "a variable of a variable": (f"{MESSAGES}testData: [{{input: {'x' * 60_000}}}]\n"
                                 "evaluators: [{string: {equals: '{{input}}{{input}}'}}]\n", "values for evaluator"),
    "too many checks": (f"{MESSAGES}testData: [{'{input: x}, ' * 1_000}]\n"
                        f"evaluators: [{'{string: {equals: x}}, ' * 1_000}]\n", "1,000 tests × 1,000 evaluators"),
}  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_invalid_prompt_file_is_one_line(hostile: str) -> None:
    text, advice = HOSTILE[hostile]
    with pytest.raises(ComponentError) as caught:
        written(text)
    assert advice in str(caught.value)
    assert "lib/a.prompt.yml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a b", "größe", "a.*b|c", "document"])
def test_variable_may_have_any_name(name: str) -> None:
    file = written(
        f"messages: [{{role: user, content: {json.dumps(f'<{{{{{name}}}}}>')}}}]\n"
        f"testData: [{{{json.dumps(name)}: 1}}, {{{json.dumps(name)}: '{{{{x}}}}'}}]\n"
    )
    assert [file.prompt.filled(row["inputs"])[-1].text for _, _, row in file.cases.rows] == ["<1>", "<{{x}}>"]


def test_case_id_is_the_id_name_or_input_of_a_test() -> None:
    tests = ["{id: first one, input: a}", "{name: b, input: b}", "{input: Sum up}", "{input: Sum up}"]
    for before in ([], ["{input: new}"]):
        rows = written(f"{MESSAGES}testData: [{', '.join([*before, *tests])}]\n").cases.rows[len(before) :]
        assert [case_id for case_id, _, _ in rows] == ["first-one", "b", "Sum-up-e84840", "Sum-up-e84840-2"]


def test_evaluator_without_a_name_is_named_by_its_text() -> None:
    for before in ("", "{string: {endsWith: x}}, "):
        rules = f"evaluators: [{before}{{string: {{contains: a b}}}}, {{name: ok, string: {{equals: c}}}}]\n"
        assert [check.id for check in written(f"{MESSAGES}{rules}").checks][-2:] == ["contains-a-b", "ok"]


def test_empty_document_is_skipped_by_its_number() -> None:
    file = written("messages: [{role: user, content: '{{document}}'}]\ntestData: [{document: ' '}, {document: a}]\n")
    assert [case_id for case_id, _, _ in file.cases.rows] == ["a-c9eca4"]
    assert [left.rpartition(" ")[2] for left in file.left_out] == ["(#1)"]


def test_large_file_is_refused_and_many_are_found_quickly(tmp_path: Path) -> None:
    (tmp_path / "big.prompt.yml").write_text(f"{MESSAGES}model: {'x' * 1_000_001}\n")
    tree = folder_tree(tmp_path, DEFAULT_LIMITS)
    with pytest.raises(SkillEvaluatorError, match="at most 1,000,000 are read"):
        PROMPT_YML.read(tree, "big.prompt.yml")
    many = tree_of(dict.fromkeys((f"d{number % 100}/p{number}.prompt.yml" for number in range(10_000)), MESSAGES))
    start = time.process_time()
    assert len(PROMPT_YML.find(many)) == 10_000
    assert time.process_time() - start < 1


@pytest.mark.parametrize("text", ["{{" * 200_000, "{{" + " " * 400_000])
def test_messages_of_braces_are_read_quickly(text: str) -> None:
    start = time.process_time()
    written(f"messages: [{{role: user, content: {json.dumps(text)}}}]\n")
    assert time.process_time() - start < 3
