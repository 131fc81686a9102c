"""Machines other than GitHub's, by the scripts of the page: parts of a plan are asked apart and joined anywhere."""

import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.git import IDENTITY, git
from tests.support.library import SCRIPT, SKILL, Library, comparable, read
from tests.support.pipeline import Pipeline

pytestmark = pytest.mark.pages

RECIPES = SCRIPT.parents[1] / "docs" / "examples" / "elsewhere"
PART, CRON = RECIPES / "part.sh", RECIPES / "cron.sh"
SCALE = RECIPES.with_name("scale")
STAND_INS = {  # of what a cluster has and this machine has not
    "sbatch": """#!/usr/bin/env bash
        IFS=- read -r first last <<< "$(sed -n 's/^#SBATCH --array=//p' "$1")"
        export SLURM_SUBMIT_DIR=$PWD SLURM_ARRAY_TASK_COUNT=$((last - first + 1))
        tasks=()
        for task in $(seq "$first" "$last"); do
          SLURM_ARRAY_TASK_ID=$task PORT=$((PORTS + task)) bash "$@" & tasks+=($!)
        done
        for task in "${tasks[@]}"; do wait "$task" || exit 1; done""",
    "srun": '#!/usr/bin/env bash\n[ "$1" = --overlap ] && shift\nexec "$@"',
    "ssh": '#!/usr/bin/env bash\necho "$1" >> "$HOSTS"\nshift\nexec bash -c "$*"',
    "vllm": f"""#!{sys.executable}
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
assert os.environ["VLLM_BATCH_INVARIANT"] == "1" and sys.argv[1:3] == ["serve", "some/model"], sys.argv
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Healthy).serve_forever()
""",
}


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


def test_two_machines_run_the_parts_of_a_plan(pipeline: Pipeline) -> None:
    pipeline.plan("--base", "0")
    first, second = machine(pipeline, "first"), machine(pipeline, "second")
    results = [first / "results", second / "results"]
    finish(
        start(first, "bash", str(PART), str(pipeline.plan_file), str(results[0]), "1/2"),
        start(second, "bash", str(PART), str(pipeline.plan_file), str(results[1]), "2/2"),
    )
    assert [len(list(folder.iterdir())) for folder in results] == [2, 2]
    for folder in results:
        shutil.copytree(folder, pipeline.artifacts, dirs_exist_ok=True)
    expected = whole(pipeline)
    for joining in (first, second):
        places = (str(pipeline.artifacts), f"--plan={pipeline.plan_file}", f"--out={pipeline.collected}")
        assert pipeline.run("ci", "collect", *places, folder=joining).code == 0
        assert comparables(pipeline.records()) == expected


def test_invalid_part_is_refused(pipeline: Pipeline) -> None:
    pipeline.plan("--base", "0")
    here = machine(pipeline, "here")

    def part(name: str) -> tuple[str, int]:
        process = start(here, "bash", str(PART), str(pipeline.plan_file), str(pipeline.artifacts), name)
        return process.communicate(timeout=120)[0], process.returncode

    assert part("0/4") == ("part 0/4 is not I/N with 1 <= I <= N, such as 2/3\n", 1)
    assert part("5/5") == ("no job for part 5/5: the plan has 4\n", 0)
    git(here, "commit", "-q", "--allow-empty", "-m", "later")
    assert re.search("^the plan is of commit [0-9a-f]{40}, .*: git checkout ", part("1/1")[0])


def test_cron_job_evaluates_pushed_versions(pipeline: Pipeline) -> None:
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


def test_steps_after_a_plan_run_as_printed_in_the_same_clone(pipeline: Pipeline) -> None:
    Library(pipeline.checkout).settings()  # every run is whole, with no shards
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", pipeline.origin.as_uri(), "main")
    here, results = machine(pipeline, "here"), pipeline.root / "results"
    pipeline.run("ci", "plan", "--base", "0", folder=here)
    finish(start(here, "bash", str(PART), "plan.json", str(results), "1/1"))
    collected = pipeline.run("ci", "collect", str(results), folder=here)
    assert collected.code == 0
    assert pipeline.run("ci", "publish", folder=here).code == 0
    steps = re.findall("`(git pull .*?)`", collected.out)
    assert len(steps) == 2
    for step in steps:
        process = start(here, "bash", "-c", step)
        assert "rror: " not in process.communicate(timeout=300)[0]  # of git or of the command


