"""The results of a judging (scores, comparisons, regressions): the verdicts, and what may be wrong with them."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from skill_evaluator.checking.rubrics import RubricLint
from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Captioned, Heading, Line, Lines, Only, page_of, print_page
from skill_evaluator.display.safe_text import code_span, shortened, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, print_result
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.story import JudgingSize
from skill_evaluator.judges.calibration.results import FEWEST_PAIRS
from skill_evaluator.judges.modes.pairwise import JudgePreferences, PairwiseResults, Ranking
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    JudgeRegressions,
    Mismatch,
    PairResult,
    RateAlert,
    RegressionResults,
)
from skill_evaluator.judges.modes.scoring import JudgeScores, ScoreResults
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.judges.stories.judging import Judged
from skill_evaluator.records.pinned import PinReport
from skill_evaluator.reports.judging import (
    cascade_notes,
    doubt_blocks,
    interval,
    interval_chart,
    is_off,
    panel_of_pairs,
    panel_of_regressions,
    panel_of_scores,
    point,
    print_judging_size,
    reasons,
    row_of,
    severity_counts,
    share,
)
from skill_evaluator.reports.lint import print_rubric_lint
from skill_evaluator.runner.session import print_how_to_go_on
from skill_evaluator.text import counted, listed

JudgedResults = ScoreResults | PairwiseResults | RegressionResults

_SCORE_NUMBERS = ("items", "score", "95 %", "0 to 1", "confidence", "unscored")
_WHOLE = "all, weighted"
_CROWDED = 0.8  # share of judgements with one score, from which a scale tells little apart
_ALWAYS_SURE = 0.95
_PAIR_NUMBERS = ("1 better", "2 better", "ties", "of them by order", "1 wins", "95 %", "flips")
_PAIR_DOUBTS = ("flips", "beyond noise", "picks first", "lean", "1 wins", "pull of length", "confidence")
_BOTH_ORDERS = "That a judge says the same in both orders is no reason for trust: it can be wrong in both."
_STYLES = {"ship": "green", "review_required": "yellow", "block": "red", None: "yellow"}
_COUNTS = ("pairs", "better", "same", "uncertain", "worse", "low", "medium", "high", "flips")
_MOST_PAIRS = 20
_EVIDENCE = 160  # characters of each piece that are shown
_LEGS = {"quote": "a quote was found", "omission": "left out of the candidate", "form": "a rule of the prompt broken"}
_FLAGS = {
    "unsupported": "unsupported: code can confirm none of it",
    "no_evidence": "no evidence",
    "quote_not_found": "a quotation is in no text",
    "style_only": "speaks of style alone",
}
_NAMED = {"candidate_worse": "worse", "candidate_better": "better"}


def print_judged(judged: Judged | JudgingSize, form: Format) -> int:
    """Print the verdicts, and on stderr how to go on where they stopped; return the exit code.

    Of a dry run print what it would take.
    """
    if isinstance(judged, JudgingSize):
        print_judging_size(judged, form)
        return EXIT_OK
    results, remarks = judged.results, [*judged.remarks, f"everything else is in {judged.folder}"]
    if results is not None:
        print_page(
            form,
            json=lambda: {"folder": str(judged.folder), **results.model_dump(mode="json")},
            page=lambda: page_of("the judging", judged_blocks(results, remarks)),
        )
    for sentence in judged.stopped:
        print(sentence, file=sys.stderr)
    if judged.again:
        print_how_to_go_on(judged.again)
    return judged.code


def print_rubric_draft(drafted: RubricLint | JudgingSize, form: Format) -> int:
    """Print what lint says of a drafted rubric, or of a dry run what it would take; return the exit code."""
    if isinstance(drafted, JudgingSize):
        return print_judged(drafted, form)
    print_rubric_lint(drafted, form)
    return EXIT_OK


def print_pinned(report: PinReport, form: Format) -> None:
    """Print what is kept as a baseline."""
    outputs, whose = counted(len(report.cases), "output"), f"{report.skill} {report.skill_version} by {report.model_id}"
    print_result(
        form,
        json=lambda: report.model_dump(mode="json"),
        markdown=lambda: f"{outputs} of {code_span(whose)} pinned in {code_span(report.path)}\n",
        text=lambda: [Text(visible(f"{outputs} of {whose} pinned in {report.path}; commit it"))],
    )


def judged_blocks(results: JudgedResults, remarks: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the verdicts, and remarks on them."""
    if isinstance(results, RegressionResults):
        yield Only(("markdown", "site"), [Heading(f"Regressions by judges: {_conclusion(results)}", level=2)])
        yield from regression_findings(results)
        notes = regression_notes(results)
    elif isinstance(results, ScoreResults):
        yield from _score_blocks(results)
        notes = _score_notes(results)
    else:
        yield from _pair_blocks(results)
        notes = _pair_notes(results)
    cascade = getattr(results, "cascade", None)
    yield Lines([*notes, *([] if cascade is None else cascade_notes(cascade)), *remarks])
    if isinstance(results, RegressionResults):
        style = "red" if results.alerting else _STYLES[results.ship_decision]
        yield Only(("terminal",), [Line(_conclusion(results), style=style)])


