"""Advice for failures: every reason of a failure has a remedy."""

import re
from typing import Any

import pytest
from skill_evaluator.providers.remote import error_from_status
from skill_evaluator.records.record import REMEDIES, remedy, unusable_text

from tests.support.records import a_record

CONTRACT = {
    "n": 0,
    "valid": None,
    "valid_apart_from_extra_keys": None,
    "errors": [],
    "missing_keys": {},
    "extra_keys": {},
}


def test_every_http_status_has_a_remedy() -> None:
    for reason in REMEDIES:
        words = remedy(reason, "some-model") or ""
        assert not re.search(r"\{(model|run|case)\}|\{\{", words), reason
        assert "models.yaml" not in (remedy(reason, "program") or ""), reason
    for status in (400, 401, 402, 403, 404, 408, 409, 410, 413, 429, 500, 502, 503, 504, 529):
        assert remedy(error_from_status(status, {}, "no").reason, "m"), status


def test_exceeded_context_is_recognized_in_vendor_messages() -> None:
    for message in (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9647 tokens.",
        "prompt is too long: 208310 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "request (9647 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "9,647 tokens exceed the context of 8,192",
    ):
        error = error_from_status(400, {}, message)
        assert (error.reason, error.rejected, error.retryable) == ("context_exceeded", False, False), message
        assert error_from_status(429, {}, message).reason == "rate_limited", message


@pytest.mark.parametrize(
    ("contract", "faults", "words"),
    [
        (
            CONTRACT,
            [("output_limit", 60)],
            "0 of 60 outputs are JSON: 60 × output_limit; raise max_output_tokens of 'm'",
        ),
        (None, [("empty", 40), ("refusal", 20)], "0 of 60 outputs could be read: 40 × empty, 20 × refusal; `explain` "),
        (None, [("new_reason", 60)], "0 of 60 outputs could be read: 60 × new_reason"),
        (None, [], "0 of 60 outputs could be read"),
    ],
)
def test_unusable_text_names_reasons_and_remedy(contract: Any, faults: list[tuple[str, int]], words: str) -> None:
    failed = [
        {"kind": "unparseable", "reason": reason, "count": count, "n_cases": 1, "cases": ["a"]}
        for reason, count in faults
    ]
    run = a_record({}, planned=60, scored=0, complete=False, usable=0.0, contract=contract, faults=failed)
    assert str(unusable_text(run)).startswith(words)
    assert unusable_text(run.model_copy(update={"usable": None})) is None
