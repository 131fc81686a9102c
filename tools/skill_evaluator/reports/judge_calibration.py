"""What judges are worth beside people and on what code broke, and what moves verdicts that ought not to."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Captioned, Heading, Line, Lines, Page, SiteBlock, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.judges.asking.story import JudgingSize
from skill_evaluator.judges.calibration.results import (
    ANY,
    BatchDimension,
    BatchResult,
    BiasResult,
    DetectionResult,
    DimensionDetection,
    JudgeCalibration,
    ReliabilityResult,
    ScoreResult,
    SentenceErrors,
    StratumResult,
)
from skill_evaluator.judges.modes.ship_rules import IMPACTS
from skill_evaluator.judges.statistics.bounded import Figure, rate
from skill_evaluator.judges.stories.judging import Judged
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.judging import (
    TRUSTED,
    chart_block,
    interval_chart,
    is_off,
    point,
    row_of,
    severity_counts,
    share,
    trust_cell,
    trust_sentence,
)
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed

_NUMBERS = (
    "n",
    "unparsed",
    "right, order 1",
    "order 2",
    "flips",
    "picks first",
    "lean",
    "longer",
    "κ people",
    "κ orders",
)
_RULE = (
    "Trust goes by κ with people of the verdict that both orders give (a tie where they differ): trusted if its whole "
    "95 % interval is at {bar:.2f} or above, not trusted if all of it is below. Agreeing with itself is no reason for "
    "trust. Lean: picks of the first place less those of the second; longer: picks of the longer output, less "
    "people's."
)
_HELD_OUT = "On held-out items alone, which rubric and thresholds were not made with"
_FIGURES = ("n", "right", "κ linear", "κ quadratic", "α", "α of people", "ρ", "higher", "middle", "spread", "longer")
_SENTENCE_RULE = (
    "Asked as for checks: a yes holds, and what is denied is asked again, a majority of three at most. From 100 labels "
    "on the share that checks passed is corrected by these two shares, in each sentence from 30 labels on."
)
_PRESENT = {True: ("there", "red"), False: ("none to speak of", "green"), None: ("undecided", "yellow")}
_SCORE_RULE = (
    "Trust in scores goes by κ with people, weighted by how far two scores are apart (linearly): trusted if its whole "
    "95 % interval is at {bar:.2f} or above, not trusted if all of it is below."
)
_CAUSES = {
    "self_preference": "its own family as the writer",
    "verbosity": "padding that adds nothing",
    "authority": "an authority that nothing stands behind",
    "injection": "an order to the judge in the text",
}
_COUNTS = frozenset(
    {"broken", "found", "low", "medium", "high", "controls", "quiet", "elsewhere", "uncertain", "pairs"}
)
_RATES = frozenset({"reported", "controls", "q", "corrected", "with people's labels"})
_ENOUGH_BROKEN, _ENOUGH_CONTROLS = 50, 100


def print_calibrated(judged: Judged | JudgingSize, form: Format) -> int:
    """Print what judges are worth, and how to go on where they stopped, or the size of a dry run; return the code."""
    if isinstance(judged, JudgingSize):
        return print_judged(judged, form)
    worth: JudgeCalibration = judged.results
    print_page(form, json=lambda: worth.model_dump(mode="json"), page=lambda: calibration_page(worth))
    return print_judged(replace(judged, results=None), form)


def worth_page(calibration: JudgeCalibration) -> str:
    """Return bias_analysis_report.md of a calibration."""
    return calibration_page(calibration).markdown()


def calibration_page(calibration: JudgeCalibration) -> Page:
    """Return all of it, what is measured on held-out items alone last."""
    blocks: list[Block] = [Heading("What the judge is worth", level=1), *_blocks(calibration)]
    if calibration.held_out:
        held_out = JudgeCalibration(bar=calibration.bar, judges=calibration.held_out)
        blocks += [Heading(_HELD_OUT, level=2), *_blocks(held_out)]
    return page_of("the calibration", blocks)


def _blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    trusts = list(_trusts(calibration))
    if trusts:
        yield _trust_chart(trusts, calibration.bar)
    yield from _verdict_blocks(calibration)
    yield from _score_blocks(calibration)
    for judge in calibration.judges:
        if judge.sentences:
            yield Captioned(_sentence_table(judge.judge, judge.sentences), "Sentences beside what people say of them")
            yield Line(_SENTENCE_RULE)
        if judge.detection is not None:
            yield from _detection_tables(judge.judge, judge.detection)
            yield Lines(list(_detection_sentences(judge.judge, judge.detection, calibration.bar)))
        if judge.batch is not None:
            yield Captioned(rate_sheet(judge.judge, judge.batch.dimensions), "Rates of a batch beside its controls")
            yield Lines(list(_batch_sentences(judge.judge, judge.batch, calibration.bar)))
    yield from _bias_blocks(calibration)
    yield from _reliability(calibration)
    yield from _confusions(calibration)


class _Trust(NamedTuple):
    """What a judge may be trusted with: κ with people of a kind of item, or informedness of a dimension."""

    judge: str
    where: str
    figure: Figure
    trusted: bool | None


def calibration_words(calibration: JudgeCalibration) -> tuple[str, str | None]:
    """Say of how many kinds of items judges are trusted, with a mood."""
    rows = list(_trusts(calibration))
    counts = Counter(TRUSTED[row.trusted] for row in rows)
    words = ", ".join(f"{words} {counts[words]}" for words in TRUSTED.values() if counts[words])
    moods = {True: "improved", False: "regressed", None: "inconclusive"}
    one = {row.trusted for row in rows}
    sentences = [errors for judge in calibration.judges if (errors := judge.sentences.get("")) is not None]
    if not rows and sentences:
        right = sum(errors.yes_right + errors.no_right for errors in sentences)
        words = f"{right:,} of {counted(sum(errors.labels for errors in sentences), 'sentence')} judged as by people"
    return words or "nothing was measured", moods[one.pop()] if len(one) == 1 else None


def _trusts(calibration: JudgeCalibration) -> Iterator[_Trust]:
    for judge in calibration.judges:
        for criterion, stratum, figures in judge.of_verdicts:
            where = f"pairs: {_kind(criterion, stratum)}"
            yield _Trust(judge.judge, where, figures.figure("kappa_both"), figures.trusted)
        for criterion, stratum, scores in judge.of_scores:
            yield _Trust(judge.judge, f"scores: {criterion} on {stratum}", scores.kappa_linear, scores.trusted)
        for row in judge.detection.dimensions if judge.detection is not None else ():
            yield _Trust(judge.judge, f"regressions: {row.dimension}", row.informedness, row.trusted)


def _kind(criterion: str, stratum: str) -> str:
    return f"{stratum} by {criterion}" if criterion else stratum


def _trust_chart(trusts: list[_Trust], bar: float) -> SiteBlock:
    rows = [point(row.where, row.judge, row.figure) for row in trusts]
    low = min([0.0, *(row["low"] for row in rows if row["low"] is not None)])
    parts, whose = [], " ({})" if len({row.judge for row in trusts}) > 1 else ""
    for trusted, words in TRUSTED.items():
        names = [f"{row.where}{whose.format(row.judge)}" for row in trusts if row.trusted is trusted]
        parts += [f"{words} on {listed(names, 3)}"] if names else []
    table = Sheet(
        columns=("judge", "on", "κ or informedness, 95 % interval", "n", ""),
        rows=[row_of([row.judge], row.where, row.figure, row.figure.n, trust_cell(row.trusted)) for row in trusts],
        numbers=frozenset({"κ or informedness, 95 % interval", "n"}),
    )
    sentence = "; ".join(parts)
    return interval_chart(
        sentence[0].upper() + sentence[1:],
        "κ with people of what both orders say (of scores: weighted linearly), and of regressions informedness: found "
        f"+ quiet − 1. A judge is trusted where the whole 95 % interval is at the bar, {bar:.2f}, or above.",
        rows,
        Captioned(table, "How far judges agree with people"),
        axis="agreement beyond chance",
        domain=(max(-1.0, round(low - 0.05, 1)), 1.0),
        marks={bar: f"the bar, {bar:.2f}", 0.0: "chance"},
    )


def _verdict_blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    """Yield verdicts on pairs beside people's; what belongs to one stratum (and criterion) stands together."""
    by_stratum = by_key(
        (_kind(criterion, stratum), (judge.judge, figures))
        for judge in calibration.judges
        for criterion, stratum, figures in judge.of_verdicts
    )
    rows = [(stratum, judge, figures) for stratum, judges in by_stratum.items() for judge, figures in judges]
    cells = [
        row_of(
            names,
            one.n,
            one.unparsed,
            *map(number, (*one.accuracy, one.flip_rate, one.picks_first)),
            one.figure("lean"),
            one.length,
            *map(number, (one.kappa_people, one.kappa_orders)),
            trust_cell(one.trusted),
        )
        for *names, one in rows
    ]
    below = ("unparsed", "longer", "lean", "picks first", "order 2", "right, order 1", "κ orders", "flips")
    columns = ("stratum", "judge", *_NUMBERS, "")
    sheet = Sheet(columns=columns, rows=cells, numbers=frozenset(_NUMBERS), below=below)
    yield Captioned(sheet, "Verdicts beside people's", _RULE.format(bar=calibration.bar))
    yield Lines(
        [
            Line(Cell(judge, code=True), " on ", Cell(stratum, code=True), f": {_sentence(figures, calibration.bar)}")
            for stratum, judge, figures in rows
        ]
    )


