"""What a regression judge finds of what code broke, and the corrected rates of a batch → tables and sentences."""

from collections.abc import Iterator, Sequence

from skill_evaluator.display import number
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.calibration.results import (
    ANY,
    BatchDimension,
    BatchResult,
    DetectionResult,
    DimensionDetection,
    JudgeCalibration,
)
from skill_evaluator.reports.judge_figures import (
    TRUST_STYLES,
    TRUSTED,
    severity_counts,
    share,
    trust_sentence,
)
from skill_evaluator.text import counted

_COUNTS = frozenset(
    {"broken", "found", "low", "medium", "high", "controls", "quiet", "elsewhere", "uncertain", "pairs"}
)
_RATES = frozenset({"reported", "controls", "q", "corrected", "with people's labels"})
_ENOUGH_BROKEN, _ENOUGH_CONTROLS = 50, 100


def detection_pieces(calibration: JudgeCalibration) -> Iterator[Sheet | str]:
    """Yield tables and sentences of every judge that was tried on planted pairs."""
    for judge in calibration.judges:
        if judge.detection is not None:
            if judge.detection.broken or judge.detection.controls:  # else no answer counts, which a sentence says
                yield _dimension_table(judge.judge, judge.detection)
                yield _way_table(judge.judge, judge.detection)
            yield from _sentences(judge.judge, judge.detection, calibration.bar)
        if judge.batch is not None:
            yield rate_sheet(judge.judge, judge.batch.dimensions)
            yield from _batch_sentences(judge.judge, judge.batch, calibration.bar)


def _dimension_table(judge: str, detection: DetectionResult) -> Sheet:
    rows = [
        [
            Cell(judge, code=True),
            Cell(row.dimension, code=True),
            Cell(str(row.sensitivity.n)),
            Cell(share(row.sensitivity)),
            *(Cell(_of(row.by_impact.get(impact))) for impact in ("low", "medium", "high")),
            Cell(str(row.specificity.n)),
            Cell(share(row.specificity)),
            Cell(TRUSTED[row.trusted], style=TRUST_STYLES[row.trusted]),
        ]
        for row in detection.dimensions
    ]
    columns = ("judge", "dimension", "broken", "found", "low", "medium", "high", "controls", "quiet", "")
    return Sheet(columns=columns, rows=rows, numbers=_COUNTS)


def _of(figure: FigureResult | None) -> str:
    return "–" if figure is None or figure.value is None else f"{round(figure.value * figure.n)} of {figure.n}"


def _way_table(judge: str, detection: DetectionResult) -> Sheet:
    rows = [
        [
            Cell(judge, code=True),
            Cell(way.planted, code=True),
            Cell(way.dimension, code=True),
            Cell(str(way.found.n)),
            Cell(share(way.found)),
            Cell(str(way.elsewhere)),
            Cell(str(way.uncertain)),
        ]
        for way in detection.ways
    ]
    rows += [
        [
            Cell(judge, code=True),
            Cell(kind.planted, code=True),
            Cell("control"),
            Cell(str(kind.quiet.n)),
            Cell(f"quiet {share(kind.quiet)}"),
            *(Cell("") for _ in range(2)),
        ]
        for kind in detection.control_kinds
    ]
    columns = ("judge", "planted", "", "pairs", "found", "elsewhere", "uncertain")
    return Sheet(columns=columns, rows=rows, numbers=_COUNTS)


def _sentences(judge: str, detection: DetectionResult, bar: float) -> Iterator[str]:
    """Say what the judge may be used for, and what is not known."""
    for row in detection.dimensions:
        where = "regressions in any dimension" if row.dimension == ANY else f"regressions of {row.dimension}"
        yield f"{judge}, {where}: {TRUSTED[row.trusted]}{_remedy(row)}. {_why(row, bar)}"
    if detection.severity_kappa.value is not None:
        yield f"{judge}: the impact it gives agrees with the planted one by κ {share(detection.severity_kappa)}."
    if detection.unscored:
        yield f"{judge}: {counted(detection.unscored, 'pair')} without an answer that counts."
    if detection.broken < _ENOUGH_BROKEN or detection.controls < _ENOUGH_CONTROLS:
        yield (
            f"warning: {counted(detection.broken, 'broken output')} and {counted(detection.controls, 'control')}; "
            f"rates are corrected well from {_ENOUGH_BROKEN} and {_ENOUGH_CONTROLS} on"
        )
    for name, reasons in detection.without_place.items():
        listed = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
        yield f"{name}: no place in {counted(sum(reasons.values()), 'output')}: {listed}"
    yield (
        "Code breaks outputs in few ways, and more plainly than a new prompt does: what is found here is the most that "
        "can be hoped for."
    )


def _remedy(row: DimensionDetection) -> str:
    if row.trusted is not None:
        return ""
    if not row.sensitivity.n or not row.specificity.n:
        return ": broken outputs and controls are both needed"
    if row.more_pairs is None:
        return ": no number of pairs would decide"
    return f": about {row.more_pairs:,} more planted pairs would decide"


def _why(row: DimensionDetection, bar: float) -> str:
    if row.informedness.value is None:
        return "Nothing was measured."
    return (
        f"It finds {_percent(row.sensitivity)} of what was broken and makes up a regression in "
        f"{1 - (row.specificity.value or 0.0):.0%} of controls; together {share(row.informedness)}, and {bar:.2f} is "
        "the bar"
    ) + "."


def _percent(figure: FigureResult) -> str:
    return "–" if figure.value is None else f"{figure.value:.0%}"


def rate_sheet(judge: str, dimensions: Sequence[BatchDimension]) -> Sheet:
    """Return what a judge reports of a batch beside its controls, and corrected."""
    rows = [
        [
            Cell(judge, code=True),
            Cell(row.dimension, code=True),
            Cell(str(row.reported.n)),
            Cell(share(row.reported)),
            Cell(share(row.control)),
            Cell(number(row.q if row.q is not None else row.p)),
            Cell(share(row.corrected)),
            Cell("–" if row.powered is None else share(row.powered)),
        ]
        for row in dimensions
    ]
    columns = ("judge", "dimension", "pairs", "reported", "controls", "q", "corrected", "with people's labels")
    return Sheet(columns=columns, rows=rows, numbers=_COUNTS | _RATES)


def _batch_sentences(judge: str, batch: BatchResult, bar: float) -> Iterator[str]:
    for row in batch.dimensions:
        if row.kappa_people is not None:
            trust = trust_sentence(row.trusted, row.kappa_people, row.more_labels, bar, "κ with people")
            yield f"{judge}, {row.dimension} beside people's labels ({row.kappa_people.n}): {trust}."
    for title, counts in (("the batch", batch.severity), ("the controls", batch.control_severity)):
        if any(counts.values()):
            yield f"{judge}, severity in {title}: {severity_counts(counts)}"
    if batch.rated_kappa.value is not None:
        yield f"{judge}: its severity agrees with people's ratings by κ {share(batch.rated_kappa)}."
    if batch.too_few:
        yield f"warning: {counted(batch.pairs, 'pair')}; under 100 the rates of a batch say little"
