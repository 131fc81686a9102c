"""The prompts of the judges: Markdown files beside this room, with slots such as `{{ criteria }}`, and their digests.

A file has three parts under headings of its own: `## Instructions` become the system text, `## Texts` the user text,
and `## Mitigations` are lines that a criterion's bias mitigations add.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, read_text
from skill_evaluator.identifiers import Digest, Label, VersionText
from skill_evaluator.library.yaml_files import parse_front_matter
from skill_evaluator.text import digest

_FOLDER = Path(__file__).parents[1] / "prompts"
_SLOT = re.compile(r"\{\{ (\w+) \}\}")
_PART = re.compile(r"^## (Instructions|Texts|Mitigations)\n", re.MULTILINE)
_MITIGATION = re.compile(r"^- (\w+): (.+)$", re.MULTILINE)


class PromptIdentity(FrozenModel):
    """Which prompt a judge was asked with: any change of the file changes the digest."""

    name: Label
    version: VersionText
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePrompt:
    """One prompt; `text` is the whole file. `mitigations`: the sentence that each one adds for its criterion."""

    identity: PromptIdentity
    text: str
    instructions: str
    texts: str
    mitigations: Mapping[str, str]


@cache
def load_prompt(name: str) -> JudgePrompt:
    """Read a prompt that is shipped, such as direct or regression, by its name; raise JudgeError for a broken file."""
    path = _FOLDER / f"{name}.md"
    text = read_text(path, JudgeError)
    front, body = parse_front_matter(text, path, JudgeError)
    _, *pieces = _PART.split(body)
    parts = dict(zip(pieces[::2], pieces[1::2], strict=True))
    if not {"Instructions", "Texts"} <= parts.keys() or not {"name", "version"} <= front.keys():
        raise JudgeError(f"{path} needs name and version, ## Instructions and ## Texts")
    return JudgePrompt(
        identity=PromptIdentity(name=front["name"], version=str(front["version"]), digest=digest(text)),
        text=text,
        instructions=parts["Instructions"].strip(),
        texts=parts["Texts"].strip(),
        mitigations=dict(_MITIGATION.findall(parts.get("Mitigations", ""))),
    )


def fill(template: str, slots: Mapping[str, str]) -> str:
    """Put values into the slots of a template, in one pass: a slot inside a value is left as it is.

    A line whose slots are all empty goes, and so does a paragraph. Raise JudgeError for a slot that has no value.

    >>> fill("It says:\\n{{ a }}\\n\\n{{ b }}", {"a": "", "b": "{{ a }}"})
    '{{ a }}'
    """
    missing = [slot for slot in _SLOT.findall(template) if slot not in slots]
    if missing:
        raise JudgeError(f"a judge's prompt has the slot '{missing[0]}', for which there is nothing")

    def has_something(part: str) -> bool:
        inside = _SLOT.findall(part)
        return not inside or any(slots[slot] for slot in inside)

    paragraphs = (paragraph for paragraph in template.split("\n\n") if has_something(paragraph))
    kept = ("\n".join(filter(has_something, paragraph.split("\n"))) for paragraph in paragraphs)
    return _SLOT.sub(lambda slot: slots[slot[1]], "\n\n".join(kept))
