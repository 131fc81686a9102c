"""The judges' page of a site: judgings of this machine, the calibration that the settings name, the review queue."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from skill_evaluator.commands.review_options import queue_in
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration
from skill_evaluator.judges.recorded.judgings import RecordedJudging, RecordedJudgings, recorded_judgings
from skill_evaluator.judges.regression.results import RegressionResults
from skill_evaluator.library.config import Settings
from skill_evaluator.reports.site.calibration import calibration_blocks, calibration_words
from skill_evaluator.reports.site.judges import judging_page, judging_row, queue_row
from skill_evaluator.reports.site.writing import SiteFolder

Judgements = Annotated[Path, typer.Option("--judgements", metavar="DIR", help="Where judgings are kept.")]
_MOST = 100  # judgings, the newest ones
_NAMED = "calibration"  # the page of the one that the settings name


def write_judges(
    site: SiteFolder, place: Path, config: Path, settings: Settings, free_text: Sequence[Mapping[str, Any]]
) -> None:
    """Write what judges found and what they are worth; a judging that cannot be read is listed with why.

    `free_text`: what judges say of fields in records, which are read elsewhere.
    """
    from skill_evaluator.judges.calibration.alerts import read_calibration  # imports numpy

    recorded = recorded_judgings(place, _MOST)
    for name, problem in recorded.problems.items():
        site.note(f"judging {name}", problem)
    named = None
    try:
        named = read_calibration(config, settings)
    except JudgeError as problem:
        site.note("calibration of the settings", problem)
    if named is not None:
        page = {"file": settings.policy.judge.calibration, "blocks": list(calibration_blocks(named))}
        site.write_data(f"judgings/{_NAMED}", page)
    _write_judgings(site, recorded, named)
    site.write_data(
        "judges",
        {
            "judgings": [judging_row(judging) for judging in recorded.judgings],
            "calibration": None if named is None else calibration_words(named),
            "problems": [{"name": name, "why": str(problem)} for name, problem in recorded.problems.items()],
            "unfinished": recorded.unfinished,
            "left_out": recorded.left_out,
            "free_text": list(free_text),
            "queues": _queues(site, config, recorded),
        },
    )


def _write_judgings(site: SiteFolder, recorded: RecordedJudgings, named: JudgeCalibration | None) -> None:
    """Write the page of each judging; regressions stand beside the newest calibration that fits."""
    from skill_evaluator.judges.recorded.control import beside_controls  # imports numpy

    own = [judging.results for judging in recorded.judgings if isinstance(judging.results, JudgeCalibration)]
    calibrations = [*own, *([] if named is None else [named])]
    for judging in recorded.judgings:
        results = judging.results
        controls = {}
        if isinstance(results, RegressionResults):
            controls = {judge.judge.model_id: beside_controls(results, judge, calibrations) for judge in results.judges}
        site.write_data(f"judgings/{judging.head.id}", judging_page(judging, controls))


def _queues(site: SiteFolder, config: Path, recorded: RecordedJudgings) -> dict[str, Any]:
    """Return the state of the review queue: of all items, and of those that are from judgings of each component."""
    from skill_evaluator.judges.review.agreement import review_status  # imports numpy

    queue = queue_in(config)
    try:
        items = queue.items()
        labels = queue.labels(items)
    except JudgeError as problem:
        site.note("review queue", problem)
        return {}
    if not items:
        return {}
    queues = {"": queue_row(review_status(items, labels))}
    for name, judgings in _by_component(recorded.judgings).items():
        mine = {item_id: item for item_id, item in items.items() if item.judging in judgings}
        if mine:
            own = [label for label in labels if label.item in mine]
            queues[name] = queue_row(review_status(mine, own))
    return queues


def _by_component(judgings: Sequence[RecordedJudging]) -> Mapping[str, set[str]]:
    components: dict[str, set[str]] = {}
    for judging in judgings:
        if judging.head.skill is not None:
            components.setdefault(judging.head.skill, set()).add(judging.head.id)
    return components
