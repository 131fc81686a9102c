"""Which files a program under test watches, and which blobs they are: as git says, and the same outside of git."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from skill_evaluator.library.prompts import ProgramUnderTest

from tests.support.git import GitRepository

FILES = ("app.py", "a b.py", "src/x.py", "src/deep/er/y.py", "src/deep/z.txt", "lib/src/x.py", "?.md", "k[1].py")
GLOBS = ("*.py", "src/**/*.py", "src/*/z.txt", "?pp.py", "**", "**/**/y.py")


def watching(*globs: str) -> ProgramUnderTest:
    return ProgramUnderTest(run=("python",), watch=globs)


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    repository = GitRepository(tmp_path / "library")
    for path in FILES:
        repository.write(f"components/c/{path}", path)
    repository.write("shared/w.txt", "w")
    repository.commit()
    return repository


def test_glob_matches_as_in_git(repository: GitRepository) -> None:
    folder = repository.root / "components" / "c"
    for glob in GLOBS:
        expected = repository.git("-C", "components/c", "ls-files", "-z", f":(glob){glob}").split("\0")
        assert list(watching(glob).watched_here(folder)) == sorted(filter(None, expected)), glob


def test_blobs_equal_those_of_git(repository: GitRepository) -> None:
    program = watching("**", "../../shared/*")
    folder = repository.root / "components" / "c"
    for _ in range(2):
        watched = program.watched_here(folder)
        assert watched == {path: repository.git("hash-object", str(folder / path)) for path in watched}
        assert "../../shared/w.txt" in watched
        repository.write("components/c/app.py", "changed")
        repository.write("components/c/new.py", "new")
        repository.write("shared/w.txt", "changed")
    (folder / "app.py").unlink()
    repository.write("components/c/evals/records/a.json")
    repository.write("components/c/leaderboard.json")
    repository.write("components/c/src/__pycache__/x.pyc")
    repository.write("components/c/prompt.md")
    assert program.watched_here(folder).keys() == {*FILES, "new.py", "../../shared/w.txt"} - {"app.py"}


def test_files_have_the_same_blobs_outside_git(repository: GitRepository, tmp_path: Path) -> None:
    folder = repository.root / "components" / "c"
    inside = watching("**").watched_here(folder)
    moved = folder.rename(tmp_path / "c")
    (moved / ".venv").mkdir()
    (moved / ".venv" / "x.py").write_text("hidden")
    assert watching("**").watched_here(moved) == inside


def test_program_digest_covers_declared_and_watched_files() -> None:
    program = watching("*")
    blobs = {"app.py": "1"}
    assert program.digest(blobs) == program.model_copy(update={"timeout_s": 5.0}).digest(blobs)
    assert program.digest(blobs) != program.digest({"app.py": "2"})
    assert program.digest(blobs) != program.model_copy(update={"env": ("A",)}).digest(blobs)
    assert program.unmatched(["app.py"]) == []
    assert watching("*.py", "x/**").unmatched(["app.py"]) == ["x/**"]


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ({"run": ["python", "app.py"]}, "`run` requires `watch`"),
        ({"run": ["python"], "watch": ["/etc/*"]}, "is not a glob relative to the component's folder"),
        ({"run": ["python"], "watch": ["*"], "env": ["PATH"]}, "PATH is set for every program"),
        ({"http": {"url": "http://u:p@host/", "body": {}}}, "a password in a file is not allowed"),
        ({"http": {"url": "http://host", "body": {}, "headers": {"a\nb": "A"}}}, "http.headers"),
    ],
)
def test_invalid_program_is_refused(program: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(complaint)):
        ProgramUnderTest.model_validate(program)
