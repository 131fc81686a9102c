"""How each vendor's API is spoken: what a request to it must look like, and how it words an answer and an error.

A new provider is tested once it has a class here and a line in `DIALECTS`: the contract suite and its server read both.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from skill_evaluator.providers.base import Request

Json = dict[str, Any]
Place = tuple[str | int, ...]  # the steps to a value in a body
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Notice",
    "type": "object",
    "properties": {"award": {"type": ["string", "null"]}},
    "required": ["award"],
    "additionalProperties": False,
}
SENT_SCHEMA = {name: value for name, value in SCHEMA.items() if name != "$schema"}
PLAIN = Request(
    case_id="case-1", replicate=0, system="You extract.", user="A notice.", max_output_tokens=321, seed=424_242
)
CHAT = {
    "model": "model-1",
    "messages": [{"role": "system", "content": "You extract."}, {"role": "user", "content": "A notice."}],
    "seed": 424_242,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A completed call. `stop`: a neutral word (stop, length, refusal) or a vendor's own; `usage`: (input, output)."""

    text: str = "fine"
    stop: str = "stop"
    usage: tuple[int, int] | None = (11, 7)
    served_model: str = "served-model-001"
    request_id: str = "request-001"


class Dialect(Protocol):
    """One vendor's wire format. `provider` is its name in PROVIDERS; its module holds the address as `VENDOR_URL`."""

    provider: ClassVar[str]
    base_path: ClassVar[str]  # what `VENDOR_URL` has after the host
    path: ClassVar[str]  # where the server is asked for model-1
    paths: ClassVar[re.Pattern[str]]  # every path the server answers
    key_header: ClassVar[tuple[str, str]]  # the header that carries the key, and what stands before the key in it
    body: ClassVar[Json]  # what PLAIN is sent as, without sampling settings
    by_schema: ClassVar[Mapping[str, Json]]  # what a request with SCHEMA adds to it, by `structured_output`
    named: ClassVar[Json]  # what temperature 0.7 and top_p 0.9 in the entry add to it
    deterministic: ClassVar[Json]  # what the deterministic profile alone adds to it
    unavailable: ClassVar[tuple[str, ...]]  # which of temperature, top_p and seed the API does not take
    extra: ClassVar[tuple[Json, Json]]  # a setting that only this vendor knows, and what it adds to the body
    seeded: ClassVar[str | None]  # the key of a body that differs between replicates
    cache_mark: ClassVar[str | None]  # the key of a body by which a prompt is marked for the vendor's cache
    usage: ClassVar[tuple[str, str, str]]  # where an answer counts tokens, and the keys of those in and out
    in_a_sum: ClassVar[str | None]  # another key there, whose count is a part of the tokens in or out
    cached: ClassVar[tuple[str, str | None]]  # a key there for the cache, and one in its object where it has one
    beside: ClassVar[tuple[Place, ...]]  # what an answer says beside its text
    unsaid: ClassVar[tuple[str, ...]]  # which of `served_model` and `refusal` its answers never tell

    def counts(self, rest: int, written: int, **parts: int) -> Json:
        """Return how an answer counts tokens: those in beside the `parts`, those out, and the parts.

        The parts are tokens `read` from the cache, `stored` in it (of these for an `hour`), and `thought`.
        """
        ...

    def answer(self, answer: Answer) -> tuple[Json, dict[str, str]]:
        """Return the body and the headers of an answer."""
        ...

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        ...


