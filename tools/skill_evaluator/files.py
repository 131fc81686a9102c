"""Files in and out: texts and JSON whose errors name the place, atomic replacement, locks, JSON Lines.

What is read is a file of limited size and depth. What is written here is there as a whole, or not at all.
"""

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
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from skill_evaluator.errors import ConfigError, SkillEvaluatorError, StorageError
from skill_evaluator.text import finite_float, key_path, listed, nearest, refuse_constant

if TYPE_CHECKING:  # a dry run takes no lock and need not wait for the library
    from filelock import FileLock

ModelT = TypeVar("ModelT", bound=BaseModel)
CheckedT = TypeVar("CheckedT")
_UMASK = os.umask(0o022)  # it can be read only by setting it
os.umask(_UMASK)
_SYNC_S = 0.2  # between two waits for the disk; one takes milliseconds
_JSON_LEVELS = 200  # an answer has 64 at most; at some 250 a validator gives up, at some 1,000 Python does
_MAX_SHOWN = 60  # characters of a wrong value
_SECRET = ("api_key_env", "base_url")  # people paste keys and passwords there
_EXPECTED = {
    **dict.fromkeys(("model_type", "dict_type", "dataclass_type"), "a mapping of keys to values is expected"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list is expected"),
    "string_type": "a text is expected",
}
_JSON_COMMAS = 4_000_000  # an array of nothing takes two bytes in a file and some 70 in memory


class FrozenModel(BaseModel):
    """A part of a file that this program writes; keys of a later version are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, allow_inf_nan=False)

    @classmethod
    def view(cls, source: object, **others: Any) -> Self:
        """Return what a value has of the fields under the same names; `others` are the rest."""
        names = (name for name in cls.model_fields if name not in others and hasattr(source, name))
        return cls(**{name: getattr(source, name) for name in names}, **others)


class StrictModel(FrozenModel, extra="forbid"):
    """A part of a file that people write; an unknown key is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimit:
    """The most bytes that are read of a file, or of a line; `setting` is the key of settings.yaml that says so."""

    most: int
    setting: str | None = None

    def __str__(self) -> str:
        where = f" ({self.setting} in settings.yaml)" if self.setting else ""
        return f"at most {self.most:,} are read{where}"


_ANY_FILE = SizeLimit(most=64_000_000)


def read_text(path: Path, error: type[SkillEvaluatorError] = ConfigError, limit: SizeLimit = _ANY_FILE) -> str:
    """Read a UTF-8 text; raise `error` naming the file when it is absent, unreadable, too large or no such text."""
    return decoded(read_bytes(path, error, limit), path, error)


def decoded(content: bytes, path: Path, error: type[SkillEvaluatorError] = ConfigError) -> str:
    """Return the text of a file's content; raise `error` naming the file when it is no UTF-8 text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(f"{path} is not UTF-8 text (byte {problem.start}); save it as UTF-8") from None
    if "\0" in text:
        raise error(f"{path} is no text: character {text.index(chr(0)) + 1} is a NUL; save it as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_bytes(path: Path, error: type[SkillEvaluatorError] = ConfigError, limit: SizeLimit = _ANY_FILE) -> bytes:
    """Read a file as it is; raise `error` naming it when it is absent, unreadable or too large."""
    with open_file(path, error) as handle:
        size = os.fstat(handle.fileno()).st_size
        content = handle.read(min(size, limit.most) + 1)
        if len(content) > size:  # it grows, or has no size, as some files of the system
            content += handle.read(limit.most + 1 - len(content))
        if len(content) > limit.most:
            raise error(f"{path} has {max(size, len(content)):,} bytes; {limit}")
    return content


@contextlib.contextmanager
def open_file(path: Path, error: type[SkillEvaluatorError]) -> Iterator[IO[bytes]]:
    """Open a file to read; raise `error` for a device, a pipe or the like, which may never end."""
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


def parse_json(text: str, where: Path, error: type[SkillEvaluatorError] = ConfigError) -> Any:
    """Parse JSON (RFC 8259: no NaN or Infinity); raise `error` with line and column when it is broken."""
    try:
        return _load_json(text)
    except json.JSONDecodeError as problem:
        raise error(f"{where}:{problem.lineno}:{problem.colno}: not JSON: {problem.msg}") from None
    except ValueError as problem:
        raise error(f"{where}: not JSON: {problem}") from None


def read_json(path: Path, error: type[SkillEvaluatorError] = ConfigError, limit: SizeLimit = _ANY_FILE) -> Any:
    """Read one JSON value from a file."""
    return parse_json(read_text(path, error, limit), path, error)


def _load_json(text: str, *, finite: bool = True) -> Any:
    """Parse JSON; raise ValueError when it is broken, or nested so deeply that a walk through it could fail."""
    too_deep = f"it is nested more than {_JSON_LEVELS} levels deep"
    if len(text) > _JSON_COMMAS and text.count(",") > _JSON_COMMAS:
        raise ValueError(f"it has more than {_JSON_COMMAS:,} values, or commas in its texts")
    if finite and "\\" not in text:
        with contextlib.suppress(ValueError):  # what is wrong is found below, with its place
            (value,) = from_json(f"[{text}]", allow_inf_nan=False)  # the parser has one level more than is read
            written = to_json(value)  # has a colon less for a key that was there twice, and 1e999 as Infinity
            if written.count(b":") == text.count(":") and b"Infinity" not in written:
                return value

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            key = Counter(name for name, _ in pairs).most_common(1)[0][0]
            places = re.finditer(rf"{re.escape(json.dumps(key, ensure_ascii=False))}\s*:", text)
            lines, line, last = [], 1, 0
            for place in places:  # the text is read once, however many there are
                line, last = line + text.count("\n", last, place.start()), place.start()
                lines.append(str(line))
            raise ValueError(f"one object has the key '{key:.100}' twice (it is on line {listed(lines) or '?'})")
        return members

    strict: dict[str, Any] = {}
    if finite:
        strict = {"parse_constant": refuse_constant, "parse_float": finite_float, "object_pairs_hook": once}
    try:
        value = json.loads(text, **strict)
    except RecursionError:
        raise ValueError(too_deep) from None
    if text.count("[") + text.count("{") > _JSON_LEVELS:  # else do not look
        level: list[Any] = [[value]]
        for _ in range(_JSON_LEVELS + 1):
            members = (child for part in level for child in (part.values() if isinstance(part, dict) else part))
            level = [child for child in members if isinstance(child, dict | list)]
        if level:
            raise ValueError(too_deep)
    return value


def validated(model: type[ModelT], value: Any, where: Path, error: type[SkillEvaluatorError] = ConfigError) -> ModelT:
    """Check a value read from `where` against a model; raise `error` with the key path of the first thing wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        raise error(first_problem(problem, model, where)) from None
    except UnicodeEncodeError:  # of a message about it
        raise error(f"half a surrogate pair, which is no text, in {where}") from None


def first_problem(problem: ValidationError, model: type[BaseModel] | None = None, where: Path | None = None) -> str:
    """Say the first thing that pydantic finds wrong, with its key path, its file and the nearest known name."""
    first = problem.errors(include_url=False)[0]
    message, advice = problem_message(first, model, where)
    kinds = ("constrained-float", "literal[")  # pydantic's marks of the members of a union, which are no keys
    place = key_path(tuple(part for part in first["loc"] if not str(part).startswith(kinds)))
    return " ".join(filter(None, (message, place and f"at {place}", f"in {where}" if where else "", advice)))


def problem_message(problem: ErrorDetails, model: type[BaseModel] | None, where: Path | None) -> tuple[str, str]:
    """Return one thing that pydantic finds wrong, without its place, and what to do about it, or an empty text.

    `model` has the known keys, and `where` says whether the value was written in YAML.
    """
    kind, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    *around, name = problem["loc"] or ("",)
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        keys = _keys_at(model, around) if model else []
        return "unknown key", nearest(str(name), keys) if keys else ""
    message = {
        "missing": "a required key is missing",
        "too_short": f"at least {_entries(context.get('min_length', 1))} expected",
        "too_long": f"at most {_entries(context.get('max_length', 1))} expected",
        "value_error": str(context.get("error", "")),
    }.get(kind)
    if message or name in _SECRET:
        return message or problem["msg"], ""
    shown, advice = json.dumps(value, ensure_ascii=False, default=str)[:_MAX_SHOWN], ""
    if kind in ("string_type", "literal_error") and isinstance(value, bool | int | float | datetime.date):
        reads = "this as a date" if isinstance(value, datetime.date) else "this as a number"
        reads = f"{'on and yes' if value else 'off and no'} as {shown}" if isinstance(value, bool) else reads
        is_yaml = where is not None and where.suffix in (".yaml", ".yml", ".md")
        advice = f"(YAML reads {reads}; put it in quotes)" if is_yaml else ""
    elif kind == "literal_error" and isinstance(value, str):
        names, escaped = re.split(", | or ", context["expected"].replace("'", "")), shown.strip('"')
        return f"unknown value '{escaped}'", nearest(value, names)
    got = f", got {shown}" if isinstance(value, str | int | float | datetime.date) else ""
    return f"{_EXPECTED.get(kind, problem['msg'])}{got}", advice


def _keys_at(model: type[BaseModel], place: Iterable[int | str]) -> list[str]:
    """Return the keys that a mapping at a place may have, by the JSON Schema of the model; none if it does not say."""
    schema = model.model_json_schema()
    node: Any = schema
    for part in (*place, None):
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
    """Read a JSON file with a version under `key`; raise `error` when it is broken or of a newer version."""
    value = read_json(path, error)
    version = value.get(key) if isinstance(value, dict) else None
    if isinstance(version, int) and version > newest:
        raise error(f"{path} has {key} {version}, this evaluator knows {newest}; upgrade it")
    return validated(model, value, path, error)


def json_text(value: Any) -> str:
    """Format a value as the JSON of this project's files: two spaces, UTF-8, a newline at the end."""
    return "".join(json_blocks(value))


def json_blocks(value: Any) -> Iterator[str]:
    """Yield `json_text` in blocks, since to put them together takes far more memory than the text."""
    yield from json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False).iterencode(value)
    yield "\n"


