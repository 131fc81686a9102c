"""How each vendor's API is spoken: what a request to it must look like, and how it words an answer and an error.

A new provider is tested once it has a class here and a line in `DIALECTS`: the contract suite and its server read both.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skill_evaluator.library.prompts import dialogue
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
_NULLABLE_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_BY_ANTHROPIC = {**SENT_SCHEMA, "properties": {"award": _NULLABLE_TEXT}}  # its SDK reads no list of types
PLAIN = Request(
    case_id="case-1", replicate=0, messages=dialogue("You extract.", "A notice."), max_output_tokens=321, seed=424_242
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
    tool_call: Json | None = None  # the arguments of a call of the function `output`
    served_model: str = "served-model-001"
    request_id: str = "request-001"


class Dialect:
    """One vendor's wire format. `provider` is its name in PROVIDERS; its module holds the address as `VENDOR_URL`."""

    provider: str
    path: str  # where the server is asked for model-1
    paths: re.Pattern[str]  # every path the server answers
    body: Json  # what PLAIN is sent as, without sampling settings
    by_schema: Mapping[str, Json]  # what a request with SCHEMA adds to it, by `structured_output`
    by_tool_call: Mapping[str, Json]  # the same for a request whose output is the arguments of a function
    extra: tuple[Json, Json]  # a setting that only this vendor knows, and what it adds to the body
    usage: tuple[str, str, str]  # where an answer counts tokens, and the keys of those in and out
    beside: tuple[Place, ...]  # what an answer says beside its text
    base_path = ""  # what `VENDOR_URL` has after the host
    key_header = ("authorization", "Bearer ")  # the header that carries the key, and what stands before the key in it
    named: Json = {"temperature": 0.7, "top_p": 0.9}  # what these two in the entry add to the body
    deterministic: Json = {"temperature": 0.0}  # what the deterministic profile alone adds to it
    unavailable: tuple[str, ...] = ()  # which of temperature, top_p and seed the API does not take
    seeded: str | None = None  # the key of a body that differs between replicates
    cache_mark: str | None = None  # the key of a body by which a prompt is marked for the vendor's cache
    unsaid: tuple[str, ...] = ()  # which of `served_model` and `refusal` its outputs never tell

    def counts(self, rest: int, written: int, **parts: int) -> Json:
        """Return how an answer counts tokens: those in beside the `parts`, those out, and the parts.

        The parts are tokens `read` from the cache, `stored` in it (of these for an `hour`), and `thought`.
        """
        raise NotImplementedError

    def answer(self, answer: Answer) -> tuple[Json, dict[str, str]]:
        raise NotImplementedError

    def error(self, status: int, message: str) -> Json:
        raise NotImplementedError


class OpenAI(Dialect):
    provider = "openai"
    base_path = "/v1"
    path = "/v1/chat/completions"
    paths = re.compile(r".*/chat/completions")
    body = {**CHAT, "max_completion_tokens": 321}
    _FORMAT = {"type": "json_schema", "json_schema": {"name": "output", "schema": SENT_SCHEMA, "strict": True}}
    by_schema = {
        "json_schema": {"response_format": _FORMAT},
        "json_schema_strict": {"response_format": _FORMAT},
        "json_object": {"response_format": {"type": "json_object"}},
        "none": {},
    }
    by_tool_call = {
        mode: {
            "tools": [{"type": "function", "function": {"name": "output", "parameters": SENT_SCHEMA, **strict}}],
            "tool_choice": {"type": "function", "function": {"name": "output"}},
        }
        for mode, strict in (("json_schema", {}), ("json_schema_strict", {"strict": True}), ("none", {}))
    }
    extra = ({"presence_penalty": 0.5}, {"presence_penalty": 0.5})
    seeded = "seed"
    cache_mark = "prompt_cache_key"
    usage = ("usage", "prompt_tokens", "completion_tokens")
    beside = (("id",), ("model",), ("usage",), ("choices", 0, "finish_reason"), ("choices", 0, "message", "refusal"))

    _STOP = {"refusal": "content_filter"}

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
        if answer.tool_call is not None:
            function = {"name": "output", "arguments": json.dumps(answer.tool_call)}
            calls = [{"id": "call_1", "type": "function", "function": function}]
            message, stop = {**message, "content": answer.text or None, "tool_calls": calls}, "tool_calls"
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
    body = {**CHAT, "max_tokens": 321}
    extra = ({"min_p": 0.1}, {"min_p": 0.1})


