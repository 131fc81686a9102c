"""The report of `judge calibrate`: six figures per judge, biases, corruption tests and the rates of a batch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from skill_evaluator.display import number, plain
from skill_evaluator.display.pages import (
    Block,
    Chart,
    Drawing,
    ForMedia,
    Heading,
    Line,
    Lines,
    Page,
    page_of,
    print_page,
)
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.judges.calibration.results import (
    ANY,
    BatchResult,
    JudgeCalibration,
    JudgeResult,
    LabelAgreement,
    LabelMode,
)
from skill_evaluator.judges.prompting.judging import JudgeRunSize
from skill_evaluator.judges.statistics import Estimate, Trust, rate
from skill_evaluator.judges.workflows.judging import Judged
from skill_evaluator.reports.judge_results import TRUSTED, print_judged, reasons, row_of, share, trust_cell
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed

_ITEMS: dict[LabelMode, str] = {
    "pairwise": "pairs",
    "score": "scores",
    "regression": "regressions",
    "sentences": "sentences",
}
_RULE = (
    "A judge is trusted if the 95 % confidence interval of κ with people is at {bar} or above, and not trusted if it "
    "is below. The labelled items must be a random sample. If the two orders of a pair differ, its verdict is a tie."
)
_LEGEND = "κ: agreement beyond chance; TPR and TNR: the shares of positive and of negative labels that a judge gives."
_BIASES = ("position", "length", "self_preference", "leniency", "noise")  # all other biases are probes


def print_calibrated(judged: Judged | JudgeRunSize, form: Format) -> int:
    """Print the calibration, or the size of a dry run. Return the exit code.

    Print the command to resume an incomplete run to stderr.
    """
    if isinstance(judged, JudgeRunSize):
        return print_judged(judged, form)
    calibration: JudgeCalibration = judged.results
    print_page(form, json=lambda: calibration.model_dump(mode="json"), page=lambda: calibration_page(calibration))
    return print_judged(replace(judged, results=None), form)


def bias_report(calibration: JudgeCalibration) -> str:
    """Return the text of bias_analysis_report.md of a calibration."""
    return calibration_page(calibration).markdown()


def calibration_page(calibration: JudgeCalibration) -> Page:
    """Report a calibration: agreement with people, biases, corruption tests and batch rates of each judge."""
    return page_of("the calibration", [Heading("Agreement with people", level=1), *_calibration_blocks(calibration)])


def calibration_words(calibration: JudgeCalibration) -> tuple[str, str | None]:
    """Return the judges that are trusted, not trusted and undecided as text, and the verdict of the same colour.

    The verdict is None if the judges differ or an output is unusable.
    """
    judges = by_key((row.trust.trusted, judge.judge) for judge in calibration.judges for row in _shown(judge))
    unusable = [judge.judge for judge in calibration.judges if judge.unusable is not None]
    parts = [
        f"{words}: {listed(list(dict.fromkeys(judges[key])), 3)}" for key, words in TRUSTED.items() if key in judges
    ]
    parts += [f"without a usable output: {listed(unusable, 3)}"] if unusable else []
    moods = {True: "improved", False: "regressed", None: "inconclusive"}
    return "; ".join(parts) or "no labels", moods[next(iter(judges))] if len(judges) == 1 and not unusable else None


def _shown(judge: JudgeResult) -> Sequence[LabelAgreement]:
    """Return the agreements for the tables of six figures; of the regression dimensions only the first."""
    regressions = [row for row in judge.agreement if row.mode == "regression"][:1]
    return [*(row for row in judge.agreement if row.mode != "regression"), *regressions]


def _calibration_blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    charted = [(judge.judge, row) for judge in calibration.judges for row in _shown(judge)]
    if charted:
        yield _trust_chart(charted, calibration.bar)
    for judge in calibration.judges:
        if judge.unusable is not None:
            text = Cell(judge.judge, code=True), f": no usable output: {reasons(judge.unusable.unscored)}"
            example = Cell(judge.unusable.example or "no text", code=True)
            yield ForMedia(("site",), [Line(*text)])
            yield ForMedia(("terminal", "markdown"), [Line(*text, "; for example: ", example)])
        for row in _shown(judge):
            yield _six_lines(judge, row)
            if row.strata:
                parts: list[str | Cell] = []
                for stratum, part in row.strata.items():
                    trust = f" {TRUSTED[part.trust.trusted]}, κ {share(part.trust.kappa)}"
                    parts += ["; ", Cell(stratum, code=True), trust]
                yield Line("by stratum: ", *parts[1:])
        yield Lines(list(_finding_lines(judge)))
        if judge.batch is not None:
            yield from _batch_blocks(judge, judge.batch)
    if charted:
        yield ForMedia(("terminal", "markdown"), [Line(_RULE.format(bar=plain(calibration.bar)))])
        yield Line(_LEGEND)


def _six_lines(judge: JudgeResult, row: LabelAgreement) -> Sheet:
    """Build the table of the six figures of a judge; the decision on the judge is the second column's title."""
    items = row.criterion if row.mode == "score" else _ITEMS[row.mode]
    if row.mode == "pairwise" and row.criterion != "overall":
        items = f"pairs by {row.criterion}"
    missing = [
        f"{row.labels - row.n} without a verdict" if row.labels > row.n else "",
        f"{counted(row.unusable, 'output')} could not be read" if row.unusable else "",
    ]
    notes = ", ".join(filter(None, missing))
    rho = "" if row.correlation is None else f" · ρ {share(row.correlation)}"
    confidence = "–"
    if row.confidence is not None:
        confidence = f"{number(row.confidence.right)} where right, {number(row.confidence.wrong)} where wrong"
    lines = {
        "labels": f"{row.n}{f' ({notes})' if notes else ''}",
        "agreement": share(row.agreement),
        "weighted κ · Spearman's ρ" if rho else "κ": f"{share(row.trust.kappa)}{rho}",
        "TPR · TNR": f"{share(row.sensitivity)} · {share(row.specificity)}",
        "order flips": _order_words(judge, row),
        "confidence": confidence,
    }
    title = f"{judge.judge}, {items}"
    rows = [[Cell(name), Cell(words)] for name, words in lines.items()]
    return Sheet(columns=(title, _decision_text(row.trust)), rows=rows, named=frozenset({title}))


