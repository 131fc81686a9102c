"""A comparison says which settings of a model changed; the address that answers come from is none of them."""

import shutil

import pytest

from tests.commands.test_draft import RIGHT, evaluate, write
from tests.support.chat_server import Reply, chat_server, notice
from tests.support.library import ANSWERS, REPLAY, SKILL, Library

_PROMPTS = ("Extract title and year.", "Extract title and year, please.")


def versions(library: Library) -> None:
    """Write the second version; its answers are those of the first."""
    write(library, "1.1.0", _PROMPTS[1], RIGHT)


@pytest.fixture(autouse=True)
def _small(library: Library) -> None:
    library.settings(replicates=6)
    write(library, "1.0.0", _PROMPTS[0], RIGHT)


def test_another_file_of_answers_is_no_setting(library: Library) -> None:
    assert evaluate(library).code == 0
    versions(library)
    shutil.copy(library.root / ANSWERS, library.root / "others.jsonl")
    library.models({**REPLAY, "params": {"file": "others.jsonl"}})
    done = evaluate(library, "--format", "json")
    (model,) = done.json["comparison"]["models"]
    assert model["verdict"] != "incomparable"
    assert [reason for reason in model["reasons"] if "which is no setting of the model" in reason] == [
        "the answers come from elsewhere, which is no setting of the model: "
        'params.file "answers.jsonl" → "others.jsonl"'
    ]


def test_another_server_is_no_setting_unless_it_serves_another_model(library: Library) -> None:
    with chat_server() as first, chat_server() as second:
        first.reply = lambda asked: Reply(text=notice(asked.case_id))
        library.served_by(first.url)
        assert evaluate(library).code == 0
        versions(library)
        library.served_by(second.url)
        for served, comparable in (("another-model", False), ("served", True)):
            second.reply = lambda asked, served=served: Reply(text=notice(asked.case_id), served_model=served)
            done = library.call("evaluate", SKILL, "--format", "json")
            (model,) = done.json["comparison"]["models"]
            assert (model["verdict"] != "incomparable") is comparable, served
            assert any("base_url" in reason for reason in model["reasons"]), served
