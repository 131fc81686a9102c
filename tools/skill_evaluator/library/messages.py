"""What a model is sent: messages of text and files, made of a prompt and the values of a case.

A `Prompt` holds messages with placeholders still in them. `filled` replaces each once, plainly: a value that looks like
a placeholder stays what it is. `components` reads prompts, `cases` reads values, and the providers send messages.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from skill_evaluator.identifiers import Label
from skill_evaluator.text import canonical_json, counted, digest, listed

Role = Literal["system", "user", "assistant"]
Placeholders = Literal["braces", "single", "literal"]
MediaType = Literal["application/pdf", "image/png", "image/jpeg", "image/webp"]
FileKind = Literal["pdf", "image"]
DOCUMENT = "document"
UsedInputs = Annotated[tuple[Label, ...], Field(exclude_if=lambda inputs: inputs == (DOCUMENT,))]
TURNS = "turns"  # the earlier turns of a case, among what its digest is made of


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A PDF or an image of a case, as it is known without its bytes, which are read when it is sent."""

    path: Path
    media_type: MediaType
    digest: str
    size: int
    width: int | None = None
    height: int | None = None
    pages: int | None = None

    @property
    def kind(self) -> FileKind:
        """What a model has to read."""
        return "pdf" if self.media_type == "application/pdf" else "image"

    def __str__(self) -> str:
        extent = f"{self.width}x{self.height}" if self.pages is None else counted(self.pages, "page")
        return f"[{self.path.name}: {self.media_type}, {extent}, {self.size:,} bytes]"


Part = str | File


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who says it, and its texts and files in their order."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The texts of the message."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def files(self) -> tuple[File, ...]:
        """The files of the message."""
        return tuple(part for part in self.parts if isinstance(part, File))


def dialogue(system: str, user: str) -> tuple[Message, ...]:
    """Return a system prompt and what a user says."""
    return Message("system", (system,)), Message("user", (user,))


