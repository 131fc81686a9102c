"""The judges' page: the newest judge runs of a folder, with the results of each.

Evidence, justifications and judged texts are not on the page; the folder of the judge run has them.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skill_evaluator import __version__
from skill_evaluator.display.pages import Heading, Lines, site_sections
from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_json, validated
from skill_evaluator.judges.asking.judging import JUDGING, RESULTS, JudgeMode, read_judging
from skill_evaluator.judges.asking.results import JudgingHead
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, read_calibration
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression_results import RegressionResults
from skill_evaluator.judges.modes.scoring import RESULTS_VERSION, ScoreResults
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.queue import ReviewLabel, queue_in, status_lines
from skill_evaluator.library.config import Settings
from skill_evaluator.reports.judge_calibration import calibration_page, calibration_words
from skill_evaluator.reports.judge_results import judged_blocks, judged_doubts
from skill_evaluator.reports.judging import share
from skill_evaluator.site.writing import SiteFolder, data_script, refuse_page_name
from skill_evaluator.text import canonical_json, counted, digest

JudgingResults = ScoreResults | PairwiseResults | RegressionResults | JudgeCalibration
_KINDS: dict[JudgeMode, type[JudgingResults]] = {
    "score": ScoreResults,
    "pairwise": PairwiseResults,
    "regression": RegressionResults,
    "calibrate": JudgeCalibration,
}
RESULTS_OF = frozenset(_KINDS)  # drafts are judge runs, too, without results


def newest_judgings(place: Path, most: int) -> tuple[list[Path], int]:
    """Return the folders of the newest judgings, and how many are older; a folder that is not there has none.

    The name of a judging begins with the moment it began.
    """
    folders = sorted((path.parent for path in place.glob(f"*/{JUDGING}")), reverse=True)
    return folders[:most], max(0, len(folders) - most)


def judging_digest(folder: Path) -> str:
    """Return a digest of what a judging asked and came to; raise JudgeError where its files cannot be read."""
    parts = [folder / JUDGING, folder / RESULTS]
    try:
        return digest(b"".join(hashlib.sha256(part.read_bytes()).digest() for part in parts if part.exists()))
    except OSError as problem:
        raise JudgeError(f"{folder} cannot be read: {problem.strerror}") from None


def read_recorded(folder: Path) -> JudgingResults | None:
    """Read the results of the judging in a folder; return None without any, as for a draft.

    Raise JudgeError for what cannot be read.
    """
    mode, path = read_judging(folder).mode, folder / RESULTS
    if mode not in RESULTS_OF or not path.exists():
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


_MOST = 100  # judgings, the newest ones
_OF_SETTINGS = "of settings"  # the page of the calibration that they name: no judging has a space in its name
_MOODS = {"ship": "improved", "block": "regressed"}


def _row(head: JudgingHead, results: JudgingResults) -> dict[str, Any]:
    """Return the line of a judging in the list of all."""
    judges = [judge.judge if isinstance(judge.judge, str) else judge.judge.model_id for judge in results.judges]
    words, mood = _outcome(results)
    records = [judge.record if isinstance(judge, JudgeResult) else judge.judge for judge in results.judges]
    if any(record is not None and record.stopped for record in records):
        made = counted(sum(record.answered for record in records if record is not None), "answer")
        words, mood = f"incomplete, with {made}: {words}", "inconclusive"
    return {
        "created": head.created,
        "mode": head.mode,
        "component": head.skill,
        "judges": judges,
        "items": head.items,
        "rubric": Path(head.rubric_file).name,
        "source": Path(head.source).name if head.source else None,
        "outcome": words,
        "mood": mood,
    }


def _outcome(results: JudgingResults) -> tuple[str, str | None]:
    """Say in a few words what a judging came to."""
    if isinstance(results, RegressionResults):
        decision = results.ship_decision
        mood = "regressed" if results.alerting else _MOODS.get(decision or "", "inconclusive")
        return f"{decision or 'no decision'}{', and a rate alerts' * results.alerting}", mood
    if isinstance(results, JudgeCalibration):
        return calibration_words(results)
    if isinstance(results, ScoreResults):
        parts = [f"{judge.judge.model_id} {share(judge.summary)}" for judge in results.judges]
        return f"from 0 to 1: {'; '.join(parts)}", None
    parts = [f"{judge.judge.model_id} {share(judge.criteria[-1].wins)}" for judge in results.judges if judge.criteria]
    return f"output 1 wins: {'; '.join(parts)}", None


def _sections(results: JudgingResults) -> list[dict[str, Any]]:
    """Return the sections of a judge run's page."""
    if isinstance(results, JudgeCalibration):
        return site_sections(calibration_page(results).blocks)
    return site_sections([*judged_blocks(results), *judged_doubts(results)])


