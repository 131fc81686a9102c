"""Cases that are not applicable to a model are named, not called, and do not lower its completion."""

from pathlib import Path

import pytest

from tests.audit.audit_library import SECOND, AuditLibrary
from tests.support.chat_server import ChatServer, varied
from tests.support.library import SKILL, Library, read

META = f"fixtures/{SKILL}/cases/gamma/meta.json"
DECLARED = "gamma (declared)"
TOO_LONG = "beta (at least 604 tokens, over its context of 500)"  # four words are the prompt's


@pytest.fixture
def limited(served: Library, server: ChatServer) -> Library:
    """A library with one case in the context of the model, one that is too long, and one declared not applicable."""
    served.served_by(server.url, limits={"context_tokens": 500})
    served.write(f"fixtures/{SKILL}/cases/beta/document.md", "beta " * 600)
    served.write(META, {"topic": "notices", "not_applicable": ["other", "serv*"]})
    return served


def test_case_that_is_not_applicable_is_not_called_and_named(limited: Library, server: ChatServer) -> None:
    planned = limited.evaluate_here("--dry-run", "--format", "json").json
    assert planned["models"][0]["calls"] == 2
    assert f"not applicable to served and not called: {TOO_LONG}, {DECLARED}" in planned["further"]
    done = limited.evaluate_here()
    assert (done.code, server.requests) == (0, 2)
    assert "1 case × 2 replicates (2 cases not applicable)" in done.out
    assert f"not applicable to this model: {TOO_LONG}, {DECLARED}" in done.out
    (record,) = limited.records()
    assert (record["complete"], record["coverage"], record["n_cases"], record["failures"]) == (True, 1.0, 1, {})
    assert list(record["not_applicable"]) == ["beta", "gamma"]
    folder = limited.run_folder()
    told = limited.call("explain", folder.name, "--case", "gamma")
    assert (told.code, told.err) == (
        2,
        "error: case 'gamma' is not applicable to served and was not called: declared\n",
    )
    assert limited.call("score", str(folder)).code == 0
    assert read(folder / "record.json")["not_applicable"] == record["not_applicable"]


def test_model_without_an_applicable_case_is_refused(library: Library) -> None:
    for case_id in ("alpha", "beta", "gamma"):
        library.write(f"fixtures/{SKILL}/cases/{case_id}/meta.json", {"not_applicable": ["recorded"]})
    refused = library.evaluate_here()
    assert "warning: skipping recorded: no case is applicable to it: alpha (declared), beta (declared)" in refused.err
    assert (refused.code, f"error: no case of '{SKILL}' is applicable to a model" in refused.err) == (2, True)


def test_audit_skips_questions_that_one_model_cannot_take(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skill_evaluator.audit.page.draw_charts", lambda blocks: {})  # charts take seconds
    library = AuditLibrary(tmp_path)
    one = {"id": "one", "provider": "openai", "base_url": server.url}
    library.models(one, {**one, "id": "two"})
    library.write(f"fixtures/{SECOND}/cases/eta/meta.json", {"not_applicable": ["two"]})
    server.reply = varied
    done = library.audit("--replicates", "1")
    assert (done.code, server.requests) == (0, 2 * 4 * 3)
    sentence = f"'{SECOND}': skipped for every model, since not applicable to some: eta (two: declared)"
    assert sentence in done.err
    assert {case for case, _ in server.times} == {"alpha", "beta", "gamma", "delta"}
    assert sentence in library.call("audit", "report", str(library.audit_folder())).out
    library.write(f"fixtures/{SECOND}/cases/delta/meta.json", {"not_applicable": ["one"]})
    refused = library.audit()
    assert refused.code == 2
    assert f"error: no case of benchmark '{SECOND}' can be sent to every model" in refused.err
