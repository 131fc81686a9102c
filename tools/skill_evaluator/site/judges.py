"""The judges' page: the newest judge runs of a folder, with the results of each.

Evidence, justifications and judged texts are not on the page; the folder of the judge run has them.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_evaluator import __version__
from skill_evaluator.display.pages import Heading, Lines, site_sections
from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_json, validated
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, read_calibration
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression_results import RegressionResults
from skill_evaluator.judges.modes.results import RESULTS_VERSION
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.prompting.judging import JUDGING, RESULTS, JudgeMode, read_judge_run
from skill_evaluator.judges.prompting.results import JudgeRunHead
from skill_evaluator.judges.review.queue import queue_in, status_lines
from skill_evaluator.library.config import Settings
from skill_evaluator.reports.judge_calibration import calibration_page, calibration_words
from skill_evaluator.reports.judge_results import judged_blocks, judged_doubts
from skill_evaluator.reports.judging import share
from skill_evaluator.site.writing import SiteFolder, data_script, refuse_page_name
from skill_evaluator.text import canonical_json, counted, digest

JudgingResults = ScoreResults | PairwiseResults | RegressionResults | JudgeCalibration
_KINDS: Mapping[JudgeMode, type[JudgingResults]] = {  # drafts are judge runs, too, without results
    "score": ScoreResults,
    "pairwise": PairwiseResults,
    "regression": RegressionResults,
    "calibrate": JudgeCalibration,
}
_MAX_JUDGINGS = 100  # the newest ones
_OF_SETTINGS = "of settings"  # the page of the calibration in the settings: no judge run has a space in its name
_MOODS = {"ship": "improved", "block": "regressed"}


def judging_digest(folder: Path) -> str:
    """Return a digest of the questions and results of a judge run. Raise JudgeError if its files cannot be read."""
    parts = [folder / JUDGING, folder / RESULTS]
    try:
        return digest(b"".join(hashlib.sha256(part.read_bytes()).digest() for part in parts if part.exists()))
    except OSError as problem:
        raise JudgeError(f"{folder} cannot be read: {problem.strerror}") from None


def read_recorded(folder: Path) -> JudgingResults | None:
    """Read the results of a judge run. Return None if it has none, as a draft. Raise JudgeError if they are invalid."""
    mode, path = read_judge_run(folder).mode, folder / RESULTS
    if mode not in _KINDS or not path.exists():
        return None
    value = read_json(path, JudgeError)
    if not isinstance(value, dict):
        raise JudgeError(f"{path} holds no results")
    version = value.get("results_version")
    if isinstance(version, int) and version > RESULTS_VERSION:
        raise JudgeError(f"{path} has results_version {version}, this evaluator knows {RESULTS_VERSION}; upgrade it")
    results = validated(_KINDS[mode], value, path, JudgeError)
    if results.judging is None:
        raise JudgeError(f"{path} does not name its judging")
    return results


def write_judges(site: SiteFolder, place: Path, config: Path, settings: Settings) -> None:
    """Write the results of the newest judge runs and of the calibration. A run that cannot be read has its reason."""
    named = _calibration(site, config, settings)
    if named is not None:
        page = {"file": settings.policy.judge.calibration, "sections": site_sections(calibration_page(named).blocks)}
        site.write_data(f"judgings/{_OF_SETTINGS}", page)
    folders = sorted((path.parent for path in place.glob(f"*/{JUDGING}")), reverse=True)  # names begin with the time
    rows, problems, unfinished = [], [], []
    for folder in folders[:_MAX_JUDGINGS]:
        try:
            row = _write_page(site, folder)
            if row is not None:
                rows.append(row)
            elif read_judge_run(folder).mode in _KINDS:
                unfinished.append(folder.name)
        except JudgeError as problem:
            problems.append({"name": folder.name, "why": str(problem)})
            site.note(f"judging {folder.name}", problem)
    site.write_data(
        "judges",
        {
            "judgings": sorted(rows, key=lambda row: (row["created"], row["id"]), reverse=True),
            "calibration": None if named is None else calibration_words(named),
            "problems": problems,
            "unfinished": unfinished,
            "left_out": max(0, len(folders) - _MAX_JUDGINGS),
            "queue": _queue(site, config),
        },
    )


def _calibration(site: SiteFolder, config: Path, settings: Settings) -> JudgeCalibration | None:
    """Return the calibration in the settings, if it can be read."""
    try:
        return read_calibration(config, settings)
    except JudgeError as problem:
        site.note("calibration of the settings", problem)
        return None


def _write_page(site: SiteFolder, folder: Path) -> dict[str, Any] | None:
    """Write the page of a judge run unless its files are unchanged. Return its row, or None if it has no results."""
    refuse_page_name(folder.name, JudgeError)
    file = f"data/judgings/{folder.name}.js"
    first_line = f"/* {digest(canonical_json([__version__, judging_digest(folder)]))} */"
    if site.keeps(file, first_line):
        kept: dict[str, Any] = json.loads(site.lines(file)[1].removeprefix("/* ").removesuffix(" */"))
        return kept
    results = read_recorded(folder)
    if results is None or results.judging is None:
        return None
    row = {**_row(results.judging, results), "id": folder.name}
    if isinstance(results, JudgeCalibration):
        sections = site_sections(calibration_page(results).blocks)
    else:
        sections = site_sections([*judged_blocks(results), *judged_doubts(results)])
    text = json.dumps(row).replace("/", "\\/")  # so that no name in it ends the comment
    script = data_script(f"judgings/{folder.name}", {**row, "sections": sections})
    site.write(file, f"{first_line}\n/* {text} */\n{script}")
    return row


def _row(head: JudgeRunHead, results: JudgingResults) -> dict[str, Any]:
    """Return the row of a judge run in the list of all."""
    words, mood = _outcome(results)
    records = [judge.record if isinstance(judge, JudgeResult) else judge.judge for judge in results.judges]
    if any(record is not None and record.stopped for record in records):
        made = counted(sum(record.answered for record in records if record is not None), "answer")
        words, mood = f"incomplete, with {made}: {words}", "inconclusive"
    return {
        "created": head.created,
        "mode": head.mode,
        "component": head.skill,
        "judges": [judge.judge if isinstance(judge.judge, str) else judge.judge.model_id for judge in results.judges],
        "items": head.items,
        "rubric": Path(head.rubric_file).name,
        "source": Path(head.source).name if head.source else None,
        "outcome": words,
        "mood": mood,
    }


def _outcome(results: JudgingResults) -> tuple[str, str | None]:
    """Return the outcome of a judge run in a few words, and its colour."""
    if isinstance(results, JudgeCalibration):
        return calibration_words(results)
    if isinstance(results, RegressionResults):
        decision = results.ship_decision
        mood = "regressed" if results.alerting else _MOODS.get(decision or "", "inconclusive")
        return f"{decision or 'no decision'}{', and a rate alerts' * results.alerting}", mood
    if isinstance(results, ScoreResults):
        return f"from 0 to 1: {'; '.join(f'{one.judge.model_id} {share(one.summary)}' for one in results.judges)}", None
    wins = [f"{one.judge.model_id} {share(one.criteria[-1].wins)}" for one in results.judges if one.criteria]
    return f"output 1 wins: {'; '.join(wins)}", None


def _queue(site: SiteFolder, config: Path) -> list[dict[str, Any]] | None:
    """Return the status of the review queue without the names of reviewers and their notes; None if it is empty."""
    queue = queue_in(config)
    try:
        items = queue.items()
        labels = queue.labels(items)
    except JudgeError as problem:
        site.note("review queue", problem)
        return None
    names = {name: f"reviewer {number}" for number, name in enumerate(sorted({label.reviewer for label in labels}), 1)}
    nameless = [label.model_copy(update={"reviewer": names[label.reviewer], "note": ""}) for label in labels]
    status = Lines(status_lines(items, nameless))
    return site_sections([Heading("Review queue", level=2), status]) if items else None
