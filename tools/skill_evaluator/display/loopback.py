"""The server of a page on this machine: on 127.0.0.1 alone, for whoever has the address with its token.

A different site in the same browser can write nothing: the token is in no page of its own, a foreign Host (DNS
rebinding), Origin or Sec-Fetch-Site is refused, and what is sent must be JSON, which no form can send.
"""

import hmac
import secrets
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from pydantic import ValidationError

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import ModelT, first_problem

HOST = "127.0.0.1"
_HEADERS: Mapping[str, str] = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_MOST_BODY = 64_000
_MOST_DIGITS = 20  # of a length; to read thousands of them is refused by Python itself


class RefusedError(Exception):
    """A request that is not answered, with its status and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class LoopbackServer(ThreadingHTTPServer):
    """A server for one person; `port` 0 takes a free one. Raises ConfigError if the port is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, handler: Any) -> None:
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), handler)
        except OSError as problem:
            raise ConfigError(f"cannot listen on {HOST}:{port}: {problem.strerror}; choose another --port") from None
        port_of_web = ("",) if self.server_port == HTTP_PORT else ()  # which browsers leave out
        self.hosts = frozenset(
            name + end for name in (HOST, "localhost") for end in (f":{self.server_port}", *port_of_web)
        )

    @property
    def address(self) -> str:
        """Where the page is, with the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away; anything else is a bug, with its traceback on stderr."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def path_inside(self, request: BaseHTTPRequestHandler) -> str:
        """Return what follows the token in an address; raise RefusedError for a foreign host, or without the token."""
        hosts = request.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            raise RefusedError(HTTPStatus.FORBIDDEN, "this page is on no such host")
        token, slash, path = request.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "the address lacks its token; copy all of it from the terminal")
        return path


class PageHandler(BaseHTTPRequestHandler):
    """One connection of a browser. Every response has the headers that keep other sites out, and `policy`."""

    server_version = "skill-evaluator"
    sys_version = ""
    timeout = 30.0  # seconds
    policy: ClassVar[str]  # the Content-Security-Policy

    def end_headers(self) -> None:
        """Send the headers of every response."""
        for name, value in {"Content-Security-Policy": self.policy, **_HEADERS}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: the token is in every line."""


def refuse_other_sites(request: BaseHTTPRequestHandler) -> None:
    """Raise RefusedError for what a page of a different site asks."""
    host, origins = request.headers.get("Host"), request.headers.get_all("Origin", [])
    of_others = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
    if of_others or any(origin != f"http://{host}" for origin in origins):
        raise RefusedError(HTTPStatus.FORBIDDEN, "another site may not ask for this")


def sent(request: BaseHTTPRequestHandler, model: type[ModelT], what: str) -> ModelT:
    """Return what a page sends as JSON; raise RefusedError for anything that is no such model."""
    if request.headers.get_content_type() != "application/json":
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"a {what} is sent as application/json")
    length = request.headers.get("Content-Length", "")
    if not (length.isascii() and length.isdigit() and len(length) <= _MOST_DIGITS):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"a {what} is sent with its length")
    if int(length) > _MOST_BODY:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a {what} has at most {_MOST_BODY:,} bytes")
    try:
        return model.model_validate_json(request.rfile.read(int(length)))
    except ValidationError as problem:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{first_problem(problem)} in the {what}") from None
