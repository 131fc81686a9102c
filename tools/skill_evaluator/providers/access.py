"""Access without a vendor's key (`auth: oidc` or `place`).

GitHub issues an identity token, and a vendor's SDK exchanges it for access. The token is valid for five minutes, so
every exchange requests a new one. No token is written to a file. A cloud is called through a client of the vendor's
SDK. If the cloud has no variable for a key, this client finds the login of the machine or job.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from pydantic import ValidationError

from skill_evaluator.display import Redactor, environment_redactor, internal_error, remember_token
from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.files import first_problem
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Federation, ProviderError, ProviderKind, unreachable
from skill_evaluator.text import listed

REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT_S = 10.0
_MAX_QUOTE = 160  # characters of a vendor's message, to leave room for the claims and the rule
_CLAIMS = {"subject": "sub", "audience": "aud", "repository": "repository"}
_refused = partial(ProviderError, "identity_refused", kind="no_credentials", fatal=True)
ResultT = TypeVar("ResultT")


def error_of(problem: Exception, component: str | None = None) -> SkillEvaluatorError:
    """Convert an unexpected exception to an InternalError, and print its traceback to stderr, both redacted.

    A pydantic ValidationError means invalid input: return a SkillEvaluatorError and print nothing.
    """
    if isinstance(problem, ValidationError):
        message = f"{first_problem(problem)} in what was read for {problem.title}"
        return SkillEvaluatorError(environment_redactor()(message))
    return internal_error(problem, component)


def result_or_error(component: str, work: Callable[[], ResultT]) -> ResultT | SkillEvaluatorError:
    """Return the result of `work`. If `work` raises an exception, return it as a SkillEvaluatorError."""
    try:
        return work()
    except SkillEvaluatorError as problem:
        return problem
    except Exception as problem:
        return error_of(problem, component)


def passwords_of(url: str) -> Iterator[str]:
    """Yield the password in an address, alone and as `user:password`. Yield nothing if there is none."""
    parts = urlsplit(url)
    if parts.password:
        password = unquote(parts.password)
        yield from (password, f"{unquote(parts.username or '')}:{password}")  # basic authentication encodes both


def identifiers_of(federation: Federation) -> dict[str, str]:
    """Return a federation's environment variables that are not blank, by name. Their values are not secret."""
    values = {name: os.environ.get(name, "").strip() for name in (*federation.required, *federation.optional)}
    return {name: value for name, value in values.items() if value}


def needs_token(kind: ProviderKind) -> bool:
    """Return whether the provider exchanges a token of the job. If not, the vendor's SDK finds the credentials."""
    federation = kind.federation
    if federation is None:
        return False
    return not federation.exchanges_if or federation.exchanges_if in identifiers_of(federation)


@dataclass(eq=False, repr=False)  # a repr would show the token
class Identity:
    """The identity of this job at one vendor. The vendor's SDK exchanges the job's token for access."""

    federation: Federation
    request_token: str | None
    faults: tuple[type[Exception], ...]  # exceptions of a failed exchange
    refusals: tuple[type[Exception], ...]  # the `faults` that a response of the vendor caused

    def __post_init__(self) -> None:
        self.identifiers = identifiers_of(self.federation)
        self._claims: Mapping[str, Any] = {}
        self._has_access = False

    def note_access(self, token: str) -> None:
        """Note that an access token was received, and register it for redaction."""
        remember_token(token)
        self._has_access = True

    def token(self) -> str:
        """Request an identity token from GitHub. Raise ProviderError if that fails. Call it in a thread: it blocks."""
        import httpx2
        from google.auth import jwt

        audience = self.federation.audience.format_map(self.identifiers)
        url = f"{os.environ.get(REQUEST_URL, '')}&audience={quote(audience, safe='')}"
        try:
            answer = httpx2.get(url, headers={"authorization": f"Bearer {self.request_token}"}, timeout=_TIMEOUT_S)
            if not answer.is_success:
                message = f"GitHub did not issue an identity token to the job ({answer.status_code})"
                is_refusal = answer.status_code in (400, 401, 403)
                raise _refused(message, status=answer.status_code) if is_refusal else unreachable(message)
            token = str(answer.json()["value"])
            remember_token(token)
            claims: Mapping[str, Any] = jwt.decode(token, verify=False)  # type: ignore[no-untyped-call]
            self._claims = claims  # only for messages; the vendor verifies them
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, TypeError) as problem:
            raise unreachable(f"GitHub did not issue an identity token to the job: {type(problem).__name__}") from None
        return token

    def error_of(self, problem: BaseException) -> ProviderError:
        """Return the error of a failed exchange. It is fatal if the vendor refused before it ever granted access."""
        status = getattr(problem, "status_code", 401)
        answered = isinstance(problem, self.refusals) and status is not None
        if self._has_access or not answered or status == 429 or status >= 500:
            return unreachable(f"no access token: {Redactor([])(str(problem))}")
        return self.refused(str(problem), status)

    def refused(self, message: str, status: int) -> ProviderError:
        """Return the fatal error of an identity token that a vendor refused.

        It has the vendor's rule that rejected the token, the token's claims, and the vendor's message.
        """
        claims = ", ".join(f"{name} '{self._claims.get(claim)}'" for name, claim in _CLAIMS.items())
        of_token = f"the token has {claims}" if self._claims else "no token from GitHub was exchanged"
        unset = {name: f"({name} is not set)" for name in self.federation.optional}
        rule = self.federation.rule.format_map(unset | self.identifiers)
        quoted = Redactor([])(message)[:_MAX_QUOTE]
        return _refused(f"{rule} did not match: {of_token}; the vendor said: {quoted}", status=status)


