"""`site build` where something is broken: the rest is built, and what is not there is said with why and what to do."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.audit.cubes import an_audit
from tests.support.library import SKILL, Ended, Library
from tests.support.records import a_run, keep, keep_in
from tests.support.sites import contents, site_page, states, words

pytest.importorskip("vl_convert")
CASES = {"alpha": [1.0, 0.5], "beta": [0.75, 0.75], "gamma": [1.0, 1.0]}
OTHER = "other"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Two versions of two components, and their site."""
    library = Library(tmp_path_factory.mktemp("whole"))
    keep(library, a_run("1.0.0", 1, CASES), a_run("1.1.0", 2, CASES))
    library.write(f"components/{OTHER}/prompt.md", f"---\nname: {OTHER}\nversion: 1.0.0\n---\nDo it.\n")
    keep_in(library.root / "components" / OTHER, a_run("1.0.0", 1, CASES, skill=OTHER))
    assert built(library).code == 0
    return library


@pytest.fixture
def library(whole: Library, tmp_path: Path) -> Library:
    """A copy of it."""
    return whole.copy(tmp_path)


def built(library: Library) -> Ended:
    return library.call("site", "build", "--out", "site")


def leaderboard(library: Library) -> Path:
    path = library.component / "leaderboard.json"
    path.write_text(path.read_text()[:200])
    return path


def record(library: Library) -> Path:
    path = sorted((library.component / "evals" / "records").iterdir())[-1]
    path.write_text('{"run_id": 1}')
    return path


def prompt(library: Library) -> Path:
    return library.write(f"components/{SKILL}/prompt.md", "---\nname: [\n---\nDo it.\n")


@pytest.mark.parametrize("broken", [leaderboard, record, prompt])
def test_unreadable_component_is_listed_and_hides_no_other(library: Library, broken: Callable[[Library], Path]) -> None:
    path = broken(library)
    ended = built(library)
    assert ended.code == 4
    where = str(path.relative_to(library.root))
    assert where in ended.err
    assert "repair the named file, or restore it from git" in ended.err
    lines = states(library.root / "site")
    assert (where in words(lines[SKILL]), lines[SKILL].a) == (True, None)
    assert lines[OTHER].a is not None
    assert [path.stem for path in (library.root / "site/components").iterdir()] == [OTHER]
    assert "Traceback" not in ended.err


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Have the system refuse to let a file grow beyond so many bytes, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_leaves_the_older_site_unchanged(library: Library) -> None:
    before = contents(library.root / "site")
    keep(library, a_run("1.2.0", 3, CASES))
    with small_files(200):
        ended = built(library)
    assert ended.code == 2
    assert "cannot write site/" in ended.err
    assert contents(library.root / "site") == before
    assert built(library).code == 0
    assert contents(library.root / "site") != before


def test_audit_that_cannot_be_shown_is_listed(library: Library) -> None:
    library.write("audits/broken/report.json", "{")
    names = ("a\nb", "x\u200by", "y" * 230, "a b")
    for name in (*names, "2026"):
        library.write(f"audits/{name}/report.json", an_audit().model_dump_json())
    ended = built(library)
    assert (ended.code, ended.err.count("rename its folder")) == (4, len(names))
    assert "audits/broken/report.json" in ended.err
    assert OTHER in states(library.root / "site")
    assert words(site_page(library.root / "site", "audit.html").find(class_="crumbs")).endswith("2026")


def test_partial_files_of_a_killed_build_are_removed(library: Library) -> None:
    half = library.write(f"site/cases/{SKILL}/.alpha.html.a8x_kq2z", "a document")
    mine = library.write("site/.well-known/app.js", "my own")
    assert built(library).code == 0
    assert (half.exists(), mine.exists()) == (False, True)
