"""prompt.md: its front matter, its messages filled with the values of a case, or a program to call instead."""

import difflib
import hashlib
import json
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import semver
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, field_validator, model_validator

from skill_evaluator.errors import ComponentError
from skill_evaluator.files import StrictModel, open_file, validated
from skill_evaluator.identifiers import MAX_VERSION, ComponentName, Label, is_address
from skill_evaluator.library.config import FileKind, Price
from skill_evaluator.library.reading import YAML_DEPTH, as_list, parse_front_matter
from skill_evaluator.parsing import Output
from skill_evaluator.repository import Repository, tolerating_git
from skill_evaluator.text import canonical_json, counted, digest, listed, nearest

Role = Literal["system", "user", "assistant"]
Placeholders = Literal["braces", "single", "literal"]
MediaType = Literal["application/pdf", "image/png", "image/jpeg", "image/webp"]
DOCUMENT = "document"
UsedInputs = Annotated[tuple[Label, ...], Field(exclude_if=lambda inputs: inputs == (DOCUMENT,))]
TURNS = "turns"  # reserved input name: the earlier turns of a case, in its files and its digests


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A PDF or image; sizes are in bytes and pixels. `pages` is None for an image, and for a PDF until it is read."""

    path: Path
    media_type: MediaType
    digest: str
    size: int
    width: int | None = None
    height: int | None = None
    pages: int | None = None

    @property
    def kind(self) -> FileKind:
        """The kind of the file, "pdf" or "image"."""
        return "pdf" if self.media_type == "application/pdf" else "image"

    def __str__(self) -> str:
        extent = f"{self.width}x{self.height}" if self.pages is None else counted(self.pages, "page")
        return f"[{self.path.name}: {self.media_type}, {extent}, {self.size:,} bytes]"


Part = str | File


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its role, and its texts and files in order."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The joined texts of the message, without its files."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def files(self) -> tuple[File, ...]:
        """The PDFs and images of the message."""
        return tuple(part for part in self.parts if isinstance(part, File))


def dialogue(system: str, user: str) -> tuple[Message, ...]:
    """Return a system message and a user message."""
    return Message("system", (system,)), Message("user", (user,))


_SECTION = re.compile(r"^## (System|User|Assistant)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_CODE = re.compile(r"(?ms)^[ \t]*(```+|~~~+)[^`\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|(`+)[^`\n]+\2")


def without_code(text: str) -> str:
    """Replace the code in a Markdown text by blanks. The length and the line breaks stay the same."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def section_headings(body: str) -> list[re.Match[str]]:
    """Return the matches of the headings `## System`, `## User` and `## Assistant` outside of code."""
    return list(_SECTION.finditer(without_code(body)))


