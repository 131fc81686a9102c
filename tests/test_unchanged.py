"""Every record, leaderboard, manifest and JSON output of a fixed set of runs is what it was.

Only the last digits of a long number may differ: those depend on the instructions that a processor has. The runs are
made by the command line alone: no name inside the package is known here. After a change that is meant, write the
expected files anew with `python -m tests.test_unchanged`; first read what the failing tests show. Large ones are held
compressed (`zcat` shows them).
"""

import difflib
import gzip
import io
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from skill_evaluator.cli import main

from tests.support.library import invoked

EXPECTED = Path(__file__).parent / "data" / "unchanged"
TABLE = Path(__file__).parent / "data" / "creditaudit_table2.csv"
_LINES_SHOWN = 40
_LARGE = 8_000  # characters, from which an expected file is compressed
_COMPRESSED = ".gz"
_EXIT_BUG = 1

# What differs between any two runs, by its key: the clock, how long calls took, the evaluator's version, the digest in
# a row of its record, which holds these, and the ids that `plan` draws. What stands in for them is
# valid, so that the next command reads it.
_VOLATILE = (
    (re.compile(r"the baseline is \d+ days older"), "the baseline is 900 days older"),
    (re.compile(r'("(?:timestamp|created)": )"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"'), r'\1"2024-06-01T00:00:00Z"'),
    (re.compile(r'("(?:latency_s|latency_p[59][05]_s|p\d+)": ?)\d+(?:\.\d+)?(?:e-\d+)?'), r"\g<1>0.25"),
    (re.compile(r'("least": \d+,\s+"mean": )[\d.]+'), r"\g<1>1.5"),  # calls in flight
    (re.compile(r'("evaluator_version": )"[^"]*"'), r'\1"0.0.0"'),
    (re.compile(r'("invocation": )"\d{8}T\d{6}Z-[0-9a-f]{6}"'), r'\1"20240601T000000Z-0000ff"'),
    (re.compile(r'("(?:evaluator|scorer)_version": ?[^,]+,\s*"digest": ?)"sha256:[0-9a-f]{64}"'), r"\1null"),  # a row's
    (re.compile(r'("digest": ?)"sha256:[0-9a-f]{64}"(,\s*"per_case")'), r"\1null\2"),  # the same, where calls failed
    (re.compile(r'("id": )"\d{8}T\d{6}Z-[0-9a-f]{6}"'), r'\1"20240601T000000Z-0000aa"'),
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
_NOT_INHERITED = re.compile(r"GIT_|GITHUB_|.*(_KEY|_TOKEN|_BASE_URL)$")

MODELS = ("ash", "vendor/birch")
AUDITED = (*MODELS, "cedar", "elm")
SCENARIOS = ("bare", "curt", "grand")
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
    "audit": {"benchmarks": {"orders": {"weight": 2.0}, "capitals": {}}},
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
    """A prompt library in git, the commands run in it one after another, and what is held of them."""

    def __init__(self, root: Path) -> None:
        self.root = root / "library"
        self.outside = root
        self.held: dict[str, str] = {}
        self.codes: dict[str, int] = {}
        self.root.mkdir()

    def call(self, name: str, *arguments: str, invocation: int | None = None) -> Any:
        """Run one command, hold what it printed under a name, and return that; an `invocation` numbers its runs."""
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        code = 0
        numbered = nullcontext() if invocation is None else invoked(f"20240601T000000Z-{invocation:06x}")
        with redirect_stdout(out), redirect_stderr(err), numbered:
            try:
                main([*arguments])
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else int(left.code is not None)
        for stream in (out, err):
            stream.seek(0)
        text = out.read()
        if code == _EXIT_BUG or not text:
            raise AssertionError(f"{name}: exit code {code}\n{err.read()}")
        self.codes[name] = code
        self.held[name] = normalised(text)
        self.freeze()
        return json.loads(self.held[name]) if name.endswith(".json") else text

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
        """Hold the files that fit a pattern, each by its name; a manifest by that of its run."""
        for path in sorted(self.root.glob(pattern)):
            name = f"{path.parent.name}.json" if path.name == "manifest.json" else path.name
            assert f"{folder}/{name}" not in self.held
            self.hold(f"{folder}/{name}", str(path.relative_to(self.root)))

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

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        """Return what one git command printed."""
        done = subprocess.run(["git", *arguments], cwd=folder or self.root, check=True, capture_output=True, text=True)
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


def _shape(schema: Any, definitions: Mapping[str, Any] | None = None, within: tuple[str, ...] = ()) -> Any:
    """Return what a JSON Schema accepts: without its wording, with every definition in the place it is used."""
    if isinstance(schema, list):
        return [_shape(part, definitions, within) for part in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions:
        return "itself" if name in within else _shape(definitions[name], definitions, (*within, name))
    wording = ("description", "title")
    return {
        key: _shape(part, definitions, within)
        for key, part in schema.items()
        if key != "$defs" and not (key in wording and isinstance(part, str))
    }


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
        for at, model in enumerate(AUDITED, 1)
    ]
    runs.write(".evaluator/models.yaml", {"models": models})
    runs.write(".evaluator/settings.yaml", SETTINGS)
    for name in SCENARIOS:
        front = f"---\nname: {name}\nintent: To be {name}.\n---\n"
        runs.write(f".evaluator/scenarios/{name}.md", f"{front}Be {name}.\n\n{{{{ prompt }}}}\n")
    runs.write(".gitignore", "components/*/evals/results/\naudits/\nartifacts/\ncollected/\n*plan.json\n.*.lock\n")
    runs.write("table.csv", TABLE.read_text())


_BOTH = tuple(word for model in MODELS for word in ("--model", model))
_JSON = ("--format", "json")


def _evaluate_versions(runs: Runs) -> None:
    """Evaluate all but the last version of the orders, as a person does."""
    runs.call("lint.json", "lint", *_JSON)
    runs.call("evaluate/dry-run-orders.json", "evaluate", "orders", "--dry-run", *_JSON)
    runs.call("evaluate/dry-run-capitals.json", "evaluate", "capitals", "--dry-run", "--scenario=curt", *_JSON)
    for number, version in enumerate(("1.0.0", "1.1.0")):
        runs.prompt("orders", version, "json")
        runs.prompt("capitals", version, "choice")
        runs.commit()
        for at, (name, tables) in enumerate((("orders", ORDER_RUNS), ("capitals", QUIZ_RUNS))):
            runs.answers(name, tables[version])
            words = ("evaluate", name, *_BOTH, *_JSON)
            runs.call(f"evaluate/{name}-{version}.json", *words, invocation=16 * number + at)
        runs.commit()
    runs.answers("minutes", {"ash": MINUTES_RUN})
    runs.call("evaluate/minutes-1.0.0.json", "evaluate", "minutes", "--model=ash", *_JSON, invocation=40)


def _evaluate_otherwise(runs: Runs) -> None:
    """Evaluate under a scenario, a part of the cases, and a run that is stopped and resumed."""
    runs.answers("capitals", QUIZ_RUNS["1.1.0"])
    words = ("evaluate", "capitals", "--model=vendor/birch")
    runs.call("evaluate/scenario.json", *words, "--scenario=grand", *_JSON, invocation=41)
    apart = (*words, "--results=elsewhere", "--no-leaderboard")
    runs.call("evaluate/some-cases.json", *apart, "--case=f*", "--replicates=3", "--seed=11", *_JSON, invocation=42)
    limited = ("--max-calls=7", "--concurrency=1")
    runs.call("evaluate/stopped.json", *apart, *limited, *_JSON, invocation=43)
    runs.call("evaluate/resumed.json", *apart, "--run=20240601T000000Z-00002b", "--concurrency=1", *_JSON)
    (run,) = (runs.root / "elsewhere").glob("*-00002b-*")
    runs.hold("journals/resumed.jsonl", f"elsewhere/{run.name}/replicates.jsonl")
    runs.hold_all("manifests", "elsewhere/*/manifest.json")
    shutil.rmtree(runs.root / "elsewhere")


def _look_into_runs(runs: Runs) -> None:
    """Score saved runs again, and explain some of their answers."""
    orders, capitals, minutes = (
        "20240601T000000Z-" + token for token in ("000010-orders-", "000001-capitals-", "000028-minutes-")
    )
    (birch,) = (runs.root / "components/orders/evals/results").glob(f"{orders}vendor-birch*")
    folder = str(birch.relative_to(runs.root))
    runs.call("score.json", "score", folder, *_JSON)
    explained: Sequence[tuple[str, str, Sequence[str]]] = (
        ("order", birch.name, ("--case=cork",)),
        ("order-unparsed", birch.name, ("--case=acme",)),
        ("order-without-truth", birch.name, ("--case=dyer",)),
        ("choice", f"{capitals}ash", ("--case=france",)),
        ("text", f"{minutes}ash", ("--case=monday", "--full")),
        ("field", birch.name, ("--field=total",)),
        ("field-of-items", birch.name, ("--field=lines[].count", "--case=cork")),
    )
    for name, run, words in explained:
        runs.call(f"explain/{name}.json", "explain", run, *words, *_JSON)


def _go_through_ci(runs: Runs) -> None:
    """Push the last version of the orders: plan it, run its jobs, collect, publish and report."""
    base = runs.commit()
    runs.prompt("orders", "2.0.0", "json")
    runs.answers("orders", ORDER_RUNS["2.0.0"])
    runs.commit()
    origin = runs.outside / "origin.git"
    runs.git("clone", "-q", "--bare", str(runs.root), str(origin))
    runs.git("remote", "add", "origin", origin.as_uri())
    runs.call("lint-history.json", "lint", "orders", "capitals", f"--base={base}", *_JSON)
    runs.call("plan/by-hand.json", "ci", "plan", "minutes", "capitals", "--max-cost=0.5", *_JSON)
    runs.call("plan/push.json", "ci", "plan", f"--base={base}", *_BOTH, *_JSON)
    runs.hold("plan/plan-file.json", "plan.json")
    plan = json.loads((runs.root / "plan.json").read_text())
    for entry in plan["runs"]:
        planned = ("--plan=plan.json", f"--planned={entry['id']}", f"--results=artifacts/{entry['id']}")
        name = f"evaluate/job-{entry['id'].replace('/', '-')}.json"
        runs.call(name, "evaluate", "orders", f"--model={entry['model_id']}", *planned, *_JSON)
    (lost,) = (entry["id"] for entry in plan["runs"] if "birch" in entry["id"] and entry["shard"] == "2/2")
    shutil.move(runs.root / "artifacts" / lost, runs.outside / "lost")
    runs.call("collect/incomplete.json", "ci", "collect", "artifacts", "--out=incomplete", *_JSON)
    shutil.rmtree(runs.root / "incomplete")
    shutil.move(runs.outside / "lost", runs.root / "artifacts" / lost)
    runs.call("collect/complete.json", "ci", "collect", "artifacts", *_JSON)
    runs.hold("collect/outcome-file.json", "collected/outcome.json")
    runs.call("report.json", "ci", "report", "collected", *_JSON)
    runs.call("publish.json", "ci", "publish", "collected", *_JSON)
    runs.git("pull", "-q", "--ff-only", "origin", "main")
    runs.freeze()
    runs.commit()


def _compare_versions(runs: Runs) -> None:
    """Compare what is recorded, in every way there is."""
    for name in ("orders", "capitals"):
        runs.call(f"compare/{name}.json", "compare", name, *_JSON)
        runs.call(f"history/{name}.json", "history", name, *_JSON)
    old, new = (
        f"components/orders/evals/records/20240601T000000Z-{token}-orders-ash.json" for token in ("000000", "000010")
    )
    runs.call("compare/files.json", "compare", f"--baseline={old}", f"--candidate={new}", *_JSON)
    runs.call("plan/detect.json", "ci", "plan", "--detect=0.1", "orders", *_BOTH, *_JSON)
    runs.call("lint-recorded.json", "lint", "orders", *_JSON)
    for name in ("orders", "capitals", "minutes"):
        runs.hold_all(f"records/{name}", f"components/{name}/evals/records/*.json")
        runs.hold(f"leaderboards/{name}.json", f"components/{name}/leaderboard.json")
    runs.hold_all("manifests", "components/*/evals/results/*/manifest.json")
    runs.hold_all("manifests", "artifacts/*/*/manifest.json")


def _audit(runs: Runs) -> None:
    """Run an audit and report it; report a table, too."""
    for model in AUDITED:
        runs.write(_answers_of(model), "".join(_audit_answers(model)))
    words = ("--questions=5", "--seed=5", "--replicates=2")
    runs.call("audit/dry-run.json", "audit", "run", "--dry-run", *words, *_JSON)
    runs.call("audit/run.json", "audit", "run", *words, "--max-cost=1", *_JSON)
    _rename_audit(runs)
    with pytest.MonkeyPatch.context() as without:
        drawing = [name for name, module in sys.modules.items() if getattr(module, "alt", None) is not None]
        for name in ("altair", *drawing):  # charts take seconds, and are not held
            without.setitem(sys.modules, name, None)
        runs.call("audit/report.json", "audit", "report", "--missing=questions", "--out=report", *_JSON)
    for path in ("report.json", "cube.csv", "outcomes.csv"):
        runs.hold(f"audit/files/{path}", f"report/{path}")
    runs.hold_all("audit/files", "audits/*/audit.json")
    runs.hold_all("manifests", "audits/*/runs/*/manifest.json")
    weighed = ("--weight=orders=1", "--missing=scenarios", "--centered", "--out=centered")
    runs.call("audit/centered.json", "audit", "report", *weighed, *_JSON)
    runs.call("audit/table.json", "audit", "report", "--cube=table.csv", "--questions=100", *_JSON)


def _rename_audit(runs: Runs) -> None:
    """Give the audit an id that is the same each time, in its files and in what it printed."""
    (folder,) = (runs.root / "audits").iterdir()
    drawn, fixed = folder.name, "20240601T000000Z-0000aa"
    runs.held["audit/run.json"] = runs.held["audit/run.json"].replace(drawn, fixed)
    for path in _files(folder, "*.json", "*.jsonl"):
        path.write_text(path.read_text(encoding="utf-8").replace(drawn, fixed), encoding="utf-8")
    for run in (folder / "runs").iterdir():
        run.rename(run.with_name(run.name.replace(drawn, fixed)))
    folder.rename(folder.with_name(fixed))


def _audit_answers(model: str) -> Iterator[str]:
    """Yield a line for every call of the audit, more wrong in one scenario than in another."""
    cases = {"orders": ORDERS, "capitals": [one[0] for one in QUESTIONS]}
    for benchmark, names in cases.items():
        for at, scenario in enumerate(SCENARIOS):
            for case_id in names:
                chance = random.Random(f"{model} {benchmark} {scenario} {case_id}")
                kinds = chance.choices("rwemRc", (60, 1 + 30 * at * AUDITED.index(model), 1, 1, 1, 1), k=2)
                for index, kind in enumerate(kinds):
                    failed = (model, scenario, case_id, index) == ("elm", "curt", "peru", 1)
                    answer = _ANSWERS[benchmark]("x" if failed else kind, case_id)
                    yield _line(model, f"{benchmark}/{scenario}/{case_id}", index, answer)


def outputs(root: Path) -> dict[str, str]:
    """Run everything in a folder; return what is held, by the path of its expected file."""
    inherited = {name: value for name, value in os.environ.items() if not _NOT_INHERITED.match(name)}
    runs = Runs(root)
    with chdir(runs.root), patch.dict(os.environ, {**inherited, **_ENVIRONMENT}, clear=True):
        runs.git("init", "-q", "-b", "main", "--object-format=sha1")
        _write_library(runs)
        _evaluate_versions(runs)
        _evaluate_otherwise(runs)
        _look_into_runs(runs)
        _go_through_ci(runs)
        _compare_versions(runs)
        _audit(runs)
        runs.write("components/broken/prompt.md", "No front matter.\n")
        runs.call("lint-broken.json", "lint", "broken", "minutes", *_JSON)
        runs.call("schemas.txt", "schemas", "schemas")
        for path in sorted(runs.root.glob("schemas/*.json")):
            runs.held[f"schemas/{path.name}"] = json.dumps(_shape(json.loads(path.read_text())), indent=1) + "\n"
    runs.held["exit-codes.json"] = json.dumps(runs.codes, indent=2) + "\n"
    for name, text in runs.held.items():
        assert str(root) not in text, f"{name} names the folder it was made in"
    return runs.held


NAMES = sorted(
    path.relative_to(EXPECTED).as_posix().removesuffix(_COMPRESSED) for path in EXPECTED.rglob("*") if path.is_file()
)


@pytest.mark.unchanged
def test_every_output_is_what_it_was(tmp_path: Path) -> None:
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
