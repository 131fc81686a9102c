"""The page of a run: every distinct output, failures first, each with the values that differ from the ground truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from skill_evaluator.display.addresses import case_address, run_address
from skill_evaluator.display.safe_text import abridged
from skill_evaluator.library.cases import Case
from skill_evaluator.site.cases import ShownRun
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState
from skill_evaluator.site.writing import first_rows
from skill_evaluator.text import listed

_MAX_OUTPUTS = 50  # distinct outputs of a case
_MAX_ROWS = 300
_MAX_TEXTS = 300_000  # characters of all outputs; each has an equal part
_MAX_SHOWN_VALUES = 5  # values of an output that differ
_MAX_VALUE = 60  # characters
_BEGINNING = 160  # characters of an output in its row


def write_runs(pages: Pages, runs: Sequence[ShownRun], cases: Mapping[str, Case], state: ComponentState) -> None:
    """Write the page of each run; `cases` are those of the outputs."""
    newest = {run.entry.model_id: run for run in reversed(runs)}
    for run in runs:
        later = newest[run.entry.model_id]
        pages.write(
            run_address(state.component, run.id),
            "run.html",
            component=state.component,
            state=state,
            newest_run="" if later is run else run_address(state.component, later.id),
            **_run_page(run, cases),
        )


def _run_page(run: ShownRun, cases: Mapping[str, Case]) -> dict[str, Any]:
    """Return the rows of a run and the reasons why outputs are not among them."""
    record, whys = run.record, dict[str, list[str]]()
    rows: list[dict[str, Any]] = []
    for case_id in sorted(run.case_ids):
        part = run.part(case_id, cases.get(case_id), _MAX_OUTPUTS)
        rows += [_row(run, case_id, part["planned"], output) for output in part["outputs"]]
        gone = [] if case_id in cases else ["no longer among the fixtures."]
        for why in filter(None, (*gone, part["why"], part["others"], *part["remarks"])):
            whys.setdefault(why, []).append(case_id)
    rows.sort(key=_worst_first)
    score = record.accuracy.get(record.primary_metric)
    shown, left = first_rows(rows, _MAX_ROWS)
    room = _MAX_TEXTS // max(1, len(shown))
    return {
        "model": record.model_id,
        "version": record.skill_version,
        "metric": record.primary_metric,
        "score": None if score is None else score.strict_mean,
        "planned": record.planned,
        "remarks": [
            why if len(ids) == len(run.case_ids) else f"{listed(sorted(ids), 4)}: {why}" for why, ids in whys.items()
        ],
        "rows": [
            {**row, "text": row["text"][:_BEGINNING], "whole": row["text"][:room] if row["length"] > _BEGINNING else ""}
            for row in shown
        ],
        "left": left,
    }


def _row(run: ShownRun, case_id: str, planned: int, output: Mapping[str, Any]) -> dict[str, Any]:
    text = output["texts"][0] if output["texts"] else {"text": output["message"], "length": len(output["message"])}
    off = []
    for value in output["differing"]:
        shown = [abridged("".join(part for part, _ in value[side]), _MAX_VALUE) for side in ("truth", "output")]
        off.append({"at": value["at"], "outcome": value["outcome"], "truth": shown[0], "output": shown[1]})
    is_right = output["outcome"] == "scored" and not off and output["score"] in (None, 1.0)
    kinds = ["not scored"] * (output["outcome"] != "scored") + ["not right"] * (not is_right)
    return {
        "case": case_id,
        "address": f"{case_address(run.recorded.component.name, case_id)}#run-{run.id}",
        **{name: output[name] for name in ("replicates", "times", "outcome", "reason", "score")},
        "planned": planned,
        "off": off[:_MAX_SHOWN_VALUES],
        "fields": sorted({value["field"] for value in output["differing"]}),
        "kinds": kinds,
        "more": max(0, len(off) - _MAX_SHOWN_VALUES) + output["left"],
        "text": text["text"],
        "length": text["length"],
    }


def _worst_first(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a row: outputs that are not scored first, then the lowest scores."""
    score = 2.0 if row["score"] is None else row["score"]
    return row["outcome"] == "scored", score, -len(row["off"]), row["case"], -row["times"]
