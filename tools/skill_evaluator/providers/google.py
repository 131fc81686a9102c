"""Google's Gemini models, through the `google-genai` SDK.

The SDK maps the request; the body comes back as text (`should_return_http_response`) and is read here: the typed
answer fails on what a proxy may send, and may be followed by requests to continue it. The SDK gets our HTTP client,
lest it pick aiohttp when that is installed, where it retries a dropped connection by itself.
"""

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import (
    Caching,
    Completion,
    Federation,
    ProviderError,
    ProviderKind,
    Request,
    StopReason,
    Usage,
    fields_of,
    stop_reason_of,
    sum_of_counts,
    usual_sampling,
)
from skill_evaluator.providers.batch import (
    Answered,
    BatchApi,
    Batches,
    BatchLimits,
    BatchStatus,
    answer_from,
    batch_failed,
    canceled,
    expired,
    lost,
    required_id,
)
from skill_evaluator.providers.http import ErrorAnswer, HttpProvider, error_from_status, open_client
from skill_evaluator.providers.keyless import Identity
from skill_evaluator.providers.wire import HttpAnswer
from skill_evaluator.text import nearest

_STOP: Mapping[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",  # cut at the limit of one request; following it would be a second request
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "ESCALATION": "refusal",
    "MODEL_ARMOR": "refusal",
}
_OURS = {
    "automatic_continuation",
    "automatic_function_calling",
    "candidate_count",
    "continuation_token",
    "http_options",
    "seed",
    "should_return_http_response",
    "system_instruction",
}
_FEDERATION = Federation(
    required=("GOOGLE_CLOUD_PROJECT",),
    optional=("GOOGLE_CLOUD_LOCATION", "GOOGLE_WORKLOAD_IDENTITY_PROVIDER", "GOOGLE_SERVICE_ACCOUNT"),
    audience="https://iam.googleapis.com/{GOOGLE_WORKLOAD_IDENTITY_PROVIDER}",
    rule="Google's {GOOGLE_WORKLOAD_IDENTITY_PROVIDER}, or a role in {GOOGLE_CLOUD_PROJECT} (IAM)",
    exchanges_if="GOOGLE_WORKLOAD_IDENTITY_PROVIDER",
)
_IMPERSONATION = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{}:generateAccessToken"
VENDOR_URL = "https://generativelanguage.googleapis.com"
_VERSION_AT_END = re.compile(r"/(v1\w*)/?$")
_WRONG_KEY = "API key not valid"  # a 400 by status; some gateways drop the details that name it
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def check(model: Model) -> None:
    """Raise ConfigError for params that the SDK's request has no place for; import the SDK."""
    from google.genai import types

    settable = set(types.GenerateContentConfig.model_fields) - _OURS
    for name in model.params.extra:
        if name not in settable:
            meant = nearest(to_snake(name), settable)
            raise ConfigError(f"unknown param '{name}' of model '{model.id}' in models.yaml {meant}")
    try:
        types.GenerateContentConfig(**model.params.extra)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ConfigError(f"param '{where}' of model '{model.id}' in models.yaml: {first['msg']}") from None


def caching(model: Model) -> Caching | None:
    """Return the floor at the vendor's own address. The vendor names no life of an entry; five minutes are assumed."""
    floor = 2_048 if model.api_name.startswith("gemini-2.5") else 4_096  # by the vendor's page, read in November 2026
    return None if model.base_url else Caching(floor_tokens=floor)


