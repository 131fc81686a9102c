"""Numbers are formatted in one module."""

import ast

from tests.test_architecture import modules


def test_reports_format_no_number_themselves() -> None:
    found = [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module, tree in modules().items()
        if module.startswith("reports.")
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
    ]
    assert not [place for place in found if ".judg" not in place]
