"""An `ExportedRun` → a log of inspect_ai as JSON, sample by sample, which its `read_eval_log` and its viewer read."""

import json
from collections.abc import Iterator
from typing import Any

from skill_evaluator.records.record import SCORED, Record
from skill_evaluator.scoring.exported import ExportedAnswer, ExportedRun

OURS = "skill_evaluator"  # the key of what their format has no place for; `records import` reads it
_STOPS = {"stop": "stop", "length": "max_tokens", "too_large": "max_tokens", "refusal": "content_filter"}


def inspect_log(run: ExportedRun) -> Iterator[str]:
    """Yield the text of a log: all about the run, then a line a sample."""
    header = json.dumps(_header(run), ensure_ascii=False)
    yield f'{header[:-1]}, "samples": ['
    mark = "\n"
    for answer in run.answers():
        yield mark + json.dumps(_sample(answer, run.record), ensure_ascii=False)
        mark = ",\n"
    yield "\n]}\n"


def _header(run: ExportedRun) -> dict[str, Any]:
    record = run.record
    counts = {"input_tokens": record.tokens.input, "output_tokens": record.tokens.output}
    usage = {name: count for name, count in counts.items() if count is not None}
    config = {} if run.prompt is None else {"system_message": run.prompt}
    scores = [_score_of_run(record, name) for name in record.accuracy]
    return {
        "version": 2,
        "status": "success" if record.complete else "cancelled",
        "eval": {
            "eval_id": record.run_id,
            "run_id": record.run_id,
            "created": record.timestamp,
            "task": record.skill,
            "task_id": record.run_id,
            "task_version": record.skill_version,
            "dataset": {
                "name": record.skill,
                "samples": record.n_cases,
                "sample_ids": [case.case_id for case in record.per_case],
                "shuffled": False,
            },
            "model": record.model_id,
            "model_generate_config": config,
            "config": {"epochs": record.replicates},
            "metadata": {OURS: {"evaluator_version": record.evaluator_version, "provider": record.provider}},
        },
        "plan": {"name": "plan", "steps": [], "config": config},
        "results": {
            "total_samples": record.planned,
            "completed_samples": record.scored,
            "scores": scores,
            "headline": {"scorer": record.primary_metric, "score": record.primary_metric, "metric": "mean"},
        },
        "stats": {
            "started_at": record.timestamp,
            "completed_at": "",
            "model_usage": {record.model_id: {**usage, "total_tokens": sum(usage.values())}} if usage else {},
        },
    }


def _score_of_run(record: Record, name: str) -> dict[str, Any]:
    mean = record.accuracy[name].strict_mean
    metrics = {} if mean is None else {"mean": {"name": "mean", "value": mean, "params": {}}}
    return {"name": name, "scorer": name, "params": {}, "metrics": metrics}


def _sample(answer: ExportedAnswer, record: Record) -> dict[str, Any]:
    """Return one answer. inspect demands texts for input and target: where they are not at hand they are empty."""
    completion = answer.completion
    document = answer.document or ""
    messages = [{"role": "user", "content": document}] if document else []
    output: dict[str, Any] = {"model": record.model_id, "choices": [], "time": answer.latency_s}
    if completion is not None:
        said = {"role": "assistant", "content": completion.text, "source": "generate"}
        messages.append(said)
        output |= {
            "model": completion.served_model or record.model_id,
            "choices": [{"message": said, "stop_reason": _STOPS.get(completion.stop_reason, "unknown")}],
            "completion": completion.text,
            "usage": _usage(completion.usage.input_tokens, completion.usage.output_tokens),
        }
    said_of_it = {"outcome": answer.outcome, "case_digest": answer.case_digest, "unmeasured": answer.unmeasured}
    sample = {
        "id": answer.case_id,
        "epoch": answer.replicate + 1,
        "input": document,
        "target": answer.truth or "",
        "messages": messages,
        "output": output,
        "scores": {name: _score(answer, score) for name, score in answer.scores.items()},
        "metadata": {OURS: said_of_it},
    }
    if answer.failed:
        message = f"{answer.outcome}: {answer.message}".removesuffix(": ")
        sample["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}
    return sample


def _score(answer: ExportedAnswer, value: float) -> dict[str, Any]:
    return {"value": value, "explanation": None if answer.outcome == SCORED else answer.outcome}


def _usage(read: int | None, written: int | None) -> dict[str, int] | None:
    if read is None or written is None:
        return None
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
