"""The site on this machine: from 127.0.0.1 alone, for whoever has the address with its token.

Another site in the same browser can read nothing: it does not know the token, a foreign Host (DNS rebinding) is
refused, and no page of another origin may use the scripts that hold the data.
"""

import hmac
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from skill_evaluator.display.options import (
    AUDITS,
    JUDGEMENTS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    Judgements,
    option,
    options,
)
from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.site.build import POLICY, SiteBuild, build_site

HOST = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PATIENCE_S = 30.0


class SiteServer(ThreadingHTTPServer):
    """A folder with a site; `port` 0 takes a free one. Raises OSError where the port is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder: Path, port: int = 0, later: Mapping[str, Callable[[], None]] | None = None) -> None:
        """Listen, and answer nobody before `serve_forever`; `later` makes files that are not in the folder yet."""
        self._later = dict(later or {})
        self._making = threading.Lock()
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), partial(_Request, directory=str(folder)))
        port_of_web = ("",) if self.server_port == HTTP_PORT else ()  # which browsers leave out
        self.hosts = frozenset(
            name + end for name in (HOST, "localhost") for end in (f":{self.server_port}", *port_of_web)
        )

    @property
    def address(self) -> str:
        """Where the site is, with the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def make(self, name: str) -> None:
        """Make a file when it is asked for the first time; raise SkillEvaluatorError if it cannot be made."""
        with self._making:
            if name in self._later:
                self._later[name]()
                del self._later[name]

    def server_close(self) -> None:
        """Listen no more; make nothing more, and wait for what is being made: the folder may go now."""
        super().server_close()
        with self._making:
            self._later.clear()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away; anything else is a bug, with its traceback on stderr."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Request(SimpleHTTPRequestHandler):
    """One connection of a browser."""

    server: SiteServer
    server_version = "skill-evaluator"
    sys_version = ""
    timeout = _PATIENCE_S

    def send_head(self) -> Any:
        """Take the token off the path, refuse whoever lacks it, and send a file or nothing."""
        token, slash, path = self.path.removeprefix("/").partition("/")
        hosts = self.headers.get_all("Host", [])
        inside = len(hosts) == 1 and hosts[0] in self.server.hosts
        if not (inside and slash and hmac.compare_digest(token.encode(), self.server.token.encode())):
            self.send_error(HTTPStatus.FORBIDDEN, "copy the whole address from the terminal")
            return None
        name = path.partition("?")[0] or "index.html"
        self.path = f"/{name}"
        try:
            self.server.make(unquote(name))
        except SkillEvaluatorError as problem:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, explain=str(problem))
            return None
        if not Path(self.translate_path(self.path)).is_file():  # so nothing is listed, and nobody is sent elsewhere
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        """Send the headers that keep other sites out."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: the token is in every line."""


@options
class ServedSite(ComponentsOption, FixturesOption, ConfigOption):
    """What a site for one's own eyes shows, and where it listens."""

    port: int = option("Port of the page; default: any.", 0, min=0, max=65535, show_default=False)
    audits: Audits = AUDITS
    judgements: Judgements = JUDGEMENTS


@contextmanager
def serving(request: ServedSite) -> Iterator[SiteServer]:
    """Build a site into a folder of its own and listen; what was built is gone afterwards. Raise ConfigError."""
    places = {name: value for name, value in vars(request).items() if name != "port"}
    with tempfile.TemporaryDirectory(prefix="skill-evaluator-site-") as folder:
        site = build_site(SiteBuild(out=Path(folder), own=True, **places))
        try:
            server = SiteServer(Path(folder), request.port, site.later)
        except OSError as problem:
            raise ConfigError(
                f"cannot listen on {HOST}:{request.port}: {problem.strerror}; choose another --port"
            ) from None
        with server:
            yield server
