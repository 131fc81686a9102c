"""Authentication by a job's identity: exchange, refusal, and no token in a message."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from skill_evaluator.display import Redactor
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers import PROVIDERS, find_key, key_note, kinds_of, missing_key, read_keys
from skill_evaluator.providers.base import Completion, Provider, ProviderError

from tests.providers.identity_server import CLAIMS, IDENTIFIERS, REQUEST_TOKEN, IdentityServer, identity_server
from tests.support.vendor_dialects import PLAIN, address_of
from tests.support.vendors import failure_of

VENDORS = ("anthropic", "openai", "google")
AUDIENCES = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": f"https://iam.googleapis.com/{IDENTIFIERS['GOOGLE_WORKLOAD_IDENTITY_PROVIDER']}",
}
EXCHANGED = {
    "anthropic": {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "federation_rule_id": "fdrl_1",
        "organization_id": IDENTIFIERS["ANTHROPIC_ORGANIZATION_ID"],
        "service_account_id": "svac_1",
    },
    "openai": {"identity_provider_id": "idp_1", "service_account_id": "sa_1"},
    "google": {"audience": f"//iam.googleapis.com/{IDENTIFIERS['GOOGLE_WORKLOAD_IDENTITY_PROVIDER']}"},
}
RULES = {
    "anthropic": "Anthropic's federation rule fdrl_1",
    "openai": "OpenAI's mapping of idp_1 to sa_1",
    "google": f"Google's {IDENTIFIERS['GOOGLE_WORKLOAD_IDENTITY_PROVIDER']}, or a role in project-1",
}


@pytest.fixture
def identities(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityServer]:
    """The environment of a job that may have tokens; the exchanges with fixed addresses are led to the loopback."""
    from google.oauth2 import sts
    from openai.auth._workload import WorkloadIdentityAuth

    with identity_server() as server:
        for name, value in server.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr("skill_evaluator.display._TOKENS", set())  # else later tests strike out tokens
        monkeypatch.setitem(
            WorkloadIdentityAuth.__init__.__kwdefaults__, "token_exchange_url", f"{server.url}/oauth/token"
        )
        opened = sts.Client.__init__
        monkeypatch.setattr(
            sts.Client,
            "__init__",
            lambda self, url, authentication=None: opened(self, f"{server.url}/sts", authentication),
        )
        yield server


def model_at(vendor: str, server: IdentityServer) -> Model:
    return Model(id="model-1", provider=vendor, auth="oidc", base_url=address_of(server.url, vendor))


def open_at(vendor: str, server: IdentityServer) -> Provider:
    model, kind = model_at(vendor, server), PROVIDERS[vendor]
    keys = read_keys([model], {vendor: kind})
    assert missing_key(model, kind, keys) is None
    return kind.open(model, find_key(model, kind, keys), Settings(timeout_s=20))


def ask(vendor: str, server: IdentityServer, times: int = 1) -> list[Completion]:
    async def calls() -> list[Completion]:
        provider = open_at(vendor, server)
        try:
            return [await provider.complete(PLAIN) for _ in range(times)]
        finally:
            await provider.close()

    return asyncio.run(calls())


def refusal(vendor: str, server: IdentityServer) -> ProviderError:
    return failure_of(lambda: ask(vendor, server))


@pytest.mark.parametrize("vendor", VENDORS)
def test_identity_token_is_exchanged_once(vendor: str, identities: IdentityServer) -> None:
    answers = ask(vendor, identities, times=3)
    assert [answer.text for answer in answers] == ["fine"] * 3
    assert identities.audiences == [AUDIENCES[vendor]]
    (exchanged,) = identities.exchanged
    identity, access = identities.tokens
    assert identity in exchanged.values()
    assert exchanged.items() >= EXCHANGED[vendor].items()
    assert identities.calls == [access] * 3


def test_google_serves_by_vertex_in_the_project(identities: IdentityServer) -> None:
    ask("google", identities)
    assert identities.paths[-1].endswith(
        "/projects/project-1/locations/global/publishers/google/models/model-1:generateContent"
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_refused_identity_names_rule_and_claims_without_the_token(vendor: str, identities: IdentityServer) -> None:
    def echo(body: Any) -> Any:
        (token,) = (value for value in body.values() if value in identities.tokens)
        return {"error": "invalid_grant", "error_description": f"no rule for {token}"}

    identities.refusal = (401, echo)
    error = refusal(vendor, identities)
    assert (error.reason, error.kind) == ("identity_refused", "no_credentials")
    assert (error.fatal, error.retryable) == (True, False)
    message = error.failure(Redactor([])).message
    assert message.startswith(RULES[vendor])
    for claim in (CLAIMS["sub"], AUDIENCES[vendor], CLAIMS["repository"], "no rule for [redacted]"):
        assert claim in message
    assert not any(token[:20] in message for token in identities.tokens)


def test_model_that_refuses_the_access_token_names_the_identity(identities: IdentityServer) -> None:
    identities.forgets = True
    error = refusal("openai", identities)
    assert (error.reason, error.status, error.fatal) == ("identity_refused", 401, True)
    assert "not a token: [redacted]" in error.failure(Redactor([])).message


def test_exchange_that_is_down_is_tried_again(identities: IdentityServer) -> None:
    identities.refusal = (503, {"error": "overloaded"})
    error = refusal("anthropic", identities)
    assert (error.reason, error.retryable, error.fatal, error.perhaps_billed) == ("unreachable", True, False, False)


def test_a_job_that_may_have_no_token_is_told_so(identities: IdentityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of another job")
    error = refusal("anthropic", identities)
    assert (error.reason, error.status) == ("identity_refused", 403)
    assert str(error).startswith("GitHub did not issue an identity token to the job (403)")


def test_missing_variables_are_named(identities: IdentityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    model, kind = model_at("openai", identities), PROVIDERS["openai"]
    monkeypatch.setenv("OPENAI_SERVICE_ACCOUNT_ID", " ")
    keys = read_keys([model], {"openai": kind})
    assert keys["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] == REQUEST_TOKEN
    assert missing_key(model, kind, keys) == "OPENAI_SERVICE_ACCOUNT_ID is not set"
    assert missing_key(model, kind, {}) == (
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN and OPENAI_SERVICE_ACCOUNT_ID are not set "
        "(a job of GitHub Actions has it with `id-token: write`)"
    )


def test_google_without_identity_pool_uses_default_credentials(
    identities: IdentityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_WORKLOAD_IDENTITY_PROVIDER")
    assert key_note(model_at("google", identities), PROVIDERS["google"], {}) == "not needed"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/credentials.json")
    error = refusal("google", identities)
    assert error.reason == "identity_refused"
    assert "/nowhere/credentials.json was not found" in str(error)


def test_model_that_cannot_use_identity_tokens_is_refused() -> None:
    for fields, why in (
        ({"provider": "local"}, "provider 'local' has no identity tokens; remove `auth`"),
        ({"provider": "openai", "api_key_env": "LAB_KEY"}, "`api_key_env` names a key; remove one of the two"),
    ):
        with pytest.raises(ConfigError, match=rf"auth: oidc at models\[0\].auth in models.yaml: {why}"):
            kinds_of([Model(id="here", auth="oidc", **fields)], "models.yaml")
