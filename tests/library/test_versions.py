"""What a bump is, which changes are honest, and components read out of git at any commit."""

from pathlib import Path

import pytest
from skill_evaluator.library.versions import (
    Bump,
    ComponentVersion,
    breaks_contract,
    bump,
    needs_evaluation,
    read_versions,
    versioning_problems,
)
from skill_evaluator.repository import Repository

from tests.support.git import GitRepository


@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (None, "0.1.0", Bump.NEW),
        ("1.2.3", "1.2.3", Bump.SAME),
        ("1.2.3", "1.2.4", Bump.PATCH),
        ("1.2.3", "1.3.0", Bump.MINOR),
        ("1.2.3", "2.0.0", Bump.MAJOR),
        ("1.2.3", "1.3.0-rc.1", Bump.MINOR),
        ("1.3.0-rc.1", "1.3.0", Bump.PATCH),
        ("1.3.0", "1.3.0-rc.1", Bump.LOWERED),
        ("1.2.3", "1.2.2", Bump.LOWERED),
        ("2.0.0", "1.9.9", Bump.LOWERED),
        ("0.1.0", "0.2.0", Bump.MINOR),
        ("0.2.0+0123abcd", "0.2.0+0123abcd", Bump.SAME),
        ("0.2.0+0123abcd", "0.2.0+4567abcd", Bump.MINOR),  # two branches number their prompts alike
    ],
)
def test_version_bump_has_a_kind(before: str | None, after: str, step: Bump) -> None:
    assert bump(before, after) is step


@pytest.mark.parametrize(
    ("before", "after", "breaks"),
    [
        ("1.2.3", "2.0.0", True),
        ("1.2.3", "1.3.0", False),
        ("1.2.3", "1.2.4", False),
        ("0.2.3", "0.3.0", True),
        ("0.2.3", "0.2.4", False),
        ("0.2.3", "1.0.0", True),
    ],
)
def test_changed_contract_requires_a_major_bump(before: str, after: str, breaks: bool) -> None:
    assert breaks_contract(before, after) is breaks


def test_bump_decides_whether_to_measure() -> None:
    assert {step for step in Bump if needs_evaluation(step)} == {Bump.NEW, Bump.MINOR, Bump.MAJOR}


def version(version: str | None = "1.0.0", prompt: str = "p", schema: str | None = "s") -> ComponentVersion:
    problem = None if version else "version 'one' is not semver"
    return ComponentVersion(
        name="a",
        folder="components/a",
        file="components/a/prompt.md",
        version=version,
        line=3,
        problem=problem,
        prompt=prompt,
        schema=schema,
    )


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        (None, version("1.0.0"), []),
        (version("1.0.0"), version("1.0.0"), []),
        (version("1.0.0"), version("1.1.0", prompt="q"), []),
        (version("0.1.0"), version("0.2.0", schema="t"), []),
        (version("1.0.0"), version("1.1.0"), []),  # a bump alone, to measure again, is honest
        (version(None), version("1.0.0", prompt="q"), []),
        (version("1.0.0"), version(None), ["prompt.md:3 not semver"]),
        (version("1.1.0"), version("1.0.0"), ["prompt.md:3 lowered from 1.1.0 to 1.0.0"]),
        (version("1.0.0"), version("1.0.0", prompt="q"), ["prompt.md:3 raise it above 1.0.0"]),
        (version("1.0.0"), version("1.1.0", schema="t"), ["schema.json:1 1.0.0 → 1.1.0 is not"]),
        (version("1.0.0"), version("1.0.0", schema=None), ["schema.json:1 1.0.0 → 1.0.0 is not"]),
        (
            version("1.0.0"),
            version("1.0.0", prompt="q", schema="t"),
            ["prompt.md:3 raise it above 1.0.0", "schema.json:1 1.0.0 → 1.0.0 is not"],
        ),
    ],
)
def test_changed_prompt_requires_a_new_version(
    before: ComponentVersion | None, after: ComponentVersion, wrong: list[str]
) -> None:
    problems = list(versioning_problems(before, after))
    assert len(problems) == len(wrong)
    for problem, expected in zip(problems, wrong, strict=True):
        place, _, words = expected.partition(" ")
        assert f"{problem.file}:{problem.line}" == f"components/a/{place}"
        assert words in problem.message


def prompt(version: str, body: str = "Read.", ending: str = "\n") -> str:
    return ending.join(["---", f"version: {version}", "---", body, ""])


@pytest.fixture
def git(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "library")


def at_head(git: GitRepository, folder: str = "components") -> dict[str, ComponentVersion]:
    (versions,) = read_versions(Repository(git.root), ["HEAD"], folder)
    return versions


