"""Google's Gemini models: the Gemini API with a key, or Vertex AI with a job's identity or the cloud's login."""

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from pydantic import ValidationError

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import first_problem
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import File, Message
from skill_evaluator.providers import base, batch, remote
from skill_evaluator.providers.access import Identity, cloud_client
from skill_evaluator.providers.structured import sent_schema

_STOP: Mapping[str, base.StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",  # the limit of one request
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "ESCALATION": "refusal",
    "MODEL_ARMOR": "refusal",
}
_FEDERATION = base.Federation(
    required=("GOOGLE_CLOUD_PROJECT",),
    optional=("GOOGLE_CLOUD_LOCATION", "GOOGLE_WORKLOAD_IDENTITY_PROVIDER", "GOOGLE_SERVICE_ACCOUNT"),
    audience="https://iam.googleapis.com/{GOOGLE_WORKLOAD_IDENTITY_PROVIDER}",
    rule="Google's {GOOGLE_WORKLOAD_IDENTITY_PROVIDER}, or a role in {GOOGLE_CLOUD_PROJECT} (IAM)",
    exchanges_if="GOOGLE_WORKLOAD_IDENTITY_PROVIDER",
)
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_IMPERSONATION = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{}:generateAccessToken"
VENDOR_URL = "https://generativelanguage.googleapis.com"
_GENERATE, _CREATE_BATCH, _BATCHES = "generateContent", "batchGenerateContent", "/batches"
_VERSION_AT_END = re.compile(r"/(v1\w*)/?$")
_WRONG_KEY = "API key not valid"  # message of a 400; gateways may drop its details
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
# tokens by the vendor's page on media resolution, read in November 2026
_BY_TILES, _TILE = ("gemini-1", "gemini-2"), 258
_BY_RESOLUTION = {"LOW": 280, "MEDIUM": 560, "HIGH": 1_120, "ULTRA_HIGH": 2_240}
_TOP_LEVEL_KEYS = frozenset(
    ["safetySettings", "tools", "toolConfig", "cachedContent", "labels", "modelArmorConfig", "serviceTier", "store"]
)


def _cache_floor(model: Model) -> int | None:
    floor = 2_048 if model.api_name.startswith("gemini-2.5") else 4_096  # source: the vendor's page, November 2026
    return None if model.base_url else floor


def _file_tokens(model: Model, file: File) -> base.FileTokens:
    resolution = str(model.params.extra.get("media_resolution")).upper().removeprefix("MEDIA_RESOLUTION_")
    if model.api_name.rpartition("/")[2].startswith(_BY_TILES):  # a page or a small image is one tile
        side = max(256, min(768, int(min(file.width or 1, file.height or 1) / 1.5)))
        is_small = max(file.width or 0, file.height or 0) <= 384
        each = _TILE if is_small else _TILE * base.patches(file, side)
    else:
        each = _BY_RESOLUTION.get(resolution, 1_120 if file.pages is None else 560)
    return base.FileTokens(each * (file.pages or 1), max(each, 1_120) * (file.pages or 1))


def _open(model: Model, key: str | None, settings: Settings) -> remote.RemoteProvider:
    sampling = base.usual_sampling(model)
    fixed = _in_api_names(model, sampling.fixed)
    top_level = {name: fixed.pop(name) for name in _TOP_LEVEL_KEYS & fixed.keys()}

    def body(request: base.Request) -> Mapping[str, Any]:
        generation = {**fixed, **sampling.of(request, "maxOutputTokens")}
        tools: Mapping[str, Any] = {}
        if request.by_tool_call:
            function = {"name": request.schema_name, "parametersJsonSchema": sent_schema(request, model)}
            choice = {"mode": "ANY", "allowedFunctionNames": [request.schema_name]}
            tools = {"tools": [{"functionDeclarations": [function]}], "toolConfig": {"functionCallingConfig": choice}}
        elif request.schema is not None and model.structured_output != "none":
            generation["responseMimeType"] = "application/json"
            if model.sends_schema:
                generation["responseJsonSchema"] = sent_schema(request, model)
        return {
            "contents": [_content(message) for message in request.dialogue],
            **({"systemInstruction": _content(Message("user", (request.system,)))} if request.system else {}),
            "generationConfig": generation,
            **top_level,
            **tools,
        }

    return remote.RemoteProvider(_connected(model, key, settings), _GENERATE, body, _read, vendor_error=_vendor_error)


