"""OpenAI and every server that speaks its chat completions, through the `openai` SDK.

The body is posted through the SDK's client (keys, URLs, connections, error classes) and read as JSON: building the
SDK's typed objects both ways would cost more processor time than everything else this project does to a call.
"""

from collections.abc import Mapping
from typing import Any

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

_VENDOR_URL = "https://api.openai.com/v1"
_STOP: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "content_filter": "refusal"}
_REASONING_FAMILIES = ("gpt-5", "o1", "o3", "o4")  # they answer 400 to a temperature or top_p
_OUT_OF_CREDIT = ("insufficient_quota", "billing_not_active")


def _reasons(model: Model) -> bool:
    return model.base_url is None and model.api_name.startswith(_REASONING_FAMILIES)


def sampling(model: Model) -> Sampling:
    """Temperature 0 and a seed where accepted; the model's own params win over the profile."""
    if _reasons(model):
        return Sampling(sent={"seed": "per replicate"}, unavailable=("temperature", "top_p"))
    sent: dict[str, Any] = {"seed": "per replicate"}
    if model.profile == "deterministic":
        sent["temperature"] = 0.0
    for name, value in (("temperature", model.params.temperature), ("top_p", model.params.top_p)):
        if value is not None:
            sent[name] = value
    return Sampling(sent=sent)


class OpenAIProvider:
    """One model behind `POST /chat/completions`."""

    def __init__(self, model: Model, key: str | None, timeout_s: float) -> None:
        import httpx2
        import openai

        self._sdk = openai
        self._response_type = httpx2.Response
        self._client = openai.AsyncOpenAI(
            api_key=key or "no-key", base_url=model.base_url or _VENDOR_URL, max_retries=0, timeout=timeout_s
        )
        self._client.organization = self._client.project = None  # models.yaml decides, not the SDK's variables
        self._fixed = _fixed_body(model)
        self._limit_name = "max_tokens" if model.base_url else "max_completion_tokens"
        self._structured = model.structured_output

    async def complete(self, request: Request) -> Completion:
        """Ask once; raises ProviderError."""
        sdk = self._sdk
        try:
            response = await self._client.post(
                "/chat/completions", body=self._body(request), cast_to=self._response_type
            )
        except sdk.APIStatusError as problem:
            raise _status_error(problem.status_code, problem.response.headers, problem.body, problem.message) from None
        except sdk.APITimeoutError as problem:
            raise timed_out(str(problem)) from None
        except sdk.APIConnectionError as problem:
            raise dropped(f"{problem} ({problem.__cause__!r})") from None
        except (ValueError, TypeError) as problem:
            raise unsendable(problem) from None
        try:
            return _completion(response.json(), response.headers.get("x-request-id"))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
            raise malformed(f"unexpected body: {problem!r}") from None

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def _body(self, request: Request) -> dict[str, Any]:
        body = {
            **self._fixed,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            "seed": request.seed,
            self._limit_name: request.max_output_tokens,
        }
        if request.schema is not None and self._structured != "none":
            body["response_format"] = _response_format(self._structured, request)
        return body


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Open a connection to one model; imports the SDK."""
    return OpenAIProvider(model, key, timeout_s)


def _fixed_body(model: Model) -> dict[str, Any]:
    sent = {name: value for name, value in sampling(model).sent.items() if name != "seed"}
    return {"model": model.api_name, **sent, **model.params.extra}


def _response_format(mode: str, request: Request) -> dict[str, Any]:
    if mode == "json_object":
        return {"type": "json_object"}
    schema = {key: value for key, value in (request.schema or {}).items() if key != "$schema"}
    return {"type": "json_schema", "json_schema": {"name": request.schema_name, "schema": schema, "strict": True}}


def _completion(body: Any, request_id: str | None) -> Completion:
    choice = body["choices"][0]
    message = choice["message"]
    refusal = message.get("refusal")
    text = refusal or message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError(f"content is no text but {type(text).__name__}")
    usage = body.get("usage") or {}
    return Completion(
        text=text,
        stop_reason="refusal" if refusal else _STOP.get(choice.get("finish_reason"), "other"),
        usage=Usage(input_tokens=usage.get("prompt_tokens"), output_tokens=usage.get("completion_tokens")),
        served_model=body.get("model"),
        request_id=request_id or body.get("id"),
    )


def _status_error(status: int, headers: Mapping[str, str], body: Any, message: str) -> ProviderError:
    if isinstance(body, dict) and body.get("code") in _OUT_OF_CREDIT:
        return ProviderError("out_of_credit", message, status=status, fatal=True)
    return error_from_status(status, headers, message)