def replace_text(path: Path, content: str) -> None:
    """Write a file, and its folder if need be; raise StorageError, and leave the old file, when the system refuses."""
    replace_blocks(path, [content])


def replace_blocks(path: Path, blocks: Iterable[str | bytes]) -> None:
    """Write a text that comes in blocks as `replace_text` writes a whole one."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                for block in blocks:
                    handle.write(block.encode("utf-8", "backslashreplace") if isinstance(block, str) else block)
                handle.flush()
                os.fsync(handle.fileno())
            Path(name).chmod(0o666 & ~_UMASK)  # a temporary file is its owner's alone
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write `path` into a StorageError that names it."""
    try:
        yield
    except OSError as problem:
        raise StorageError(f"cannot write {path}: {problem.strerror or problem}") from problem


@contextlib.contextmanager
def locked(lock_path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold a lock against every other process of this machine; raise StorageError while a different one keeps it."""
    with storing(lock_path):
        lock_path.parent.mkdir(parents=True, exist_ok=True)
    lock = try_lock(lock_path, seconds)
    if lock is None:
        raise StorageError(f"{lock_path} has been locked by another process for {seconds:.0f} s; try again")
    try:
        yield
    finally:
        lock.release()


def try_lock(lock_path: Path, seconds: float = 0.0) -> "FileLock | None":
    """Take a lock if it is free by then, for the caller to release; None while a different process has it."""
    from filelock import FileLock, Timeout

    with storing(lock_path):
        lock = FileLock(lock_path)
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            return None
        return lock


class LinesWriter:
    """A JSON Lines file to append to; `append` hands a line to the system, so a killed process loses none.

    Now and then it brings them to the disk itself, so that a machine without power loses hardly any.
    A torn last line of an earlier crash is closed off first, so that it cannot swallow the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced = time.monotonic()
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle: IO[bytes] = path.open("ab", buffering=0)
            with path.open("rb") as handle:
                handle.seek(max(0, path.stat().st_size - 1))
                if handle.read(1) not in (b"", b"\n"):  # the last line was torn
                    self._write(b"\n")

    def append(self, value: Any) -> None:
        """Write one value as a line; raise StorageError when refused, with no part of the line left behind."""
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        with storing(self.path):
            self._write(line.encode("utf-8", "backslashreplace"))
            if time.monotonic() - self._synced >= _SYNC_S:
                os.fsync(self._handle.fileno())
                self._synced = time.monotonic()

    def _write(self, content: bytes) -> None:
        start = self._handle.seek(0, os.SEEK_END)  # where an earlier line was taken back, tell() is beyond the end
        while content:
            try:
                content = content[self._handle.write(content) :]
            except OSError:
                self._handle.truncate(start)
                raise

    def close(self) -> None:
        """Bring the lines to the disk itself and close; raise StorageError."""
        with storing(self.path):
            os.fsync(self._handle.fileno())
            self._handle.close()


def read_lines(
    path: Path, error: type[SkillEvaluatorError] = ConfigError, torn_lines: bool = False, limit: SizeLimit = _ANY_FILE
) -> Iterator[tuple[int, Any]]:
    """Yield line number and value of each line of a JSON Lines file, as `read_placed_lines`."""
    return ((number, value) for number, _, value in read_placed_lines(path, error, torn_lines=torn_lines, limit=limit))


def read_checked(
    path: Path, check: Callable[[Any], CheckedT], error: type[SkillEvaluatorError] = ConfigError
) -> Iterator[tuple[int, CheckedT]]:
    """Yield the number of each line and what `check` makes of it, which may raise ValidationError.

    Raise `error` with file, line and key path.
    """
    for number, value in read_lines(path, error):
        try:
            yield number, check(value)
        except ValidationError as problem:
            raise error(f"{path}:{number}: {first_problem(problem)}") from None


def read_placed_lines(
    path: Path, error: type[SkillEvaluatorError], *, torn_lines: bool = False, limit: SizeLimit = _ANY_FILE
) -> Iterator[tuple[int, int, Any]]:
    """Yield number, place in bytes and value of each line; raise `error` for one not JSON, or over the limit.

    With `torn_lines` a line not JSON is skipped: a crash in mid-write leaves one at the end, or in the middle once
    another writer has closed it off. NaN is then left to the caller.
    """
    place = 0
    with open_file(path, error) as handle:
        for number, line in enumerate(iter(lambda: handle.readline(limit.most + 1), b""), 1):
            begin, place = place, place + len(line)
            if len(line) > limit.most:
                raise error(f"{path}:{number}: the line has more than {limit.most:,} bytes; {limit}")
            if not line.strip():
                continue
            try:
                value = _load_json(line.decode("utf-8-sig"), finite=not torn_lines)
            except ValueError as problem:
                if torn_lines:
                    continue
                raise error(f"{path}:{number}: not JSON: {problem}") from None
            yield number, begin, value
