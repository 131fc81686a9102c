"""Notes on the answers of a run: kept by `site serve` for its reader alone, never published, and a case if wanted."""

import http.client
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.display.loopback import HOST
from skill_evaluator.site.server import ServedSite, SiteServer, serving

from tests.site.conftest import serious
from tests.support.library import SKILL, Library
from tests.support.sites import build_undrawn, contents, lines_of, undrawn, watched

pytest.importorskip("vl_convert")
pytestmark = pytest.mark.process
HOSTILE = "<img src=x onerror='window.ran=1'><script>window.ran=2</script> \u202egnp \x1b[31m ```"
AS_JSON = {"Content-Type": "application/json"}
NOTE = {"case_id": "alpha", "replicate": 1, "note": "The year is that of the reprint."}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = Library(tmp_path_factory.mktemp("measured"))
    assert library.evaluate_here().code == 0
    return library


@pytest.fixture
def library(measured: Library, tmp_path: Path) -> Library:
    return measured.copy(tmp_path / "library")


@contextmanager
def served(library: Library) -> Iterator[SiteServer]:
    root = library.root
    places = {"components": root / "components", "fixtures": root / "fixtures", "config": root / ".evaluator"}
    request = ServedSite(**places, audits=root / "audits", judgements=root / "judgements", port=0)
    with undrawn(), serving(request) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def run_id(library: Library) -> str:
    (record,) = library.records()
    return record["run_id"]


def ask(
    server: SiteServer, place: str, body: Any = None, headers: Mapping[str, str] | None = None, token: str | None = None
) -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=10)
    text = None if body is None else body if isinstance(body, str) else json.dumps(body)
    where = f"/{server.token if token is None else token}/{place}"
    connection.request("GET" if body is None else "POST", where, text, dict(AS_JSON if headers is None else headers))
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content


def notes_on_page(server: SiteServer, place: str) -> Any:
    status, script = ask(server, f"data/{place}/notes.js")
    assert status == 200
    return lines_of(script)[f"{place}/notes"]


def test_a_note_is_a_line_in_the_repository_and_on_the_page_and_in_no_build(library: Library) -> None:
    place = f"runs/{SKILL}/{run_id(library)}"
    with served(library) as server:
        status, told = ask(server, place, NOTE)
        assert (status, f"evals/notes/{run_id(library)}.jsonl" in told) == (200, True)
        assert notes_on_page(server, place)["notes"] == [{**NOTE, "new_case": None}]
    with served(library) as server:
        assert ask(server, place, {**NOTE, "note": "  Once more.  "})[0] == 200
        assert [note["note"] for note in notes_on_page(server, place)["notes"]] == [NOTE["note"], "Once more."]
    path = library.component / "evals" / "notes" / f"{run_id(library)}.jsonl"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [NOTE, {**NOTE, "note": "Once more."}]
    library.settings(site={"components": {SKILL: {"documents": True}}})
    everything = contents(build_undrawn(library))
    assert [name for name in everything if name.endswith("rows.js")]
    assert b"of the reprint" not in b"".join(everything.values())
    assert not [name for name in everything if "notes" in name]
    assert b"connect-src" not in everything["run.html"]


