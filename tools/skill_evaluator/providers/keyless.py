"""Authentication without a key: GitHub Actions issues an identity token, which a vendor's SDK exchanges for access.

The identity token is valid for five minutes, so it is requested for every exchange. No token is ever written.
"""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from skill_evaluator.providers.base import Federation, ProviderError, ProviderKind, unreachable
from skill_evaluator.providers.redaction import Redactor, remember

REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT_S = 10.0
_MAX_QUOTE = 160  # characters of a vendor's message, to leave room for the claims and the rule
_CLAIMS = {"subject": "sub", "audience": "aud", "repository": "repository"}


def identifiers_of(federation: Federation) -> dict[str, str]:
    """Return the values of a federation's variables by name, without blank values. They are not secret."""
    values = {name: os.environ.get(name, "").strip() for name in (*federation.required, *federation.optional)}
    return {name: value for name, value in values.items() if value}


def needs_token(kind: ProviderKind) -> bool:
    """Return whether the job requests an identity token; otherwise the vendor's SDK finds credentials."""
    federation = kind.federation
    if federation is None:
        return False
    return not federation.exchanges_if or federation.exchanges_if in identifiers_of(federation)


class Identity:
    """The identity of this job at one vendor, whose SDK exchanges the token.

    `faults` are the exceptions of a failed exchange, `refusals` those that a response of the vendor caused.
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
        """Note that an access token was received, and register it for redaction."""
        remember(token)
        self._has_access = True

    def token(self) -> str:
        """Request an identity token from GitHub. Raise ProviderError. This blocks, so call it in a thread."""
        import httpx2
        from google.auth import jwt

        audience = self._federation.audience.format_map(self.identifiers)
        url = f"{os.environ.get(REQUEST_URL, '')}&audience={quote(audience, safe='')}"
        try:
            answer = httpx2.get(url, headers={"authorization": f"Bearer {self._request_token}"}, timeout=_TIMEOUT_S)
            if not answer.is_success:
                message = f"GitHub did not issue an identity token to the job ({answer.status_code})"
                is_refusal = answer.status_code in (400, 401, 403)
                raise _refused(message, answer.status_code) if is_refusal else unreachable(message)
            token = str(answer.json()["value"])
            remember(token)
            claims: Mapping[str, Any] = jwt.decode(token, verify=False)  # type: ignore[no-untyped-call]
            self._claims = claims  # only for messages; the vendor verifies them
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, TypeError) as problem:
            raise unreachable(f"GitHub did not issue an identity token to the job: {type(problem).__name__}") from None
        return token

    def error_of(self, problem: BaseException) -> ProviderError:
        """Return the error of a failed exchange. It is not retryable if the vendor refused the first exchange."""
        status = getattr(problem, "status_code", 401)
        answered = isinstance(problem, self._refusals) and status is not None
        if self._has_access or not answered or status == 429 or status >= 500:
            return unreachable(f"no access token: {Redactor([])(str(problem))}")
        return self.refused(str(problem), status)

    def refused(self, message: str, status: int) -> ProviderError:
        """Return the error of a refused identity, with the vendor's message, the claims and the rule."""
        claims = ", ".join(f"{name} '{self._claims.get(claim)}'" for name, claim in _CLAIMS.items())
        of_token = f"the token has {claims}" if self._claims else "no token from GitHub was exchanged"
        unset = {name: f"({name} is not set)" for name in self._federation.optional}
        rule = self._federation.rule.format_map(unset | self.identifiers)
        return _refused(
            f"{rule} did not match: {of_token}; the vendor said: {Redactor([])(message)[:_MAX_QUOTE]}", status
        )


def _refused(message: str, status: int) -> ProviderError:
    return ProviderError("identity_refused", message, kind="no_credentials", status=status, fatal=True)
