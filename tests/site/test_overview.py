"""The overview's rows: a verdict there is one that stands against the anchor, too."""

from pathlib import Path

import pytest

from tests.support.library import Library
from tests.support.records import a_run, keep
from tests.support.sites import build_undrawn, site_data

RIGHT = {f"case-{at}": [0.9, 0.95] for at in range(12)}
WORSE = {name: [0.2, 0.25] for name in RIGHT}
BETTER = {name: [1.0, 1.0] for name in RIGHT}


@pytest.mark.parametrize(("last", "verdict"), [(RIGHT, "unchanged"), (BETTER, "improved")])
def test_a_version_that_mends_the_one_before_has_improved_only_against_the_anchor(
    last: dict[str, list[float | str]], verdict: str, tmp_path: Path
) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WORSE), a_run("1.2.0", 3, last))
    site = build_undrawn(library)
    (row,) = site_data(site, "overview")["rows"]
    assert row["verdict"] == verdict
    newest = max(site_data(site, "changes")["rows"], key=lambda change: change["version"])
    assert (newest["version"], newest["verdict"]) == ("1.2.0", "improved")
