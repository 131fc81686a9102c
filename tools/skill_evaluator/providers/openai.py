"""OpenAI, and all servers with its chat completions API."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skill_evaluator.library.config import LIMIT_NAMES, STRICT, Model, Settings
from skill_evaluator.library.prompts import File
from skill_evaluator.providers import base, batch
from skill_evaluator.providers.access import Identity
from skill_evaluator.providers.remote import (
    Connection,
    HttpResponse,
    RemoteProvider,
    content_of,
    file_placeholder,
    parsed_body,
)
from skill_evaluator.providers.structured import response_format, sent_schema
from skill_evaluator.text import canonical_json, digest

VENDOR_URL = "https://api.openai.com/v1"
COMPLETIONS_PATH = "/chat/completions"
_STOP: Mapping[str, base.StopReason] = {"stop": "stop", "length": "length", "content_filter": "refusal"}
_FEDERATION = base.Federation(
    required=("OPENAI_IDENTITY_PROVIDER_ID", "OPENAI_SERVICE_ACCOUNT_ID"),
    optional=(),
    audience="https://api.openai.com/v1",
    rule="OpenAI's mapping of {OPENAI_IDENTITY_PROVIDER_ID} to {OPENAI_SERVICE_ACCOUNT_ID} (Workload identity)",
)
_CACHE_FLOOR = 1_024  # tokens, by the vendor's page, read in November 2026
# Settings that a server would take from its model's generation config; each value turns one off.
_OFF: Mapping[str, Mapping[str, float | bool]] = {
    "vllm": {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
    "sglang": {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "llama.cpp": {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
}
# tokens of an image by the vendor's page on vision, read in November 2026: 1.2 for each patch of 32 pixels, or by older
# rules up to 2.46 for each of 1,536 patches, or 1,445; a page of a PDF counts as its text and its image
_PATCH, _TOKENS_PER_PATCH, _OLDER = 32, 1.2, (2.46, 1_536, 1_445)
_MAX_IMAGE_4O_MINI = 48_169
_LIKELY_PAGE, _MAX_PAGE_TEXT = 2_000, 3_000
_MAX_IMAGE_ELSEWHERE = 6_500  # tokens of a small image on a compatible server
_OUT_OF_CREDIT = ("insufficient_quota", "billing_not_active")


def sampling(model: Model) -> base.Sampling:
    """Return a model's sampling settings. For a `server` such as vLLM, add settings that turn off its defaults."""
    usual = base.usual_sampling(model)
    if model.server is None:
        return usual
    explicit: dict[str, Any] = {"temperature": 1.0, **_OFF[model.server]}
    if model.server == "llama.cpp" and model.profile == "deterministic":
        explicit["cache_prompt"] = False  # the cache makes an output depend on earlier calls
    sent = explicit | {**usual.sent}
    ignored = (*usual.unavailable, *usual.extra)
    return replace(usual, sent={name: value for name, value in sent.items() if name not in ignored})


def _file_tokens(model: Model, file: File) -> base.FileTokens:
    per_patch, max_patches, minimum = _OLDER
    if model.base_url:
        minimum = _MAX_IMAGE_ELSEWHERE
    elif model.api_name.startswith("gpt-4o-mini"):
        minimum = _MAX_IMAGE_4O_MINI
    if file.pages is not None:
        page = _MAX_PAGE_TEXT + max(minimum, int(per_patch * max_patches))
        return base.FileTokens(file.pages * _LIKELY_PAGE, file.pages * page)
    count = base.patches(file, _PATCH)
    likely = math.ceil(count * _TOKENS_PER_PATCH)
    upper_bound = max(2 * likely if model.base_url else likely, math.ceil(per_patch * min(count, max_patches)), minimum)
    return base.FileTokens(likely, upper_bound)