def judged_doubts(results: JudgedResults) -> Iterator[Block]:
    """Yield what may be wrong with the judges, as far as it shows without labels."""
    if isinstance(results, RegressionResults):
        return doubt_blocks(
            (judge.judge.model_id, _regression_doubt_sheet(judge), _regression_doubts(judge))
            for judge in results.judges
        )
    if isinstance(results, ScoreResults):
        return doubt_blocks(
            (judge.judge.model_id, _score_doubt_sheet(judge), _score_doubts(judge)) for judge in results.judges
        )
    judges = ((judge.judge.model_id, _pair_doubt_sheet(judge), _pair_doubts(judge)) for judge in results.judges)
    return doubt_blocks(judges, _BOTH_ORDERS)


def bias_page(results: JudgedResults) -> str:
    """Return bias_analysis_report.md."""
    return page_of("doubts", judged_doubts(results)).markdown()


def _score_blocks(results: ScoreResults) -> Iterator[Block]:
    yield Only(("markdown", "site"), [Heading("Scores by judges", level=2)])
    table = Captioned(_score_sheet(results), "Scores")
    yield Only(("terminal", "markdown"), [table.sheet])
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
    yield interval_chart(title, note, rows, table, axis="score, from 0 to 1")


def _score_sheet(results: ScoreResults) -> Sheet:
    """Return the scores of all judges by criterion."""
    rows = []
    for judge in results.judges:
        name, of, summary = judge.judge.model_id, len(judge.items), judge.summary
        rows += [
            row_of(
                [name, criterion.criterion],
                criterion.method,
                f"{criterion.score.n}/{of}",
                f"{number(criterion.score.value)} of {criterion.highest}",
                interval(criterion.score),
                *map(number, (criterion.normalised.value, criterion.confidence.value)),
                reasons(criterion.unscored),
            )
            for criterion in judge.criteria
        ]
        rows.append(
            row_of([name], _WHOLE, "", f"{summary.n}/{of}", "", interval(summary), number(summary.value), "", "")
        )
    return Sheet(
        columns=("judge", "criterion", "method", *_SCORE_NUMBERS), rows=rows, numbers=frozenset(_SCORE_NUMBERS[:-1])
    )


def _score_notes(results: ScoreResults) -> Iterator[str]:
    """Yield the remarks below the table."""
    yield from panel_of_scores(results.panel)
    if results.left_out:
        listed = ", ".join(f"{name} ({why})" for name, why in list(results.left_out.items())[:5])
        yield f"{counted(len(results.left_out), 'case')} without an output to judge: {listed}"
    for judge in results.judges:
        if len(judge.strata) > 1:
            parts = (f"{name} {number(value.value)} ({value.n})" for name, value in judge.strata.items())
            yield f"{judge.judge.model_id} by stratum: {', '.join(parts)}"
        unsure = sum(criterion.unsure for criterion in judge.criteria)
        if unsure:
            yield f"{judge.judge.model_id}: {counted(unsure, 'judgement')} below the threshold of confidence"


