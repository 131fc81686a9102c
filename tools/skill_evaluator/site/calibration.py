"""A calibration on the judges' page: agreement with people, what is found of what code broke, biases, confidence."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skill_evaluator.display import number
from skill_evaluator.display.pages import SiteBlock, sentence_block, sheet_block
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.calibration.results import (
    JudgeCalibration,
    JudgeResult,
    ReliabilityResult,
    ScoreResult,
    StratumResult,
)
from skill_evaluator.reports.judge_figures import TRUST_STYLES, TRUSTED, share
from skill_evaluator.reports.judging import calibration_pieces
from skill_evaluator.site.blocks import (
    chart_block,
    interval_chart,
    point,
    point_sheet,
)
from skill_evaluator.text import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRow:
    """What a judge may be trusted with: κ with people of a kind of item, or informedness of a dimension."""

    judge: str
    where: str
    figure: FigureResult
    trusted: bool | None


def calibration_words(calibration: JudgeCalibration) -> tuple[str, str | None]:
    """Say of how many kinds of items judges are trusted, with a mood."""
    rows = list(_trusts(calibration))
    counts = Counter(TRUSTED[row.trusted] for row in rows)
    words = ", ".join(f"{words} {counts[words]}" for words in TRUSTED.values() if counts[words])
    moods = {True: "improved", False: "regressed", None: "inconclusive"}
    one = {row.trusted for row in rows}
    return words or "nothing was measured", moods[one.pop()] if len(one) == 1 else None


def calibration_blocks(calibration: JudgeCalibration) -> Iterator[SiteBlock]:
    """Yield charts with their tables, then everything else that the report on a calibration says."""
    trusts = list(_trusts(calibration))
    if trusts:
        yield _trust_chart(trusts, calibration.bar)
    for judge in calibration.judges:
        if judge.detection is not None:
            yield _detection_chart(judge)
    yield from _bias_chart(calibration)
    yield from _reliability(calibration)
    lines: list[str] = []
    for piece in calibration_pieces(calibration):
        if isinstance(piece, str):
            lines.append(piece)
            continue
        if lines:
            yield sentence_block(lines)
            lines = []
        yield sheet_block(_caption(piece), piece, folded="stratum" not in piece.columns)  # which charts show in short
    if lines:
        yield sentence_block(lines)
    yield from _confusions(calibration)


def _caption(sheet: Sheet) -> str:
    """Name a table of the report by what its columns say."""
    for column, caption in (
        ("bias", "What ought not to matter"),
        ("reported", "Rates of a batch beside its controls"),
        ("broken", "What is found of what code broke, by dimension"),
        ("planted", "What is found of what code broke, by the way it was broken"),
        ("criterion", "Scores beside people's"),
        ("stratum", "Verdicts beside people's"),
    ):
        if column in sheet.columns:
            return caption
    return "Figures"


def _trusts(calibration: JudgeCalibration) -> Iterator[TrustRow]:
    for judge in calibration.judges:
        by_criterion = {f" by {name}": strata for name, strata in judge.criteria.items()}
        for suffix, strata in {"": judge.strata, **by_criterion}.items():
            for stratum, figures in strata.items():
                kappa = FigureResult(value=figures.kappa_both, ci95=figures.kappa_both_ci95, n=figures.n)
                yield TrustRow(
                    judge=judge.judge, where=f"pairs: {stratum}{suffix}", figure=kappa, trusted=figures.trusted
                )
        for criterion, scored in judge.scores.items():
            for stratum, scores in scored.items():
                where = f"scores: {criterion} on {stratum}"
                yield TrustRow(judge=judge.judge, where=where, figure=scores.kappa_linear, trusted=scores.trusted)
        for row in judge.detection.dimensions if judge.detection is not None else ():
            where = f"regressions: {row.dimension}"
            yield TrustRow(judge=judge.judge, where=where, figure=row.informedness, trusted=row.trusted)


def _trust_chart(trusts: list[TrustRow], bar: float) -> SiteBlock:
    rows = [point(row.where, row.judge, row.figure) for row in trusts]
    low = min([0.0, *(row["low"] for row in rows if row["low"] is not None)])
    parts, whose = [], " ({})" if len({row.judge for row in trusts}) > 1 else ""
    for trusted, words in TRUSTED.items():
        names = [f"{row.where}{whose.format(row.judge)}" for row in trusts if row.trusted is trusted]
        parts += [f"{words} on {listed(names, 3)}"] if names else []
    table = Sheet(
        columns=("judge", "on", "κ or informedness, 95 % interval", "n", ""),
        rows=[
            [
                Cell(row.judge, code=True),
                Cell(row.where),
                Cell(share(row.figure)),
                Cell(str(row.figure.n)),
                Cell(TRUSTED[row.trusted], style=TRUST_STYLES[row.trusted]),
            ]
            for row in trusts
        ],
        numbers=frozenset({"κ or informedness, 95 % interval", "n"}),
    )
    sentence = "; ".join(parts)
    return interval_chart(
        sentence[0].upper() + sentence[1:],
        "κ with people of what both orders say (of scores: weighted linearly), and of regressions informedness: found "
        f"+ quiet − 1. A judge is trusted where the whole 95 % interval is at the bar, {bar:.2f}, or above.",
        rows,
        sheet_block("How far judges agree with people", table),
        axis="agreement beyond chance",
        domain=(max(-1.0, round(low - 0.05, 1)), 1.0),
        marks={bar: f"the bar, {bar:.2f}", 0.0: "chance"},
    )


def _detection_chart(judge: JudgeResult) -> SiteBlock:
    """Return what a judge of regressions finds of broken outputs, and how quiet it is on controls."""
    dimensions = judge.detection.dimensions if judge.detection is not None else []
    figures = [
        (row.dimension, name, figure)
        for row in dimensions
        for name, figure in (("found, of broken", row.sensitivity), ("quiet, on controls", row.specificity))
    ]
    rows = [point(*figure) for figure in figures]
    measured = [row for row in dimensions if row.sensitivity.value is not None]
    title = f"{judge.judge}: no answer counts"
    if measured:
        least = min(measured, key=lambda row: row.sensitivity.value or 0.0)
        title = f"{judge.judge} finds {number(least.sensitivity.value)} of what was broken in {least.dimension}"
        title += f", and is quiet on {number(least.specificity.value)} of controls"
    return interval_chart(
        title,
        "Broken outputs are called worse in the planted dimension; controls hold nothing to find. Both are best at 1.",
        rows,
        sheet_block("Found and quiet", point_sheet(rows, ("dimension", ""), [figure for *_, figure in figures])),
        axis="share of pairs",
    )


def _bias_chart(calibration: JudgeCalibration) -> Iterator[SiteBlock]:
    """Yield what ought not to matter, each bias as a point with its interval around none."""
    figures: list[tuple[str, str, FigureResult]] = []
    present = []
    for judge in calibration.judges:
        for stratum, one in judge.strata.items():
            lean = FigureResult(value=one.lean, ci95=one.lean_ci95, n=one.n)
            figures.append((f"position: {stratum}", judge.judge, lean))
            figures += [] if one.length is None else [(f"length: {stratum}", judge.judge, one.length)]
        for criterion, strata in judge.scores.items():
            for stratum, scores in strata.items():
                if scores.length is not None:
                    figures.append((f"length: {criterion} on {stratum}", judge.judge, scores.length))
        for bias in judge.biases:
            if not bias.way:
                figures.append((f"{bias.bias}: {bias.criterion}", judge.judge, bias.shift))
    for name, judge_id, figure in figures:
        if figure.ci95 is not None and not figure.ci95[0] <= 0.0 <= figure.ci95[1]:
            present.append(f"{name} ({judge_id})")
    rows = [point(*figure) for figure in figures]
    if rows:
        yield interval_chart(
            f"Moves verdicts beyond chance: {listed(present, 3)}" if present else "No bias is shown beyond chance",
            "How far verdicts move, as a share of the scale, by what ought not to matter: 0 is none. Position is the "
            "lean to the first place; length is the preference of longer outputs beyond that of people.",
            rows,
            sheet_block("Biases", point_sheet(rows, ("bias", "judge"), [figure for *_, figure in figures])),
            axis="shift of verdicts",
            domain=(-1.0, 1.0),
            marks={0.0: "none"},
        )


def _confident(calibration: JudgeCalibration) -> Iterator[tuple[str, ReliabilityResult]]:
    for judge in calibration.judges:
        for stratum, one in judge.strata.items():
            if one.confidence is not None:
                yield f"{judge.judge} on {stratum}", one.confidence.labels
        for criterion, strata in judge.scores.items():
            for stratum, scores in strata.items():
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
        sheet_block("Confidence beside the share that was right", table),
        words={"series": list(dict.fromkeys(row["series"] for row in rows))},
        more={"diagonal": [{"confidence": end, "value": end} for end in (0, 1)]},
    )


def _confusions(calibration: JudgeCalibration) -> Iterator[SiteBlock]:
    """Yield each judge's verdicts by people's."""
    for judge in calibration.judges:
        tables: dict[str, StratumResult | ScoreResult] = {f"on {name}": one for name, one in judge.strata.items()}
        for criterion, strata in judge.criteria.items():
            tables |= {f"by {criterion} on {name}": one for name, one in strata.items()}
        for criterion, scored in judge.scores.items():
            tables |= {f"{criterion} on {name}": one for name, one in scored.items()}
        for where, figures in tables.items():
            yield _heat(f"{judge.judge} (rows) beside people (columns), {where}", figures.confusion)


def _heat(caption: str, counts: Mapping[Any, Mapping[Any, int]]) -> SiteBlock:
    people = [str(name) for name in dict.fromkeys(name for row in counts.values() for name in row)]
    rows = [
        [[str(mine), None], *([str(row[name]), "agrees" if name == mine else "differs"] for name in row)]
        for mine, row in counts.items()
    ]
    columns = ["judge", *(f"people: {name}" for name in people)]
    numbers = [False, *(True for _ in people)]
    return {
        "kind": "sheet",
        "caption": caption,
        "note": "",
        "folded": True,
        "heat": True,
        "columns": columns,
        "numbers": numbers,
        "rows": rows,
    }