def _in_api_names(model: Model, settings: Mapping[str, Any]) -> dict[str, Any]:
    from google.genai.types import GenerateContentConfig

    try:
        return GenerateContentConfig(**settings).model_dump(mode="json", by_alias=True, exclude_none=True)
    except ValidationError as problem:
        raise ConfigError(f"{first_problem(problem)} in params of model '{model.id}' in models.yaml") from None


def _content(message: Message) -> Mapping[str, Any]:
    parts = remote.content_of(message, _file, lambda text: {"text": text})
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": [{"text": parts}] if isinstance(parts, str) else parts}


def _file(file: File) -> Mapping[str, Any]:
    return {"inlineData": {"mimeType": file.media_type, "data": remote.file_placeholder(file)}}


def _connected(model: Model, key: str | None, settings: Settings) -> remote.Connection:
    from google.auth import exceptions
    from google.genai import Client

    from skill_evaluator.providers.transport import SdkConnection

    identity, access = None, dict[str, Any](vertexai=False, api_key=key or "no-key")
    if model.auth == "oidc":
        refusals = (exceptions.OAuthError, exceptions.RefreshError, exceptions.DefaultCredentialsError)
        identity = Identity(_FEDERATION, key, faults=(exceptions.GoogleAuthError,), refusals=refusals)
        access = {
            "vertexai": True,
            "project": identity.identifiers["GOOGLE_CLOUD_PROJECT"],
            "location": identity.identifiers.get("GOOGLE_CLOUD_LOCATION", "global"),
            "credentials": _pool_credentials(identity),
        }
    connection = SdkConnection(model, settings, identity)
    is_vertex = identity is not None or connection.place is not None
    url = model.base_url or ("" if is_vertex else VENDOR_URL)
    version = _VERSION_AT_END.search(url)
    http_options: dict[str, Any] = {
        "api_version": version[1] if version else "v1beta1" if is_vertex else "v1",
        "httpx_async_client": connection.http_client,
        "retry_options": {"attempts": 1},
    }
    if url:
        http_options["base_url"] = url[: version.start()] if version else url.rstrip("/")
    if connection.place is not None:
        client = cloud_client(model, key, {"http_options": http_options})
    else:
        client = Client(**access, http_options=http_options)  # type: ignore[arg-type]
    connection.send_by = _requests_of(client.aio, model)

    async def close() -> None:
        client.close()
        await connection.http_client.aclose()

    connection.close_by = close
    return connection


def _requests_of(client: Any, model: Model) -> remote.Send:
    async def send(
        method: str, path: str, *, query: Mapping[str, Any] | None, body: Any, file: tuple[str, bytes, str] | None
    ) -> object:
        name = path.strip("/").removesuffix("/cancel")
        config: Any = {"http_options": {"extra_body": body}} if body else dict(query or {})
        if path == _GENERATE:
            config |= {"automatic_function_calling": {"disable": True}, "automatic_continuation": False}
            config["should_return_http_response"] = True
            return await client.models.generate_content(model=model.api_name, contents="-", config=config)
        if path == _CREATE_BATCH:
            no_requests: Any = [{"contents": "-"}]  # the body has them
            return await client.batches.create(model=model.api_name, src=no_requests, config=config)
        if path == _BATCHES:
            return await client.batches.list(config={"page_size": config.pop("limit"), **config})
        if method == "GET":
            return await client.batches.get(name=name)
        return await (client.batches.cancel if method == "POST" else client.batches.delete)(name=name)

    return send


def _pool_credentials(identity: Identity) -> Any:
    from google.auth import identity_pool

    pool = identity.identifiers.get("GOOGLE_WORKLOAD_IDENTITY_PROVIDER")
    account = identity.identifiers.get("GOOGLE_SERVICE_ACCOUNT")
    credentials: Any = identity_pool.Credentials
    return pool and credentials(
        audience=f"//iam.googleapis.com/{pool}",
        subject_token_type="urn:ietf:params:oauth:token-type:jwt",  # noqa: S106 (a kind, no token)
        subject_token_supplier=SimpleNamespace(get_subject_token=lambda context, request: identity.token()),
        service_account_impersonation_url=account and _IMPERSONATION.format(account),
        scopes=_SCOPES,
    )