_SECTION = re.compile(r"^## (System|User|Assistant)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_CODE = re.compile(r"(?ms)^[ \t]*(```+|~~~+)[^`\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|(`+)[^`\n]+\2")


def without_code(text: str) -> str:
    """Return a text of the same length and lines, blanks in place of its code."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def section_headings(body: str) -> list[re.Match[str]]:
    """Return the headings that would begin messages; those in code do not."""
    return list(_SECTION.finditer(without_code(body)))


def messages_in(body: str) -> tuple[Message, ...]:
    """Return the messages of the sections `## System`, `## User` and `## Assistant`; raise ValueError."""
    headings = section_headings(body)
    if not headings or body[: headings[0].start()].strip():
        raise ValueError("with messages: sections it begins with ## System or ## User, and no text before that")
    ends = [heading.start() for heading in headings[1:]] + [len(body)]
    return tuple(
        Message(heading[1].lower(), (body[heading.end() : end].strip(),))  # type: ignore[arg-type]
        for heading, end in zip(headings, ends, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The messages of a prompt, with the names of the inputs that placeholders in them stand for.

    With a `program` under test, of which this is the digest, the messages are what it is asked, as people read it.

    The system message, if there is one, comes first. Then come pairs of user and assistant, as examples, and last
    perhaps what the user says. Placeholders are `{{name}}` (braces), `{name}` (single) or nothing (literal). As in
    Python's format strings `{{` beside a single placeholder is one brace, unless lone braces stand there, too.
    `text_of` says of which files the text is sent instead.

    >>> prompt = Prompt(messages=(Message("user", ("Is {{document}} a {{kind}}?",)),), inputs=("document", "kind"))
    >>> prompt.filled({"document": "{{kind}}", "kind": ["bill"]})[0].text
    'Is {{kind}} a ["bill"]?'
    """

    messages: tuple[Message, ...]
    inputs: tuple[str, ...] = (DOCUMENT,)
    placeholders: Placeholders = "braces"
    text_of: Literal["pdf"] | None = None
    program: str | None = None

    @classmethod
    def of(cls, text: str) -> "Prompt":
        """Return the prompt that is one system message; the document is what the user says."""
        return cls(messages=(Message("system", (text,)),))

    @property
    def is_plain(self) -> bool:
        """Whether it is one system prompt about one document."""
        roles = [message.role for message in self.messages]
        return roles == ["system"] and self.inputs == (DOCUMENT,) and self.placeholders != "single"

    @property
    def system(self) -> str:
        """The text of the system message, empty without one."""
        return self.messages[0].text if self.messages and self.messages[0].role == "system" else ""

    @property
    def text(self) -> str:
        """What people wrote: the system prompt, or all messages under their headings."""
        if [message.role for message in self.messages] == ["system"]:
            return self.system
        return "\n\n".join(f"## {message.role.title()}\n\n{message.text}" for message in self.messages)

    @cached_property
    def digest(self) -> str:
        """The digest of all that shapes the messages, or what a program answers."""
        if self.is_plain and not self.text_of:
            return digest(self.system)
        messages = [[message.role, message.text] for message in self.messages]
        shape = [messages, sorted(self.inputs), self.placeholders, *filter(None, [self.text_of, self.program])]
        return digest(canonical_json(shape))

    def like(self, text: str) -> "Prompt | None":
        """Return the same prompt with a different text; None where that makes other roles or has other placeholders."""
        if [message.role for message in self.messages] == ["system"]:
            other = replace(self, messages=(Message("system", (text,)),))
        else:
            try:
                other = replace(self, messages=messages_in(text))
            except ValueError:
                return None
        roles = [message.role for message in self.messages]
        alike = roles == [message.role for message in other.messages] and all(m.text for m in other.messages)
        return other if alike and all(self.names_in(role) == other.names_in(role) for role in roles) else None

    def within(self, before: str, after: str) -> "Prompt":
        """Return the same prompt with texts around its system message, which it may have lacked."""
        if self.placeholders == "single" and not _LONE.match(self.system):
            before, after = (re.sub(r"[{}]", r"\g<0>\g<0>", text) for text in (before, after))
        text = f"{before}{self.system}{after}" if self.system else f"{before}{after}".strip()
        others = tuple(message for message in self.messages if message.role != "system")
        return replace(self, messages=(*([Message("system", (text,))] if text else []), *others))

    def bare(self, text: str) -> "Prompt":
        """Return a prompt for the same inputs with a system message alone; other inputs than a document are named."""
        system = Message("system", (text,))
        if self.inputs == (DOCUMENT,):
            return replace(self, messages=(system,), placeholders="braces")
        user = "\n\n".join(f"{name}:\n{{{{{name}}}}}" for name in self.inputs)
        return replace(self, messages=(system, Message("user", (user,))), placeholders="braces")

    def names_in(self, role: Role) -> set[str]:
        """Return the inputs that the messages of a role name."""
        texts = (message.text for message in self.messages if message.role == role)
        return {name for text in texts for _, name in self._pieces(text) if name}

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with inputs and messages, each behind the key of the front matter."""
        roles = [message.role for message in self.messages]
        talk = [role for role in roles if role != "system"]
        if "system" in roles[1:]:
            yield "messages: there is one system message at most, and it comes first"
        if any(role == before for before, role in zip(["assistant", *talk], talk, strict=False)):
            yield "messages: after the system message user and assistant take turns, and the user begins"
        if empty := [message.role for message in self.messages if not message.text.strip()]:
            yield f"messages: one is empty: {listed(sorted(set(empty)))}"
        by_user, by_system = self.names_in("user"), self.names_in("system")
        if unused := [name for name in self.inputs if name not in {DOCUMENT, *by_user, *by_system}]:
            yield f"inputs: no message uses {listed(unused)}; write {self._written(unused[0])} where it belongs"
        if DOCUMENT in by_system - by_user:
            yield f"inputs: {self._written(DOCUMENT)} is in the system message alone; a user message says the document"
        if talk[-1:] == ["assistant"] and DOCUMENT in by_user:
            yield "messages: the last one is the assistant's; end with what the user says"
        if DOCUMENT not in self.inputs and talk[-1:] != ["user"]:
            yield "inputs: no user message: write messages: sections and put what the user says under ## User"

    def filled(self, values: Mapping[str, Any], turns: Sequence[Message] = ()) -> tuple[Message, ...]:
        """Return the messages to send: system, examples, earlier turns, what the user says; raise KeyError by name.

        Without `{{document}}` in a user message the document is the end of what the user says.
        """
        messages = [Message(message.role, tuple(self._parts(message.text, values))) for message in self.messages]
        last = [messages.pop()] if messages and messages[-1].role == "user" else []
        if DOCUMENT in self.inputs and DOCUMENT not in self.names_in("user"):
            before = (*last[0].parts, "\n\n") if last else ()
            last = [Message("user", tuple(_joined((*before, _part(values[DOCUMENT])))))]
        return (*messages, *turns, *last)

    def constant_characters(self, *, turns: bool) -> int:
        """Return how many characters of the messages are the same for all cases, or for all without earlier turns."""
        last = bool(turns and self.messages and self.messages[-1].role == "user")
        count = 0
        for message in self.messages[: len(self.messages) - last]:
            for text, name in self._pieces(message.text):
                if name:
                    return count
                count += len(text)
        return count

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        names = "|".join(map(re.escape, self.inputs))
        if self.is_plain or self.placeholders == "literal" or not names:
            return None
        if self.placeholders == "braces":
            return re.compile(rf"\{{\{{\s*({names})\s*\}}\}}")
        return re.compile(rf"\{{\{{|\}}\}}|\{{({names})\}}")

    def _written(self, name: str) -> str:
        return f"{{{name}}}" if self.placeholders == "single" else f"{{{{{name}}}}}"

    def _pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the texts between placeholders, and each placeholder as an empty text with its name."""
        end = 0
        stays = self.placeholders == "single" and _LONE.match(text) is not None  # of {{, if lone braces are there
        for match in self._pattern.finditer(text) if self._pattern else ():
            yield text[end : match.start()], ""
            yield ("", match[1]) if match[1] else (match[0] if stays else match[0][0], "")
            end = match.end()
        yield text[end:], ""

    def _parts(self, text: str, values: Mapping[str, Any]) -> Iterator[Part]:
        return _joined(_part(values[name]) if name else piece for piece, name in self._pieces(text))


_LONE = re.compile(r"(?:\{\{|\}\}|\{[A-Za-z_][\w.-]*\}|[^{}])*+[{}]")  # a brace that is no pair and begins no name


def _part(value: Any) -> Part:
    return value if isinstance(value, str | File) else json.dumps(value, ensure_ascii=False)


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts, texts beside each other as one."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        yield from filter(None, ["".join(texts)])
        texts = []
        yield part
    yield from filter(None, ["".join(texts)])
