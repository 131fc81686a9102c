"""The report of `judge calibrate`: six lines a judge, its biases, corruption tests and the rates of a batch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Captioned, Heading, Line, Lines, Page, SiteBlock, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.judges.asking.story import JudgingSize
from skill_evaluator.judges.calibration.results import (
    ANY,
    BatchResult,
    BiasResult,
    DetectionResult,
    JudgeCalibration,
    JudgeResult,
    LabelAgreement,
    LabelMode,
)
from skill_evaluator.judges.statistics.agreement import Trust
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.judges.stories.judging import Judged
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.judging import TRUSTED, interval_chart, point, row_of, share, trust_cell
from skill_evaluator.text import counted, listed

_ITEMS: dict[LabelMode, str] = {
    "pairwise": "pairs",
    "score": "scores",
    "regression": "regressions",
    "sentences": "sentences",
}
_RULE = (
    "A judge is trusted if the whole 95 % interval of κ with people is at {bar:.2f} or above, and not trusted if it is "
    "all below. Labels must be of items drawn at random. A pair has the verdict of both orders, a tie if they differ."
)
_FEW_CORRUPTIONS = (
    "Corruptions are few kinds and plainer than the defects of a new prompt: expect a judge to find fewer in practice."
)
_BIASES = {
    "position": "position",
    "length": "length",
    "self_preference": "self-preference",
    "leniency": "leniency",
    "noise": "noise",
}


def print_calibrated(judged: Judged | JudgingSize, form: Format) -> int:
    """Print the calibration and the command to resume, or the size of a dry run. Return the exit code."""
    if isinstance(judged, JudgingSize):
        return print_judged(judged, form)
    calibration: JudgeCalibration = judged.results
    print_page(form, json=lambda: calibration.model_dump(mode="json"), page=lambda: calibration_page(calibration))
    return print_judged(replace(judged, results=None), form)


def bias_report(calibration: JudgeCalibration) -> str:
    """Return bias_analysis_report.md of a calibration."""
    return calibration_page(calibration).markdown()


def calibration_page(calibration: JudgeCalibration) -> Page:
    """Build the page of a calibration."""
    return page_of("the calibration", [Heading("Agreement with people", level=1), *_blocks(calibration)])


def calibration_words(calibration: JudgeCalibration) -> tuple[str, str | None]:
    """Describe in a few words how many judges are trusted, with a mood for the site."""
    counts = Counter(row.trust.trusted for judge in calibration.judges for row in _shown(judge))
    unusable = sum(judge.unusable is not None for judge in calibration.judges)
    parts = [f"{words} {counts[trusted]}" for trusted, words in TRUSTED.items() if counts[trusted]]
    parts += [f"{counted(unusable, 'judge')} without a usable output"] if unusable else []
    moods = {True: "improved", False: "regressed", None: "inconclusive"}
    return ", ".join(parts) or "no labels", moods[next(iter(counts))] if len(counts) == 1 and not unusable else None


def _shown(judge: JudgeResult) -> Sequence[LabelAgreement]:
    """Return the agreements with six lines each; dimensions of a batch have a row of its table instead."""
    regressions = [row for row in judge.agreement if row.mode == "regression"][:1]
    return [*(row for row in judge.agreement if row.mode != "regression"), *regressions]


def _blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    charted = [(judge.judge, row) for judge in calibration.judges for row in _shown(judge)]
    if charted:
        yield _trust_chart(charted, calibration.bar)
    for judge in calibration.judges:
        if judge.unusable is not None:
            yield from _unusable_blocks(judge)
        for row in _shown(judge):
            biases = [bias for bias in judge.biases if (bias.mode, bias.criterion) == (row.mode, row.criterion)]
            yield Captioned(_six_lines(judge.judge, row, biases))
            if row.strata:
                yield Line("by stratum: ", *_strata_words(row))
        yield from _sentence_lines(judge)
        yield from _probe_lines(judge)
        if judge.detection is not None:
            yield from _detection_lines(judge.judge, judge.detection)
        if judge.batch is not None:
            yield from _batch_blocks(judge, judge.batch)
    if charted:
        yield Line(_RULE.format(bar=calibration.bar))


def _unusable_blocks(judge: JudgeResult) -> Iterator[Block]:
    unusable = judge.unusable
    if unusable is not None:
        reasons = listed([f"{count} {reason}" for reason, count in unusable.unscored.items()])
        why = f" ({reasons})" if reasons else ""
        yield Line(Cell(judge.judge, code=True), f": no figures, because no output of the judge counts{why}")
        if unusable.example:
            yield Line("for example: ", Cell(unusable.example, code=True))


def _six_lines(judge: str, row: LabelAgreement, biases: Sequence[BiasResult]) -> Sheet:
    """Build the table of the six figures of a judge; its head has the decision."""
    items = row.criterion if row.mode == "score" else _ITEMS[row.mode]
    if row.mode == "pairwise" and row.criterion != "overall":
        items = f"pairs by {row.criterion}"
    missing = [
        f"{row.labels - row.n} without a verdict" if row.labels > row.n else "",
        f"{counted(row.unusable, 'output')} could not be read" if row.unusable else "",
    ]
    notes = ", ".join(filter(None, missing))
    kappa = f"{share(row.trust.kappa)}" + ("" if row.correlation is None else f" · ρ {share(row.correlation)}")
    lines = {
        "labels": f"{row.n}{f' ({notes})' if notes else ''}",
        "agreement": share(row.agreement),
        "weighted κ · Spearman's ρ" if row.correlation is not None else "κ": kappa,
        "TPR · TNR": f"{share(row.sensitivity)} · {share(row.specificity)}",
        "order flips": _order_words(row, biases),
        "confidence": _confidence_words(row),
    }
    rows = [[Cell(name), Cell(words)] for name, words in lines.items()]
    title = f"{judge}, {items}"
    return Sheet(columns=(title, _decision(row.trust)), rows=rows, named=frozenset({title}))


def _decision(trust: Trust) -> str:
    """Return the decision about a judge, with the number of labels that would decide an open one."""
    if trust.trusted is not None:
        return TRUSTED[trust.trusted]
    if trust.kappa.ci95 is None:
        return "undecided: labels or verdicts are all the same"
    if trust.more_labels is None:
        return "undecided: too close to the bar for any number of labels"
    return f"undecided: about {counted(trust.more_labels, 'more label')} would decide"


def _order_words(row: LabelAgreement, biases: Sequence[BiasResult]) -> str:
    """Describe position bias and the other biases that are present."""
    flips = "–" if row.position is None else f"{share(row.position.flips)}, first {number(row.position.first.value)}"
    present = [f"{_BIASES[bias.bias]} {share(bias.shift)}" for bias in biases if bias.present and bias.bias in _BIASES]
    return f"{flips}; biases: {', '.join(present) or 'none'}" if biases else flips


def _confidence_words(row: LabelAgreement) -> str:
    if row.confidence is None:
        return "–"
    return f"{number(row.confidence.right)} where right, {number(row.confidence.wrong)} where wrong"


def _strata_words(row: LabelAgreement) -> Iterator[str | Cell]:
    for place, (stratum, part) in enumerate(row.strata.items()):
        yield "; " if place else ""
        yield Cell(stratum, code=True)
        yield f" {TRUSTED[part.trust.trusted]}, κ {share(part.trust.kappa)}"


def _sentence_lines(judge: JudgeResult) -> Iterator[Block]:
    """Yield a line for each sentence that has enough labels."""
    lines = [
        Line(
            Cell(sentence, code=True), f": TPR {errors.yes_right} of {errors.yes}, TNR {errors.no_right} of {errors.no}"
        )
        for sentence, errors in judge.sentences.items()
        if sentence
    ]
    if lines:
        yield Lines(lines)


def _probe_lines(judge: JudgeResult) -> Iterator[Block]:
    """Yield a line for each probe: how far the added text moves the verdicts."""
    words = {True: "", False: ", not significant", None: ", not measurable"}
    lines = [
        Line(
            Cell(judge.judge, code=True),
            f", {bias.bias}: the added text moves the verdict by {share(bias.shift)} of the scale{words[bias.present]}",
        )
        for bias in judge.biases
        if bias.bias not in _BIASES
    ]
    if lines:
        yield Lines(lines)


def _detection_lines(judge: str, detection: DetectionResult) -> Iterator[Block]:
    """Yield the two lines of a corruption test."""
    overall = detection.overall
    if overall is None:
        return
    kinds = ", ".join(f"{kind} {_of(figure)}" for kind, figure in detection.kinds.items())
    dimensions = ", ".join(
        f"{row.dimension} {_alarms(row.specificity)}" for row in detection.dimensions if row.dimension != ANY
    )
    alarms = overall.specificity
    rate = Figure(
        value=None if alarms.value is None else 1.0 - alarms.value,
        ci95=None if alarms.ci95 is None else (1.0 - alarms.ci95[1], 1.0 - alarms.ci95[0]),
        n=alarms.n,
    )
    unscored = f"; {counted(detection.unscored, 'pair')} without a usable output" if detection.unscored else ""
    yield Lines(
        [
            Line(
                Cell(judge, code=True),
                f", found: {share(overall.sensitivity)} of corruptions ({kinds}){unscored}",
            ),
            Line(Cell(judge, code=True), f", false alarms: {share(rate)} of controls ({dimensions})"),
        ]
    )
    yield Line(_FEW_CORRUPTIONS)


def _of(figure: Figure) -> str:
    return f"{round((figure.value or 0.0) * figure.n)} of {figure.n}"


def _alarms(specificity: Figure) -> str:
    return f"{round((1.0 - (specificity.value or 0.0)) * specificity.n)} of {specificity.n}"


def _batch_blocks(judge: JudgeResult, batch: BatchResult) -> Iterator[Block]:
    """Yield the rates by dimension, and the table of the judge's impact against the rated severity."""
    rows = {row.criterion: row for row in judge.agreement if row.mode == "regression"}
    whole = next(iter(rows.values()))
    cells = []
    for rate in batch.dimensions:
        row = rows.get(rate.dimension, whole if len(batch.dimensions) == 1 else None)
        figures = (None, None, None) if row is None else (row.trust.kappa, row.sensitivity, row.specificity)
        trust = Cell("–") if row is None else trust_cell(row.trust.trusted)
        cells.append(row_of([rate.dimension], rate.reported, rate.corrected, *figures, trust))
    columns = ("dimension", "reported", "corrected", "κ", "TPR", "TNR", "")
    yield Captioned(
        Sheet(columns=columns, rows=cells, numbers=frozenset(columns[1:6])),
        f"{judge.judge}: rates of regressions in {counted(batch.pairs, 'pair')}",
        "Corrected: the rate without what the judge misses and makes up (Rogan and Gladen 1978), by TPR and TNR.",
    )
    if sum(sum(counts.values()) for counts in batch.rated.values()):
        levels = tuple(batch.rated)
        impacts = [row_of([], f"people: {level}", *batch.rated[level].values()) for level in levels]
        yield Captioned(
            Sheet(columns=("rated severity", *(f"judge: {level}" for level in levels)), rows=impacts),
            f"{judge.judge}: impact against rated severity, κ {share(batch.rated_kappa)}",
        )
    if batch.too_few:
        yield Line(f"warning: {counted(batch.pairs, 'pair')}; rates from fewer than 100 pairs are uncertain")


def _trust_chart(rows: Sequence[tuple[str, LabelAgreement]], bar: float) -> SiteBlock:
    points = [point(f"{_ITEMS[row.mode]}: {row.criterion}", judge, row.trust.kappa) for judge, row in rows]
    table = Sheet(
        columns=("judge", "on", "κ, 95 % interval", "n", ""),
        rows=[
            row_of(
                [judge], f"{_ITEMS[row.mode]}: {row.criterion}", row.trust.kappa, row.n, trust_cell(row.trust.trusted)
            )
            for judge, row in rows
        ],
        numbers=frozenset({"κ, 95 % interval", "n"}),
    )
    low = min([0.0, *(one["low"] for one in points if one["low"] is not None)])
    counts = Counter(TRUSTED[row.trust.trusted] for _, row in rows)
    return interval_chart(
        ", ".join(f"{words} {count}" for words, count in counts.items()),
        _RULE.format(bar=bar),
        points,
        Captioned(table, "Agreement with people"),
        axis="κ",
        domain=(max(-1.0, round(low - 0.05, 1)), 1.0),
        marks={bar: f"the bar, {bar:.2f}", 0.0: "chance"},
    )
