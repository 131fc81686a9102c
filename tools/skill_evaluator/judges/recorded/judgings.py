"""A folder of judgings → their results, the newest first, and why others cannot be shown.

One judging that is broken or unfinished hides no other.
"""

from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_json, validated
from skill_evaluator.judges.asking.judging import JUDGING, JudgeMode, read_judging
from skill_evaluator.judges.asking.papers import RESULTS
from skill_evaluator.judges.asking.results import JudgingHead
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration
from skill_evaluator.judges.cascade.results import CascadeResults, RegressionCascadeResults, ScoreCascadeResults
from skill_evaluator.judges.pairwise.results import PairwiseResults
from skill_evaluator.judges.regression.results import RegressionResults
from skill_evaluator.judges.scoring.results import RESULTS_VERSION, ScoreResults

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
_MODES = frozenset(mode for mode, _ in _KINDS)  # drafts are judgings, too, and have no results


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudging:
    """A judging with its results."""

    head: JudgingHead
    results: JudgingResults


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudgings:
    """The judgings of a folder, the newest first. `problems`: by the name of its folder, why one cannot be read.

    `unfinished` have no results yet; `left_out` counts those that are older than the newest that were read.
    """

    judgings: list[RecordedJudging]
    problems: dict[str, JudgeError]
    unfinished: list[str]
    left_out: int


def recorded_judgings(place: Path, most: int) -> RecordedJudgings:
    """Read the newest judgings of a folder, `most` of them; a folder that is not there has none."""
    names = sorted((path.parent.name for path in place.glob(f"*/{JUDGING}")), reverse=True)
    found: dict[str, RecordedJudging] = {}
    problems: dict[str, JudgeError] = {}
    unfinished = []
    for name in names[:most]:
        folder = place / name
        try:
            mode = read_judging(folder).mode
            if mode not in _MODES:
                continue
            if (folder / RESULTS).exists():
                recorded = _read(folder / RESULTS, mode)
                found.setdefault(recorded.head.id, recorded)
            else:
                unfinished.append(name)
        except JudgeError as problem:
            problems[name] = problem
    newest = sorted(found.values(), key=lambda recorded: (recorded.head.created, recorded.head.id), reverse=True)
    return RecordedJudgings(
        judgings=newest, problems=problems, unfinished=unfinished, left_out=max(0, len(names) - most)
    )


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
