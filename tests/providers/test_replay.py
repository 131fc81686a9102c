"""A recording of any content: each of its lines is an answer, a failure, or one line of error."""

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import ConfigError
from skill_evaluator.providers.base import Completion, ProviderError
from skill_evaluator.providers.replay import ReplayProvider

from tests.support.vendor_dialects import PLAIN
from tests.support.vendors import any_json

FIELDS = ("case_id", "replicate", "text", "stop_reason", "usage", "served_model", "request_id", "error", "latency_s")


def replayed(path: Path) -> Completion | str:
    """Return what a recording answers, or the reason for which it does not."""
    try:
        provider = ReplayProvider(path)
    except ConfigError as problem:
        return str(problem)
    try:
        return asyncio.run(provider.complete(PLAIN))
    except ProviderError as problem:
        return problem.reason


@given(st.dictionaries(st.sampled_from(FIELDS), any_json) | any_json, st.booleans())
def test_any_recorded_line_is_an_output_a_failure_or_an_error(
    tmp_path_factory: Any, value: Any, complete: bool
) -> None:
    path = tmp_path_factory.mktemp("recording") / "answers.jsonl"
    good = {"case_id": PLAIN.case_id, "replicate": PLAIN.replicate, "text": "fine"}
    line = {**good, **value} if complete and isinstance(value, dict) else value
    path.write_text(json.dumps(line) + "\n")
    match replayed(path):
        case Completion() as completion:
            assert isinstance(completion.text, str)
        case reason_or_error:
            assert isinstance(reason_or_error, str)
            assert reason_or_error
            assert "\n" not in reason_or_error


@given(st.binary(max_size=300))
def test_any_recorded_bytes_are_an_output_a_failure_or_an_error(tmp_path_factory: Any, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("recording") / "answers.jsonl"
    path.write_bytes(raw)
    assert replayed(path)
