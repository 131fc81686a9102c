"""The scoring engine against the fastest known parts and against peers, on three records; agreement; whole runs.

Processor time, all in one process and in turn on the same pairs (`records`). One answer is scored as other programs do
it, by `score_text`.
"""

import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in a worker process

import jsonschema_rs
from skill_evaluator import score_text
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.metrics.agreement import CaseOutputs
from skill_evaluator.text import canonical_json

from benchmarks.measure import Measured, as_installed
from benchmarks.records import (
    KEYS,
    SCHEMA,
    WIDE_SCHEMA,
    keyed_plan,
    mutant,
    record,
    text_of,
    wide_record,
    with_repeated_keys,
)
from benchmarks.whole_run import wall_seconds, write_run

METRICS_TIMED = ("schema_valid", "exact_match", "field_level_f1", "jaccard")
BY_KEY = {path: {"align": "key", "key": list(key)} for path, key in KEYS.items()}
MUTANTS = 20
PEERS = "pip install deepdiff orjson stickler-eval"
Work = Callable[[str], Any]


def rows(quick: bool) -> Iterator[Measured]:
    rounds = 5 if quick else 15
    yield from _pairs("record", record(), SCHEMA, {"by key": (BY_KEY, 5), "by assignment": (None, 12)}, rounds)
    # what a key does not tell apart is assigned
    repeated = {"by key": (BY_KEY, 12), "by assignment": (None, 12)}
    yield from _pairs("record of repeated keys", with_repeated_keys(), SCHEMA, repeated, rounds)
    yield from _pairs("wide record", wide_record(), WIDE_SCHEMA, {"no array": (None, 5)}, rounds)
    turns = 1 if quick else 3
    yield from _agreement("by key", record(), (50, 1000), turns)
    yield from _agreement("by repeated keys", with_repeated_keys(), (200, 600), turns)
    yield _import()
    yield from _whole_runs(quick)


