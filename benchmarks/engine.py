"""The engine against bare clients: 12 cases × 100 replicates, 100 ms a call, 50 in flight; memory with more calls.

First the loop of calls alone, by the provider and by the bare SDK. Then the whole command, which journals, scores and
records, beside peers that throw their answers away. The ideal has nothing but the server's delay. All in turn against
one loopback server.

`python -m benchmarks.engine CALLS` is the soak: calls in five parts, each but the last ended by SIGKILL.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.library import write_library
from benchmarks.measure import ROOT, Figures, Measured, as_installed, measure, spread

HERE = Path(__file__).parent
CALLS, CONCURRENCY, DELAY_S = 1200, 50, 0.1
MANY, MANY_CONCURRENCY, MANY_DELAY_S = 20_000, 400, 0.05
LINE = 1_170  # bytes of the journal
IDEAL_S = CALLS / CONCURRENCY * DELAY_S
PROMPTFOO = "npm install -g promptfoo, which needs Node 22.22"


def rows(quick: bool) -> Iterator[Measured]:
    yield from loop_rows(CALLS, DELAY_S, 1.6, 1 if quick else 3)
    if not quick:
        yield from loop_rows(600, 1.0, 1.1, 1)
    with serving(DELAY_S) as (root, url):
        yield from _rows(root, url, 1 if quick else 3, times=3 if quick else 10)
    yield from many_rows(quick)


def loop_rows(calls: int, delay_s: float, most: float, runs: int) -> Iterator[Measured]:
    """Yield what a loop of calls takes, by the provider and beside it by the bare SDK."""
    ideal_s = calls / CONCURRENCY * delay_s
    with serving(delay_s) as (_, url):
        ours, bare = zip(
            *((_loop(url, calls, "evaluator"), _loop(url, calls, "openai")) for _ in range(runs)), strict=True
        )
    title = f"{calls:,} calls of {delay_s * 1_000:g} ms, {CONCURRENCY} in flight, the loop"
    walls, cpus = ([one[name] for one in ours] for name in ("wall_s", "cpu_s"))
    yield Measured(
        name=f"{title} ÷ ideal ({ideal_s:g} s)",
        values=tuple(wall / ideal_s for wall in walls),
        most=most,
        note=f"{spread(walls)} s",
    )
    yield Measured(
        name=f"{title}, processor time a call",
        values=tuple(1_000 * cpu / calls for cpu in cpus),
        most=2,
        unit="ms",
        note=f"the bare SDK {spread([1_000 * one['cpu_s'] / calls for one in bare])} ms",
    )
    yield Measured(
        name=f"{title} ÷ that of the bare `openai` SDK",
        values=tuple(wall / one["wall_s"] for wall, one in zip(walls, bare, strict=True)),
        most=1 if delay_s < 1 else None,  # slow calls leave both idle
        note=f"the peer {spread([one['wall_s'] for one in bare])} s",
    )


def _loop(url: str, calls: int, client: str) -> dict[str, float]:
    command = [sys.executable, str(HERE / "call_loop.py"), url, str(calls), str(CONCURRENCY), client]
    done = subprocess.run(command, env=as_installed(os.environ), stdout=subprocess.PIPE, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


@contextmanager
def serving(delay_s: float, cases: int = 12) -> Iterator[tuple[Path, str]]:
    """Yield a library and the address of the loopback server that answers it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    url = f"http://127.0.0.1:{port}/v1"
    command = [sys.executable, str(HERE / "chat_server.py"), str(port), str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server, tempfile.TemporaryDirectory() as name:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            write_library(Path(name), url, cases)
            yield Path(name), url
        finally:
            server.kill()


def _rows(root: Path, url: str, runs: int, times: int) -> Iterator[Measured]:
    rest = [url, str(root), str(CALLS), str(CONCURRENCY)]
    commands = {
        "ours": _evaluate(CALLS // 12),
        "openai": [sys.executable, str(HERE / "bare_client.py"), *rest],
        "pydantic_evals": [sys.executable, str(HERE / "bare_client.py"), *rest, "pydantic_evals"],
        "promptfoo": ["promptfoo", "eval", "--no-cache", "--no-table", "-j", str(CONCURRENCY), "-c", "promptfoo.json"],
    }
    _write_promptfoo(root, url)
    missing = {
        "pydantic_evals": "" if find_spec("pydantic_evals") else "pip install pydantic-evals",
        "promptfoo": _why_not(commands["promptfoo"], root) if shutil.which("promptfoo") else PROMPTFOO,
    }
    commands = {name: command for name, command in commands.items() if not missing.get(name)}
    turns = _in_turn(commands, root, runs)
    ours = turns["ours"]
    wall = f"{spread([one.wall_s for one in ours])} s"
    yield Measured(
        name=f"{CALLS:,} calls of 100 ms, {CONCURRENCY} in flight, the whole command ÷ ideal ({IDEAL_S:g} s)",
        values=tuple(one.wall_s / IDEAL_S for one in ours),
        note=wall,
    )
    yield _ratio("the same ÷ bare `openai` SDK, processor time", ours, turns["openai"], lambda one: one.cpu_s)
    for peer, title in (
        ("openai", "bare `openai` SDK"),
        ("pydantic_evals", "pydantic-evals"),
        ("promptfoo", "promptfoo"),
    ):
        if missing.get(peer):
            yield Measured(name=f"the same ÷ {title}, wall", values=(), note=missing[peer])
        else:
            yield _ratio(f"the same ÷ {title}, wall", ours, turns[peer], lambda one: one.wall_s, most=1.0)
    yield Measured(
        name="median latency in the journal ÷ the server's delay",
        values=tuple(median(latencies) / DELAY_S for latencies in _latencies(root)),
        most=1.2,
    )
    small = max(one.peak_mib for one in ours)
    growth = measure(_evaluate(CALLS // 12 * times), root).peak_mib - small
    yield Measured(
        name=f"growth of peak memory to {CALLS * times:,} calls",
        values=(growth,),
        most=30,
        unit="MiB",
        note=f"{small:.0f} MiB before",
    )


def many_rows(quick: bool) -> Iterator[Measured]:
    """Yield a run of many short calls beside a bare loop of the same HTTP library; not quick."""
    with serving(MANY_DELAY_S) as (root, url):
        calls = str(MANY // 10 if quick else MANY)
        peer = [sys.executable, str(HERE / "bare_client.py"), url, str(root), calls, str(MANY_CONCURRENCY), "aiohttp"]
        ours = _evaluate(int(calls) // 12, MANY_CONCURRENCY)
        turns = [(measure(ours, root), measure(peer, root))]
    title = f"{int(calls):,} calls of 50 ms, {MANY_CONCURRENCY} in flight ÷ a bare loop of aiohttp"
    for what in ("wall", "processor time"):
        pairs = [(one.wall_s, other.wall_s) if what == "wall" else (one.cpu_s, other.cpu_s) for one, other in turns]
        note = f"the peer {spread([other for _, other in pairs])} s"
        yield Measured(name=f"{title}, {what}", values=tuple(a / b for a, b in pairs), note=note)


def soak(calls: int) -> None:
    """Make calls of no delay, killed four times and resumed, and print what was kept, asked and held at each of them.

    What the server was asked beyond the answers kept was in flight at a kill. If that grew after the last one, a call
    that had its answer was made again.
    """
    with serving(0.0, cases=48) as (root, url):
        for part, share in enumerate((0.25, 0.5, 0.75, 0.9, 2)):
            begun = time.monotonic()
            first = _evaluate(calls // 48, MANY_CONCURRENCY)
            command = [*first[:3], "--resume", *first[5:]] if part else first
            with subprocess.Popen(
                command, cwd=root, env=as_installed(os.environ), stdout=subprocess.DEVNULL
            ) as process:
                peak = 0
                while process.poll() is None and _kept(root) < share * calls:
                    status = Path(f"/proc/{process.pid}/status").read_text()
                    peak = max(peak, *(int(line.split()[1]) for line in status.splitlines() if line[:6] == "VmHWM:"), 0)
                    time.sleep(0.1)
                process.kill()
            time.sleep(1)  # until the server has read what was sent
            with urllib.request.urlopen(f"{url.removesuffix('/v1')}/asked") as reply:
                asked = int(reply.read())
            (journal,) = root.glob("components/bench/evals/results/*/replicates.jsonl")
            made = Counter((line["case_id"], line["replicate"]) for line in map(json.loads, journal.open()))
            answers, lines = len(made), made.total()
            print(
                f"{answers:,} answers, {lines - answers} twice, {asked - lines} asked and not kept, "
                f"{peak / 1024:.0f} MiB, {time.monotonic() - begun:.0f} s, exit code {process.returncode}",
                flush=True,
            )


def _kept(root: Path) -> int:
    """Return about how many answers are in the journal."""
    return sum(path.stat().st_size for path in root.glob("components/bench/evals/results/*/replicates.jsonl")) // LINE


def _why_not(command: Sequence[str], folder: Path) -> str:
    """Why a peer that is installed cannot be measured; nothing if it can."""
    try:
        measure(command, folder)
    except SystemExit as problem:
        return f"it fails here: {str(problem).partition(': ')[2].splitlines()[0]}"
    return ""


def _evaluate(replicates: int, concurrency: int = CONCURRENCY) -> list[str]:
    options = ["--replicates", str(replicates), "--concurrency", str(concurrency), "--no-leaderboard"]
    return [sys.executable, str(ROOT / "tools" / "evaluate_skill.py"), "bench", *options]


def _in_turn(commands: Mapping[str, Sequence[str]], folder: Path, runs: int) -> dict[str, list[Figures]]:
    """Figures of each command, one after the other in every round; 12 calls of ours warm caches first."""
    measure(_evaluate(1), folder)
    rounds = [{name: measure(command, folder) for name, command in commands.items()} for _ in range(runs)]
    return {name: [one[name] for one in rounds] for name in commands}


def _ratio(
    name: str,
    ours: Sequence[Figures],
    peer: Sequence[Figures],
    of: Callable[[Figures], float],
    most: float | None = None,
) -> Measured:
    values = tuple(of(one) / of(other) for one, other in zip(ours, peer, strict=True))
    return Measured(name=name, values=values, most=most, note=f"the peer {spread([of(one) for one in peer])} s")


def _latencies(root: Path) -> Iterator[list[float]]:
    """Yield the latencies of each run but that which warmed caches."""
    for journal in root.glob("components/bench/evals/results/*/replicates.jsonl"):
        latencies = [json.loads(line)["latency_s"] for line in journal.read_text().splitlines()]
        if len(latencies) == CALLS:
            yield latencies


def _write_promptfoo(root: Path, url: str) -> None:
    """The same calls as promptfoo's configuration; each is asked by a test of its own."""
    prompt = (root / "components/bench/prompt.md").read_text().split("---\n", 2)[2].strip()
    schema = json.loads((root / "components/bench/schema.json").read_text())
    documents = [path.read_text() for path in sorted((root / "fixtures/bench/cases").glob("*/document.md"))]
    form = {"type": "json_schema", "json_schema": {"name": "bench", "schema": schema, "strict": True}}
    config = {"apiBaseUrl": url, "apiKey": "none", "max_tokens": 1024, "temperature": 0, "response_format": form}
    messages = json.dumps([{"role": "system", "content": prompt}, {"role": "user", "content": "{{document}}"}])
    content = {
        "prompts": [messages],
        "providers": [{"id": "openai:chat:m", "config": config}],
        "tests": [{"vars": {"document": f"{at} {documents[at % len(documents)]}"}} for at in range(CALLS)],
    }
    (root / "promptfoo.json").write_text(json.dumps(content))


if __name__ == "__main__":
    soak(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
