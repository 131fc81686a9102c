"""The server of `site serve`: it refuses a missing token, a foreign host and a path outside of the site."""

import signal
import threading
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest
from skill_evaluator.display.loopback import HOST, LoopbackServer
from skill_evaluator.site.build import SiteRequest

from tests.support.library import SCRIPT, Library

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackServer]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "site" / "cases").mkdir(parents=True)
    (folder / "site" / "index.html").write_text("the index")
    (folder / "site" / "cases" / "a.html").write_text("a document")
    (folder / "outside.txt").write_text("outside")
    with LoopbackServer(0, partial(SiteRequest, directory=str(folder / "site"))) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: LoopbackServer, path: str, *hosts: str, method: str = "GET") -> tuple[int, str, str | None]:
    """Return status, text and `Location` of a response, and check that no other site may load it."""
    connection = HTTPConnection(HOST, server.server_port)
    connection.putrequest(method, path, skip_host=True)
    for host in hosts or (f"{HOST}:{server.server_port}",):
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status != 200 or answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
    return answer.status, answer.read().decode(), answer.getheader("Location")


def test_files_are_served_read_only_at_addresses_with_the_token(server: LoopbackServer) -> None:
    assert ask(server, f"/{server.token}/") == (200, "the index", None)
    assert ask(server, f"/{server.token}/cases/a.html?1") == (200, "a document", None)
    assert ask(server, f"/{server.token}/index.html", f"localhost:{server.server_port}")[0] == 200
    assert {ask(server, f"/{server.token}/index.html", method=method)[0] for method in ("POST", "PUT", "DELETE")} == {
        501
    }


def test_request_without_token_or_with_foreign_host_is_refused(server: LoopbackServer) -> None:
    for path in ("/", "/index.html", "//", "/cases/a.html", f"/{server.token}", f"/{server.token}x/index.html"):
        status, text, _ = ask(server, path)
        assert (status, server.token in text) == (403, False), path
    here = f"{HOST}:{server.server_port}"
    for hosts in (("evil.example",), (f"evil.example:{server.server_port}",), (here, "evil.example"), ("",), (HOST,)):
        assert ask(server, f"/{server.token}/index.html", *hosts)[0] == 403


def test_paths_outside_of_the_site_and_folders_are_not_found(server: LoopbackServer) -> None:
    leading_out = ("../outside.txt", "%2e%2e/outside.txt", "..%2foutside.txt", "/etc/passwd", "/evil.example/%2e%2e")
    for path in (*leading_out, "cases", "cases/", "index.html/", "a%00b", "%ff"):
        status, text, elsewhere = ask(server, f"/{server.token}/{path}")
        assert (status, "outside" in text, elsewhere) == (404, False, None), path


def test_temporary_site_is_deleted_when_the_terminal_closes(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    (tmp_path / "built").mkdir()
    library = Library(tmp_path / "library")
    env = {"PYTHONPATH": str(SCRIPT.parent), "TMPDIR": str(tmp_path / "built")}
    with library.command("-m", "skill_evaluator", "site", "serve", env=env) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGHUP)
        assert process.wait(20) == 0
    assert list((tmp_path / "built").iterdir()) == []
