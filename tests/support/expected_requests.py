"""What each vendor must be sent: one visible table of paths, headers and bodies."""

from typing import Any

from tests.support.vendors import KEY, SCHEMA

SENT_SCHEMA = {name: value for name, value in SCHEMA.items() if name != "$schema"}
CHAT = {
    "model": "model-1",
    "messages": [{"role": "system", "content": "You extract."}, {"role": "user", "content": "A notice."}],
    "seed": 424_242,
}
CHAT_FORMATS = {
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "output", "schema": SENT_SCHEMA, "strict": True},
        }
    },
    "json_object": {"response_format": {"type": "json_object"}},
    "none": {},
}

# Where each vendor is asked, which header carries the key, and the body of a plain request without sampling settings.
REQUESTS: dict[str, tuple[str, tuple[str, str], dict[str, Any]]] = {
    "openai": (
        "/v1/chat/completions",
        ("authorization", f"Bearer {KEY}"),
        {**CHAT, "max_completion_tokens": 321},
    ),
    "openai-compatible": (
        "/v1/chat/completions",
        ("authorization", f"Bearer {KEY}"),
        {**CHAT, "max_tokens": 321},
    ),
    "anthropic": (
        "/v1/messages",
        ("authorization", f"Bearer {KEY}"),
        {
            "model": "model-1",
            "system": "You extract.",
            "messages": [{"role": "user", "content": "A notice."}],
            "max_tokens": 321,
        },
    ),
    "google": (
        "/v1/models/model-1:generateContent",
        ("x-goog-api-key", KEY),
        {
            "systemInstruction": {"role": "user", "parts": [{"text": "You extract."}]},
            "contents": [{"role": "user", "parts": [{"text": "A notice."}]}],
            "generationConfig": {"maxOutputTokens": 321, "seed": 424_242},
        },
    ),
}

# What is added to it when the request has a schema, for each value of `structured_output`.
STRUCTURED: dict[str, dict[str, dict[str, Any]]] = {
    "openai": CHAT_FORMATS,
    "openai-compatible": CHAT_FORMATS,
    "anthropic": {
        "json_schema": {"output_config": {"format": {"type": "json_schema", "schema": SENT_SCHEMA}}},
        "json_object": {},
        "none": {},
    },
    "google": {
        "json_schema": {
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SENT_SCHEMA}
        },
        "json_object": {"generationConfig": {"responseMimeType": "application/json"}},
        "none": {},
    },
}

# What is added to it by temperature 0.7 and top_p 0.9 in the entry, and by the deterministic profile alone.
NAMED: dict[str, dict[str, Any]] = {
    "openai": {"temperature": 0.7, "top_p": 0.9},
    "openai-compatible": {"temperature": 0.7, "top_p": 0.9},
    "anthropic": {},
    "google": {"generationConfig": {"temperature": 0.7, "topP": 0.9}},
}
DETERMINISTIC: dict[str, dict[str, Any]] = {
    "openai": {"temperature": 0.0},
    "openai-compatible": {"temperature": 0.0},
    "anthropic": {},
    "google": {"generationConfig": {"temperature": 0.0}},
}
UNAVAILABLE = {"openai": (), "openai-compatible": (), "anthropic": ("temperature", "top_p", "seed"), "google": ()}

# A setting only that vendor knows, as an entry of models.yaml gives it, and where it goes.
EXTRA: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "openai": ({"presence_penalty": 0.5}, {"presence_penalty": 0.5}),
    "openai-compatible": ({"min_p": 0.1}, {"min_p": 0.1}),
    "anthropic": ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
    "google": ({"top_k": 20}, {"generationConfig": {"topK": 20}}),
}


def merged(body: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """The body with further keys, one level deep."""
    for added in more:
        body = {**body, **{key: {**body.get(key, {}), **v} if isinstance(v, dict) else v for key, v in added.items()}}
    return body
