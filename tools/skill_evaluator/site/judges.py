"""The page that lists the newest judge runs of a folder, and a page for each of them.

Evidence, justifications and judged texts are only in the folder of the judge run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_evaluator.display.sheets import Cell
from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_versioned
from skill_evaluator.judges.calibration.results import JudgeCalibration, read_calibration
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression import RegressionResults
from skill_evaluator.judges.modes.results import RESULTS_VERSION
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.prompting.judging import JUDGING, RESULTS, JudgeMode, read_judge_run
from skill_evaluator.judges.review.queue import queue_in, status_lines
from skill_evaluator.library.config import Settings
from skill_evaluator.reports.judge_results import judge_outcome, judge_run_blocks
from skill_evaluator.site import SiteFolder, refuse_page_name
from skill_evaluator.site.rendering import write_page

JudgeRunResults = ScoreResults | PairwiseResults | RegressionResults | JudgeCalibration
_KINDS: Mapping[JudgeMode, tuple[type[JudgeRunResults], str]] = {  # the other modes have no results
    "score": (ScoreResults, "scores"),
    "pairwise": (PairwiseResults, "comparisons"),
    "regression": (RegressionResults, "regressions"),
    "calibrate": (JudgeCalibration, "calibration"),
}
_MAX_JUDGE_RUNS = 100  # the newest ones


def write_judges(site: SiteFolder, judgements: Path, config: Path, settings: Settings) -> None:
    """Write the list of the newest judge runs, a page for each, and one for the calibration that the settings name."""
    # names begin with the time
    folders = sorted((path.parent for path in judgements.glob(f"*/{JUDGING}")), reverse=True)
    rows, problems, unfinished = [], [], []
    for folder in folders[:_MAX_JUDGE_RUNS]:
        try:
            refuse_page_name(folder.name, JudgeError)
            mode = read_judge_run(folder).mode
            if mode in _KINDS and (folder / RESULTS).exists():
                rows.append(_write_judge_run(site, folder, mode))
            elif mode in _KINDS:
                unfinished.append(folder.name)
        except JudgeError as problem:
            problems.append({"name": folder.name, "reason": str(problem)})
            site.note(f"judge run {folder.name}", problem)
    write_page(
        site,
        "judges.html",
        "judges.html",
        rows=sorted(rows, key=lambda row: (row["head"].created, row["id"]), reverse=True),
        calibration=_write_calibration(site, config, settings),
        problems=problems,
        unfinished=unfinished,
        left_out=max(0, len(folders) - _MAX_JUDGE_RUNS),
        queue=_queue_status(site, config),
    )


def _write_calibration(site: SiteFolder, config: Path, settings: Settings) -> Cell | None:
    """Write the page of the calibration that the settings name, and return its outcome.

    Return None if the settings name none, or if it cannot be read.
    """
    try:
        calibration = read_calibration(config, settings)
    except JudgeError as problem:
        site.note("calibration of the settings", problem)
        return None
    if calibration is None:
        return None
    row = {"id": settings.policy.judge.calibration, "of": ""}
    return _write_results(site, "calibration.html", row, calibration)


def _write_results(site: SiteFolder, address: str, row: dict[str, Any], results: JudgeRunResults) -> Cell:
    outcome, following = judge_outcome(results)
    blocks = judge_run_blocks(results)
    write_page(site, address, "judge_run.html", row=row, outcome=outcome, following=following, page_blocks=blocks)
    return outcome


def _write_judge_run(site: SiteFolder, folder: Path, mode: JudgeMode) -> dict[str, Any]:
    """Write the page of a judge run and return its row of the list. Raise JudgeError for invalid results."""
    (kind, noun), path = _KINDS[mode], folder / RESULTS
    results: JudgeRunResults = read_versioned(kind, path, "results_version", RESULTS_VERSION, JudgeError)
    if results.judging is None:
        raise JudgeError(f"{path} is not the result of a judge run: it has no `judging`")
    judges = [judge.judge if isinstance(judge.judge, str) else judge.judge.model_id for judge in results.judges]
    address = f"judges/{folder.name}.html"
    row = {"head": results.judging, "judges": judges, "of": noun, "id": folder.name, "address": address}
    return {**row, "outcome": _write_results(site, address, row, results)}


def _queue_status(site: SiteFolder, config: Path) -> list[str] | None:
    """Return lines on the review queue that number the reviewers. Return None if it is empty or cannot be read."""
    queue = queue_in(config)
    try:
        items = queue.items()
        labels = queue.labels(items)
    except JudgeError as problem:
        site.note("review queue", problem)
        return None
    names = {name: f"reviewer {number}" for number, name in enumerate(sorted({label.reviewer for label in labels}), 1)}
    nameless = [label.model_copy(update={"reviewer": names[label.reviewer], "note": ""}) for label in labels]
    return status_lines(items, nameless) if items else None