def _score_doubt_sheet(judge: JudgeScores) -> Sheet:
    """Return the figures that may show what is wrong with a judge."""
    rows = []
    for criterion in judge.criteria:
        scores = " ".join(f"{score}: {criterion.counts.get(score, 0)}" for score in range(1, criterion.highest + 1))
        figures = map(_figure, (criterion.length, criterion.repeats, criterion.confidence, criterion.quoted))
        rows.append(row_of([criterion.criterion], scores, *figures, reasons(criterion.unscored)))
    columns = (
        "criterion",
        "judgements by score",
        "rises with length (ρ)",
        "replicates agree",
        "confidence",
        "evidence found",
        "unscored",
    )
    return Sheet(columns=columns, rows=rows)


def _score_doubts(judge: JudgeScores) -> Iterator[str]:
    """Yield what may be wrong with a judge, as far as it shows without labels."""
    for criterion in judge.criteria:
        name, length, total = criterion.criterion, criterion.length, sum(criterion.counts.values())
        if is_off(length):
            way = "higher" if (length.value or 0.0) > 0 else "lower"
            yield f"{name}: longer outputs score {way}, beyond chance. That is a bias only where length is no merit."
        if total and max(criterion.counts.values()) > _CROWDED * total:
            commonest = max(criterion.counts, key=lambda score: criterion.counts[score])
            yield f"{name}: most judgements have the score {commonest}, so that the scale tells little apart."
        if criterion.repeats.n == 0:
            yield f"{name}: how well the judge repeats itself is not known; ask with --replicates 2 or more."
        if criterion.confidence.ci95 is not None and criterion.confidence.ci95[0] > _ALWAYS_SURE:
            yield f"{name}: the judge is always sure. Without labels nobody knows whether it may be."
    yield "Position: each output is judged by itself, so that there is none."


def _pair_blocks(results: PairwiseResults) -> Iterator[Block]:
    yield Only(("markdown", "site"), [Heading("Comparisons by judges", level=2)])
    table = Captioned(_pair_sheet(results), "Comparisons")
    yield Only(("terminal", "markdown"), [table.sheet])
    wins = [
        point(criterion.criterion, judge.judge.model_id, criterion.wins)
        for judge in results.judges
        for criterion in judge.criteria
        if criterion.criterion in judge.shown
    ]
    measured = [row for row in wins if row["value"] is not None]
    far = max(measured, key=lambda row: abs(row["value"] - 0.5), default=None)
    title = "Comparisons of several outputs" if wins else "No answer counts"
    if far is not None:
        title = f"Output 1 wins {number(far['value'])} by {far['label']}, as {far['series']} has it"
    note = "How often output 1 wins, a tie being half a win, with its 95 % interval over pairs."
    yield interval_chart(title, note, wins, table, axis="share that output 1 wins", marks={0.5: "neither is better"})
    for judge in results.judges:
        for ranking in judge.rankings:
            if ranking.criterion in judge.shown:
                remark = f"; {ranking.remark}" if ranking.remark else ""
                yield Captioned(_ladder(ranking), f"{judge.judge.model_id}, {ranking.criterion}: best first{remark}")


def _pair_sheet(results: PairwiseResults) -> Sheet:
    """Return the preferences of all judges by criterion."""
    rows = [
        row_of(
            [judge.judge.model_id, criterion.criterion],
            *(criterion.counts.get(winner, 0) for winner in ("1", "2", "tie")),
            *(criterion.disagreed, number(criterion.wins.value), interval(criterion.wins)),
            *(number(criterion.flips.value), reasons(criterion.unscored)),
        )
        for judge in results.judges
        for criterion in judge.criteria
        if criterion.criterion in judge.shown
    ]
    return Sheet(
        columns=("judge", "criterion", *_PAIR_NUMBERS, "unscored"), rows=rows, numbers=frozenset(_PAIR_NUMBERS)
    )