def _sentence(figures: StratumResult, bar: float) -> str:
    """Say what the judge may be used for, and why."""
    kappa = figures.figure("kappa_both")
    parts = [trust_sentence(figures.trusted, kappa, figures.more_labels, bar, "κ with people")]
    if figures.flip_rate is not None:
        leaning = ""
        if is_off(figures.figure("lean")) and figures.picks_first is not None:
            place = "first" if (figures.lean or 0.0) > 0 else "second"
            leaning = f" and leans to the {place} place ({figures.picks_first:.0%} of its verdicts are for the first)"
        parts.append(f"It agrees with itself in {1 - figures.flip_rate:.0%}{leaning}")
    if figures.noise is not None and figures.noise.value is not None:
        parts.append(f"Asked the same again it says something else in {figures.noise.value:.0%}")
    if figures.length is not None and is_off(figures.length):
        points = (figures.length.value or 0.0) * 100
        often = f"{abs(points):.0f} points {'more' if points > 0 else 'less'} often"
        parts.append(f"It picks the longer output {often} than people do")
    sure = figures.confidence
    if sure is not None and False in (follows := {sure.labels.follows, sure.orders.follows}) and True not in follows:
        parts.append("Its confidence tells nothing")
    if figures.incomplete or figures.unjudged:
        parts.append(f"{counted(figures.incomplete, 'pair')} with one order only, {figures.unjudged} not judged")
    return ". ".join(parts) + "."


