"""What a laid-out library installs is this evaluator at its commit, and never a name that anybody could take."""

import json
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from skill_evaluator.library.scaffolding import requirement, requirement_of

from tests.support.git import GitRepository

PACKAGE = "skill-evaluator[charts,github,local]"
COMMIT = "a" * 40


@pytest.fixture
def checkout(tmp_path: Path) -> GitRepository:
    repository = GitRepository(tmp_path / "checkout")
    repository.write("pyproject.toml")
    repository.commit()
    return repository


def installed_from(folder: Path, monkeypatch: pytest.MonkeyPatch, source: object) -> None:
    """Have Python find an installed skill-evaluator that came from somewhere."""
    installed = folder / "skill_evaluator-9.9.9.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: skill-evaluator\nVersion: 9.9.9\n")
    (installed / "direct_url.json").write_text(json.dumps(source))
    monkeypatch.syspath_prepend(str(folder))


def test_requirement_names_the_installed_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed_from(
        tmp_path, monkeypatch, {"url": "https://example.com/tools.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    )
    assert requirement() == f"{PACKAGE} @ git+https://example.com/tools.git@{COMMIT}"


def test_requirement_of_a_checkout_names_its_origin(
    checkout: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.git("remote", "add", "origin", "https://example.com/tools.git")
    installed_from(tmp_path, monkeypatch, {"url": checkout.root.as_uri(), "dir_info": {"editable": True}})
    note, line = requirement().splitlines()
    assert line == f"{PACKAGE} @ git+https://example.com/tools.git@{checkout.git('rev-parse', 'HEAD')}"
    assert note.startswith("#")
    assert "push it before" in note
    checkout.write("new")
    notes, same = requirement().rsplit("\n", 1)
    assert same == line
    assert "uncommitted changes" in notes


@pytest.mark.parametrize(
    "origin",
    [
        "git@example.com:owner/tools.git",
        "ssh://git@example.com/owner/tools.git",
        "https://person:a-token@example.com/owner/tools.git",
    ],
)
def test_origin_is_written_without_credentials(origin: str, checkout: GitRepository) -> None:
    checkout.git("remote", "add", "origin", origin)
    line = requirement_of(checkout.root).splitlines()[-1]
    assert line.startswith(f"{PACKAGE} @ git+https://example.com/owner/tools.git@")


def test_unknown_address_leaves_a_placeholder_that_pip_refuses(checkout: GitRepository) -> None:
    lines = [requirement_of(checkout.root), requirement_of(checkout.root.parent)]  # no origin, no repository
    checkout.git("remote", "add", "origin", "https://example.com/library.git")
    lines.append(requirement_of(checkout.write("lib/python/site-packages/x").parent))  # a folder of another repository
    for on_this_machine in ("/somewhere/else", "file:///somewhere/else"):
        checkout.git("remote", "set-url", "origin", on_this_machine)
        lines.append(requirement_of(checkout.root))
    for line in lines:
        assert line.startswith("FILL IN")
        with pytest.raises(InvalidRequirement):
            Requirement(line)