def _ladder(ranking: Ranking) -> Sheet:
    """Return a ranking with its win matrix: a row's wins against each column."""
    beaten = (f"beat {place}" for place in range(1, len(ranking.names) + 1))
    columns = ("place", "output", "strength", "95 %", *beaten, "ties")
    rows = []
    for row, name in enumerate(ranking.names):
        strength = None if ranking.strengths is None else ranking.strengths[row]
        figures = ("–", "–") if strength is None else (number(strength.value), interval(strength))
        wins = ("" if row == column else count for column, count in enumerate(ranking.wins[row]))
        rows.append([Cell(str(row + 1)), *row_of([name], *figures, *wins, sum(ranking.ties[row]))])
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns) - {"output"})


def _pair_notes(results: PairwiseResults) -> Iterator[str]:
    """Yield the remarks below the tables."""
    yield from panel_of_pairs(results.panel, results.judges[0].shown if results.judges else ())
    for judge in results.judges:
        name, overall = judge.judge.model_id, judge.criteria[-1]
        if len(judge.strata) > 1:
            parts = (f"{stratum} {number(wins.value)} ({wins.n})" for stratum, wins in judge.strata.items())
            yield f"{name}: output 1 wins by stratum: {', '.join(parts)}"
        if overall.disagreed:
            yield f"{name}: {counted(overall.disagreed, 'verdict')} came from the order, and count as ties"
        if overall.unsure:
            yield f"{name}: {counted(overall.unsure, 'verdict')} below the threshold of confidence"


def _pair_doubt_sheet(judge: JudgePreferences) -> Sheet:
    """Return the figures that may show what is wrong with a judge."""
    rows = []
    for one in judge.criteria:
        if one.criterion in judge.shown:
            figures = (one.flips, one.flips_beyond_noise, one.picks_first, one.lean, one.wins, one.length)
            rows.append(row_of([one.criterion], *map(_figure, (*figures, one.confidence))))
    return Sheet(columns=("criterion", *_PAIR_DOUBTS), rows=rows)


def _figure(figure: Figure | None) -> str | None:
    """Return a figure with its interval, even where it rests on nothing."""
    return None if figure is None else f"{number(figure.value)} {interval(figure)}"


def _pair_doubts(judge: JudgePreferences) -> Iterator[str]:
    """Yield what may be wrong with a judge, as far as it shows without labels."""
    for criterion in judge.criteria:
        if criterion.criterion in judge.shown:
            lean, length = criterion.lean, criterion.length
            if is_off(lean):
                place = "first" if (lean.value or 0.0) > 0 else "second"
                yield f"{criterion.criterion}: it leans to the {place} place, beyond chance."
            if is_off(length):
                which = "longer" if (length.value or 0.0) > 0 else "shorter"
                yield f"{criterion.criterion}: it prefers {which} outputs, beyond chance."
    if all(criterion.noise is None for criterion in judge.criteria):
        yield "How much of the flips is the judge's own noise is not known; ask with --replicates 2 or more."


def _conclusion(results: RegressionResults) -> str:
    return (results.ship_decision or "no decision") + ", and a rate of regressions alerts" * results.alerting