def test_gitlab_pipeline_records_pushed_versions(pipeline: Pipeline) -> None:
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


@pytest.fixture
def cluster(pipeline: Pipeline) -> Mapping[str, str]:
    """The path on which the stand-ins are found, and where they write."""
    folder = pipeline.root / "bin"
    folder.mkdir()
    for name, text in STAND_INS.items():
        (folder / name).write_text(textwrap.dedent(text))
        (folder / name).chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1] - 100
    path = os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {"PATH": path, "PORTS": str(port), "HOSTS": str(pipeline.root / "hosts")}


def assert_joined(pipeline: Pipeline) -> None:
    joined = pipeline.collect()
    assert (joined.code, "to ask again" in joined.err) == (0, False), joined.err
    assert comparables(pipeline.records()) == whole(pipeline)


def test_slurm_array_runs_the_plan_with_a_server_per_task(pipeline: Pipeline, cluster: Mapping[str, str]) -> None:
    pipeline.plan("--base", "0")
    here = machine(pipeline, "here")
    shutil.copy(PART, here)
    script = ("sbatch", str(SCALE / "array.sbatch"), str(pipeline.plan_file), str(pipeline.artifacts), "some/model")
    finish(start(here, *script, **cluster))
    assert_joined(pipeline)
    without_server = start(here, *script[:-1], "no/model", **cluster)
    without_server.communicate(timeout=120)
    assert without_server.returncode == 1


def test_ssh_hosts_run_the_plan(pipeline: Pipeline, cluster: Mapping[str, str]) -> None:
    pipeline.plan("--base", "0")
    here = machine(pipeline, "here")
    for name in (PART, SCALE / "hosts.sh"):
        shutil.copy(name, here)
    hosts = ("gpu-1", "gpu-2", "gpu-3")
    finish(start(here, "bash", "hosts.sh", str(pipeline.plan_file), str(pipeline.artifacts), *hosts, **cluster))
    assert sorted(Path(cluster["HOSTS"]).read_text().split()) == list(hosts)
    assert_joined(pipeline)


def test_pods_of_an_indexed_job_run_the_plan(pipeline: Pipeline) -> None:
    pipeline.plan("--base", "0")
    here = machine(pipeline, "here")
    shutil.copy(PART, here)
    job = yaml.safe_load((SCALE / "job.yaml").read_text())["spec"]
    (container,) = job["template"]["spec"]["containers"]
    places = {"/shared/plan.json": str(pipeline.plan_file), "/shared/results": str(pipeline.artifacts)}
    (line,) = container["args"]
    for place, there in places.items():
        assert place in line
        line = line.replace(place, there)
    assert (job["completionMode"], f"/{job['completions']}" in line) == ("Indexed", True)
    pods = (start(here, *container["command"], line, JOB_COMPLETION_INDEX=str(at)) for at in range(job["completions"]))
    finish(*pods)
    assert_joined(pipeline)


def test_printed_command_repeats_the_lost_calls(pipeline: Pipeline) -> None:
    pipeline.plan("--base", "0")
    here = machine(pipeline, "here")
    finish(start(here, "bash", str(PART), str(pipeline.plan_file), str(pipeline.artifacts), "1/1"))
    lost, torn, *_ = sorted(pipeline.artifacts.iterdir())
    shutil.rmtree(lost)
    (journal,) = torn.rglob("replicates.jsonl")
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    for path in (journal.with_name("record.json"), journal.with_name("report.md")):
        path.unlink()
    ended = pipeline.collect()
    assert ended.code == 4
    lines = [line.partition(": ")[2] for line in ended.err.splitlines() if line.startswith("to make the missing calls")]
    assert len(lines) == 2
    finish(*(start(here, "bash", "-c", line) for line in lines))
    shutil.rmtree(pipeline.collected)
    assert_joined(pipeline)
    answers = [line for path in pipeline.artifacts.rglob("replicates.jsonl") for line in path.read_text().splitlines()]
    assert len(answers) == 12  # none was asked twice


@pytest.mark.parametrize("folder", [RECIPES, SCALE])
def test_page_links_every_recipe(folder: Path) -> None:
    shown = re.findall(rf"\(examples/{folder.name}/(\S+)\)", (RECIPES.parents[1] / "scale.md").read_text())
    assert set(shown) == {path.name for path in folder.iterdir()}
