"""Start-up: `--help` and a dry run beside importing what they need; lint, compare, history beside a dry run."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import ROOT, Measured, in_turn, measure, spread

PEER = [sys.executable, "-c", "import pydantic, yaml, jsonschema, cyclopts"]


def rows(quick: bool) -> Iterator[Measured]:
    for arguments in (["--help"], ["receipt-extraction", "--dry-run"]):
        command = [sys.executable, "tools/evaluate_skill.py", *arguments]
        pairs = in_turn(command, PEER, ROOT, runs=3 if quick else 11)
        yield Measured(
            name=f"`{' '.join(arguments)}` ÷ `import pydantic, yaml, jsonschema, cyclopts`",
            values=tuple(ours.wall_s / peer.wall_s for ours, peer in pairs),
            most=2,
            note=f"{spread([ours.wall_s for ours, _ in pairs])} s",
        )
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder, "demo")
        evaluator = [sys.executable, "-m", "skill_evaluator"]
        measure([*evaluator, "demo", str(demo)], ROOT)
        dry_run = [*evaluator, "evaluate", "receipts", "--dry-run"]
        for name in ("lint", "compare", "history"):
            pairs = in_turn([*evaluator, name, "receipts"], dry_run, demo, runs=3 if quick else 11)
            yield Measured(
                name=f"`{name}` of the demo ÷ its dry run",
                values=tuple(ours.wall_s / peer.wall_s for ours, peer in pairs),
                most=2,
                note=f"{spread([ours.wall_s for ours, _ in pairs])} s",
            )