class Anthropic(Dialect):
    provider = "anthropic"
    path = "/v1/messages"
    paths = re.compile(r".*/v1/messages")
    body = {
        "model": "model-1",
        "system": "You extract.",
        "messages": [{"role": "user", "content": "A notice."}],
        "max_tokens": 321,
    }
    by_schema = {
        "json_schema": {"output_config": {"format": {"type": "json_schema", "schema": SENT_SCHEMA}}},
        "json_schema_strict": {"output_config": {"format": {"type": "json_schema", "schema": _BY_ANTHROPIC}}},
        "json_object": {},
        "none": {},
    }
    by_tool_call = {
        mode: {
            "tools": [{"name": "output", "input_schema": schema, **strict}],
            "tool_choice": {"type": "tool", "name": "output", "disable_parallel_tool_use": True},
        }
        for mode, schema, strict in (
            ("json_schema", SENT_SCHEMA, {}),
            ("json_schema_strict", _BY_ANTHROPIC, {"strict": True}),
            ("none", SENT_SCHEMA, {}),
        )
    }
    named = {}
    deterministic = {}
    unavailable = ("temperature", "top_p", "seed")
    extra = ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}})
    cache_mark = "cache_control"
    usage = ("usage", "input_tokens", "output_tokens")
    beside = (("id",), ("model",), ("usage",), ("stop_reason",))

    _STOP = {"stop": "end_turn", "length": "max_tokens"}
    _ERRORS = {
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
        if answer.tool_call is not None:
            body["content"].append({"type": "tool_use", "id": "toolu_1", "name": "output", "input": answer.tool_call})
            body["stop_reason"] = "tool_use"
        if answer.usage:
            body["usage"] = self.counts(*answer.usage)
        return body, {"request-id": answer.request_id}

    def error(self, status: int, message: str) -> Json:
        kind = self._ERRORS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "request-001"}


class Google(Dialect):
    """`POST …/models/<name>:generateContent`, under v1, v1beta or a project's path of Vertex AI."""

    provider = "google"
    path = "/v1/models/model-1:generateContent"
    paths = re.compile(r"/v1(beta1?/projects/.*|beta)?/models/.*:generateContent")
    key_header = ("x-goog-api-key", "")
    body = {
        "systemInstruction": {"role": "user", "parts": [{"text": "You extract."}]},
        "contents": [{"role": "user", "parts": [{"text": "A notice."}]}],
        "generationConfig": {"maxOutputTokens": 321, "seed": 424_242},
    }
    _JSON = {"responseMimeType": "application/json"}
    _SCHEMA = {"generationConfig": {**_JSON, "responseJsonSchema": SENT_SCHEMA}}
    by_schema = {
        "json_schema": _SCHEMA,
        "json_schema_strict": _SCHEMA,
        "json_object": {"generationConfig": _JSON},
        "none": {},
    }
    by_tool_call = {
        mode: {
            "tools": [{"functionDeclarations": [{"name": "output", "parametersJsonSchema": SENT_SCHEMA}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["output"]}},
        }
        for mode in ("json_schema", "json_schema_strict", "none")
    }
    named = {"generationConfig": {"temperature": 0.7, "topP": 0.9}}
    deterministic = {"generationConfig": {"temperature": 0.0}}
    extra = ({"top_k": 20}, {"generationConfig": {"topK": 20}})
    seeded = "generationConfig"
    usage = ("usageMetadata", "promptTokenCount", "candidatesTokenCount")
    beside = (("responseId",), ("modelVersion",), ("usageMetadata",), ("candidates", 0, "finishReason"))

    _STOP = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    _ERRORS = {
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
        parts: list[Json] = [{"text": answer.text}] if answer.text else []
        if answer.tool_call is not None:
            parts.append({"functionCall": {"name": "output", "args": answer.tool_call}})
        content = {"role": "model", **({"parts": parts} if parts else {})}
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