def _score_blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    """Yield the judges' scores beside people's, and a sentence on each criterion and stratum."""
    rows = [
        (criterion, stratum, judge.judge, figures)
        for judge in calibration.judges
        for criterion, stratum, figures in judge.of_scores
    ]
    cells = []
    for *names, one in rows:
        kappas = (one.kappa_linear, one.kappa_quadratic, one.alpha, one.people_alpha)
        figures = (one.right, *kappas, one.spearman, one.higher, one.middle, one.spread)
        values = [number(figure.value) for figure in figures]
        cells.append(row_of(names, one.n, *values, one.length, trust_cell(one.trusted)))
    columns = ("criterion", "stratum", "judge", *_FIGURES, "")
    sheet = Sheet(columns=columns, rows=cells, numbers=frozenset(_FIGURES))
    yield Captioned(sheet, "Scores beside people's", _SCORE_RULE.format(bar=calibration.bar))
    yield Lines(
        [
            Line(
                Cell(judge, code=True),
                ", ",
                Cell(criterion, code=True),
                " on ",
                Cell(stratum, code=True),
                f": {_score_sentence(one, calibration.bar)}",
            )
            for criterion, stratum, judge, one in rows
        ]
    )


def _score_sentence(figures: ScoreResult, bar: float) -> str:
    """Say what the judge's scores may be used for, and what is wrong with them beyond chance."""
    name = "Weighted κ with people"
    parts = [trust_sentence(figures.trusted, figures.kappa_linear, figures.more_labels, bar, name)]
    if figures.people_alpha.value is not None:
        parts.append(f"People agree with each other by α {share(figures.people_alpha)}")
    if is_off(figures.higher):
        way = "higher" if (figures.higher.value or 0.0) > 0 else "lower"
        parts.append(f"It scores {abs(figures.higher.value or 0.0):.0%} of the scale {way} than people")
    if is_off(figures.spread, 1.0) and (figures.spread.value or 0.0) < 1.0:
        parts.append(f"Its scores spread {number(figures.spread.value)} times as widely as a person's")
    if is_off(figures.middle) and (figures.middle.value or 0.0) > 0.0:
        parts.append("It keeps to the middle of the scale more than people do")
    if figures.length is not None and is_off(figures.length):
        way = "longer" if (figures.length.value or 0.0) > 0 else "shorter"
        parts.append(f"It favours {way} outputs beyond people (ρ {share(figures.length)})")
    if figures.noise is not None and figures.noise.value is not None:
        parts.append(f"Asked again it gives a different score in {figures.noise.value:.0%}")
    if figures.confidence is not None and figures.confidence.follows is False:
        parts.append("Its confidence tells nothing")
    if figures.unscored or figures.unjudged:
        parts.append(f"{figures.unscored} without a score that counts, {figures.unjudged} not judged")
    return ". ".join(parts) + "."