def open_provider(model: Model, key: str | None, settings: Settings) -> HttpProvider:
    """Open a connection to one model; import the SDK. A base_url may end in another version of the API."""
    check(model)
    import httpx2
    from google import genai
    from google.genai import types

    identity = _identity(key) if model.auth == "oidc" else None
    url = model.base_url or (VENDOR_URL if identity is None else None)  # of Vertex it depends on the location
    version = _VERSION_AT_END.search(url or "")
    http = open_client(settings, identity)
    client = genai.Client(
        **({"enterprise": False, "api_key": key or "no-key"} if identity is None else _vertex(identity)),
        http_options=types.HttpOptions(
            base_url=url[: version.start()] if url and version else url,
            api_version=version[1] if version else None,
            timeout=round(settings.timeout_s * 1000),
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_async_client=http,
        ),
    )
    fixed = usual_sampling(model).fixed

    def settings_of(request: Request) -> Mapping[str, Any]:
        return {**fixed, **_config(model.structured_output, request)}

    async def send(request: Request) -> HttpAnswer:
        config = types.GenerateContentConfig(**settings_of(request), should_return_http_response=True)
        answer: Any = await client.aio.models.generate_content(
            model=model.api_name, contents=request.user, config=config
        )
        return _answer_of(answer.sdk_http_response)

    async def ask(method: str, path: str, query: Mapping[str, Any], body: Any, file: object) -> HttpAnswer:
        # what the SDK's methods call: they drop the fields of a batch that are read here
        place = f"{path}?{urlencode(query)}" if query else path
        return _answer_of(await client._api_client.async_request(method, place, body or {}))

    async def close() -> None:
        await client.aio.aclose()
        client.close()
        await http.aclose()

    faults, timeouts = (httpx2.HTTPError,), httpx2.TimeoutException
    return HttpProvider(
        send,
        _read,
        close,
        faults=faults,
        timeouts=timeouts,
        own_error=_own_error,
        unreached=(httpx2.ConnectError,),
        identity=identity,
        client=client,
        body=settings_of,
        request=ask,
    )


def _answer_of(response: Any) -> HttpAnswer:
    return HttpAnswer(status=200, headers={}, content=response.body.encode("utf-8", "surrogatepass"))


def _identity(key: str | None) -> Identity:
    from google.auth import exceptions

    refusals = (exceptions.OAuthError, exceptions.RefreshError, exceptions.DefaultCredentialsError)
    return Identity(_FEDERATION, key, faults=(exceptions.GoogleAuthError,), refusals=refusals)


def _vertex(identity: Identity) -> dict[str, Any]:
    """Return what opens Vertex AI; without an identity pool the library finds the default credentials of the place."""
    from google.auth import identity_pool

    credentials: Any = identity_pool.Credentials
    named = identity.identifiers
    vertex: dict[str, Any] = {
        "enterprise": True,
        "project": named["GOOGLE_CLOUD_PROJECT"],
        "location": named.get("GOOGLE_CLOUD_LOCATION", "global"),
    }
    pool, account = named.get("GOOGLE_WORKLOAD_IDENTITY_PROVIDER"), named.get("GOOGLE_SERVICE_ACCOUNT")
    if pool is not None:
        vertex["credentials"] = credentials(
            audience=f"//iam.googleapis.com/{pool}",
            subject_token_type="urn:ietf:params:oauth:token-type:jwt",  # noqa: S106 (a kind, no token)
            subject_token_supplier=SimpleNamespace(get_subject_token=lambda context, request: identity.token()),
            service_account_impersonation_url=account and _IMPERSONATION.format(account),
            scopes=["https://www.googleapis.com/auth/cloud-platform"],
        )
    return vertex


def _config(mode: str, request: Request) -> dict[str, Any]:
    config = {
        "system_instruction": request.system,
        "max_output_tokens": request.max_output_tokens,
        "seed": request.seed,
    }
    if request.schema is not None and mode != "none":
        config["response_mime_type"] = "application/json"
        if mode == "json_schema":
            config["response_json_schema"] = request.bare_schema
    return config


