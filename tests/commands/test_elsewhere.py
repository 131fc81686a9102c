"""Machines other than GitHub's, by the scripts of the page: parts of a plan are asked apart and joined anywhere."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.git import IDENTITY, git
from tests.support.library import SCRIPT, SKILL, comparable, read
from tests.support.pipeline import Pipeline

pytestmark = pytest.mark.pages

RECIPES = SCRIPT.parents[1] / "docs" / "examples" / "elsewhere"
PART, CRON = RECIPES / "part.sh", RECIPES / "cron.sh"


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """A library that was pushed; its plan is two shards of each of two models."""
    return Pipeline.new(tmp_path / "pipeline")


def start(folder: Path, *command: str, **env: str) -> subprocess.Popen[str]:
    """A script of the page, with the program on its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "ACTIONS_"))}
    environment = {**inherited, **IDENTITY, "PATH": path, "PYTHONPATH": str(SCRIPT.parent), **env}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said


def machine(pipeline: Pipeline, name: str) -> Path:
    folder = pipeline.root / name
    git(pipeline.root, "clone", "-q", pipeline.origin.as_uri(), str(folder))
    return folder


def comparables(records: Mapping[str, Any]) -> dict[str, Any]:
    return {record["model_id"]: comparable(record) for record in records.values()}


def whole(pipeline: Pipeline) -> dict[str, Any]:
    """The records of one process that asks everything."""
    folder = pipeline.root / "whole"
    arguments = ("--replicates", "2", "--results", str(folder), "--no-leaderboard")
    assert pipeline.run("evaluate", SKILL, *arguments).code == 0
    return comparables({path.parent.name: read(path) for path in folder.glob("*/record.json")})


@pytest.mark.parametrize("shared", [False, True], ids=["folders of their own", "a shared folder"])
def test_two_machines_make_the_parts_of_a_plan_and_either_joins_them(shared: bool, pipeline: Pipeline) -> None:
    pipeline.plan("--base", "0")
    first, second = machine(pipeline, "first"), machine(pipeline, "second")
    results = [pipeline.artifacts] * 2 if shared else [first / "results", second / "results"]
    finish(
        start(first, "bash", str(PART), str(pipeline.plan_file), str(results[0]), "1/2"),
        start(second, "bash", str(PART), str(pipeline.plan_file), str(results[1]), "2/2"),
    )
    if not shared:
        assert [len(list(folder.iterdir())) for folder in results] == [2, 2]
        for folder in results:
            shutil.copytree(folder, pipeline.artifacts, dirs_exist_ok=True)
    expected = whole(pipeline)
    for joining in (first, second):
        collect = ("collect", str(pipeline.artifacts), f"--plan={pipeline.plan_file}", f"--out={pipeline.collected}")
        assert pipeline.run(*collect, folder=joining).code == 0
        assert comparables(pipeline.records()) == expected


def test_a_part_that_is_run_again_goes_on(pipeline: Pipeline) -> None:
    pipeline.plan("--base", "0")
    here = machine(pipeline, "here")
    for _ in range(2):
        finish(start(here, "bash", str(PART), str(pipeline.plan_file), str(pipeline.artifacts), "1/1"))
    assert len(list(pipeline.artifacts.glob("*/*/manifest.json"))) == 4
    lines = [line for path in pipeline.artifacts.rglob("replicates.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == 12


def test_a_plain_host_evaluates_what_was_pushed_since_the_last_time(pipeline: Pipeline) -> None:
    host, work = machine(pipeline, "host"), pipeline.root / "work"
    finish(start(host, "bash", str(CRON), str(host), str(work)))
    assert {row["skill_version"] for row in pipeline.rows()} == {"1.0.0"}
    finish(start(host, "bash", str(CRON), str(host), str(work)))
    assert len(pipeline.rows()) == 2
    assert not work.exists()
    git(pipeline.checkout, "pull", "-q", "--ff-only", "origin", "main")
    prompt = pipeline.checkout / "components" / SKILL / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.1.0"))
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", "origin", "main")
    finish(start(host, "bash", str(CRON), str(host), str(work)))
    assert sorted(row["skill_version"] for row in pipeline.rows()) == ["1.0.0", "1.0.0", "1.1.0", "1.1.0"]


def test_the_stages_of_the_gitlab_pipeline_record_what_was_pushed(pipeline: Pipeline) -> None:
    """Each job in a clone of its own, with nothing from the jobs before but their artifacts."""
    definition = yaml.safe_load((RECIPES / "gitlab-ci.yml").read_text())
    shutil.copytree(RECIPES, pipeline.checkout / "ci")
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", pipeline.origin.as_uri(), "main")
    variables = {
        "CI_COMMIT_BEFORE_SHA": "0" * 40,
        "CI_COMMIT_BRANCH": "main",
        "CI_NODE_TOTAL": str(definition["evaluate"]["parallel"]),
        "PUSH_URL": pipeline.origin.as_uri(),
    }
    brought, kept = pipeline.root / "brought", pipeline.root / "kept"
    brought.mkdir()
    kept.mkdir()
    for stage in definition["stages"]:
        for node in range(1, definition[stage].get("parallel", 1) + 1):
            folder = machine(pipeline, f"{stage}-{node}")
            shutil.copytree(kept, folder, dirs_exist_ok=True)
            script = "set -eo pipefail\n" + "\n".join(definition[stage]["script"])
            finish(start(folder, "bash", "-c", script, **variables, CI_NODE_INDEX=str(node)))
            for path in definition[stage]["artifacts"]["paths"]:
                left = folder / path
                if left.is_dir():
                    shutil.copytree(left, brought / path, dirs_exist_ok=True)
                else:
                    shutil.copy(left, brought / path)
        shutil.copytree(brought, kept, dirs_exist_ok=True)
    assert [(row["complete"], row["n_cases"]) for row in pipeline.rows()] == [(True, 3)] * 2


def test_the_page_shows_every_recipe() -> None:
    page = (RECIPES.parents[1] / "ci.md").read_text()
    assert set(re.findall(r"\(examples/elsewhere/(\S+)\)", page)) == {path.name for path in RECIPES.iterdir()}
