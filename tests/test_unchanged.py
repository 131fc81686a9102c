"""The committed formats of a fixed set of runs do not change: records, leaderboards, plan.json and a journal.

Only the last digits of a long number may differ, because they depend on the processor. The runs are made by the command
line alone. After an intended change, write the expected files again with `python -m tests.test_unchanged`, and read
the differences first. Large files are compressed (`zcat` shows them).
"""

import difflib
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support.library import call, invoked

EXPECTED = Path(__file__).parent / "data" / "unchanged"
_LINES_SHOWN = 40
_LARGE = 8_000  # characters, from which an expected file is compressed
_COMPRESSED = ".gz"


# What differs between any two runs, by its key: the clock, how long calls took, the evaluator's version, the digest in
# a row of its record, which holds these, and the ids that `plan` draws. What stands in for them is
# valid, so that the next command reads it.
_VOLATILE = (
    (re.compile(r'("(?:timestamp|created)": )"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"'), r'\1"2024-06-01T00:00:00Z"'),
    (re.compile(r'("(?:latency_s|latency_p[59][05]_s|p\d+)": ?)\d+(?:\.\d+)?(?:e-\d+)?'), r"\g<1>0.25"),
    (re.compile(r'("latency_s": \{\s+"mean": )[\d.e-]+'), r"\g<1>0.25"),
    (re.compile(r'("least": \d+,\s+"mean": )[\d.]+'), r"\g<1>1.5"),  # calls in flight
    (re.compile(r'("evaluator_version": )"[^"]*"'), r'\1"0.0.0"'),
    (re.compile(r'("invocation": )"\d{8}T\d{6}Z-[0-9a-f]{6}"'), r'\1"20240601T000000Z-0000ff"'),
    (re.compile(r'("(?:evaluator|scorer)_version": ?[^,]+,\s*"digest": ?)"sha256:[0-9a-f]{64}"'), r"\1null"),  # a row's
    (re.compile(r'("digest": ?)"sha256:[0-9a-f]{64}"(,\s*"per_case")'), r"\1null\2"),  # the same, where calls failed
)
_LONG_NUMBER = re.compile(r"(-?\d+\.\d{8,}(?:e-?\d+)?)")
_DATE = "2024-06-01T00:00:00+00:00"
_ENVIRONMENT = {
    **{f"GIT_{role}_NAME": "A" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "a@example.com" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": _DATE for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}

MODELS = ("ash", "vendor/birch")
REPLICATES = 4
SETTINGS: Mapping[str, Any] = {
    "replicates": REPLICATES,
    "seed": 7,
    "concurrency": 2,
    "required_coverage": 0.7,
    "retry": {"attempts": 2, "first_wait_s": 0.001, "max_wait_s": 0.002},
    "jobs": {"max_calls": 30},
    "policy": {
        "tolerance": 0.04,
        "fail_on": ["regressed", "inconclusive"],
        "metrics": {"jaccard": {"tier": "advisory"}},
        "components": {"orders": {"fields": {"total": {"tier": "critical", "tolerance": 0.1}}}},
    },
}

_TEXT_OR_NULL = {"type": ["string", "null"]}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "placed": {"type": ["string", "null"], "format": "date"},
        "total": {"type": ["number", "null"]},
        "status": {"enum": ["paid", "open", "void"]},
        "note": _TEXT_OR_NULL,
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}, "text": _TEXT_OR_NULL},
                "required": ["sku", "count"],
            },
        },
        "parcels": {
            "type": "array",
            "items": {"type": "object", "properties": {"kilos": {"type": "number"}, "to": {"type": "string"}}},
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["number", "total", "status", "lines"],
    "additionalProperties": False,
}
DATASETS = {
    "orders": {
        "metrics": ["schema_valid", "exact_match", "field_level_f1", "jaccard", "tree_similarity"],
        "primary_metric": "field_level_f1",
        "fields": {
            "number": {"weight": 2, "compare": "string", "casefold": True},
            "placed": {"compare": "date", "formats": ["%Y-%m-%d", "%d.%m.%Y"]},
            "total": {"compare": "number", "tolerance": 0.005, "from_string": True},
            "note": {"compare": "text"},
            "lines": {"align": "key", "key": ["sku"]},
            "lines[].text": {"compare": "string", "threshold": 0.8},
            "parcels": {"align": "best"},
        },
    },
    "minutes": {"metrics": ["exact_match", "field_level_f1"], "primary_metric": "field_level_f1"},
}
ORDERS: dict[str, Any] = {
    "acme": {
        "number": "A-17",
        "placed": "2024-03-05",
        "total": 21.5,
        "status": "paid",
        "note": "leave it with the neighbour",
        "lines": [{"sku": "n1", "count": 2, "text": "nails"}, {"sku": "s9", "count": 1, "text": "steel saw"}],
        "parcels": [{"kilos": 1.5, "to": "Ulm"}, {"kilos": 4, "to": "Bonn"}],
        "tags": ["urgent", "gift"],
    },
    "bolt": {
        "number": "B-2",
        "placed": "2024-04-11",
        "total": 9,
        "status": "open",
        "note": None,
        "lines": [{"sku": "b4", "count": 10, "text": "bolts"}],
        "parcels": [{"kilos": 0.5, "to": "Jena"}],
        "tags": [],
    },
    "cork": {
        "number": "C-300",
        "placed": None,
        "total": 1200.25,
        "status": "void",
        "note": "Ünïcode “quoted” <b>",
        "lines": [{"sku": f"c{at}", "count": at, "text": f"cork size {at}"} for at in range(1, 4)],
        "parcels": [],
        "tags": ["bulk"],
    },
    "dyer": None,  # a case without a ground truth
}
PLAIN = ("east", "fern", "gull", "hale", "iris", "jute", "kelp", "lark", "mint", "nave")
"""More orders of the plainest kind: the answers of a case are one draw, and three draws show nothing beyond chance."""
ORDERS |= {
    name: {**ORDERS["bolt"], "number": f"P-{at}", "total": 30.5 + at, "lines": [{"sku": name, "count": 1}]}
    for at, name in enumerate(PLAIN, 1)
}
QUESTIONS = (
    ("france", "Capital of France?", ("Lyon", "Nice", "Paris"), "C"),
    ("peru", "Capital of Peru?", ("Lima", "Cusco"), "A"),
    ("chad", "Capital of Chad?", ("Sarh", "Moundou", "Abéché", "N'Djamena"), "D"),
    ("fiji", "Capital of Fiji?", ("Suva", "Nadi", "Lautoka"), "A"),
    ("mali", "Capital of Mali?", ("Ségou", "Bamako"), "B"),
    ("nicer", "Which is nicer?", ("Lima", "Cusco"), None),
)
MINUTES = {"monday": "The board met. It agreed on the budget.", "friday": "Nobody came."}


