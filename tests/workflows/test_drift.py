"""The workflow drift.yml, run by act: off until its variable is set; then a model that moved fails the verdict."""

import pytest

from tests.support.chat_server import Reply, chat_server, notice
from tests.workflows.forge import DRIFT, Forge

pytestmark = pytest.mark.act

CASES = tuple(f"case-{number}" for number in range(7))
KEY = {"PROVIDER_API_KEY": "key-of-the-served-model"}


def test_a_model_that_moved_though_its_prompt_did_not_fails_the_verdict_once_drift_is_switched_on(forge: Forge) -> None:
    forge.library.models({**forge.served, "price": {"input": 1, "output": 1}})
    forge.library.settings(replicates=3)
    forge.component("one", "1.0.0", cases=CASES)
    forge.push()
    with chat_server(forge.world["chat_port"]) as chat:
        chat.reply = lambda asked: Reply(text=notice(asked.case_id), served_model="model-1")
        assert forge.library.call("evaluate", "one", env={"SERVED_API_KEY": "key"}).code == 0
    event = forge.push("Record it")
    forge.world["moved"] = {"year": 1999, "served_model": "model-2"}

    off = forge.run({"ref": "refs/heads/main"}, "schedule", DRIFT, KEY)
    assert (off.jobs, forge.world["asked"], forge.landed(event["after"])) == ({}, [], [])

    on = forge.run({"ref": "refs/heads/main"}, "schedule", DRIFT, KEY, {"SKILL_EVALUATOR_DRIFT": "5"})

    assert on.steps("Ask") == {"one@served": "success"}
    assert len(forge.world["asked"]) == 3 * len(CASES)
    (files,) = forge.landed(event["after"])  # the record of the moved model is kept, too
    (row, first) = forge.rows("one")
    assert (row["skill_version"], row["served_model"], first["served_model"]) == ("1.0.0", "model-2", "model-1")
    assert f"components/one/evals/records/{row['run_id']}.json" in files
    assert forge.fetched(f"components/one/evals/records/{row['run_id']}.json")["drift"]["since"] == first["run_id"]
    plan, verdict = (line["content"] for line in on.commands("summary"))
    assert "Reason: `Has a vendor changed a model?`" in plan
    assert ", capped at $" in plan
    assert "**the model moved though the prompt did not**: `one` on `served`" in verdict
    assert "`served`: the vendor served `model-1`, then `model-2`" in verdict
    assert (on.steps("Collect"), on.steps("Report")) == ({"collect": "success"}, {"verdict": "failure"})
    assert forge.world["comments"] == []  # a schedule belongs to no pull request
