"""The site on this machine, for whoever has its address.

A different site in the same browser can read nothing: it does not know the token, and only a page of this origin may
use the scripts that hold the data.
"""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

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
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.site.build import SiteBuild, build_site
from skill_evaluator.site.writing import POLICY

Later = Mapping[str, Callable[[], None]]
_NOTHING: Later = MappingProxyType({})


class SiteServer(loopback.LoopbackServer):
    """A folder with a site; `port` 0 takes a free one. Raises ConfigError if the port is taken."""

    def __init__(self, folder: Path, port: int = 0, later: Later = _NOTHING) -> None:
        """Listen, and answer nobody before `serve_forever`; `later` makes files."""
        self._later = dict(later)
        self._making = threading.Lock()
        super().__init__(port, partial(_Request, directory=str(folder)))

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


class _Request(loopback.PageHandler, SimpleHTTPRequestHandler):
    """One connection of a browser."""

    server: SiteServer
    policy = f"{POLICY}; frame-ancestors 'none'"

    def send_head(self) -> Any:
        """Take the token off the path, refuse whoever lacks it, and send a file or nothing."""
        try:
            name = self.server.path_inside(self).partition("?")[0] or "index.html"
        except loopback.RefusedError as problem:
            self.send_error(problem.status, str(problem))
            return None
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
        with SiteServer(Path(folder), request.port, site.later) as server:
            yield server
