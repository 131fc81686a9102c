"""What prompt.md says: its front matter and its messages; ComponentError for what a model would be sent by mistake."""

import difflib
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import semver
from pydantic import BaseModel, ConfigDict, Field, field_validator

from skill_evaluator.errors import ComponentError
from skill_evaluator.files import StrictModel, validated
from skill_evaluator.identifiers import LONGEST_VERSION, ComponentName
from skill_evaluator.library.messages import (
    DOCUMENT,
    TURNS,
    Message,
    Placeholders,
    Prompt,
    Role,
    messages_in,
    without_code,
)
from skill_evaluator.library.programs import ProgramUnderTest
from skill_evaluator.library.reading import YAML_DEPTH, parse_front_matter
from skill_evaluator.parsing import Output
from skill_evaluator.text import canonical_json, listed, nearest

InputName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=60)]
_PLACEHOLDER = re.compile(  # no part of a path or formula, such as /users/{id} and x^{n}
    r"\{\{\s*(?P<braces>[A-Za-z_][\w.-]*)\s*\}\}|\$\{(?P<dollar>[A-Za-z_]\w*)\}"
    r"|(?<![\w{}$^\\/-])\{(?P<single>[A-Za-z_]\w*)\}(?![\w{}/-])|^(?:SYSTEM|USER):"
)
_SAME_KEY = 0.85  # similarity of names from which an unknown key counts as a typing error
_PROMPT_SECTION = re.compile(r"^## Prompt[ \t]*\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


class WrittenMessage(StrictModel):
    """A message of a prompt, or an earlier turn of a case."""

    role: Role
    content: str

    @property
    def message(self) -> Message:
        """The message that is sent."""
        return Message(self.role, (self.content.strip(),))


class FrontMatter(BaseModel):
    """The YAML at the head of prompt.md; other keys are the team's own."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    name: str
    version: str

    @field_validator("formerly", mode="before")
    @classmethod
    def _is_list(cls, names: Any) -> Any:
        return [names] if isinstance(names, str) else names

    @field_validator("messages", mode="before")
    @classmethod
    def _refuse_other_words(cls, messages: Any) -> Any:
        if isinstance(messages, str) and messages != "sections":
            raise ValueError(f"'{messages}' is neither sections nor a list of messages")
        return messages

    @field_validator("inputs")
    @classmethod
    def _are_names_of_their_own(cls, inputs: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [name for name in inputs if name == TURNS or inputs.count(name) > 1]:
            raise ValueError(f"'{wrong[0]}' is there twice, or is that of the earlier turns")
        return inputs

    output: Output | None = Field(default=None, description="json unless schema.json is missing and truths are texts")
    inputs: tuple[InputName, ...] = Field(default=(DOCUMENT,), description="what placeholders in the prompt stand for")
    placeholders: Placeholders | None = Field(
        default=None, description="braces: {{input}}, the default; single: {input}; literal: none, so that {x} stays"
    )
    text_of: Literal["pdf"] | None = Field(
        default=None, description="pdf: the models are sent the text of each PDF, and not the PDF"
    )
    messages: tuple[WrittenMessage, ...] | Literal["sections"] | None = Field(
        default=None, description="sections: ## System, ## User and ## Assistant are messages; or the messages"
    )
    program: ProgramUnderTest | None = Field(default=None, description="what is asked in place of a model")
    formerly: tuple[ComponentName, ...] = Field(
        default=(), description="earlier names of the component, whose records are its own"
    )


def checked_prompt(text: str, front: FrontMatter, prompt: Prompt, path: Path) -> Prompt:
    """Return the prompt of a file with this text, a program with the files it watches; raise ComponentError."""
    refuse_unfilled(text, front, prompt, path)
    if front.program is not None:
        prompt = replace(prompt, program=_digest_of(front.program, prompt, path))
    for fault in prompt.faults():
        key = fault.partition(" ")[0]
        line = next((number for number, row in enumerate(text.split("\n"), 1) if row.startswith(key)), 1)
        raise ComponentError(f"{path}:{line}: {fault}")
    return prompt


def _digest_of(program: ProgramUnderTest, prompt: Prompt, path: Path) -> str:
    """Return the digest of a program with the files it watches; raise ComponentError for what it cannot be asked."""
    watched = program.watched_here(path.parent)
    if absent := program.unmatched(watched):
        raise ComponentError(f"{path}: program.watch names {listed(absent)}, and no file here is that")
    body = canonical_json(program.http.body) if program.http else ""
    for match in _PLACEHOLDER.finditer(body):
        if match["braces"] and match["braces"] not in prompt.inputs:
            advice = nearest(match["braces"], prompt.inputs)
            raise ComponentError(f"{path}: program.http.body names {match[0]}, which is no input {advice}")
    return program.digest(watched)


def refuse_unfilled(text: str, front: FrontMatter, prompt: Prompt, path: Path) -> None:
    """Raise ComponentError for a placeholder outside of code that would be sent as it stands."""
    if prompt.placeholders != "braces":
        return
    unfilled = []
    for message in prompt.messages:
        filled = set(prompt.inputs)
        if message.role == "system" and DOCUMENT not in prompt.names_in("user"):
            filled.discard(DOCUMENT)  # it is what the user says
        first_line = text.count("\n", 0, max(0, text.find(message.text))) + 1
        for number, line in enumerate(without_code(message.text).split("\n"), first_line):
            for match in _PLACEHOLDER.finditer(line):
                name = match["dollar"] or match["single"]
                is_sent = match["braces"] not in filled if match["braces"] else name is None or name in prompt.inputs
                if is_sent and (name or match["braces"] or front.messages is None):
                    unfilled.append((number, match[0]))
    if unfilled:
        words = listed([f"{text} (line {number})" for number, text in unfilled])
        raise ComponentError(
            f"{path}:{unfilled[0][0]}: the model would see these unfilled: {words}; write their text (the document is "
            "added by itself), declare them (inputs: [document, name]), or placeholders: literal in the front matter"
        )


def parse_prompt(text: str, path: Path, *, depth: int = YAML_DEPTH) -> tuple[FrontMatter, Prompt]:
    """Split a prompt.md into front matter and prompt; raise ComponentError.

    A name that is left out is the folder's. The version is not checked here: `check_semver` does that. The digest of a
    program is still without the files that it watches.
    """
    values, body = parse_front_matter(text, path, ComponentError, depth=depth)
    if "version" not in values:
        raise ComponentError(f"no version in the front matter of {path}; add a line such as version: 1.0.0")
    if isinstance(number := values["version"], float):
        match = re.search(r"^version:\s*([\d.]+)", text, re.MULTILINE)
        version = match[1] if match else number
        raise ComponentError(f"YAML reads version: {version} in {path} as the number {number}; write {version}.0")
    front = validated(FrontMatter, {"name": path.parent.name, **values}, path, ComponentError)
    for name in front.model_extra or ():  # keys of the team, unless one is a known key with a typing error
        if near := difflib.get_close_matches(name.lower(), FrontMatter.model_fields, n=1, cutoff=_SAME_KEY):
            raise ComponentError(f"unknown key '{name}' in the front matter of {path} (did you mean '{near[0]}'?)")
    if front.program is not None:  # the body, if there is one, is for people
        if front.messages is not None or front.placeholders is not None:
            raise ComponentError(f"{path} has messages or placeholders beside program, which nobody would be sent")
        inputs = tuple(sorted(front.inputs))
        shown = Prompt(messages=(), inputs=inputs).bare("").messages[1:]
        program = front.program.digest({})
        return front, Prompt(messages=shown, inputs=inputs, text_of=front.text_of, program=program)
    section = _PROMPT_SECTION.search(body)
    written = (section[1] if section and front.messages is None else body).strip()
    if isinstance(front.messages, tuple):
        if written:
            raise ComponentError(f"{path} has messages in its front matter and a body, which nobody would be sent")
        messages = tuple(message.message for message in front.messages)
    elif not written:
        raise ComponentError(f"{path} has no prompt: its body, or its '## Prompt' section, is empty")
    else:
        try:
            messages = (Message("system", (written,)),) if front.messages is None else messages_in(written)
        except ValueError as problem:
            raise ComponentError(f"the body of {path}: {problem}") from None
    return front, Prompt(
        messages=messages, inputs=front.inputs, placeholders=front.placeholders or "braces", text_of=front.text_of
    )


def check_semver(text: str, where: Path) -> str:
    """Return the text, if it is a semantic version; raise ComponentError otherwise."""
    if not semver.Version.is_valid(text):
        raise ComponentError(f"version '{text}' in {where} is not semver; write MAJOR.MINOR.PATCH, such as 1.2.0")
    if len(text) > LONGEST_VERSION:
        raise ComponentError(f"version '{text[:20]}…' in {where} has {len(text):,} characters of {LONGEST_VERSION}")
    return text
