"""A small prompt library in a folder of its own, and the command line run in it.

As a user runs it, as a process; or called in this one, where a test is of what a command says: that starts at once.
"""

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    chdir,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from skill_evaluator import cli, display
from skill_evaluator.runner import journal as runs

from tests.support.chat_server import notice

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "evaluate_skill.py"
SKILL = "notice-extraction"
CASES = ("alpha", "beta", "gamma")
ANSWERS = "answers.jsonl"
_OF_THE_RUN = ("run_id", "timestamp", "latency_s", "digest")
_NOT_INHERITED = ("_KEY", "_TOKEN", "_BASE_URL", "PYTHONPATH")

_PROMPT = f"---\nname: {SKILL}\nversion: 1.0.0\n---\nExtract title and year.\n"
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"title": {"type": ["string", "null"]}, "year": {"type": ["integer", "null"]}},
    "required": ["title", "year"],
    "additionalProperties": False,
}
_SETTINGS = {
    "replicates": 2,
    "concurrency": 3,
    "timeout_s": 20,
    "retry": {"attempts": 2, "first_wait_s": 0.01, "max_wait_s": 0.02, "max_retry_after_s": 1},
}
REPLAY: Mapping[str, Any] = {"id": "recorded", "provider": "replay", "params": {"file": ANSWERS}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def refuses(self, words: str) -> bool:
        """Whether it ended as a user's mistake does: with code 2 and one line, of stderr, that holds these words."""
        return (self.code, self.out, self.err.count("\n")) == (2, "", 1) and words in self.err

    def to_go_on(self, *, capped: bool = False) -> list[str]:
        """The arguments of the command by which what stopped goes on, without its ceiling unless it is `capped`."""
        words = shlex.split(self.err.partition("to continue: skill-evaluator ")[2].splitlines()[0])
        limits = [at for at, word in enumerate(words) if word in ("--max-calls", "--max-cost") and not capped]
        return [word for at, word in enumerate(words) if not {at, at - 1} & set(limits)]


class Library:
    """Three cases, one component, one replayed model; whatever a test needs otherwise it writes over them."""

    def __init__(self, root: Path) -> None:
        self.stand_in(root)
        self.write(f"components/{SKILL}/prompt.md", _PROMPT)
        self.write(f"components/{SKILL}/schema.json", SCHEMA)
        for case_id in CASES:
            self.case(case_id)
        self.settings()
        self.models(REPLAY)
        self.record_answers({(case_id, index): notice(case_id) for case_id in CASES for index in range(2)})

    def stand_in(self, root: Path) -> None:
        self.root = root
        self.component = root / "components" / SKILL
        self.leaderboard = self.component / "leaderboard.json"
        self.results = self.component / "evals" / "results"

    def copy(self, root: Path) -> Self:
        """The same in another folder, to go on from here."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        copied = copy(self)
        copied.stand_in(root)
        return copied

    def write(self, path: str, content: Any) -> Path:
        """Write a file: bytes and text as they are, anything else as JSON (which YAML reads, too)."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
        file.write_bytes(json.dumps(content).encode() if raw is None else raw)
        return file

    def lines(self, path: str, *values: Any) -> Path:
        return self.write(path, "".join(json.dumps(value) + "\n" for value in values))

    def case(self, case_id: str, truth: Any = None) -> None:
        """Add a case (its document begins with its id), or give one another truth."""
        folder = f"fixtures/{SKILL}/cases/{case_id}"
        self.write(f"{folder}/document.md", f"{case_id} is the title of a notice of 2024.\n")
        self.write(f"{folder}/ground_truth.json", {"title": case_id, "year": 2024} if truth is None else truth)

    def settings(self, **changed: Any) -> None:
        """Write settings.yaml: quick to give up, and asking new versions alone, unless told otherwise."""
        policy = {"design": "recorded", **changed.pop("policy", {})}
        self.write(".evaluator/settings.yaml", {**_SETTINGS, **changed, "policy": policy})

    def models(self, *entries: Mapping[str, Any]) -> None:
        self.write(".evaluator/models.yaml", {"models": entries})

    def served_by(self, url: str, **fields: Any) -> None:
        self.models({"id": "served", "provider": "openai", "base_url": url, **fields})

    def record_answers(self, texts: Mapping[tuple[str, int], str], path: str = ANSWERS) -> None:
        calls = ({"case_id": case_id, "replicate": index, "text": text} for (case_id, index), text in texts.items())
        self.lines(path, *calls)

    def evaluate(self, *arguments: str, env: Mapping[str, str] | None = None, **popen: Any) -> Ended:
        """Run `evaluate_skill.py notice-extraction ...` to its end."""
        with self.start(*arguments, env=env, **popen) as process:
            return ended(process)

    def start(self, *arguments: str, env: Mapping[str, str] | None = None, **popen: Any) -> subprocess.Popen[str]:
        return self.command(str(SCRIPT), SKILL, *arguments, env=env, **popen)

    def skill_evaluator(self, *arguments: str) -> Ended:
        env = {"PYTHONPATH": str(SCRIPT.parent)}
        with self.command("-m", "skill_evaluator", *arguments, env=env) as process:
            return ended(process)

    def call(self, *arguments: str, env: Mapping[str, str] | None = None, columns: int | None = None) -> Ended:
        """Do as `skill-evaluator ...` does, in this process and this folder."""
        return call(self.root, *arguments, env=env, columns=columns)

    def evaluate_here(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        return self.call("evaluate", SKILL, *arguments, env=env)

    def command(self, *arguments: str, env: Mapping[str, str] | None = None, **popen: Any) -> subprocess.Popen[str]:
        """Begin a Python process in the library, with no key in its environment but those given."""
        return start(self.root, *arguments, env=env, **popen)

    def run_folder(self) -> Path:
        (folder,) = (path for path in self.results.iterdir() if path.is_dir())
        return folder

    def rows(self) -> list[dict[str, Any]]:
        """The leaderboard's rows, newest first; none when there is no leaderboard."""
        return read(self.leaderboard)["runs"] if self.leaderboard.exists() else []

    def records(self) -> list[dict[str, Any]]:
        return [read(self.component / "evals" / "records" / f"{row['run_id']}.json") for row in self.rows()]

    def tree(self) -> dict[str, bytes | None]:
        """Every file with its content and every folder with None, by path."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in self.root.rglob("*")
        }


def _environment(added: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.endswith(_NOT_INHERITED)}
    return {**inherited, "NO_PROXY": "127.0.0.1", **(added or {})}


@contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Stdout and stderr as pipes have them: bytes in UTF-8."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err


def _read(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextmanager
def _without_fork() -> Iterator[None]:
    """Score in this process, as on a system that cannot fork: this one is large, and a fork of it takes long."""
    fork = os.fork
    del os.fork
    try:
        yield
    finally:
        os.fork = fork


def call(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, columns: int | None = None) -> Ended:
    """Do as `skill-evaluator ...` does, in this process; its stdout may be a terminal so many columns wide."""
    code = 0
    environment = _environment(env) | ({"COLUMNS": str(columns), "TERM": "xterm"} if columns else {})
    quick = patch.object(display, "_SLOW_S", 3_600)  # a slow machine prints no progress
    inside = (chdir(folder), patch.dict(os.environ, environment, clear=True), _without_fork(), quick)
    with ExitStack() as entered, _captured() as (out, err):
        for each in inside:
            entered.enter_context(each)
        out.isatty = lambda: columns is not None  # type: ignore[method-assign]
        try:
            cli.main([*arguments])
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
    return Ended(code=code, out=_read(out), err=_read(err))


def invoked(invocation: str) -> AbstractContextManager[object]:
    """Let the runs that begin inside have ids that begin with this."""
    return patch.object(runs, "new_invocation", lambda _: invocation)


def start(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, **popen: Any) -> subprocess.Popen[str]:
    """Begin a Python process in a folder, with no key in its environment but those given."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=_environment(env),
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen},
    )


