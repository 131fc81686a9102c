"""A program run with limits: bytes in, bytes out, an environment of what is passed alone, and nothing left running.

`run_process` starts this file as a supervisor, which starts the program in a session of its own. On Linux whatever the
program leaves behind, also in other sessions, becomes a child of the supervisor, which ends all of it; on macOS that
holds for the program's process group, and there is no limit of memory or processes. The supervisor ends everything as
soon as its channel closes, so that nothing outlives a killed evaluator either. It is no sandbox: a program runs as the
user, and reads what the user can read, but for this process, whose environment may have had keys (Linux).
"""

import os
import resource
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from concurrent.futures import Executor

Why = Literal["exited", "timeout", "output", "processes", "absent", "lost"]
_ERROR_BYTES = 16_000  # of the end of what a program writes to stderr
_LOOK_S = 0.1  # between two counts of a program's processes
_SUBREAPER, _DEATH_SIGNAL, _DUMPABLE = 36, 1, 4  # options of Linux's prctl
_key_variables: set[str] = set()


def hide_from_children(variables: Iterable[str]) -> None:
    """Leave environment variables, such as keys, out of every `child_environment` from now on."""
    _key_variables.update(variables)


def child_environment() -> dict[str, str]:
    """Return the environment for a child process such as git: that of this process without the keys of models."""
    hidden = {name for name in os.environ if name in _key_variables or name.endswith("_API_KEY")}
    return {name: value for name, value in os.environ.items() if name not in hidden}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """What one run of a program may take: seconds, bytes of stdout, processes at once, and memory of each of these.

    `memory_bytes` is what a process allocates (Linux's RLIMIT_DATA); None is no limit.
    """

    seconds: float
    output_bytes: int
    processes: int = 64
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run in a folder, without a shell.

    Its environment is `environment` and PATH, LC_CTYPE for UTF-8, and HOME and TMPDIR: a fresh folder that is deleted
    afterwards.
    """

    argv: Sequence[str]
    folder: Path
    limits: ProcessLimits
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended: by itself with an exit code (of a signal: its negative number), or why it was ended.

    `absent`: it could not be started. `lost`: something killed its supervisor. `stderr` is the end of what it wrote
    there. Output that is larger than its limit is cut.
    """

    why: Why
    code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    limits: ProcessLimits

    @property
    def problem(self) -> str | None:
        """Say in words what went wrong; None of an exit code 0."""
        if self.why == "exited" and self.code == 0:
            return None
        last = self.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        reasons = {
            "exited": f"exit code {self.code}" if (self.code or 0) > 0 else f"killed by signal {-(self.code or 0)}",
            "timeout": f"not done after {self.limits.seconds:g} s",
            "output": f"more than {self.limits.output_bytes:,} bytes on stdout",
            "processes": f"more than {self.limits.processes:,} processes at once",
            "absent": "it cannot be started",
            "lost": "its supervisor was killed",
        }
        return f"{reasons[self.why]}: {last}" if last else reasons[self.why]


def run_process(program: Program, stdin: bytes = b"") -> Ended:
    """Run a program and return how it ended, when no process of it is left."""
    return _run(socket.socketpair(), program, stdin)


async def run_process_in(threads: "Executor", program: Program, stdin: bytes = b"") -> Ended:
    """Run a program as `run_process` does, waiting in one of these threads; cancelling ends the program."""
    import asyncio

    pair = socket.socketpair()
    running = asyncio.get_running_loop().run_in_executor(threads, _run, pair, program, stdin)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        with suppress(OSError):  # it has ended by itself
            pair[0].shutdown(socket.SHUT_WR)
        await asyncio.wait({running})
        raise


def _run(pair: tuple[socket.socket, socket.socket], program: Program, stdin: bytes) -> Ended:
    """Run a program whose supervisor has the second end of a channel, and ends the program when the first is closed."""
    channel, theirs = pair
    _control_process(_DUMPABLE, 0)  # so that the program reads neither memory nor environment of this process
    home = tempfile.TemporaryDirectory(prefix="program-", ignore_cleanup_errors=True)
    with channel, theirs, home, tempfile.TemporaryFile() as content:
        content.write(stdin)
        content.seek(0)
        bounds = (theirs.fileno(), program.limits.processes, program.limits.memory_bytes or 0)
        fixed = {"PATH": os.environ.get("PATH", os.defpath), "LC_CTYPE": "C.UTF-8"}
        try:
            supervisor = subprocess.Popen(  # noqa: S603 - what is run is what was passed
                [sys.executable, "-I", "-S", __file__, *map(str, bounds), *program.argv],
                stdin=content,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**fixed, "HOME": home.name, "TMPDIR": home.name, **program.environment},
                cwd=program.folder,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:  # no such folder, a NUL among the arguments
            return Ended(why="absent", stderr=str(problem).encode(), limits=program.limits)
        theirs.close()
        with supervisor:
            try:
                return _outcome(supervisor, channel, program.limits)
            finally:
                channel.close()  # which ends a program that still runs