def _read(body: Any, headers: Mapping[str, str]) -> base.Completion:
    counts = base.fields_of(body.get("usageMetadata"))
    parts: list[Any] = []
    stop_reason: base.StopReason = "refusal"
    if body.get("candidates") or not body["promptFeedback"]["blockReason"]:
        candidate = body["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or []
        stop_reason = _STOP.get(str(candidate.get("finishReason")), "other")
    return base.Completion(
        text="".join(part.get("text", "") for part in parts if not part.get("thought")),
        stop_reason=stop_reason,
        usage=base.Usage(
            input_tokens=counts.get("promptTokenCount"),
            output_tokens=base.sum_of_counts(counts.get("candidatesTokenCount"), counts.get("thoughtsTokenCount")),
            cache_read_tokens=counts.get("cachedContentTokenCount", 0),  # the API omits counts of 0
        ),
        served_model=body.get("modelVersion"),
        request_id=body.get("responseId"),
        reasoning=base.joined([part for part in parts if part.get("thought")], "text"),
        tool_call=base.joined(parts, "functionCall", "args"),
    )


def _vendor_error(answer: remote.HttpResponse) -> base.ProviderError | None:
    listed = answer.details.get("details")
    details = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    invalid_key = any(entry.get("reason") == "API_KEY_INVALID" for entry in details) or _WRONG_KEY in answer.message
    if answer.status == 400 and invalid_key:
        return base.ProviderError("wrong_key", answer.message, kind="no_credentials", status=answer.status, fatal=True)
    error = remote.error_from_status(answer.status, answer.headers, answer.message)
    for entry in details:
        delay = _DELAY.fullmatch(str(entry.get("retryDelay", "")))
        if error.retry_after_s is None and delay and str(entry.get("@type", "")).endswith("google.rpc.RetryInfo"):
            error.retry_after_s = float(delay[1])
    return error


KIND = base.ProviderKind(
    open=_open,
    tools=True,
    sampling=base.usual_sampling,
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    federation=_FEDERATION,
    cache_floor=_cache_floor,
    accepts=lambda model: ("pdf", "image"),
    file_tokens=_file_tokens,
)
_GRPC_STATUS = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
# The final states, each with the error of requests without a result.
_ENDED = dict.fromkeys(("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED"), batch.lost)
_ENDED |= {"CANCELLED": batch.canceled, "EXPIRED": batch.expired}


async def _create_batch(batches: batch.Batches, name: str, entries: Sequence[Mapping[str, Any]]) -> str:
    requests = {"inputConfig": {"requests": {"requests": entries}}}
    job = await batches.post(_CREATE_BATCH, {"batch": {"displayName": name, **requests}})
    return batch.required_id(job, "name")


def _batch_status(body: Mapping[str, Any]) -> batch.BatchStatus:
    job, error = base.fields_of(body.get("metadata")), base.fields_of(body.get("error"))
    word = str(job.get("state")).removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    stats = base.fields_of(job.get("batchStats"))
    counts = [str(stats.get(name)) for name in ("successfulRequestCount", "failedRequestCount")]  # texts in its JSON
    has_failed = word == "FAILED" or (error and word not in _ENDED)
    return batch.BatchStatus(
        batch_id=batch.required_id(body, "name"),
        state=word,
        ended=word in _ENDED or body.get("done") is True,
        done=sum(int(count) for count in counts if count.isdecimal()),
        unanswered=batch.batch_failed(word, error) if has_failed else _ENDED.get(word, batch.lost)(),
        name=job.get("displayName"),
        body=body,
    )


def _batch_answer(entry: Mapping[str, Any]) -> batch.RequestResult:
    custom_id, error = base.fields_of(entry.get("metadata")).get("key"), base.fields_of(entry.get("error"))
    if not error and "response" in entry:
        return custom_id, batch.response_from(200, entry["response"])
    code = error.get("code")
    return custom_id, batch.response_from(
        _GRPC_STATUS.get(code, 500) if isinstance(code, int) else 500, {"error": error}
    )


def _inline_answers(status: batch.BatchStatus) -> list[batch.RequestResult]:
    output = base.fields_of(status.body.get("response")) or base.fields_of(
        base.fields_of(status.body.get("metadata")).get("output")
    )
    entries = base.fields_of(output.get("inlinedResponses")).get("inlinedResponses") or ()
    return [_batch_answer(base.fields_of(entry)) for entry in entries]


BATCHES = batch.BatchApi(
    max_bytes=20_000_000,
    max_hours=48,
    path=_BATCHES,
    listed="operations",
    entry=lambda custom_id, body: {"request": body, "metadata": {"key": custom_id}},
    create=_create_batch,
    next_page=lambda page: {"page_token": page["nextPageToken"]} if page.get("nextPageToken") else None,
    status=_batch_status,
    inline=_inline_answers,
    answer=_batch_answer,
    deleted=lambda status: [f"/{status.batch_id}"],
)
