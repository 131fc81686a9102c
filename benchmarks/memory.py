"""Memory and cores of a long run: 300 cases × 10 recorded answers of 15 KB, asked and scored by `evaluate`.

The memory is what the system counts for each process while it runs: of the command's own, of the largest worker, and
of all together with what they share counted once.
"""

import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Measured, measure
from benchmarks.whole_run import ANSWERS, NAME, REPLICATES, write_run

CASES, QUICK_CASES = 300, 60
MIB = 1024
_EVERY = 0.1  # seconds


def rows(quick: bool) -> Iterator[Measured]:
    cases = QUICK_CASES if quick else CASES
    what = f"{cases} cases × {REPLICATES} answers of 15 KB"
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_run(root, keyed=True, cases=cases)
        _record_answers(root)
        seconds: dict[int, float] = {}
        for count in (1, 2)[: len(cores)]:
            os.sched_setaffinity(0, cores[:count])
            with _Watch() as watch:
                seconds[count] = measure(_command(root), root).wall_s
    for name, mib in watch.peaks.items():
        most = None if name == "all processes" else 250  # their sum is quoted: it hangs on the number of cores
        yield Measured(name=f"{what}: most memory of {name}", values=(mib,), most=most, unit="MiB")
    if len(seconds) > 1:
        yield Measured(
            name=f"{what}: one core ÷ two",
            values=(seconds[1] / seconds[2],),
            least=1.7,
            note=f"{seconds[1]:.1f} s, {seconds[2]:.1f} s",
        )


def _record_answers(root: Path) -> None:
    """Have a model that answers at once what was written, and nothing that draws on git."""
    with (root / "answers.jsonl").open("w") as lines:
        for case_id, texts in json.loads((root / ANSWERS).read_text()).items():
            for replicate, text in enumerate(texts):
                lines.write(json.dumps({"case_id": case_id, "replicate": replicate, "text": text}) + "\n")
    (root / ANSWERS).unlink()
    model = {"id": "m", "provider": "replay", "params": {"file": str(root / "answers.jsonl")}}
    (root / ".evaluator").mkdir()
    (root / ".evaluator" / "models.yaml").write_text(json.dumps({"models": [model]}))


def _command(root: Path) -> list[str]:
    arguments = ["evaluate", NAME, "--replicates", str(REPLICATES), "--no-leaderboard", "--results", str(root / "runs")]
    return [sys.executable, "-m", "skill_evaluator", *arguments]


class _Watch:
    """The most memory that the processes begun by this one take, but for the small one that measures, in MiB."""

    def __init__(self) -> None:
        self.peaks = {"the command": 0.0, "the largest worker": 0.0, "all processes": 0.0}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(_EVERY):
            of_command = [pid for between in _children(os.getpid()) for pid in _children(between)]
            of_workers = _below(of_command)
            for name, mib in (
                ("the command", sum(_memory(pid, "Rss:") for pid in of_command)),
                ("the largest worker", max((_memory(pid, "Rss:") for pid in of_workers), default=0)),
                ("all processes", sum(_memory(pid, "Pss:") for pid in _all(of_command))),
            ):
                self.peaks[name] = max(self.peaks[name], mib)


def _below(pids: list[int]) -> list[int]:
    return [child for pid in pids for child in _children(pid)]


def _all(pids: list[int]) -> list[int]:
    return [*pids, *_all(_below(pids))] if pids else []


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has ended
        return []


def _memory(pid: int, name: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / MIB for line in lines if line.startswith(name)), 0.0)
