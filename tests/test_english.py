"""Exact rules for the English of the package. They are a floor: a text that keeps them can still be unclear."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import PACKAGE

# Pronouns, participles and adverbs say nothing about a value. The names of JSON and settings keys are exempt.
DENIED_NAMES = frozenset(
    """one other mine own given said asked found known left most place places words why at odd told kept these there
    """.split()  # noqa: SIM905 - as a list it is 21 lines
)
UNCLEAR_START = re.compile(r"(Return|Say|Yield|Tell|Give)\s(what|how|why|which|who|of|by)\b")
UNCLEAR_NONE = re.compile(r"\b(None|nothing|none)\s(where|without|for\s(one|those|these|what)\b)")
OLD_LIMITS = re.compile(r"_?(MOST|LONGEST|FEWEST|LEAST|DEEPEST)_\w+")
FRAGMENT = re.compile(
    r"#\s*(of|by|with|without|which|that|who|whose|for|in|at|on|from|to|as|because|since|so|else|but|and|or|where|when"
    r"|until|per|than|like)\b",
    re.IGNORECASE,
)
TEXTS = {path.relative_to(PACKAGE): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {path: ast.parse(text) for path, text in TEXTS.items()}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_variables_and_parameters_are_nouns() -> None:
    assert [f"{path}:{line} {name}" for path, line, name in _names() if name in DENIED_NAMES] == []


def test_limits_are_named_max_and_min() -> None:
    assert [f"{path} {name}" for path, text in TEXTS.items() for name in OLD_LIMITS.findall(text)] == []


def test_docstring_names_what_is_returned_and_when_it_is_none() -> None:
    unclear = [
        f"{path}: {text.splitlines()[0]}"
        for path, text in _docstrings()
        if UNCLEAR_START.match(text) or UNCLEAR_NONE.search(text)
    ]
    assert unclear == []


def test_comment_behind_code_is_no_fragment_of_a_sentence() -> None:
    fragments = [
        f"{path}:{token.start[0]} {token.string}"
        for path, text in TEXTS.items()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip() and FRAGMENT.match(token.string)
    ]
    assert fragments == []


def _names() -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and name of each variable and parameter, except those of comprehensions and class fields."""
    for path, tree in TREES.items():
        targets = [part.target for part in ast.walk(tree) if isinstance(part, ast.comprehension)]
        exempt = {id(name) for target in targets for name in ast.walk(target)}
        exempt |= {id(name) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) for name in [node.target]}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                yield path, node.lineno, node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in exempt:
                yield path, node.lineno, node.id


def _docstrings() -> Iterator[tuple[Path, str]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                yield path, text
