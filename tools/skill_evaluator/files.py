"""Read texts, JSON and JSON Lines with errors that locate the problem; replace files atomically; lock files."""

import contextlib
import datetime
import json
import os
import re
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from filelock import FileLock, Timeout
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from skill_evaluator.errors import ConfigError, SkillEvaluatorError, StorageError
from skill_evaluator.text import finite_float, key_path, listed, nearest, refuse_constant, unix_lines

ModelT = TypeVar("ModelT", bound=BaseModel)
CheckedT = TypeVar("CheckedT")
_UMASK = os.umask(0o022)  # reading the umask requires setting it
os.umask(_UMASK)
_SYNC_S = 0.2  # seconds between fsync calls, which take milliseconds each
_MAX_JSON_LEVELS = 200  # outputs are limited to 64; validators fail at about 250, Python at about 1,000
_MAX_VALUE_CHARS = 60
SURROGATE = "a character is written as half of a surrogate pair, such as \\ud83d; write the character itself"
# people paste credentials into these keys by mistake, so their values are not shown
_SECRET = {"api_key_env": "a variable's name, not a key, is expected", "base_url": "an http(s) address is expected"}
_EXPECTED = {
    **dict.fromkeys(("model_type", "dict_type", "dataclass_type"), "a mapping of keys to values is expected"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list is expected"),
    "string_type": "a text is expected",
}
_PART = "<"  # prefix of a part's alias, so that error messages can omit it from a key path
_MAX_JSON_COMMAS = 4_000_000  # an empty array takes two bytes in a file and about 70 in memory


class FrozenModel(BaseModel):
    """A part of a file that this program writes; unknown keys, such as those of later versions, are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, allow_inf_nan=False)

    @classmethod
    def view(cls, source: object, **values: Any) -> Self:
        """Build the model from `values`. Copy each other field from the attribute of `source` with the same name.

        The attributes of a `NestingModel` include those of its parts.
        """
        parts = source._parts() if isinstance(source, NestingModel) else ()
        sources = [source, *(getattr(source, name) for name in parts)]
        names = [name for name in cls.model_fields if name not in values]
        copied = {name: getattr(each, name) for each in sources for name in names if hasattr(each, name)}
        return cls(**copied, **values)


def flat_part(name: str) -> Any:
    """Declare the field `name` of a `NestingModel` as a part, whose keys are at the top level of the JSON object."""
    return Field(validation_alias=f"{_PART}{name}>")


class NestingModel(FrozenModel, validate_by_name=True):
    """A model with nested parts (see `flat_part`), whose JSON object is flat.

    >>> class Cost(FrozenModel):
    ...     usd: float
    >>> class Run(NestingModel):
    ...     id: str
    ...     cost: Cost = flat_part("cost")
    >>> run = Run.model_validate({"id": "r1", "usd": 0.5})
    >>> run.cost, run.model_dump()
    (Cost(usd=0.5), {'id': 'r1', 'usd': 0.5})
    """

    @classmethod
    @cache
    def _parts(cls) -> dict[str, type[BaseModel]]:
        fields: dict[str, Any] = dict(cls.model_fields)
        return {name: one.annotation for name, one in fields.items() if str(one.validation_alias).startswith(_PART)}

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        nested = dict(value)
        for name, part in cls._parts().items():
            if not isinstance(value.get(name), part):
                keys = [key for key in part.model_fields if key in nested]
                nested[f"{_PART}{name}>"] = {key: nested.pop(key) for key in keys}
        return nested

    @model_serializer(mode="wrap")
    def _inline(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        parts = self._parts()
        items = (value.items() if name in parts else [(name, value)] for name, value in dump(self).items())
        return dict(chain.from_iterable(items))

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        properties, required = dict[str, Any](), list[str]()
        for key, value in schema["properties"].items():
            is_part = key.startswith(_PART)
            part = handler.resolve_ref_schema(value) if is_part else {"properties": {key: value}, "required": [key]}
            properties |= part["properties"]
            required += part.get("required", []) if key in schema.get("required", []) else []
        return {**schema, "properties": properties, "required": required}


class StrictModel(FrozenModel, extra="forbid"):
    """A part of a file that people write; an unknown key is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimit:
    """The maximum size of a file or line in bytes. `setting` is the key in settings.yaml that changes it, if any."""

    max_bytes: int
    setting: str | None = None

    def __str__(self) -> str:
        hint = f" ({self.setting} in settings.yaml)" if self.setting else ""
        return f"at most {self.max_bytes:,} are read{hint}"


_ANY_FILE = SizeLimit(max_bytes=64_000_000)


def read_text(path: Path, error: type[SkillEvaluatorError] = ConfigError, limit: SizeLimit = _ANY_FILE) -> str:
    """Return the text of a file. Raise `error` if it cannot be read or is not UTF-8. Line ends become `\\n`."""
    return decoded(read_bytes(path, error, limit), path, error)


def decoded(content: bytes, path: Path, error: type[SkillEvaluatorError] = ConfigError) -> str:
    """Decode the content of a file. Raise `error` if it is not UTF-8 or has a NUL character. Line ends become `\\n`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(f"{path} is not UTF-8 text (byte {problem.start}); save it as UTF-8") from None
    if "\0" in text:
        raise error(f"{path} is not text: character {text.index(chr(0)) + 1} is a NUL; save it as UTF-8")
    return unix_lines(text)


def read_bytes(path: Path, error: type[SkillEvaluatorError] = ConfigError, limit: SizeLimit = _ANY_FILE) -> bytes:
    """Return the bytes of a file. Raise `error` if it is missing, unreadable or larger than `limit`."""
    with open_file(path, error) as handle:
        size = os.fstat(handle.fileno()).st_size
        content = handle.read(min(size, limit.max_bytes) + 1)
        if len(content) > size:  # the file grows, or reports no size, as some system files do
            content += handle.read(limit.max_bytes + 1 - len(content))
        if len(content) > limit.max_bytes:
            raise error(f"{path} has {max(size, len(content)):,} bytes; {limit}")
        return content


@contextlib.contextmanager
def open_file(path: Path, error: type[SkillEvaluatorError]) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes. Raise `error` if it is missing, unreadable or not a regular file."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise error(f"cannot read {path}: it is a device, a pipe or a socket; put a file there")
        with path.open("rb") as handle:
            yield handle
    except FileNotFoundError:
        raise error(f"{path} does not exist") from None
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from None
    except ValueError:  # a NUL, or half a surrogate pair
        raise error(f"cannot read {path}: no file can have that name") from None


def parse_json(text: str, path: Path, error: type[SkillEvaluatorError] = ConfigError) -> Any:
    """Parse JSON. Raise `error` if it is invalid, too deep or too large, or has NaN, Infinity or duplicate keys."""
    try:
        return _load_json(text)
    except json.JSONDecodeError as problem:
        raise error(f"{path}:{problem.lineno}:{problem.colno}: not JSON: {problem.msg}") from None
    except ValueError as problem:
        raise error(f"{path}: not JSON: {problem}") from None


def read_json(path: Path, error: type[SkillEvaluatorError] = ConfigError, limit: SizeLimit = _ANY_FILE) -> Any:
    """Read one JSON value from a file. Raise `error` if the file cannot be read or `parse_json` rejects it."""
    return parse_json(read_text(path, error, limit), path, error)


def _load_json(text: str, *, finite: bool = True) -> Any:
    """Parse JSON. Raise ValueError if the text is invalid, nested too deeply or too large.

    If `finite`, raise ValueError also for NaN, infinite numbers and repeated keys.
    """
    too_deep = f"it is nested more than {_MAX_JSON_LEVELS} levels deep"
    if len(text) > _MAX_JSON_COMMAS and text.count(",") > _MAX_JSON_COMMAS:
        raise ValueError(f"it has more than {_MAX_JSON_COMMAS:,} commas; split the file")

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            key = Counter(name for name, _ in pairs).most_common(1)[0][0]
            pattern = re.compile(rf"{re.escape(json.dumps(key, ensure_ascii=False))}\s*:")
            lines = [str(number) for number, line in enumerate(text.split("\n"), 1) if pattern.search(line)]
            raise ValueError(
                f"one object repeats the key '{key:.100}' (lines with this key: {listed(lines) or 'unknown'})"
            )
        return members

    strict: dict[str, Any] = {}
    if finite:
        strict = {
            "parse_constant": refuse_constant,
            "parse_float": finite_float,
            "object_pairs_hook": refuse_duplicates,
        }
    try:
        value = json.loads(text, **strict)
    except RecursionError:
        raise ValueError(too_deep) from None
    if text.count("[") + text.count("{") > _MAX_JSON_LEVELS:  # fewer brackets cannot nest too deeply
        level: list[Any] = [[value]]
        for _ in range(_MAX_JSON_LEVELS + 1):
            members = (child for part in level for child in (part.values() if isinstance(part, dict) else part))
            level = [child for child in members if isinstance(child, dict | list)]
        if level:
            raise ValueError(too_deep)
    return value


def validated(model: type[ModelT], value: Any, path: Path, error: type[SkillEvaluatorError] = ConfigError) -> ModelT:
    """Build a model from a value of a file. If it is invalid, raise `error` with the key path of the first problem."""
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        raise error(first_problem(problem, model, path)) from None
    except UnicodeEncodeError:  # raised by an error message that contains the value
        raise error(f"{path}: {SURROGATE}") from None


def first_problem(problem: ValidationError, model: type[BaseModel] | None = None, path: Path | None = None) -> str:
    """Format the first problem of a ValidationError: message, key path, file (if `path` is given) and any advice."""
    details = problem.errors(include_url=False)[0]
    message, advice = problem_message(details, model, path)
    not_json_keys = ("constrained-float", "literal[", _PART)  # prefixes of union members and parts
    location = key_path(tuple(part for part in details["loc"] if not str(part).startswith(not_json_keys)))
    return " ".join(filter(None, (message, location and f"at {location}", f"in {path}" if path else "", advice)))


def problem_message(problem: ErrorDetails, model: type[BaseModel] | None, path: Path | None) -> tuple[str, str]:
    """Return two texts about a pydantic problem: a message without the location, and advice, which may be empty."""
    kind, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    *parents, name = problem["loc"] or ("",)
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        keys = _allowed_keys(model, parents) if model else []
        return "unknown key", nearest(str(name), keys) if keys else ""
    if kind == "missing" and model and model.model_config.get("extra") == "forbid" and isinstance(value, dict):
        unknown = [key for key in value if key not in _allowed_keys(model, parents)]
        return "a required key is missing", f"(unknown key '{unknown[0]}': did you mean '{name}'?)" if unknown else ""
    message = {
        "missing": "a required key is missing",
        "too_short": f"at least {_entries(context.get('min_length', 1))} expected",
        "too_long": f"at most {_entries(context.get('max_length', 1))} expected",
        "value_error": str(context.get("error", "")),
    }.get(kind)
    if message or name in _SECRET:
        return message or _SECRET[str(name)], ""
    value_text, advice = json.dumps(value, ensure_ascii=False, default=str)[:_MAX_VALUE_CHARS], ""
    if kind in ("string_type", "literal_error") and isinstance(value, bool | int | float | datetime.date):
        interpretation = "this as a date" if isinstance(value, datetime.date) else "this as a number"
        if isinstance(value, bool):
            interpretation = f"{'on and yes' if value else 'off and no'} as {value_text}"
        if path is not None and path.suffix in (".yaml", ".yml", ".md"):
            advice = f"(YAML reads {interpretation}; put it in quotes)"
    elif kind == "literal_error" and isinstance(value, str):
        names, escaped = re.split(", | or ", context["expected"].replace("'", "")), value_text.strip('"')
        return f"unknown value '{escaped}'", nearest(value, names)
    suffix = f", got {value_text}" if isinstance(value, str | int | float | datetime.date) else ""
    return f"{_EXPECTED.get(kind, problem['msg'])}{suffix}", advice


def _allowed_keys(model: type[BaseModel], location: Iterable[int | str]) -> list[str]:
    schema = model.model_json_schema()
    node: Any = schema
    for part in (*location, None):
        while "$ref" in node or "anyOf" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node["anyOf"][0]
        if part is not None:
            node = node.get("properties", {}).get(part) or node.get("items") or node.get("additionalProperties")
            node = node if isinstance(node, dict) else {}
    return list(node.get("properties", {}))


def _entries(count: int) -> str:
    return "one entry is" if count == 1 else f"{count} entries are"


def read_versioned(
    model: type[ModelT], path: Path, key: str, newest: int, error: type[SkillEvaluatorError] = ConfigError
) -> ModelT:
    """Read a JSON file as a model. Raise `error` if it is invalid, or if its version (at `key`) is above `newest`."""
    value = read_json(path, error)
    refuse_newer(value, path, key, newest, error)
    return validated(model, value, path, error)


def refuse_newer(value: Any, path: Path, key: str, newest: int, error: type[SkillEvaluatorError]) -> None:
    """Raise `error` if the version at `key` in the JSON value of a file is above `newest` or is not an integer."""
    version = value.get(key, newest) if isinstance(value, dict) else newest
    if not isinstance(version, int):
        raise error(f"{key} in {path} is {version!r}; a whole number is expected")
    if version > newest:
        raise error(f"{path} has {key} {version}, but this evaluator knows {newest}; upgrade skill-evaluator")


def json_text(value: Any) -> str:
    """Format a value as indented JSON with a newline at the end. Raise ValueError for NaN and Infinity."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def replace_text(path: Path, content: str | bytes) -> None:
    """Replace a file atomically and create its folder. If that fails, keep the old file and raise StorageError."""
    raw = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(raw)
                handle.flush()
                os.fsync(handle.fileno())
            Path(name).chmod(0o666 & ~_UMASK)  # temporary files are readable only by their owner
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Convert an OSError that the block raises to a StorageError that names `path`."""
    try:
        yield
    except OSError as problem:
        raise StorageError(f"cannot write {path}: {problem.strerror or problem}") from problem


@contextlib.contextmanager
def locked(lock_path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold a file lock in the block. Raise StorageError if it is not free within `seconds` or cannot be created."""
    with storing(lock_path):
        lock_path.parent.mkdir(parents=True, exist_ok=True)
    lock = try_lock(lock_path, seconds)
    if lock is None:
        raise StorageError(f"{lock_path} has been locked by another process for {seconds:.0f} s; try again")
    try:
        yield
    finally:
        lock.release()


def try_lock(lock_path: Path, seconds: float = 0.0) -> FileLock | None:
    """Acquire a file lock. Return None if it is not free in time. Raise StorageError if it cannot be created."""
    with storing(lock_path):
        lock = FileLock(lock_path)
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            return None
        return lock


class LinesWriter:
    """A JSON Lines file to append to. Lines are written without a buffer, so a killed process loses no line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced = time.monotonic()
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle: IO[bytes] = path.open("ab", buffering=0)
            with path.open("rb") as handle:
                handle.seek(max(0, path.stat().st_size - 1))
                if handle.read(1) not in (b"", b"\n"):  # the last line is incomplete
                    self._write(b"\n")

    def append(self, value: Any) -> None:
        """Append a value as one line of JSON. If that fails, leave no partial line and raise StorageError."""
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        with storing(self.path):
            self._write(line.encode("utf-8", "backslashreplace"))
            if time.monotonic() - self._synced >= _SYNC_S:
                os.fsync(self._handle.fileno())
                self._synced = time.monotonic()

    def _write(self, content: bytes) -> None:
        start = self._handle.seek(0, os.SEEK_END)  # after a truncation, tell() is beyond the end
        while content:
            try:
                content = content[self._handle.write(content) :]
            except OSError:
                self._handle.truncate(start)
                raise

    def close(self) -> None:
        """Sync the lines to disk and close the file; raise StorageError if that fails."""
        with storing(self.path):
            os.fsync(self._handle.fileno())
            self._handle.close()


def read_lines(
    path: Path, error: type[SkillEvaluatorError] = ConfigError, torn_lines: bool = False, limit: SizeLimit = _ANY_FILE
) -> Iterator[tuple[int, Any]]:
    """Yield the number (from 1) and the JSON value of each line that is not blank.

    Raise `error` for a line that is too long or not JSON. If `torn_lines`, accept NaN and skip lines that are not JSON.
    """
    with open_file(path, error) as handle:
        for number, line in enumerate(iter(lambda: handle.readline(limit.max_bytes + 1), b""), 1):
            if len(line) > limit.max_bytes:
                raise error(f"{path}:{number}: the line has more than {limit.max_bytes:,} bytes; {limit}")
            if not line.strip():
                continue
            try:
                value = _load_json(line.decode("utf-8-sig"), finite=not torn_lines)
            except ValueError as problem:
                if torn_lines:
                    continue
                message = problem.msg if isinstance(problem, json.JSONDecodeError) else problem
                raise error(f"{path}:{number}: not JSON: {message}") from None
            yield number, value


def read_checked(
    path: Path, check: Callable[[Any], CheckedT], error: type[SkillEvaluatorError] = ConfigError
) -> Iterator[tuple[int, CheckedT]]:
    """Yield the number and `check(value)` of each line of a JSON Lines file. Raise `error` for an invalid line."""
    for number, value in read_lines(path, error):
        try:
            yield number, check(value)
        except ValidationError as problem:
            raise error(f"{path}:{number}: {first_problem(problem)}") from None
