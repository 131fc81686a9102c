"""An independent server to test the adapters against: `@copilotkit/aimock` from npm, in its own process.

Its fixtures are matched by a text in the user's message. Each vendor has its own messages, so that the counts behind
a sequence are nobody else's; the faults are per fixture, so that no test changes the server for another.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.npm import npm_file

_VERSION = "1.43.0"
_LISTENING = "listening on "
USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 5,
    "input_tokens": 12,
    "output_tokens": 5,
    "promptTokenCount": 12,
    "candidatesTokenCount": 5,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "plain": {"response": {"content": "a plain answer", "usage": USAGE}},
    "structured": {"response": {"content": '{"award": "12-345"}'}},
    "cut": {"response": {"content": '{"award": "12', "finishReason": "length"}},
    "limited": {"response": {"error": {"message": "slow down"}, "status": 429, "retryAfter": 7}},
    "refused key": {"response": {"error": {"message": "who are you"}, "status": 401}},
    "malformed": {"response": {"content": "never seen"}, "chaos": {"malformedRate": 1}},
    "disconnected": {"response": {"content": "never seen"}, "chaos": {"disconnectRate": 1}},
    "late": {"response": {"content": "never seen"}, "chaos": {"latencyMs": 5000}},
}


def fixtures(vendors: tuple[str, ...]) -> dict[str, Any]:
    """The server's fixture file: every answer above for every vendor, and an error followed by an answer."""
    listed: list[dict[str, Any]] = []
    for vendor in vendors:
        listed += [{"match": {"userMessage": f"[{vendor}: {name}]"}, **what} for name, what in ANSWERS.items()]
        twice = f"[{vendor}: sequence]"
        error = {"error": {"message": "busy"}, "status": 503}
        listed.append({"match": {"userMessage": twice, "sequenceIndex": 0}, "response": error})
        listed.append({"match": {"userMessage": twice}, "response": {"content": "the second answer"}})
    return {"fixtures": listed}


@contextmanager
def aimock(folder: Path, vendors: tuple[str, ...]) -> Iterator[str]:
    """Start the server on a free port; gives its address. Skips when there is no node, but not in CI."""
    program = npm_file("@copilotkit/aimock", _VERSION, "dist/cli.js")
    script = folder / "fixtures.json"
    script.write_text(json.dumps(fixtures(vendors)))
    command = ["node", str(program), "-p", "0", "-h", "127.0.0.1", "-f", str(script), "--strict", "--validate-on-load"]
    log = folder / "log.txt"
    with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as server:
        try:
            yield _address(server, log)
        finally:
            server.terminate()


def _address(server: subprocess.Popen[str], log: Path) -> str:
    assert server.stdout
    for line in server.stdout:
        if _LISTENING in line:
            return line.partition(_LISTENING)[2].strip()
    raise RuntimeError(f"aimock did not start: {log.read_text()}")