def _tabled(names: Sequence[str], runs: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, dict[str, str]]]:
    return {
        version: {model: dict(zip(names, kinds.split(), strict=True)) for model, kinds in models.items()}
        for version, models in runs.items()
    }


# What became of each replicate, a letter each: see `_order_answer`, `_quiz_answer` and `_minutes_answer`.
ORDER_RUNS = _tabled(
    (*list(ORDERS)[:4], *PLAIN),
    {
        "1.0.0": {
            "ash": "rrfr rrrr rorm rrrx" + " rrrr" * len(PLAIN),
            "vendor/birch": "wwwR wwxe dwwd rrww" + " wwww" * len(PLAIN),
        },
        "1.1.0": {
            "ash": "rrrr rfrr rror rrrr" + " rrrr" * len(PLAIN),
            "vendor/birch": "rrrc rrrr rprr rrru" + " rrrr" * len(PLAIN),
        },
        "2.0.0": {
            "ash": "wwww wwew wmww wrdw" + " wwww" * len(PLAIN),
            "vendor/birch": "rrcr wrrr mrrd rRRr" + " rrrr" * len(PLAIN),
        },
    },
)
QUIZ_RUNS = _tabled(
    [one[0] for one in QUESTIONS],
    {
        "1.0.0": {"ash": "rrbt rwrr wwwr rrrr trtt rrmr", "vendor/birch": "rwnm wwww xReb rcrr rrww wnrw"},
        "1.1.0": {"ash": "rrrr rrrr wrrr brrr rrrr rrrr", "vendor/birch": "wwnm wwww wRew rwww wrww wnrw"},
    },
)
MINUTES_RUN = {"monday": "rnwR", "friday": "rrxc"}


