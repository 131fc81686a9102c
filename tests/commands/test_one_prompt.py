"""A version is one prompt: another under the same version is refused before a call, and is no baseline where it stands.

All runs are made by the command line, with answers that are replayed.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands.test_draft import MORE, REPLICATES, RIGHT, WRONG, evaluate, write
from tests.support.chat_server import Asked, ChatServer, Reply, varied
from tests.support.library import REPLAY, SKILL, Library, read

RAISE = "raise the version, or measure this prompt as a draft with `evaluate --draft`"


@pytest.fixture(autouse=True)
def _eight_cases(library: Library) -> None:
    for case_id in MORE:
        library.case(case_id)
    library.settings(replicates=REPLICATES)


def measure(library: Library, version: str, prompt: str, year: int = RIGHT, *arguments: str) -> str:
    """Evaluate a version; return the id of its run."""
    write(library, version, prompt, year)
    done = evaluate(library, "--format", "json", *arguments)
    assert done.code in (0, 3), done.err
    return str(done.json["runs"][0]["run_id"])


def measure_as_before_there_was_a_rule(
    library: Library, version: str, prompt: str, year: int = RIGHT, *arguments: str
) -> str:
    """Evaluate a version without the rows that are there, then put its row among them."""
    rows = library.rows()
    library.leaderboard.unlink()
    run_id = measure(library, version, prompt, year, *arguments)
    board = read(library.leaderboard)
    library.leaderboard.write_text(json.dumps({**board, "runs": [*board["runs"], *rows]}, indent=2))
    return run_id


def test_edited_prompt_of_a_recorded_version_is_refused(library: Library) -> None:
    first = measure(library, "1.2.0", "Extract title and year.")
    write(library, "1.2.0", "Extract title and year, please.", RIGHT)
    before = library.tree()
    said = f"error: '{SKILL}' 1.2.0 was recorded with another prompt by run {first}; {RAISE}\n"
    for arguments in ((), ("--dry-run",), ("--scenario", "curt")):
        library.write(
            ".evaluator/scenarios/curt.md", "---\nname: curt\nintent: to be curt\n---\nBe curt. {{ prompt }}\n"
        )
        done = library.evaluate_here(*arguments)
        assert (done.code, done.out, done.err) == (2, "", said)
    assert {path: raw for path, raw in library.tree().items() if "scenarios" not in path} == before


def test_unfinished_run_of_a_recorded_version_is_refused(library: Library) -> None:
    write(library, "1.2.0", "Extract title and year.", RIGHT)
    begun = library.evaluate_here("--max-calls", "3")
    assert begun.code == 4
    folder = library.run_folder()
    first = measure(library, "1.2.0", "Extract them.")
    write(library, "1.2.0", "Extract title and year.", RIGHT)
    done = library.evaluate_here("--run", folder.name)
    assert (done.code, done.err) == (
        2,
        f"error: '{SKILL}' 1.2.0 was recorded with another prompt by run {first}; {RAISE}\n",
    )
    assert library.evaluate_here("--run", folder.name, "--no-leaderboard").code == 0
    assert [row["run_id"] for row in library.rows()] == [first]


def test_recorded_run_of_an_edited_prompt_is_no_baseline(library: Library) -> None:
    measure(library, "1.2.0", "Extract title and year.", WRONG)
    edited = measure_as_before_there_was_a_rule(library, "1.2.0", "Extract title and year, please.", RIGHT)
    write(library, "1.3.0", "Extract title and year, thank you.", RIGHT)
    skipped = f"run {edited} is skipped as a baseline: its prompt is not that of 1.2.0's first run"
    for done in (library.evaluate_here(), library.call("compare", SKILL)):
        assert "improved against 1.2.0 on these 8 cases; of 100 new cases, up to 31 may still be worse" in done.out
        assert "0.500 → 1.000" in done.out
        assert skipped in done.out
    history = library.call("history", SKILL)
    assert skipped in history.out
    assert [line.split()[:2] for line in history.out.splitlines() if line.startswith("1.")] == [
        ["1.2.0", "0.500"],
        ["1.3.0", "1.000"],
    ]
    named = library.call("compare", SKILL, "--candidate", edited)
    assert "1.2.0 → 1.2.0" in named.out
    assert "0.500 → 1.000" in named.out


def test_lint_names_a_run_of_an_edited_prompt(library: Library) -> None:
    first = measure(library, "1.2.0", "Extract title and year.")
    edited = measure_as_before_there_was_a_rule(library, "1.2.0", "Extract title and year, please.")
    accepted = {"version": "1.2.0", "by": "A", "why": "it is fine", "date": "2026-01-01"}
    runs = {"run_ids": {"recorded": [first, edited]}}
    library.write(f"components/{SKILL}/evals/accepted.json", {"skill": SKILL, "accepted": [{**accepted, **runs}]})
    done = library.call("lint", "--format", "json")
    (component,) = done.json["components"]
    at_row, at_acceptance = component["problems"]
    assert done.code == 2
    board = f"components/{SKILL}/leaderboard.json"
    line = next(at for at, text in enumerate((library.root / board).read_text().splitlines(), 1) if edited in text)
    assert at_row == (
        f"{board}:{line}: row '{edited}' measured another prompt than 1.2.0's first run, '{first}', "
        "so it is skipped as a baseline; measure that prompt as a new version"
    )
    assert at_acceptance.startswith(f"'{edited}' measured another prompt than 1.2.0's first run at accepted[0] in ")


def test_slower_of_two_prompts_is_refused_and_the_other_stays(
    served: Library, server: ChatServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both begin before either is recorded; the slower one finds its version taken when it is done."""
    served.models(REPLAY, {"id": "served", "provider": "openai", "base_url": server.url})
    quick = served.copy(tmp_path_factory.mktemp("quick"))
    first = measure(quick, "1.2.0", "Extract them.", RIGHT, "--model", "recorded")
    write(served, "1.2.0", "Extract title and year.", RIGHT)

    def reply(asked: Asked) -> Reply:
        if not served.leaderboard.exists():
            evals = Path("evals", "records")
            shutil.copytree(quick.component / evals, served.component / evals, dirs_exist_ok=True)
            shutil.copy(quick.leaderboard, served.leaderboard)
        return varied(asked)

    server.reply = reply
    late = served.evaluate_here("--model", "served", "--concurrency", "1")
    (folder,) = (path for path in served.results.iterdir() if path.name.endswith("-served"))
    board = Path("components", SKILL, "leaderboard.json")
    said = f"error: run '{folder.name}' is not added to {board}: 1.2.0 was recorded with another prompt by run {first}"
    assert (late.code, late.err.splitlines()[-1]) == (2, f"{said}; {RAISE}")
    assert [row["run_id"] for row in served.rows()] == [first]
    assert [path.stem for path in (served.component / "evals" / "records").iterdir()] == [first]
    assert read(folder / "record.json")["complete"]
    assert served.call("lint").out.endswith("the prompt changed but the version did not; raise it above 1.2.0\n")
