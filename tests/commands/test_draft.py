"""`evaluate --draft`: a prompt is measured and judged, its record is kept, and nothing is ever held against it."""

import json
from pathlib import Path

import pytest

from tests.support.chat_server import notice
from tests.support.library import CASES, SKILL, Ended, Library, read

REPLICATES = 6
MORE = tuple(f"case-{at}" for at in range(5))
RIGHT, WRONG = 2024, 1999


@pytest.fixture(autouse=True)
def _recorded(library: Library) -> None:
    """Eight cases, and 1.2.0 recorded: every year is wrong."""
    for case_id in MORE:
        library.case(case_id)
    library.settings(replicates=REPLICATES)
    write(library, "1.2.0", "Extract title and year.", WRONG)
    assert evaluate(library).code == 0


def write(library: Library, version: str, prompt: str, year: int) -> None:
    """Write the prompt of a version, and the year that the replayed model answers to it (2024 is right)."""
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\n{prompt}\n")
    cases = (*CASES, *MORE)
    library.record_answers({(case, index): notice(case, year) for case in cases for index in range(REPLICATES)})


def evaluate(library: Library, *arguments: str) -> Ended:
    return library.evaluate_here(*arguments)


def drafts(library: Library) -> list[str]:
    """The ids of the drafts that are kept."""
    paths = sorted((library.component / "evals" / "records").glob("*.json"))
    return [path.stem for path in paths if read(path)["draft"]]


def is_complete(folder: Path) -> bool | None:
    """Whether a run's record says that it is complete; None where there is none."""
    record = folder / "record.json"
    return read(record)["complete"] if record.exists() else None


def test_draft_is_compared_with_its_version_before_the_edit(library: Library) -> None:
    before = library.leaderboard.read_bytes()
    write(library, "1.2.0", "Extract title and year, please.", RIGHT)
    done = evaluate(library, "--draft")
    assert (done.code, library.leaderboard.read_bytes()) == (0, before)
    assert "improved against 1.2.0 on these 8 cases; of 100 new cases, up to 31 may still be worse" in done.out
    assert "1.2.0 → 1.2.0 (draft)" in done.out
    assert "0.500 → 1.000" in done.out
    assert "next: raise the version in prompt.md" in done.out
    linted = library.call("lint")
    assert linted.out.endswith("the prompt changed but the version did not; raise it above 1.2.0\n")
    assert linted.err == "error: 1 problem in 1 of 1 component\n"
    (draft,) = drafts(library)
    again = library.call("compare", SKILL, "--candidate", draft)
    assert (again.code, "1.2.0 → 1.2.0 (draft)" in again.out, "0.500 → 1.000" in again.out) == (0, True, True)


def test_draft_is_never_a_baseline_nor_pooled(library: Library) -> None:
    write(library, "1.3.0", "Extract title and year, please.", RIGHT)
    evaluate(library, "--draft")
    write(library, "1.3.0", "Extract title and year, please.", WRONG)
    assert evaluate(library).code == 0
    write(library, "1.4.0", "Extract them.", WRONG)
    done = evaluate(library, "--format", "json")
    (model,) = done.json["comparison"]["models"]
    assert (model["baseline"]["skill_version"], model["baseline_runs"], model["candidate_runs"]) == ("1.3.0", 1, 1)
    history = library.call("history", SKILL, "--format", "json").json["models"][0]
    points = [(point["version"], point["runs"]) for point in history["points"]]
    assert points == [("1.2.0", 1), ("1.3.0", 1), ("1.4.0", 1)]
    (draft,) = drafts(library)
    named = library.call("compare", SKILL, "--baseline", draft)
    assert (named.code, f"no complete run of 'recorded' of version or id '{draft}'" in named.err) == (2, True)
    assert draft not in library.call("history", SKILL, "--format", "json").out


def test_stopped_draft_resumes_as_a_draft(library: Library) -> None:
    write(library, "1.2.0", "Extract title and year, please.", RIGHT)
    assert evaluate(library, "--draft", "--max-calls", "3").code == 4
    assert drafts(library) == []
    (unfinished,) = (path for path in library.results.iterdir() if is_complete(path) is False)
    for _ in range(2):  # the second time there is nothing to resume
        assert library.evaluate_here("--run", unfinished.name).code == 0
    assert (drafts(library), len(library.rows())) == ([unfinished.name], 1)


def test_draft_and_aa_are_refused_together(library: Library) -> None:
    reason = "--draft runs the current prompt and --rerun-baseline a recorded version; use one of them"
    assert evaluate(library, "--draft", "--rerun-baseline").refuses(reason)


def test_lint_names_the_row_of_a_draft(library: Library) -> None:
    write(library, "1.3.0", "Extract title and year, please.", RIGHT)
    assert evaluate(library).code == 0
    run_id = library.rows()[0]["run_id"]
    path = library.component / "evals" / "records" / f"{run_id}.json"
    path.write_text(json.dumps({**read(path), "draft": True}))
    assert f"row '{run_id}' belongs to a draft, and drafts have no row; remove it" in library.call("lint").out
