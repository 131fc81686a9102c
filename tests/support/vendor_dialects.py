"""How each vendor words an answer and an error: one neutral value in, that vendor's JSON body and headers out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """A completed call. `stop`: a neutral word (stop, length, refusal) or a vendor's own; `usage`: (input, output)."""

    text: str = "fine"
    stop: str = "stop"
    usage: tuple[int, int] | None = (11, 7)
    served_model: str = "served-model-001"
    request_id: str = "request-001"


class Dialect(Protocol):
    """One vendor's wire format."""

    def key(self, headers: Mapping[str, str]) -> str: ...

    def answer(self, answer: Answer) -> tuple[dict[str, Any], dict[str, str]]: ...

    def error(self, status: int, message: str) -> dict[str, Any]: ...


class OpenAI:
    """`POST …/chat/completions`."""

    _STOP: ClassVar = {"refusal": "content_filter"}

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def answer(self, answer: Answer) -> tuple[dict[str, Any], dict[str, str]]:
        refused = answer.stop == "refusal" and answer.text
        message = {
            "role": "assistant",
            "content": None if refused else answer.text,
            "refusal": answer.text if refused else None,
        }
        stop = "stop" if refused else self._STOP.get(answer.stop, answer.stop)
        body: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": answer.served_model,
            "choices": [{"index": 0, "message": message, "finish_reason": stop, "logprobs": None}],
        }
        if answer.usage:
            given, written = answer.usage
            body["usage"] = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
        return body, {"x-request-id": answer.request_id}

    def error(self, status: int, message: str) -> dict[str, Any]:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class Anthropic:
    """`POST …/v1/messages`."""

    _STOP: ClassVar = {"stop": "end_turn", "length": "max_tokens"}
    _ERRORS: ClassVar = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        408: "timeout_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def answer(self, answer: Answer) -> tuple[dict[str, Any], dict[str, str]]:
        body: dict[str, Any] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": answer.served_model,
            "content": [{"type": "text", "text": answer.text}] if answer.text else [],
            "stop_reason": self._STOP.get(answer.stop, answer.stop),
            "stop_sequence": None,
        }
        if answer.usage:
            given, written = answer.usage
            body["usage"] = {"input_tokens": given, "output_tokens": written}
        return body, {"request-id": answer.request_id}

    def error(self, status: int, message: str) -> dict[str, Any]:
        kind = self._ERRORS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "request-001"}


class Google:
    """`POST …/v1/models/<name>:generateContent`, and the same under v1beta."""

    _STOP: ClassVar = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    _ERRORS: ClassVar = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        503: "UNAVAILABLE",
    }

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "")

    def answer(self, answer: Answer) -> tuple[dict[str, Any], dict[str, str]]:
        content = {"role": "model", **({"parts": [{"text": answer.text}]} if answer.text else {})}
        body: dict[str, Any] = {
            "candidates": [{"content": content, "finishReason": self._STOP.get(answer.stop, answer.stop), "index": 0}],
            "modelVersion": answer.served_model,
            "responseId": answer.request_id,
        }
        if answer.usage:
            given, written = answer.usage
            counts = {"promptTokenCount": given, "candidatesTokenCount": written, "totalTokenCount": given + written}
            body["usageMetadata"] = counts
        return body, {}

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": self._ERRORS.get(status, "INTERNAL")}}


def dialect_of(path: str) -> Dialect | None:
    """The vendor whose API has this path, or None."""
    if path.endswith("/chat/completions"):
        return OpenAI()
    if path.endswith("/v1/messages"):
        return Anthropic()
    if path.endswith(":generateContent") and path.startswith(("/v1/models/", "/v1beta/models/")):
        return Google()
    return None
