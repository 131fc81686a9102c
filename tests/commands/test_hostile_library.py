"""One hostile file in a library: one line that names it, and the other components go on, whatever is asked."""

from pathlib import Path

import pytest

from tests.support.git import git
from tests.support.hostile_files import deep_json, deep_yaml, laughing_yaml
from tests.support.library import SKILL, Library

_COMPONENT, _CASE = f"components/{SKILL}", f"fixtures/{SKILL}/cases/beta"
_OTHER = "other"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with a second component, in git."""
    library = Library(tmp_path_factory.mktemp("whole"))
    library.write(f"components/{_OTHER}/prompt.md", f"---\nname: {_OTHER}\nversion: 1.0.0\n---\nDo.\n")
    library.write(f"components/{_OTHER}/schema.json", {"type": "object"})
    library.write(f"fixtures/{_OTHER}/cases/one/document.md", "one")
    library.record_answers({("one", index): "{}" for index in range(2)})
    git(library.root, "init", "-q")
    git(library.root, "add", "-A")
    git(library.root, "commit", "-qm", "all")
    return library


@pytest.fixture
def two(whole: Library, tmp_path: Path) -> Library:
    return whole.copy(tmp_path)


def front(rest: str) -> str:
    return f"---\nname: {SKILL}\nversion: 1.0.0\n{rest}---\nDo.\n"


SPOILT = [
    (f"{_COMPONENT}/prompt.md", front(deep_yaml()), "nested more than 50 levels deep"),
    (f"{_COMPONENT}/prompt.md", front("") + "x" * 1_000_001, "bytes; at most 1,000,000 are read"),
    (f"{_COMPONENT}/schema.json", deep_json(), "nested more than 200 levels deep"),
    (f"{_COMPONENT}/schema.json", {"allOf": [{"$ref": "#"}]}, "refers to itself for the same value"),
    (f"{_COMPONENT}/evals/accepted.json", deep_json(), "nested more than 200 levels deep"),
    (f"{_COMPONENT}/leaderboard.json", deep_json(), "nested more than 200 levels deep"),
    (f"{_CASE}/document.md", "a\0b", "character 2 is a NUL"),
    (f"{_CASE}/ground_truth.json", deep_json(), "nested more than 200 levels deep"),
    (f"{_CASE}/ground_truth.json", f"[{'0,' * 60_000}0]", "holds 60,001 values, more than the limit of 50,000"),
    (f"fixtures/{SKILL}/cases.jsonl", f'{{"a": {deep_json()}}}', "nested more than 200 levels deep"),
    (f"{_CASE}/metadata.yaml", laughing_yaml(), "more than 100,000 values"),
]


def test_one_hostile_file_is_one_line_and_stops_only_its_component(whole: Library, tmp_path: Path) -> None:
    for number, (path, content, says) in enumerate(SPOILT):
        two, spoilt = whole.copy(tmp_path / str(number)), f"{path}: {says}"
        two.write(path, content)
        linted = two.call("lint", "--format", "json")
        assert linted.code == 2, spoilt
        problems = {one["component"]: one["problems"] for one in linted.json["components"]}
        assert problems[_OTHER] == [], spoilt
        assert any(says in problem and path in problem for problem in problems[SKILL]), spoilt
        assert two.call("evaluate", _OTHER, "--no-leaderboard").code == 0, spoilt
        planned = two.call("ci", "plan", "--format", "json")
        assert planned.code == 0, spoilt
        assert {entry["skill"] for entry in planned.json["runs"]} >= {_OTHER}, spoilt
        if "accepted" not in path and "leaderboard" not in path:
            assert {entry["skill"] for entry in planned.json["runs"]} == {_OTHER}, spoilt
            assert any(says in fault["message"] for fault in planned.json["faults"]), spoilt
        refused = two.evaluate_here()
        assert refused.code == 2 or "accepted" in path, spoilt
        assert "Traceback" not in refused.err, spoilt


def test_a_hostile_configuration_is_one_line(two: Library) -> None:
    hostile: tuple[str | bytes, ...] = (deep_yaml(), laughing_yaml(), "a: !!bool x", "x" * 4_000_001, b"\xff\xfea\0")
    for name in (".evaluator/settings.yaml", ".evaluator/models.yaml"):
        before = (two.root / name).read_bytes()
        for content in hostile:
            two.write(name, content)
            for command in (
                (
                    "ci",
                    "plan",
                ),
                ("evaluate", SKILL),
            ):
                assert two.call(*command).refuses(name), (name, content[:40])
        two.write(name, before)
