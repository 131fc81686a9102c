"""The size of the house: figures that a change may lower, and raise only with a reason in its commit."""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from tests.test_architecture import PACKAGE, imported_modules, modules

# Each is the most that is allowed; shares are percent.
MOST = {
    "lines": 46_735,
    "files": 176,
    "imports": 6.7,
    "once": 56.3,
    "one_importer": 17,
    "alike": 5,
    "commands": 1_310,
    "tests": 46_101,
}
# How many files of the package a command runs functions of, on the demo library.
WALKED = {"evaluate receipts --dry-run": 44, "evaluate receipts": 60, "compare receipts": 35}


def test_the_house_is_no_larger_than_its_figures() -> None:
    over = [f"{name}: {value:g}, at most {MOST[name]:g}" for name, value in figures().items() if value > MOST[name]]
    assert not over, f"{'; '.join(over)}. Look for what your change replaces, or raise the figure in MOST and say why"


@pytest.mark.unchanged
def test_a_reader_of_a_command_opens_few_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "skill_evaluator", "demo", tmp_path / "demo"], check=True)
    walked = {words: _files_walked(words.split(), tmp_path / "demo") for words in WALKED}
    assert all(walked.values())
    over = {words: sorted(files) for words, files in walked.items() if len(files) > WALKED[words]}
    assert not over, f"more files than in WALKED; join what one idea has spread over several: {over}"


_WALK = """
import inspect, sys, threading
files = set()
def see(frame, *_):
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        files.add(frame.f_code.co_filename)
import skill_evaluator.api
from skill_evaluator.cli import main
threading.settrace(see)
sys.settrace(see)  # calls only, because it returns no trace function of a frame
try:
    main(sys.argv[1:])
finally:
    sys.settrace(None)
    print(*files, sep="\\n", file=sys.stderr)
"""


def _files_walked(words: Sequence[str], folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _WALK, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return {name for line in done.stderr.splitlines() if (name := line.partition("tools/skill_evaluator/")[2])}


def figures() -> dict[str, float]:
    """Return what MOST bounds, as it is."""
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    lines = _lines(texts.values())
    importers = Counter(imported for module in modules() for imported in imported_modules(module) - {module})
    uses = [count for text in texts.values() for count in _uses_of_private_functions(text)]
    return {
        "lines": lines,
        "files": len(texts),
        "imports": 100 * sum(_import_lines(tree) for tree in modules().values()) / lines,
        "once": 100 * uses.count(1) / len(uses),
        "one_importer": sum(importers[module] == 1 for module in modules()),
        "alike": len(alike()),
        "commands": _lines(texts[path] for path in texts if "commands" in path.relative_to(PACKAGE).parts),
        "tests": _lines(path.read_text() for path in Path(__file__).parent.rglob("*.py")),
    }


def alike() -> list[tuple[str, str]]:
    """Return the pairs of classes that share 70 % of the fields of the larger, which has four at least."""
    fields: dict[str, set[str]] = defaultdict(set)
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = {
                    field.target.id
                    for field in node.body
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                }
                fields[f"{module}.{node.name}"] = names
    return [
        (one, other)
        for one, other in combinations(sorted(name for name in fields if len(fields[name]) >= 4), 2)
        if len(fields[one] & fields[other]) >= 0.7 * max(len(fields[one]), len(fields[other]))
    ]


def _lines(texts: object) -> int:
    return sum(text.count("\n") for text in texts)  # type: ignore[attr-defined]


def _import_lines(tree: ast.Module) -> int:
    return sum(
        (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def _uses_of_private_functions(text: str) -> list[int]:
    """Return how often each private function's name stands in its file, beside its definition."""
    names = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.match("_[^_]", node.name)
    ]
    return [len(re.findall(rf"\b{name}\b", text)) - 1 for name in names]


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name:>12} {value:>9,.1f}  at most {MOST[name]:,}")
    for pair in alike():
        print("  alike:", *pair)
