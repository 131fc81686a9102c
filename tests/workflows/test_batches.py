"""Batches in CI, run by act: one run submits, another collects and makes one commit, a third has nothing to do."""

from pathlib import Path

import pytest

from tests.support.library import REPLAY
from tests.workflows.forge import BATCHES, Forge

pytestmark = pytest.mark.act

KEY = {"PROVIDER_API_KEY": "key-of-the-batched-model"}
ON = {"SKILL_EVALUATOR_BATCH": "on"}


def test_a_push_is_submitted_a_later_run_records_it_in_one_commit_and_a_third_has_nothing_to_do(forge: Forge) -> None:
    forge.library.models(forge.batched, REPLAY)
    forge.component("one", "1.0.0")
    event = forge.push()

    submitted = forge.run(event, secrets=KEY, variables=ON)

    assert submitted.steps("Ask") == {"one@batched": "success", "one@recorded": "success"}
    (files,) = forge.landed(event["after"])
    (pending,) = (path for path in files.split() if "/pending/" in path)
    assert [row["model_id"] for row in forge.rows("one")] == ["recorded"]  # which has no batch API
    assert "**pending**, asked in batches" in forge.world["comments"][0]
    forge.pull()
    tip = forge.git("rev-parse", "HEAD")
    schedule = {"ref": "refs/heads/main"}

    forge.world["batches_held"] = True
    waiting = forge.run(schedule, "schedule", BATCHES, KEY, ON)
    assert waiting.steps("Ask") == {"one@batched": "success"}
    assert forge.landed(tip) == []
    assert "1 batch at the vendor since" in forge.world["comments"][0]

    forge.world["batches_held"] = False
    forge.pull()
    collected = forge.run(schedule, "schedule", BATCHES, KEY, ON)
    assert collected.steps("Report") == {"verdict": "success"}
    (files,) = forge.landed(tip)
    record = f"components/one/evals/records/{Path(pending).stem}.json"
    assert sorted(files.split()) == sorted(["components/one/leaderboard.json", pending, record])
    (row,) = (row for row in forge.rows("one") if row["model_id"] == "batched")
    assert (row["complete"], row["scored"], forge.world["submitted"]) == (True, 4, {"alpha": 2, "beta": 2})
    assert "pending" not in forge.world["comments"][0]  # that of the push, rewritten

    forge.pull()
    nothing = forge.run(schedule, "schedule", BATCHES, KEY, ON)
    assert nothing.jobs == {"find": "success"}
    assert "No batch is left to collect." in nothing.printed("find")
    off = forge.run(schedule, "schedule", BATCHES, KEY)
    assert (off.jobs, len(forge.landed(tip))) == ({}, 1)