Options = dict[str, Any]  # options of an SDK's client: the transport, no retries, no time limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """The access to a vendor's models in one cloud."""

    needs: tuple[str, ...]  # required keys of a model in models.yaml
    variables: tuple[str, ...] = ()  # possible variables of the key
    signs: bool = False  # the client signs the body, so files cannot be inserted later


CLOUDS: Mapping[tuple[str, str], Cloud] = {  # keys: provider, place
    ("openai", "azure"): Cloud(needs=("base_url", "api_version"), variables=("AZURE_OPENAI_API_KEY",)),
    ("openai", "bedrock"): Cloud(needs=("region",), signs=True),
    ("anthropic", "bedrock"): Cloud(needs=("region",), signs=True),
    ("anthropic", "vertex"): Cloud(needs=("project",)),
    ("anthropic", "foundry"): Cloud(needs=("base_url",), variables=("ANTHROPIC_FOUNDRY_API_KEY",)),
    ("google", "vertex"): Cloud(needs=("project",)),
}


def check_cloud(model: Model, where: str) -> None:
    """Raise ConfigError if the provider is not in the cloud of `place`, or if a setting is missing or not used."""
    cloud = cloud_of(model)
    if model.place is not None and cloud is None:
        clouds = [name for provider, name in CLOUDS if provider == model.provider]
        available = f"is only available in {listed(clouds)}" if clouds else "is in no cloud; remove `place`"
        raise ConfigError(f"place: {model.place} at {where}: provider '{model.provider}' {available}")
    needs = cloud.needs if cloud else ()
    for name in ("base_url", "api_version", "region", "project"):
        is_set = getattr(model, name) is not None
        if name in needs and not is_set:
            raise ConfigError(f"place: {model.place} at {where} requires `{name}`")
        is_optional = name == "base_url" or (name == "region" and model.place == "vertex")
        if is_set and name not in needs and not is_optional:
            raise ConfigError(f"{where}: {model.place or 'a model without `place`'} does not use `{name}`; remove it")
    if model.place is not None and model.auth == "oidc":
        raise ConfigError(
            f"auth: oidc at {where}: a model with place: {model.place} uses the cloud's key or login; remove `auth`"
        )


def cloud_of(model: Model) -> Cloud | None:
    """Return the cloud of a model's `place`. Return None if it has no place, or if the cloud lacks the provider."""
    return CLOUDS.get((model.provider, str(model.place)))


def _address(model: Model, variable: str) -> str | None:
    if model.base_url is None and os.environ.get(variable):
        raise ConfigError(f"{variable} is set: unset it, or set base_url of model '{model.id}' in models.yaml")
    return model.base_url


def cloud_client(model: Model, key: str | None, options: Options) -> Any:
    """Open a client for a model in a cloud.

    Raise ConfigError if boto3 is missing, or if an environment variable would replace the cloud's address.
    """
    region = model.region or "global"
    match model.provider, model.place:
        case "openai", "azure":
            from openai import AsyncAzureOpenAI

            url, version = str(model.base_url), model.api_version
            return AsyncAzureOpenAI(azure_endpoint=url, api_version=version, api_key=key or "no-key", **options)
        case "openai", "bedrock":
            from openai import AsyncBedrockOpenAI

            return AsyncBedrockOpenAI(**_bedrock(model, key, "AWS_BEDROCK_BASE_URL"), **options)
        case "anthropic", "bedrock":
            from anthropic import AsyncAnthropicBedrock

            return AsyncAnthropicBedrock(**_bedrock(model, key, "ANTHROPIC_BEDROCK_BASE_URL"), **options)
        case "anthropic", "vertex":
            from anthropic import AsyncAnthropicVertex

            address = _address(model, "ANTHROPIC_VERTEX_BASE_URL")
            return AsyncAnthropicVertex(project_id=str(model.project), region=region, base_url=address, **options)
        case "anthropic", "foundry":
            from anthropic import AsyncAnthropicFoundry

            return AsyncAnthropicFoundry(base_url=str(model.base_url), api_key=key or "no-key", **options)
    from google.genai import Client

    _address(model, "GOOGLE_VERTEX_BASE_URL")
    return Client(vertexai=True, project=model.project, location=region, **options)


def _bedrock(model: Model, key: str | None, variable: str) -> Options:
    if key is None and find_spec("boto3") is None:
        raise ConfigError("`place: bedrock` requires boto3; run `pip install 'skill-evaluator[bedrock]'`")
    return {"aws_region": model.region, "api_key": key, "base_url": _address(model, variable)}
