"""The import table of DESIGN: a module imports only from rows above its own, and every module has a row."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tools" / "skill_evaluator"

# From the bottom of the stack up. A name stands for a module, or for a folder and all that is in it.
TABLE = (
    "errors",
    "workflow_commands",
    "text",
    "stats",
    "randomisation",
    "paired_tests",
    "plugins",
    "files",
    "config",
    "repository",
    "contract",
    "metrics.text_overlap",
    "metrics.embedding",
    "metrics.rules",
    "metrics.comparators",
    "metrics.schema_paths",
    "metrics.fieldplan",
    "metrics.forms",
    "metrics.leaves",
    "metrics.assignment",
    "metrics.sides",
    "metrics.comparison",
    "metrics.base",
    "metrics.answers",
    "metrics.per_field",
    "metrics.filled",
    "metrics.field_values",
    "metrics.field_profile",
    "metrics.krippendorff_alpha",
    "metrics.categories",
    "metrics.pass_hat_k",
    "metrics.name_drift",
    "metrics.contract_errors",
    "metrics.schema_valid",
    "metrics.exact_match",
    "metrics.field_level_f1",
    "metrics.jaccard",
    "metrics.tree_distance",
    "metrics.tree_similarity",
    "metrics.pairwise_exact_match",
    "metrics.pairwise_field_f1",
    "metrics.distinct_outputs",
    "metrics.field_stability",
    "metrics.array_lengths",
    "metrics.total_agreement",
    "metrics",
    "field_settings",
    "parsed",
    "components",
    "versions",
    "scenarios",
    "questions",
    "fixtures",
    "providers.base",
    "providers.secrets",
    "providers.weights",
    "providers.local_engine",
    "providers.anthropic",
    "providers.google",
    "providers.local",
    "providers.openai",
    "providers.replay",
    "providers.kinds",
    "providers",
    "records",
    "prompting",
    "runner.replicates",
    "runner.plan",
    "runner.prices",
    "runner.budget",
    "runner.limits",
    "runner.progress",
    "runner.journal",
    "runner.runs",
    "runner.engine",
    "runner.execute",
    "runner",
    "option_texts",
    "option_letters",
    "choice_statements",
    "choices",
    "parsing",
    "scoring",
    "summaries",
    "field_summaries",
    "recording",
    "leaderboard",
    "estimating",
    "regression.comparability",
    "regression.measures",
    "regression.policy",
    "regression.results",
    "regression.verdicts",
    "regression.choosing",
    "regression.archive",
    "regression.localising",
    "regression.comparing",
    "regression.adaptive",
    "regression.calibration",
    "regression.change_points",
    "regression.history",
    "regression.sizing",
    "regression",
    "audit.cube",
    "audit.results",
    "audit.holes",
    "audit.tables",
    "audit.outcome_tables",
    "audit.reading",
    "audit.grades",
    "audit.figures",
    "audit.noise",
    "audit.intervals",
    "audit.grade_odds",
    "audit.neutrality",
    "audit.separating",
    "audit.regimes",
    "audit.cautions",
    "audit.auditing",
    "audit.manifest",
    "audit.materials",
    "audit.drawing",
    "audit.cells",
    "audit.gathering",
    "audit",
    "pipeline.decisions",
    "pipeline.recorded",
    "pipeline.manifest",
    "pipeline.matrix",
    "pipeline.audit_plan",
    "pipeline.collecting",
    "pipeline.outcome",
    "pipeline.publishing",
    "pipeline.bookkeeping",
    "pipeline.history",
    "pipeline",
    "linting",
    "hints",
    "key_balance",
    "array_matches",
    "explaining",
    "field_views",
    "reports",
    "platforms.base",
    "platforms.github",
    "platforms",
    "api",
    "scaffolding",
    "commands.inputs",
    "commands.asking",
    "commands.audit_inputs",
    "commands.audit_runs",
    "commands.audit_dry_run",
    "commands.verdicts",
    "commands.resuming",
    "commands",
    "cli.options",
    "cli.evaluating",
    "cli.comparing",
    "cli.workspace",
    "cli.pipeline",
    "cli.auditing",
    "cli",
    "__main__",
)
_ONLY_IMPORTER = {"yaml": "files", "git": "repository"}
_LATE = {
    "anthropic",
    "openai",
    "google",
    "xllamacpp",
    "git",
    "github",
    "scipy",
    "genai_prices",
    "httpx2",
    "filelock",
    "rapidfuzz",
    "sentence_transformers",
    "torch",
    "transformers",
    "traceback",
    "importlib",
}
_LATE_MODULES = {  # for their library
    "skill_evaluator.providers.local_engine",
    "skill_evaluator.field_settings",
    "skill_evaluator.regression.adaptive",
    "skill_evaluator.regression.comparing",
    "skill_evaluator.reports.audit_map",
    "skill_evaluator.reports.audit_pictures",
    "skill_evaluator.reports.chart_style",
}


def _modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        if name != "__init__":
            found[name] = ast.parse(path.read_text())
    return found


MODULES = _modules()


def _row(module: str) -> int:
    while module not in TABLE:
        parent, dot, _ = module.rpartition(".")
        assert dot, f"{module} has no row in the table of tests/test_architecture.py"
        module = parent
    return TABLE.index(module)


def _imports(tree: ast.Module) -> set[str]:
    """Modules of the package that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skill_evaluator"):
            base = (node.module or "").removeprefix("skill_evaluator").lstrip(".")
            for alias in node.names:
                deeper = f"{base}.{alias.name}".lstrip(".")
                found.add(deeper if deeper in MODULES else base)
    return found - {""}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_rows_above_its_own(module: str) -> None:
    for imported in _imports(MODULES[module]):
        same_folder = _row(imported) == _row(module) and imported.rpartition(".")[0] == module.rpartition(".")[0]
        assert _row(imported) < _row(module) or same_folder, f"{module} imports {imported}, which is not above it"


@pytest.mark.parametrize(("library", "importer"), _ONLY_IMPORTER.items())
def test_a_library_of_one_module_is_imported_nowhere_else(library: str, importer: str) -> None:
    def imports_it(tree: ast.Module) -> bool:
        return any(
            (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == library for alias in node.names))
            or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == library)
            for node in ast.walk(tree)
        )

    assert [name for name, tree in MODULES.items() if imports_it(tree)] == [importer]


@pytest.mark.parametrize("module", MODULES)
def test_an_import_inside_a_function_is_a_heavy_optional_library_or_a_command(module: str) -> None:
    for function in ast.walk(MODULES[module]):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                late_command = module.startswith("cli.") and name.startswith("skill_evaluator.commands")
                late_library = name in _LATE_MODULES
                assert late_command or late_library or name.split(".")[0] in _LATE, f"{module} imports {name} late"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is_and_stays_readable(module: str) -> None:
    assert ast.get_docstring(MODULES[module]), f"{module} has no docstring"
    lines = MODULES[module].body[-1].end_lineno or 0
    assert lines <= 320, f"{module} has {lines} lines"