def _read(body: Any, headers: Mapping[str, str]) -> Completion:
    counts = fields_of(body.get("usageMetadata"))
    text = ""
    stop_reason: StopReason = "refusal"
    if body.get("candidates") or not body["promptFeedback"]["blockReason"]:
        candidate = body["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or []
        text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        stop_reason = stop_reason_of(candidate.get("finishReason"), _STOP)
    return Completion(
        text=text,
        stop_reason=stop_reason,
        usage=Usage(
            input_tokens=counts.get("promptTokenCount"),
            output_tokens=sum_of_counts(counts.get("candidatesTokenCount"), counts.get("thoughtsTokenCount")),
            cache_read_tokens=counts.get("cachedContentTokenCount", 0),  # its JSON leaves out what is 0
        ),
        served_model=body.get("modelVersion"),
        request_id=body.get("responseId"),
    )


def _own_error(answer: ErrorAnswer) -> ProviderError | None:
    """Map a wrong key, which comes as a 400, and a delay that stands in the body only."""
    listed = answer.details.get("details")
    details = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    invalid_key = any(entry.get("reason") == "API_KEY_INVALID" for entry in details) or _WRONG_KEY in answer.message
    if answer.status == 400 and invalid_key:
        return ProviderError("wrong_key", answer.message, kind="no_credentials", status=answer.status, fatal=True)
    error = error_from_status(answer.status, answer.headers, answer.message)
    for entry in details:
        delay = _DELAY.fullmatch(str(entry.get("retryDelay", "")))
        if error.retry_after_s is None and delay and str(entry.get("@type", "")).endswith("google.rpc.RetryInfo"):
            error.retry_after_s = float(delay[1])
    return error


KIND = ProviderKind(
    open=open_provider,
    sampling=usual_sampling,
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    federation=_FEDERATION,
    caching=caching,
)
_GRPC_STATUS = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
_ENDED = {"SUCCEEDED": lost, "PARTIALLY_SUCCEEDED": lost, "CANCELLED": canceled, "EXPIRED": expired, "FAILED": lost}


async def _create_batch(batches: Batches, name: str, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    from google.genai import types

    created: list[str | None] = []

    async def send() -> HttpAnswer:
        job = await batches.provider.client.aio.batches.create(
            model=batches.api_name,
            src=[types.InlinedRequest(**entry) for entry in entries],
            config={"display_name": name},
        )
        created.append(job.name)
        return HttpAnswer(status=200, headers={}, content=b"{}")

    await batches.provider.fetched(send())
    return {"name": created[0]}


def _batch_status(body: Mapping[str, Any]) -> BatchStatus:
    """Read a batch; of a state without a word here, `done` says whether it is final."""
    job, error = fields_of(body.get("metadata")), fields_of(body.get("error"))
    word = str(job.get("state")).removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    stats = fields_of(job.get("batchStats"))
    counts = [str(stats.get(name)) for name in ("successfulRequestCount", "failedRequestCount")]  # texts in its JSON
    has_failed = word == "FAILED" or (error and word not in _ENDED)
    return BatchStatus(
        batch_id=required_id(body, "name"),
        state=word,
        ended=word in _ENDED or body.get("done") is True,
        done=sum(int(count) for count in counts if count.isdecimal()),
        unanswered=batch_failed(word, error) if has_failed else _ENDED.get(word, lost)(),
        body=body,
    )


def _batch_answer(entry: Mapping[str, Any]) -> Answered:
    custom_id, error = fields_of(entry.get("metadata")).get("key"), fields_of(entry.get("error"))
    if not error and "response" in entry:
        return custom_id, answer_from(200, entry["response"])
    return custom_id, answer_from(_GRPC_STATUS.get(error.get("code"), 500), {"error": error})  # type: ignore[arg-type]


def _inline_answers(status: BatchStatus) -> list[Answered]:
    output = fields_of(status.body.get("response")) or fields_of(fields_of(status.body.get("metadata")).get("output"))
    entries = fields_of(output.get("inlinedResponses")).get("inlinedResponses") or ()
    return [_batch_answer(fields_of(entry)) for entry in entries]


BATCHES = BatchApi(
    limits=BatchLimits(requests=50_000, request_bytes=20_000_000, hours=48),
    path="batches",
    listed="operations",
    id_key="name",
    page_size="pageSize",
    entry=lambda custom_id, body, request: {
        "contents": [request.user],
        "metadata": {"key": custom_id},
        "config": body,
    },
    create=_create_batch,
    next_page=lambda page: {"pageToken": page["nextPageToken"]} if page.get("nextPageToken") else None,
    name_of=lambda body: fields_of(body.get("metadata")).get("displayName"),
    status=_batch_status,
    inline=_inline_answers,
    answer=_batch_answer,
    cancel=":cancel",
    deleted=lambda status: [status.batch_id],
)
