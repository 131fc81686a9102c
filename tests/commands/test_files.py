"""Cases that hold files, from the command line: sent to who reads them, kept nowhere, refused where they are broken."""

import base64
import json
from collections import Counter
from typing import Any

import pytest

from tests.support.batch_server import batch_server
from tests.support.batched import KEYS, set_up
from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.documents import a_png
from tests.support.library import CASES, SKILL, Library, whole_lines

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


def test_an_image_reaches_a_compatible_server_and_is_kept_nowhere(scans: Library, server: ChatServer) -> None:
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


def test_a_model_without_eyes_is_not_asked_and_said(scans: Library, server: ChatServer) -> None:
    blind = {"id": "blind", "provider": "openai", "base_url": server.url}
    scans.models(blind, {**blind, "id": "served", "accepts": ["image"], "price": {"input": 1.0, "output": 1.0}})
    scans.write(f"fixtures/{SKILL}/cases/alpha/document.md", "alpha, as text\n")  # which is taken before an image
    server.reply = right
    planned = scans.evaluate_here("--dry-run")
    assert planned.code == 0, planned
    why = "image: not among what it accepts (models.yaml)"
    assert f"not applicable to blind, and not asked: beta ({why}), gamma ({why})" in planned.out
    assert "tokens of images and of pages of PDFs are estimates" in planned.out
    assert not server.requests
    assert scans.evaluate_here().code == 0
    asked = {
        record["model_id"]: (record["scored"], list(record.get("not_applicable", {}))) for record in scans.records()
    }
    assert asked == {"blind": (2, ["beta", "gamma"]), "served": (6, [])}


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
