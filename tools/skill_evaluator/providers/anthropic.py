"""Anthropic's messages, through the `anthropic` SDK.

The body is posted through the SDK's client and read as JSON, as in `openai`: so a request that cannot be sent and an
answer that cannot be read stay two things, and the typed call's opinions (on large max_tokens, on old models) away.
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

_VENDOR_URL = "https://api.anthropic.com"  # given, so that no variable of the SDK sends a run elsewhere
_STOP: Mapping[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OUT_OF_CREDIT = "credit balance is too low"  # comes as a plain 400, told apart by its words only


def sampling(model: Model) -> Sampling:
    """Nothing: the API takes no temperature, top_p or seed, also when the model's params name them."""
    return Sampling(unavailable=("temperature", "top_p", "seed"))


class AnthropicProvider:
    """One model behind `POST /v1/messages`."""

    def __init__(self, model: Model, key: str | None, timeout_s: float) -> None:
        import anthropic
        import httpx2

        self._sdk = anthropic
        self._response_type = httpx2.Response
        self._client = anthropic.AsyncAnthropic(
            api_key=key or "no-key", base_url=model.base_url or _VENDOR_URL, max_retries=0, timeout=timeout_s
        )
        self._fixed = {"model": model.api_name, **model.params.extra}
        self._by_schema = model.structured_output == "json_schema"

    async def complete(self, request: Request) -> Completion:
        """Ask once; raises ProviderError."""
        sdk = self._sdk
        try:
            response = await self._client.post("/v1/messages", body=self._body(request), cast_to=self._response_type)
        except sdk.APIStatusError as problem:
            message = problem.api_message or problem.message
            raise _status_error(problem.status_code, problem.response.headers, message) from None
        except sdk.APITimeoutError as problem:
            raise timed_out(str(problem)) from None
        except sdk.APIConnectionError as problem:
            raise dropped(f"{problem} ({problem.__cause__!r})") from None
        except (ValueError, TypeError) as problem:
            raise unsendable(problem) from None
        try:
            return _completion(response.json(), response.headers.get("request-id"))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
            raise malformed(f"unexpected body: {problem!r}") from None

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def _body(self, request: Request) -> dict[str, Any]:
        body = {
            **self._fixed,
            "system": request.system,
            "messages": [{"role": "user", "content": request.user}],
            "max_tokens": request.max_output_tokens,
        }
        if request.schema is not None and self._by_schema:
            schema = {key: value for key, value in request.schema.items() if key != "$schema"}
            asked = self._fixed.get("output_config") or {}  # params may set its other keys, such as effort
            body["output_config"] = {**asked, "format": {"type": "json_schema", "schema": schema}}
        return body


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Open a connection to one model; imports the SDK."""
    return AnthropicProvider(model, key, timeout_s)


def _completion(body: Any, request_id: str | None) -> Completion:
    usage = body.get("usage") or {}
    counts = [usage[name] for name in _INPUT_TOKENS if usage.get(name) is not None]
    return Completion(
        text="".join(block["text"] for block in body["content"] if block["type"] == "text"),
        stop_reason=_STOP.get(body.get("stop_reason"), "other"),
        usage=Usage(input_tokens=sum(counts) if counts else None, output_tokens=usage.get("output_tokens")),
        served_model=body.get("model"),
        request_id=request_id or body.get("id"),
    )


def _status_error(status: int, headers: Mapping[str, str], message: str) -> ProviderError:
    if status == 402 or (status == 400 and _OUT_OF_CREDIT in message):
        return ProviderError("out_of_credit", message, status=status, fatal=True)
    return error_from_status(status, headers, message)