class OpenAI:
    """`POST …/chat/completions`."""

    provider = "openai"
    base_path = "/v1"
    path = "/v1/chat/completions"
    paths = re.compile(r".*/chat/completions")
    key_header = ("authorization", "Bearer ")
    body: ClassVar[Json] = {**CHAT, "max_completion_tokens": 321}
    by_schema: ClassVar = {
        "json_schema": {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "output", "schema": SENT_SCHEMA, "strict": True},
            }
        },
        "json_object": {"response_format": {"type": "json_object"}},
        "none": {},
    }
    named: ClassVar[Json] = {"temperature": 0.7, "top_p": 0.9}
    deterministic: ClassVar[Json] = {"temperature": 0.0}
    unavailable = ()
    extra: ClassVar[tuple[Json, Json]] = ({"presence_penalty": 0.5}, {"presence_penalty": 0.5})
    seeded: ClassVar[str | None] = "seed"
    cache_mark: ClassVar[str | None] = "prompt_cache_key"
    usage = ("usage", "prompt_tokens", "completion_tokens")
    in_a_sum: ClassVar = None
    cached = ("prompt_tokens_details", "cached_tokens")
    beside = (("id",), ("model",), ("usage",), ("choices", 0, "finish_reason"), ("choices", 0, "message", "refusal"))
    unsaid = ()

    _STOP: ClassVar = {"refusal": "content_filter"}

    def counts(self, rest: int, written: int, **parts: int) -> Json:
        given = rest + sum(parts.values())
        names = {"read": "cached_tokens", "stored": "cache_write_tokens"}
        details = {"prompt_tokens_details": {names[part]: count for part, count in parts.items()}} if parts else {}
        return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written, **details}

    def answer(self, answer: Answer) -> tuple[Json, dict[str, str]]:
        refused = answer.stop == "refusal" and answer.text
        message = {
            "role": "assistant",
            "content": None if refused else answer.text,
            "refusal": answer.text if refused else None,
        }
        stop = "stop" if refused else self._STOP.get(answer.stop, answer.stop)
        body: Json = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": answer.served_model,
            "choices": [{"index": 0, "message": message, "finish_reason": stop, "logprobs": None}],
        }
        if answer.usage:
            body["usage"] = self.counts(*answer.usage)
        return body, {"x-request-id": answer.request_id}

    def error(self, status: int, message: str) -> Json:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class OpenAICompatible(OpenAI):
    """The same at somebody else's address."""

    body: ClassVar[Json] = {**CHAT, "max_tokens": 321}
    extra: ClassVar[tuple[Json, Json]] = ({"min_p": 0.1}, {"min_p": 0.1})


class Anthropic:
    """`POST …/v1/messages`."""

    provider = "anthropic"
    base_path = ""
    path = "/v1/messages"
    paths = re.compile(r".*/v1/messages")
    key_header = ("authorization", "Bearer ")
    body: ClassVar[Json] = {
        "model": "model-1",
        "system": "You extract.",
        "messages": [{"role": "user", "content": "A notice."}],
        "max_tokens": 321,
    }
    by_schema: ClassVar = {
        "json_schema": {"output_config": {"format": {"type": "json_schema", "schema": SENT_SCHEMA}}},
        "json_object": {},
        "none": {},
    }
    named: ClassVar[Json] = {}
    deterministic: ClassVar[Json] = {}
    unavailable = ("temperature", "top_p", "seed")
    extra: ClassVar[tuple[Json, Json]] = ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}})
    seeded: ClassVar = None
    cache_mark: ClassVar = "cache_control"
    usage = ("usage", "input_tokens", "output_tokens")
    in_a_sum: ClassVar = "cache_read_input_tokens"
    cached = ("cache_creation", "ephemeral_1h_input_tokens")
    beside = (("id",), ("model",), ("usage",), ("stop_reason",))
    unsaid = ()

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

    def counts(self, rest: int, written: int, **parts: int) -> Json:
        stored, hour = parts.get("stored", 0), parts.get("hour", 0)
        kept = {"ephemeral_5m_input_tokens": stored - hour, "ephemeral_1h_input_tokens": hour}
        cache = {"cache_creation_input_tokens": stored, "cache_creation": kept, "service_tier": "standard"}
        read = {"cache_read_input_tokens": parts.get("read", 0)}
        return {"input_tokens": rest, "output_tokens": written, **({**cache, **read} if parts else {})}

    def answer(self, answer: Answer) -> tuple[Json, dict[str, str]]:
        body: Json = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": answer.served_model,
            "content": [{"type": "text", "text": answer.text}] if answer.text else [],
            "stop_reason": self._STOP.get(answer.stop, answer.stop),
            "stop_sequence": None,
        }
        if answer.usage:
            body["usage"] = self.counts(*answer.usage)
        return body, {"request-id": answer.request_id}

    def error(self, status: int, message: str) -> Json:
        kind = self._ERRORS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "request-001"}


