"""A site of many records.

20 components with 4 models and 15 versions of 12 cases each, and the outputs of the last two versions. The records are
those of a run of `demo` with other names, and scores that moved by chance. All components have the same scores.

`python benchmarks/site.py [--components N] [--models N] [--versions N]` prints the table for other counts.
"""

import argparse
import copy
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import parse_record, write_record

from benchmarks.kept import run_of, table
from benchmarks.measure import Measured, measure

COMMAND = (sys.executable, "-m", "skill_evaluator")
FIRST = "component-00"
CASES_AGAIN = {"booking": "booking-again", "refund": "refund-again"}  # the demo has ten, the goal says twelve
ANSWERED = 2  # versions whose answers are at hand
BUILD_S = 60.0  # processor time
PEAK_MIB, LARGEST, INTERACTIVE_S = 1024.0, 1_000_000, 1.0
COMPONENTS, MODELS, VERSIONS = 20, 4, 15
# The moment at which the table can be sorted, told by the page itself.
INTERACTIVE = """
new MutationObserver((_, observer) => {
  if (document.querySelector("main table th button.sort")) {
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.interactive = performance.now(); }));
  }
}).observe(document, { childList: true, subtree: true, attributes: true });
"""


def rows(quick: bool) -> Iterator[Measured]:
    """Yield time and memory of a build, the size of the largest page, and when the overview can be used."""
    return rows_of(2 if quick else COMPONENTS, MODELS, VERSIONS)


def rows_of(components: int, models: int, versions: int) -> Iterator[Measured]:
    """Yield the rows for so many components."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "library"
        lay_out(root, components, models, versions)
        took = build(root)
        title = f"site of {components} × {models} × {versions}: processor time"
        note = f"{took.wall_s:.1f} s by the clock"
        yield Measured(name=title, values=(took.cpu_s,), most=BUILD_S, unit="s", note=note)
        yield Measured(name="most memory of a build", values=(took.peak_mib,), most=PEAK_MIB, unit="MiB")
        pages = {str(path.relative_to(root)): path.stat().st_size for path in (root / "site").rglob("*.html")}
        largest = max(pages, key=lambda page: pages[page])
        yield Measured(
            name="the largest page", values=(pages[largest] / 1e6,), most=LARGEST / 1e6, unit="MB", note=largest
        )
        yield from in_the_browser(root / "site", components * models)


def lay_out(root: Path, components: int, models: int, versions: int) -> None:
    """Lay out components with a complete run of each version on each model; the first is made, the others copied."""
    run = run_of_demo(root)
    demo, first = root / "components" / "receipts", root / "components" / FIRST
    shutil.copytree(demo, first, ignore=shutil.ignore_patterns("records", "results", "leaderboard.json"))
    prompt = first / "prompt.md"
    prompt.write_text(prompt.read_text().replace("name: receipts", f"name: {FIRST}"))
    shutil.rmtree(demo)
    rng, template = random.Random(20_261), json.loads((run / "record.json").read_text())
    records = [
        record(template, FIRST, f"model-{model}", version, rng)
        for version in range(versions)
        for model in range(models)
    ]
    add(first, records)
    for value in records[-ANSWERED * models :]:
        add_answers(first, run, value)
    shutil.rmtree(run)
    for at in range(1, components):
        copy_of(first, first.with_name(f"component-{at:02}"))
    shown = {f"component-{at:02}": {"documents": True} for at in range(components)}
    (root / ".evaluator" / "settings.yaml").write_text(json.dumps({"site": {"components": shown}}))


def run_of_demo(root: Path) -> Path:
    """Return the folder of a run of the demo with all cases; it is no part of the library any more."""
    measure([*COMMAND, "demo", str(root)], root.parent)
    for case_id, again in CASES_AGAIN.items():
        shutil.copytree(root / "fixtures/receipts/cases" / case_id, root / "fixtures/receipts/cases" / again)
    declared = root / "components/receipts/evals/datasets.json"
    declared.write_text(declared.read_text().replace('"id": "receipts",', '"id": "receipts", "fixtures": "receipts",'))
    for answers in (root / "answers").iterdir():
        lines = [json.loads(line) for line in answers.read_text().splitlines()]
        lines += [{**line, "case_id": CASES_AGAIN[line["case_id"]]} for line in lines if line["case_id"] in CASES_AGAIN]
        answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    measure([*COMMAND, "evaluate", "receipts", "--replicates", "4", "--model", "example-large"], root)
    newest = max((root / "components/receipts/evals/results").glob("*-large"), key=lambda path: path.name)
    return newest.rename(root / "run")


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


def add(folder: Path, records: list[Any]) -> None:
    """Put records where a component has them."""
    for value in records:
        write_record(folder / "evals" / "records" / f"{value.run_id}.json", value)
    append_rows(folder / "leaderboard.json", folder.name, [value.row() for value in records])


def add_answers(folder: Path, run: Path, value: Any) -> None:
    """Put the answers of a run where a component has them, as those of a record."""
    place = folder / "evals" / "results" / value.run_id
    shutil.copytree(run, place)
    manifest = json.loads((run / "manifest.json").read_text())
    names = ("run_id", "skill", "skill_version", "model_id", "digests")
    known = json.loads(value.model_dump_json(include=set(names)))
    digests = {name: known["digests"][name] for name in manifest["digests"]}
    (place / "manifest.json").write_text(json.dumps({**manifest, **known, "digests": digests}, indent=2))
    write_record(place / "record.json", value)


def copy_of(first: Path, other: Path) -> None:
    """Copy a component under another name."""
    shutil.copytree(first, other)
    for path in other.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(FIRST.encode(), other.name.encode()))


def build(root: Path) -> Any:
    """Build the site in a process of its own."""
    return measure([*COMMAND, "site", "build"], root)


def in_the_browser(site: Path, pairs: int) -> Iterator[Measured]:
    """Measure in Chromium when the overview can be sorted, from the start of its navigation."""
    name = f"the overview of {pairs} rows can be sorted"
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        yield Measured(name=name, values=(), note="skipped; apt-get install chromium, pip install playwright")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        taken = [interactive(browser, site) for _ in range(5)]
        browser.close()
    walls = tuple(wall for wall, _ in taken)
    note = f"processor {median(processor for _, processor in taken):.2f} s"
    yield Measured(name=name, values=walls, most=INTERACTIVE_S, unit="s", note=note)


def interactive(browser: Any, site: Path) -> tuple[float, float]:
    """Return after how many seconds the overview can be sorted, and how many of them its thread was at work."""
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.add_init_script(INTERACTIVE)
    page.goto(f"file://{site}/index.html")
    page.wait_for_function("window.interactive")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    wall = page.evaluate("window.interactive") / 1000
    page.close()
    return wall, metrics["TaskDuration"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("components", COMPONENTS), ("models", MODELS), ("versions", VERSIONS)):
        parser.add_argument(f"--{option}", type=int, default=default)
    options = parser.parse_args()
    print(table([run_of("site", list(rows_of(options.components, options.models, options.versions)))]))
