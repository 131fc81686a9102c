"""The checks whose names promptfoo has, too, pass what promptfoo passes; where they do not is listed here."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.checks.test_checks import passed

Sample = tuple[str, dict[str, Any], dict[str, Any]]
"""An answer, a check of ours, and promptfoo's assertion."""
WORDS = (
    "total", "Total", "TOTAL", "straße", "STRASSE", "İzmir", "9 EUR", "9", "a.b",
    "", " ", "\n", "yes", "no", "{", "é",
)  # fmt: skip
PATTERNS = (r"\d+", "^yes$", "t.tal", "[A-Z]+", "(yes|no)", r"\bno\b", "^$", "a\\.b", r"\s$", "total$", "[^a-z]", "x*")
VALUES: Sequence[Any] = ({"a": 1}, {"a": 1, "b": [True, None]}, [1, 2], [], {"a": {"b": "é"}}, {"a": "1"})
JSON = (
    '{"a": 1}', '{"a": 1.0}', '{"b": [true, null], "a": 1}', '[1, 2]', ' [1,2]\n', '[2, 1]', '{}', '[]', '{"a": 1,}',
)  # fmt: skip
DIFFER: Sequence[tuple[Sample, bool]] = (  # and what ours says
    (("9.0", {"equals": 9}, {"type": "equals", "value": 9}), True),
    ((" 9", {"equals": 9}, {"type": "equals", "value": 9}), True),
    (('{"a": 1, "b": null}', {"equals": {"a": 1}}, {"type": "equals", "value": {"a": 1}}), True),
    (("total", {"regex": "(?i)TOTAL"}, {"type": "regex", "value": "(?i)TOTAL"}), True),
    (("a\u00a0b", {"regex": r"a\sb"}, {"type": "regex", "value": r"a\sb"}), False),
    (("sum, total", {"contains_any": ["count, sum"]}, {"type": "contains-any", "value": "count, sum"}), False),
)


def samples(count: int) -> Iterator[Sample]:
    """Yield answers with a check each; every kind, its twin, and both cases."""
    draw = random.Random(20_261)
    while count:
        kind = draw.choice(("contains", "contains_any", "contains_all", "equals", "starts_with", "regex", "is_json"))
        answer = "".join(draw.choices(WORDS, k=draw.randint(1, 4)))
        value: Any = True
        if kind == "regex":
            value = draw.choice(PATTERNS)
        elif kind == "is_json" or (kind == "equals" and draw.random() < 0.5):
            answer = draw.choice((*JSON, answer))
            value = draw.choice(VALUES) if kind == "equals" else True
        elif kind.startswith("contains_"):
            value = draw.sample([word for word in WORDS if word.strip()], 2)
        else:
            value = draw.choice([word for word in WORDS if word.strip()])
        ignore_case = kind.startswith("contains") and draw.random() < 0.4
        twin = draw.random() < 0.4
        if not answer.strip():  # promptfoo refuses an empty prompt
            continue
        theirs: dict[str, Any] = {"type": "not-" * twin + "i" * ignore_case + kind.replace("_", "-"), "value": value}
        if kind == "is_json":
            del theirs["value"]
        yield answer, {"not_" * twin + kind: value, "ignore_case": ignore_case}, theirs
        count -= 1


def promptfoo(folder: Path, compared: Sequence[Sample]) -> list[bool]:
    """Return whether promptfoo passes each sample: a provider that repeats the prompt answers it."""
    tests = [{"vars": {"at": at}, "assert": [theirs]} for at, (_, _, theirs) in enumerate(compared)]
    provider = folder / "answers.js"
    answers = json.dumps([answer for answer, _, _ in compared])
    provider.write_text(
        f"module.exports = class {{ id() {{ return 'answers'; }}\n"
        f"async callApi(prompt) {{ return {{output: {answers}[Number(prompt)]}}; }} }};\n"
    )
    config = {"prompts": ["{{at}}"], "providers": [f"file://{provider}"], "tests": tests}
    (folder / "promptfooconfig.json").write_text(json.dumps(config))
    out = folder / "out.json"
    done = subprocess.run(
        ["promptfoo", "eval", "-c", "promptfooconfig.json", "--no-cache", "-o", str(out)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": str(Path(shutil.which("promptfoo") or "").parent) + ":/usr/bin:/bin",
            "HOME": str(folder),
            "PROMPTFOO_CONFIG_DIR": str(folder),
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        },
    )
    assert out.exists(), done.stdout + done.stderr
    results = json.loads(out.read_text())["results"]["results"]
    return [one["success"] for one in sorted(results, key=lambda one: one["testIdx"])]


@pytest.mark.newest
def test_promptfoo_agrees_except_for_listed_differences(tmp_path: Path) -> None:
    if not shutil.which("promptfoo"):
        pytest.skip("promptfoo is not installed")
    compared = [*samples(200), *(sample for sample, _ in DIFFER)]
    theirs = promptfoo(tmp_path, compared)
    ours = [passed(check, answer) for answer, check, _ in compared]
    apart = [sample for sample, one, other in zip(compared, ours, theirs, strict=True) if one != other]
    assert apart == [sample for sample, _ in DIFFER]


def test_listed_differences_have_our_result() -> None:
    assert [passed(check, answer) for (answer, check, _), _ in DIFFER] == [one for _, one in DIFFER]
