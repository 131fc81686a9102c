"""The import table: a package imports only from packages above it; large packages have an order inside, too."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "tools" / "skill_evaluator"

# From the ground up: a file at the package's root, or a folder with all that is in it.
TABLE = (
    "errors",
    "text",
    "stats",
    "files",
    "identifiers",
    "display",
    "processes",
    "repository",
    "plugins",
    "parsing",
    "comparing",
    "metrics",
    "checks",
    "library",
    "records",
    "providers",
    "runner",
    "scoring",
    "verdicts",
    "exchange",
    "judges",
    "evaluation",
    "checking",
    "ci",
    "audit",
    "reports",
    "site",
    "api",
    "commands",
    "cli",
)
INSIDE = {  # the second level of large packages, from the ground up
    "verdicts": ("decide", "sizing", "shipping", "component"),
    "audit": ("request", "cube", "manifest", "calls", "statistics", "results", "family", "charts", "page"),
}
ONLY_IMPORTER = {"yaml": "library.reading"}
SHOWN_BY = {"api", "display", "errors", "reports", "text"}  # the packages that a command imports, beside its options
# the files in commands/ that import more; it may only get shorter
WITH_LOGIC = {"audit", "ci", "evaluate", "init", "judge", "records"}
IMPORTED_LATE = {  # heavy or optional libraries, and the modules that are imported late for their sake
    "anthropic",
    "openai",
    "google",
    "xllamacpp",
    "jsonschema",
    "git",
    "github",
    "scipy",
    "deepdiff",
    "httpx2",
    "rapidfuzz",
    "re2",
    "importlib",
    "skill_evaluator.providers.transport",
    "skill_evaluator.audit",
    "skill_evaluator.display.chart_style",
    "skill_evaluator.site.build",
}


@cache
def modules() -> dict[str, ast.Module]:
    trees = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "__main__"):
            trees[name] = ast.parse(path.read_text())
    return trees


def package_of(module: str) -> str:
    return module.partition(".")[0]


@cache
def statements(module: str) -> Sequence[tuple[ast.stmt, bool]]:
    """Return the statements of a module, and of each whether it stands in a function."""
    found: list[tuple[ast.stmt, bool]] = []

    def visit(body: Iterable[ast.stmt], late: bool) -> None:
        for node in body:
            found.append((node, late))
            inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for part in ("body", "orelse", "finalbody"):
                visit(getattr(node, part, ()), inside)
            for branch in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                visit(branch.body, inside)

    visit(modules()[module].body, late=False)
    return found


def imported_names(module: str, *, late: bool = False) -> Iterator[str]:
    """Return what a module imports by name; with `late` only in functions."""
    for node, inside in statements(module):
        if inside or not late:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""


def imported_modules(module: str) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in it."""
    imported = set()
    for node, _ in statements(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skill_evaluator"):
            base = (node.module or "").removeprefix("skill_evaluator").lstrip(".")
            for alias in node.names:
                deeper = f"{base}.{alias.name}".lstrip(".")
                imported.add(deeper if deeper in modules() else base)
    return imported - {""}


def test_table_lists_every_package() -> None:
    packages = {package_of(module) for module in modules()}
    assert len(TABLE) <= 30, "the table has more than 30 rows; move the new package into another one"
    missing = packages - set(TABLE)
    assert not missing, f"{sorted(missing)} are at the root; move them into a package, or add a row to TABLE"
    assert set(TABLE) == packages, f"{sorted(set(TABLE) - packages)} have a row in TABLE but no file; delete the row"


def test_module_imports_only_from_packages_above() -> None:
    offenders = [
        f"{module} imports {imported}, but {package_of(imported)} is below {package_of(module)} in the table: "
        f"move the imported part into {package_of(module)} or higher, or pass it as an argument"
        for module in modules()
        for imported in imported_modules(module)
        if TABLE.index(package_of(imported)) > TABLE.index(package_of(module))
    ]
    assert not offenders, "\n".join(offenders)


def test_module_imports_only_from_above_inside_a_package() -> None:
    offenders = []
    for outer, order in INSIDE.items():
        inside = {module: module.split(".")[1] for module in modules() if package_of(module) == outer and "." in module}
        assert set(inside.values()) == set(order), f"{outer} holds {sorted(set(inside.values()))}, INSIDE says {order}"
        offenders += [
            f"{module} imports {imported}, but in {outer} the order is {' → '.join(order)}: move the imported part up"
            for module, place in inside.items()
            for imported in imported_modules(module)
            if imported in inside and order.index(inside[imported]) > order.index(place)
        ]
    assert not offenders, "\n".join(offenders)


def test_root_of_the_package_has_few_modules() -> None:
    files = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(files) <= 11, f"{len(files)} files at the root; move the newest of {files} into a package"


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node, _ in statements(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice, f"give each of these classes a name of its own: {twice}"


def test_imports_have_no_cycle() -> None:
    imports = {module: imported_modules(module) - {module} for module in modules()}
    state: dict[str, str] = defaultdict(str)

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert state[module] != "open", f"an import cycle: {' → '.join((*path, module))}; move the shared part out"
        if not state[module]:
            state[module] = "open"
            for imported in imports.get(module, ()):
                visit(imported, (*path, module))
            state[module] = "done"

    for module in imports:
        visit(module, ())


def test_wrapped_library_is_imported_only_by_its_wrapper() -> None:
    for library, importer in ONLY_IMPORTER.items():
        importers = [
            module for module in modules() if library in {name.split(".")[0] for name in imported_names(module)}
        ]
        assert importers == [importer], f"{library} is imported by {importers}; use {importer} instead"


def test_late_imports_are_heavy_or_optional_libraries() -> None:
    offenders = [
        f"{module} imports {name} inside a function: import it at the top, or add it to IMPORTED_LATE if it is slow"
        for module in modules()
        for name in imported_names(module, late=True)
        if not {name, name.split(".")[0]} & IMPORTED_LATE
    ]
    assert not offenders, "\n".join(offenders)


def test_command_imports_only_requests_api_and_reports() -> None:
    nodes = [node for module in modules() for node, _ in statements(module)]
    decorated = [node for node in nodes if isinstance(node, ast.ClassDef) and node.decorator_list]
    classes = {node.name for node in decorated if ast.unparse(node.decorator_list[0]) in ("options", "cli.options")}
    functions = {  # that run the request of a command
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].annotation
        if ast.unparse(node.args.args[0].annotation).rpartition(".")[2] in classes
    }
    options = {"options", *classes, *functions}
    found = set()
    for module in modules():
        if package_of(module) != "commands":
            continue
        for node, _ in statements(module):
            base = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            within = base.removeprefix("skill_evaluator.")
            if base.startswith("skill_evaluator.") and package_of(within) not in SHOWN_BY:
                found |= {module.partition(".")[2]} if {alias.name for alias in node.names} - options else set()
    new = sorted(found - WITH_LOGIC)
    assert not new, f"{new} import more than requests, api, {sorted(SHOWN_BY)}: move the logic into another package"
    done = sorted(WITH_LOGIC - found)
    assert not done, f"{done} comply; take them out of WITH_LOGIC"


def test_module_has_a_docstring_and_at_most_650_lines() -> None:
    silent = [module for module, tree in modules().items() if not ast.get_docstring(tree)]
    assert not silent, f"{silent} have no docstring; say what the module holds"
    lines = {module: tree.body[-1].end_lineno or 0 for module, tree in modules().items()}
    long = {module: count for module, count in lines.items() if count > 650}
    assert not long, f"{long}: more than 650 lines; split each module by its topics"
