"""The scoring engine against the fastest known parts and against peers: `python benchmarks/scoring.py [ROUNDS]`.

Processor time, all in one process and in turn on the same pairs (`records`): what counts are the ratios. Needs orjson,
deepdiff and stickler-eval beside the development dependencies.
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
from pathlib import Path
from statistics import median
from typing import Any

import jsonschema_rs
import orjson
from deepdiff import DeepDiff
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.metrics.base import CaseAnswers, Comparison, truth_side
from skill_evaluator.metrics.diagnosis.per_field import per_field
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.text import canonical_json
from stickler import ComparableField, StructuredModel
from stickler.comparators import ExactComparator

sys.path.insert(0, str(Path(__file__).parent))
from measure import as_installed
from records import SCHEMA, assigned_plan, keyed_plan, leaves, mutant, record, text_of
from whole_run import wall_seconds, write_run

TRUTH = record()
TEXTS = [text_of(mutant(TRUTH, seed)) for seed in range(20)]
METRICS_TIMED = [METRICS[name] for name in ("schema_valid", "exact_match", "field_level_f1", "jaccard")]
is_valid = jsonschema_rs.validator_for(SCHEMA, validate_formats=True).is_valid
Work = Callable[[str], Any]


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


OF_TRUTH = flattened(TRUTH)
SET_OF_TRUTH = frozenset(OF_TRUTH)


def floor(text: str) -> float:
    """Parse, validity, equality and the F1 of unaligned leaves, with the fastest known parts."""
    value = orjson.loads(text)
    is_valid(value)
    assert value != TRUTH
    found = flattened(value)
    return 2 * len(SET_OF_TRUTH.intersection(found)) / (len(OF_TRUTH) + len(found))


def ours(plan: FieldPlan) -> Work:
    truth = truth_side(TRUTH, plan)

    def score(text: str) -> None:
        parsed = parse_output(text, "json")
        comparison = Comparison(TRUTH, parsed.value, plan, is_valid, truth)
        for metric in METRICS_TIMED:
            metric.score(comparison)
        per_field(comparison.rows)

    return score


def by_deepdiff(text: str) -> None:
    DeepDiff(TRUTH, json.loads(text), ignore_order=True, get_deep_distance=True).to_dict()


def model_of(name: str, example: dict[str, Any]) -> type[StructuredModel]:
    """A stickler model of a record, every leaf compared exactly, arrays of objects by the optimal assignment."""
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


MODEL = model_of("Award", TRUTH)
MODEL_OF_TRUTH = MODEL(**TRUTH)


def by_stickler(text: str) -> None:
    MODEL_OF_TRUTH.compare_with(MODEL(**json.loads(text)))


def in_turn(works: dict[str, Work], rounds: int) -> dict[str, float]:
    """Median over texts of the least processor time per work, in µs; works one after the other on each text."""
    times: dict[str, list[list[float]]] = {name: [[] for _ in TEXTS] for name in works}
    for _ in range(rounds):
        for at, text in enumerate(TEXTS):
            for name, work in works.items():
                times[name][at].append(timed(lambda work=work, text=text: work(text)))
    return {name: median(min(of_text) for of_text in of_work) * 1e6 for name, of_work in times.items()}


def timed(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def pairs(rounds: int) -> None:
    print(f"One answer against the truth ({len(TEXTS[0])} characters, {leaves(TRUTH)} leaves, arrays of 30, 6 and 8)")
    works: dict[str, Work] = {"floor": floor, "keyed": ours(keyed_plan()), "assigned": ours(assigned_plan())}
    fast = in_turn(works, rounds)
    slow = in_turn({"deepdiff": by_deepdiff, "stickler, exact": by_stickler}, 2)
    for name, microseconds in (fast | slow).items():
        print(f"  {name:16} {microseconds:9.0f} µs   {microseconds / fast['floor']:7.1f} × floor")
    print(
        f"  keyed ≤ 5 × floor, assigned ≤ 12 ×; deepdiff ÷ assigned {slow['deepdiff'] / fast['assigned']:.0f} (≥ 10), "
    )
    print(f"  stickler ÷ assigned {slow['stickler, exact'] / fast['assigned']:.0f} (≥ 40)")


def given(plan: FieldPlan, texts: Sequence[str]) -> CaseAnswers:
    answers = CaseAnswers(plan)
    for text in texts:
        answers.add(text, text)
    return answers


def agreement(plan: FieldPlan, texts: Sequence[str], repeats: int = 3) -> float:
    """All reproducibility metrics of these answers, in seconds."""

    def once() -> float:
        answers = given(plan, texts)
        gc.collect()
        return timed(lambda: [metric(answers) for metric in REPRODUCIBILITY.values()])

    return min(once() for _ in range(repeats))


def reproducibility() -> None:
    print("All reproducibility metrics of N answers")
    seconds: dict[int, float] = {}
    for n in (50, 200, 1000):
        texts = [canonical_json(mutant(TRUTH, seed)) for seed in range(n)]
        values = [json.loads(text) for text in texts]
        alone = min(timed(lambda values=values: [frozenset(flattened(value)) for value in values]) for _ in range(3))
        del values
        seconds[n] = agreement(keyed_plan(), texts)
        print(f"  keyed, N = {n:4}  {seconds[n] * 1e3:7.0f} ms   {seconds[n] / alone:5.1f} × flattening alone (≤ 3)")
    growth = math.log(seconds[1000] / seconds[50]) / math.log(1000 / 50)
    print(f"  growth exponent from 50 to 1,000 {growth:.2f} (≤ 1.2)")
    texts = [canonical_json(mutant(TRUTH, seed)) for seed in range(200)]
    print(f"  assigned, N = 200 {agreement(assigned_plan(), texts, 1):.2f} s (≤ 2)")


def processor_seconds(program: str, runs: int = 7) -> Iterator[float]:
    after = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
    command = [sys.executable, "-c", f"{program}; {after}"]
    for run in range(runs + 1):
        found = subprocess.run(command, capture_output=True, text=True, check=True, env=as_installed(os.environ))
        if run:  # the first one warms caches
            yield float(found.stdout)


def imports() -> None:
    print("Importing the scorer")
    scoring = "from skill_evaluator import score_output"
    peer = median(processor_seconds("import pydantic, orjson"))
    scorer = median(processor_seconds(scoring))
    print(f"  import pydantic, orjson {peer * 1e3:.0f} ms, scorer {scorer * 1e3:.0f} ms: {scorer / peer:.1f} × (≤ 2)")
    heavy = f"{scoring}; import sys; assert not {{'numpy', 'scipy'}} & set(sys.modules)"
    list(processor_seconds(heavy, 1))


def whole_runs() -> None:
    print("All metrics of 12 cases × 10 replicates: a process from its start to the record, imports included")
    for name, keyed in (("keyed", True), ("assigned", False)):
        with tempfile.TemporaryDirectory() as folder:
            write_run(Path(folder), keyed)
            seconds = wall_seconds(Path(folder))
        print(f"  {name:9} {seconds:5.2f} s (≤ 1: {'holds' if seconds <= 1 else 'does not hold'})")


if __name__ == "__main__":
    pairs(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    reproducibility()
    imports()
    whole_runs()
