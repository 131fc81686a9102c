"""A run's page: every answer of a run, failures first, each with the leaves in which it differs.

Its rows have the beginning of each answer; the texts are a file of their own, loaded when one is unfolded or sought.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from skill_evaluator.display.safe_text import abridged
from skill_evaluator.library.cases import Case
from skill_evaluator.site.cases import JUDGED_BY, SHOWN_BY, ShownRun
from skill_evaluator.site.writing import SiteFolder, data_script, fitting, program_digest
from skill_evaluator.text import canonical_json, digest, listed

_OUTPUTS = 50  # distinct ones of a case
_ROWS = 2_000_000  # characters of all rows of a run
_TEXTS = 10_000_000  # of all its answers, each of which has an equal part
_BEGINNING = 160  # characters of an answer in its row
_LEAVES = 5  # that differ
_VALUE = 60


def write_runs(site: SiteFolder, runs: Sequence[ShownRun], cases: Mapping[str, Case]) -> None:
    """Write the page of each run; their answers may be shown, and `cases` are what they answer."""
    for run in runs:
        key = f"runs/{run.recorded.component.name}/{run.id}"
        for part in ("rows", "texts"):
            site.when_opened(f"data/{key}/{part}.js", partial(_write_run, site, run, cases, key))


def _write_run(site: SiteFolder, run: ShownRun, cases: Mapping[str, Case], key: str) -> None:
    """Write the rows and the texts of a run, unless those are there that show the same."""
    digests = run.recorded.component.digests
    known = {
        "program": program_digest(*SHOWN_BY),
        "rules": [digests.get(name) for name in JUDGED_BY],
        "cases": [cases[case_id].digest if case_id in cases else None for case_id in sorted(run.case_ids)],
        **run.shown(True),
    }
    first_line = f"/* {digest(canonical_json(known))} */\n"
    if all(site.keeps(f"data/{key}/{part}.js", first_line.strip()) for part in ("rows", "texts")):
        return
    record, whys = run.record, dict[str, list[str]]()
    rows: list[dict[str, Any]] = []
    for case_id in run.case_ids:
        part = run.part(case_id, cases.get(case_id), _OUTPUTS)
        rows += [_row(case_id, part["planned"], output) for output in part["outputs"] or ()]
        gone = [] if case_id in cases else ["no longer among the fixtures."]
        for why in filter(None, (*gone, part["why"], part["others"], *part["remarks"])):
            whys.setdefault(why, []).append(case_id)
    rows.sort(key=_worst)
    score = record.accuracy.get(record.primary_metric)
    kept, left = fitting(({**row, "text": row["text"][:_BEGINNING]} for row in rows), _ROWS)
    head = {
        "run": run.id,
        "model": record.model_id,
        "version": record.skill_version,
        "metric": record.primary_metric,
        "score": None if score is None else score.strict_mean,
        "planned": record.planned,
        "remarks": [
            why if len(ids) == len(run.case_ids) else f"{listed(sorted(ids), 4)}: {why}" for why, ids in whys.items()
        ],
        "rows": kept,
        "left": left,
    }
    room = _TEXTS // max(1, len(kept))
    texts = [row["text"][:room] for row in rows[: len(kept)]]
    for name, value in (("rows", head), ("texts", texts)):
        site.write(f"data/{key}/{name}.js", first_line + data_script(f"{key}/{name}", value))


def _row(case_id: str, planned: int, output: Mapping[str, Any]) -> dict[str, Any]:
    text = output["texts"][0] if output["texts"] else {"text": output["message"], "length": 0}
    off = []
    for leaf in output["differing"]:
        values = [abridged("".join(text for text, _ in leaf[side]), _VALUE) for side in ("truth", "output")]
        off.append([leaf["at"], leaf["field"], leaf["outcome"], *values])
    return {
        "case": case_id,
        **{name: output[name] for name in ("replicates", "times", "outcome", "reason", "score", "metrics")},
        "planned": planned,
        "off": off[:_LEAVES],
        "fields": sorted({field for _, field, *_ in off}),
        "more": max(0, len(off) - _LEAVES) + output["left"],
        **text,
    }


def _worst(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what puts the rows in order: what was not scored, then the lowest scores, those without one last."""
    score = 2.0 if row["score"] is None else row["score"]
    return row["outcome"] == "scored", score, -len(row["off"]), row["case"], -row["times"]
