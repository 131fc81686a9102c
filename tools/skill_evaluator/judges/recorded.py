"""A folder of judgings → the newest of them and their results, each judge beside its control.

The control is the newest calibration of the same judge, settings and prompts on planted pairs.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_json, validated
from skill_evaluator.judges.asking.judging import JUDGING, RESULTS, JudgeMode, read_judging
from skill_evaluator.judges.asking.results import JudgingHead
from skill_evaluator.judges.calibration.detection import measured_by, rates_beside
from skill_evaluator.judges.calibration.results import BatchDimension, JudgeCalibration
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression_results import JudgeRegressions, RegressionResults
from skill_evaluator.judges.modes.scoring import RESULTS_VERSION, ScoreResults
from skill_evaluator.judges.panel.cascade import CascadeResults, RegressionCascadeResults, ScoreCascadeResults
from skill_evaluator.text import digest

JudgingResults = ScoreResults | PairwiseResults | RegressionResults | JudgeCalibration
_KINDS: dict[tuple[JudgeMode, bool], type[JudgingResults]] = {  # whether it is a cascade
    ("score", False): ScoreResults,
    ("score", True): ScoreCascadeResults,
    ("pairwise", False): PairwiseResults,
    ("pairwise", True): CascadeResults,
    ("regression", False): RegressionResults,
    ("regression", True): RegressionCascadeResults,
    ("calibrate", False): JudgeCalibration,
}
RESULTS_OF = frozenset(mode for mode, _ in _KINDS)  # drafts are judgings, too, and have no results


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudging:
    """A judging with its results."""

    head: JudgingHead
    results: JudgingResults


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


def read_recorded(folder: Path) -> RecordedJudging | None:
    """Read the judging in a folder; return None for one without results, which a draft never has.

    Raise JudgeError for what cannot be read.
    """
    mode = read_judging(folder).mode
    if mode not in RESULTS_OF or not (folder / RESULTS).exists():
        return None
    return _read(folder / RESULTS, mode)


def _read(path: Path, mode: JudgeMode) -> RecordedJudging:
    """Read results of a judging; raise JudgeError for what cannot be read."""
    value = read_json(path, JudgeError)
    if not isinstance(value, dict):
        raise JudgeError(f"{path} holds no results")
    version = value.get("results_version")
    if isinstance(version, int) and version > RESULTS_VERSION:
        raise JudgeError(f"{path} has results_version {version}, this evaluator knows {RESULTS_VERSION}; upgrade it")
    kind = _KINDS.get((mode, "cascade" in value), _KINDS[mode, False])
    results = validated(kind, value, path, JudgeError)
    if results.judging is None:
        raise JudgeError(f"{path} does not say which judging it is of")
    return RecordedJudging(head=results.judging, results=results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    """The rates of a judge by dimension, with those of its control; without one `problem` says why there is none."""

    rates: list[BatchDimension]
    calibration: str | None = None
    problem: str = ""


def beside_controls(
    results: RegressionResults, judge: JudgeRegressions, calibrations: Iterable[JudgeCalibration]
) -> Controlled:
    """Return what a judge of a batch reports beside its control; `calibrations` are those there are, newest first."""
    problem = measured_by(judge.judge, results.judging.prompts, None)
    for calibration in calibrations:
        measured = measured_by(judge.judge, results.judging.prompts, calibration)
        if not isinstance(measured, str):
            name = None if calibration.judging is None else calibration.judging.id
            return Controlled(rates=rates_beside(judge.dimensions, measured), calibration=name)
        problem = measured
    return Controlled(rates=rates_beside(judge.dimensions, {}), problem=str(problem))