def messages_in(body: str) -> tuple[Message, ...]:
    """Return the messages of a text by its headings, such as `## User`. Raise ValueError if no heading comes first."""
    headings = section_headings(body)
    if not headings or body[: headings[0].start()].strip():
        raise ValueError("`messages: sections` requires a body that begins with the line ## System or ## User")
    ends = [heading.start() for heading in headings[1:]] + [len(body)]
    return tuple(
        Message(heading[1].lower(), (body[heading.end() : end].strip(),))  # type: ignore[arg-type]
        for heading, end in zip(headings, ends, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The messages of a prompt and the names of its inputs.

    The first message may be a system message. The other messages alternate between user and assistant. Placeholders are
    written `{{name}}` ("braces") or `{name}` ("single"). If `placeholders` is "literal", there are no placeholders.

    >>> prompt = Prompt(messages=(Message("user", ("Is {{document}} a {{kind}}?",)),), inputs=("document", "kind"))
    >>> prompt.filled({"document": "{{kind}}", "kind": ["bill"]})[0].text
    'Is {{kind}} a ["bill"]?'
    """

    messages: tuple[Message, ...]
    inputs: tuple[str, ...] = (DOCUMENT,)
    placeholders: Placeholders = "braces"
    text_of: Literal["pdf"] | None = None  # files of this kind are sent as text
    program: str | None = None  # digest of the program that is called instead of a model
    by_tool_call: bool = False  # whether the output is the arguments of a function call

    @classmethod
    def of(cls, text: str) -> "Prompt":
        """Return a prompt with one system message."""
        return cls(messages=(Message("system", (text,)),))

    @property
    def is_plain(self) -> bool:
        """Whether it is one system message, with the document as its only input and no `{name}` placeholders."""
        roles = [message.role for message in self.messages]
        return roles == ["system"] and self.inputs == (DOCUMENT,) and self.placeholders != "single"

    @property
    def system(self) -> str:
        """The text of the system message, or an empty text."""
        return self.messages[0].text if self.messages and self.messages[0].role == "system" else ""

    @property
    def text(self) -> str:
        """The text of a single system message, or all messages under their headings."""
        if [message.role for message in self.messages] == ["system"]:
            return self.system
        return "\n\n".join(f"## {message.role.title()}\n\n{message.text}" for message in self.messages)

    @cached_property
    def digest(self) -> str:
        """The digest of all values that determine the messages or the program."""
        if self.is_plain and not self.text_of and not self.by_tool_call:
            return digest(self.system)
        messages = [[message.role, message.text] for message in self.messages]
        others = filter(None, [self.text_of, self.program, self.by_tool_call and "tool_call"])
        shape = [messages, sorted(self.inputs), self.placeholders, *others]
        return digest(canonical_json(shape))

    def like(self, text: str) -> "Prompt | None":
        """Replace the messages by those of `text`. Return None if a message is empty, or if roles or inputs change."""
        if [message.role for message in self.messages] == ["system"]:
            prompt = replace(self, messages=(Message("system", (text,)),))
        else:
            try:
                prompt = replace(self, messages=messages_in(text))
            except ValueError:
                return None
        roles = [message.role for message in self.messages]
        alike = roles == [message.role for message in prompt.messages] and all(m.text for m in prompt.messages)
        return prompt if alike and all(self.names_in(role) == prompt.names_in(role) for role in roles) else None

    def within(self, before: str, after: str) -> "Prompt":
        """Return this prompt with `before` and `after` around its system message. Add the message if it is missing."""
        if self.placeholders == "single" and not _UNPAIRED_BRACE.match(self.system):
            before, after = (re.sub(r"[{}]", r"\g<0>\g<0>", text) for text in (before, after))
        text = f"{before}{self.system}{after}" if self.system else f"{before}{after}".strip()
        others = tuple(message for message in self.messages if message.role != "system")
        return replace(self, messages=(*([Message("system", (text,))] if text else []), *others))

    def bare(self, text: str) -> "Prompt":
        """Return the prompt with the system message `text` in place of all messages.

        If the document is not the only input, add a user message with all inputs.
        """
        user = "\n\n".join(f"{name}:\n{{{{{name}}}}}" for name in self.inputs)
        messages = dialogue(text, user)[: 1 if self.inputs == (DOCUMENT,) else 2]
        return replace(self, messages=messages, placeholders="braces")

    def names_in(self, role: Role) -> set[str]:
        """Return the names of the inputs with a placeholder in messages of a role."""
        texts = (message.text for message in self.messages if message.role == role)
        return {name for text in texts for _, name in self._pieces(text) if name}

    def faults(self) -> Iterator[str]:
        """Yield one text per fault of the prompt. Each begins with the front matter key, such as `inputs: `."""
        roles = [message.role for message in self.messages]
        talk = [role for role in roles if role != "system"]
        if "system" in roles[1:]:
            yield "messages: only the first message can be a system message"
        if any(role == before for before, role in zip(["assistant", *talk], talk, strict=False)):
            yield "messages: user and assistant messages must alternate, and the user begins"
        if empty := [message.role for message in self.messages if not message.text.strip()]:
            yield f"messages: a message is empty: {listed(sorted(set(empty)))}"
        by_user, by_system = self.names_in("user"), self.names_in("system")
        if unused := [name for name in self.inputs if name not in {DOCUMENT, *by_user, *by_system}]:
            yield f"inputs: no message uses {listed(unused)}; write {self._written(unused[0])} into a message"
        if DOCUMENT in by_system - by_user:
            yield f"inputs: only the system message has {self._written(DOCUMENT)}; write it into a user message"
        if talk[-1:] == ["assistant"] and DOCUMENT in by_user:
            yield "messages: the last message is the assistant's; add a user message"
        if DOCUMENT not in self.inputs and talk[-1:] != ["user"]:
            yield "inputs: there is no user message; write messages: sections, and the message under ## User"

    def filled(self, values: Mapping[str, Any], turns: Sequence[Message] = ()) -> tuple[Message, ...]:
        """Return the messages to send, with `values` in place of the placeholders.

        Insert `turns` before the final user message. If no user message has a placeholder for the document, add the
        document at the end of the final user message.
        """
        messages = [Message(message.role, tuple(self._parts(message.text, values))) for message in self.messages]
        last = [messages.pop()] if messages and messages[-1].role == "user" else []
        if DOCUMENT in self.inputs and DOCUMENT not in self.names_in("user"):
            before = (*last[0].parts, "\n\n") if last else ()
            last = [Message("user", tuple(_joined((*before, _part(values[DOCUMENT])))))]
        return (*messages, *turns, *last)

    def constant_characters(self, *, turns: bool) -> int:
        """Count the characters before the first placeholder. If `turns` is true, stop before the turns of the case."""
        last = bool(turns and self.messages and self.messages[-1].role == "user")
        messages = self.messages[: len(self.messages) - last]
        pieces = chain.from_iterable(self._pieces(message.text) for message in messages)
        return sum(len(text) for text, _ in takewhile(lambda piece: not piece[1], pieces))

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
        """Yield (text, "") for each text between placeholders, and ("", name) for each placeholder."""
        end = 0
        # keeps {{ unchanged if the text has unpaired braces
        keeps_braces = self.placeholders == "single" and _UNPAIRED_BRACE.match(text) is not None
        for match in self._pattern.finditer(text) if self._pattern else ():
            yield text[end : match.start()], ""
            yield ("", match[1]) if match[1] else (match[0] if keeps_braces else match[0][0], "")
            end = match.end()
        yield text[end:], ""

    def _parts(self, text: str, values: Mapping[str, Any]) -> Iterator[Part]:
        return _joined(_part(values[name]) if name else piece for piece, name in self._pieces(text))


# an unpaired brace that does not begin a placeholder
_UNPAIRED_BRACE = re.compile(r"(?:\{\{|\}\}|\{[A-Za-z_][\w.-]*\}|[^{}])*+[{}]")


def _part(value: Any) -> Part:
    return value if isinstance(value, str | File) else json.dumps(value, ensure_ascii=False)


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    for are_texts, group in groupby(parts, lambda part: isinstance(part, str)):
        joined = ["".join(map(str, group))] if are_texts else group  # noqa: B031 - one use of the group
        yield from filter(None, joined)


_RESERVED = ("PATH", "HOME", "TMPDIR", "LC_CTYPE")  # set by the evaluator itself
# declarations, or files written by a run
_NOT_WATCHED = re.compile(r"(prompt\.md|leaderboard\.json|evals/.*|(.*/)?__pycache__/.*)")
_MAX_STARS = 6  # limit per glob: bounds the cost of matching every path


def _is_one_command(setup: Any) -> Any:
    is_one = isinstance(setup, list | tuple) and all(isinstance(word, str) for word in setup)
    return [setup] if is_one and setup else setup


Argument = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
Argv = Annotated[tuple[Argument, ...], Field(min_length=1)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Commands = Annotated[tuple[Argv, ...], BeforeValidator(_is_one_command, json_schema_input_type=tuple[Argv, ...] | Argv)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$", max_length=200)]


class Endpoint(StrictModel):
    """An HTTP endpoint that receives a JSON body by POST."""

    url: str = Field(pattern=r"^https?://[^\s{}]+$")
    body: dict[str, Any] | list[Any] = Field(description="JSON; {{input}} in texts is replaced by the input")
    answer: str = Field(default="", pattern=r"^(/|$)", description="JSON Pointer to the output in the response")
    headers: dict[HeaderName, Variable] = Field(default={}, description="environment variable of each header's value")

    @field_validator("url")
    @classmethod
    def _names_a_host_and_no_password(cls, url: str) -> str:
        if not is_address(url):
            raise ValueError(f"'{url}' is not the address of a server")
        if "@" in urlsplit(url).netloc:
            raise ValueError("a password in a file is not allowed; name an environment variable in `headers`")
        return url


class ProgramUnderTest(StrictModel):
    """A command or an endpoint that is called instead of a model."""

    run: Argv | None = Field(default=None, description="program and arguments; JSON on stdin, JSON on stdout")
    http: Endpoint | None = None
    env: tuple[Variable, ...] = Field(default=(), description="variables of the program, besides PATH and HOME")
    setup: Commands = Field(default=(), description="installation commands, run once before the first call")
    watch: tuple[str, ...] = Field(default=(), description="globs of the files whose change is a new version")
    price: Price | None = Field(default=None, description="price of the tokens that the program reports")
    timeout_s: PositiveFloat | None = Field(default=None, description="timeout of a call; default: settings.yaml")

    @field_validator("env")
    @classmethod
    def _reject_reserved_env(cls, env: tuple[str, ...]) -> tuple[str, ...]:
        if reserved := [name for name in env if name in _RESERVED]:
            raise ValueError(f"{reserved[0]} is set for every program; delete it from `env`")
        return env

    @field_validator("watch")
    @classmethod
    def _are_globs(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        for glob in globs:
            if not glob or len(glob) > 300 or glob.startswith("/") or "\\" in glob or glob.count("*") > _MAX_STARS:
                rule = f"a glob relative to the component's folder with at most {_MAX_STARS} stars"
                raise ValueError(f"'{glob[:100]}' is not {rule}")
        return globs

    @model_validator(mode="after")
    def _require_run_xor_http(self) -> Self:
        if (self.run is None) == (self.http is None):
            raise ValueError("exactly one of `run` and `http` is required")
        if self.run is not None and not self.watch:
            raise ValueError("`run` requires `watch`: files whose change is a new version, such as [app.py, 'src/**']")
        if self.http is not None and self.env:
            raise ValueError("`env` has no effect with `http`; name the variables in `headers`")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the environment variables in env and headers."""
        return tuple(dict.fromkeys((*self.env, *(self.http.headers.values() if self.http else ()))))

    def digest(self, watched: Mapping[str, str]) -> str:
        """Return the digest of this declaration, except price and timeout, and of `watched` (git blob ids by path)."""
        declared = self.model_dump(mode="json", exclude_defaults=True, exclude={"timeout_s", "price"})
        return digest(canonical_json([declared, dict(watched)]))

    def watched(self, folder: str, files: Mapping[str, str]) -> dict[str, str]:
        """Return the git blob ids of watched files by path from `folder`. `files` has all ids by repository path."""
        globs = _globs_pattern(posixpath.normpath(posixpath.join(folder, glob)) for glob in self.watch)
        paths = {posixpath.relpath(path, folder or "."): path for path in files if globs.fullmatch(path)}
        return {name: files[path] for name, path in sorted(paths.items()) if not _NOT_WATCHED.fullmatch(name)}

    def unmatched(self, watched: Iterable[str]) -> list[str]:
        """Return the globs that match none of the `watched` paths, which are relative to the component's folder."""
        names = list(watched)
        globs = {glob: _globs_pattern([posixpath.normpath(glob)]) for glob in self.watch}
        return [glob for glob, pattern in globs.items() if not any(pattern.fullmatch(name) for name in names)]

    def watched_here(self, folder: Path) -> dict[str, str]:
        """Return the git blob id of each watched file, by path from `folder`, such as `../a.py`. Skip ignored files."""
        repository = None
        with tolerating_git():
            repository = Repository(folder)
        if repository is None:
            names = (path.relative_to(folder) for path in folder.rglob("*"))
            visible_names = (name for name in names if not any(part.startswith(".") for part in name.parts))
            component_path, files = ".", {name.as_posix(): "" for name in visible_names}
        else:
            component_path = repository.relative_path(folder)
            files = {path: blob or "" for path, blob in repository.work_files().items()}
        matching = self.watched(component_path, files)
        blobs = {name: blob or _blob_of(folder / name) for name, blob in matching.items()}
        return {name: blob for name, blob in blobs.items() if blob}


def _globs_pattern(globs: Iterable[str]) -> re.Pattern[str]:
    """Compile globs. `*` and `?` match within a name, `**` matches folders. A final `**` matches everything below."""
    patterns = []
    for glob in globs:
        *folders, last_part = re.sub(r"(\*\*/)+", "**/", glob).split("/")
        parts = ["(?:[^/]+/)*" if part == "**" else f"{_part_pattern(part)}/" for part in folders]
        patterns.append("".join([*parts, ".+" if last_part == "**" else _part_pattern(last_part)]))
    return re.compile("|".join(patterns) or "(?!)")


def _part_pattern(part: str) -> str:
    return re.sub(r"(\\\*)+", "[^/]*", re.escape(part)).replace(r"\?", "[^/]")


def _blob_of(path: Path) -> str | None:
    """Return the git blob id of a file or link. Return None if it is neither or does not exist."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.fsencode(path.readlink())
        elif stat.S_ISREG(mode):
            with open_file(path, ComponentError) as handle:
                content = handle.read()
        else:
            return None
    except OSError:  # deleted, but still in git's index
        return None
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


InputName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=60)]
_PLACEHOLDER = re.compile(  # excludes parts of paths or formulas, such as /users/{id} and x^{n}
    r"\{\{\s*(?P<braces>[A-Za-z_][\w.-]*)\s*\}\}|\$\{(?P<dollar>[A-Za-z_]\w*)\}"
    r"|(?<![\w{}$^\\/-])\{(?P<single>[A-Za-z_]\w*)\}(?![\w{}/-])|^(?:SYSTEM|USER):"
)
_SAME_KEY = 0.85  # name similarity above which an unknown key is reported as a typing error
_PROMPT_SECTION = re.compile(r"^## Prompt[ \t]*\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


class PromptMessage(StrictModel):
    """A message in a prompt file, or an earlier turn of a case."""

    role: Role
    content: str

    @property
    def message(self) -> Message:
        """The message to send."""
        return Message(self.role, (self.content.strip(),))


class Turns(StrictModel):
    """The earlier turns of a case, in order."""

    turns: tuple[PromptMessage, ...]

    @field_validator("turns")
    @classmethod
    def _check_order(cls, turns: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
        roles = [turn.role for turn in turns]
        if roles != ["user", "assistant"] * (len(roles) // 2):
            raise ValueError("turns must alternate: user first, assistant last")
        if not all(turn.content.strip() for turn in turns):
            raise ValueError("a turn is empty")
        return turns


class FrontMatter(BaseModel):
    """The YAML front matter of prompt.md; teams may add other keys."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    name: str
    version: str

    @field_validator("messages", mode="before")
    @classmethod
    def _check_messages(cls, messages: Any) -> Any:
        if isinstance(messages, str) and messages != "sections":
            raise ValueError(f"expected `sections` or a list of messages, not '{messages}'")
        return messages

    @field_validator("inputs")
    @classmethod
    def _reject_duplicates(cls, inputs: tuple[str, ...]) -> tuple[str, ...]:
        if TURNS in inputs:
            raise ValueError(f"the name '{TURNS}' is reserved for the earlier turns of a case; rename the input")
        if repeated := [name for name in inputs if inputs.count(name) > 1]:
            raise ValueError(f"'{repeated[0]}' is declared twice")
        return inputs

    output: Output | Literal["tool_call"] | None = Field(default=None, description="tool_call: arguments of a function")
    inputs: tuple[InputName, ...] = Field(default=(DOCUMENT,), description="the inputs that placeholders insert")
    placeholders: Placeholders | None = Field(
        default=None, description="braces: {{input}}, the default; single: {input}; literal: no placeholders"
    )
    text_of: Literal["pdf"] | None = Field(default=None, description="pdf: send the text of each PDF")
    messages: tuple[PromptMessage, ...] | Literal["sections"] | None = Field(
        default=None, description="sections: ## System, ## User and ## Assistant begin messages; or a list of messages"
    )
    program: ProgramUnderTest | None = Field(default=None, description="a program called instead of a model")
    formerly: Annotated[tuple[ComponentName, ...], BeforeValidator(as_list)] = Field(
        default=(), description="former names of the component"
    )


def checked_prompt(text: str, front: FrontMatter, prompt: Prompt, path: Path) -> Prompt:
    """Return the prompt with the digest of its program, if any. Raise ComponentError if the prompt has a fault."""
    _refuse_unfilled(text, front, prompt, path)
    if front.program is not None:
        prompt = replace(prompt, program=_digest_of(front.program, prompt, path))
    for fault in prompt.faults():
        key = fault.partition(" ")[0]
        line = next((number for number, row in enumerate(text.split("\n"), 1) if row.startswith(key)), 1)
        raise ComponentError(f"{path}:{line}: {fault}")
    return prompt


def _digest_of(program: ProgramUnderTest, prompt: Prompt, path: Path) -> str:
    watched = program.watched_here(path.parent)
    if unmatched := program.unmatched(watched):
        raise ComponentError(f"{path}: no file matches {listed(unmatched)} of program.watch")
    body = canonical_json(program.http.body) if program.http else ""
    for match in _PLACEHOLDER.finditer(body):
        if match["braces"] and match["braces"] not in prompt.inputs:
            advice = nearest(match["braces"], prompt.inputs)
            raise ComponentError(f"{path}: {match[0]} in program.http.body is not an input of the prompt {advice}")
    return program.digest(watched)


def _refuse_unfilled(text: str, front: FrontMatter, prompt: Prompt, path: Path) -> None:
    """Raise ComponentError if text like a placeholder would be sent unfilled. Code in Markdown is not checked."""
    if prompt.placeholders != "braces":
        return
    unfilled = []
    for message in prompt.messages:
        filled = set(prompt.inputs)
        if message.role == "system" and DOCUMENT not in prompt.names_in("user"):
            filled.discard(DOCUMENT)  # the document goes into the user message
        first_line = text.count("\n", 0, max(0, text.find(message.text))) + 1
        for number, line in enumerate(without_code(message.text).split("\n"), first_line):
            for match in _PLACEHOLDER.finditer(line):
                name = match["dollar"] or match["single"]
                is_sent = match["braces"] not in filled if match["braces"] else name is None or name in prompt.inputs
                if is_sent and (name or match["braces"] or front.messages is None):
                    unfilled.append((number, match[0]))
    if unfilled:
        placeholders = listed([f"{text} (line {number})" for number, text in unfilled])
        raise ComponentError(
            f"{path}:{unfilled[0][0]}: these placeholders would be sent unfilled: {placeholders}; delete them (the "
            "document is added automatically), declare them (`inputs: [document, name]`), or set "
            "`placeholders: literal` in the front matter"
        )


def parse_prompt(text: str, path: Path, *, depth: int = YAML_DEPTH) -> tuple[FrontMatter, Prompt]:
    """Return the front matter and the prompt of a prompt.md. Raise ComponentError if the file is invalid."""
    values, body = parse_front_matter(text, path, ComponentError, depth=depth)
    if "version" not in values:
        raise ComponentError(f"no version in the front matter of {path}; add a line such as `version: 1.0.0`")
    if isinstance(number := values["version"], float):
        match = re.search(r"^version:\s*([\d.]+)", text, re.MULTILINE)
        version = match[1] if match else number
        raise ComponentError(f"YAML reads `version: {version}` in {path} as the number {number}; write {version}.0")
    front = validated(FrontMatter, {"name": path.parent.name, **values}, path, ComponentError)
    for name in front.model_extra or ():  # teams may add keys, but a near match of a known key is a typing error
        if near := difflib.get_close_matches(name.lower(), FrontMatter.model_fields, n=1, cutoff=_SAME_KEY):
            raise ComponentError(f"unknown key '{name}' in the front matter of {path} (did you mean '{near[0]}'?)")
    if front.program is not None:  # the body is documentation
        if front.messages is not None or front.placeholders is not None:
            raise ComponentError(f"{path}: `messages` and `placeholders` have no effect with `program`; delete them")
        if front.output == "tool_call":
            raise ComponentError(f"{path}: `output: tool_call` is not possible with `program`; delete it")
        inputs = tuple(sorted(front.inputs))
        shown = Prompt(messages=(), inputs=inputs).bare("").messages[1:]
        program = front.program.digest({})
        return front, Prompt(messages=shown, inputs=inputs, text_of=front.text_of, program=program)
    section = _PROMPT_SECTION.search(body)
    written = (section[1] if section and front.messages is None else body).strip()
    if isinstance(front.messages, tuple):
        if written:
            raise ComponentError(f"{path}: the body has no effect with `messages` in the front matter; delete the body")
        messages = tuple(message.message for message in front.messages)
    elif not written:
        raise ComponentError(f"{path} has no prompt: its body, or its '## Prompt' section, is empty")
    else:
        try:
            messages = (Message("system", (written,)),) if front.messages is None else messages_in(written)
        except ValueError as problem:
            raise ComponentError(f"{path}: {problem}") from None
    return front, Prompt(
        messages=messages,
        inputs=front.inputs,
        placeholders=front.placeholders or "braces",
        text_of=front.text_of,
        by_tool_call=front.output == "tool_call",
    )


def check_semver(text: str, path: Path) -> str:
    """Return the version `text` unchanged. Raise ComponentError if it is not semver or is too long."""
    if not semver.Version.is_valid(text):
        raise ComponentError(f"version '{text}' in {path} is not semver; write MAJOR.MINOR.PATCH, such as 1.2.0")
    if len(text) > MAX_VERSION:
        raise ComponentError(f"version '{text[:20]}…' in {path} has {len(text):,} characters; at most {MAX_VERSION}")
    return text