def _sentence_table(judge: str, sentences: Mapping[str, SentenceErrors]) -> Sheet:
    columns = ("judge", "sentence", "labels", "found to hold", "found not to", "never settled")
    rows = [
        row_of(
            [judge, sentence or "all"],
            errors.labels,
            _of(rate(errors.yes_right, errors.yes)),
            _of(rate(errors.no_right, errors.no)),
            errors.lost,
        )
        for sentence, errors in sentences.items()
    ]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:]))


def _bias_blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    """Yield one table of all biases of all judges, and a sentence on each."""
    rows = [(judge.judge, bias) for judge in calibration.judges for bias in judge.biases]
    cells = []
    for judge, bias in rows:
        way = [Cell(bias.way or "all"), Cell(bias.mode), Cell(bias.criterion, code=True)]
        cells.append(
            row_of([judge, bias.bias], *way, bias.items, bias.moved, bias.shift, Cell(*_PRESENT[bias.present]))
        )
    columns = ("judge", "bias", "way", "in", "by", "items", "moved", "shift", "")
    sheet = Sheet(columns=columns, rows=cells, numbers=frozenset({"items", "moved", "shift"}))
    yield Captioned(sheet, "What ought not to matter")
    yield Lines([f"{judge}, {bias.criterion}: {_bias_sentence(bias)}" for judge, bias in rows if not bias.way])


def _bias_sentence(bias: BiasResult) -> str:
    cause, shift = _CAUSES[bias.bias], share(bias.shift)
    moved = "" if bias.moved is None else f" Of {bias.items} verdicts {bias.moved.value or 0.0:.0%} change with it."
    lost = f" {counted(bias.lost, 'answer')} with it did not count." if bias.lost else ""
    if bias.present is None:
        return f"whether {cause} moves its verdicts is open: by {shift} of the scale.{moved}{lost}"
    if not bias.present:
        return f"{cause} moves its verdicts by less than 0.1 of the scale.{moved}{lost}"
    return f"{cause} moves its verdicts by {shift} of the scale, beyond chance.{moved}{lost}"


def _detection_tables(judge: str, detection: DetectionResult) -> Iterator[Block]:
    if not (detection.broken or detection.controls):
        return  # no answer counts, which a sentence says
    yield Captioned(_dimension_table(judge, detection), "What is found of what code broke, by dimension")
    yield Captioned(_way_table(judge, detection), "What is found of what code broke, by the way it was broken")


def _dimension_table(judge: str, detection: DetectionResult) -> Sheet:
    rows = []
    for row in detection.dimensions:
        by_impact = [_of(row.by_impact.get(impact)) for impact in IMPACTS]
        quiet = (row.specificity.n, row.specificity, trust_cell(row.trusted))
        rows.append(row_of([judge, row.dimension], row.sensitivity.n, row.sensitivity, *by_impact, *quiet))
    columns = ("judge", "dimension", "broken", "found", "low", "medium", "high", "controls", "quiet", "")
    return Sheet(columns=columns, rows=rows, numbers=_COUNTS)


def _of(figure: Figure | None) -> str:
    return "–" if figure is None or figure.value is None else f"{round(figure.value * figure.n)} of {figure.n}"


