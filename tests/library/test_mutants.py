"""The parts of a prompt and the mutants without them."""

from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.evaluation.mutation import mutants_of, parts_of
from skill_evaluator.library.prompts import Prompt, messages_in

PROMPT = """# Receipts

Read the receipt. Never guess, e.g. from the logo.
Answer in English.

## Fields

1. Dates: `YYYY-MM-DD`.
   Not the due date.
2. Amounts (for example 12.50):
   - without a currency
   - a refund is negative

| a table | stays |

### Example

```json
# no heading
{"total": "12.50"}
```
"""


def test_each_section_bullet_and_sentence_is_removed_once() -> None:
    removed = {one.id: one.text for one in mutants_of(Prompt.of(PROMPT))}
    assert list(removed) == [
        "sentence-3",
        "sentence-3-2",
        "sentence-4",
        "section-6",
        "bullet-8",
        "bullet-10",
        "bullet-11",
        "bullet-12",
        "section-16",
    ]
    assert removed["sentence-3-2"] == "Never guess, e.g. from the logo."
    assert removed["bullet-8"] == "1. Dates: `YYYY-MM-DD`. Not the due date."
    assert removed["bullet-10"].endswith("- a refund is negative")
    assert removed["section-16"] == '### Example ```json # no heading {"total": "12.50"} ```'


def test_mutant_keeps_all_other_parts() -> None:
    mutants = {one.id: one.prompt.text for one in mutants_of(Prompt.of(PROMPT))}
    assert mutants["sentence-3-2"].startswith("# Receipts\n\nRead the receipt. Answer in English.\n\n## Fields")
    assert mutants["bullet-11"] == PROMPT.replace("   - without a currency\n", "").strip()
    assert mutants["section-6"].endswith("Answer in English.")


def test_mutants_of_messages_keep_roles_and_placeholders() -> None:
    body = "## System\nRead a {{kind}}. Never guess.\n## User\n- Be brief.\n- Only {{document}}.\n"
    whole = Prompt(messages=messages_in(body), inputs=("document", "kind"))
    mutants = mutants_of(whole, f"---\nversion: 1.0.0\n---\n{body}")
    assert [mutant.id for mutant in mutants] == ["sentence-5", "bullet-7"]
    assert all([message.role for message in mutant.prompt.messages] == ["system", "user"] for mutant in mutants)


def test_part_of_an_indented_prompt_has_its_line_in_the_file() -> None:
    part = "- Trim it.\n  Always."
    indented = "name: a\ncontent: |\n  Read it.\n\n  - Trim it.\n    Always.\nmodel: b\n"
    for source, line in ((indented, 5), ("another file\n", 3)):
        assert [one.line for one in mutants_of(Prompt.of(f"Read it.\n\n{part}"), source)][-1] == line


@given(st.text("abc-*1.)`~ \n!#|A", max_size=60))
def test_parts_of_any_text_can_be_removed(prompt: str) -> None:
    assert all(0 <= begin < end <= len(prompt) and prompt[begin:end].strip() for _, begin, end in parts_of(prompt))
    mutants = mutants_of(Prompt.of(prompt))
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    assert all(mutant.prompt.text.strip() for mutant in mutants)
