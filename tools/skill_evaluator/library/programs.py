"""`program:` in the front matter of prompt.md: a program or an endpoint that is called instead of a model."""

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, PositiveFloat, field_validator, model_validator

from skill_evaluator.errors import ComponentError
from skill_evaluator.files import StrictModel, open_file
from skill_evaluator.identifiers import is_address
from skill_evaluator.library.config import Price
from skill_evaluator.repository import Repository, tolerating_git
from skill_evaluator.text import canonical_json, digest

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
            raise ValueError("a password in a file is not allowed; name an environment variable in headers")
        return url


class ProgramUnderTest(StrictModel):
    """A command or an endpoint that is called instead of a model."""

    run: Argv | None = Field(default=None, description="program and arguments; JSON on stdin, JSON on stdout")
    http: Endpoint | None = None
    env: tuple[Variable, ...] = Field(default=(), description="environment variables of the program, beside PATH")
    setup: Commands = Field(default=(), description="installation commands, run once before the first call")
    watch: tuple[str, ...] = Field(default=(), description="globs of the files whose change is a new version")
    price: Price | None = Field(default=None, description="price of the tokens that the program reports")
    timeout_s: PositiveFloat | None = Field(default=None, description="timeout of a call; default: settings.yaml")

    @field_validator("env")
    @classmethod
    def _reject_reserved_env(cls, env: tuple[str, ...]) -> tuple[str, ...]:
        if reserved := [name for name in env if name in _RESERVED]:
            raise ValueError(f"{reserved[0]} is set for every program; delete it from env")
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
            raise ValueError("exactly one of run and http is required")
        if self.run is not None and not self.watch:
            raise ValueError("run requires watch: the files whose change is a new version, as in [app.py, 'src/**']")
        if self.http is not None and self.env:
            raise ValueError("env has no effect with http; name the variables in headers")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables in env and headers."""
        return tuple(dict.fromkeys((*self.env, *(self.http.headers.values() if self.http else ()))))

    def digest(self, watched: Mapping[str, str]) -> str:
        """Return the digest of the declaration and the watched files (git blob id by path)."""
        declared = self.model_dump(mode="json", exclude_defaults=True, exclude={"timeout_s", "price"})
        return digest(canonical_json([declared, dict(watched)]))

    def watched(self, folder: str, files: Mapping[str, str]) -> dict[str, str]:
        """Return the `files` (git blob id by path) that a component in `folder` watches, by path relative to it."""
        globs = _any_of(posixpath.normpath(posixpath.join(folder, glob)) for glob in self.watch)
        paths = {posixpath.relpath(path, folder or "."): path for path in files if globs.fullmatch(path)}
        return {name: files[path] for name, path in sorted(paths.items()) if not _NOT_WATCHED.fullmatch(name)}

    def unmatched(self, watched: Iterable[str]) -> list[str]:
        """Return the globs that match none of the watched paths."""
        names = list(watched)
        globs = {glob: _any_of([posixpath.normpath(glob)]) for glob in self.watch}
        return [glob for glob, pattern in globs.items() if not any(pattern.fullmatch(name) for name in names)]

    def watched_here(self, folder: Path) -> dict[str, str]:
        """Return the git blob id of each watched file in the work tree by path; git-ignored files are excluded."""
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
        matching = self.watched("" if component_path == "." else component_path, files)
        blobs = {name: blob or _blob_of(folder / name) for name, blob in matching.items()}
        return {name: blob for name, blob in blobs.items() if blob}


def _any_of(globs: Iterable[str]) -> re.Pattern[str]:
    """Compile globs: `*` and `?` match within a name, `**` any number of folders, or at the end everything below."""
    patterns = []
    for glob in globs:
        *folders, last_part = re.sub(r"(\*\*/)+", "**/", glob).split("/")
        parts = ["(?:[^/]+/)*" if part == "**" else f"{_name(part)}/" for part in folders]
        patterns.append("".join([*parts, ".+" if last_part == "**" else _name(last_part)]))
    return re.compile("|".join(patterns) or "(?!)")


def _name(part: str) -> str:
    return re.sub(r"(\\\*)+", "[^/]*", re.escape(part)).replace(r"\?", "[^/]")


def _blob_of(path: Path) -> str | None:
    """Return the git blob id of a file or link, or None if it is neither."""
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