def _way_table(judge: str, detection: DetectionResult) -> Sheet:
    rows = [
        row_of([judge, way.planted, way.dimension], way.found.n, way.found, way.elsewhere, way.uncertain)
        for way in detection.ways
    ]
    rows += [
        row_of([judge, kind.planted], "control", kind.quiet.n, f"quiet {share(kind.quiet)}", "", "")
        for kind in detection.control_kinds
    ]
    columns = ("judge", "planted", "", "pairs", "found", "elsewhere", "uncertain")
    return Sheet(columns=columns, rows=rows, numbers=_COUNTS)


def _detection_sentences(judge: str, detection: DetectionResult, bar: float) -> Iterator[str]:
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
        f"It finds {row.sensitivity.value or 0.0:.0%} of what was broken and makes up a regression in "
        f"{1 - (row.specificity.value or 0.0):.0%} of controls; together {share(row.informedness)}, and {bar:.2f} is "
        "the bar"
    ) + "."


def rate_sheet(judge: str, dimensions: Sequence[BatchDimension]) -> Sheet:
    """Return what a judge reports of a batch beside its controls, and corrected."""
    rows = [
        row_of(
            [judge, row.dimension],
            *(row.reported.n, row.reported, row.control),
            number(row.q if row.q is not None else row.p),
            *(row.corrected, row.powered),
        )
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


def _confident(calibration: JudgeCalibration) -> Iterator[tuple[str, ReliabilityResult]]:
    for judge in calibration.judges:
        for criterion, stratum, one in judge.of_verdicts:
            if one.confidence is not None and not criterion:
                yield f"{judge.judge} on {stratum}", one.confidence.labels
        for criterion, stratum, scores in judge.of_scores:
            if scores.confidence is not None:
                yield f"{judge.judge}, {criterion} on {stratum}", scores.confidence


def _reliability(calibration: JudgeCalibration) -> Iterator[SiteBlock]:
    """Yield confidence against what came true."""
    rows, lines, follows = [], [], []
    for name, reliability in _confident(calibration):
        for tenth in reliability.table:
            row = point(name, name, tenth.right)
            rows.append({**row, "confidence": tenth.confidence, "words": f"{row['words']}, at {tenth.confidence:.3f}"})
            lines.append(
                [Cell(name), Cell(number(tenth.confidence)), Cell(share(tenth.right)), Cell(str(tenth.right.n))]
            )
        follows += [f"{name}: error {number(reliability.error.value)}"]
    if not rows:
        return
    columns = ("judge", "confidence", "right, 95 % interval", "n")
    table = Sheet(columns=columns, rows=lines, numbers=frozenset(columns[1:]))
    yield chart_block(
        "reliability",
        f"Confidence and what came true: {listed(follows, 2)}",
        "Verdicts by tenths of the confidence that was given. On the dashed line a judge is right as often as it says.",
        rows,
        Captioned(table, "Confidence beside the share that was right"),
        words={"series": list(dict.fromkeys(row["series"] for row in rows))},
        more={"diagonal": [{"confidence": end, "value": end} for end in (0, 1)]},
    )


def _confusions(calibration: JudgeCalibration) -> Iterator[SiteBlock]:
    """Yield each judge's verdicts by people's."""
    for judge in calibration.judges:
        tables: list[tuple[str, Mapping[Any, Mapping[Any, int]]]] = [
            (f"by {criterion} on {stratum}" if criterion else f"on {stratum}", one.confusion)
            for criterion, stratum, one in judge.of_verdicts
        ]
        tables += [(f"{criterion} on {stratum}", one.confusion) for criterion, stratum, one in judge.of_scores]
        for where, confusion in tables:
            yield _heat(f"{judge.judge} (rows) beside people (columns), {where}", confusion)


def _heat(caption: str, counts: Mapping[Any, Mapping[Any, int]]) -> SiteBlock:
    people = [str(name) for name in dict.fromkeys(name for row in counts.values() for name in row)]
    rows = [
        [[str(mine), None], *([str(row[name]), "agrees" if name == mine else "differs"] for name in row)]
        for mine, row in counts.items()
    ]
    return {
        "kind": "sheet",
        "caption": caption,
        "note": "",
        "folded": True,
        "heat": True,
        "columns": ["judge", *(f"people: {name}" for name in people)],
        "numbers": [False, *(True for _ in people)],
        "rows": rows,
    }
