"""Hostile text in all that reaches the workflow from outside, under act: nothing of it is done or leaves its place."""

import json

import pytest

from tests.support.hostile import EVERYTHING, FILE_NAME, outside_of_code, runner_commands
from tests.workflows.act import Acted
from tests.workflows.forge import Forge

pytestmark = pytest.mark.act

KEY = {"SERVED_API_KEY": "key-of-the-served-model"}
MARK = "<!-- skill-evaluator -->"
BRANCH = "x$(touch${IFS}pwned)`touch${IFS}pwned`;<b>@someone#1"


@pytest.fixture
def hostile(forge: Forge) -> Forge:
    """Documents, answers and refusals are hostile, and so is the name of a case."""
    answer = json.dumps({"title": EVERYTHING, "year": 2024})
    forge.library.models({"id": "answers", "provider": "replay", "params": {"file": "answers.jsonl"}}, forge.served)
    forge.component("one", "1.0.0", cases=("alpha", FILE_NAME))
    forge.library.write(f"fixtures/one/cases/{FILE_NAME}/document.md", f"alpha {EVERYTHING}")
    forge.library.record_answers({(case, index): answer for case in ("alpha", FILE_NAME) for index in range(2)})
    forge.world["refused"] = {"alpha": EVERYTHING}
    forge.push("Begin")
    return forge


def test_push_of_hostile_text_runs_nothing_of_it(hostile: Forge) -> None:
    hostile.component("one", "1.1.0", cases=())
    hostile.component(FILE_NAME, "1.0.0", cases=())
    hostile.library.write("components/two/prompt.md", f"---\nname: two\nversion: {json.dumps(EVERYTHING)}\n---\nDo.\n")
    event = hostile.push(EVERYTHING)
    hostile.git("push", "--quiet", "origin", f"HEAD:refs/heads/{BRANCH}")
    event["ref"] = f"refs/heads/{BRANCH}"
    hostile.world |= {"comments": [f"{MARK}\nI am the verdict"], "by_people": 1}

    acted = hostile.run(event, secrets=KEY)

    assert {entry for entry in hostile.uploaded() if "@" in entry} == {"one@answers", "one@served"}
    assert acted.jobs["collect"] == "success"
    assert hostile.landed(event["after"]) == []
    hostile.git("fetch", "--quiet", "origin")
    board = json.loads(hostile.git("show", f"refs/remotes/origin/{BRANCH}:components/one/leaderboard.json"))
    assert {row["model_id"] for row in board["runs"] if row["complete"]} == {"answers"}
    assert hostile.world["comments"].pop(0) == f"{MARK}\nI am the verdict"
    assert len(hostile.world["comments"]) == 1
    _nothing_was_done(acted, hostile)


def test_hostile_refusal_of_the_origin_runs_nothing_of_it(hostile: Forge) -> None:
    hook = hostile.root / "origin.git" / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{EVERYTHING}\nEND\nexit 1\n")
    hook.chmod(0o755)
    acted = hostile.dispatch(KEY, components="one", models="answers")
    done = dict.fromkeys(("plan", "one@answers", "collect", "build"), "success")  # `build` is of the site
    assert acted.jobs == {**done, "publish": "failure"}
    (comment,) = hostile.world["comments"]
    assert "Some records were not pushed to their branch" in comment
    _nothing_was_done(acted, hostile)


def _nothing_was_done(acted: Acted, forge: Forge) -> None:
    """No command of the text took effect, no shell ran a part of it, and pages show it as code on one line."""
    assert not list(forge.root.rglob("pwned*"))
    ours = {"set-output", "summary", "warning"}
    taken = {line["command"] for line in acted.lines if "command" in line}
    assert taken <= ours, [line for line in acted.lines if line.get("command") not in {None, *ours}]
    ours = {"matrix", "jobs", "faults", "sha256", "fixtures-commit", "missing", "commit", "pull-request"}
    assert {line["name"] for line in acted.commands("set-output")} <= ours
    for warning in acted.commands("warning"):
        of_the_site = {"title": "Not all files could be read"}  # which says no more, as `two` has no version
        assert warning["kvPairs"] == of_the_site or warning["kvPairs"]["file"].startswith("components/")
    assert runner_commands("".join(line["msg"] for line in acted.lines if line.get("raw_output"))) == []
    pages = [line["content"] for line in acted.commands("summary")] + forge.world["comments"]
    for page in pages:
        live = outside_of_code(page).replace(MARK, "")
        assert not [mark for mark in ("pwned", "<", "@someone", "evil", "#123") if mark in live]
        assert not [mark for mark in ("\x1b", "\u202e", "\u200b", "\x9b") if mark in page]
