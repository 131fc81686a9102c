"""Google's Gemini models, through the `google-genai` SDK.

The SDK maps the request; the body comes back as text (`should_return_http_response`) and is read here: the typed
answer fails on what a proxy may send, and may be followed by requests to continue it. The SDK gets our HTTP client,
lest it pick aiohttp when that is installed, where it retries a dropped connection by itself.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import (
    Completion,
    Provider,
    ProviderError,
    Request,
    Sampling,
    StopReason,
    Usage,
    dropped,
    error_from_status,
    malformed,
    timed_out,
    unsendable,
)
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
_VENDOR_URL = "https://generativelanguage.googleapis.com"  # given: no variable of the SDK sends a run elsewhere
_VERSION_AT_END = re.compile(r"/(v1\w*)/?$")
_WRONG_KEY = "API key not valid"  # a 400 by status; some gateways drop the details that name it
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def sampling(model: Model) -> Sampling:
    """Temperature 0 and a seed; the model's own params win over the profile."""
    sent: dict[str, Any] = {"seed": "per replicate"}
    if model.profile == "deterministic":
        sent["temperature"] = 0.0
    for name, value in (("temperature", model.params.temperature), ("top_p", model.params.top_p)):
        if value is not None:
            sent[name] = value
    return Sampling(sent=sent)


def check(model: Model) -> None:
    """Refuse params that the SDK's request has no place for. Imports the SDK: asked when a model is opened."""
    from google.genai import types

    known = set(types.GenerateContentConfig.model_fields) - _OURS
    for name in model.params.extra:
        if name not in known:
            meant = nearest(to_snake(name), known)
            raise ConfigError(f"unknown param '{name}' of model '{model.id}' in models.yaml {meant}")
    try:
        types.GenerateContentConfig(**model.params.extra)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ConfigError(f"param '{where}' of model '{model.id}' in models.yaml: {first['msg']}") from None


class GoogleProvider:
    """One model behind `POST /v1/models/<name>:generateContent`; a base_url may end in another API version."""

    def __init__(self, model: Model, key: str | None, timeout_s: float) -> None:
        check(model)
        import httpx2
        from google import genai
        from google.genai import errors, types

        url = model.base_url or _VENDOR_URL
        version = _VERSION_AT_END.search(url)
        self._transport = httpx2
        self._errors = errors
        self._config_type = types.GenerateContentConfig
        self._http = httpx2.AsyncClient(follow_redirects=True)
        self._client = genai.Client(
            enterprise=False,
            api_key=key or "no-key",
            http_options=types.HttpOptions(
                base_url=url[: version.start()] if version else url,
                api_version=version[1] if version else None,
                timeout=round(timeout_s * 1000),
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_async_client=self._http,
            ),
        )
        self._model = model
        self._fixed = _fixed_config(model)

    async def complete(self, request: Request) -> Completion:
        """Ask once; raises ProviderError."""
        try:
            response = await self._client.aio.models.generate_content(
                model=self._model.api_name, contents=request.user, config=self._config_type(**self._config(request))
            )
        except self._errors.APIError as problem:
            raise _status_error(problem.code, problem.response.headers, problem.details) from None
        except self._transport.TimeoutException as problem:
            raise timed_out(repr(problem)) from None
        except self._transport.HTTPError as problem:
            raise dropped(repr(problem)) from None
        except UnicodeDecodeError as problem:  # the SDK's own reading of an error page; the status goes lost in it
            raise malformed(f"unexpected body: {problem}") from None
        except (ValueError, TypeError) as problem:
            raise unsendable(problem) from None
        try:
            return _completion(response.sdk_http_response)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
            raise malformed(f"unexpected body: {problem!r}") from None

    async def close(self) -> None:
        """Close the SDK's client and ours."""
        await self._client.aio.aclose()
        self._client.close()
        await self._http.aclose()

    def _config(self, request: Request) -> dict[str, Any]:
        config = {
            **self._fixed,
            "system_instruction": request.system,
            "max_output_tokens": request.max_output_tokens,
            "seed": request.seed,
        }
        if request.schema is not None and self._model.structured_output != "none":
            config["response_mime_type"] = "application/json"
            if self._model.structured_output == "json_schema":
                schema = {key: value for key, value in request.schema.items() if key != "$schema"}
                config["response_json_schema"] = schema
        return config


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Open a connection to one model; imports the SDK."""
    return GoogleProvider(model, key, timeout_s)


def _fixed_config(model: Model) -> dict[str, Any]:
    sent = {name: value for name, value in sampling(model).sent.items() if name != "seed"}
    return {**sent, **model.params.extra, "should_return_http_response": True}


def _completion(response: Any) -> Completion:
    body = json.loads(response.body)
    counts = body.get("usageMetadata") or {}
    written = [counts[name] for name in ("candidatesTokenCount", "thoughtsTokenCount") if counts.get(name) is not None]
    text, stop_reason = _answer(body)
    return Completion(
        text=text,
        stop_reason=stop_reason,
        usage=Usage(input_tokens=counts.get("promptTokenCount"), output_tokens=sum(written) if written else None),
        served_model=body.get("modelVersion"),
        request_id=body.get("responseId"),
    )


def _answer(body: Any) -> tuple[str, StopReason]:
    if not body.get("candidates") and body["promptFeedback"]["blockReason"]:
        return "", "refusal"
    candidate = body["candidates"][0]
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    return text, _STOP.get(candidate.get("finishReason"), "other")


def _status_error(status: int, headers: Mapping[str, str], body: Any) -> ProviderError:
    problem = body.get("error", body) if isinstance(body, dict) else {}
    message = str(problem.get("message") or body) if isinstance(problem, dict) else str(body)
    listed = problem.get("details") if isinstance(problem, dict) else None
    details = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if status == 400 and (_WRONG_KEY in message or any(entry.get("reason") == "API_KEY_INVALID" for entry in details)):
        return ProviderError("wrong_key", message, kind="no_credentials", status=status, fatal=True)
    error = error_from_status(status, headers, message)
    if error.retry_after_s is None:
        error.retry_after_s = _retry_delay(details)
    return error


def _retry_delay(details: list[dict[str, Any]]) -> float | None:
    for entry in details:
        delay = _DELAY.fullmatch(str(entry.get("retryDelay", "")))
        if delay and str(entry.get("@type", "")).endswith("google.rpc.RetryInfo"):
            return float(delay[1])
    return None
