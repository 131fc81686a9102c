"""Faults by the hundred, as others may cause them: `python benchmarks/faults.py [--count 200] [--kills 50] [--seed S]`.

Prints a row for each fault: how often it was tried, how often everything held, the longest command and the most memory
of one process. Exits with 1 if something did not hold, after saying with which seed it comes back. Takes half an hour.
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

from tests.support.chat_server import chat_server  # noqa: E402
from tests.support.every_file import FILES, EveryFile, OutsideFile  # noqa: E402
from tests.support.killing import kill_until_done  # noqa: E402
from tests.support.library import SKILL, Library, journal  # noqa: E402
from tests.support.raw_server import MODES, good, http_answer, raw_server  # noqa: E402
from tests.support.spoiling import spoil  # noqa: E402
from tests.support.vendor_dialects import DIALECTS, address_of  # noqa: E402
from tests.support.vendor_server import Asked  # noqa: E402

VENDORS = ("openai-compatible", "anthropic", "google")
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}
TESTS = {  # by the fault, how often it is tried in the test that proves it, and where that is
    "leaderboard writers and publishers at once": (60, "tests/commands/test_racing_writers.py"),
    "disks, clocks, folders and files that fail": (22, "tests/commands/test_machine_faults.py"),
    "answers whose scoring takes for ever": (1, "tests/commands/test_costly_answers.py"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one kind of fault came to; times in seconds, memory in MiB of one process."""

    fault: str
    tried: int
    held: int
    longest_s: float
    memory_mib: float = 0.0
    remarks: tuple[str, ...] = ()


def main() -> int:
    """Try everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="spoilt files of each kind, and spoilt answers a vendor")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    rows = []
    print("| fault | tried | held | longest | most memory |\n|---|---|---|---|---|")
    for row in every_row(options.count, options.kills, options.seed):
        rows.append(row)
        print(
            f"| {row.fault} | {row.tried:,} | {row.held:,} | {row.longest_s:.1f} s | {row.memory_mib:.0f} MiB |",
            flush=True,
        )
        for remark in row.remarks:
            print(f"seed {options.seed}, {row.fault}: {remark}", file=sys.stderr)
    return int(any(row.held < row.tried for row in rows))


def every_row(count: int, kills: int, seed: int) -> Iterator[Row]:
    """Yield the rows one after the other, each once it is measured."""
    with tempfile.TemporaryDirectory() as folder:
        library = EveryFile(Path(folder, "library"))
        for kind, files in groupby(FILES, lambda file: file.kind):
            yield together(kind, [in_a_child(spoilt_file, library, file, count, seed) for file in files])
    for vendor in VENDORS:
        yield in_a_child(bad_http, vendor)
        yield in_a_child(spoilt_answers, vendor, count, random.Random(f"{seed}-{vendor}"))
    for number in (signal.SIGKILL, signal.SIGTERM):
        yield in_a_child(killed, kills, random.Random(f"{seed}-{number}"), number)
    for fault, (times, path) in TESTS.items():
        yield proven(fault, times, path)


def in_a_child(measure: Callable[..., Row], *arguments: object) -> Row:
    """Measure in a new process; the memory is what it or a process that it began took at most."""
    with get_context("spawn").Pool(1) as pool:  # a fork would have the threads' locks of libraries, and no threads
        return pool.apply(_with_memory, (measure, *arguments))


def _with_memory(measure: Callable[..., Row], *arguments: object) -> Row:
    row = measure(*arguments)
    used = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return replace(row, memory_mib=max(used) / 1024)


def spoilt_file(library: EveryFile, file: OutsideFile, count: int, seed: int) -> Row:
    """Spoil one file of a library that has one of every format, and do the commands that read it."""
    dice = random.Random(f"{seed}-{file.name}")
    runs = [
        ran
        for _ in range(count)
        for ran in library.commands_on(file, lambda content: spoil(content, dice), dice.randrange)
    ]
    return Row(
        fault=file.name,
        tried=len(runs),
        held=sum(ran.held for ran in runs),
        longest_s=max(ran.seconds for ran in runs),
        remarks=tuple(f"{ran.words} {ran.ended} {ran.content[:500]!r}" for ran in runs if not ran.held),
    )


def together(kind: str, rows: list[Row]) -> Row:
    """Sum up the files of one kind."""
    return Row(
        fault=f"files spoilt: {kind} ({len(rows)} formats)",
        tried=sum(row.tried for row in rows),
        held=sum(row.held for row in rows),
        longest_s=max(row.longest_s for row in rows),
        memory_mib=max(row.memory_mib for row in rows),
        remarks=tuple(remark for row in rows for remark in row.remarks),
    )


def served_library(
    root: Path, vendor: str, url: str, modes: list[str], **settings: int
) -> tuple[Library, dict[str, str]]:
    """A library with a case for each mode of a raw server, which speaks a vendor's API; and the environment."""
    library = Library(root)
    library.root.joinpath("fixtures").rename(root / "unused")
    for mode in modes:
        library.write(f"fixtures/{SKILL}/cases/{mode}/document.md", f"mode-{mode} is what this asks for.\n")
    dialect = DIALECTS[vendor]
    served = {"id": "served", "provider": dialect.provider, "base_url": address_of(url, vendor)}
    key = KEYS[dialect.provider]
    library.models(served if dialect.provider != "openai" else {**served, "api_key_env": key})
    library.settings(concurrency=16, **settings)
    return library, {key: "lab-Secret-0123456789/abcdef"}


