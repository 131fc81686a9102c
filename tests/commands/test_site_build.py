"""`site build`: every figure is a record's, nothing that did not change is written, and nothing stays that must go."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.records.record import read_record

from tests.support.git import GitRepository
from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import contents, states, words

pytest.importorskip("vl_convert")
CASES = {"alpha": [1.0, 0.5], "beta": [0.75, 0.75], "gamma": [1.0, 1.0]}
WORSE = {"alpha": [0.0, 0.0], "beta": [0.25, 0.0], "gamma": [0.0, 0.25]}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Two versions of two models; the second version of one was not finished. For a test that changes nothing."""
    library = Library(tmp_path_factory.mktemp("shown"))
    summary = {"mean": 0.8, "strict_mean": 0.8125, "stdev": 0.1, "n": 6, "n_cases": 3, "ci95": (0.7, 0.9)}
    figures: dict[str, Any] = {
        "accuracy": {"field_level_f1": summary},
        "reproducibility": {"pairwise_exact_match": summary},
    }
    keep(
        library,
        a_run("1.0.0", 1, CASES, **figures),
        a_run("1.1.0", 2, WORSE, **figures, cost_usd=0.012),
        a_run("1.0.0", 3, CASES, model_id="n", **figures),
        a_run("1.1.0", 4, CASES, model_id="n", complete=False, **figures),
    )
    assert library.call("site", "build", "--out", "site").code == 0
    return library


@pytest.fixture
def built(shown: Library, tmp_path: Path) -> Library:
    """A copy of it."""
    return shown.copy(tmp_path)


def test_components_without_runs_are_listed_with_the_reason(built: Library) -> None:
    built.write("components/fresh/prompt.md", "---\nname: fresh\nversion: 0.1.0\n---\nDo it.\n")
    built.write("components/odd/prompt.md", "---\nname: odd\nversion: one\n---\nDo it.\n")
    built.write("components/ready/prompt.md", "---\nname: ready\nversion: 0.2.0\n---\nDo it.\n")
    built.write("fixtures/ready/cases/a/document.md", "A document.\n")
    assert built.call("site", "build", "--out", "site").code == 4  # one of them is in no order
    lines = states(built.root / "site")
    assert words(lines["fresh"]) == "fresh : no fixtures: fixtures/fresh has no cases"
    assert words(lines["ready"]) == "ready : not evaluated yet; skill-evaluator evaluate ready records its first run"
    assert "not semver" in words(lines["odd"])
    assert {name for name, line in lines.items() if "regressed" in line["class"]} == {SKILL, "odd"}


def test_repeated_build_writes_only_changed_pages(built: Library) -> None:
    site = built.root / "site"
    built.write("components/other/prompt.md", "---\nname: other\nversion: 0.1.0\n---\nDo it.\n")
    built.call("site", "build", "--out", "site")
    before = contents(site)
    stamps = {name: (site / name).stat().st_mtime_ns for name in before}
    assert "0 files written, 0 removed" in built.call("site", "build", "--out", "site").out
    assert {name: (site / name).stat().st_mtime_ns for name in before} == stamps
    keep(built, a_run("1.2.0", 9, CASES))
    built.call("site", "build", "--out", "site")
    after = contents(site)
    assert {name for name in after if after[name] != before.get(name)} == {
        "index.html",
        "changes.html",
        f"components/{SKILL}.html",
        *(f"verdicts/{SKILL}/{version}.html" for version in ("1.0.0", "1.1.0", "1.2.0")),
        *(f"compare/{SKILL}/{version}.html" for version in ("1.1.0", "1.2.0", "m--n")),
        *(f"cases/{SKILL}/{case_id}.html" for case_id in CASES),
    }


def test_build_removes_pages_of_removed_components_alone(built: Library) -> None:
    site = built.root / "site"
    (site / "CNAME").write_text("skills.example.org")
    built.component.rename(built.root / "gone")
    built.write("components/other/prompt.md", "---\nname: other\nversion: 0.1.0\n---\nDo it.\n")
    assert f"{5 + len(CASES)} removed" in built.call("site", "build", "--out", "site").out
    assert not (site / "components" / f"{SKILL}.html").exists()
    assert not [*(site / "cases").glob("*/*.html")]
    assert (site / "CNAME").exists()


def test_build_changes_no_file_that_it_did_not_write(built: Library) -> None:
    mine = built.write("papers/thesis.md", "mine")
    assert built.call("site", "build", "--out", "papers").refuses("nor a site")
    assert [path.name for path in mine.parent.iterdir()] == ["thesis.md"]
    linked = built.write("elsewhere/keep.txt", "keep")
    (built.root / "site" / "judges").symlink_to(linked.parent)
    assert built.call("site", "build", "--out", "site").code == 0
    assert linked.exists()
    assert built.call("site", "build", "--components", "nowhere").refuses("name another folder with --components DIR")


def test_records_of_another_branch_are_shown(built: Library) -> None:
    keep(built, a_run("1.2.0", 5, CASES))
    assert built.call("site", "build", "--out", "site").code == 0
    repository = GitRepository(built.root)
    repository.commit()
    repository.git("branch", "records")
    records = sorted((built.component / "evals" / "records").iterdir())
    for path in (*records[1:], built.component / "leaderboard.json"):
        path.unlink()
    keep(built, read_record(records[0]))  # alone is on this branch

    assert built.call("site", "build", "--out", "branch", "--recorded", "records", "--recorded", "none").code == 0

    assert contents(built.root / "branch") == contents(built.root / "site")
