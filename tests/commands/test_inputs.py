"""The inputs of cases: versions with other inputs, cases in one table, and files as documents."""

import base64
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.batch_server import batch_server
from tests.support.batched import KEYS, set_up
from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.documents import a_png
from tests.support.git import GitRepository
from tests.support.library import CASES, SKILL, Library, read, whole_lines

PLAIN = "Extract title and year."
TYPED = "## System\n\nYou read a {{doc_type}}.\n\n## User\n\n{{document}}\n\nIt is a {{doc_type}}."
INPUTS = ("inputs: [document, doc_type]", "messages: sections")


def prompt(library: Library, version: str, body: str, *front: str) -> None:
    text = "\n".join(["---", f"name: {SKILL}", f"version: {version}", *front, "---", body, ""])
    library.write(f"components/{SKILL}/prompt.md", text)


def inputs(library: Library, case_id: str, values: Mapping[str, Any]) -> None:
    library.write(f"fixtures/{SKILL}/cases/{case_id}/inputs.json", values)


class Seen:
    """A server's script that notes the messages of each case, and answers rightly."""

    def __init__(self, server: ChatServer) -> None:
        self.messages: dict[str, set[str]] = {}
        server.reply = self

    def __call__(self, asked: Asked) -> Reply:
        self.messages.setdefault(asked.case_id, set()).add(json.dumps(asked.body["messages"]))
        return Reply(text=notice(asked.case_id))


@pytest.fixture
def seen(server: ChatServer) -> Seen:
    return Seen(server)


@pytest.fixture
def typed(served: Library, seen: Seen) -> Library:
    """1.0.0 is recorded and committed; the work tree holds 1.1.0, which uses one input more."""
    repository = GitRepository(served.root)
    repository.commit()
    assert served.evaluate_here().code == 0
    repository.commit("record")
    served.settings(policy={"design": "beside"})
    prompt(served, "1.1.0", TYPED, *INPUTS)
    for case_id in CASES:
        inputs(served, case_id, {"doc_type": f"notice {case_id}"})
    seen.messages.clear()
    return served


def measured(library: Library) -> dict[str, dict[str, Any]]:
    """The newest records by version."""
    paths = sorted((library.component / "evals" / "records").iterdir())
    return {record["skill_version"]: record for record in map(read, paths)}


def left_out(library: Library) -> Mapping[str, str]:
    """What the comparison of the two versions leaves out, and why."""
    done = library.call("compare", SKILL, "--format", "json")
    assert done.code == 0, done.err
    (model,) = done.json["models"]
    assert model["verdict"] != "incomparable"
    return dict(model["cases"]["left_out"])


def test_version_with_another_input_is_interleaved_and_compared(typed: Library, seen: Seen) -> None:
    done = typed.evaluate_here()
    assert done.code == 0, done.err
    document = "alpha is the title of a notice of 2024.\n"
    assert [json.loads(messages) for messages in sorted(seen.messages["alpha"])] == [
        [{"role": "system", "content": PLAIN}, {"role": "user", "content": document}],
        [
            {"role": "system", "content": "You read a notice alpha."},
            {"role": "user", "content": f"{document}\n\nIt is a notice alpha."},
        ],
    ]
    assert not left_out(typed)
    old, new = (measured(typed)[version]["per_case"][0]["parts"] for version in ("1.0.0", "1.1.0"))
    assert old == {"document": new["document"]}
    assert new.keys() == {"document", "doc_type"}
    assert typed.call("lint").code == 0


PROMPT = (
    f"---\nname: {SKILL}\nversion: 2.0.0\ninputs: [document, name]\nmessages: sections\n---\n"
    "## System\n\nExtract title and year.\n\n## User\n\n{{name}} is the title of this:\n{{document}}\n"
)
PIXELS = a_png(300, 200, padding=70_000)


@pytest.fixture
def scans(library: Library) -> Library:
    """A library whose documents are images."""
    library.write(f"components/{SKILL}/prompt.md", PROMPT)
    for case_id in CASES:
        give(library, case_id, PIXELS)
    return library


def give(library: Library, case_id: str, content: bytes) -> None:
    folder = library.root / "fixtures" / SKILL / "cases" / case_id
    for path in folder.glob("document.*"):
        path.unlink()
    (folder / "document.png").write_bytes(content)
    (folder / "inputs.json").write_text(json.dumps({"name": case_id}))


def right(asked: Asked) -> Reply:
    return Reply(text=notice(asked.case_id))


def test_image_is_sent_and_stored_in_no_run(scans: Library, server: ChatServer) -> None:
    scans.served_by(server.url, accepts=["image"])
    sent: list[Any] = []

    def reply(asked: Asked) -> Reply:
        sent.append(asked.body["messages"][1]["content"])
        return right(asked)

    server.reply = reply
    done = scans.evaluate_here()
    assert done.code == 0, done
    assert len(sent) == len(CASES) * 2
    for said, shown in sent:
        assert said == {"type": "text", "text": f"{said['text'].split()[0]} is the title of this:\n"}
        assert shown["type"] == "image_url"
        begin, _, data = shown["image_url"]["url"].partition(",")
        assert (begin, base64.b64decode(data)) == ("data:image/png;base64", PIXELS)
    parts = (PIXELS[-2_000:], base64.b64encode(PIXELS)[3_000:3_200])
    kept = [path for path in scans.component.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert not [path for path in kept if any(part in path.read_bytes() for part in parts)]
    explained = scans.call("explain", scans.run_folder().name, "--case", "alpha")
    assert "[document.png: image/png, 300x200, " in explained.out, explained


def test_batches_are_split_by_the_bytes_of_files(scans: Library) -> None:
    for case_id, size in {"alpha": 7_500_000, "beta": 7_500_000, "gamma": 16_000_000}.items():
        give(scans, case_id, a_png(padding=size))
    with batch_server() as server:
        set_up(scans, server, "google")
        done = scans.evaluate_here("--batch", "--replicates", "1", env=KEYS)
        assert done.code == 4, done
        assert [len(batch.requests) for batch in server.batches] == [1, 1]
        assert server.submitted == {"alpha": 1, "beta": 1}
    lines = whole_lines(scans.run_folder() / "replicates.jsonl")
    assert Counter(line.get("error", {}).get("reason") for line in lines) == {None: 2, "request_too_large": 1}
