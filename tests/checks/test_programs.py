"""Functions of python checks: their scores, and their limits in a separate process."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.checks import CHILD, FunctionScore, call_function

from tests.checks.test_checks import checks

pytestmark = pytest.mark.process
ANSWER = '{"lines": [4, 5], "total": 9}'
CONTEXT: dict[str, Any] = {"answer": {"lines": [4, 5], "total": 9}, "inputs": {"document": "d"}, "truth": {"total": 9}}


def function_score(tmp_path: Path, body: str, head: str = "") -> FunctionScore:
    (tmp_path / "checks.py").write_text(f"{head}\ndef judged(text, context):\n    {body}\n")
    (check,) = checks({"python": "checks.py:judged"}, folder=tmp_path)
    return call_function(check, ANSWER, CONTEXT)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return sum(context['answer']['lines']) == context['answer']['total']", (1.0, "")),
        ("return context['truth']['total'] / 12", (0.75, "")),
        ("return {'score': 0.5, 'reason': 'half of ' + text[2:7]}", (0.5, "half of lines")),
        ("return {'pass': False, 'score': 0.9, 'reason': 'no'}", (0.0, "no")),
        ("return context['vars']['document'] == 'd'", (1.0, "")),
        ("return os.environ.keys() <= {'PATH', 'HOME', 'TMPDIR', 'LC_CTYPE'}", (1.0, "")),
        ("print('x' * 5_000_000); sys.stderr.write('y' * 5_000_000); return True", (1.0, "")),
        ("return context['answer']['vat']", (0.0, "KeyError: 'vat'")),
    ],
)
def test_function_returns_score_and_reason(
    tmp_path: Path, body: str, expected: tuple[float, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = function_score(tmp_path, body, "import os, sys")
    assert (found.score, found.reason) == expected


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("while True: pass", "not done after 1 s"),
        ("bytearray(2_000_000_000); return True", "MemoryError"),
        ("[os.fork() for _ in range(4)]; time.sleep(60)", "not done after 1 s"),
        (
            "[os.write(fd, b'{}' * 9_000) for fd in range(3, 30) if open_(fd)]; return True",
            "more than 10,000 bytes of output",
        ),
        ("return Bomb()", "the function returned"),
        ("return float('nan')", "the function returned nan"),
        ("return None", "the function returned None"),
    ],
)
def test_function_that_fails_or_exceeds_a_limit_scores_0(
    tmp_path: Path, body: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skill_evaluator.checks.CHILD", partial(CHILD, seconds=1))
    pwned = tmp_path / "pwned"
    head = f"""
import os, time
class Bomb(dict):
    def __reduce__(self):
        return os.system, ("touch {pwned}",)
def open_(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
"""
    found = function_score(tmp_path, body, head)
    assert found.score == 0.0
    assert reason in found.reason
    assert not pwned.exists()


def test_function_cannot_import_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("RIGHT = True\n")
    assert function_score(tmp_path, "import rules; return rules.RIGHT").reason.startswith("ModuleNotFoundError")
