"""The request of a call, made from component, case and replicate; every model is sent the same. Its size in tokens."""

import hashlib
import json

from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.providers.base import Request

_BYTES_PER_TOKEN = 4
_TEMPLATE_TOKENS = 16
_MOST_TEMPLATE_TOKENS = 512  # the instructions that structured output adds to a prompt


def build_request(component: Component, case: Case, *, replicate: int, seed: int, max_output_tokens: int) -> Request:
    """Build a request: the prompt as system text, the document as user text, the schema as contract."""
    return Request(
        case_id=case.id,
        replicate=replicate,
        system=component.prompt,
        user=case.document,
        max_output_tokens=max_output_tokens,
        seed=replicate_seed(seed, case.id, replicate),
        schema=component.schema,
        schema_name=component.name.replace(".", "-"),
    )


def replicate_seed(seed: int, case_id: str, replicate: int) -> int:
    """Return a seed of 31 bits that differs between replicates, and is the same in every run with the same `--seed`."""
    raw = hashlib.sha256(f"{seed}/{case_id}/{replicate}".encode()).digest()
    return int.from_bytes(raw[:4], "big") & 0x7FFF_FFFF


def estimate_input_tokens(request: Request) -> int:
    """Estimate the input tokens, at four bytes of text a token."""
    return _input_bytes(request) // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS


def most_input_tokens(request: Request) -> int:
    """Return an upper bound of the input tokens: a token stands for a byte or more, and vendors add some."""
    return _input_bytes(request) + _MOST_TEMPLATE_TOKENS


def least_input_tokens(request: Request) -> int:
    """Return a lower bound of the input tokens: no tokenizer puts two words into one token."""
    return len(request.system.split()) + len(request.user.split())


def _input_bytes(request: Request) -> int:
    schema = len(json.dumps(request.schema)) if request.schema else 0
    return len(request.system.encode()) + len(request.user.encode()) + schema