def _open(model: Model, key: str | None, settings: Settings) -> RemoteProvider:
    settings_sent = sampling(model)
    fixed = {"model": model.api_name, **settings_sent.fixed}
    usual_name = "max_completion_tokens" if model.is_direct or model.place == "azure" else "max_tokens"
    limit_name = next((name for name in LIMIT_NAMES if name in model.params.extra), usual_name)

    def body(request: base.Request) -> Mapping[str, Any]:
        content = {
            **fixed,
            "messages": [{"role": message.role, "content": content_of(message, _file)} for message in request.messages],
            **settings_sent.of(request, limit_name),
        }
        if request.cache:  # routes the calls of one prompt to one machine
            texts = [[message.role, content_of(message, lambda file: file.digest)] for message in request.messages]
            content.setdefault("prompt_cache_key", digest(canonical_json(texts)).removeprefix("sha256:"))
        if request.by_tool_call:
            strict = {"strict": True} if model.structured_output == STRICT else {}
            function = {"name": request.schema_name, "parameters": sent_schema(request, model), **strict}
            content["tools"] = [{"type": "function", "function": function}]
            content["tool_choice"] = {"type": "function", "function": {"name": request.schema_name}}
        else:
            content |= response_format(request, model)
        return content

    def vendor_error(answer: HttpResponse) -> base.ProviderError | None:
        is_empty = answer.details.get("code") in _OUT_OF_CREDIT
        return (
            base.ProviderError("out_of_credit", answer.message, status=answer.status, fatal=True) if is_empty else None
        )

    connection = _connected(model, key, settings)
    return RemoteProvider(connection, COMPLETIONS_PATH, body, _read, vendor_error=vendor_error)


def _connected(model: Model, key: str | None, settings: Settings) -> Connection:
    import httpx2
    from openai import AsyncOpenAI, OAuthError, OpenAIError, omit

    from skill_evaluator.providers.transport import SdkConnection, without_environment

    identity, credentials = None, dict[str, Any](api_key=key or "no-key")
    if model.auth == "oidc":
        faults = (OpenAIError, httpx2.HTTPError)
        identity = Identity(_FEDERATION, key, faults=faults, refusals=(OAuthError,))
        named = {variable.removeprefix("OPENAI_").lower(): id_ for variable, id_ in identity.identifiers.items()}
        provider = {"token_type": "jwt", "get_token": identity.token}
        credentials = {"workload_identity": {**named, "provider": provider}}
    url = (model.base_url or VENDOR_URL).rstrip("/")
    headers = without_environment("OPENAI_CUSTOM_HEADERS", omit)
    headers |= dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), omit)
    connection = SdkConnection(model, settings, identity)
    connection.open_client(model, key, lambda options: AsyncOpenAI(base_url=url, **credentials, **options), headers)
    return connection


def _file(file: File) -> Mapping[str, Any]:
    data = f"data:{file.media_type};base64,{file_placeholder(file)}"
    if file.media_type == "application/pdf":  # a constant name, since the model may read it
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": data}}
    return {"type": "image_url", "image_url": {"url": data}}


async def server_version(base_url: str) -> str | None:
    """Return the version that an OpenAI-compatible server reports at `/version`.

    Return None if the server cannot be reached or reports no version.
    """
    from skill_evaluator.providers.transport import PlainConnection

    server = PlainConnection(base_url.rstrip("/").removesuffix("/v1"), {}, 3.0, 4_000_000)
    try:
        version = parsed_body((await server.send("GET", "/version")).content)["version"]
        return "".join(filter(str.isprintable, str(version)))[:100] or None
    except Exception:  # the version is optional
        return None
    finally:
        await server.close()


def _read(body: Any, headers: Mapping[str, str]) -> base.Completion:
    choice = body["choices"][0]
    message = choice["message"]
    refusal, content = message.get("refusal"), message.get("content")
    if isinstance(content, list):  # some compatible servers answer with parts
        content = "".join(base.fields_of(part).get("text") or "" for part in content)
    usage = base.fields_of(body.get("usage"))
    details = base.fields_of(usage.get("prompt_tokens_details"))
    return base.Completion(
        text=refusal if isinstance(refusal, str) and refusal else "" if content is None else content,
        stop_reason="refusal" if refusal else _STOP.get(str(choice.get("finish_reason")), "other"),
        usage=base.Usage(
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cache_read_tokens=details.get("cached_tokens"),
            cache_write_tokens=details.get("cache_write_tokens"),
        ),
        served_model=body.get("model"),
        request_id=headers.get("x-request-id") or body.get("id"),
        fingerprint=body.get("system_fingerprint"),
        reasoning=message.get("reasoning_content") or message.get("reasoning") or "",
        tool_call=base.joined(message.get("tool_calls"), "function", "arguments"),
    )