def test_git_ignores_no_note_where_init_laid_out_what_it_ignores(tmp_path: Path) -> None:
    library = Library(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert library.call("init", "--adopt", "--yes").code == 0
    for folder, ignored in (("notes", 1), ("results", 0)):
        asked = ["git", "check-ignore", "-q", f"components/{SKILL}/evals/{folder}/r.jsonl"]
        assert subprocess.run(asked, cwd=tmp_path).returncode == ignored


def test_a_note_becomes_a_case_that_waits_for_its_document(library: Library) -> None:
    place = f"runs/{SKILL}/{run_id(library)}"
    with served(library) as server:
        status, told = ask(server, place, {**NOTE, "note": HOSTILE, "new_case": "alpha-reprint"})
        assert (status, "alpha-reprint waits for its document" in told) == (200, True)
        again = ask(server, place, {**NOTE, "new_case": "alpha-reprint"})
        assert (again[0], "exists already" in again[1]) == (400, True)
        assert ask(server, place, {**NOTE, "new_case": "beta"})[0] == 400
        assert len(notes_on_page(server, place)["notes"]) == 1
    made = library.root / f"fixtures/{SKILL}/cases/alpha-reprint"
    assert [path.name for path in made.iterdir()] == ["input-source.md"]
    words = (made / "input-source.md").read_text()
    assert words.startswith(HOSTILE)
    assert f"replicate 1 of run {run_id(library)}" in words
    assert '"year": 2024' in words
    assert "alpha-reprint" in library.call("lint").out
    assert library.evaluate_here().code == 0
    assert library.records()[0]["n_cases"] == 3


def test_whoever_is_not_the_page_itself_writes_nothing(library: Library) -> None:
    place = f"runs/{SKILL}/{run_id(library)}"
    with served(library) as server:
        before = library.tree()
        foreign = {
            "Host": ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1"),
            "Origin": ("https://evil.example", "null", "http://127.0.0.1:1", f"https://{HOST}:{server.server_port}"),
            "Sec-Fetch-Site": ("cross-site", "same-site"),
        }
        for name, values in foreign.items():
            for value in values:
                assert ask(server, place, NOTE, {**AS_JSON, name: value})[0] == 403, value
        for token in ("", "x", server.token[:-1], f"{server.token}x"):
            status, answer = ask(server, place, NOTE, token=token)
            assert (status, server.token in answer) == (403, False)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            assert ask(server, place, NOTE, {"Content-Type": kind})[0] == 415  # what a form of another site sends
        assert library.tree() == before
        own = {"Origin": f"http://{HOST}:{server.server_port}", "Sec-Fetch-Site": "same-origin"}
        assert ask(server, place, NOTE, {**AS_JSON, **own})[0] == 200


def test_a_note_goes_to_a_run_that_is_shown_and_nowhere_else(library: Library) -> None:
    run = run_id(library)
    with served(library) as server:
        before = library.tree()
        for place in (
            "",
            "index.html",
            f"data/runs/{SKILL}/{run}/rows.js",
            f"runs/{SKILL}/another",
            f"runs/{SKILL}/../{SKILL}/{run}",
            f"runs/{SKILL}/..%2f..%2f..%2fprompt",
            f"runs/..%2f{SKILL}/{run}",
            f"/runs/{SKILL}/{run}",
            f"runs/{SKILL}/{run}/",
        ):
            assert ask(server, place, NOTE)[0] == 404, place
        assert library.tree() == before


def test_what_is_no_note_is_refused_with_the_reason(library: Library) -> None:
    place = f"runs/{SKILL}/{run_id(library)}"
    with served(library) as server:
        before = library.tree()
        for changed, problem in (
            ({"case_id": "nowhere"}, "no replicate 1 of a case 'nowhere'"),
            ({"case_id": "../alpha"}, "no replicate"),
            ({"case_id": ""}, "at case_id"),
            ({"replicate": 2}, "no replicate 2"),
            ({"replicate": -1}, "at replicate"),
            ({"note": " \n "}, "at note"),
            ({"note": "x" * 10_001}, "at note"),
            ({"new_case": "../../../components/x"}, "cannot be the name of a file"),
            ({"new_case": ".hidden"}, "cannot be the name of a file"),
            ({"new_case": "a/b"}, "cannot be the name of a file"),
            ({"new_case": ""}, "cannot be the name of a file"),
            ({"run": "x"}, "unknown key"),
        ):
            status, answer = ask(server, place, {**NOTE, **changed})
            assert (status, problem in json.loads(answer)) == (400, True), answer
        assert ask(server, place, "not json")[0] == 400
        assert ask(server, place, "x" * 64_001)[0] == 413
        assert ask(server, place, "{}", {**AS_JSON, "Content-Length": "9" * 5_000})[0] == 400
        assert library.tree() == before


def test_notes_that_lie_elsewhere_by_a_link_are_not_written(library: Library, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (library.component / "evals" / "notes").symlink_to(outside, target_is_directory=True)
    with served(library) as server:
        assert ask(server, f"runs/{SKILL}/{run_id(library)}", NOTE)[0] == 404
    assert list(outside.iterdir()) == []


def test_a_damaged_file_of_notes_is_named_and_costs_only_the_notes(library: Library) -> None:
    place = f"runs/{SKILL}/{run_id(library)}"
    path = library.component / "evals" / "notes" / f"{run_id(library)}.jsonl"
    path.parent.mkdir()
    path.write_text('{"case_id": "alpha"}\n')
    with served(library) as server:
        shown = notes_on_page(server, place)
        assert (shown["notes"], f"{path}:1: a required key is missing" in shown["problem"]) == ([], True)
        assert ask(server, f"data/{place}/rows.js")[0] == 200


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_keeps_a_note_and_its_text_is_text(browser: Any, library: Library, width: int) -> None:
    with served(library) as server, watched(browser, server.address, viewport={"width": width, "height": 800}) as watch:
        address = f"run.html#component={SKILL}&run={run_id(library)}"
        page = watch.open(address)
        page.get_by_text("Add a note").first.click()
        page.get_by_label("Note", exact=True).first.fill(HOSTILE)
        page.get_by_label("Id of a new case").first.fill("a new one")
        page.get_by_role("button", name="Keep").first.click()
        page.get_by_text("cannot be the name of a file").wait_for()
        watch.errors.clear()  # the console tells of the answer with status 400
        page.get_by_label("Id of a new case").first.fill("a-new-one")
        page.get_by_role("button", name="Keep").first.click()
        page.get_by_text("a-new-one waits for its document").wait_for()
        page = watch.open(f"{address}&show=noted")
        assert page.locator("table.answered tbody tr").count() == 1
        text = page.inner_text("table.answered")
        assert "<script>window.ran=2</script> \\u202egnp \\u001b[31m ```" in text
        assert page.evaluate("window.ran") is None
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (watch.errors, watch.left) == ([], [])
    (line,) = (library.component / "evals" / "notes" / f"{run_id(library)}.jsonl").read_text().splitlines()
    assert json.loads(line)["note"] == HOSTILE


@pytest.mark.browser
@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_beside_notes(browser: Any, library: Library, scheme: str) -> None:
    with served(library) as server, watched(browser, server.address, color_scheme=scheme) as watch:
        assert serious(watch.open(f"run.html#component={SKILL}&run={run_id(library)}")) == []