def _decision_text(trust: Trust) -> str:
    if trust.trusted is not None:
        return TRUSTED[trust.trusted]
    if trust.kappa.ci95 is None:
        return "undecided: all labels or all verdicts are the same"
    if trust.more_labels is None:
        return "undecided: too close to the bar for any number of labels"
    return f"undecided: about {counted(trust.more_labels, 'more label')} would decide"


def _order_words(judge: JudgeResult, row: LabelAgreement) -> str:
    flips = "–" if row.position is None else f"{share(row.position.flips)}, first {number(row.position.first.value)}"
    biases = [bias for bias in judge.biases if (bias.mode, bias.criterion) == (row.mode, row.criterion)]
    present = [
        f"{bias.bias.replace('_', '-')} {share(bias.shift)}" for bias in biases if bias.present and bias.bias in _BIASES
    ]
    return f"{flips}; biases: {', '.join(present) or 'none'}" if biases else flips


def _finding_lines(judge: JudgeResult) -> Iterator[Line]:
    """Yield the error rates by sentence, the effect of each probe, and the result of the corruption test."""
    name = Cell(judge.judge, code=True)
    for sentence, errors in judge.sentences.items():
        if sentence:
            rates = f"TPR {errors.yes_right} of {errors.yes}, TNR {errors.no_right} of {errors.no}"
            yield Line(Cell(sentence, code=True), f": {rates}")
    significance = {True: "", False: ", not significant", None: ", not measurable"}
    for bias in judge.biases:
        if bias.bias not in _BIASES:
            text = f"the added text moves the verdict by {share(bias.shift)} of the scale{significance[bias.present]}"
            yield Line(name, f", {bias.bias}: {text}")
    test = judge.detection
    if test is not None:
        alarms = {row.dimension: rate(_misses(row.specificity), row.specificity.n) for row in test.dimensions}
        whole = next(row for row in test.dimensions if row.dimension == ANY)
        kinds = ", ".join(f"{kind} {one.n - _misses(one)} of {one.n}" for kind, one in test.kinds.items())
        others = ", ".join(f"{key} {one.n - _misses(one)} of {one.n}" for key, one in alarms.items() if key != ANY)
        unscored = f"; {counted(test.unscored, 'pair')} without a usable output" if test.unscored else ""
        yield Line(name, f", detected: {share(whole.sensitivity)} of corruptions ({kinds}){unscored}")
        yield Line(name, f", false alarms: {share(alarms[ANY])} of controls ({others})")