def _order_answer(kind: str, case_id: str) -> dict[str, Any]:
    truth = ORDERS[case_id] or {"number": "D-4", "total": 4, "status": "open", "lines": []}
    wrong = {**truth, "total": 77, "status": "open", "note": "leave it"}
    line = {"sku": "z0", "count": 5, "text": "an extra one"}
    whole = json.dumps(truth)
    answers = {
        "r": {"text": whole},
        "w": {"text": json.dumps({**wrong, "lines": [{**one, "count": 99} for one in truth["lines"]]})},
        "m": {"text": json.dumps({**truth, "lines": truth["lines"][1:], "placed": None, "tags": []})},
        "e": {"text": json.dumps({**truth, "lines": [*truth["lines"], line], "parcels": [{"kilos": 1, "to": "Rom"}]})},
        "o": {"text": json.dumps({**truth, "lines": truth["lines"][::-1], "total": f"EUR {truth['total']}"})},
        "d": {"text": json.dumps({("amount" if key == "total" else key): value for key, value in truth.items()})},
        "f": {"text": f"Here it is:\n\n```json\n{whole}\n```\n"},
        "p": {"text": f"The order is {whole}, as printed."},
        "u": {"text": "There is no order in it."},
    }
    return answers.get(kind) or _other_answer(kind, whole)


def _quiz_answer(kind: str, question: str) -> dict[str, Any]:
    ((options, key),) = ((options, answer or "A") for name, _, options, answer in QUESTIONS if name == question)
    at = ord(key) - ord("A")
    other = "ABCD"[(at + 1) % len(options)]
    answers = {
        "r": {"text": f"Let me think.\n\nAnswer: {key}"},
        "w": {"text": f"The answer is **{other}**."},
        "b": {"text": f"\\boxed{{{key}}}"},
        "t": {"text": f"It is {options[at]}, of course."},
        "m": {"text": f"Answer: {key} or {other}"},
        "n": {"text": "I do not know."},
        "e": {"text": " "},
    }
    return answers.get(kind) or _other_answer(kind, key)


def _minutes_answer(kind: str, case_id: str) -> dict[str, Any]:
    truth = MINUTES[case_id]
    answers = {"r": truth, "n": truth.replace("agreed on", "voted for"), "w": "It rained."}
    return {"text": answers[kind]} if kind in answers else _other_answer(kind, truth)


