"""The engine against a bare SDK script: 12 cases × 100 replicates, 100 ms a call, 50 in flight; memory at ten times it.

`python benchmarks/engine.py [RUNS]`. Ours journals, scores, records; the peer throws its answers away.
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from library import write_library
from measure import in_turn, measure, spread

HERE = Path(__file__).parent
SCRIPT = HERE.parent / "tools" / "evaluate_skill.py"
CALLS, CONCURRENCY, DELAY_S = 1200, 50, 0.1
IDEAL_S = CALLS / CONCURRENCY * DELAY_S


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _evaluate(replicates: int) -> list[str]:
    options = ["--replicates", str(replicates), "--concurrency", str(CONCURRENCY), "--no-leaderboard"]
    return [sys.executable, str(SCRIPT), "bench", *options]


def main(runs: int) -> None:
    """Print the ratios."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}/v1"
    command = [sys.executable, str(HERE / "chat_server.py"), str(port), str(DELAY_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server, tempfile.TemporaryDirectory() as name:
        server.stdout.readline()
        root = Path(name)
        write_library(root, url)
        peer = [sys.executable, str(HERE / "bare_client.py"), url, str(root), str(CALLS), str(CONCURRENCY)]
        pairs = in_turn(_evaluate(CALLS // 12), peer, root, os.environ, runs)
        large = measure(_evaluate(CALLS // 12 * 10), root, os.environ)
        server.kill()
    print(
        f"{CALLS} calls, {CONCURRENCY} in flight, {DELAY_S:g} s each: ideal {IDEAL_S:g} s; "
        f"median (min to max) of {runs}"
    )
    print(f"ours, wall          {spread([ours.wall_s for ours, _ in pairs])} s")
    print(f"bare SDK, wall      {spread([bare.wall_s for _, bare in pairs])} s")
    print(f"ours / ideal        {spread([ours.wall_s / IDEAL_S for ours, _ in pairs])}   at most 1.5")
    print(f"ours / bare, wall   {spread([ours.wall_s / bare.wall_s for ours, bare in pairs])}   at most 1.1")
    print(f"ours / bare, cpu    {spread([ours.cpu_s / bare.cpu_s for ours, bare in pairs])}   at most 1.3")
    small = max(ours.peak_mib for ours, _ in pairs)
    print(f"peak memory         {small:.0f} MiB; {CALLS * 10} calls {large.peak_mib:.0f} MiB")
    print(f"growth              {large.peak_mib - small:.1f} MiB   at most 30")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