def regression_findings(results: RegressionResults) -> Iterator[Block]:
    """Yield of each judge its dimensions and the pairs that do not ship, blocks first; then those of the panel.

    On the site they stand without the evidence, which quotes what was judged.
    """
    for judge in results.judges:
        held = [pair for pair in judge.pairs if pair.ship_decision != "ship"]
        held.sort(key=lambda pair: pair.ship_decision != "block")
        name = judge.judge.model_id
        dimensions = _dimension_sheet(judge)
        shown: list[Block] = [dimensions]
        for pair in held[:_MOST_PAIRS]:
            words = f"{pair.id}: {pair.ship_decision or 'no decision'} by {name}: {'; '.join(pair.reasons)}"
            shown += [Line(words, style=_STYLES[pair.ship_decision]), Lines(list(_evidence(pair)), mark="-")]
        if len(held) > _MOST_PAIRS:
            shown.append(Line(f"{name}: {_MOST_PAIRS} of the {len(held)} pairs that do not ship are shown"))
        yield Only(("terminal", "markdown"), shown)
        tables = [
            Captioned(dimensions, f"Dimensions, {name}"),
            Captioned(_held(held), f"Pairs that do not ship, {name}"),
        ]
        yield Only(("site",), tables)
    together = () if results.panel is None else results.panel.pairs
    lines = [
        f"panel, {pair.id}: {pair.ship_decision or 'no decision'}: {'; '.join(pair.reasons)}"
        for pair in together
        if pair.ship_decision != "ship"
    ]
    yield Only(("terminal", "markdown"), [Lines(lines)])


def _dimension_sheet(judge: JudgeRegressions) -> Sheet:
    """Return what a judge found of each dimension."""
    rows = []
    for summary in judge.dimensions:
        names = [judge.judge.model_id, summary.dimension]
        counts = (summary.worse.n, summary.better, summary.same, summary.uncertain)
        impacts, blocks = summary.impacts.values(), "blocks" if summary.blocking else ""
        rows.append(row_of(names, blocks, *counts, summary.worse, *impacts, summary.flips))
    return Sheet(columns=("judge", "dimension", "", *_COUNTS), rows=rows, numbers=frozenset(_COUNTS))


def _held(pairs: Sequence[PairResult]) -> Sheet:
    """Return the pairs that do not ship; what is quoted of them is in the results alone."""
    rows = []
    for pair in pairs:
        decision = Cell(pair.ship_decision or "no decision", _STYLES[pair.ship_decision])
        rows.append(row_of([pair.id, pair.stratum], decision, "; ".join(_findings(pair))))
    return Sheet(columns=("pair", "stratum", "decision", "found"), rows=rows)


def _findings(pair: PairResult) -> Iterator[str]:
    for one in pair.dimensions:
        if one.verdict in ("candidate_worse", "uncertain"):
            marks = [mark for mark in (one.impact, *one.flags) if mark]
            yield f"{one.dimension} {_NAMED.get(one.verdict, one.verdict)}{f' ({listed(marks)})' if marks else ''}"
    unscored = [answer.unscored for answer in pair.answers if answer.unscored is not None]
    if unscored:
        yield f"{counted(len(unscored), 'answer')} unscored: {', '.join(dict.fromkeys(unscored))}"


def _evidence(pair: PairResult) -> Iterator[Line]:
    """Yield every dimension in which an answer calls the candidate worse, with its evidence."""
    first = [finding for answer in pair.answers if answer.replicate == 0 for finding in answer.findings]
    worse = {finding.dimension: finding for finding in reversed(first) if finding.verdict == "candidate_worse"}
    for dimension in pair.dimensions:
        finding = worse.get(dimension.dimension)
        if finding is None:
            continue
        impact = finding.impact if dimension.impact is None else dimension.impact
        marks = [_LEGS[leg] for leg in dimension.legs] + [_FLAGS[flag] for flag in dimension.flags]
        words: list[str | Cell] = [f"{dimension.dimension}, {dimension.verdict}, {impact}: {'; '.join(marks)}"]
        for role, evidence in (("baseline", finding.baseline), ("candidate", finding.candidate)):
            if evidence.kind != "none":
                words += [f" · {role}, {evidence.kind}: ", Cell(shortened(evidence.text, limit=_EVIDENCE), code=True)]
        yield Line(*words)


