"""GitHub's issuer of identity tokens, the three vendors' exchanges and their models, on one address of the loopback.

Every token is new and of its own serial number. `server.tokens` are all that were given out, `server.calls` the access
tokens with which models were asked.
"""

import base64
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import parse_qsl

from tests.support.http_server import Received, serve
from tests.support.vendor_dialects import Answer
from tests.support.vendor_server import Asked, Behaviour, Status, VendorServer

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


class IdentityServer(VendorServer):
    """What the tests hold: how it answers, and what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.lives_s = 3600
        self.refusal: tuple[int, Any] | None = None
        self.echoes = False
        self.forgets = False  # no token that was given out is known any more
        self.tokens: list[str] = []
        self.audiences: list[str] = []
        self.exchanged: list[Mapping[str, Any]] = []
        self.calls: list[str] = []
        self.paths: list[str] = []

    def variables(self) -> dict[str, str]:
        """The environment of a job that may have identity tokens."""
        url = f"{self.url}/idtoken?api-version=2.0"
        return {"ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN, **IDENTIFIERS}

    def token(self, start: str, payload: Mapping[str, Any]) -> str:
        """Make a token of realistic length that no other is equal to."""
        with self._lock:
            body = base64.urlsafe_b64encode(json.dumps({**payload, "n": len(self.tokens)}).encode()).decode()
            self.tokens.append(f"{start}.{body.rstrip('=')}.{'s1gn' * 40}")
            return self.tokens[-1]

    def handle(self, received: Received) -> None:
        """Give an identity token, exchange it, or answer as a model."""
        if received.method == "GET":
            self._give_identity(received)
        elif received.route.endswith(EXCHANGES):
            self._exchange(received)
        else:
            super().handle(received)

    def behaviour(self, asked: Asked) -> Behaviour:
        """Answer where the access token is one of those that were given out."""
        received, access = asked.received, asked.received.headers["authorization"].removeprefix("Bearer ")
        self.paths.append(received.route)
        self.calls.append(access)
        if self.forgets or access not in self.tokens or "x-api-key" in received.headers:
            return Status(401, message=f"not a token: {access}")
        return Answer(text=access if self.echoes else "fine")

    def _give_identity(self, received: Received) -> None:
        if received.headers["authorization"] != f"Bearer {REQUEST_TOKEN}":
            received.reply(403, {"message": "no"})
            return
        audience = received.query["audience"]
        self.audiences.append(audience)
        header = base64.urlsafe_b64encode(b'{"typ":"JWT","alg":"RS256","kid":"a-key-of-the-issuer-0123456789"}')
        received.reply(200, {"value": self.token(header.decode().rstrip("="), {**CLAIMS, "aud": audience})})

    def _exchange(self, received: Received) -> None:
        is_form = received.headers["content-type"].startswith("application/x-www-form-urlencoded")
        body = dict(parse_qsl(received.raw.decode())) if is_form else received.body
        self.exchanged.append(body)
        if self.refusal is None:
            access = {"access_token": self.token("access-token", {}), "token_type": "Bearer"}
            received.reply(200, {**access, "expires_in": self.lives_s})
        else:
            status, said = self.refusal
            received.reply(status, said(body) if callable(said) else said)


def identity_server() -> AbstractContextManager[IdentityServer]:
    """A server on a free port, stopped afterwards."""
    return serve(IdentityServer())
