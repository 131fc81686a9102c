"""The release workflow: off until it is switched on, and what may publish runs nothing of the repository."""

from typing import Any

import yaml

from tests.workflows.act import WORKFLOWS

RELEASE: Any = yaml.safe_load((WORKFLOWS / "release.yml").read_text())


def test_release_runs_only_if_it_is_switched_on() -> None:
    assert RELEASE[True] == {"release": {"types": ["published"]}}  # YAML 1.1 reads the key `on` as true
    for job in RELEASE["jobs"].values():
        assert job.get("if") == "vars.SKILL_EVALUATOR_RELEASE == 'on'" or job["needs"] == "build"


def test_publishing_job_waits_for_a_reviewer_and_runs_no_script() -> None:
    assert RELEASE["permissions"] == {}
    build, publish = RELEASE["jobs"]["build"], RELEASE["jobs"]["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"id-token": "write", "attestations": "write"}
    assert publish["environment"] == {"name": "release"}
    assert not [step for step in publish["steps"] if "run" in step]
    assert not [step for step in (*build["steps"], *publish["steps"]) if "secrets." in str(step)]


def test_built_files_are_kept_before_another_tool_runs() -> None:
    names = [step.get("name") for step in RELEASE["jobs"]["build"]["steps"]]
    assert names.index("Keep what was built") < names.index("List what it needs")
