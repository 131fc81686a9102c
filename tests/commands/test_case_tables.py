"""Cases in one file, through the real command line: every command sees them as it sees folders."""

import shutil
from pathlib import Path

from tests.support.chat_server import notice
from tests.support.git import git
from tests.support.library import CASES, SKILL, Library, comparable, read

FOLDER, TABLE = f"fixtures/{SKILL}/cases", f"fixtures/{SKILL}/cases.jsonl"


def in_one_file(library: Library, *case_ids: str) -> None:
    """Move cases from their folders into the table."""
    rows = []
    for case_id in case_ids:
        folder = library.root / FOLDER / case_id
        truth = read(folder / "ground_truth.json")
        rows.append({"id": case_id, "document": (folder / "document.md").read_text(), "ground_truth": truth})
        shutil.rmtree(folder)
    library.lines(TABLE, *rows)
    if len(case_ids) == len(CASES):
        (library.root / FOLDER).rmdir()


def test_a_run_on_a_table_is_the_run_on_the_folders(library: Library, tmp_path: Path) -> None:
    moved, mixed = library.copy(tmp_path / "moved"), library.copy(tmp_path / "mixed")
    in_one_file(moved, *CASES)
    in_one_file(mixed, "beta")
    records = []
    for each in (library, moved, mixed):
        assert each.skill_evaluator("lint", "--strict").code == 0
        assert each.evaluate_here().code == 0
        records.append(comparable(each.records()[0]))
        explained = each.call("explain", each.run_folder().name, "--case", "beta", "--format", "json")
        assert explained.json["cases"][0]["truth"] == {"title": "beta", "year": 2024}
    assert records[0] == records[1] == records[2]


def test_plan_and_the_site_see_a_table(library: Library) -> None:
    in_one_file(library, *CASES)
    git(library.root, "init", "-q")
    git(library.root, "add", "-A")
    git(library.root, "commit", "-qm", "all")
    planned = library.call("ci", "plan", "--format", "json").json
    assert [list(entry["cases"]) for entry in planned["runs"]] == [list(CASES)]
    assert library.evaluate_here().code == 0
    (record,) = library.records()
    assert record["dataset_commit"] == git(library.root, "rev-parse", "HEAD").strip()
    assert library.call("site", "build", "--out", "site").code == 0
    assert (library.root / "site" / "cases" / SKILL / "alpha.html").is_file()


def test_a_csv_with_its_columns_declared_is_asked_in_place(library: Library) -> None:
    shutil.rmtree(library.root / FOLDER)
    columns = {"id": "key", "inputs": {"document": "text"}, "truth": {"title": "headline", "year": "year"}}
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"columns": columns}]})
    library.write(f"fixtures/{SKILL}/cases.csv", "key,text,headline,year\nalpha,alpha is it,alpha,2024\n")
    library.record_answers({("alpha", index): notice("alpha") for index in range(2)})
    done = library.evaluate_here()
    assert (done.code, library.rows()[0]["accuracy"]["exact_match"]["mean"]) == (0, 1.0), done
