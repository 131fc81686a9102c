"""A server of local pages on 127.0.0.1 only, whose address contains a token.

Other sites in the same browser cannot write: they do not know the token, a foreign Host (DNS rebinding), Origin or
Sec-Fetch-Site is refused, and bodies must be JSON, which forms cannot send.
"""

import hmac
import re
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
_MAX_BODY = 64_000


class RefusedError(Exception):
    """A refused request, with its status and the reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class LoopbackServer(ThreadingHTTPServer):
    """A server on 127.0.0.1; `port` 0 selects a free port. Raises ConfigError if the port is in use."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, handler: Any) -> None:
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), handler)
        except OSError as problem:
            raise ConfigError(f"cannot listen on {HOST}:{port}: {problem.strerror}; choose another --port") from None
        ports = [f":{self.server_port}"] + [""] * (self.server_port == HTTP_PORT)  # browsers omit the default port
        self.hosts = frozenset(name + port for name in (HOST, "localhost") for port in ports)

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a lost connection; print the traceback of any other error, which is a bug."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def path_inside(self, request: BaseHTTPRequestHandler) -> str:
        """Return the path after the token. Raise RefusedError if the host is foreign or the token is wrong."""
        hosts = request.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            raise RefusedError(HTTPStatus.FORBIDDEN, "this host name is refused; open the address in the terminal")
        token, slash, path = request.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "the address lacks its token; copy all of it from the terminal")
        return path


class PageHandler(BaseHTTPRequestHandler):
    """A connection of a browser; every response has headers that keep other sites out."""

    server_version = "skill-evaluator"
    sys_version = ""
    timeout = 30.0  # seconds
    policy: ClassVar[str]  # the Content-Security-Policy

    def end_headers(self) -> None:
        """Add the headers that keep other sites out, and send all headers."""
        for name, value in {"Content-Security-Policy": self.policy, **_HEADERS}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing, because every line would contain the token."""


def refuse_other_sites(request: BaseHTTPRequestHandler) -> None:
    """Raise RefusedError if a page of a different site sent the request."""
    host, origins = request.headers.get("Host"), request.headers.get_all("Origin", [])
    of_others = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
    if of_others or any(origin != f"http://{host}" for origin in origins):
        raise RefusedError(HTTPStatus.FORBIDDEN, "requests of other sites are refused")


def read_body(request: BaseHTTPRequestHandler, model: type[ModelT], noun: str) -> ModelT:
    """Parse the JSON body of a request; `noun` names the body in errors. Raise RefusedError if the body is invalid."""
    if request.headers.get_content_type() != "application/json":
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"a {noun} must be sent as application/json")
    length = request.headers.get("Content-Length", "")
    if not re.fullmatch(r"[0-9]{1,20}", length):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"a {noun} must be sent with its Content-Length")
    if int(length) > _MAX_BODY:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a {noun} has at most {_MAX_BODY:,} bytes")
    try:
        return model.model_validate_json(request.rfile.read(int(length)))
    except ValidationError as problem:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{first_problem(problem)} in the {noun}") from None
