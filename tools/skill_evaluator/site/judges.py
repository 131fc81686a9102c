"""The judges' page: what each judging came to, as rates beside their control, scores and comparisons.

Evidence, justifications and what was judged are not in it: they are read where the judging lies.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skill_evaluator import __version__
from skill_evaluator.display import number, probability
from skill_evaluator.display.pages import SiteBlock, sentence_block, sheet_block
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.judging import RESULTS, read_judging
from skill_evaluator.judges.calibration.results import BatchDimension, JudgeCalibration
from skill_evaluator.judges.modes.pairwise import PairwiseResults
from skill_evaluator.judges.modes.regression_results import JudgeRegressions, PairResult, RegressionResults
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.panel.cascade_results import CascadeShares
from skill_evaluator.judges.people.queue import ReviewStatus, queue_in
from skill_evaluator.judges.recorded import (
    RESULTS_OF,
    Controlled,
    JudgingResults,
    RecordedJudging,
    beside_controls,
    judging_digest,
    newest_judgings,
    read_recorded,
)
from skill_evaluator.library.config import Settings
from skill_evaluator.reports.judge_cascade import cascade_notes
from skill_evaluator.reports.judge_detection import rate_sheet
from skill_evaluator.reports.judge_figures import share
from skill_evaluator.reports.judge_pairs import ladder_heading, ladder_sheet, pair_doubts, pair_notes, pair_sheet
from skill_evaluator.reports.judge_regressions import (
    alert_sentences,
    dimension_sheet,
    regression_doubts,
    regression_notes,
)
from skill_evaluator.reports.judge_scores import score_doubts, score_notes, score_sheet
from skill_evaluator.reports.reviewing import agreement_sheet, queue_sentences
from skill_evaluator.site.blocks import interval_chart, point, point_sheet
from skill_evaluator.site.calibration import calibration_blocks, calibration_words
from skill_evaluator.site.writing import SiteFolder, data_script, refuse_page_name
from skill_evaluator.text import canonical_json, counted, digest, listed

_MOODS = {"ship": "improved", "block": "regressed"}
_DOUBTS = "What may be wrong with the judge, as far as it shows without labels"
_NAMED = {"candidate_worse": "worse", "candidate_better": "better"}


def judging_row(recorded: RecordedJudging) -> dict[str, Any]:
    """Return the line of a judging in the list of all."""
    head, results = recorded.head, recorded.results
    judges = [judge.judge if isinstance(judge.judge, str) else judge.judge.model_id for judge in results.judges]
    words, mood = _outcome(results)
    return {
        "created": head.created,
        "mode": head.mode,
        "component": head.skill,
        "judges": judges,
        "items": head.items,
        "rubric": Path(head.rubric_file).name,
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


def judging_blocks(recorded: RecordedJudging, controls: "Mapping[str, Controlled]") -> list[SiteBlock]:
    """Return what the page of a judging shows; `controls` are by judge, of regressions alone."""
    results = recorded.results
    if isinstance(results, RegressionResults):
        blocks = list(_regressions(results, controls))
    elif isinstance(results, JudgeCalibration):
        blocks = list(calibration_blocks(results))
    elif isinstance(results, ScoreResults):
        blocks = list(_scores(results))
    else:
        blocks = list(_pairs(results))
    cascade: CascadeShares | None = getattr(results, "cascade", None)
    if cascade is not None:
        blocks.append(sentence_block(cascade_notes(cascade), "The cascade"))
    return blocks


def _regressions(results: RegressionResults, controls: "Mapping[str, Controlled]") -> Iterator[SiteBlock]:
    yield sentence_block(alert_sentences(results.alerts))
    for judge in results.judges:
        name = judge.judge.model_id
        yield _rates(name, controls[name])
        yield {
            "kind": "parts",
            "caption": f"Pairs by verdict, {name}",
            "rows": [
                {
                    "label": one.dimension + " (blocks)" * one.blocking,
                    "parts": [sum(one.impacts.values()), one.uncertain, one.same, one.better],
                }
                for one in judge.dimensions
            ],
        }
        yield sheet_block(f"Dimensions, {name}", dimension_sheet(judge), folded=True)
        yield sentence_block(regression_doubts(judge), f"{_DOUBTS}: {name}")
        held = [pair for pair in judge.pairs if pair.ship_decision != "ship"]
        if held:
            yield sheet_block(f"Pairs that do not ship, {name}", _held(held), folded=True)
    without_alerts = results.model_copy(update={"alerts": []})  # which stand first
    yield sentence_block(regression_notes(without_alerts, of_pairs=False), "What was decided")
    leans = [(judge.judge.model_id, judge.lean) for judge in results.judges]
    rows = [point(name, "position", lean) for name, lean in leans]
    table = point_sheet(rows, ("judge", "bias"), [lean for _, lean in leans])
    yield interval_chart(
        f"Position: {_leaning(results.judges)}",
        "How far an output is judged better where it stands first: 0 is no bias.",
        rows,
        sheet_block("Lean to the first place", table),
        axis="lean to the first place",
        domain=(-1.0, 1.0),
        marks={0.0: "no bias"},
    )


def _leaning(judges: Sequence[JudgeRegressions]) -> str:
    """Name the judges that go by position, beyond chance."""
    away = [judge for judge in judges if (ci95 := judge.lean.ci95) is not None and (ci95[0] > 0 or ci95[1] < 0)]
    places = [f"{judge.judge.model_id} leans to the {_place(judge)} place" for judge in away]
    return "; ".join(places) or "no lean beyond chance"


def _place(judge: JudgeRegressions) -> str:
    return "first" if (judge.lean.value or 0.0) > 0 else "second"


def _rates(judge: str, controlled: "Controlled") -> SiteBlock:
    """Return the rates of a judge beside their control."""
    series = (("this batch", "reported"), ("controls", "control"), ("corrected", "corrected"))
    rows = [point(rate.dimension, name, getattr(rate, key)) for rate in controlled.rates for name, key in series]
    note = (
        "Share of the pairs that both orders call worse, with its 95 % interval. "
        "Controls hold nothing to find: what is called worse there the judge makes up. "
        "Corrected is the rate without what it makes up and misses. "
        f"Controls and corrections are of the calibration {controlled.calibration or 'that the settings name'}."
    )
    if controlled.problem:
        note = f"Share of the pairs that both orders call worse. There is no control beside it: {controlled.problem}."
    return interval_chart(
        _rate_title(judge, controlled.rates),
        note,
        rows,
        sheet_block(f"Rates of regressions, {judge}", rate_sheet(judge, controlled.rates)),
        axis="share called worse",
    )


def _rate_title(judge: str, rates: Sequence[BatchDimension]) -> str:
    """Name the dimension that is called worse most often, and how often that is so of controls."""
    measured = [rate for rate in rates if rate.reported.value is not None]
    if not measured:
        return f"{judge}: no answer counts"
    most = max(measured, key=lambda rate: rate.reported.value or 0.0)
    if not most.reported.value:
        return f"{judge}: no pair is called worse in any dimension"
    title = f"{judge}: {most.dimension} is called worse in {number(most.reported.value)} of {most.reported.n} pairs"
    if most.control.value is None:
        return title
    q = most.q if most.q is not None else most.p
    return f"{title}, and in {number(most.control.value)} of {most.control.n} controls (q {probability(q)})"


def _held(pairs: Sequence[PairResult]) -> Sheet:
    """Return the pairs that do not ship, blocks first; what is quoted of them is in the results alone."""
    rows = [
        [
            Cell(pair.id, code=True),
            Cell(pair.stratum, code=True),
            Cell(pair.ship_decision or "no decision", style="red" if pair.ship_decision == "block" else "yellow"),
            Cell("; ".join(_findings(pair))),
        ]
        for pair in sorted(pairs, key=lambda pair: pair.ship_decision != "block")
    ]
    return Sheet(columns=("pair", "stratum", "decision", "found"), rows=rows)


def _findings(pair: PairResult) -> Iterator[str]:
    for one in pair.dimensions:
        if one.verdict in ("candidate_worse", "uncertain"):
            marks = [mark for mark in (one.impact, *one.flags) if mark]
            yield f"{one.dimension} {_NAMED.get(one.verdict, one.verdict)}{f' ({listed(marks)})' if marks else ''}"
    unscored = [answer.unscored for answer in pair.answers if answer.unscored is not None]
    if unscored:
        yield f"{counted(len(unscored), 'answer')} unscored: {', '.join(dict.fromkeys(unscored))}"


def _scores(results: ScoreResults) -> Iterator[SiteBlock]:
    rows = [
        point(criterion.criterion, judge.judge.model_id, criterion.normalised)
        for judge in results.judges
        for criterion in judge.criteria
    ]
    lowest = min((row for row in rows if row["value"] is not None), key=lambda row: row["value"], default=None)
    title = "No answer counts"
    if lowest is not None:
        title = f"{lowest['label']} has the lowest scores: {number(lowest['value'])} from 0 to 1, by {lowest['series']}"
    note = "The mean of each criterion from 0 (worst level) to 1 (best), with its 95 % interval over items."
    yield interval_chart(title, note, rows, sheet_block("Scores", score_sheet(results)), axis="score, from 0 to 1")
    yield sentence_block(score_notes(results))
    for judge in results.judges:
        yield sentence_block(score_doubts(judge), f"{_DOUBTS}: {judge.judge.model_id}")


def _pairs(results: PairwiseResults) -> Iterator[SiteBlock]:
    shown = [
        (judge, criterion)
        for judge in results.judges
        for criterion in judge.criteria
        if criterion.criterion in judge.shown
    ]
    wins = [point(criterion.criterion, judge.judge.model_id, criterion.wins) for judge, criterion in shown]
    measured = [row for row in wins if row["value"] is not None]
    far = max(measured, key=lambda row: abs(row["value"] - 0.5), default=None)
    title = "Comparisons of several outputs" if shown else "No answer counts"
    if far is not None:
        title = f"Output 1 wins {number(far['value'])} by {far['label']}, as {far['series']} has it"
    note = "How often output 1 wins, a tie being half a win, with its 95 % interval over pairs."
    table = sheet_block("Comparisons", pair_sheet(results))
    yield interval_chart(title, note, wins, table, axis="share that output 1 wins", marks={0.5: "neither is better"})
    yield sentence_block(pair_notes(results))
    for judge in results.judges:
        for ranking in judge.rankings:
            if ranking.criterion in judge.shown:
                yield sheet_block(ladder_heading(judge.judge.model_id, ranking), ladder_sheet(ranking))
    leans = [point(criterion.criterion, judge.judge.model_id, criterion.lean) for judge, criterion in shown]
    lean_table = point_sheet(leans, ("criterion", "judge"), [criterion.lean for _, criterion in shown])
    yield interval_chart(
        "Position: what stands first, less what stands second",
        "How far verdicts go with the order of the outputs: 0 is no bias.",
        leans,
        sheet_block("Lean to the first place", lean_table),
        axis="lean to the first place",
        domain=(-1.0, 1.0),
        marks={0.0: "no bias"},
    )
    for judge in results.judges:
        yield sentence_block(pair_doubts(judge), f"{_DOUBTS}: {judge.judge.model_id}")


def queue_row(status: ReviewStatus) -> dict[str, Any]:
    """Return the state of a review queue. Reviewers are numbered: a published page names nobody."""
    names = {name: f"reviewer {place}" for place, name in enumerate(status.reviewers, 1)}
    disputed = Sheet(
        columns=("item", "question", "answers"),
        rows=[
            [
                Cell(item.item, code=True),
                Cell(item.question, code=True),
                Cell(" · ".join(f"{names.get(name, 'reviewer')}: {answer}" for name, answer in item.answers.items())),
            ]
            for item in status.disputed
        ],
    )
    return {
        "items": status.items,
        "unlabelled": status.unlabelled,
        "labelled": status.items - status.unlabelled,
        "disputed": len({item.id for item in status.disputed}),
        "oldest": status.oldest,
        "newest": status.newest_label,
        "reasons": [
            {"reason": reason, "open": status.open.get(reason, 0), "items": count}
            for reason, count in status.reasons.items()
        ],
        "sentences": queue_sentences(status),
        "agreement": sheet_block("How far reviewers agree", agreement_sheet(status, names)),
        "disputes": sheet_block("Items that reviewers see differently", disputed),
    }


_MOST = 100  # judgings, the newest ones
_OF_SETTINGS = "of settings"  # the page of the calibration that they name: no judging has a space in its name


def write_judges(site: SiteFolder, place: Path, config: Path, settings: Settings) -> None:
    """Write what judges found and what they are worth; a judging that cannot be read is listed with why."""
    named = _calibration(site, config, settings)
    if named is not None:
        page = {"file": settings.policy.judge.calibration, "blocks": list(calibration_blocks(named))}
        site.write_data(f"judgings/{_OF_SETTINGS}", page)
    folders, left_out = newest_judgings(place, _MOST)
    pages = _JudgingPages(site, folders, named)
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
    """Return the calibration that the settings name, if they name one that can be read."""
    if settings.policy.judge.calibration is None:
        return None
    from skill_evaluator.judges.calibration.detection import read_calibration  # imports numpy

    try:
        return read_calibration(config, settings)
    except JudgeError as problem:
        site.note("calibration of the settings", problem)
        return None


class _JudgingPages:
    """The pages of judgings. One that shows the same files as before stays, unread; they are read one at a time."""

    def __init__(self, site: SiteFolder, folders: Sequence[Path], named: JudgeCalibration | None) -> None:
        self._site, self._folders, self._named = site, folders, named
        self._calibrations: list[JudgeCalibration] = []
        self.problems: dict[str, JudgeError] = {}
        self.unfinished: list[str] = []

    def write(self) -> list[dict[str, Any]]:
        """Write every page, and return the row of each in the list; what cannot be read is in `problems`."""
        digests = {}
        for folder in self._folders:
            with self._listing(folder.name):
                refuse_page_name(folder.name, JudgeError)
                digests[folder] = judging_digest(folder)
        calibrations = [folder for folder in digests if self._is_calibration(folder)]
        by = [__version__, [digests[folder] for folder in calibrations], self._named and self._named.model_dump_json()]
        rows = []
        for folder, own in digests.items():
            with self._listing(folder.name):
                first_line = f"/* {digest(canonical_json([*by, own]))} */"
                row = self._kept(folder.name, first_line) or self._drawn(folder, first_line, calibrations)
                rows += [row] if row is not None else []
        return rows

    @contextmanager
    def _listing(self, name: str) -> Iterator[None]:
        try:
            yield
        except JudgeError as problem:
            self.problems[name] = problem
            self._site.note(f"judging {name}", problem)

    def _is_calibration(self, folder: Path) -> bool:
        try:
            return read_judging(folder).mode == "calibrate" and (folder / RESULTS).exists()
        except JudgeError:
            return False  # which is said where its page would be written

    def _kept(self, name: str, first_line: str) -> dict[str, Any] | None:
        """Return the row of a page that is there and shows the same; None where it does not."""
        file = f"data/judgings/{name}.js"
        if not self._site.keeps(file, first_line):
            return None
        row: dict[str, Any] = json.loads(self._site.lines(file)[1].removeprefix("/* ").removesuffix(" */"))
        return row

    def _drawn(self, folder: Path, first_line: str, calibrations: Sequence[Path]) -> dict[str, Any] | None:
        """Write the page of a judging and return its row; None for one without results."""
        recorded = read_recorded(folder)
        if recorded is None:
            self.unfinished += [folder.name] if read_judging(folder).mode in RESULTS_OF else []
            return None
        results, controls = recorded.results, {}
        if isinstance(results, RegressionResults):
            every = self._every_calibration(calibrations)
            controls = {judge.judge.model_id: beside_controls(results, judge, every) for judge in results.judges}
        row = {**judging_row(recorded), "id": folder.name, "judging": recorded.head.id}
        text = json.dumps(row).replace("/", "\\/")  # so that no name in it ends the comment
        page = data_script(f"judgings/{folder.name}", {**row, "blocks": judging_blocks(recorded, controls)})
        self._site.write(f"data/judgings/{folder.name}.js", f"{first_line}\n/* {text} */\n{page}")
        return row

    def _every_calibration(self, folders: Sequence[Path]) -> list[JudgeCalibration]:
        """Return the calibrations, the newest first; that of the settings comes last."""
        if not self._calibrations:
            for folder in folders:
                with suppress(JudgeError):  # which is said where its page would be written
                    recorded = read_recorded(folder)
                    if recorded is not None and isinstance(recorded.results, JudgeCalibration):
                        self._calibrations.append(recorded.results)
            self._calibrations += [] if self._named is None else [self._named]
        return self._calibrations


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
    from skill_evaluator.judges.people.agreement import review_status  # imports numpy

    queues = {"": queue_row(review_status(items, labels))}
    components: dict[str, set[str]] = {}
    for row in rows:
        if row["component"] is not None:
            components.setdefault(row["component"], set()).add(row["judging"])
    for name, judgings in components.items():
        mine = {item_id: item for item_id, item in items.items() if item.judging in judgings}
        if mine:
            own = [label for label in labels if label.item in mine]
            queues[name] = queue_row(review_status(mine, own))
    return queues
