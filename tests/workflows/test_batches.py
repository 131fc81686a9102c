"""Batches in CI, run by act: two runs submit, another collects both, a commit each, a fourth has nothing to do."""

from pathlib import Path

import pytest

from tests.support.library import REPLAY
from tests.workflows.forge import BATCHES, Forge

pytestmark = pytest.mark.act

KEY = {"PROVIDER_API_KEY": "key-of-the-batched-model"}
ON = {"SKILL_EVALUATOR_BATCH": "on"}


def test_pushes_are_submitted_a_later_run_records_each_in_one_commit_and_a_last_has_nothing_to_do(forge: Forge) -> None:
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
    forge.component("two", "1.0.0")
    event = forge.push()
    assert forge.run(event, secrets=KEY, variables=ON).steps("Ask")["two@batched"] == "success"
    (files,) = forge.landed(event["after"])
    (pending_two,) = (path for path in files.split() if "/pending/" in path)
    forge.pull()
    tip = forge.git("rev-parse", "HEAD")
    schedule = {"ref": "refs/heads/main"}

    forge.world["batches_held"] = True
    waiting = forge.run(schedule, "schedule", BATCHES, KEY, ON)
    assert waiting.steps("Ask") == {"one@batched": "success", "two@batched": "success"}
    assert forge.landed(tip) == []
    assert "1 batch at the vendor since" in forge.world["comments"][0]

    forge.world["batches_held"] = False
    forge.pull()
    collected = forge.run(schedule, "schedule", BATCHES, KEY, ON)
    assert collected.steps("Report") == {"verdict": "success"}
    landed = forge.landed(tip)
    assert len(landed) == 2
    for name, path in (("one", pending), ("two", pending_two)):
        record = f"components/{name}/evals/records/{Path(path).stem}.json"
        files = next(files for files in landed if path in files)
        assert sorted(files.split()) == sorted([f"components/{name}/leaderboard.json", path, record])
    (row,) = (row for row in forge.rows("one") if row["model_id"] == "batched")
    assert (row["complete"], row["scored"], forge.world["submitted"]) == (True, 4, {"alpha": 4, "beta": 4})
    assert "pending" not in forge.world["comments"][0]  # that of the push, rewritten

    forge.pull()
    nothing = forge.run(schedule, "schedule", BATCHES, KEY, ON)
    assert nothing.jobs == {"find": "success"}
    assert "No batch is left to collect." in nothing.printed("find")
    off = forge.run(schedule, "schedule", BATCHES, KEY)
    assert (off.jobs, len(forge.landed(tip))) == ({}, 2)
