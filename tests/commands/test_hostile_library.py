"""Hostile files, links and names in a library: one line names each, and the other components go on."""

import os
import shutil
from itertools import product
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer
from tests.support.git import git
from tests.support.hostile_files import deep_json, deep_yaml, laughing_yaml
from tests.support.library import SKILL, Library
from tests.support.pipeline import Pipeline

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
    (f"{_COMPONENT}/prompt.md", front(deep_yaml(30_000)), "broken YAML"),
    (f"{_COMPONENT}/evals/accepted.json", deep_json(), "nested more than 200 levels deep"),
    (f"{_COMPONENT}/leaderboard.json", deep_json(), "nested more than 200 levels deep"),
    (f"{_CASE}/metadata.yaml", laughing_yaml(), "more than 100,000 values"),
]


def test_hostile_file_stops_only_its_component(whole: Library, tmp_path: Path) -> None:
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


def test_hostile_configuration_is_refused_in_one_line(two: Library) -> None:
    for name, content in ((".evaluator/settings.yaml", deep_yaml(30_000)), (".evaluator/models.yaml", b"\xff\xfea\0")):
        before = (two.root / name).read_bytes()
        two.write(name, content)
        for command in (("ci", "plan"), ("evaluate", SKILL)):
            assert two.call(*command).refuses(name), name
        two.write(name, before)


_SECRET = "token-of-the-machine"


def link(library: Library, path: str, target: Path | str) -> None:
    place = library.root / path
    if place.is_dir() and not place.is_symlink():
        place.rename(library.root / "moved")
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder beside the library, with a file and a case in it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text(_SECRET)
    (folder / "document.md").write_text(f"beta {_SECRET}")
    return folder


def test_document_linked_to_the_environment_is_sent_nowhere(served: Library, server: ChatServer) -> None:
    link(served, f"{_CASE}/document.md", "/proc/self/environ")
    refused = served.evaluate_here("--no-leaderboard")
    assert refused.code == 2
    assert refused.out == ""
    (line,) = refused.err.splitlines()
    assert line.startswith(f"error: {_CASE}/document.md leads out of fixtures, to /proc/")
    assert "limits: {follow_links: true}" in line
    assert server.times.total() == 0
    assert not served.results.exists()


LEADING_OUT = (
    (f"{_CASE}/document.md", "secret"),
    (f"fixtures/{SKILL}/cases", ""),
    ("fixtures", "/"),
    (f"components/{SKILL}", ""),
    (f"components/{SKILL}/prompt.md", "secret"),
    (f"components/{SKILL}/evals", ""),
    (".evaluator/models.yaml", "secret"),
    (".evaluator/settings.yaml", "secret"),
)


def test_link_out_of_its_folder_is_refused_by_name(tmp_path: Path, server: ChatServer, outside: Path) -> None:
    for number, (path, target) in enumerate(LEADING_OUT):
        library = Library(tmp_path / str(number))
        library.served_by(server.url)
        source = library.root / path
        if source.is_dir():  # what lies outside could be used
            shutil.copytree(source, outside, dirs_exist_ok=True)
        link(library, path, "/" if target == "/" else outside / target)
        refused = library.evaluate_here("--no-leaderboard")
        assert refused.refuses(path.split("/")[0]), (path, refused)
        assert " leads out of " in refused.err or "it has no cases" in refused.err, path
        assert _SECRET not in refused.err, path
    assert server.times.total() == 0


def test_declared_fixtures_stay_inside_the_fixtures_folder(library: Library) -> None:
    for fixtures in ("/etc", "a/../..", "a\0b", "a" * 300, "\ud800", "", "~/x"):
        library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"fixtures": fixtures}]})
        assert library.evaluate_here().refuses("is not a folder inside the fixtures folder"), fixtures


NO_TEXT = os.fsdecode(b"\xff\xfe")


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Beside the component are a folder whose name is not UTF-8, one of two lines, and a record of such a name."""
    pipeline = Pipeline.new(tmp_path_factory.mktemp("pushed"))
    for name in (NO_TEXT, "two\nlines"):
        folder = pipeline.checkout / "components" / name
        folder.mkdir()
        (folder / "prompt.md").write_text("---\nname: x\nversion: 1.0.0\n---\nDo.\n")
    records = pipeline.checkout / "components" / SKILL / "evals" / "records"
    records.mkdir(parents=True)
    (records / f"{NO_TEXT}.json").write_text("{}")
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", "origin", "main")
    return pipeline


@pytest.fixture
def pipeline(pushed: Pipeline, tmp_path: Path) -> Pipeline:
    return pushed.copy(tmp_path / "pipeline")


def test_lint_and_plan_name_unreadable_names(pipeline: Pipeline) -> None:
    commands = {("lint", "--base", "HEAD~1"): 2, ("ci", "plan", "--base", "0"): 0}
    for (words, code), form in product(commands.items(), ("text", "json", "markdown")):
        done = pipeline.run(*words, "--format", form)
        assert (done.code, "Traceback" in done.err) == (code, False), (words, form)
        assert "\\udcff\\udcfe" in done.out, (words, form)
        assert "two\nlines" not in done.out, (words, form)


def test_other_components_pass_the_whole_pipeline(pipeline: Pipeline) -> None:
    plan = pipeline.plan("--base", "0", "--model", "recorded")
    assert {entry.skill for entry in plan.runs} == {SKILL}
    assert any("\udcff" in fault.file or "\\udcff" in fault.file for fault in plan.decisions.faults)
    for entry in plan.runs:
        assert pipeline.evaluate(entry).code == 0
    assert pipeline.collect().code == 0
    assert (pipeline.publish().code, len(pipeline.rows())) == (0, 1)
    git(pipeline.checkout, "pull", "-q", "--rebase", "origin", "main")
    for command in ("history", "compare"):
        done = pipeline.run(command, SKILL)
        assert "Traceback" not in done.err
    shown = pipeline.run("ci", "report", str(pipeline.collected), "--plan", str(pipeline.plan_file))
    assert shown.code == 4  # a component whose name cannot be read was not evaluated
