"""The import table: a room imports only from rooms above it, and inside a room files have their own order."""

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
    "processes",
    "repository",
    "plugins",
    "display",
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
INSIDE = {  # the second level of large rooms, from the ground up
    "verdicts": ("decide", "planning", "history"),
    "audit": (
        "request",
        "results",
        "cube",
        "manifest",
        "drawing",
        "gathering",
        "calls",
        "statistics",
        "auditing",
        "family",
        "drafting",
        "wording",
        "charts",
        "page",
        "printing",
    ),
}
ONLY_IMPORTER = {"yaml": "library.reading"}
SHOWN_BY = {"api", "display", "errors", "reports", "text"}  # the rooms that a command imports, beside its options
# the files in commands/ that import more; it may only get shorter
TELL_STORY = {"audit", "ci", "evaluate", "init", "judge", "records"}
IMPORTED_LATE = {  # heavy or optional libraries, and the modules that are imported late for their sake
    "anthropic",
    "openai",
    "google",
    "xllamacpp",
    "git",
    "github",
    "numpy",
    "scipy",
    "deepdiff",
    "genai_prices",
    "imagesize",
    "asyncio",
    "ctypes",
    "watchfiles",
    "http.client",
    "rich.console",
    "rich.progress",
    "rich.table",
    "rich.text",
    "httpx2",
    "filelock",
    "rapidfuzz",
    "re2",
    "traceback",
    "importlib",
    "pydantic",
    "skill_evaluator.files",
    "skill_evaluator.library.config",
    "skill_evaluator.library.sources",
    "skill_evaluator.ci.fixtures",
    "skill_evaluator.providers.redaction",
    "skill_evaluator.providers.transport",
    "skill_evaluator.audit",
    "skill_evaluator.display.chart_style",
    "skill_evaluator.api.auditing",
    "skill_evaluator.api.ci",
    "skill_evaluator.api.judging",
    "skill_evaluator.site.build",
    "skill_evaluator.site.server",
}


@cache
def modules() -> dict[str, ast.Module]:
    trees = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "__main__"):
            trees[name] = ast.parse(path.read_text())
    return trees


def room(module: str) -> str:
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


def test_the_table_is_short_and_names_every_room() -> None:
    rooms = {room(module) for module in modules()}
    assert len(TABLE) <= 30, "the table has more than 30 rows; put the new room inside an old one"
    missing = rooms - set(TABLE)
    assert not missing, f"{sorted(missing)} stand at the package's root; move them into a room, or add a row to TABLE"
    assert set(TABLE) == rooms, f"{sorted(set(TABLE) - rooms)} have a row in TABLE and no file; delete the row"


def test_a_module_imports_only_from_rooms_above_its_own() -> None:
    offenders = [
        f"{module} imports {imported}, but {room(imported)} stands below {room(module)} in the table: "
        f"move what it needs up into {room(module)} or higher, or pass it in as an argument"
        for module in modules()
        for imported in imported_modules(module)
        if TABLE.index(room(imported)) > TABLE.index(room(module))
    ]
    assert not offenders, "\n".join(offenders)


def test_inside_a_large_room_a_module_imports_only_from_above() -> None:
    offenders = []
    for outer, order in INSIDE.items():
        inside = {module: module.split(".")[1] for module in modules() if room(module) == outer and "." in module}
        assert set(inside.values()) == set(order), f"{outer} holds {sorted(set(inside.values()))}, INSIDE says {order}"
        offenders += [
            f"{module} imports {imported}, but in {outer} the order is {' → '.join(order)}: move what it needs up"
            for module, place in inside.items()
            for imported in imported_modules(module)
            if imported in inside and order.index(inside[imported]) > order.index(place)
        ]
    assert not offenders, "\n".join(offenders)


def test_the_root_of_the_package_is_short() -> None:
    files = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(files) <= 11, f"{len(files)} files at the package's root; move the newest of {files} into a room"


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node, _ in statements(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice, f"give each of these classes a name of its own: {twice}"


def test_no_module_imports_itself_in_a_circle() -> None:
    imports = {module: imported_modules(module) - {module} for module in modules()}
    state: dict[str, str] = defaultdict(str)

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert state[module] != "open", f"a circle of imports: {' → '.join((*path, module))}; move the shared part out"
        if not state[module]:
            state[module] = "open"
            for imported in imports.get(module, ()):
                visit(imported, (*path, module))
            state[module] = "done"

    for module in imports:
        visit(module, ())


def test_a_library_of_one_module_is_imported_nowhere_else() -> None:
    for library, importer in ONLY_IMPORTER.items():
        importers = [
            module for module in modules() if library in {name.split(".")[0] for name in imported_names(module)}
        ]
        assert importers == [importer], f"{library} is imported by {importers}; use {importer} instead"


def test_an_import_inside_a_function_is_a_heavy_or_optional_library() -> None:
    offenders = [
        f"{module} imports {name} inside a function: import it at the top, or add it to IMPORTED_LATE if it is slow"
        for module in modules()
        for name in imported_names(module, late=True)
        if not {name, name.split(".")[0]} & IMPORTED_LATE
    ]
    assert not offenders, "\n".join(offenders)


def test_a_command_imports_only_its_options_the_api_and_what_shows() -> None:
    options = {
        node.name
        for module in modules()
        for node, _ in statements(module)
        if isinstance(node, ast.ClassDef) and "options" in map(ast.unparse, node.decorator_list)
    }
    found = set()
    for module in modules():
        if room(module) != "commands" or module in ("commands", "commands.options"):
            continue
        for node, _ in statements(module):
            base = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            within = base.removeprefix("skill_evaluator.")
            if base.startswith("skill_evaluator.") and within != "commands.options" and room(within) not in SHOWN_BY:
                found |= {module.partition(".")[2]} if {alias.name for alias in node.names} - options else set()
    new = sorted(found - TELL_STORY)
    assert not new, f"{new} import more than options, api, {sorted(SHOWN_BY)}: move the story behind them into its room"
    done = sorted(TELL_STORY - found)
    assert not done, f"{done} comply; take them out of TELL_STORY"


def test_a_module_says_what_it_is_and_stays_readable() -> None:
    silent = [module for module, tree in modules().items() if not ast.get_docstring(tree)]
    assert not silent, f"{silent} have no docstring; say what goes in and what comes out"
    lines = {module: tree.body[-1].end_lineno or 0 for module, tree in modules().items()}
    long = {module: count for module, count in lines.items() if count > 650}
    assert not long, f"{long}: more than 650 lines; split each where it says a second thing"