KIND = base.ProviderKind(
    open=_open,
    tools=True,
    sampling=sampling,
    key_variables=("OPENAI_API_KEY",),
    federation=_FEDERATION,
    cache_floor=lambda model: _CACHE_FLOOR if model.is_direct else None,
    accepts=lambda model: ("pdf", "image") if model.is_direct else ("image",) if model.place == "azure" else (),
    file_tokens=_file_tokens,
)
# The final states, each with the error of requests without a result.
_ENDED = {"completed": batch.lost, "cancelled": batch.canceled, "expired": batch.expired, "failed": batch.lost}
_BATCH_ENTRY = {"method": "POST", "url": f"/v1{COMPLETIONS_PATH}"}
_UNRUN = {"batch_expired": batch.expired, "batch_cancelled": batch.canceled}


async def _create_batch(batches: batch.Batches, name: str, entries: Sequence[Mapping[str, Any]]) -> str:
    file = await batches.post("/files", {"purpose": "batch"}, ("requests.jsonl", entries, "application/jsonl"))
    fixed = {"endpoint": f"/v1{COMPLETIONS_PATH}", "completion_window": "24h", "metadata": {"name": name}}
    return batch.required_id(await batches.post("/batches", {"input_file_id": batch.required_id(file), **fixed}))


def _batch_status(body: Mapping[str, Any]) -> batch.BatchStatus:
    state, counts = str(body.get("status")), base.fields_of(body.get("request_counts"))
    unanswered, line = _ENDED.get(state, batch.lost)(), None
    if state == "failed":
        first = base.fields_of((base.fields_of(body.get("errors")).get("data") or [{}])[0])
        unanswered, line = batch.batch_failed(state, first), batch.count_of(first.get("line"))
    return batch.BatchStatus(
        batch_id=batch.required_id(body),
        state=state,
        ended=state in _ENDED,
        done=batch.count_of(counts.get("completed"), counts.get("failed")),
        unanswered=unanswered,
        failed_line=line,
        name=base.fields_of(body.get("metadata")).get("name"),
        created=batch.count_of(body.get("created_at")),
        body=body,
    )


def _batch_answer(line: Mapping[str, Any]) -> batch.RequestResult:
    custom_id, error, response = (
        line.get("custom_id"),
        base.fields_of(line.get("error")),
        base.fields_of(line.get("response")),
    )
    status, code = response.get("status_code"), str(error.get("code"))
    if isinstance(status, int) and 100 <= status <= 599:
        return custom_id, batch.response_from(status, response.get("body"), response.get("request_id"))
    return custom_id, _UNRUN[code]() if code in _UNRUN else batch.response_from(500, {"error": error})


def _batch_files(status: batch.BatchStatus, *keys: str) -> list[str]:
    return [f"/files/{status.body[key]}" for key in (*keys, "output_file_id", "error_file_id") if status.body.get(key)]


BATCHES = batch.BatchApi(  # a batch cannot be deleted, only its files
    max_bytes=200_000_000,
    max_hours=24,
    path="/batches",
    entry=lambda custom_id, body: {"custom_id": custom_id, **_BATCH_ENTRY, "body": body},
    create=_create_batch,
    next_page=lambda page: {"after": page["data"][-1]["id"]} if page.get("data") and page.get("has_more") else None,
    status=_batch_status,
    files=lambda status: [f"{file}/content" for file in _batch_files(status)],
    answer=_batch_answer,
    deleted=lambda status: _batch_files(status, "input_file_id"),
)
