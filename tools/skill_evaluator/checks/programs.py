"""Run python checks, each in a new process that gets and returns JSON."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skill_evaluator.checks.declared import Check
from skill_evaluator.errors import RunError
from skill_evaluator.files import StrictModel
from skill_evaluator.identifiers import Share
from skill_evaluator.processes import ProcessLimits, Program, run_process

LIMITS = ProcessLimits(seconds=10.0, output_bytes=10_000, memory_bytes=1_000_000_000)
_CHILD = str(Path(__file__).with_name("function.py"))


class FunctionScore(StrictModel):
    """The score that a function returned for an output, and its reason."""

    score: Share
    reason: str = ""


def call_function(check: Check, text: str, context: dict[str, Any]) -> FunctionScore:
    """Return the score of an output by a check's function. It is 0 if the function fails or reaches a limit.

    `context` has `answer` (the parsed output), `inputs` and `truth`. Raise RunError if the process cannot be started.
    """
    name = check.argument.rpartition(":")[2]
    task = {"source": check.source, "function": name, "text": text, "context": context}
    program = Program(argv=[sys.executable, "-I", _CHILD], folder=Path(tempfile.gettempdir()), limits=LIMITS)
    process = run_process(program, json.dumps(task).encode())
    if process.reason == "absent":
        raise RunError(f"the check {check.id} cannot be run: {process.problem}")
    try:
        return FunctionScore.model_validate_json(process.stdout)
    except ValidationError:
        return FunctionScore(score=0.0, reason=process.problem or "the process wrote no valid score")
