"""`lint --base` in real repositories: edited and removed records are problems."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.linting import LintRequest
from skill_evaluator.commands.init import lint
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import read_record
from skill_evaluator.text import canonical_json, digest

from tests.support.git import IDENTITY, git, head
from tests.support.library import SKILL, Library, call, read

FOLDER = f"components/{SKILL}"
BOARD = f"{FOLDER}/leaderboard.json"


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")
    return head(root)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with two recorded runs, both committed."""
    library = Library(tmp_path_factory.mktemp("recorded"))
    library.write(".gitignore", "components/*/evals/results/\n")
    git(library.root, "init", "-qb", "main")
    for seed in ("1", "2"):
        assert library.evaluate_here("--seed", seed, env=IDENTITY).code == 0
    commit(library.root)
    return library.root


@pytest.fixture
def root(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the recorded library, as working directory."""
    copy = tmp_path / "library"
    shutil.copytree(recorded, copy, ignore=shutil.ignore_patterns("results"))
    monkeypatch.chdir(copy)
    return copy


def evaluate(root: Path, *options: str) -> None:
    """Add a run to the leaderboard, as the command does."""
    assert call(root, "evaluate", SKILL, *options).code == 0


def board() -> Any:
    return read(Path(BOARD))


def write_board(value: Any, **layout: Any) -> None:
    Path(BOARD).write_text(json.dumps(value, **layout))


def record_files() -> list[Path]:
    return sorted(Path(FOLDER, "evals", "records").glob("*.json"))


def linted(
    capsys: pytest.CaptureFixture[str], base: str | None = "HEAD", names: tuple[str, ...] = (SKILL,), **options: Any
) -> tuple[int, list[str], str]:
    """Return exit code, problems and stderr; named components are checked even if unchanged."""
    capsys.readouterr()
    code = lint(LintRequest(base=base, format="json", names=names, **options))
    printed = capsys.readouterr()
    problems = [problem for one in json.loads(printed.out)["components"] for problem in one["problems"]]
    return code, problems, printed.err


Change = Callable[[], object]
MADE_UP = "29990101T000000Z-aaaaaa-made-up"


def rows(change: Callable[[list[Any]], object]) -> Change:
    """Rewrite the leaderboard with other rows."""

    def changed() -> None:
        value = board()
        change(value["runs"])
        write_board(value)

    return changed


def edit_a_figure() -> None:
    value = board()
    value["runs"][1]["scored"] += 1
    write_board(value, indent=2)


def edit_a_cost() -> None:
    """The cost is nested in code."""
    value = board()
    value["runs"][1]["cost_usd"] = 12.5
    write_board(value, indent=2)


def edit_row_and_record(*, agreeing: bool = False) -> None:
    value = board()
    row = value["runs"][0]
    path = Path(FOLDER, "evals", "records", row["run_id"] + ".json")
    record = read(path)
    row["cost_usd"] = record["cost_usd"] = 12.5
    if agreeing:
        row["digest"] = digest(canonical_json(record))
    write_board(value)
    path.write_text(json.dumps(record))


def edit_a_replicate() -> None:
    """Only the record has the scores of replicates."""
    path = record_files()[0]
    record = read(path)
    record["per_case"][0]["replicates"]["exact_match"][0] = 0.0
    path.write_text(json.dumps(record))


def edit_types() -> None:
    """In Python, true, 1 and 1.0 are equal."""
    for path, old, new in ((Path(BOARD), "true", "1"), (record_files()[0], "false", "0")):
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))


def add_a_record_without_row() -> None:
    record = {**read(record_files()[-1]), "run_id": MADE_UP}
    Path(FOLDER, "evals", "records", f"{MADE_UP}.json").write_text(json.dumps(record))


def replace_in(path: Callable[[], Path], old: str, new: str) -> Change:
    return lambda: path().write_text(path().read_text().replace(old, new, 1))


EDITED, REMOVED = "was edited; rows are only added", "was removed; rows are only added"
TAMPERING: dict[str, tuple[Change, tuple[str, ...]]] = {  # and what it says
    "a figure": (edit_a_figure, (EDITED, "and its record differ in scored")),
    "a cost": (edit_a_cost, (EDITED, "and its record differ in cost_usd")),
    "row and record": (edit_row_and_record, (EDITED, "its digest is not the one in row")),
    "both, agreeing": (lambda: edit_row_and_record(agreeing=True), (EDITED, "this record was edited")),
    "a replicate": (edit_a_replicate, ("this record was edited; records are only", "its digest is not the one in row")),
    "a row removed": (rows(lambda runs: runs.pop(0)), (REMOVED, "has no row of this record")),
    "all removed": (Path(BOARD).unlink, (REMOVED, "has no row of this record")),
    "order": (rows(lambda runs: runs.reverse()), ("is newer than the row above; rows are sorted newest first",)),
    "a row twice": (rows(lambda runs: runs.insert(0, runs[0])), ("has more than one row", EDITED)),
    "a row alone": (
        rows(lambda runs: runs.insert(0, {**runs[0], "run_id": MADE_UP})),
        (f"row '{MADE_UP}' has no record",),
    ),
    "a record alone": (add_a_record_without_row, (f"{MADE_UP}.json:1: {BOARD} has no row",)),
    "a record renamed": (
        lambda: record_files()[0].rename(Path(FOLDER, "evals", "records", "other.json")),
        ("this record was removed", "other.json holds run", "has no record"),
    ),
    "another type": (edit_types, (EDITED, "this record was edited")),
    "a key twice": (
        replace_in(lambda: Path(BOARD), '"scored":', '"scored": 0, "scored":'),
        (f"{BOARD}: not JSON: one object repeats the key 'scored'",),
    ),
    "no JSON": (replace_in(lambda: Path(BOARD), "{", ""), (f"{BOARD}:2:10: not JSON",)),
}


def test_edited_records_are_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = git(root, "rev-parse", "HEAD")
    assert linted(capsys) == (0, [], "")
    for name, (change, said) in TAMPERING.items():
        git(root, "reset", "-q", "--hard", base)
        change()
        commit(root)
        code, problems, _ = linted(capsys, base=base)
        assert code == 2, name
        for words in said:
            assert any(words in problem for problem in problems), (name, words, problems)
        requires_base = name in ("both, agreeing", "another type")
        assert linted(capsys, base=None)[0] == (0 if requires_base else 2), name


def test_records_without_digests_are_accepted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = board()
    for row in value["runs"]:
        path = Path(FOLDER, "evals", "records", row["run_id"] + ".json")
        record = read(path)
        del row["digest"], record["digests"]["answers"]
        path.write_text(json.dumps(record))
    write_board(value)
    commit(root)
    assert linted(capsys) == (0, [], "")
    evaluate(root, "--seed=3")
    assert linted(capsys) == (0, [], "")
    assert ["digest" in row for row in board()["runs"]] == [True, False, False]


def test_draft_requires_no_row_and_may_be_removed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(root, "--draft")
    (draft,) = (path for path in record_files() if read(path)["draft"])
    commit(root)
    assert linted(capsys) == (0, [], "")
    draft.unlink()
    assert linted(capsys) == (0, [], "")


def test_merge_must_keep_the_rows_of_both_sides(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(root, "checkout", "-qb", "other")
    evaluate(root, "--seed=3")
    theirs = commit(root)
    git(root, "checkout", "-q", "main")
    evaluate(root, "--seed=4")
    ours = commit(root)
    git(root, "merge", "-q", "-s", "ours", "--no-commit", "other")
    git(root, "checkout", "other", "--", f"{FOLDER}/evals/records")
    code, problems, _ = linted(capsys, theirs)
    assert (code, len(problems)) == (2, 2)
    assert "was removed; rows are only added" in "".join(problems)
    append_rows(Path(BOARD), SKILL, [read_record(path).row() for path in record_files()])
    commit(root)
    for base in (ours, theirs):
        assert linted(capsys, base) == (0, [], "")
    assert len(board()["runs"]) == 4


def test_component_is_removed_only_with_its_records(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(FOLDER, "components/stays", ignore=shutil.ignore_patterns("evals", "leaderboard.json"))
    shutil.copytree(f"fixtures/{SKILL}", "fixtures/stays")
    prompt = Path("components/stays/prompt.md")
    prompt.write_text(prompt.read_text().replace(SKILL, "stays"))
    base = commit(root)
    Path(FOLDER, "prompt.md").unlink()
    assert linted(capsys, base, names=())[0] == 2
    shutil.rmtree(FOLDER)
    warning = f"warning: {FOLDER}/leaderboard.json: '{SKILL}' was deleted with its records, so"
    code, problems, err = linted(capsys, base, names=())
    assert (code, problems, warning in err) == (0, [], True), err
    Path(FOLDER, "evals", "results", "a-run").mkdir(parents=True)  # git ignores it, and leaves it here
    assert linted(capsys, None, names=()) == (0, [], "")
    assert warning in linted(capsys, base, names=())[2]


def test_unchanged_components_are_not_checked_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("alone", "sharing", "broken"):
        shutil.copytree(FOLDER, f"components/{name}", ignore=shutil.ignore_patterns("evals", "leaderboard.json"))
        replace_in(lambda name=name: Path(f"components/{name}/prompt.md"), SKILL, name)()
        shutil.copytree(f"fixtures/{SKILL}", f"fixtures/{name}")
    Path("components/sharing/evals").mkdir()
    Path("components/sharing/evals/datasets.json").write_text(
        json.dumps({"datasets": [{"id": "a", "fixtures": SKILL}]})
    )
    Path("components/broken/prompt.md").write_text("no version\n")
    base = commit(root)
    changes = {  # and the components that are checked again
        "components/alone/evals/records/new.json": ["alone"],
        "fixtures/alone/cases/alpha/document.md": ["alone", "sharing"],
        f"fixtures/{SKILL}/cases/alpha/document.md": [SKILL, "sharing"],
        "components/gone/prompt.md": [],
        "components/shared.json": ["alone", "broken", SKILL, "sharing"],
        ".evaluator/settings.yaml": ["alone", "broken", SKILL, "sharing"],
    }
    for path, checked in changes.items():
        git(root, "reset", "-q", "--hard", base)
        git(root, "clean", "-qfd")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("{}\n")
        commit(root)
        if "gone" in path:  # added and removed again
            shutil.rmtree("components/gone")
        capsys.readouterr()
        lint(LintRequest(base=base, format="json"))
        printed = capsys.readouterr()
        assert sorted(one["component"] for one in json.loads(printed.out)["components"]) == sorted(checked), path
        left = 4 - len(checked)
        assert (f"{left} component{'s'[: left > 1]} of 4 unchanged since {base}" in printed.err) == bool(left), path


def test_unknown_base_gets_a_warning_and_the_rest_is_checked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_row_and_record(agreeing=True)
    bases = ("f" * 40, "nowhere", "")
    for base in bases:
        assert linted(capsys, base) == (0, [], f"warning: no commit '{base}' here; changes are not checked\n")
    edit_a_figure()
    for base in bases:
        assert linted(capsys, base)[0] == 2, base


def test_github_annotations_name_file_and_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_a_figure()
    Path(FOLDER, "prompt.md").write_text(Path(FOLDER, "prompt.md").read_text().replace("Extract", "Read"))
    Path(f"fixtures/{SKILL}/cases/alpha/document.md").unlink()
    code, problems, err = linted(capsys, platform="github")
    marks = [line for line in err.splitlines() if line.startswith("::error ")]
    assert (code, len(problems)) == (2, len(marks))
    assert any(mark.startswith(f"::error file={FOLDER}/prompt.md,line=3::the prompt changed") for mark in marks)
    assert any(
        mark.startswith(f"::error file={FOLDER}/prompt.md,line=1::case 'alpha' has no document") for mark in marks
    )
    lines = Path(BOARD).read_text().splitlines()
    edited = next(mark for mark in marks if "was edited" in mark)
    assert edited.startswith(f"::error file={BOARD},line=")
    named = lines[int(edited.partition("line=")[2].partition("::")[0]) - 1]
    assert board()["runs"][1]["run_id"] in named


def test_fix_keeps_the_rows_of_both_sides_of_a_conflict(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = head(root)
    git(root, "checkout", "-qb", "other")
    evaluate(root, "--seed", "3")
    commit(root)
    git(root, "checkout", "-q", "main")
    evaluate(root, "--seed", "4")
    commit(root)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "other")
    assert "<<<<<<< HEAD" in Path(BOARD).read_text()
    assert "; `lint --fix` resolves the conflict" in linted(capsys, base)[1][0]
    code, problems, err = linted(capsys, base, fix=True)
    assert (code, problems) == (0, []), err
    assert f"fixed: {BOARD}" in err
    assert len(board()["runs"]) == 4


def test_fix_restores_rows_from_the_records(root: Path) -> None:
    whole = board()
    Path(BOARD).write_text("<<<<<<< HEAD\n{\n=======\n[]\n>>>>>>> other\n")
    assert call(root, "lint", "--fix", "--no-cases").code == 0
    assert board() == whole


def test_fix_hides_no_tampering(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows(lambda runs: runs.insert(0, {**runs[0], "run_id": MADE_UP}))()
    edit_a_replicate()
    lines = Path(BOARD).read_text()
    Path(BOARD).write_text(f"<<<<<<< HEAD\n{lines}\n=======\n[]\n>>>>>>> other\n")
    code, problems, err = linted(capsys, base=None, fix=True)
    assert (code, f"fixed: {BOARD}" in err) == (2, True)
    assert any(f"row '{MADE_UP}' has no record" in problem for problem in problems), problems
    assert any("this record was edited: its digest is not the one in row" in problem for problem in problems), problems


def test_forgotten_version_bump_is_found_without_git(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(".git")
    assert linted(capsys, base=None)[:2] == (0, [])
    prompt = Path(FOLDER, "prompt.md")
    prompt.write_text(f"{prompt.read_text()}\nBe brief.\n")
    problem = f"{FOLDER}/prompt.md:3: the prompt changed but the version did not; raise it above 1.0.0"
    assert linted(capsys, base=None)[:2] == (2, [problem])
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.0.1"))
    assert linted(capsys, base=None)[:2] == (0, [])
    schema = Path(FOLDER, "schema.json")
    schema.write_text(json.dumps({**read(schema), "description": "a book"}))
    prompt.write_text(prompt.read_text().replace("version: 1.0.1", "version: 1.0.0").replace("\nBe brief.\n", ""))
    message = "the schema changed: that is a new MAJOR version, and 1.0.0 → 1.0.0 is not"
    assert linted(capsys, base=None)[:2] == (2, [f"{FOLDER}/schema.json:1: {message}"])
