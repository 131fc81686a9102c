"""A job's identity in place of a key: the token that GitHub Actions gives, and why a vendor did not take it.

The token lives for five minutes, so it is asked for whenever an SDK exchanges it for an access token. Neither token is
written anywhere; every `Redactor` knows both. Its own module because all vendors share it.
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

REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT_S = 10.0
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

    `faults` are what the vendor's library raises when an exchange fails, `refusals` those of them that the vendor
    answered.
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
        self._federation = federation
        self._request_token = request_token
        self._refusals = refusals
        self._claims: Mapping[str, Any] = {}
        self._is_accepted = False

    def token(self) -> str:
        """Ask GitHub for a token that lives for five minutes; raise ProviderError."""
        import httpx2

        audience = self._federation.audience.format_map(self.identifiers)
        url = f"{os.environ.get(REQUEST_URL, '')}&audience={quote(audience, safe='')}"
        try:
            answer = httpx2.get(url, headers={"Authorization": f"Bearer {self._request_token}"}, timeout=_TIMEOUT_S)
            if answer.status_code in (400, 401, 403):
                raise _refused(f"GitHub gave the job no identity token ({answer.status_code})", answer.status_code)
            token = _Answer.model_validate_json(answer.content).value
            remember(token)
            self._claims = _claims_of(token)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as problem:
            raise unreachable(f"GitHub gave the job no identity token: {type(problem).__name__}") from None
        return token

    async def note_access(self, request: Any) -> None:
        """Note the access token with which a request is sent."""
        remember(request.headers.get("authorization", "").removeprefix("Bearer "))
        self._is_accepted = True

    def error_of(self, problem: BaseException) -> ProviderError:
        """Return why an exchange failed; what fails after one that succeeded is tried again."""
        status = getattr(problem, "status_code", 401)
        answered = isinstance(problem, self._refusals) and status is not None
        if self._is_accepted or not answered or status == 429 or status >= 500:
            return unreachable(f"no access token: {Redactor([])(str(problem))}")
        return self.refused(str(problem), status)

    def refused(self, message: str, status: int) -> ProviderError:
        """Return the error of a vendor that did not take the identity: what it said, of which claims, by which rule."""
        claims = ", ".join(f"{name} '{self._claims.get(claim)}'" for name, claim in _CLAIMS.items())
        of_token = f"the token has {claims}" if self._claims else "no token of GitHub's was exchanged"
        rule = self._federation.rule.format_map(_Named(self.identifiers))
        return _refused(
            f"{rule} did not match: {of_token}; the vendor said: {Redactor([])(message)[:_MOST_SAID]}", status
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
