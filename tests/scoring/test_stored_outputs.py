"""Stored outputs keep their scores, components and models their digests, and pairs of runs their verdicts.

`python -m tests.scoring.test_stored_outputs` writes the expected values of the data file again after a wanted change.
Each line of the file is one of: a component with its files, a model, an output to a case, a pair of runs.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import DEFAULT_LIMITS, Model
from skill_evaluator.records.record import Record
from skill_evaluator.runner.journal import settings_digest
from skill_evaluator.scoring.scorer import TextScorer
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records

from tests.support.components import record
from tests.verdicts.rules import some_rules

STORED = Path(__file__).parents[1] / "data" / "stored_outputs.jsonl"
Loaded = tuple[Component, dict[str, Case], TextScorer]


def test_stored_outputs_keep_scores_digests_and_verdicts(tmp_path: Path) -> None:
    lines = _stored()
    changed = [
        {**line, "expected": (line["expected"], found)}
        for line, found in zip(lines, _measured(lines, tmp_path), strict=True)
        if found != line["expected"]
    ]
    assert not changed, "\n".join(json.dumps(line, ensure_ascii=False)[:600] for line in changed)


def test_stored_outputs_are_at_least_200() -> None:
    assert sum("text" in line for line in _stored()) >= 200


@cache
def _stored() -> list[dict[str, Any]]:
    return [json.loads(line) for line in STORED.read_text().split("\n") if line]  # splitlines would split at U+2028


def _measured(lines: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Any]:
    """Yield the present values of each line, in order; a component stands before its outputs and pairs."""
    loaded: dict[str, Loaded] = {}
    for line in lines:
        if "model" in line:
            yield settings_digest(Model.model_validate(line["model"]))
        elif "files" in line:
            component, cases, _ = loaded[line["component"]] = _load(line["component"], line["files"], folder)
            yield {**component.digests, "cases": {case_id: case.digest for case_id, case in cases.items()}}
        elif "text" in line:
            name, _, case_id = line["to"].partition("/")
            yield _scores(loaded[name][2], case_id, line["text"])
        else:
            yield _verdict(loaded[line["component"]], line)


def _load(name: str, files: Mapping[str, Any], folder: Path) -> Loaded:
    """Write the files of a component and its cases, and read them as a run does."""
    for path, content in files.items():
        place = folder / path.replace("NAME", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content))
    component = load_component(folder / "components", name, DEFAULT_LIMITS, folder / "fixtures")
    cases = {case.id: case for case in load_cases(component)}
    return component, cases, TextScorer(component, cases.values())


def _scores(scorer: TextScorer, case_id: str, text: str) -> dict[str, Any]:
    """Return the outcome of one output: its problem, or its metrics to six digits."""
    scored = scorer.score(case_id, text)
    metrics = {name: value if value is None else round(value, 6) for name, value in scored.metrics.items()}
    return {"outcome": scored.outcome, **({"problem": scored.problem} if scored.problem else {}), **metrics}


def _verdict(loaded: Loaded, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on two runs in which the outputs of each version take turns over cases and replicates."""
    before, after = (_record(loaded, line[version], line["replicates"]) for version in ("before", "after"))
    rules = some_rules(primary_metric=after.primary_metric)
    (model,) = compare_records([Pair(baseline=before, candidate=after)], rules).models
    return {
        "verdict": model.verdict,
        "reasons": dict(after.reasons),
        "mean": after.accuracy[after.primary_metric].strict_mean,
    }


def _record(loaded: Loaded, texts: Sequence[str], replicates: int) -> Record:
    component, cases, _ = loaded
    table = [
        (case, [texts[(place + index) % len(texts)] for index in range(replicates)])
        for place, case in enumerate(cases.values())
    ]
    return record(component, table)


def _write_expected() -> None:
    """Write the data file with the present values, and print how many lines changed."""
    lines = _stored()
    with tempfile.TemporaryDirectory() as folder:
        found = list(_measured(lines, Path(folder)))
    renewed = [{**line, "expected": value} for line, value in zip(lines, found, strict=True)]
    print(sum(new != old for new, old in zip(renewed, lines, strict=True)), "lines changed")
    STORED.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in renewed))


if __name__ == "__main__":
    _write_expected()
