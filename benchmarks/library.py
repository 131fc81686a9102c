"""Writes the small prompt library of the engine benchmark: 12 cases of a component with a 1 KB answer."""

import json
from pathlib import Path

from benchmarks.chat_server import answer

_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "date", "lines"],
    "properties": {
        "title": {"type": "string"},
        "date": {"type": "string", "format": "date"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["code", "text", "amount"],
                "properties": {"code": {"type": "string"}, "text": {"type": "string"}, "amount": {"type": "number"}},
            },
        },
    },
}


def write_library(root: Path, base_url: str, cases: int = 12) -> None:
    """Components, fixtures and models.yaml under `root`."""
    component = root / "components" / "bench"
    component.mkdir(parents=True)
    prompt = "You read notices of award and list their budget lines. " * 20
    (component / "prompt.md").write_text(f"---\nname: bench\nversion: 1.0.0\n---\n{prompt}\n")
    (component / "schema.json").write_text(json.dumps(_SCHEMA))
    (component / "evals").mkdir()
    fields = {"lines": {"align": "key", "key": ["code"]}}
    (component / "evals" / "datasets.json").write_text(json.dumps({"datasets": [{"id": "bench", "fields": fields}]}))
    for index in range(cases):
        case = root / "fixtures" / "bench" / "cases" / f"case-{index:02d}"
        case.mkdir(parents=True)
        document = f"Notice {index}. " + "The sponsor awards the amount named below. " * (30 + index)
        (case / "document.md").write_text(document)
        (case / "ground_truth.json").write_text(answer(document, 1))
    config = root / ".evaluator"
    config.mkdir()
    model = {
        "id": "m",
        "provider": "openai",
        "base_url": base_url,
        "price": {"input": 1, "output": 1},
        "params": {"max_output_tokens": 1024},
    }
    (config / "models.yaml").write_text(json.dumps({"models": [model]}))
