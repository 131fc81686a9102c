"""The process of a python check: read a task as JSON from stdin, and write the function's score as JSON to stdout.

It runs as a script and imports nothing of this package. Output that the function prints is discarded.
"""

import json
import os
import sys
import types
from typing import Any

_MAX_REASON = 500  # characters of a reason


def _score(task: dict[str, Any]) -> dict[str, Any]:
    module = types.ModuleType("checks")
    sys.modules["checks"] = module  # dataclasses look up their module here
    exec(compile(task["source"], "checks.py", "exec"), vars(module))  # noqa: S102 - that is what it is for
    result = getattr(module, task["function"])(task["text"], {**task["context"], "vars": task["context"]["inputs"]})
    members = result if isinstance(result, dict) else {"score": result}
    score = members.get("score", members.get("pass"))
    score = 0.0 if members.get("pass") is False else score
    if not isinstance(score, bool | int | float) or not 0 <= score <= 1:
        raise TypeError(
            f"the function returned {repr(result)[:100]}; expected a bool, 0 to 1, or a dict with score or pass"
        )
    return {"score": float(score), "reason": str(members.get("reason") or "")[:_MAX_REASON]}


def _main() -> None:
    replies, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        reply = _score(json.load(sys.stdin))
    except BaseException as problem:
        reply = {"score": 0.0, "reason": f"{type(problem).__name__}: {problem}"[:_MAX_REASON]}
    os.write(replies, json.dumps(reply).encode())
    os._exit(0)  # threads of the function may still run


if __name__ == "__main__":
    _main()
