"""The Python API reference, docs/python.md: signatures and docstrings of the public functions and classes."""

import ast
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = """# Python API reference

Generated from the docstrings. [The guide](use-elsewhere.md) has examples.
"""
PUBLIC: Mapping[str, Mapping[str, str]] = {  # by module the title of each name
    "scoring/scores.py": {
        name: name for name in ("score_output", "score_text", "OutputScorer", "OutputScores", "LeafRow")
    },
    "api/__init__.py": {"Library": "Library"},
    "api/judging.py": {
        **{name: name for name in ("JudgeOptions", "JudgedOptions", "DraftOptions")},
        "Judges": "Library.judge",
    },
    "api/auditing.py": {"Audits": "Library.audits"},
}
MAX_WIDTH = 100


def api_reference() -> str:
    return HEAD + "".join(section for module, titles in PUBLIC.items() for section in _sections(module, titles))


def _sections(module: str, titles: Mapping[str, str]) -> Iterator[str]:
    tree = ast.parse((ROOT / "tools" / "skill_evaluator" / module).read_text())
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name not in titles:
            continue
        title = titles[node.name]
        if isinstance(node, ast.FunctionDef):
            yield f"\n## {title}\n\n```text\n{_described(node)}\n```\n"
            continue
        yield f"\n## {title}\n\n```text\n{ast.get_docstring(node)}\n```\n"
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                yield f"\n### {title}.{member.name}\n\n```text\n{_described(member)}\n```\n"


def _described(function: ast.FunctionDef) -> str:
    decorators = {ast.unparse(each) for each in function.decorator_list}
    returned = "" if function.returns is None else ast.unparse(function.returns).strip("'")
    function.args.args = [each for each in function.args.args if each.arg != "self"]
    if decorators & {"property", "cached_property"}:
        line = f"{function.name}: {returned}"
    else:
        line = f"{function.name}({ast.unparse(function.args)}) -> {returned}"
    unbroken = line.replace(" | ", "\0|\0").replace(": ", ":\0")  # so that lines end after an argument
    wrapped = textwrap.fill(unbroken, MAX_WIDTH, subsequent_indent="    ", break_long_words=False)
    return f"{wrapped.replace(chr(0), ' ')}\n\n{ast.get_docstring(function) or ''}".rstrip()
