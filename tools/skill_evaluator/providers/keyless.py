"""A job's identity in place of a key: the token that GitHub Actions gives, and why a vendor did not take it.

The token lives for five minutes, so it is asked for whenever a vendor's library exchanges it for an access token.
Neither token is written anywhere; every `Redactor` knows both. Its own module because all vendors share it.
"""

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from pydantic import Field

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel
from skill_evaluator.providers.base import Federation, ProviderError, ProviderKind, fields_of, unreachable
from skill_evaluator.providers.redaction import Redactor, remember
from skill_evaluator.providers.wire import HttpAnswer, StatusError, TooLargeError

REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT_S, _MOST_BYTES = 10.0, 100_000
_MOST_SAID = 160  # characters of what a vendor said; the claims and the rule are to fit beside it
_CLAIMS = {"subject": "sub", "audience": "aud", "repository": "repository"}


class _Answer(FrozenModel):
    value: str = Field(min_length=1)


def identifiers_of(federation: Federation) -> dict[str, str]:
    """Return the identifiers that are in the environment, by variable; a blank one counts as absent."""
    found = {name: os.environ.get(name, "").strip() for name in (*federation.required, *federation.optional)}
    return {name: value for name, value in found.items() if value}


def needs_token(kind: ProviderKind) -> bool:
    """Check whether the job's token is exchanged, or the vendor's library finds credentials by itself."""
    federation = kind.federation
    if federation is None:
        return False
    return not federation.exchanges_if or federation.exchanges_if in identifiers_of(federation)


class Identity:
    """The identity of this job before one vendor.

    `exchanging` gets this identity, and returns what gives the headers with an access token, exchanged where the last
    one has expired. `faults` are what a failed exchange raises, `refusals` those of them that the vendor answered.
    """

    def __init__(
        self,
        federation: Federation,
        request_token: str | None,
        exchanging: Callable[["Identity"], Callable[[], Mapping[str, str]]],
        *,
        faults: tuple[type[Exception], ...],
        refusals: tuple[type[Exception], ...],
    ) -> None:
        self.identifiers = identifiers_of(federation)
        self.close: Callable[[], None] = lambda: None  # of what exchanges
        self._federation = federation
        self._request_token = request_token
        self._faults = faults
        self._refusals = refusals
        self._claims: Mapping[str, Any] = {}
        self._is_accepted = False
        self._exchanged = exchanging(self)

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that open the model; raise ProviderError."""
        import asyncio

        try:
            headers = await asyncio.to_thread(self._exchanged)
        except self._faults as problem:
            raise self._error_of(problem) from None
        remember(headers["authorization"].removeprefix("Bearer "))
        self._is_accepted = True
        return headers

    def token(self) -> str:
        """Ask GitHub for a token that lives for five minutes; raise ProviderError. Must not run in a loop's thread."""
        import asyncio

        from skill_evaluator.providers.client import Client

        async def ask() -> HttpAnswer:
            client = Client(url, {"authorization": f"Bearer {self._request_token}"}, _TIMEOUT_S, _MOST_BYTES)
            try:
                return await client.send("GET")
            finally:
                await client.close()

        audience = self._federation.audience.format_map(self.identifiers)
        url = f"{os.environ.get(REQUEST_URL, '')}&audience={quote(audience, safe='')}"
        try:
            token = _Answer.model_validate_json(asyncio.run(ask()).content).value
        except StatusError as problem:
            status = problem.answer.status
            refused = status in (400, 401, 403)
            message = f"GitHub gave the job no identity token ({status})"
            raise (_refused(message, status) if refused else unreachable(message)) from None
        except (ProviderError, TooLargeError, ValueError) as problem:
            raise unreachable(f"GitHub gave the job no identity token: {type(problem).__name__}") from None
        remember(token)
        self._claims = _claims_of(token)
        return token

    def _error_of(self, problem: BaseException) -> ProviderError:
        """Return why an exchange failed; after a successful exchange a failure is tried again."""
        status = getattr(problem, "status_code", 401)
        answered = isinstance(problem, self._refusals) and status is not None
        if self._is_accepted or not answered or status == 429 or status >= 500:
            return unreachable(f"no access token: {Redactor([])(str(problem))}")
        return self.refused(str(problem), status)

    def refused(self, message: str, status: int) -> ProviderError:
        """Return the error of a vendor that did not take the identity: its words, the claims and the rule."""
        claims = ", ".join(f"{name} '{self._claims.get(claim)}'" for name, claim in _CLAIMS.items())
        of_token = f"the token has {claims}" if self._claims else "no token of GitHub's was exchanged"
        rule = self._federation.rule.format_map(_Named(self.identifiers))
        return _refused(
            f"{rule} did not match: {of_token}; the vendor said: {Redactor([])(message)[:_MOST_SAID]}", status
        )


@contextmanager
def of_its_library() -> Iterator[None]:
    """Import a vendor's library, which exchanges tokens; raise ConfigError where it is not installed."""
    try:
        yield
    except ImportError as problem:
        raise ConfigError(
            f"auth: oidc needs the vendor's library ({problem.name}): pip install 'skill-evaluator[keyless]'"
        ) from None


class _Named(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"({key} is not set)"


def _refused(message: str, status: int) -> ProviderError:
    return ProviderError("identity_refused", message, kind="no_credentials", status=status, fatal=True)


def _claims_of(token: str) -> Mapping[str, Any]:
    """Read what a token says of the job, unverified: the vendor verifies it, this is for a message."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        return fields_of(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
    except ValueError:
        return {}