class Google:
    """`POST …/models/<name>:generateContent`, under v1, v1beta or a project's path of Vertex AI."""

    provider = "google"
    base_path = ""
    path = "/v1/models/model-1:generateContent"
    paths = re.compile(r"/v1(beta1?/projects/.*|beta)?/models/.*:generateContent")
    key_header = ("x-goog-api-key", "")
    body: ClassVar[Json] = {
        "systemInstruction": {"role": "user", "parts": [{"text": "You extract."}]},
        "contents": [{"role": "user", "parts": [{"text": "A notice."}]}],
        "generationConfig": {"maxOutputTokens": 321, "seed": 424_242},
    }
    by_schema: ClassVar = {
        "json_schema": {
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SENT_SCHEMA}
        },
        "json_object": {"generationConfig": {"responseMimeType": "application/json"}},
        "none": {},
    }
    named: ClassVar[Json] = {"generationConfig": {"temperature": 0.7, "topP": 0.9}}
    deterministic: ClassVar[Json] = {"generationConfig": {"temperature": 0.0}}
    unavailable = ()
    extra: ClassVar[tuple[Json, Json]] = ({"top_k": 20}, {"generationConfig": {"topK": 20}})
    seeded: ClassVar = "generationConfig"
    cache_mark: ClassVar = None
    usage = ("usageMetadata", "promptTokenCount", "candidatesTokenCount")
    in_a_sum: ClassVar = "thoughtsTokenCount"
    cached: ClassVar = ("cachedContentTokenCount", None)
    beside = (("responseId",), ("modelVersion",), ("usageMetadata",), ("candidates", 0, "finishReason"))
    unsaid = ()

    _STOP: ClassVar = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    _ERRORS: ClassVar = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        503: "UNAVAILABLE",
    }

    def counts(self, rest: int, written: int, **parts: int) -> Json:
        names = {"read": "cachedContentTokenCount", "thought": "thoughtsTokenCount"}
        return {
            "promptTokenCount": rest + parts.get("read", 0),
            "candidatesTokenCount": written,
            "totalTokenCount": rest + written + sum(parts.values()),
            **{names[part]: count for part, count in parts.items()},
        }

    def answer(self, answer: Answer) -> tuple[Json, dict[str, str]]:
        content = {"role": "model", **({"parts": [{"text": answer.text}]} if answer.text else {})}
        body: Json = {
            "candidates": [{"content": content, "finishReason": self._STOP.get(answer.stop, answer.stop), "index": 0}],
            "modelVersion": answer.served_model,
            "responseId": answer.request_id,
        }
        if answer.usage:
            body["usageMetadata"] = self.counts(*answer.usage)
        return body, {}

    def error(self, status: int, message: str) -> Json:
        return {"error": {"code": status, "message": message, "status": self._ERRORS.get(status, "INTERNAL")}}


DIALECTS: dict[str, Dialect] = {
    "openai": OpenAI(),
    "openai-compatible": OpenAICompatible(),
    "anthropic": Anthropic(),
    "google": Google(),
}


def address_of(url: str, vendor: str) -> str:
    """Return the address of a vendor's API on a server of the tests."""
    return f"{url}/{vendor}{DIALECTS[vendor].base_path}"


def merged(body: Json, *more: Json) -> Json:
    """Return the body with further keys, one level deep."""
    for added in more:
        body = {**body, **{key: {**body.get(key, {}), **v} if isinstance(v, dict) else v for key, v in added.items()}}
    return body
