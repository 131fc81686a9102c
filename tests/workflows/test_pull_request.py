"""Evaluation before the merge, run by act: by a label or by hand, from a fork, and with changes that are refused."""

import pytest

from tests.support.library import REPLAY
from tests.workflows.act import Acted
from tests.workflows.forge import Forge

pytestmark = pytest.mark.act

KEY = {"SERVED_API_KEY": "key-of-the-served-model"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Forge:
    """Two components that are recorded at 1.0.0."""
    forge = Forge(tmp_path_factory.mktemp("recorded"))
    forge.library.models({**forge.served, "price": {"input": 1, "output": 1}})
    forge.library.settings(replicates=2, jobs={"max_cost": 5}, policy={"design": "recorded"})
    for name in ("one", "two"):
        forge.component(name, "1.0.0")
    assert forge.run(forge.push(), secrets=KEY).code == 0
    return forge


@pytest.fixture
def measured(recorded: Forge) -> Forge:
    """The recorded components, one of them raised to 1.1.0."""
    recorded.git("checkout", "--quiet", "--force", "-B", "main", "origin/main")
    recorded.pull()
    recorded.world["comments"] = []
    recorded.component("one", "1.1.0")
    return recorded


def by_hand(forge: Forge) -> Acted:
    """Start the workflow on main with the number of the pull request."""
    forge.git("checkout", "--quiet", "-B", "main", "origin/main")
    return forge.dispatch(KEY, pull_request="7")


def drafted(forge: Forge, acted: Acted, main: str) -> None:
    assert acted.steps("Evaluate") == {"one@served": "success"}
    assert acted.steps("Report") == {"publish": "success"}
    assert acted.steps("Publish") == {}
    (comment,) = forge.world["comments"]
    assert "A draft before the merge, not recorded; cost: $0.0" in comment
    assert "one with served" in comment
    assert forge.landed(main) == []


def test_label_evaluates_a_pull_request_as_a_draft(measured: Forge) -> None:
    main = measured.git("rev-parse", "origin/main")
    event = measured.pull_request()
    acted = measured.run(event, "pull_request", secrets=KEY)
    drafted(measured, acted, main)
    assert acted.steps("Remove the label, so that it can be set again") == {"publish": "failure"}  # act has no such API
    other = measured.run({**event, "label": {"name": "bug"}}, "pull_request", secrets=KEY)
    assert other.jobs == {}


def test_dispatch_evaluates_a_pull_request_of_a_fork_as_a_draft(measured: Forge) -> None:
    main = measured.git("rev-parse", "origin/main")
    measured.library.write("components/two/leaderboard.json", "[]")  # is not taken
    labelled = measured.pull_request(fork=True)
    refused = measured.run(labelled, "pull_request")
    assert refused.jobs["plan"] == "failure"
    assert "a fork gets no key" in refused.commands("error")[0]["arg"]
    drafted(measured, by_hand(measured), main)


def test_changed_settings_are_refused(measured: Forge) -> None:
    measured.library.write(".evaluator/models.yaml", {"models": [REPLAY]})
    event = measured.pull_request()
    acted = measured.run(event, "pull_request", secrets=KEY)
    assert acted.steps("Evaluate") == {}
    assert acted.steps("Report") == {"publish": "failure"}
    (comment,) = measured.world["comments"]
    assert "the pull request changes .evaluator/models.yaml: files of" in comment
