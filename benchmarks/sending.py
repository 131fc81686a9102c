"""Memory of a run that sends files: 20 cases of 10 MB each, asked 10 times, 8 calls in flight, beside one of texts.

Ours is the whole command; the server that takes the files is a process of its own.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Measured, measure

HERE = Path(__file__).parent
CASES, REPLICATES, CONCURRENCY, SIZE = 20, 10, 8, 10_000_000
NAME = "scans"
_IMAGE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\4\0\x08\0\0\0\0"  # its beginning is all that is read of it


def rows(quick: bool) -> Iterator[Measured]:
    replicates = 2 if quick else REPLICATES
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, str(HERE / "chat_server.py"), str(port), "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server, tempfile.TemporaryDirectory() as folder:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            texts, files = (
                measure(_command(Path(folder) / kind, port, replicates), Path(folder) / kind)
                for kind in ("texts", "files")
            )
        finally:
            server.kill()
    calls = f"{CASES * replicates} calls with a file of {SIZE / 1e6:g} MB, {CONCURRENCY} in flight"
    yield Measured(
        name=f"{calls}: memory beyond that of texts",
        values=(files.peak_mib - texts.peak_mib,),
        most=150,
        unit="MiB",
        note=f"{texts.peak_mib:.0f} MiB, {files.peak_mib:.0f} MiB; {files.wall_s:.1f} s",
    )


def _command(root: Path, port: int, replicates: int) -> list[str]:
    """Write a library of texts or of files, and return the command that asks it."""
    component = root / "components" / NAME
    component.mkdir(parents=True)
    (component / "prompt.md").write_text(f"---\nname: {NAME}\nversion: 1.0.0\n---\nRead this.\n")
    for number in range(CASES):
        case = root / "fixtures" / NAME / "cases" / f"case-{number}"
        case.mkdir(parents=True)
        (case / "ground_truth.json").write_text("{}")
        if root.name == "texts":
            (case / "document.md").write_text(f"Document {number}.")
        else:
            (case / "document.png").write_bytes(_IMAGE + os.urandom(SIZE - len(_IMAGE)))
    model = {"id": "m", "provider": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "accepts": ["image"]}
    (root / ".evaluator").mkdir()
    (root / ".evaluator" / "models.yaml").write_text(json.dumps({"models": [model]}))
    arguments = [
        "evaluate",
        NAME,
        "--replicates",
        str(replicates),
        "--concurrency",
        str(CONCURRENCY),
        "--no-leaderboard",
    ]
    return [sys.executable, "-m", "skill_evaluator", *arguments]