def alert_sentences(alerts: Iterable[RateAlert]) -> Iterator[str]:
    """Yield what there is to say of each rate that the policy bounds, alerts first."""
    for alert in sorted(alerts, key=lambda alert: not alert.above):
        name = f"{alert.dimension} by {alert.judge}"
        if alert.corrected is None or alert.reported is None:
            yield f"no alert can be computed of {name} (at most {alert.allowed:g} is allowed): {alert.problem}"
            continue
        errors = (alert.sensitivity, alert.specificity)
        found, quiet = (f"{number(one.value)} of {one.n}" for one in errors if one is not None)
        few = f"; {alert.reported.n} pairs, and under {FEWEST_PAIRS} say little" * (alert.reported.n < FEWEST_PAIRS)
        yield (
            f"{'ALERT' if alert.above else 'no alert'}: {name}: corrected rate of regressions {share(alert.corrected)}"
            f", at most {alert.allowed:g} is allowed; reported {number(alert.reported.value)}, corrected by "
            f"sensitivity {found} and specificity {quiet} (calibration {alert.calibration}){few}"
        )


def regression_notes(results: RegressionResults) -> Iterator[str]:
    """Yield the remarks below the tables."""
    yield from alert_sentences(results.alerts)
    yield from panel_of_regressions(results.panel)
    for judge in results.judges:
        shares = ", ".join(f"{name} {share(judge.decisions[name])}" for name in DECISIONS)
        name = judge.judge.model_id
        undecided = f", no decision on {judge.undecided}" if judge.undecided else ""
        counting = judge.decisions["ship"].n
        some = f"{counting} of " * (counting < len(judge.pairs))
        yield f"{name}, {some}{counted(len(judge.pairs), 'pair')}{' that count' * bool(some)}: {shares}{undecided}"
        yield f"{name}: the orders disagree on {share(judge.flips)} of pairs"
        if judge.unscored:
            yield f"{name}: of {counted(judge.answers, 'answer')} unscored: {_counts(judge.unscored)}"
        if judge.mismatches:
            yield f"{name}: its own conclusion did not follow from its findings: {_counts(judge.mismatches)}"
    if results.left_out:
        listed = ", ".join(f"{name} ({why})" for name, why in list(results.left_out.items())[:5])
        yield f"{counted(len(results.left_out), 'case')} that could not be compared: {listed}"


def _counts(counts: Mapping[UnscoredReason, int] | Mapping[Mismatch, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _regression_doubt_sheet(judge: JudgeRegressions) -> Sheet:
    rows = [
        row_of([one.dimension], one.flips, f"{one.unsupported} of {sum(one.impacts.values())}", one.style_only)
        for one in judge.dimensions
    ]
    return Sheet(columns=("dimension", "orders disagree", "worse without support", "worse by style alone"), rows=rows)


def _regression_doubts(judge: JudgeRegressions) -> Iterator[str]:
    """Yield what may be wrong with a judge, as far as it shows without labels."""
    yield (
        f"On {share(judge.flips)} of pairs the orders disagree in some dimension. A judge that agrees with itself can "
        "still be wrong."
    )
    place = "first" if (judge.lean.value or 0.0) > 0 else "second"
    position = (
        f"It judges an output better where that stands {place}," if is_off(judge.lean) else "No position is favoured"
    )
    yield f"{position} beyond chance: lean {share(judge.lean)}."
    if judge.repeats.n == 0:
        yield "How well the judge repeats itself is not known; ask with --replicates 2 or more."
    else:
        yield f"Asked the same again it says the same in every dimension in {share(judge.repeats)}."
    yield (
        f"Own conclusions that do not follow from its findings: {_counts(judge.mismatches) or 'none'}, of "
        f"{counted(judge.answers, 'answer')}."
    )
    yield f"Severity: {severity_counts(judge.severity)}."
    yield f"Answers that did not count: {_counts(judge.unscored) or 'none'}."
    if not judge.declared_strong:
        yield "models.yaml does not declare it strong enough (judge: strong)."
