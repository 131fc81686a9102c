"""A job's identity in place of a key: the token that GitHub Actions gives, and why a vendor did not take it.

The token lives for five minutes, so it is requested whenever a vendor's SDK exchanges it for an access token.
Neither token is written anywhere; every `Redactor` knows both. Its own module because all vendors share it.
"""

import base64
import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import Field

from skill_evaluator.files import FrozenModel
from skill_evaluator.providers.base import Federation, ProviderError, ProviderKind, fields_of, unreachable
from skill_evaluator.providers.redaction import Redactor, remember
from skill_evaluator.providers.wire import HttpAnswer, TooLargeError

REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT_S, _MAX_BYTES = 10.0, 100_000
_MAX_QUOTE = 160  # characters of what a vendor said; the claims and the rule are to fit beside it
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
    """The identity of this job before one vendor, whose SDK exchanges the token.

    `faults` are the exceptions of a failed exchange, `refusals` those of them that the vendor answered.
    """

    def __init__(
        self,
        federation: Federation,
        request_token: str | None,
        *,
        faults: tuple[type[Exception], ...],
        refusals: tuple[type[Exception], ...],
    ) -> None:
        self.identifiers = identifiers_of(federation)
        self.faults = faults
        self._refusals = refusals
        self._federation = federation
        self._request_token = request_token
        self._claims: Mapping[str, Any] = {}
        self._has_access = False

    def note_access(self, token: str) -> None:
        """Note that an access token was received, so that no text shows it."""
        remember(token)
        self._has_access = True

    def token(self) -> str:
        """Ask GitHub for a token that lives for five minutes; raise ProviderError. Must not run in a loop's thread."""
        import asyncio

        from skill_evaluator.providers.transport import PlainConnection

        async def ask() -> HttpAnswer:
            headers = {"authorization": f"Bearer {self._request_token}"}
            connection = PlainConnection(url, headers, _TIMEOUT_S, _MAX_BYTES)
            try:
                return await connection.send("GET")
            finally:
                await connection.close()

        audience = self._federation.audience.format_map(self.identifiers)
        url = f"{os.environ.get(REQUEST_URL, '')}&audience={quote(audience, safe='')}"
        try:
            answer = asyncio.run(ask())
            if not answer.is_success:
                message = f"GitHub gave the job no identity token ({answer.status})"
                is_refusal = answer.status in (400, 401, 403)
                raise _refused(message, answer.status) if is_refusal else unreachable(message)
            token = _Answer.model_validate_json(answer.content).value
        except (TooLargeError, ValueError) as problem:
            raise unreachable(f"GitHub gave the job no identity token: {type(problem).__name__}") from None
        remember(token)
        self._claims = _claims_of(token)
        return token

    def error_of(self, problem: BaseException) -> ProviderError:
        """Return why an exchange failed; after a successful exchange a failure is tried again."""
        status = getattr(problem, "status_code", 401)
        answered = isinstance(problem, self._refusals) and status is not None
        if self._has_access or not answered or status == 429 or status >= 500:
            return unreachable(f"no access token: {Redactor([])(str(problem))}")
        return self.refused(str(problem), status)

    def refused(self, message: str, status: int) -> ProviderError:
        """Return the error of a vendor that did not take the identity: its words, the claims and the rule."""
        claims = ", ".join(f"{name} '{self._claims.get(claim)}'" for name, claim in _CLAIMS.items())
        of_token = f"the token has {claims}" if self._claims else "no token of GitHub's was exchanged"
        rule = self._federation.rule.format_map(_Named(self.identifiers))
        return _refused(
            f"{rule} did not match: {of_token}; the vendor said: {Redactor([])(message)[:_MAX_QUOTE]}", status
        )


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
