"""Passages of a prompt, and the mutants that the operators make of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.messages import Prompt, messages_in
from skill_evaluator.library.mutants import OPERATORS, capped, mutants_of, neutrals, passages_of

PROMPT = """# Receipts

Read the receipt. Never guess, e.g. from the logo.
Answer in English only.

1. Dates: `YYYY-MM-DD`.
   Not the due date.
2. Amounts (for example 12.50):
   - without a currency
   - a refund is negative

| a table | is no rule |

Example:

```json
{"total": "12.50"}
```
"""
SCHEMA = {
    "type": "object",
    "description": "A receipt.",
    "properties": {
        "description": {"type": "string", "description": "What was bought."},
        "total": {"type": "string", "examples": ["12.50"], "enum": ["a", "title"]},
    },
}


def by_id(prompt: str = PROMPT) -> dict[str, str]:
    return {mutant.id: mutant.prompt.text for mutant in mutants_of(Prompt.of(prompt), None)}


def test_every_rule_sentence_and_example_is_damaged_once_by_each_operator_that_fits() -> None:
    assert list(by_id()) == [
        "rule-dropped-3",
        "negation-flipped-3",
        "example-removed-3",
        "rule-dropped-4",
        "negation-flipped-4",
        "rule-dropped-6",
        "negation-flipped-6",
        "format-loosened-6",
        "rule-dropped-8",
        "example-removed-8",
        "rule-dropped-9",
        "negation-flipped-9",
        "rule-dropped-10",
        "example-removed-16",
    ]


@pytest.mark.parametrize(
    ("name", "gone", "there"),
    [
        ("rule-dropped-3", "Never guess, e.g. from the logo.", "Answer in English only."),
        ("rule-dropped-6", "Not the due date.", "2. Amounts"),
        ("rule-dropped-8", "a refund is negative", "1. Dates"),  # with what is set below it
        ("rule-dropped-9", "without a currency", "a refund is negative"),
        ("negation-flipped-3", "Never guess", "Always guess, e.g. from the logo."),
        ("negation-flipped-6", "Not the due date", "the due date"),
        ("negation-flipped-9", "without", "with a currency"),
        ("format-loosened-6", "YYYY-MM-DD", "Dates: any form."),
        ("example-removed-8", "for example", "2. Amounts:"),
        ("example-removed-16", "```", "| a table | is no rule |"),
    ],
)
def test_a_mutant_has_one_thing_otherwise(name: str, gone: str, there: str) -> None:
    prompt = by_id()[name]
    assert gone not in prompt
    assert there in prompt


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It must not be empty.", "It must be empty."),
        ("It must be empty.", "It must not be empty."),
        ("Do not copy it.", "Do copy it."),
        ("It is not a date.", "It is a date."),
        ("Not only names, never titles.", "Not only names, always titles."),
        ("List all except totals.", "List all including totals."),
    ],
)
def test_a_negation_is_flipped_to_its_opposite(before: str, after: str) -> None:
    flipped = [one.prompt.text for one in mutants_of(Prompt.of(f"Read.\n\n- {before}"), None) if "flipped" in one.id]
    assert flipped == [f"Read.\n\n- {after}"]


def test_descriptions_go_and_the_contract_stays() -> None:
    (mutant,) = (one for one in mutants_of(Prompt.of("Read."), SCHEMA) if one.operator == "descriptions-removed")
    assert mutant.schema == {
        "type": "object",
        "properties": {"description": {"type": "string"}, "total": {"type": "string", "enum": ["a", "title"]}},
    }
    assert mutant.prompt.text == "Read."
    assert "-schema.json.properties.description: description: What was bought." in mutant.diff


def test_the_diff_shows_what_went_and_what_came() -> None:
    (mutant,) = (
        one for one in mutants_of(Prompt.of(PROMPT), None, source="\n" * 6 + PROMPT) if one.id == "format-loosened-12"
    )
    assert mutant.diff == ("-1. Dates: `YYYY-MM-DD`.", "+1. Dates: any form.")


def test_lines_are_those_of_the_file_however_it_sets_its_headings() -> None:
    body = "## System\nRead a {{kind}}. Never guess.\n## User\n- Only {{document}}.\n"
    whole = Prompt(messages=messages_in(body), inputs=("document", "kind"))
    mutants = mutants_of(whole, None, source=f"---\nversion: 1.0.0\n---\n{body}")
    assert [mutant.id for mutant in mutants] == ["rule-dropped-5", "negation-flipped-5", "negation-flipped-7"]
    assert all(mutant.prompt.names_in("user") == {"document"} for mutant in mutants)
    assert [message.role for mutant in mutants for message in mutant.prompt.messages] == ["system", "user"] * 3


def test_an_example_in_messages_is_removed_with_what_answers_it() -> None:
    body = "## System\nSort it.\n## User\nA red one\n## Assistant\nwarm\n## User\nA blue one\n## Assistant\ncold\n"
    whole = Prompt(messages=messages_in(f"{body}## User\n{{{{document}}}}\n"))
    mutants = mutants_of(whole, None)
    assert [(one.operator, one.text) for one in mutants] == [
        ("example-removed", "A red one"),
        ("example-removed", "A blue one"),
    ]
    assert [[message.text for message in one.prompt.messages] for one in mutants] == [
        ["Sort it.", "A blue one", "cold", "{{document}}"],
        ["Sort it.", "A red one", "warm", "{{document}}"],
    ]
    asked = Prompt(messages=messages_in("## User\n{{document}}\n## Assistant\nwarm\n## User\nAnd now?\n"))
    assert mutants_of(asked, None) == (), "its input would be lost"


def test_mutants_of_one_sentence_say_what_each_changes() -> None:
    texts = {one.id: one.text for one in mutants_of(Prompt.of("Read.\n\n- Dates as printed, without a day."), None)}
    assert texts == {
        "rule-dropped-3": "- Dates as printed, without a day.",
        "negation-flipped-3": "«without» → «with» in: - Dates as printed, without a day.",
        "format-loosened-3": "«as printed» → «in your own words» in: - Dates as printed, without a day.",
    }


def test_a_cap_keeps_some_of_every_operator_in_order_and_counts_the_rest() -> None:
    mutants = mutants_of(Prompt.of(PROMPT), SCHEMA)
    kept, left_out = capped(mutants, 6)
    assert {mutant.operator for mutant in kept} == set(OPERATORS)
    assert [mutant for mutant in mutants if mutant in kept] == list(kept)
    assert len(kept) + sum(left_out.values()) == len(mutants)


def test_the_controls_mean_the_same_and_differ() -> None:
    for prompt in (PROMPT, "One sentence. And another.", "One word"):
        controls = [control.text for control in neutrals(Prompt.of(prompt))]
        assert len({prompt, *controls}) == 4
        assert all(one.replace("*", "-").split() == prompt.replace("*", "-").split() for one in controls)


@given(st.text("abc-*1.)`~ \n!#|notmuse", max_size=60))
def test_any_text_is_read_and_damaged(prompt: str) -> None:
    for passage in passages_of(prompt):
        assert prompt[passage.begin : passage.end] == passage.text
        assert passage.begin < passage.end <= passage.whole_end <= len(prompt)
    mutants = mutants_of(Prompt.of(prompt), None)
    assert len({mutant.id for mutant in mutants}) == len(mutants) == len({mutant.prompt.text for mutant in mutants})
    assert all(mutant.prompt.text.strip() for mutant in mutants)
    assert mutants == mutants_of(Prompt.of(prompt), None)
