"""Models in a cloud: the SDK's client, address, login and required keys of models.yaml."""

import base64
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.cases import read_file
from skill_evaluator.library.config import Model, SafetyLimits
from skill_evaluator.library.prompts import Message
from skill_evaluator.providers import PROVIDERS, batch_refusal, key_note, kinds_of, read_keys
from skill_evaluator.providers.access import CLOUDS
from skill_evaluator.runner.prices import price_of

from tests.support.documents import a_png
from tests.support.http_server import Received, Server, serve
from tests.support.vendor_dialects import DIALECTS, PLAIN, Answer
from tests.support.vendors import KEY, ask, ask_and_fail

LOGIN = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "secret-key-of-aws"}
FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    ("openai", "azure"): {"api_version": "2026-06-01"},
    ("openai", "bedrock"): {"region": "eu-west-1"},
    ("anthropic", "bedrock"): {"region": "eu-west-1"},
    ("anthropic", "vertex"): {"region": "europe-west4", "project": "project-1"},
    ("anthropic", "foundry"): {},
    ("google", "vertex"): {"region": "europe-west4", "project": "project-1"},
}
PATHS = {
    ("openai", "azure"): "/openai/deployments/model-1/chat/completions?api-version=2026-06-01",
    ("openai", "bedrock"): "/chat/completions",
    ("anthropic", "bedrock"): "/model/model-1/invoke",
    (
        "anthropic",
        "vertex",
    ): "/projects/project-1/locations/europe-west4/publishers/anthropic/models/model-1:rawPredict",
    ("anthropic", "foundry"): "/v1/messages",
    ("google", "vertex"): (
        "/v1beta1/projects/project-1/locations/europe-west4/publishers/google/models/model-1:generateContent"
    ),
}
KEY_HEADERS = {("openai", "azure"): "api-key", ("anthropic", "foundry"): "x-api-key"}


class Cloud(Server):
    """Answers every request as a vendor does."""

    def __init__(self) -> None:
        super().__init__()
        self.vendor = ""
        self.received: list[Received] = []
        self.error: tuple[int, Any] | None = None

    def handle(self, received: Received) -> None:
        self.received.append(received)
        if self.error is not None:
            received.reply(*self.error)
        else:
            received.reply(200, *DIALECTS[self.vendor].answer(Answer()))


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A cloud whose logins are there: of AWS in the environment, of Google by its library."""
    from google.auth.credentials import Credentials

    class Login(Credentials):
        def refresh(self, request: Any) -> None:
            self.token = "token-of-google-cloud"

    credentials: Any = Login()  # type: ignore[no-untyped-call]
    monkeypatch.setattr("google.auth.default", lambda **_: (credentials, "project-1"))
    monkeypatch.setattr("skill_evaluator.display._TOKENS", set())
    for name, value in {**LOGIN, "AZURE_OPENAI_API_KEY": KEY, "ANTHROPIC_FOUNDRY_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve(Cloud()) as server:
        yield server


def entry(row: tuple[str, str], cloud: Cloud, **fields: Any) -> Model:
    provider, place = row
    cloud.vendor = provider
    return Model(id="model-1", provider=provider, place=place, base_url=cloud.url, **{**FIELDS[row], **fields})


@pytest.mark.parametrize("row", CLOUDS)
def test_place_is_reached_by_the_client_of_the_vendor(row: tuple[str, str], cloud: Cloud) -> None:
    model = entry(row, cloud)
    kinds_of([model], "models.yaml")
    completion = ask(model)
    assert (completion.text, completion.usage.input_tokens) == ("fine", 11)
    (received,) = cloud.received
    assert received.path == PATHS[row]
    if header := KEY_HEADERS.get(row):
        assert received.headers[header].removeprefix("Bearer ") == KEY
    elif row[1] == "bedrock":
        assert received.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIA1/")
        assert "eu-west-1" in received.headers["authorization"]
    else:
        assert received.headers["authorization"] == "Bearer token-of-google-cloud"


def test_key_of_a_place_has_a_variable_of_its_own(cloud: Cloud) -> None:
    for row in CLOUDS:
        model = entry(row, cloud)
        keys = read_keys([model], PROVIDERS)
        assert key_note(model, PROVIDERS[row[0]], keys) == ("set" if row in KEY_HEADERS else "not needed")
        assert "its own storage" in str(batch_refusal(model))


def test_azure_gets_openais_parameters_and_its_filter_is_a_refusal(cloud: Cloud) -> None:
    model = entry(("openai", "azure"), cloud)
    ask(model)
    assert cloud.received[0].body["max_completion_tokens"] == PLAIN.max_output_tokens
    assert "max_tokens" not in cloud.received[0].body
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}
    message = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
    cloud.error = (400, {"error": {"message": message, "code": "content_filter", "innererror": inner}})
    assert ask(model).stop_reason == "refusal"


@pytest.mark.parametrize("row", [("openai", "bedrock"), ("anthropic", "bedrock")])
def test_signed_body_contains_its_files(row: tuple[str, str], cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "scan.png").write_bytes(a_png())
    image = read_file(tmp_path / "scan.png", SafetyLimits())
    ask(entry(row, cloud), dataclasses.replace(PLAIN, messages=(Message("user", ("See", image)),)))
    assert base64.b64encode(a_png()) in cloud.received[0].raw


def test_missing_login_of_a_cloud_stops_the_model(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    from google.auth.exceptions import DefaultCredentialsError

    def absent(**_: Any) -> Any:
        raise DefaultCredentialsError("Your default credentials were not found.")

    monkeypatch.setattr("google.auth.default", absent)
    for row in (("google", "vertex"), ("anthropic", "vertex")):
        error = ask_and_fail(entry(row, cloud))
        assert (error.reason, error.kind, error.fatal) == ("no_login", "no_credentials", True)
        assert "default credentials were not found" in str(error)
    assert cloud.received == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"provider": "google", "place": "azure"},
            "place: azure at models[0] in m: provider 'google' is only available in vertex",
        ),
        ({"provider": "openai", "place": "azure"}, "place: azure at models[0] in m requires `base_url`"),
        ({"provider": "anthropic", "place": "bedrock"}, "place: bedrock at models[0] in m requires `region`"),
        (
            {"provider": "anthropic", "region": "eu"},
            "models[0] in m: a model without `place` does not use `region`; remove it",
        ),
    ],
)
def test_entry_of_a_place_that_is_incomplete_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as problem:
        kinds_of([Model(id="model-1", **fields)], "m")
    assert str(problem.value) == words


def test_variable_that_replaces_the_address_of_a_cloud_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_VERTEX_BASE_URL", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="ANTHROPIC_VERTEX_BASE_URL is set: unset it, or set base_url of model 'm'"):
        ask(Model(id="m", provider="anthropic", place="vertex", project="project-1"))


def test_bedrock_names_the_extra_that_it_needs(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skill_evaluator.providers.access.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'skill-evaluator\[bedrock\]'"):
        ask(entry(("anthropic", "bedrock"), cloud))


def test_price_of_a_place_is_unknown_unless_declared() -> None:
    model = Model(id="claude-opus-4-5", provider="anthropic", place="bedrock", region="eu-west-1")
    assert price_of(model, PROVIDERS["anthropic"]) is None
    direct = Model(id="claude-opus-4-5", provider="anthropic")
    assert price_of(direct, PROVIDERS["anthropic"]) is not None
