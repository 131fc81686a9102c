"""An `ExportedRun` → results of promptfoo as JSON, which `promptfoo import` takes for its viewer."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skill_evaluator.records.record import Record
from skill_evaluator.reports.inspect_log import OURS
from skill_evaluator.scoring.exported import ExportedAnswer, ExportedRun

_NONE, _ASSERT, _ERROR = 0, 1, 2  # its failureReason


def promptfoo_results(run: ExportedRun, left_out: Counter[str]) -> Iterator[str]:
    """Yield the text of a file of results, answer by answer, and what they add up to last.

    promptfoo has no answer without a score: one that the primary metric does not measure is left out, and counted.
    """
    record = run.record
    sums = _Sums()
    yield f'{{"evalId": {json.dumps(f"eval-{record.run_id}")}, "results": {{"version": 3, "results": ['
    mark = "\n"
    for answer in run.answers():
        score = answer.scores.get(record.primary_metric)
        if score is None and not answer.failed:
            left_out[answer.case_id] += 1
            continue
        result = _result(answer, 0.0 if score is None else score, sums.outcomes.total(), run)
        sums.add(result)
        yield mark + json.dumps(result, ensure_ascii=False)
        mark = ",\n"
    ended = json.dumps(_ending(run, sums), ensure_ascii=False)
    about = {"config": _config(record), "shareableUrl": None, "metadata": {"evaluationCreatedAt": record.timestamp}}
    yield f"\n], {ended[1:]}, {json.dumps(about, ensure_ascii=False)[1:]}\n"


@dataclass(slots=True)
class _Sums:
    """What promptfoo adds up over the results of a prompt; its viewer divides by the counts."""

    outcomes: Counter[str] = field(default_factory=Counter)
    score: float = 0.0
    latency_ms: int = 0
    named: dict[str, list[float]] = field(default_factory=dict)

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result."""
        failed = result["failureReason"] == _ERROR
        self.outcomes["errors" if failed else "successes" if result["success"] else "failures"] += 1
        self.score += result["score"]
        self.latency_ms += result["latencyMs"] or 0
        for name, score in result["namedScores"].items():
            self.named.setdefault(name, []).append(score)


def _config(record: Record) -> dict[str, Any]:
    said = {"skill": record.skill, "skill_version": record.skill_version, "primary_metric": record.primary_metric}
    return {"description": f"{record.skill} {record.skill_version}", "metadata": {OURS: said}}


def _prompt(run: ExportedRun) -> dict[str, str]:
    return {"raw": run.prompt or "", "label": f"{run.record.skill} {run.record.skill_version}"}


def _ending(run: ExportedRun, sums: _Sums) -> dict[str, Any]:
    """Return what comes after the results: the prompt with its figures, and the same figures for all."""
    record = run.record
    usage = {**_tokens(record.tokens.input, record.tokens.output), "numRequests": record.planned}
    metrics = {
        "score": sums.score,
        "testPassCount": sums.outcomes["successes"],
        "testFailCount": sums.outcomes["failures"],
        "testErrorCount": sums.outcomes["errors"],
        "assertPassCount": 0,
        "assertFailCount": 0,
        "totalLatencyMs": sums.latency_ms,
        "tokenUsage": usage,
        "namedScores": {name: sum(scores) for name, scores in sums.named.items()},
        "namedScoresCount": {name: len(scores) for name, scores in sums.named.items()},
        "cost": record.cost_usd or 0,  # which is how promptfoo says that no price is known
    }
    prompt = {**_prompt(run), "provider": record.model_id, "metrics": metrics}
    totals = {name: sums.outcomes[name] for name in ("successes", "failures", "errors")}
    return {"timestamp": record.timestamp, "prompts": [prompt], "stats": {**totals, "tokenUsage": usage}}


def _result(answer: ExportedAnswer, score: float, place: int, run: ExportedRun) -> dict[str, Any]:
    """Return one answer; it passes with the full primary score, since promptfoo demands that one passes or fails."""
    variables = {"document": answer.document, "ground_truth": answer.truth}
    known = {name: text for name, text in variables.items() if text is not None}
    passed = not answer.failed and score == 1.0
    result = {
        "promptIdx": 0,
        "testIdx": place,
        "testCase": {"description": answer.case_id, "vars": known, "assert": []},
        "promptId": "",
        "provider": {"id": run.record.model_id, "label": ""},
        "prompt": _prompt(run),
        "vars": known,
        "success": passed,
        "score": score,
        "failureReason": _ERROR if answer.failed else _NONE if passed else _ASSERT,
        "latencyMs": None if answer.latency_s is None else round(answer.latency_s * 1000),
        "gradingResult": {"pass": passed, "score": score, "reason": answer.outcome, "namedScores": dict(answer.scores)},
        "namedScores": dict(answer.scores),
        "metadata": {
            OURS: {"outcome": answer.outcome, "case_digest": answer.case_digest, "unmeasured": answer.unmeasured}
        },
    }
    if answer.failed:
        result["error"] = f"{answer.outcome}: {answer.message}".removesuffix(": ")
    if answer.completion is not None:
        usage = _tokens(answer.completion.usage.input_tokens, answer.completion.usage.output_tokens)
        result["response"] = {"output": answer.completion.text, "tokenUsage": usage, "cached": False}
    return result


def _tokens(read: int | None, written: int | None) -> dict[str, int]:
    counts = {"prompt": read, "completion": written}
    known = {name: count for name, count in counts.items() if count is not None}
    return {**known, "total": sum(known.values())} if known else {}
