"""The workflow check.yml, run by act: on a pull request in order, and on a merge queue with an error."""

import pytest

from tests.workflows.forge import CHECK, Forge

pytestmark = pytest.mark.act


@pytest.fixture
def base(forge: Forge) -> str:
    for name in ("one", "two"):
        forge.component(name, "1.0.0")
    after: str = forge.push()["after"]
    return after


@pytest.mark.usefixtures("base")
def test_pull_request_shows_its_plan_and_makes_no_call(forge: Forge) -> None:
    forge.component("one", "1.1.0")
    forge.push("A change")
    acted = forge.run({"number": 7, "pull_request": {"number": 7}}, "pull_request", CHECK)
    assert acted.code == 0
    assert "1 component: 4 calls" in acted.printed("check")
    assert acted.steps("Dry run of the changed components") == {"check": "success"}
    plan = acted.commands("summary")[-1]["content"]
    assert "1 job, 4 calls" in plan
    assert "`MINOR 1.0.0 → 1.1.0`" in plan
    assert forge.uploaded() == set()


def test_merge_queue_marks_a_prompt_changed_without_a_bump(forge: Forge, base: str) -> None:
    prompt = forge.library.root / "components" / "one" / "prompt.md"
    prompt.write_text(prompt.read_text().replace("Extract", "Find"))
    forge.component("two", "2.0.0")
    forge.push("A change")
    acted = forge.run({"merge_group": {"base_sha": base}}, "merge_group", CHECK)
    assert acted.code != 0
    assert acted.steps("Lint") == {"check": "failure"}
    assert acted.steps("Plan") == {"check": "success"}
    (error,) = acted.commands("error")
    assert error["kvPairs"]["file"] == "components/one/prompt.md"
    assert "the prompt changed but the version did not" in error["arg"]
    assert "MAJOR 1.0.0 → 2.0.0" in acted.commands("summary")[-1]["content"]
