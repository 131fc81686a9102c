"""The page that lists the newest judge runs of a folder, and a page for each of them.

Evidence, justifications and judged texts are only in the folder of the judge run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_versioned
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, read_calibration
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression import RegressionResults
from skill_evaluator.judges.modes.results import RESULTS_VERSION
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.prompting.judging import JUDGING, RESULTS, JudgeMode, JudgeRunHead, read_judge_run
from skill_evaluator.judges.review.queue import queue_in, status_lines
from skill_evaluator.library.config import Settings
from skill_evaluator.reports.judge_results import calibration_words, decision_words, judge_run_blocks, share
from skill_evaluator.site import SiteFolder, refuse_page_name
from skill_evaluator.site.rendering import write_page
from skill_evaluator.text import counted

JudgeRunResults = ScoreResults | PairwiseResults | RegressionResults | JudgeCalibration
_KINDS: Mapping[JudgeMode, tuple[type[JudgeRunResults], str]] = {  # the other modes have no results
    "score": (ScoreResults, "scores"),
    "pairwise": (PairwiseResults, "comparisons"),
    "regression": (RegressionResults, "regressions"),
    "calibrate": (JudgeCalibration, "calibration"),
}
_MAX_JUDGE_RUNS = 100  # the newest ones
_MOODS = {"ship": "improved", "block": "regressed"}


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
        rows=sorted(rows, key=lambda row: (row["created"], row["id"]), reverse=True),
        calibration=_write_calibration(site, config, settings),
        problems=problems,
        unfinished=unfinished,
        left_out=max(0, len(folders) - _MAX_JUDGE_RUNS),
        queue=_queue_status(site, config),
    )


def _write_calibration(site: SiteFolder, config: Path, settings: Settings) -> tuple[str, str | None] | None:
    """Write the page of the calibration that the settings name. Return its outcome and colour.

    Return None if the settings name none, or if it cannot be read.
    """
    try:
        calibration = read_calibration(config, settings)
    except JudgeError as problem:
        site.note("calibration of the settings", problem)
        return None
    if calibration is None:
        return None
    outcome, mood = calibration_words(calibration)
    head = {"id": settings.policy.judge.calibration, "of": "", "outcome": outcome, "mood": mood}
    write_page(site, "calibration.html", "judge_run.html", row=head, page_blocks=judge_run_blocks(calibration))
    return outcome, mood


def _write_judge_run(site: SiteFolder, folder: Path, mode: JudgeMode) -> dict[str, Any]:
    """Write the page of a judge run and return its row of the list. Raise JudgeError for invalid results."""
    (kind, noun), path = _KINDS[mode], folder / RESULTS
    results: JudgeRunResults = read_versioned(kind, path, "results_version", RESULTS_VERSION, JudgeError)
    if results.judging is None:
        raise JudgeError(f"{path} is not the result of a judge run: it has no `judging`")
    address = f"judges/{folder.name}.html"
    row = {**_judge_run_row(results.judging, results), "of": noun, "id": folder.name, "address": address}
    write_page(site, address, "judge_run.html", row=row, page_blocks=judge_run_blocks(results))
    return row


def _judge_run_row(head: JudgeRunHead, results: JudgeRunResults) -> dict[str, Any]:
    outcome, mood = _outcome_and_verdict(results)
    records = [judge.record if isinstance(judge, JudgeResult) else judge.judge for judge in results.judges]
    if any(record is not None and record.stopped for record in records):
        made = counted(sum(record.answered for record in records if record is not None), "answer")
        outcome, mood = f"incomplete, with {made}: {outcome}", "inconclusive"
    return {
        "created": head.created,
        "mode": head.mode,
        "component": head.skill,
        "judges": [judge.judge if isinstance(judge.judge, str) else judge.judge.model_id for judge in results.judges],
        "items": head.items,
        "rubric": Path(head.rubric_file).name,
        "outcome": outcome,
        "mood": mood,
    }


def _outcome_and_verdict(results: JudgeRunResults) -> tuple[str, str | None]:
    """Return the outcome of a judge run as text, and the verdict in whose colour it is shown, or None for no colour."""
    if isinstance(results, JudgeCalibration):
        return calibration_words(results)
    if isinstance(results, RegressionResults):
        mood = "regressed" if results.alerting else _MOODS.get(results.ship_decision or "", "inconclusive")
        return decision_words(results), mood
    if isinstance(results, ScoreResults):
        scores = "; ".join(f"{one.judge.model_id} {share(one.summary)}" for one in results.judges)
        return f"mean score from 0 to 1: {scores}", None
    wins = [f"{one.judge.model_id} {share(one.criteria[-1].wins)}" for one in results.judges if one.criteria]
    return f"output 1 wins: {'; '.join(wins)}", None


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