def _misses(figure: Estimate) -> int:
    return round((1.0 - (figure.value or 0.0)) * figure.n)


def _batch_blocks(judge: JudgeResult, batch: BatchResult) -> Iterator[Block]:
    errors = {row.criterion: row for row in judge.agreement if row.mode == "regression"}
    cells = []
    for entry in batch.dimensions:
        row = errors.get(entry.dimension)
        figures = (None, None, None) if row is None else (row.trust.kappa, row.sensitivity, row.specificity)
        trust = "–" if row is None else trust_cell(row.trust.trusted)
        cells.append(row_of([entry.dimension], entry.reported, entry.corrected, *figures, trust))
    columns = ("dimension", "reported", "corrected", "κ", "TPR", "TNR", "")
    yield Sheet(
        columns=columns,
        rows=cells,
        numbers=frozenset(columns[1:6]),
        caption=f"{judge.judge}: rates of regressions in {counted(batch.pairs, 'pair')}",
        note="Corrected: the rate corrected for misses and false alarms by TPR and TNR (Rogan and Gladen 1978).",
    )
    if batch.rated_kappa.n:
        yield Sheet(
            columns=("rated severity", *(f"judge: {level}" for level in batch.rated)),
            rows=[row_of([], f"people: {level}", *counts.values()) for level, counts in batch.rated.items()],
            caption=f"{judge.judge}: impact against rated severity, κ {share(batch.rated_kappa)}",
        )
    if batch.too_few:
        yield Line(f"warning: {counted(batch.pairs, 'pair')}; rates from fewer than 100 pairs are uncertain")


def _trust_chart(rows: Sequence[tuple[str, LabelAgreement]], bar: float) -> ForMedia:
    """Return the site's chart of κ with its interval and the bar for trust, or a table if no judge has a κ."""
    points, cells = list[dict[str, Any]](), []
    for judge, row in rows:
        label, kappa = f"{_ITEMS[row.mode]}: {row.criterion}", row.trust.kappa
        cells.append(row_of([judge], label, kappa, row.n, trust_cell(row.trust.trusted)))
        if kappa.value is not None:
            low, high = kappa.ci95 or (None, None)
            text = f"{label}, {judge}: {share(kappa)}"
            points.append(
                {"label": label, "series": judge, "value": kappa.value, "low": low, "high": high, "words": text}
            )
    columns = ("judge", "on", "κ, 95 % interval", "n", "")
    sheet = Sheet(columns=columns, rows=cells, numbers=frozenset(columns[2:4]))
    if not points:
        return ForMedia(("site",), [replace(sheet, caption="Agreement with people", note=_RULE.format(bar=plain(bar)))])
    counts = Counter(TRUSTED[row.trust.trusted] for _, row in rows)
    decisions = ", ".join(f"{count} {text}" for text, count in counts.items())

    def draw() -> Any:
        from skill_evaluator.display.chart_style import interval_chart, title  # imports altair

        marks = {bar: f"the bar, {plain(bar)}", 0.0: "chance"}
        return interval_chart(points, "κ", marks).properties(title=title(decisions, _RULE.format(bar=plain(bar))))

    return ForMedia(("site",), [Chart("trust", [Drawing(file="", alt_text=decisions, draw=draw, figures=sheet)])])
