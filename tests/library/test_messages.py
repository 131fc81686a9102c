"""Prompts of several messages and inputs: what is sent, what is refused, and which versions are asked the same."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import ComponentError, FixtureError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.prompts import Message, Prompt
from skill_evaluator.library.scenarios import Scenario
from skill_evaluator.runner.prices import size_of
from skill_evaluator.runner.schedule import build_request
from skill_evaluator.text import digest

from tests.support.components import component, with_fixtures
from tests.support.library import ROOT

SECTIONS = """---
name: receipts
version: 1.0.0
inputs: [document, doc_type]
messages: sections
---
## System

You read a {{doc_type}}.

## User

A coffee, 3 euros

## Assistant

{"shop": null, "total": 3}

## User

Read this {{ doc_type }}:

{{document}}

```
{{document}} and {{unknown}} in code
```
"""


def front(*lines: str, body: str) -> str:
    return "\n".join(["---", "name: receipts", "version: 1.0.0", *lines, "---", body, ""])


def case(tmp_path: Path, skill: Component, files: Mapping[str, Any]) -> Case:
    folder = tmp_path / "fixtures" / "receipts" / "cases" / "a"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return load_cases(with_fixtures(skill, tmp_path / "fixtures"))[0]


def sent(skill: Component, asked: Case) -> list[tuple[str, str]]:
    request = build_request(skill, asked)
    return [(message.role, message.text) for message in request.messages]


def test_each_placeholder_of_a_section_is_replaced_once(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=SECTIONS)
    asked = case(tmp_path, skill, {"document.md": "{{doc_type}} {document}", "inputs.json": {"doc_type": ["bill", 1]}})
    assert sent(skill, asked) == [
        ("system", 'You read a ["bill", 1].'),
        ("user", "A coffee, 3 euros"),
        ("assistant", '{"shop": null, "total": 3}'),
        (
            "user",
            'Read this ["bill", 1]:\n\n{{doc_type}} {document}\n\n'
            "```\n{{doc_type}} {document} and {{unknown}} in code\n```",
        ),
    ]


def test_messages_in_the_front_matter_are_those_of_sections(tmp_path: Path) -> None:
    lines = 'messages: [{role: system, content: Read.}, {role: user, content: "In {{kind}}: {{document}}"}]'
    listed = component(tmp_path / "a", prompt=front("inputs: [document, kind]", lines, body=""))
    body = "## System\nRead.\n## User\nIn {{kind}}: {{document}}"
    sections = component(tmp_path / "b", prompt=front("inputs: [document, kind]", "messages: sections", body=body))
    assert listed.prompt == sections.prompt
    assert listed.digests == sections.digests


def test_unnamed_document_is_appended_to_the_user_message(tmp_path: Path) -> None:
    body = "## System\nRead.\n## User\nIn {{kind}}:"
    skill = component(tmp_path, prompt=front("inputs: [document, kind]", "messages: sections", body=body))
    asked = case(tmp_path, skill, {"document.md": "A 9", "inputs.json": {"kind": "bill"}})
    assert sent(skill, asked) == [("system", "Read."), ("user", "In bill:\n\nA 9")]
    plain = component(tmp_path / "plain", prompt=front("inputs: [document, kind]", body="Read a {{kind}}."))
    assert sent(plain, asked) == [("system", "Read a bill."), ("user", "A 9")]


def test_doubled_braces_stay_beside_single_ones(tmp_path: Path) -> None:
    """As in the public prompts whose texts are replaced, not formatted: their JSON is written with its own braces."""
    body = '## System\nNo {{x}}.\n## User\nA {doc_type}: {text}\nSay {"a": {"b": 0.9}}, e.g. {{}}.'
    lines = ["inputs: [text, doc_type]", "placeholders: single", "messages: sections"]
    skill = component(tmp_path, prompt=front(*lines, body=body))
    asked = case(tmp_path, skill, {"inputs.json": {"text": "{doc_type}", "doc_type": "bill"}})
    assert sent(skill, asked) == [
        ("system", "No {x}."),
        ("user", 'A bill: {doc_type}\nSay {"a": {"b": 0.9}}, e.g. {{}}.'),
    ]


def test_scenario_keeps_its_own_braces(tmp_path: Path) -> None:
    lines = ["placeholders: single", "messages: sections"]
    skill = component(tmp_path, prompt=front(*lines, body="## System\nRead {{x}}.\n## User\n{document}"))
    strict = Scenario(name="strict", intent="x", template='JSON as {"a": {"b": 1}}.\n{{ prompt }}').around(skill)
    asked = case(tmp_path, skill, {"document.md": "A 9"})
    assert sent(strict, asked) == [("system", 'JSON as {"a": {"b": 1}}.\nRead {x}.'), ("user", "A 9")]


def test_earlier_turns_are_between_examples_and_user_message(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=SECTIONS)
    turns = [{"role": "user", "content": "{{document}}?"}, {"role": "assistant", "content": "Yes."}]
    files = {"document.md": "A 9", "inputs.json": {"doc_type": "bill"}}
    alone = case(tmp_path, skill, files)
    asked = case(tmp_path, skill, {**files, "turns.json": turns})
    assert [role for role, _ in sent(skill, asked)] == ["system", *["user", "assistant"] * 2, "user"]
    assert sent(skill, asked)[3:5] == [("user", "{{document}}?"), ("assistant", "Yes.")]
    assert alone.digest != asked.digest
    assert "Yes." in asked.document


@pytest.mark.parametrize(
    ("lines", "body", "why"),
    [
        ([], "Read {{kind}}.", "these placeholders would be sent unfilled: {{kind}} (line 5)"),
        ([], "Read {{document}}.", "these placeholders would be sent unfilled: {{document}} (line 5)"),
        (["inputs: [document, kind]"], "Read a ${kind}: {kind}.", "sent unfilled: ${kind} (line 6), {kind} (line 6)"),
        (["inputs: [document, kind]"], "Read.", "prompt.md:4: inputs: no message uses kind; write {{kind}} into"),
        (["inputs: [text]"], "Read {{text}}.", "there is no user message; write messages: sections, and"),
        (
            ["messages: sections"],
            "Read.\n## User\nIt.",
            "requires a body that begins with the line ## System or ## User",
        ),
        (["messages: sections"], "## User\nA\n## User\nB", "user and assistant messages must alternate"),
        (["messages: sections"], "## System\n\n## User\nA", "prompt.md:4: messages: a message is empty: system"),
        (["messages: sections"], "## User\n{{document}}\n## Assistant\nA", "the last message is the assistant's"),
        (
            ["placeholders: single"],
            "Read {document}.",
            "inputs: only the system message has {document}; write it into a user message",
        ),
        (["messages: [{role: user, content: A}]"], "Read.", "the body has no effect with `messages`"),
        (["inputs: [text, turns]"], "Read.", "the name 'turns' is reserved for the earlier turns of a case"),
        (["inputs: [text, text]"], "Read.", "'text' is declared twice"),
        (["messages: section"], "## User\nA", "expected `sections` or a list of messages, not 'section'"),
    ],
)
def test_ambiguous_prompt_is_refused(tmp_path: Path, lines: list[str], body: str, why: str) -> None:
    with pytest.raises(ComponentError) as caught:
        component(tmp_path, prompt=front(*lines, body=body))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"document.md": "A"}, "case 'a' has no doc_type: 'doc_type' in"),
        ({"inputs.json": {"doc_type": "bill"}}, "case 'a' has no document: "),
        (
            {"document.md": "A", "inputs.json": {"document": "A", "doc_type": "b"}},
            "the document is in inputs, and also in a file or column of its own; keep one",
        ),
        ({"document.md": "A", "inputs.json": ["bill"]}, "inputs must be an object"),
        ({"document.md": "A", "inputs.json": {"doc_type": None}}, "without null values"),
        (
            {"document.md": "A", "inputs.json": {"doc_type": "b"}, "turns.json": [{"role": "user", "content": "A"}]},
            "turns must alternate: user first, assistant last",
        ),
        (
            {
                "document.md": "A",
                "inputs.json": {"doc_type": "b"},
                "turns.json": [{"role": "user", "content": "A"}, {"role": "assistant", "content": " "}],
            },
            "a turn is empty",
        ),
        ({"inputs.json": {"document": "A", "doctype": "b"}}, "is missing (did you mean 'doctype'?)"),
        ({"inputs.json": '{"document": "A", "doc_type": "\\ud800"}'}, "doc_type: a character is written as half"),
    ],
)
def test_case_without_an_input_of_the_prompt_is_refused(tmp_path: Path, files: Mapping[str, Any], why: str) -> None:
    skill = component(tmp_path, prompt=SECTIONS)
    with pytest.raises(FixtureError) as caught:
        case(tmp_path, skill, files)
    assert why in str(caught.value)


def test_plain_component_keeps_its_digests(tmp_path: Path) -> None:
    for lines in ([], ["inputs: [document]"], ["placeholders: literal"]):
        skill = component(tmp_path / str(lines), prompt=front(*lines, body="Read `{{document}}`."))
        assert skill.digests["prompt"] == digest("Read `{{document}}`.")
        asked = case(tmp_path / str(lines), skill, {"document.md": "A 9"})
        assert asked.digest == digest("A 9\x00")
        assert sent(skill, asked) == [("system", "Read `{{document}}`."), ("user", "A 9")]


def test_scenario_wraps_a_prompt_without_a_system_message(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=front("messages: sections", body="## User\nRead: {{document}}"))
    polite = Scenario(name="polite", intent="x", template="Please.\n\n{{ prompt }}").around(skill)
    asked = case(tmp_path, skill, {"document.md": "A 9"})
    assert sent(polite, asked) == [("system", "Please."), ("user", "Read: A 9")]
    bare = Scenario(name="bare", intent="x", template="{{ prompt }}").around(skill)
    assert sent(bare, asked) == sent(skill, asked)


def test_inputs_remain_without_the_prompt(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=SECTIONS)
    (system, user) = skill.prompt.bare("Answer.").filled({"document": "A 9", "doc_type": "bill"})
    assert (system.text, user.text) == ("Answer.", "document:\nA 9\n\ndoc_type:\nbill")


def test_constant_prefix_ends_before_the_first_variable(tmp_path: Path) -> None:
    prompt = component(tmp_path, prompt=SECTIONS).prompt
    assert prompt.constant_characters(turns=False) == len("You read a ")
    later = Prompt(messages=(Message("system", ("Read.",)), Message("user", ("This: {{document}}",))))
    assert [later.constant_characters(turns=turns) for turns in (False, True)] == [len("Read.This: "), len("Read.")]


def test_examples_of_the_page_on_prompts_are_true(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "prompts.md").read_text()
    shown = re.search(r"```markdown\n(---.*?)\n```", page, re.DOTALL)
    assert shown is not None
    skill = component(tmp_path, name="extract-fields", prompt=shown[1])
    asked = Case(id="a", inputs={"document": "A 9", "doc_type": "invoice"}, truth=None, labelled=False, meta={})
    assert [role for role, _ in sent(skill, asked)] == ["system", "user"]
    assert sent(skill, asked)[1][1] == "Extract all fields of this invoice:\n\nA 9"


@given(st.lists(st.sampled_from(["{{", "}}", "{document}", "{kind}", "x ", "\n"]), min_size=1).map("".join))
def test_single_braces_are_filled_as_python_fills_them(text: str) -> None:
    prompt = Prompt(messages=(Message("user", (text,)),), inputs=("document", "kind"), placeholders="single")
    values = {"document": "{kind}", "kind": "}}"}
    (user,) = (message for message in prompt.filled(values) if message.role == "user")
    assert user.text.removesuffix("\n\n{kind}") == text.format(**values).removesuffix("\n\n{kind}")


def test_token_estimates_count_every_message(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=SECTIONS)
    files = {"document.md": "A 9", "inputs.json": {"doc_type": "bill"}}
    turns = [{"role": role, "content": "Yes, yes."} for _ in range(40) for role in ("user", "assistant")]
    alone, asked = (
        size_of(build_request(skill, case(tmp_path, skill, more))) for more in (files, {**files, "turns.json": turns})
    )
    assert asked.minimum == alone.minimum + 80 * 2
    assert asked.likely > alone.likely + 80 * (2 + 4)
    assert asked.maximum > alone.maximum + 80 * (9 + 8)
