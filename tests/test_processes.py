"""Programs with limits: input, output and environment, and the end of all processes of the group."""

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.processes import ProcessResult, Program, run_process, run_process_in

from tests.support.library import wait_until

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def run(code: str, folder: Path, *, stdin: bytes = b"", mark: str = "none", **limits: Any) -> ProcessResult:
    """Run Python code, which has the mark of its test in the environment."""
    every = {"seconds": 20.0, "output_bytes": 100_000, **limits}
    argv = [sys.executable, "-c", textwrap.dedent(code)]
    program = Program(argv=argv, folder=folder, environment={"MARK": mark}, **every)
    return run_process(program, stdin)


def alive(mark: str) -> list[str]:
    """Return the processes of this machine that have a mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


def test_program_gets_stdin_and_returns_output_and_exit_code(tmp_path: Path) -> None:
    many = "grüß".encode() * 100_000
    ended = run("import sys; sys.stdout.write(sys.stdin.read()[::-1])", tmp_path, stdin=many, output_bytes=600_000)
    assert (ended.reason, ended.code, ended.stdout) == ("exited", 0, "ßürg".encode() * 100_000)
    ended = run("import sys; print(sys.stdin.read().upper()); print('why', file=sys.stderr); sys.exit(7)", tmp_path)
    assert (ended.reason, ended.code, ended.stdout, ended.stderr) == ("exited", 7, b"\n", b"why\n")
    assert ended.problem == "exit code 7: why"
    ended = run("import os; print(os.getcwd())", tmp_path)
    assert (ended.stdout.decode().strip(), ended.problem) == (str(tmp_path), None)


def test_program_gets_only_its_environment_and_a_temporary_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "secret")
    ended = run("import os; open('x', 'w'); print(*(f'{k}={v}' for k, v in os.environ.items()), sep='\\n')", tmp_path)
    environment = dict(line.split("=", 1) for line in ended.stdout.decode().splitlines())
    assert environment.keys() == {"MARK", "PATH", "HOME", "TMPDIR", "LC_CTYPE"}
    assert environment["HOME"] == environment["TMPDIR"]
    assert not Path(environment["HOME"]).exists()


@pytest.mark.parametrize(
    ("code", "limits", "why"),
    [
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", {"seconds": 0.5}, "timeout"),
        ("import sys\nwhile True: sys.stdout.write('x' * 9999)", {}, "output"),
        ("import os, time\nif os.fork() == 0: os.fork(); time.sleep(60)", {}, "exited"),
        ("import sys, time; sys.stdin.close(); time.sleep(0.2)", {"stdin": b"x" * 1_000_000}, "exited"),
    ],
    ids=["deaf", "floods", "daemon", "closes stdin"],
)
@LINUX
def test_process_group_is_killed_when_a_hostile_program_ends(
    tmp_path: Path, request: pytest.FixtureRequest, code: str, limits: dict[str, Any], why: str
) -> None:
    mark = f"{request.node.callspec.id}-{os.getpid()}"
    began = time.monotonic()
    ended = run(code, tmp_path, mark=mark, **limits)
    assert ended.reason == why, ended
    assert len(ended.stdout) <= 100_000
    assert len(ended.stderr) <= 16_000
    wait_until(lambda: alive(mark) == [], 10)  # a killed process takes a moment to end
    assert time.monotonic() - began < 30


@LINUX
def test_memory_is_limited(tmp_path: Path) -> None:
    ended = run("x = bytearray(500_000_000); print('held')", tmp_path, memory_bytes=200_000_000)
    assert (ended.code, ended.stdout, ended.problem) == (1, b"", "exit code 1: MemoryError")


def test_program_that_cannot_be_started_has_a_reason(tmp_path: Path) -> None:
    for argv, folder, reason in [
        (["no-such-program"], tmp_path, "No such file"),
        ([str(tmp_path)], tmp_path, "Permission denied"),
        (["a\0b"], tmp_path, "null byte"),
        (["true"], tmp_path / "none", "No such file"),
    ]:
        ended = run_process(Program(argv=argv, folder=folder, seconds=5, output_bytes=10))
        assert ended.reason == "absent"
        assert reason in str(ended.problem)


@LINUX
def test_cancelled_task_ends_all_processes(tmp_path: Path) -> None:
    mark = f"cancelled-{os.getpid()}"

    async def cancel() -> None:
        argv = [sys.executable, "-c", "import os, time\nos.fork(); time.sleep(60)"]
        with ThreadPoolExecutor() as threads:
            program = Program(argv=argv, folder=tmp_path, seconds=60, output_bytes=10, environment={"MARK": mark})
            task = asyncio.create_task(run_process_in(threads, program))
            while len(alive(mark)) < 2:
                await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()

    asyncio.run(asyncio.wait_for(cancel(), 20))
    assert alive(mark) == []


@LINUX
def test_program_cannot_read_the_evaluators_memory() -> None:
    code = """
    import ctypes, pathlib
    from skill_evaluator.processes import Program, run_process
    print(ctypes.CDLL(None).prctl(3))  # PR_GET_DUMPABLE: 1, any process of the user reads /proc/<pid>/environ
    run_process(Program(argv=["true"], folder=pathlib.Path("/"), seconds=20, output_bytes=10))
    print(ctypes.CDLL(None).prctl(3))
    """
    argv = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split() == ["1", "0"]
