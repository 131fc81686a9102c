"""The site served on this machine, at an address with a token that other sites in the same browser do not know."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

from skill_evaluator.display import loopback
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
from skill_evaluator.site.build import SiteBuild, build_site
from skill_evaluator.site.writing import POLICY


class SiteServer(loopback.LoopbackServer):
    """A folder with a site; `port` 0 takes a free one. Raises ConfigError if the port is taken."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Listen on a port; `serve_forever` answers requests."""
        super().__init__(port, partial(_Request, directory=str(folder)))


class _Request(loopback.PageHandler, SimpleHTTPRequestHandler):
    """One connection of a browser."""

    server: SiteServer
    policy = f"{POLICY}; frame-ancestors 'none'"

    def send_head(self) -> Any:
        """Send a file of the site. Refuse requests without the token, folders and missing files."""
        try:
            name = self.server.path_inside(self).partition("?")[0] or "index.html"
        except loopback.RefusedError as problem:
            self.send_error(problem.status, str(problem))
            return None
        self.path = f"/{name}"
        if not Path(self.translate_path(self.path)).is_file():  # no listing and no redirect
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()


@options
class ServedSite(ComponentsOption, FixturesOption, ConfigOption):
    """Options of `site serve`."""

    port: int = option("Port of the page; by default any free one.", 0, min=0, max=65535)
    audits: Audits = AUDITS
    judgements: Judgements = JUDGEMENTS


@contextmanager
def serving(request: ServedSite) -> Iterator[SiteServer]:
    """Build a site with outputs into a temporary folder and listen; the folder is deleted at the end."""
    folders = {name: value for name, value in vars(request).items() if name != "port"}
    with tempfile.TemporaryDirectory(prefix="skill-evaluator-site-") as folder:
        build_site(SiteBuild(out=Path(folder), outputs=True, **folders))
        with SiteServer(Path(folder), request.port) as server:
            yield server
