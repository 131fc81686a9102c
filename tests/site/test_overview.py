"""The overview's rows: a verdict there is one that stands against the anchor, too."""

from pathlib import Path

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import built_site, site_page, states, words

RIGHT = {f"case-{at}": [0.9, 0.95] for at in range(12)}
WORSE = {name: [0.2, 0.25] for name in RIGHT}
WORST = {name: [0.0, 0.05] for name in RIGHT}
BETTER = {name: [1.0, 1.0] for name in RIGHT}


@pytest.mark.parametrize(("last", "verdict"), [(RIGHT, "unchanged"), (BETTER, "improved")])
def test_a_version_that_mends_the_one_before_has_improved_only_against_the_anchor(
    last: dict[str, list[float | str]], verdict: str, tmp_path: Path
) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WORSE), a_run("1.2.0", 3, last))
    site = built_site(library)
    row = site_page(site, "index.html").select_one("table.overview tbody tr")
    assert row["data-verdict"].split("\n")[0] == verdict
    assert "1 ▲ improved" in [words(tile) for tile in site_page(site, "index.html").select(".tile")]
    newest = words(site_page(site, "changes.html").find(class_="change-of").summary)
    assert newest.startswith(f"{SKILL} 1.2.0 ▲ improved")


def shipped(site: Path) -> str:
    """The advice on the page of the component."""
    return words(site_page(site, f"components/{SKILL}.html").find(class_="advice"))


def test_pages_ship_the_version_that_history_ships(tmp_path: Path) -> None:
    """The ranking is of the newest version, which may be worse with one model alone; so may the one before it be."""
    library = Library(tmp_path)
    m = [a_run(f"1.{at}.0", at + 1, cases) for at, cases in enumerate((RIGHT, RIGHT, WORSE, WORST))]
    n = [a_run(f"1.{at}.0", at + 6, BETTER, model_id="n") for at in range(4)]
    keep(library, m[0], n[0])
    ship = shipped(built_site(library))
    assert ship.startswith(
        "to ship: 1.0.0 with n (there is no lower version to judge it against; n is significantly better"
    )
    keep(library, *m[1:], *n[1:])
    site = built_site(library)
    ship = shipped(site)
    assert ship.startswith("to ship: 1.1.0 with n (1.3.0: regressed against 1.2.0 on m")
    assert "1.3.0 : ship 1.1.0 with n instead" in words(states(site)[SKILL])
    assert all(ship in library.call(*words).out for words in (("history", SKILL), ("leaderboard",)))
    assert "skill-evaluator explain" not in "".join(path.read_text() for path in (site / "compare").rglob("*.html"))


def test_what_changed_says_the_worst_since_the_first_version(tmp_path: Path) -> None:
    library = Library(tmp_path)
    unsure = {name: [0.92 if at else 0.6, 0.9] for at, name in enumerate(RIGHT)}
    keep(library, *(a_run(f"1.{at}.0", at + 1, cases) for at, cases in enumerate((RIGHT, BETTER, unsure))))
    keep(library, *(a_run(f"1.{at}.0", at + 6, cases, model_id="n") for at, cases in enumerate((WORSE, RIGHT, RIGHT))))
    page = site_page(built_site(library), "changes.html")
    assert "inconclusive since 1.0.0" in words(page.find(class_="change-of").find("p", recursive=False))
