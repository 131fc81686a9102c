"""The workflow check.yml, run by act on pull requests: what is in order passes, what is not is marked where it is."""

from typing import Any

import pytest

from tests.workflows.forge import CHECK, Forge

pytestmark = pytest.mark.act


@pytest.fixture
def base(forge: Forge) -> str:
    for name in ("one", "two"):
        forge.component(name, "1.0.0")
    after: str = forge.push()["after"]
    return after


def _pull_request(forge: Forge, base: str) -> dict[str, Any]:
    forge.push("A change")
    return {"number": 7, "pull_request": {"number": 7}}


def test_a_pull_request_in_order_shows_what_it_would_start_and_asks_no_model(forge: Forge, base: str) -> None:
    forge.component("one", "1.1.0")
    acted = forge.run(_pull_request(forge, base), "pull_request", CHECK)
    assert acted.code == 0
    assert "1 component: 4 calls" in acted.printed("check")
    assert acted.steps("Dry run of the changed components") == {"check": "success"}
    plan = acted.commands("summary")[-1]["content"]
    assert "1 job, 4 calls" in plan
    assert "`MINOR 1.0.0 → 1.1.0`" in plan
    assert forge.uploaded() == set()


def test_a_merge_queue_is_checked_against_the_base_of_its_group(forge: Forge, base: str) -> None:
    forge.component("one", "1.1.0")
    forge.push("A change")
    acted = forge.run({"merge_group": {"base_sha": base}}, "merge_group", CHECK)
    assert acted.code == 0
    assert "`MINOR 1.0.0 → 1.1.0`" in acted.commands("summary")[-1]["content"]


def test_a_prompt_changed_without_a_bump_is_marked_and_the_plan_is_shown_all_the_same(forge: Forge, base: str) -> None:
    prompt = forge.library.root / "components" / "one" / "prompt.md"
    prompt.write_text(prompt.read_text().replace("Extract", "Find"))
    forge.component("two", "2.0.0")
    acted = forge.run(_pull_request(forge, base), "pull_request", CHECK)
    assert acted.code != 0
    assert acted.steps("Lint") == {"check": "failure"}
    assert acted.steps("Plan") == {"check": "success"}
    (error,) = acted.commands("error")
    assert error["kvPairs"]["file"] == "components/one/prompt.md"
    assert "the prompt changed but the version did not" in error["arg"]
    assert "MAJOR 1.0.0 → 2.0.0" in acted.commands("summary")[-1]["content"]