def ask(fault: str, library: Library, env: dict[str, str], planned: int) -> Row:
    """Evaluate in a process, and count the calls that have their own line in the journal, an answer or a failure."""
    begun = time.perf_counter()
    done = library.evaluate("--no-leaderboard", env=env)
    took = time.perf_counter() - begun
    kept = [line for folder in library.results.glob("*-*") for line in journal(folder)]
    calls = {(line["case_id"], line["replicate"]) for line in kept}
    is_wrong = done.code not in (0, 4) or "Traceback" in done.err
    return Row(
        fault=fault,
        tried=planned,
        held=0 if is_wrong else len(calls),
        longest_s=took,
        remarks=(str(done),) if is_wrong else (),
    )


def bad_http(vendor: str) -> Row:
    """One run whose calls each meet bad HTTP, packing, encoding or JSON of another kind."""
    with tempfile.TemporaryDirectory() as folder, raw_server() as server:
        library, env = served_library(Path(folder), vendor, server.url, list(MODES), replicates=1, timeout_s=2)
        return ask(f"bad HTTP, a kind for each call: {vendor}", library, env, len(MODES))


def spoilt_answers(vendor: str, count: int, dice: random.Random) -> Row:
    """One run whose answers are each spoilt otherwise, from any bytes to values that nearly fit."""

    def send(asked: Asked) -> None:
        asked.received.send(http_answer(spoil(good(asked), dice)))

    with tempfile.TemporaryDirectory() as folder, raw_server({"spoilt": send}) as server:
        library, env = served_library(Path(folder), vendor, server.url, ["spoilt"], replicates=count, timeout_s=5)
        return ask(f"answers spoilt: {vendor}", library, env, count)


def killed(kills: int, dice: random.Random, number: signal.Signals) -> Row:
    """One run that is ended again and again, and each time resumed."""
    with tempfile.TemporaryDirectory() as folder, chat_server() as server:
        library = Library(Path(folder))
        library.served_by(server.url)
        begun = time.perf_counter()
        ends = kill_until_done(library, server, kills, dice, number)
        took = (time.perf_counter() - begun) / len(ends.asked_again)
        in_order = ends.held and len(library.rows()) == 1
        tried = len(ends.asked_again) - 1
        return Row(
            fault=f"run ended by {number.name}, and resumed",
            tried=tried,
            held=tried if in_order else 0,
            longest_s=took,
            remarks=() if in_order else (str(ends),),
        )


def proven(fault: str, times: int, path: str) -> Row:
    """Run the test that proves something, as it stands."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "faults", path]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    return Row(
        fault=fault,
        tried=times,
        held=0 if process.returncode else times,
        longest_s=time.perf_counter() - begun,
        memory_mib=used.ru_maxrss / 1024,
        remarks=(printed[-2_000:],) if process.returncode else (),
    )


if __name__ == "__main__":
    sys.exit(main())