def write_judges(site: SiteFolder, place: Path, config: Path, settings: Settings) -> None:
    """Write what judges found and what they are worth; a judging that cannot be read is listed with why."""
    named = _calibration(site, config, settings)
    if named is not None:
        page = {"file": settings.policy.judge.calibration, "sections": site_sections(calibration_page(named).blocks)}
        site.write_data(f"judgings/{_OF_SETTINGS}", page)
    folders, left_out = newest_judgings(place, _MOST)
    pages = _JudgingPages(site, folders)
    rows = sorted(pages.write(), key=lambda row: (row["created"], row["id"]), reverse=True)
    site.write_data(
        "judges",
        {
            "judgings": rows,
            "calibration": None if named is None else calibration_words(named),
            "problems": [{"name": name, "why": str(problem)} for name, problem in pages.problems.items()],
            "unfinished": pages.unfinished,
            "left_out": left_out,
            "queues": _queues(site, config, rows),
        },
    )


def _calibration(site: SiteFolder, config: Path, settings: Settings) -> JudgeCalibration | None:
    """Return the calibration that the settings name, if it can be read."""
    if settings.policy.judge.calibration is None:
        return None
    try:
        return read_calibration(config, settings)
    except JudgeError as problem:
        site.note("calibration of the settings", problem)
        return None


class _JudgingPages:
    """The pages of judgings. A page of unchanged files stays, unread; they are read one at a time."""

    def __init__(self, site: SiteFolder, folders: Sequence[Path]) -> None:
        self._site, self._folders = site, folders
        self.problems: dict[str, JudgeError] = {}
        self.unfinished: list[str] = []

    def write(self) -> list[dict[str, Any]]:
        """Write every page, and return the row of each in the list; what cannot be read is in `problems`."""
        digests = {}
        for folder in self._folders:
            with self._listing(folder.name):
                refuse_page_name(folder.name, JudgeError)
                digests[folder] = judging_digest(folder)
        rows = []
        for folder, own in digests.items():
            with self._listing(folder.name):
                first_line = f"/* {digest(canonical_json([__version__, own]))} */"
                row = self._kept(folder.name, first_line) or self._drawn(folder, first_line)
                rows += [row] if row is not None else []
        return rows

    @contextmanager
    def _listing(self, name: str) -> Iterator[None]:
        try:
            yield
        except JudgeError as problem:
            self.problems[name] = problem
            self._site.note(f"judging {name}", problem)

    def _kept(self, name: str, first_line: str) -> dict[str, Any] | None:
        """Return the row of a page that is there and shows the same; None where it does not."""
        file = f"data/judgings/{name}.js"
        if not self._site.keeps(file, first_line):
            return None
        row: dict[str, Any] = json.loads(self._site.lines(file)[1].removeprefix("/* ").removesuffix(" */"))
        return row

    def _drawn(self, folder: Path, first_line: str) -> dict[str, Any] | None:
        """Write the page of a judging and return its row; None for one without results."""
        results = read_recorded(folder)
        if results is None or results.judging is None:
            self.unfinished += [folder.name] if read_judging(folder).mode in RESULTS_OF else []
            return None
        row = {**_row(results.judging, results), "id": folder.name, "judging": results.judging.id}
        text = json.dumps(row).replace("/", "\\/")  # so that no name in it ends the comment
        page = data_script(f"judgings/{folder.name}", {**row, "sections": _sections(results)})
        self._site.write(f"data/judgings/{folder.name}.js", f"{first_line}\n/* {text} */\n{page}")
        return row


def _queues(site: SiteFolder, config: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state of the review queue: of all items, and of those that are from judgings of each component."""
    queue = queue_in(config)
    try:
        items = queue.items()
        labels = queue.labels(items)
    except JudgeError as problem:
        site.note("review queue", problem)
        return {}
    if not items:
        return {}
    queues = {"": _queue(items, labels)}
    components: dict[str, set[str]] = {}
    for row in rows:
        if row["component"] is not None:
            components.setdefault(row["component"], set()).add(row["judging"])
    for name, judgings in components.items():
        mine = {item_id: item for item_id, item in items.items() if item.judging in judgings}
        if mine:
            own = [label for label in labels if label.item in mine]
            queues[name] = _queue(mine, own)
    return queues


def _queue(items: Mapping[str, ReviewItem], labels: Sequence[ReviewLabel]) -> list[dict[str, Any]]:
    """Return the status of a queue without the names of reviewers and their notes."""
    names = {name: f"reviewer {number}" for number, name in enumerate(sorted({label.reviewer for label in labels}), 1)}
    nameless = [label.model_copy(update={"reviewer": names[label.reviewer], "note": ""}) for label in labels]
    return site_sections([Heading("Review queue", level=2), Lines(status_lines(items, nameless))])
