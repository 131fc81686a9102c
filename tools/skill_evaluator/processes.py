"""Run programs with limits and an explicit environment.

This is not a sandbox: a program runs as the user and can read the user's files, but on Linux not the memory and
environment of this process. Processes that it starts in other sessions are not killed.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from concurrent.futures import Executor

EndReason = Literal["exited", "timeout", "output", "absent"]
_MAX_ERROR_BYTES = 16_000
_POLL_S = 0.05
_DUMPABLE = 4  # PR_SET_DUMPABLE of Linux's prctl
_key_variables: set[str] = set()


def hide_from_children(variables: Iterable[str]) -> None:
    """Exclude these environment variables from every later `child_environment`."""
    _key_variables.update(variables)


def child_environment() -> dict[str, str]:
    """Return the environment variables except those named `*_API_KEY` or passed to `hide_from_children`."""
    hidden = {name for name in os.environ if name in _key_variables or name.endswith("_API_KEY")}
    return {name: value for name, value in os.environ.items() if name not in hidden}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run in a folder, without a shell, and its limits.

    It gets the variables in `environment`, PATH, LC_CTYPE, HOME and TMPDIR. The last two name a temporary folder.
    """

    argv: Sequence[str]
    folder: Path
    seconds: float
    output_bytes: int  # the limit of stdout and of stderr
    memory_bytes: int | None = None  # the limit of each process (Linux's RLIMIT_DATA)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # can have keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """The result of a program that was run."""

    reason: EndReason  # `absent`: it could not be started; `timeout`: also if it was cancelled
    code: int | None = None  # exit code, negative for a signal; None if it could not be started
    stdout: bytes = b""  # cut at the limit
    stderr: bytes = b""  # only its end
    program: Program

    @property
    def problem(self) -> str | None:
        """A message about the failure, with the last line of stderr. None if the program exited with code 0."""
        if self.reason == "exited" and self.code == 0:
            return None
        last_line = self.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        reasons = {
            "exited": f"exit code {self.code}" if (self.code or 0) > 0 else f"killed by signal {-(self.code or 0)}",
            "timeout": f"not done after {self.program.seconds:g} s",
            "output": f"more than {self.program.output_bytes:,} bytes of output",
            "absent": "it cannot be started",
        }
        return f"{reasons[self.reason]}: {last_line}" if last_line else reasons[self.reason]


def run_process(program: Program, stdin: bytes = b"", cancelled: threading.Event | None = None) -> ProcessResult:
    """Run a program until it ends, exceeds a limit or `cancelled` is set. Kill its process group. Return the result."""
    if sys.platform == "linux":  # hides the memory and environment of this process, which may contain keys
        import ctypes

        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)
    home = tempfile.TemporaryDirectory(prefix="program-", ignore_cleanup_errors=True)
    with home, tempfile.TemporaryFile() as content, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        content.write(stdin)
        content.seek(0)
        fixed = {"PATH": os.environ.get("PATH", os.defpath), "LC_CTYPE": "C.UTF-8"}
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller decides which program is run
                program.argv,
                stdin=content,
                stdout=out,
                stderr=errors,
                env={**fixed, "HOME": home.name, "TMPDIR": home.name, **program.environment},
                cwd=program.folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:  # no such program or folder, or a NUL in the arguments
            text = str(problem).partition("] ")[2] or str(problem)  # the error number is omitted
            return ProcessResult(reason="absent", stderr=text.encode(), program=program)
        with process:
            try:
                reason = _wait(process, program, (out, errors), cancelled)
            finally:
                with suppress(OSError):  # raised if all processes of the group have ended
                    os.killpg(process.pid, signal.SIGKILL)
        size = errors.seek(0, os.SEEK_END)
        stdout = os.pread(out.fileno(), program.output_bytes, 0)
        stderr = os.pread(errors.fileno(), _MAX_ERROR_BYTES, max(0, size - _MAX_ERROR_BYTES))
        return ProcessResult(reason=reason, code=process.returncode, stdout=stdout, stderr=stderr, program=program)


def _wait(
    process: subprocess.Popen[bytes], program: Program, outputs: Sequence[IO[bytes]], cancelled: threading.Event | None
) -> EndReason:
    if program.memory_bytes is not None and sys.platform == "linux":
        with suppress(OSError, ValueError):  # raised if the program has ended or has a lower limit
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (program.memory_bytes, program.memory_bytes))
    deadline, has_ended = time.monotonic() + program.seconds, False
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            has_ended = True
        if max(os.fstat(file.fileno()).st_size for file in outputs) > program.output_bytes:
            return "output"
        if has_ended:
            return "exited"
        if time.monotonic() >= deadline or (cancelled is not None and cancelled.is_set()):
            return "timeout"


async def run_process_in(threads: "Executor", program: Program, stdin: bytes = b"") -> ProcessResult:
    """Run a program in a thread of `threads` and return the result. If the task is cancelled, end the program."""
    import asyncio

    cancelled = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(threads, run_process, program, stdin, cancelled)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait({running})
        raise