def ended(process: subprocess.Popen[str], seconds: float = 240.0) -> Ended:
    """Wait for a process; one that takes too long is killed, and the test fails."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ended(code=process.returncode, out=out or "", err=err or "")


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def journal(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a run's journal; none before it exists."""
    path = folder / "replicates.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the valid lines of a journal; a kill may leave a torn line, which the next run ends."""
    values = []
    for line in path.read_bytes().splitlines(keepends=True):
        with suppress(ValueError):
            values += [json.loads(line)] if line.endswith(b"\n") else []
    return values


def only_journal(library: Library) -> list[dict[str, Any]]:
    """The journal of the one run folder; none while there is no folder."""
    folders = list(library.results.iterdir()) if library.results.is_dir() else []
    return journal(folders[0]) if folders else []


def comparable(record: Mapping[str, Any], ignoring: Iterable[str] = ()) -> dict[str, Any]:
    """A record without what differs between any two runs."""
    calls = {name: value for name, value in record.get("calls", {}).items() if name != "latency_s"}
    cases = [{**case, "amounts": {**case.get("amounts", {}), "latency_s": None}} for case in record["per_case"]]
    same = {**record, "calls": calls, "per_case": cases}
    return {name: value for name, value in same.items() if name not in (*_OF_THE_RUN, *ignoring)}


def wait_until(reached: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.002)