def _outcome(supervisor: subprocess.Popen[bytes], channel: socket.socket, limits: ProcessLimits) -> Ended:
    """Read what a program writes, and have its supervisor end it at a limit; the channel ends with the supervisor."""
    pipes = [pipe.fileno() for pipe in (supervisor.stdout, supervisor.stderr, channel) if pipe]
    stdout, stderr, message = (bytearray(), bytearray(), bytearray())
    contents = dict(zip(pipes, (stdout, stderr, message), strict=True))
    ends, why = time.monotonic() + limits.seconds, ""
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(max(ends - time.monotonic(), 0)):
                block = os.read(key.fd, 1 << 16)
                contents[key.fd] += block
                if not block:
                    selector.unregister(key.fd)
                    if key.fd == channel.fileno():  # a process that killed the supervisor may hold the other pipes
                        why, ends = why or message.decode("utf-8", "replace") or "lost", time.monotonic() + 1
            is_late, too_large = time.monotonic() >= ends, len(stdout) > limits.output_bytes
            if why and is_late:
                supervisor.kill()  # what it cannot end runs as a different user
                break
            if not why and (is_late or too_large):
                why, ends = "output" if too_large else "timeout", time.monotonic() + 60
                channel.shutdown(socket.SHUT_WR)
            del stdout[limits.output_bytes + 1 :], stderr[:-_ERROR_BYTES]
    word, _, detail = why.partition("\n")[0].partition(" ")
    return Ended(
        why="output" if len(stdout) > limits.output_bytes else cast("Why", word),
        code=int(detail) if word == "exited" else None,
        stdout=bytes(stdout[: limits.output_bytes]),
        stderr=detail.encode() if word == "absent" else bytes(stderr),
        limits=limits,
    )


def _supervise(channel: socket.socket, most: int, memory: int, argv: list[str]) -> None:
    """Start a program and wait until it ends, has too many processes or the channel closes; then end all of it."""
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _control_process(_SUBREAPER, 1)
    program = os.fork()
    if program == 0:
        _become(argv, memory, channel)
    message, look, pause = "", 0.0, _LOOK_S
    while not message:
        ready, _, _ = select.select([channel, wake], [], [], pause)
        if channel in ready:
            break
        if wake in ready:
            wake.recv(4096)
        message = next((f"exited {code}" for pid, code in _reaped() if pid == program), "")
        began = time.monotonic()
        if not message and began >= look:
            message = "processes" if len(_processes()) > most else ""
            pause = max(_LOOK_S, 20 * (time.monotonic() - began))  # however many others this machine runs
            look = began + pause
    _end_all(program)
    with suppress(OSError):  # nobody waits for it
        channel.send(message.encode())


def _become(argv: list[str], memory: int, channel: socket.socket) -> None:
    """Turn this process into the program, or say on the channel why it cannot be started."""
    try:
        os.setsid()
        _control_process(_DEATH_SIGNAL, signal.SIGKILL)  # if the supervisor is killed
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and children inherit that
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        os.execvp(argv[0], argv)  # noqa: S606 - without a shell, as it should be
    except (OSError, ValueError) as problem:
        channel.send(f"absent {argv[0]}: {getattr(problem, 'strerror', None) or problem}\n".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _end_all(program: int) -> None:
    """Kill every process of the program until none is left; a group is killed at once, so that none can fork away."""
    with suppress(ChildProcessError):  # no child is left
        while True:
            with suppress(OSError):
                os.killpg(program, signal.SIGKILL)
            for pid in _processes():
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for _ in _reaped(none_is_an_error=True):
                pass
            time.sleep(0.005)


def _reaped(*, none_is_an_error: bool = False) -> Iterator[tuple[int, int]]:
    """Yield id and exit code of the children that ended; raise ChildProcessError if there are no children at all."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended[0], os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        if none_is_an_error:
            raise


def _processes() -> list[int]:
    """Return the ids of this process's children, of their children and so on; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    with suppress(FileNotFoundError):
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - a path for each is slow
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as handle:  # noqa: PTH123
                parent = int(handle.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    descendants = list(children.get(os.getpid(), ()))
    for pid in descendants:
        descendants += children.get(pid, ())
    return descendants


def _control_process(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    _supervise(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