def _other_answer(kind: str, whole: str) -> dict[str, Any]:
    """Return what is nobody's answer: a refusal, one that was cut off, a failure of the provider."""
    return {
        "R": {"text": "I cannot help with that.", "stop_reason": "refusal"},
        "c": {"text": whole[: len(whole) // 2], "stop_reason": "length"},
        "x": {"error": {"kind": "provider_error", "reason": "server_error", "message": "overloaded", "status": 503}},
    }[kind]


_ANSWERS = {"orders": _order_answer, "capitals": _quiz_answer, "minutes": _minutes_answer}


class Runs:
    """A prompt library in git, the commands run in it one after another, and the files to compare."""

    def __init__(self, root: Path) -> None:
        self.root = root / "library"
        self.outside = root
        self.held: dict[str, str] = {}
        self.root.mkdir()

    def call(self, *arguments: str, invocation: int | None = None) -> None:
        """Run one command; an `invocation` numbers its runs."""
        with nullcontext() if invocation is None else invoked(f"20240601T000000Z-{invocation:06x}"):
            done = call(self.root, *arguments, env=_ENVIRONMENT)
        assert done.code in (0, 3, 4), (arguments, done.err)
        self.freeze()

    def freeze(self) -> None:
        """Write what differs between runs anew in every file that a later command reads."""
        for path in _files(self.root, "*.json", "*.jsonl"):
            text = path.read_text(encoding="utf-8")
            frozen = normalised(text)
            if frozen != text:
                path.write_text(frozen, encoding="utf-8")

    def hold(self, name: str, path: str) -> None:
        """Hold a file."""
        self.held[name] = normalised((self.root / path).read_text(encoding="utf-8"))

    def hold_all(self, folder: str, pattern: str) -> None:
        """Hold the files that match a pattern, each under its name."""
        for path in sorted(self.root.glob(pattern)):
            self.hold(f"{folder}/{path.name}", str(path.relative_to(self.root)))

    def write(self, path: str, content: Any) -> None:
        """Write a text as it is, anything else as JSON (which YAML reads, too)."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    def prompt(self, name: str, version: str, output: str) -> None:
        """Write a prompt, another text for every version."""
        front = f"---\nname: {name}\nversion: {version}\noutput: {output}\n---\n"
        self.write(f"components/{name}/prompt.md", f"{front}# {name}\n\n## Prompt\n\nRead as in {version}.\n")

    def answers(self, component: str, runs: Mapping[str, Mapping[str, str]]) -> None:
        """Have every model answer from now on as a table says: by case, a letter a replicate."""
        for model, cases in runs.items():
            lines = [
                _line(model, case_id, index, _ANSWERS[component](kind, case_id))
                for case_id, kinds in cases.items()
                for index, kind in enumerate(kinds)
            ]
            self.write(_answers_of(model), "".join(lines))

    def git(self, *arguments: str) -> str:
        """Return what one git command printed."""
        env = {**os.environ, **_ENVIRONMENT}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self) -> str:
        """Commit everything and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")
        return self.git("rev-parse", "HEAD")


def normalised(text: str) -> str:
    """Return an output with fixed marks in place of what no two runs have in common."""
    for pattern, mark in _VOLATILE:
        text = pattern.sub(mark, text)
    return text


def _line(model: str, case_id: str, index: int, answer: Mapping[str, Any]) -> str:
    usage = {"input_tokens": 100 + len(case_id), "output_tokens": 10 + index}
    line = {"case_id": case_id, "replicate": index, "served_model": f"{model}-2024", "usage": usage, **answer}
    return json.dumps(line) + "\n"


def _answers_of(model: str) -> str:
    return f"answers/{model.rpartition('/')[2]}.jsonl"


def _files(folder: Path, *patterns: str) -> Iterator[Path]:
    """Yield the files below a folder that fit, those of git left out."""
    for pattern in patterns:
        yield from (path for path in sorted(folder.rglob(pattern)) if ".git" not in path.parts)


def _write_library(runs: Runs) -> None:
    """Write three components in their first versions, their cases, and the configuration."""
    for name, output in (("orders", "json"), ("capitals", "choice"), ("minutes", "text")):
        runs.prompt(name, "1.0.0", output)
    for name, declared in DATASETS.items():
        runs.write(f"components/{name}/evals/datasets.json", {"datasets": [{"id": name, **declared}]})
    runs.write("components/orders/schema.json", SCHEMA)
    for case_id, truth in ORDERS.items():
        runs.write(f"fixtures/orders/cases/{case_id}/document.md", f"The order of {case_id}.\n")
        if truth is not None:
            runs.write(f"fixtures/orders/cases/{case_id}/ground_truth.json", truth)
    lines = [
        {"id": name, "question": question, "options": options, **({"answer": answer} if answer else {})}
        for name, question, options, answer in QUESTIONS
    ]
    runs.write("fixtures/capitals/questions.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    for case_id, text in MINUTES.items():
        runs.write(f"fixtures/minutes/cases/{case_id}/document.md", f"What was said on {case_id}.\n")
        runs.write(f"fixtures/minutes/cases/{case_id}/expected.md", text)
    models = [
        {"id": model, "provider": "replay", "params": {"file": _answers_of(model)}, "price": {"input": at, "output": 3}}
        for at, model in enumerate(MODELS, 1)
    ]
    runs.write(".evaluator/models.yaml", {"models": models})
    runs.write(".evaluator/settings.yaml", SETTINGS)
    front = "---\nname: grand\nintent: To be grand.\n---\n"
    runs.write(".evaluator/scenarios/grand.md", f"{front}Be grand.\n\n{{{{ prompt }}}}\n")
    runs.write(".gitignore", "components/*/evals/results/\nartifacts/\ncollected/\n*plan.json\n.*.lock\n")


_BOTH = tuple(word for model in MODELS for word in ("--model", model))


def _evaluate_versions(runs: Runs) -> None:
    """Evaluate all versions but the last one of the orders."""
    for number, version in enumerate(("1.0.0", "1.1.0")):
        runs.prompt("orders", version, "json")
        runs.prompt("capitals", version, "choice")
        runs.commit()
        for at, (name, tables) in enumerate((("orders", ORDER_RUNS), ("capitals", QUIZ_RUNS))):
            runs.answers(name, tables[version])
            runs.call("evaluate", name, *_BOTH, invocation=16 * number + at)
        runs.commit()
    runs.answers("minutes", {"ash": MINUTES_RUN})
    runs.call("evaluate", "minutes", "--model=ash", invocation=40)


def _evaluate_otherwise(runs: Runs) -> None:
    """Evaluate under a scenario, and a run that is stopped and resumed."""
    runs.answers("capitals", QUIZ_RUNS["1.1.0"])
    words = ("evaluate", "capitals", "--model=vendor/birch")
    runs.call(*words, "--scenario=grand", invocation=41)
    apart = (*words, "--results=elsewhere", "--no-leaderboard", "--concurrency=1")
    runs.call(*apart, "--max-calls=7", invocation=43)
    runs.call(*apart, "--run=20240601T000000Z-00002b")
    (run,) = (runs.root / "elsewhere").glob("*-00002b-*")
    runs.hold("journals/resumed.jsonl", f"elsewhere/{run.name}/replicates.jsonl")
    shutil.rmtree(runs.root / "elsewhere")


def _go_through_ci(runs: Runs) -> None:
    """Push the last version of the orders: plan it, run its jobs, collect and publish."""
    base = runs.commit()
    runs.prompt("orders", "2.0.0", "json")
    runs.answers("orders", ORDER_RUNS["2.0.0"])
    runs.commit()
    origin = runs.outside / "origin.git"
    runs.git("clone", "-q", "--bare", str(runs.root), str(origin))
    runs.git("remote", "add", "origin", origin.as_uri())
    runs.call("ci", "plan", f"--base={base}", *_BOTH)
    runs.hold("plan/plan-file.json", "plan.json")
    for entry in json.loads((runs.root / "plan.json").read_text())["runs"]:
        planned = ("--plan=plan.json", f"--planned={entry['id']}", f"--results=artifacts/{entry['id']}")
        runs.call("evaluate", "orders", f"--model={entry['model_id']}", *planned)
    runs.call("ci", "collect", "artifacts")
    runs.call("ci", "publish", "collected")
    runs.git("pull", "-q", "--ff-only", "origin", "main")
    runs.freeze()


def outputs(root: Path) -> dict[str, str]:
    """Run everything in a folder; return the files to compare, by the path of the expected file."""
    runs = Runs(root)
    runs.git("init", "-q", "-b", "main", "--object-format=sha1")
    _write_library(runs)
    _evaluate_versions(runs)
    _evaluate_otherwise(runs)
    _go_through_ci(runs)
    for name in ("orders", "capitals", "minutes"):
        runs.hold_all(f"records/{name}", f"components/{name}/evals/records/*.json")
        runs.hold(f"leaderboards/{name}.json", f"components/{name}/leaderboard.json")
    assert not [name for name, text in runs.held.items() if str(root) in text]
    return runs.held


NAMES = sorted(
    path.relative_to(EXPECTED).as_posix().removesuffix(_COMPRESSED) for path in EXPECTED.rglob("*") if path.is_file()
)


@pytest.mark.unchanged
def test_committed_formats_do_not_change(tmp_path: Path) -> None:
    made = outputs(tmp_path)
    changed = {name: text for name, text in made.items() if name in NAMES and not _same(text, _expected(name))}
    told = [f"{name} is not what it was:\n{_difference(_expected(name), text)}" for name, text in changed.items()]
    if told:
        pytest.fail("\n\n".join(told), pytrace=False)
    assert sorted(made) == NAMES


def _same(text: str, other: str) -> bool:
    """Return whether two texts are the same but for the last digits of long numbers."""
    parts, others = _LONG_NUMBER.split(text), _LONG_NUMBER.split(other)
    numbers = zip(parts[1::2], others[1::2], strict=False)
    close = all(math.isclose(float(one), float(two), rel_tol=1e-9, abs_tol=1e-12) for one, two in numbers)
    return len(parts) == len(others) and parts[::2] == others[::2] and close


def _expected(name: str) -> str:
    """Return what an expected file holds."""
    plain, compressed = EXPECTED / name, EXPECTED / f"{name}{_COMPRESSED}"
    return (plain.read_bytes() if plain.exists() else gzip.decompress(compressed.read_bytes())).decode()


def _difference(before: str, after: str) -> str:
    """Return the first lines of what changed."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "expected", "made", lineterm="", n=2))
    return "\n".join(line[:200] for line in lines[:_LINES_SHOWN])


def _write_expected() -> None:
    """Write the expected files that are not as they were; remove those of outputs that are gone."""
    with tempfile.TemporaryDirectory() as folder:
        found = outputs(Path(folder))
    for name in NAMES:
        if not _same(found.get(name, ""), _expected(name)):
            (EXPECTED / name).unlink(missing_ok=True)
            (EXPECTED / f"{name}{_COMPRESSED}").unlink(missing_ok=True)
        else:
            del found[name]
    for name, text in found.items():
        path = EXPECTED / (f"{name}{_COMPRESSED}" if len(text) > _LARGE else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), mtime=0) if len(text) > _LARGE else text.encode())


if __name__ == "__main__":
    _write_expected()
