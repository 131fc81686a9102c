"""The size of the house: figures that a change may lower, and raise only with a reason in its commit."""

import ast
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from tests.test_architecture import PACKAGE, imported_modules, modules

# Each is the most that is allowed; shares are percent.
MOST = {
    "lines": 63_100,
    "files": 482,
    "imports": 9.8,
    "once": 60.5,
    "one_importer": 107,
    "alike": 24,
    "commands": 9_900,
    "tests": 55_400,
}


def test_the_house_is_no_larger_than_its_figures() -> None:
    over = [f"{name}: {value:g}, at most {MOST[name]:g}" for name, value in figures().items() if value > MOST[name]]
    assert not over, f"{'; '.join(over)}. Look for what your change replaces, or raise the figure in MOST and say why"


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
