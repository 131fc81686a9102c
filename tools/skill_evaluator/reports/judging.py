"""Calibrated judges → text, Markdown or JSON: a table, and in a sentence each what a judge may be used for."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.calibration.results import ConfidenceResult, JudgeCalibration, StratumResult
from skill_evaluator.reports.judge_biases import bias_pieces, score_pieces
from skill_evaluator.reports.judge_detection import detection_pieces
from skill_evaluator.reports.judge_figures import TRUST_STYLES, TRUSTED, trust_sentence
from skill_evaluator.text import counted

_NUMBERS = ("n", "unparsed", "right, order 1", "order 2", "flips", "picks first", "κ people", "κ orders")
_COLUMNS = ("stratum", "judge", *_NUMBERS, "")
_RULE = (
    "Trust goes by κ with people of the verdict that both orders give (a tie where they differ): trusted if its whole "
    "95 % interval is at {bar:.2f} or above, not trusted if all of it is below. Agreeing with itself is no reason for "
    "trust."
)
_HELD_OUT = "On held-out items alone, which rubric and thresholds were not made with:"


def print_judge_calibration(calibration: JudgeCalibration, form: Format) -> None:
    """Print what judges are worth."""
    print_result(
        form,
        json=lambda: calibration.model_dump(mode="json"),
        markdown=lambda: calibration_page(calibration),
        text=lambda: _pieces(calibration),
    )


def calibration_page(calibration: JudgeCalibration) -> str:
    """Return all of it as Markdown."""
    parts = []
    if any(judge.strata or judge.criteria for judge in calibration.judges):
        sentences = (
            f"- {code_span(judge)} on {code_span(stratum)}: {_sentence(figures, calibration.bar)}\n"
            for stratum, judge, figures in by_stratum(calibration)
        )
        table = markdown_table(_table(calibration))
        parts.append(
            f"## Judges against people\n\n{table}\n{_RULE.format(bar=calibration.bar)}\n\n{''.join(sentences)}"
        )
    for piece in _further(calibration):
        parts.append(markdown_table(piece) if isinstance(piece, Sheet) else f"{prose(piece)}\n")
    if calibration.held_out:
        parts.append(f"{_HELD_OUT}\n\n{calibration_page(_held_out(calibration))}")
    return "\n".join(parts)


def calibration_pieces(calibration: JudgeCalibration) -> Iterator[Sheet | str]:
    """Yield its tables and its sentences, those on held-out items last."""
    if any(judge.strata or judge.criteria for judge in calibration.judges):
        yield _table(calibration)
        yield _RULE.format(bar=calibration.bar)
        for stratum, judge, figures in by_stratum(calibration):
            yield f"{judge} on {stratum}: {_sentence(figures, calibration.bar)}"
    yield from _further(calibration)
    if calibration.held_out:
        yield _HELD_OUT
        yield from calibration_pieces(_held_out(calibration))


def _pieces(calibration: JudgeCalibration) -> Iterator[Sheet | Text]:
    if any(judge.strata or judge.criteria for judge in calibration.judges):
        yield _table(calibration)
        yield from (Text(), Text(_RULE.format(bar=calibration.bar)), Text())
        for stratum, judge, figures in by_stratum(calibration):
            yield Text(visible(f"{judge} on {stratum}: {_sentence(figures, calibration.bar)}"))
    for piece in _further(calibration):
        yield from (piece, Text()) if isinstance(piece, Sheet) else (Text(visible(piece)),)
    if calibration.held_out:
        yield from (Text(), Text(_HELD_OUT), Text())
        yield from _pieces(_held_out(calibration))


def _held_out(calibration: JudgeCalibration) -> JudgeCalibration:
    return JudgeCalibration(bar=calibration.bar, judges=calibration.held_out)


def _further(calibration: JudgeCalibration) -> Iterator[Sheet | str]:
    """Yield what is said beside verdicts on labelled pairs."""
    yield from score_pieces(calibration)
    yield from detection_pieces(calibration)
    yield from bias_pieces(calibration)


def by_stratum(calibration: JudgeCalibration) -> Iterator[tuple[str, str, StratumResult]]:
    """Yield stratum (and criterion), judge and figures; what belongs to one stratum stands together."""
    rows: dict[str, list[tuple[str, StratumResult]]] = {}
    for judge in calibration.judges:
        for stratum, figures in judge.strata.items():
            rows.setdefault(stratum, []).append((judge.judge, figures))
    for judge in calibration.judges:
        for criterion, strata in judge.criteria.items():
            for stratum, figures in strata.items():
                rows.setdefault(f"{stratum} by {criterion}", []).append((judge.judge, figures))
    for where, mine in rows.items():
        yield from ((where, name, figures) for name, figures in mine)


def _table(calibration: JudgeCalibration) -> Sheet:
    rows = [
        [
            Cell(stratum, code=True),
            Cell(judge, code=True),
            Cell(str(figures.n)),
            Cell(str(figures.unparsed)),
            *map(Cell, map(number, figures.accuracy)),
            *map(Cell, map(number, (figures.flip_rate, figures.picks_first))),
            *map(Cell, map(number, (figures.kappa_people, figures.kappa_orders))),
            Cell(TRUSTED[figures.trusted], style=TRUST_STYLES[figures.trusted]),
        ]
        for stratum, judge, figures in by_stratum(calibration)
    ]
    below = ("unparsed", "picks first", "order 2", "right, order 1", "κ orders", "flips")
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_NUMBERS), below=below)


def _sentence(figures: StratumResult, bar: float) -> str:
    """Say what the judge may be used for, and why."""
    kappa = FigureResult(value=figures.kappa_both, ci95=figures.kappa_both_ci95, n=figures.n)
    parts = [trust_sentence(figures.trusted, kappa, figures.more_labels, bar, "κ with people")]
    if figures.flip_rate is not None:
        parts.append(f"It agrees with itself in {1 - figures.flip_rate:.0%}{_leaning(figures)}")
    if figures.noise is not None and figures.noise.value is not None:
        parts.append(f"Asked the same again it says something else in {figures.noise.value:.0%}")
    if figures.length is not None and (often := _beyond_people(figures.length)):
        parts.append(f"It picks the longer output {often} than people do")
    if figures.confidence is not None and _follows_nothing(figures.confidence):
        parts.append("Its confidence tells nothing")
    if figures.incomplete or figures.unjudged:
        parts.append(f"{counted(figures.incomplete, 'pair')} with one order only, {figures.unjudged} not judged")
    return ". ".join(parts) + "."


def _follows_nothing(confidence: ConfidenceResult) -> bool:
    """Say whether confidence was seen to follow neither labels nor the other order."""
    follows = (confidence.labels.follows, confidence.orders.follows)
    return False in follows and True not in follows


def _beyond_people(length: FigureResult) -> str:
    """Say how much oftener than people, in points of per cent; nothing where it may be chance."""
    if length.value is None or length.ci95 is None or length.ci95[0] <= 0 <= length.ci95[1]:
        return ""
    return f"{abs(length.value) * 100:.0f} points {'more' if length.value > 0 else 'less'} often"


def _leaning(figures: StratumResult) -> str:
    """Say whether it goes by position, beyond chance."""
    low, high = figures.lean_ci95 or (0.0, 0.0)
    if low <= 0 <= high or figures.picks_first is None:
        return ""
    place = "first" if low > 0 else "second"
    return f" and leans to the {place} place ({figures.picks_first:.0%} of its verdicts are for the first)"
