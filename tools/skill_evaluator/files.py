"""Files in and out: YAML and JSON whose errors name the place, atomic replacement, locks, JSON Lines.

The only importer of yaml. A reader of a file that is written here sees the old content or the new, never a part.
"""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from skill_evaluator.errors import ConfigError, SkillEvaluatorError, StorageError
from skill_evaluator.text import finite_float, key_path, refuse_constant

if TYPE_CHECKING:  # a dry run takes no lock and need not wait for the library
    from filelock import FileLock

ModelT = TypeVar("ModelT", bound=BaseModel)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)(.*)", re.DOTALL)
_UMASK = os.umask(0o022)  # it can be read only by setting it
os.umask(_UMASK)
_YamlLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FrozenModel(BaseModel):
    """A part of a file that this program writes; keys of a later version are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class StrictModel(BaseModel):
    """A part of a file that people write; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def read_text(path: Path, error: type[SkillEvaluatorError] = ConfigError) -> str:
    """Read a UTF-8 text; raise `error` naming the file when it is absent, unreadable or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise error(f"{path} does not exist") from None
    except UnicodeDecodeError as problem:
        raise error(f"{path} is not UTF-8 text (byte {problem.start}); save it as UTF-8") from None
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from None


def read_bytes(path: Path, error: type[SkillEvaluatorError] = ConfigError) -> bytes:
    """Read a file as it is; raise `error` naming it when it is absent or unreadable."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from None


def parse_yaml(text: str, where: Path, error: type[SkillEvaluatorError] = ConfigError) -> Any:
    """Parse one YAML document; raise `error` with line and column when it is broken."""
    try:
        return yaml.load(text, Loader=_YamlLoader)  # noqa: S506 (a safe loader, the C one where it was built)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else str(where)
        raise error(f"{place}: broken YAML: {problem.problem}") from None
    except yaml.YAMLError as problem:
        raise error(f"{where}: broken YAML: {problem}") from None
    except (ValueError, AttributeError, RecursionError) as problem:  # a date such as 2024-02-30, a bad explicit tag
        raise error(f"{where}: broken YAML: {problem}") from None


def read_yaml(path: Path, error: type[SkillEvaluatorError] = ConfigError) -> Any:
    """Read one YAML document from a file."""
    return parse_yaml(read_text(path, error), path, error)


def parse_front_matter(
    text: str, where: Path, error: type[SkillEvaluatorError] = ConfigError
) -> tuple[dict[str, Any], str]:
    """Split a Markdown file into the YAML mapping at its head and the rest; raise `error` when there is none."""
    match = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    if match is None:
        raise error(f"{where}:1: no front matter; begin the file with ---, name: and version: lines, ---")
    values = parse_yaml("\n" + match[1], where, error)  # the line break stands for the first ---
    return values if isinstance(values, dict) else {}, match[2]


def parse_json(text: str, where: Path, error: type[SkillEvaluatorError] = ConfigError) -> Any:
    """Parse JSON (RFC 8259: no NaN or Infinity); raise `error` with line and column when it is broken."""
    try:
        return json.loads(text, parse_constant=refuse_constant, parse_float=finite_float)
    except json.JSONDecodeError as problem:
        raise error(f"{where}:{problem.lineno}:{problem.colno}: not JSON: {problem.msg}") from None
    except (ValueError, RecursionError) as problem:
        raise error(f"{where}: not JSON: {problem}") from None


def read_json(path: Path, error: type[SkillEvaluatorError] = ConfigError) -> Any:
    """Read one JSON value from a file."""
    return parse_json(read_text(path, error), path, error)


def validated(model: type[ModelT], value: Any, where: Path, error: type[SkillEvaluatorError] = ConfigError) -> ModelT:
    """Check a value read from `where` against a model; raise `error` with the key path of the first thing wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        raise error(f"{first_problem(problem)} in {where}") from None


def first_problem(problem: ValidationError) -> str:
    """Say the first thing that pydantic finds wrong, with its key path and without its vocabulary."""
    first = problem.errors(include_url=False)[0]
    context = first.get("ctx", {})
    message = {
        "model_type": "a mapping of keys to values is expected",
        "dict_type": "a mapping of keys to values is expected",
        "dataclass_type": "a mapping of keys to values is expected",
        "tuple_type": "a list is expected",
        "extra_forbidden": "unknown key",
        "unexpected_keyword_argument": "unknown key",
        "missing": "a required key is missing",
        "too_short": f"at least {_entries(context.get('min_length', 1))} expected",
        "too_long": f"at most {_entries(context.get('max_length', 1))} expected",
        "value_error": str(context.get("error", "")),
    }.get(first["type"]) or first["msg"]
    place = key_path(first["loc"])
    return f"{message}{f' at {place}' if place else ''}"


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
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def replace_text(path: Path, content: str) -> None:
    """Write a file so that it holds the old text or the new, whatever happens; make its folder if need be.

    Raises StorageError when the system refuses; the old file is then untouched.
    """
    replace_blocks(path, [content])


def replace_blocks(path: Path, blocks: Iterable[str]) -> None:
    """Write a text that comes in blocks as `replace_text` writes a whole one."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                for block in blocks:
                    handle.write(block.encode("utf-8", "backslashreplace"))
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
    """Hold a lock against every other process of this machine; raise StorageError when another keeps it."""
    from filelock import FileLock, Timeout

    with storing(lock_path):
        lock_path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_path)
        try:
            lock.acquire(timeout=seconds)
        except Timeout:
            raise StorageError(f"{lock_path} is held by another process since {seconds:.0f} s; try again") from None
    try:
        yield
    finally:
        lock.release()


def try_lock(lock_path: Path) -> "FileLock | None":
    """Take a lock if it is free, for the caller to release; None when another process has it."""
    from filelock import FileLock, Timeout

    with storing(lock_path):
        lock = FileLock(lock_path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return lock


class LinesWriter:
    """A JSON Lines file to append to; `append` hands a line to the system, so a killed process loses none.

    A torn last line of an earlier crash is closed off first, so that it cannot swallow the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
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
    path: Path, error: type[SkillEvaluatorError] = ConfigError, *, torn_lines: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield line number and value of each line of a JSON Lines file; raise `error` for a line that is not JSON.

    With `torn_lines` such a line is skipped: a crash in mid-write leaves one at the end, or in the middle once
    another writer has closed it off.
    """
    try:
        with path.open("rb") as handle:
            for number, line in enumerate(handle, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as problem:
                    if torn_lines:
                        continue
                    raise error(f"{path}:{number}: not JSON: {problem}") from None
                yield number, value
    except FileNotFoundError:
        raise error(f"{path} does not exist") from None
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from None
