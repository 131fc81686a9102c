"""The process of a python check: a task as JSON on stdin, what the function says of an answer as JSON on stdout.

It is run as a file by itself and imports nothing of this package. What the function prints goes nowhere.
"""

import json
import os
import sys
import types
from typing import Any

_LONGEST = 500  # characters of a reason


def _called(task: dict[str, Any]) -> dict[str, Any]:
    """Return the score that the function gives an answer, and its reason; raise whatever it raises."""
    module = types.ModuleType("checks")
    sys.modules["checks"] = module  # where dataclasses look
    exec(compile(task["source"], "checks.py", "exec"), vars(module))  # noqa: S102 - that is what it is for
    result = getattr(module, task["function"])(task["text"], {**task["context"], "vars": task["context"]["inputs"]})
    members = result if isinstance(result, dict) else {"score": result}
    score = members.get("score", members.get("pass"))
    score = 0.0 if members.get("pass") is False else score
    if not isinstance(score, bool | int | float) or not 0 <= score <= 1:
        raise TypeError(
            f"it returned {repr(result)[:100]}; a bool or a number from 0 to 1 is expected, or a dict with it"
        )
    return {"score": float(score), "reason": str(members.get("reason") or "")[:_LONGEST]}


def _main() -> None:
    replies, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        reply = _called(json.load(sys.stdin))
    except BaseException as problem:
        reply = {"score": 0.0, "reason": f"{type(problem).__name__}: {problem}"[:_LONGEST]}
    os.write(replies, json.dumps(reply).encode())
    os._exit(0)  # whatever threads it left


if __name__ == "__main__":
    _main()
