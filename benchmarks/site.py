"""How long a site of many records takes: `python benchmarks/site.py [--components N] [--models N] [--versions N]`.

The library is made of the records of `demo`, with other names and scores. It is built three times: cold, when every
verdict is drawn; warm, when all are kept; and after one new record. The goal is 50 × 8 × 40 warm in 60 s and 1 GB.
"""

import argparse
import copy
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import parse_record, write_record

from benchmarks.measure import Figures, measure

COMMAND = (sys.executable, "-m", "skill_evaluator")
LARGEST_PAGE = 2_000_000


def library(root: Path, components: int, models: int, versions: int) -> None:
    """Lay out components with a complete run of each version on each model."""
    measure([*COMMAND, "demo", str(root)], root.parent)
    demo = root / "components" / "receipts"
    template = json.loads(sorted((demo / "evals" / "records").glob("*-large.json"))[-1].read_text())
    shutil.rmtree(demo / "evals" / "records")
    shutil.rmtree(demo / "evals" / "results")
    (demo / "leaderboard.json").unlink()
    rng = random.Random(20_261)
    for at in range(components):
        folder = root / "components" / f"component-{at:02}"
        shutil.copytree(demo, folder)
        prompt = (folder / "prompt.md").read_text().replace("name: receipts", f"name: {folder.name}")
        (folder / "prompt.md").write_text(prompt)
        records = [
            record(template, folder.name, f"model-{model}", version, rng)
            for version in range(versions)
            for model in range(models)
        ]
        add(folder, records)
    shutil.rmtree(demo)


def add(folder: Path, records: list[Any]) -> None:
    """Put records where a component has them."""
    for value in records:
        write_record(folder / "evals" / "records" / f"{value.run_id}.json", value)
    append_rows(folder / "leaderboard.json", folder.name, [value.row() for value in records])


def record(template: dict[str, Any], skill: str, model: str, version: int, rng: random.Random) -> Any:
    """Return the template as a run of a version, with scores that moved by chance."""
    value = copy.deepcopy(template)
    stamp = f"2026{1 + version // 28:02}{1 + version % 28:02}"
    value |= {
        "skill": skill,
        "model_id": model,
        "skill_version": f"1.{version}.0",
        "run_id": f"{stamp}T090000Z-{version:06}-{model}",
        "timestamp": f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:]}T09:00:00Z",
        "digests": {**value["digests"], "prompt": f"sha256:{version:064x}"},
    }
    for case in value["per_case"]:
        for scores in case["replicates"].values():
            scores[:] = [score if score is None else min(1.0, max(0.0, score - 0.2 * rng.random())) for score in scores]
    return parse_record(value, Path("made up"))


def build(root: Path) -> Figures:
    """Build the site in a process of its own."""
    return measure([*COMMAND, "site", "build"], root)


def main(components: int, models: int, versions: int) -> None:
    """Print what each build took."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "library"
        library(root, components, models, versions)
        print(f"{components} components, {models} models, {versions} versions", flush=True)
        for name in ("cold", "warm", "one new record"):
            if name == "one new record":
                newest = root / "components" / "component-00"
                path = sorted((newest / "evals" / "records").glob("*.json"))[-1]
                add(newest, [record(json.loads(path.read_text()), newest.name, "model-0", versions, random.Random(1))])
            took = build(root)
            print(f"{name}: {took.wall_s:.1f} s, {took.cpu_s:.1f} s of processor, {took.peak_mib:.0f} MiB", flush=True)
        sizes = {path.name: path.stat().st_size for path in (root / "site").rglob("*.js")}
        shared = sum(
            sizes[name] for name in ("site.js", "draw.js", "component.js", "vega.js", "charts.js", "overview.js")
        )
        largest = shared + max(size for name, size in sizes.items() if name.startswith("component-"))
        print(f"largest page: {largest:,} bytes, of at most {LARGEST_PAGE:,}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("components", 50), ("models", 8), ("versions", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    main(options.components, options.models, options.versions)
