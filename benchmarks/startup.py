"""Start-up of `--help` and `--dry-run` against importing what they need: `python benchmarks/startup.py [RUNS]`."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measure import in_turn, spread

ROOT = Path(__file__).parents[1]
PEER = [sys.executable, "-c", "import pydantic, yaml, jsonschema, typer"]


def main(runs: int) -> None:
    """Print the ratios."""
    for arguments in (["--help"], ["receipt-extraction", "--dry-run"]):
        pairs = in_turn([sys.executable, "tools/evaluate_skill.py", *arguments], PEER, ROOT, os.environ, runs)
        print(" ".join(arguments))
        print(f"  ours   {spread([ours.wall_s for ours, _ in pairs], '.3f')} s")
        print(f"  peer   {spread([peer.wall_s for _, peer in pairs], '.3f')} s")
        print(f"  ratio  {spread([ours.wall_s / peer.wall_s for ours, peer in pairs])}   at most 2")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
