"""Anthropic's messages API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from skill_evaluator.library.config import STRICT, Model, Settings
from skill_evaluator.library.prompts import File
from skill_evaluator.providers import base, batch
from skill_evaluator.providers.access import Identity
from skill_evaluator.providers.remote import Connection, RemoteProvider, content_of, file_placeholder
from skill_evaluator.providers.structured import sent_schema

VENDOR_URL = "https://api.anthropic.com"
_STOP: Mapping[str, base.StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_EPHEMERAL = {"type": "ephemeral"}
_FEDERATION = base.Federation(
    required=("ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID"),
    optional=("ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID"),
    audience="https://api.anthropic.com",
    rule="Anthropic's federation rule {ANTHROPIC_FEDERATION_RULE_ID} (Console → Workload identity)",
)
# tokens of the shortest prompt that is cached, by the vendor's page on prompt caching, read in November 2026
_FLOORS = {
    **dict.fromkeys(("claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-7", "claude-haiku-4-5"), 4_096),
    **dict.fromkeys(("claude-opus-5", "claude-fable-5"), 512),
}
_USUAL_FLOOR = 1_024
# tokens by the vendor's pages on vision and PDFs, read in November 2026: one for each patch of 28 pixels of an image,
# which is scaled down above a size; a page is its text, of 3,000 tokens at most, and its image
_PATCH, _MAX_IMAGE, _LIKELY_PAGE, _MAX_PAGE_TEXT = 28, 4_784, 2_400, 3_000
# the API refuses these settings, even if models.yaml names them in params
sampling = partial(base.usual_sampling, refused=("temperature", "top_p", "seed"))


def _cache_floor(model: Model) -> int | None:
    floor = next((tokens for name, tokens in _FLOORS.items() if model.api_name.startswith(name)), _USUAL_FLOOR)
    return floor if model.is_direct or model.place else None


def _file_tokens(model: Model, file: File) -> base.FileTokens:
    if file.pages is not None:
        return base.FileTokens(file.pages * _LIKELY_PAGE, file.pages * (_MAX_PAGE_TEXT + _MAX_IMAGE))
    tokens = min(base.patches(file, _PATCH), _MAX_IMAGE)
    return base.FileTokens(tokens, tokens)


def _open(model: Model, key: str | None, settings: Settings) -> RemoteProvider:
    def body(request: base.Request) -> Mapping[str, Any]:
        content = {
            "model": model.api_name,
            **sampling(model).fixed,
            **({"system": request.system} if request.system else {}),
            "messages": [{"role": message.role, "content": content_of(message, _file)} for message in request.dialogue],
            **sampling(model).of(request, "max_tokens"),
        }
        if request.cache:
            content.setdefault("cache_control", _EPHEMERAL)  # caches up to the end of the user's text
            if request.examples:  # other cases share the examples
                last = content["messages"][request.examples - 1]
                last["content"] = [{"type": "text", "text": last["content"], "cache_control": _EPHEMERAL}]
        if request.by_tool_call:
            strict = {"strict": True} if model.structured_output == STRICT else {}
            content["tools"] = [{"name": request.schema_name, "input_schema": sent_schema(request, model), **strict}]
            choice = {"type": "tool", "name": request.schema_name, "disable_parallel_tool_use": True}
            content["tool_choice"] = choice
        elif request.schema is not None and model.sends_schema:
            settings = model.params.extra.get("output_config") or {}  # params may set its other keys, such as effort
            output_format = {"type": "json_schema", "schema": sent_schema(request, model)}
            content["output_config"] = {**settings, "format": output_format}
        return content

    return RemoteProvider(_connected(model, key, settings), "/v1/messages", body, _read)


def _file(file: File) -> Mapping[str, Any]:
    source = {"type": "base64", "media_type": file.media_type, "data": file_placeholder(file)}
    return {"type": "document" if file.media_type == "application/pdf" else "image", "source": source}


def _connected(model: Model, key: str | None, settings: Settings) -> Connection:
    from anthropic import AsyncAnthropic, omit
    from anthropic.lib.credentials import WorkloadIdentityCredentials, WorkloadIdentityError

    from skill_evaluator.providers.transport import SdkConnection, without_environment

    identity, credentials = None, dict[str, Any](auth_token=key or "no-key")
    if model.auth == "oidc":
        fault = (WorkloadIdentityError,)
        identity = Identity(_FEDERATION, key, faults=fault, refusals=fault)
        ids: Any = {name.removeprefix("ANTHROPIC_").lower(): value for name, value in identity.identifiers.items()}
        credentials = {"credentials": WorkloadIdentityCredentials(identity_token_provider=identity.token, **ids)}
    url = (model.base_url or VENDOR_URL).rstrip("/")
    headers = without_environment("ANTHROPIC_CUSTOM_HEADERS", omit)
    connection = SdkConnection(model, settings, identity)
    connection.open_client(model, key, lambda options: AsyncAnthropic(base_url=url, **credentials, **options), headers)
    return connection


def _read(body: Any, headers: Mapping[str, str]) -> base.Completion:
    usage = base.fields_of(body.get("usage"))
    return base.Completion(
        text="".join(block["text"] for block in body["content"] if block["type"] == "text"),
        stop_reason=_STOP.get(str(body.get("stop_reason")), "other"),
        usage=base.Usage(
            input_tokens=base.sum_of_counts(*(usage.get(name) for name in _INPUT_TOKENS)),
            output_tokens=usage.get("output_tokens"),
            cache_read_tokens=usage.get("cache_read_input_tokens"),
            cache_write_tokens=usage.get("cache_creation_input_tokens"),
            cache_write_1h_tokens=base.fields_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"),
        ),
        served_model=body.get("model"),
        request_id=headers.get("request-id") or body.get("id"),
        reasoning=base.joined(body["content"], "thinking"),
        tool_call=base.joined(body["content"], "input"),
    )


KIND = base.ProviderKind(
    open=_open,
    tools=True,
    sampling=sampling,
    key_variables=("ANTHROPIC_API_KEY",),
    federation=_FEDERATION,
    cache_floor=_cache_floor,
    accepts=lambda model: ("pdf", "image"),
    file_tokens=_file_tokens,
)
_BATCHES = "/v1/messages/batches"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_STATUS_OF = {  # HTTP status by error type, since errors of a batch have no status
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


async def _create_batch(batches: batch.Batches, _: str, entries: Sequence[Mapping[str, Any]]) -> str:
    return batch.required_id(await batches.post(_BATCHES, {"requests": entries}))


def _batch_counts(body: Mapping[str, Any], names: Sequence[str] = _COUNTS) -> int | None:
    counts = base.fields_of(body.get("request_counts"))
    return batch.count_of(*(counts.get(name, 0) for name in names))


def _batch_status(body: Mapping[str, Any]) -> batch.BatchStatus:
    state = str(body.get("processing_status"))
    return batch.BatchStatus(
        batch_id=batch.required_id(body),
        state=state,
        ended=state == "ended",
        done=_batch_counts(body, _COUNTS[1:]),
        unanswered=batch.lost(),
        requests=_batch_counts(body),
        created=datetime.fromisoformat(body["created_at"]).timestamp() if "created_at" in body else None,
        body=body,
    )


def _batch_answer(line: Mapping[str, Any]) -> batch.RequestResult:
    custom_id, result = line.get("custom_id"), base.fields_of(line.get("result"))
    match result.get("type"):
        case "succeeded":
            return custom_id, batch.response_from(200, result.get("message"))
        case "expired":
            return custom_id, batch.expired()
        case "canceled":
            return custom_id, batch.canceled()
    error = base.fields_of(result.get("error"))
    kind = str(base.fields_of(error.get("error")).get("type"))
    return custom_id, batch.response_from(_STATUS_OF.get(kind, 500), error, error.get("request_id"))


BATCHES = batch.BatchApi(  # a batch has no name
    max_bytes=256_000_000,
    max_hours=24,
    path=_BATCHES,
    entry=lambda custom_id, body: {"custom_id": custom_id, "params": body},
    create=_create_batch,
    next_page=lambda page: {"after_id": page["last_id"]} if page.get("has_more") and page.get("last_id") else None,
    status=_batch_status,
    files=lambda status: [f"{_BATCHES}/{status.batch_id}/results"] if status.body.get("results_url") else [],
    answer=_batch_answer,
    deleted=lambda status: [f"{_BATCHES}/{status.batch_id}"],
)
