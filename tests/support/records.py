"""Records from a table of scores, as a run would have left them; for what only reads records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import ANSWERED, SCORED, Record, write_record
from skill_evaluator.text import digest

from tests.support.library import SKILL, Library

Score = float | str  # a string is what became of the call instead of a score, such as "unparseable"
NOTHING = {"mean": None, "strict_mean": None, "stdev": None, "n": 0, "n_cases": 0, "ci95": None}


def a_record(cases: Mapping[str, Sequence[Score]], **changed: Any) -> Record:
    """A record of one metric, `field_level_f1`, scored per case and replicate.

    `fields`: {path: {case id: (right, n)}}. `agreement`: {case id: share}. `other`: {metric: {case id: scores}}.
    Anything else replaces a key of the record.
    """
    fields, agreement = changed.pop("fields", {}), changed.pop("agreement", {})
    metrics = {"field_level_f1": cases, **changed.pop("other", {})}
    planned = sum(map(len, cases.values()))
    answered = sum(_outcome(score) in ANSWERED for scores in cases.values() for score in scores)
    value = {
        "run_id": "20260101T000000Z-000000-m",
        "timestamp": "2026-01-01T00:00:00Z",
        "skill": "s",
        "skill_version": "1.0.0",
        "prompt_commit": None,
        "dataset_commit": None,
        "model_id": "m",
        "served_model": "m-1",
        "provider": "openai",
        "replicates": max(map(len, cases.values()), default=1),
        "seed": 0,
        "shard": None,
        "n_cases": len(cases),
        "planned": planned,
        "scored": planned,
        "coverage": answered / planned if planned else 0.0,
        "complete": True,
        "stopped": None,
        "primary_metric": "field_level_f1",
        "accuracy": dict.fromkeys(metrics, NOTHING),
        "reproducibility": {},
        "per_field": {},
        "failures": {},
        "reasons": {},
        "retries": 0,
        "tokens": {"input": 10, "output": 10},
        "cost_usd": 0.0,
        "latency_s": {"p50": 0.5, "p95": 0.9},
        "settings": {
            "api_model": "m-1",
            "profile": "sampled",
            "structured_output": "json_schema",
            "max_output_tokens": 100,
            "sent": {},
            "unavailable": ["seed"],
            "params": {},
            "timeout_s": 20.0,
        },
        "digests": {"prompt": "p", "schema": "s", "settings": "m", "datasets": "d"},
        "evaluator_version": "0.1.0",
        "per_case": [
            {
                "case_id": case_id,
                "accuracy": {},
                "reproducibility": {"pairwise_exact_match": agreement[case_id]} if case_id in agreement else {},
                "failures": {},
                "digest": digest(case_id),
                "outcomes": [_outcome(score) for score in scores],
                "replicates": {
                    name: [None if isinstance(score, str) else score for score in by_case[case_id]]
                    for name, by_case in metrics.items()
                    if case_id in by_case
                },
                "fields": {
                    path: {"right": by_case[case_id][0], "n": by_case[case_id][1]}
                    for path, by_case in fields.items()
                    if case_id in by_case
                },
            }
            for case_id, scores in cases.items()
        ],
    }
    return Record.model_validate({**value, **changed})


def _outcome(score: Score) -> str:
    return score if isinstance(score, str) else SCORED


def keep(library: Library, *records: Record) -> None:
    """Put records where a library's component has them, and their rows on its leaderboard."""
    keep_in(library.component, *records)


def keep_in(component: Path, *records: Record) -> None:
    """Put records where a component, by its folder, has them, and their rows on its leaderboard."""
    for record in records:
        write_record(component / "evals" / "records" / f"{record.run_id}.json", record)
    append_rows(component / "leaderboard.json", component.name, [record.row() for record in records if record.has_row])


def a_run(version: str, day: int, cases: Mapping[str, Sequence[Score]], **changed: Any) -> Record:
    """A record of the library's component: a version on a day of January 2026, on model `m` unless told otherwise."""
    model_id = changed.get("model_id", "m")
    return a_record(
        cases,
        **{
            "skill": SKILL,
            "skill_version": version,
            "run_id": f"202601{day:02d}T080000Z-abc{day:03d}-{model_id}",
            "timestamp": f"2026-01-{day:02d}T08:00:00Z",
            **changed,
        },
    )
