"""GitHub's issuer of identity tokens, the three vendors' exchanges and their models, on one address of the loopback.

Every token is new and of its own serial number. `server.tokens` are all that were given out, `server.calls` the access
tokens with which models were asked.
"""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import serving
from tests.support.vendor_dialects import DIALECTS, Answer, dialect_of

REQUEST_TOKEN = "request-token-0123456789-abcdefghij"
CLAIMS = {"sub": "repo:acme/prompts:environment:eval-x", "repository": "acme/prompts"}
IDENTIFIERS = {
    "ANTHROPIC_FEDERATION_RULE_ID": "fdrl_1",
    "ANTHROPIC_ORGANIZATION_ID": "11111111-2222-3333-4444-555555555555",
    "ANTHROPIC_SERVICE_ACCOUNT_ID": "svac_1",
    "OPENAI_IDENTITY_PROVIDER_ID": "idp_1",
    "OPENAI_SERVICE_ACCOUNT_ID": "sa_1",
    "GOOGLE_CLOUD_PROJECT": "project-1",
    "GOOGLE_WORKLOAD_IDENTITY_PROVIDER": "projects/7/locations/global/workloadIdentityPools/p/providers/github",
}
EXCHANGES = ("/v1/oauth/token", "/oauth/token", "/sts")


class IdentityServer:
    """What the tests hold: how it answers, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.lives_s = 3600
        self.refusal: tuple[int, Any] | None = None
        self.echoes = False
        self.tokens: list[str] = []
        self.audiences: list[str] = []
        self.exchanged: list[Mapping[str, Any]] = []
        self.calls: list[str] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()

    def variables(self) -> dict[str, str]:
        """The environment of a job that may have identity tokens."""
        url = f"{self.url}/idtoken?api-version=2.0"
        return {"ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN, **IDENTIFIERS}

    def token(self, start: str, payload: Mapping[str, Any]) -> str:
        """Make a token of realistic length that no other is equal to."""
        with self.lock:
            body = base64.urlsafe_b64encode(json.dumps({**payload, "n": len(self.tokens)}).encode()).decode()
            self.tokens.append(f"{start}.{body.rstrip('=')}.{'s1gn' * 40}")
            return self.tokens[-1]


@contextmanager
def identity_server() -> Iterator[IdentityServer]:
    """A server on a free port, stopped afterwards."""
    server = IdentityServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), type("BoundHandler", (_Handler,), {"server_": server}))
    with serving(http) as server.url:
        yield server


class _Handler(BaseHTTPRequestHandler):
    server_: IdentityServer

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self.headers["authorization"] != f"Bearer {REQUEST_TOKEN}":
            self._send(403, {"message": "no"})
            return
        (audience,) = parse_qs(urlsplit(self.path).query)["audience"]
        self.server_.audiences.append(audience)
        header = base64.urlsafe_b64encode(b'{"typ":"JWT","alg":"RS256","kid":"a-key-of-the-issuer-0123456789"}')
        self._send(200, {"value": self.server_.token(header.decode().rstrip("="), {**CLAIMS, "aud": audience})})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        path = urlsplit(self.path).path
        self.server_.paths.append(path)
        if path in EXCHANGES:
            self._exchange(raw)
            return
        access = self.headers["authorization"].removeprefix("Bearer ")
        self.server_.calls.append(access)
        dialect = DIALECTS["google"] if path.endswith(":generateContent") else dialect_of(path)
        if dialect is None or access not in self.server_.tokens or "x-api-key" in self.headers:
            self._send(401, {"error": {"message": f"not a token: {access}"}})
        else:
            self._send(200, dialect.answer(Answer(text=access if self.server_.echoes else "fine"))[0])

    def _exchange(self, raw: bytes) -> None:
        is_form = self.headers["content-type"].startswith("application/x-www-form-urlencoded")
        body = {name: value[0] for name, value in parse_qs(raw.decode()).items()} if is_form else json.loads(raw)
        self.server_.exchanged.append(body)
        if self.server_.refusal is None:
            access = {"access_token": self.server_.token("access-token", {}), "token_type": "Bearer"}
            self._send(200, {**access, "expires_in": self.server_.lives_s})
        else:
            status, said = self.server_.refusal
            self._send(status, said(body) if callable(said) else said)

    def _send(self, code: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