def _pairs(
    what: str,
    truth: dict[str, Any],
    schema: dict[str, Any],
    ours: dict[str, tuple[dict[str, Any] | None, float]],
    rounds: int,
) -> Iterator[Measured]:
    """One answer against the truth: the public call ÷ floor, peers ÷ the last of ours. `ours`: fields and bound."""
    try:
        peers = {"deepdiff, no order": by_deepdiff(truth), "stickler, exact": by_stickler(truth)}
        works = {"floor": floor(truth, schema)}
    except ImportError:
        yield Measured(name=f"one answer, {what}", values=(), note=PEERS)
        return
    texts = [text_of(mutant(truth, seed)) for seed in range(MUTANTS)]
    works |= {name: public_call(truth, schema, fields) for name, (fields, _) in ours.items()}
    fast = in_turn(works, texts, rounds)
    slow = in_turn(peers, texts, max(1, rounds // 7))
    for name, (_, bound) in ours.items():
        yield Measured(
            name=f"`score_text`, {what}, {name} ÷ floor",
            values=_ratios(fast[name], fast["floor"]),
            most=bound,
            note=f"{median(fast[name]) * 1e3:.2f} ms",
        )
        for peer, least in (("deepdiff, no order", 10), ("stickler, exact", 40)):
            yield Measured(
                name=f"{peer} ÷ `score_text`, {what}, {name}",
                values=_ratios(slow[peer], fast[name]),
                least=least if name != "no array" else None,  # there a peer takes hardly more than the floor
                note=f"{median(slow[peer]) * 1e3:.1f} ms",
            )


def _ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    return tuple(one / other for one, other in zip(ours, theirs, strict=True))


def leaves_in(value: Any, path: str, found: list[tuple[str, Any]]) -> None:
    """All leaves by path, arrays unaligned."""
    if isinstance(value, dict):
        for key, child in value.items():
            leaves_in(child, f"{path}.{key}", found)
    elif isinstance(value, list):
        for child in value:
            leaves_in(child, f"{path}[]", found)
    elif value is not None:
        found.append((path, value))


def flattened(value: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    leaves_in(value, "", found)
    return found


def floor(truth: dict[str, Any], schema: dict[str, Any]) -> Work:
    """Parse, validity, equality and the F1 of unaligned leaves, with the fastest known parts."""
    import orjson

    is_valid = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
    of_truth = flattened(truth)
    set_of_truth = frozenset(of_truth)

    def score(text: str) -> float:
        value = orjson.loads(text)
        is_valid(value)
        assert value != truth
        found = flattened(value)
        return 2 * len(set_of_truth.intersection(found)) / (len(of_truth) + len(found))

    return score


def public_call(truth: dict[str, Any], schema: dict[str, Any], fields: dict[str, Any] | None) -> Work:
    return lambda text: score_text(truth, text, schema, fields, METRICS_TIMED).mistakes


def by_deepdiff(truth: dict[str, Any]) -> Work:
    from deepdiff import DeepDiff

    return lambda text: DeepDiff(truth, json.loads(text), ignore_order=True, get_deep_distance=True).to_dict()


def by_stickler(truth: dict[str, Any]) -> Work:
    model = model_of("Award", truth)
    model_of_truth = model(**truth)
    return lambda text: model_of_truth.compare_with(model(**json.loads(text)))


def model_of(name: str, example: dict[str, Any]) -> Any:
    """A stickler model of a record, every leaf compared exactly, arrays of objects by the optimal assignment."""
    from stickler import ComparableField, StructuredModel
    from stickler.comparators import ExactComparator

    kinds: dict[str, Any] = {}
    members: dict[str, Any] = {"__annotations__": kinds, "__module__": __name__}
    for key, value in example.items():
        if isinstance(value, list) and isinstance(value[0], dict):
            kinds[key] = list[model_of(f"{name}_{key}", value[0])]  # type: ignore[misc]
            members[key] = ComparableField(default=None)
        elif isinstance(value, dict):
            kinds[key] = model_of(f"{name}_{key}", value) | None
            members[key] = ComparableField(default=None)
        else:
            kinds[key] = list[str] if isinstance(value, list) else Any
            members[key] = ComparableField(comparator=ExactComparator(), threshold=1.0, default=None)
    return type(name, (StructuredModel,), members)


def in_turn(works: dict[str, Work], texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """For every work and text the least processor time of the rounds; works one after the other on each text."""
    times = {name: [math.inf] * len(texts) for name in works}
    for _ in range(rounds):
        for at, text in enumerate(texts):
            for name, work in works.items():
                times[name][at] = min(times[name][at], timed(lambda work=work, text=text: work(text)))
    return times


def timed(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _agreement(what: str, truth: dict[str, Any], sizes: tuple[int, int], turns: int) -> Iterator[Measured]:
    """All reproducibility metrics of few and of many answers, in turn: how the time grows."""
    few, many = ([canonical_json(mutant(truth, seed)) for seed in range(size)] for size in sizes)
    times = [(seconds_of_agreement(keyed_plan(), few), seconds_of_agreement(keyed_plan(), many)) for _ in range(turns)]
    yield Measured(
        name=f"all agreement metrics, {what}: growth exponent from {sizes[0]} to {sizes[1]:,} answers",
        values=tuple(math.log(more / less) / math.log(sizes[1] / sizes[0]) for less, more in times),
        most=1.2,
        note=f"{median(less for less, _ in times) * 1e3:.0f} ms, {median(more for _, more in times) * 1e3:.0f} ms",
    )


def seconds_of_agreement(plan: FieldPlan, texts: Sequence[str]) -> float:
    answers = CaseOutputs(plan)
    for text in texts:
        answers.add(text, text)
    gc.collect()
    return timed(lambda: [metric.score(answers) for metric in REPRODUCIBILITY.values()])


def _import() -> Measured:
    ours, peer = "from skill_evaluator import score_output", "import pydantic, orjson"
    name = f"`{ours}` ÷ `{peer}`"
    if find_spec("orjson") is None:
        return Measured(name=name, values=(), note=PEERS)
    turns = [(processor_seconds(ours), processor_seconds(peer)) for _ in range(8)][1:]  # the first one warms caches
    return Measured(name=name, values=tuple(one / other for one, other in turns), most=2)


def processor_seconds(program: str) -> float:
    after = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
    command = [sys.executable, "-c", f"{program}; {after}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=as_installed(os.environ))
    return float(done.stdout)


def _whole_runs(quick: bool) -> Iterator[Measured]:
    for what, keyed in (("by key", True), ("by assignment", False)):
        with tempfile.TemporaryDirectory() as folder:
            write_run(Path(folder), keyed)
            seconds = wall_seconds(Path(folder), 1 if quick else 7)
        yield Measured(
            name=f"12 cases × 10 answers scored, the whole process, {what}", values=tuple(seconds), most=1, unit="s"
        )