def test_components_are_read_at_each_commit(git: GitRepository) -> None:
    git.write("components/a/prompt.md", prompt("1.0.0"))
    git.write("components/a/schema.json", "{}")
    first = git.commit()
    git.write("components/a/prompt.md", prompt("1.1.0"))
    git.write("components/b/prompt.md", prompt("0.1.0"))
    second = git.commit()
    git.write("components/a/prompt.md", prompt("9.9.9"))
    none, before, after = read_versions(Repository(git.root), [None, first, second], "components")
    assert none == {}
    assert {name: component.version for name, component in before.items()} == {"a": "1.0.0"}
    assert {name: component.version for name, component in after.items()} == {"a": "1.1.0", "b": "0.1.0"}
    assert before["a"].schema == after["a"].schema is not None
    assert after["b"].schema != after["a"].schema


@pytest.mark.parametrize("folder", [".", "components", "teams/a b/[x]*"])
def test_components_folder_may_be_anywhere(git: GitRepository, folder: str) -> None:
    path = "" if folder == "." else f"{folder}/"
    git.write(f"{path}a/prompt.md", prompt("1.0.0"))
    git.write(f"{path}a/old/prompt.md", prompt("1.0.0"))
    git.write("other/deep/a/prompt.md", prompt("1.0.0"))
    git.commit()
    repository = Repository(git.root)
    (versions,) = read_versions(repository, ["HEAD"], repository.relative_path(git.root / folder))
    assert {name: component.folder for name, component in versions.items()} == {"a": f"{path}a"}


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(prompt("1.0.0", ending="\r\n"), id="CRLF"),
        pytest.param(prompt("1.0.0", ending="\r"), id="CR"),
        pytest.param("\ufeff" + prompt("1.0.0"), id="byte order mark"),
        pytest.param(prompt("1.0.0") + "\n\n", id="blank lines at the end"),
        pytest.param("---\n# reviewed\nowner: us\nversion: '1.0.0'\n---\nRead.\n", id="other front matter"),
    ],
)
def test_other_edits_are_no_change_of_the_prompt(git: GitRepository, same: str) -> None:
    git.write("components/a/prompt.md", prompt("1.0.0"))
    git.commit()
    before = at_head(git)["a"]
    (git.root / "components/a/prompt.md").write_bytes(same.encode())
    git.commit()
    after = at_head(git)["a"]
    assert (after.version, after.prompt) == (before.version, before.prompt)


def test_reformatted_schema_is_the_same(git: GitRepository) -> None:
    git.write("components/a/prompt.md", prompt("1.0.0"))
    schema = git.write("components/a/schema.json", '{"type": "object", "title": "A"}')
    git.commit()
    before = at_head(git)["a"].schema
    schema.write_text('{\r\n  "title": "A",\r\n  "type": "object"\r\n}')
    git.commit()
    assert at_head(git)["a"].schema == before
    schema.write_text("{broken")
    git.commit()
    assert at_head(git)["a"].schema not in (before, None)


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("a", prompt("1.0"), 2, "YAML reads `version: 1.0` in components/a/prompt.md as the number 1.0; write 1.0.0"),
        ("a", "---\nname: a\nversion: [1]\n---\nRead.\n", 3, "at version in components/a/prompt.md"),
        ("a", "---\nname: a\n---\nRead.\n", 1, "no version in the front matter"),
        ("a", "Read.\n", 1, "no front matter"),
        ("a", "---\nversion: 1.0.0\n---\n", 2, "has no prompt"),
        ("a", "---\nversion: : {\n---\nRead.\n", 2, "broken YAML"),
        ("a b", prompt("1.0.0"), 2, "'a b' cannot be a component's name"),
        ("$(id)", prompt("1.0.0"), 2, "'$(id)' cannot be a component's name"),
        ("ü\n::error::x", prompt("1.0.0"), 2, "cannot be a component's name"),
    ],
)
def test_unreadable_component_at_a_commit_is_named_with_its_line(
    git: GitRepository, name: str, text: str, line: int, problem: str
) -> None:
    git.write(f"components/{name}/prompt.md", text)
    git.commit()
    (version,) = at_head(git).values()
    assert (version.name, version.version, version.line) == (name, None, line)
    assert problem in (version.problem or "")


def test_prompt_that_is_not_utf_8_hides_no_other(git: GitRepository) -> None:
    git.write("components/a/prompt.md", prompt("1.0.0"))
    git.write("components/b/prompt.md").write_bytes(b"---\nversion: 1.0.0\n---\n\xff\xfe\n")
    git.commit()
    assert at_head(git).keys() == {"a", "b"}
