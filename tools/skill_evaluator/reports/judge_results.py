"""The results of a judge run: the decision, the worst outputs with the judge's evidence, and the judge's biases."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from skill_evaluator.checking.rubrics import RubricLint
from skill_evaluator.display import number, probability
from skill_evaluator.display.pages import Block, Captioned, Heading, Line, Lines, Only, page_of, print_page
from skill_evaluator.display.safe_text import code_span, shortened, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, print_result
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.asking.results import JudgeRecord, NoUsableOutput
from skill_evaluator.judges.asking.story import JudgingSize
from skill_evaluator.judges.modes.pairwise import JudgePreferences, MatchResult, PairwiseResults
from skill_evaluator.judges.modes.regression import Mismatch
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    MIN_PAIRS,
    DimensionResult,
    JudgeRegressions,
    PairResult,
    RateAlert,
    RegressionResults,
)
from skill_evaluator.judges.modes.scoring import JudgeScores, ScoreResults
from skill_evaluator.judges.stories.batches import JudgedResults
from skill_evaluator.judges.stories.judging import Judged
from skill_evaluator.library.rubrics import USUAL_THRESHOLD
from skill_evaluator.records.pinned import PinReport
from skill_evaluator.reports.judging import (
    bias_blocks,
    cascade_blocks,
    interval,
    is_off,
    panel_blocks,
    print_judging_size,
    reasons,
    row_of,
    severity_counts,
    share,
)
from skill_evaluator.reports.lint import print_rubric_lint
from skill_evaluator.runner.session import print_how_to_go_on
from skill_evaluator.text import counted, listed

_STYLES = {"ship": "green", "review_required": "yellow", "block": "red", None: "yellow"}
_MAX_PAIRS = 10  # shown with their evidence
_MAX_EVIDENCE = 160  # characters of each piece
_CROWDED = 0.8  # share of judgements with one score, above which a scale separates little
_ALWAYS_SURE = 0.95
_VERDICTS = {"candidate_worse": "worse", "candidate_better": "better"}


def print_judged(judged: Judged | JudgingSize, form: Format) -> int:
    """Print the results, and on stderr the command to resume; for a dry run the size. Return the exit code."""
    if isinstance(judged, JudgingSize):
        print_judging_size(judged, form)
        return EXIT_OK
    results, remarks = judged.results, [f"all results are in {judged.folder}"]
    if results is not None:
        print_page(
            form,
            json=lambda: {"folder": str(judged.folder), **results.model_dump(mode="json")},
            page=lambda: page_of("the judge run", judged_blocks(results, remarks)),
        )
    for sentence in judged.stopped:
        print(sentence, file=sys.stderr)
    if judged.again:
        print_how_to_go_on(judged.again)
    return judged.code


def print_rubric_draft(drafted: RubricLint | JudgingSize, form: Format) -> int:
    """Print the lint of a drafted rubric, or the size of a dry run; return the exit code."""
    if isinstance(drafted, JudgingSize):
        return print_judged(drafted, form)
    print_rubric_lint(drafted, form)
    return EXIT_OK


def print_pinned(report: PinReport, form: Format) -> None:
    """Print which outputs were pinned."""
    outputs, whose = counted(len(report.cases), "output"), f"{report.skill} {report.skill_version} by {report.model_id}"
    print_result(
        form,
        json=lambda: report.model_dump(mode="json"),
        markdown=lambda: f"{outputs} of {code_span(whose)} pinned in {code_span(report.path)}\n",
        text=lambda: [Text(visible(f"{outputs} of {whose} pinned in {report.path}; commit it"))],
    )


def judged_blocks(results: JudgedResults, remarks: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the decision, the worst outputs, the judges' biases, and remarks."""
    titles = {"score": "Scores by judges", "pairwise": "Comparisons by judges", "regression": "Regressions by judges"}
    source = f": {results.judging.source}" if results.judging.source else ""
    yield Only(("markdown", "site"), [Heading(titles[results.judging.mode], source, level=2)])
    if isinstance(results, RegressionResults):
        yield from regression_findings(results)
        notes = list(regression_notes(results))
    elif isinstance(results, ScoreResults):
        yield from _score_blocks(results)
        notes = list(_left_out(results.left_out))
    else:
        yield from _pair_blocks(results)
        notes = []
    yield Lines(notes)
    yield Only(("terminal", "markdown"), [Lines([*_biases(results), *remarks])])
    if isinstance(results, RegressionResults):
        yield Only(("terminal",), [Line(_conclusion(results), style=_conclusion_style(results))])


def _biases(results: JudgedResults) -> Iterator[str]:
    for judge in results.judges:
        if judge.unusable is None:
            name = judge.judge.model_id
            yield from (f"{name}: {sentence}" for sentence in _bias_sentences(judge))


def bias_page(results: JudgedResults) -> str:
    """Return bias_analysis_report.md."""
    return page_of("biases", judged_doubts(results)).markdown()


def judged_doubts(results: JudgedResults) -> Iterator[Block]:
    """Yield what can be measured of the judges' biases without labels."""
    return bias_blocks(
        (judge.judge.model_id, _bias_sheet(judge), _bias_sentences(judge))
        for judge in results.judges
        if judge.unusable is None
    )


JudgeOfAnyMode = JudgeScores | JudgePreferences | JudgeRegressions


def _bias_sheet(judge: JudgeOfAnyMode) -> Sheet:
    if isinstance(judge, JudgeScores):
        return _score_bias_sheet(judge)
    return _pair_bias_sheet(judge) if isinstance(judge, JudgePreferences) else _regression_bias_sheet(judge)


def _bias_sentences(judge: JudgeOfAnyMode) -> Iterator[str]:
    if isinstance(judge, JudgeScores):
        return _score_biases(judge)
    return _pair_biases(judge) if isinstance(judge, JudgePreferences) else _regression_biases(judge)


def _unusable(judges: Iterable[tuple[JudgeRecord, NoUsableOutput | None]]) -> Iterator[Block]:
    """Yield a line for each judge of which no output can be used: the reasons, and one output."""
    for record, unusable in judges:
        if unusable is not None:
            words = f"{record.model_id}: no usable output: {reasons(unusable.unscored)}"
            yield Only(("site",), [Line(words, style="red")])
            example: list[str | Cell] = ["; for example: ", _cut(unusable.example)] if unusable.example else []
            yield Only(("terminal", "markdown"), [Line(words, *example, style="red")])


def _left_out(left_out: dict[str, str]) -> Iterator[str]:
    if left_out:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(left_out.items())[:5])
        yield f"not judged: {counted(len(left_out), 'case')}: {named}"


# scores


def _score_blocks(results: ScoreResults) -> Iterator[Block]:
    yield from _unusable((judge.judge, judge.unusable) for judge in results.judges)
    usable = [judge for judge in results.judges if judge.unusable is None]
    for judge in usable:
        strata = [f"{name} {number(one.value)} ({one.n})" for name, one in judge.strata.items()]
        by_stratum = f"; by stratum: {', '.join(strata)}" if len(strata) > 1 else ""
        yield Line(
            f"{judge.judge.model_id}: {share(judge.summary)} from 0 to 1 over {counted(judge.summary.n, 'output')}"
            f"{by_stratum}"
        )
    numbers = ("outputs", "score", "0 to 1", "confidence", "unsure")
    rows = [
        row_of(
            [judge.judge.model_id, one.criterion],
            one.method,
            f"{one.score.n}/{len(judge.items)}",
            f"{number(one.score.value)} of {one.highest} {interval(one.score)}",
            number(one.normalised.value),
            number(one.confidence.value),
            one.unsure,
            reasons(one.unscored),
        )
        for judge in usable
        for one in judge.criteria
    ]
    columns = ("judge", "criterion", "method", *numbers, "unscored")
    yield Captioned(Sheet(columns=columns, rows=rows, numbers=frozenset(numbers)), "Scores")
    if results.panel is not None:
        scores = ", ".join(f"{name} {share(one)}" for name, one in results.panel.scores.items())
        yield from panel_blocks(f"panel (mean): {share(results.panel.summary)}; {scores}", results.panel)
    yield from cascade_blocks(results.cascade)
    if usable:
        yield Only(("terminal", "markdown"), [Captioned(_worst_scores(usable), "The lowest scores")])


def _worst_scores(judges: Sequence[JudgeScores]) -> Sheet:
    """Return the lowest scores with the judge's evidence."""
    scored = [
        ((one.score - 1) / (highest[one.criterion] - 1), judge.judge.model_id, item.id, one)
        for judge in judges
        for highest in [{criterion.criterion: criterion.highest for criterion in judge.criteria}]
        for item in judge.items
        for one in item.judgements
        if one.score is not None and one.replicate == 0
    ]
    scored.sort(key=lambda row: row[0])
    rows = [
        row_of(
            [name, item, one.criterion],
            one.score,
            *(_cut(text) for text in (" … ".join(one.evidence), one.justification, one.suggestion)),
        )
        for _, name, item, one in scored[:_MAX_PAIRS]
    ]
    columns = ("judge", "output", "criterion", "score", "evidence", "justification", "suggestion")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"score"}), below=columns[-3:])


def _cut(text: str) -> Cell:
    return Cell(shortened(text, limit=_MAX_EVIDENCE) or "–", code=bool(text))


def _score_bias_sheet(judge: JudgeScores) -> Sheet:
    rows = []
    for one in judge.criteria:
        scores = " ".join(f"{score}: {one.counts.get(score, 0)}" for score in range(1, one.highest + 1))
        rows.append(row_of([one.criterion], scores, one.length, one.repeats, one.confidence, one.quoted))
    columns = ("criterion", "judgements by score", "length (ρ)", "replicates agree", "confidence", "evidence found")
    return Sheet(columns=columns, rows=rows)


def _score_biases(judge: JudgeScores) -> Iterator[str]:
    for one in judge.criteria:
        total = sum(one.counts.values())
        if is_off(one.length):
            way = "higher" if (one.length.value or 0.0) > 0 else "lower"
            bias = "length bias, if length is no merit"
            yield f"{one.criterion}: longer outputs score {way}, significant: ρ {share(one.length)}: {bias}"
        if total and max(one.counts.values()) > _CROWDED * total:
            commonest = max(one.counts, key=lambda score: one.counts[score])
            yield f"{one.criterion}: most judgements have the score {commonest}: the scale separates little"
        if one.confidence.ci95 is not None and one.confidence.ci95[0] > _ALWAYS_SURE:
            yield f"{one.criterion}: the judge is always confident"
        if one.repeats.n == 0:
            yield f"{one.criterion}: agreement of replicates is not known; use --replicates 2 or more"


# pairwise comparisons


def _pair_blocks(results: PairwiseResults) -> Iterator[Block]:
    yield from _unusable((judge.judge, judge.unusable) for judge in results.judges)
    usable = [judge for judge in results.judges if judge.unusable is None]
    for judge in usable:
        overall = judge.criteria[-1]
        if overall.wins.n:
            strata = [f"{name} {number(one.value)} ({one.n})" for name, one in judge.strata.items()]
            by_stratum = f"; by stratum: {', '.join(strata)}" if len(strata) > 1 else ""
            yield Line(
                f"{judge.judge.model_id}: output 1 wins {share(overall.wins)} of {counted(overall.wins.n, 'pair')}, "
                f"{share(overall.similar_length)} of {overall.similar_length.n} of similar length{by_stratum}"
            )
    numbers = ("1 better", "2 better", "ties", "of these by order", "unsure", "1 wins", "similar length")
    rows = [
        row_of(
            [judge.judge.model_id, one.criterion],
            *(one.counts.get(winner, 0) for winner in ("1", "2", "tie")),
            *(one.disagreed, one.unsure, one.wins, one.similar_length, reasons(one.unscored)),
        )
        for judge in usable
        for one in judge.shown
    ]
    columns = ("judge", "criterion", *numbers, "unscored")
    yield Captioned(Sheet(columns=columns, rows=rows, numbers=frozenset(numbers)), "Comparisons")
    for judge in usable:
        if judge.outputs:
            rows = [row_of([one.name], one.wins) for one in judge.outputs]
            yield Captioned(Sheet(columns=("output", "win rate"), rows=rows), f"{judge.judge.model_id}: best first")
    if results.panel is not None:
        wins = ", ".join(f"{name} {share(one)}" for name, one in results.panel.wins.items())
        yield from panel_blocks(f"panel (majority): output 1 wins {wins}", results.panel)
    yield from cascade_blocks(results.cascade)
    uncertain = _open_matches(usable)
    if uncertain.rows:
        yield Only(("terminal", "markdown"), [Captioned(uncertain, "The least certain comparisons")])


def _open_matches(judges: Sequence[JudgePreferences]) -> Sheet:
    """Return the comparisons in which the orders disagree or the judge is least confident, with both justifications."""
    matches = [(judge.judge.model_id, match, match.judgements[-1]) for judge in judges for match in judge.matches]
    matches = [row for row in matches if row[2].winner is not None and (row[2].confidence or 0.0) < USUAL_THRESHOLD]
    matches.sort(key=lambda row: (row[2].agreed is True, row[2].confidence or 0.0))
    rows = []
    for name, match, overall in matches[:_MAX_PAIRS]:
        rows.append(row_of([name, _match_name(match)], overall.winner, *_both_orders(match)))
    return Sheet(columns=("judge", "pair", "winner", "order 1", "order 2"), rows=rows, below=("order 1", "order 2"))


def _match_name(match: MatchResult) -> str:
    return match.item if match.names == ("1", "2") else f"{match.item}: {' / '.join(match.names)}"


def _both_orders(match: MatchResult) -> list[Cell]:
    """Return the winner and the justification by the first criterion in each order."""
    return [
        _cut(f"{order.winner if order.winner is not None else order.unscored}: {order.justification}")
        for order in match.judgements[0].orders
    ]


def _pair_bias_sheet(judge: JudgePreferences) -> Sheet:
    columns = ("flips", "beyond noise", "picks first", "lean", "longer wins", "confidence")
    rows = [
        row_of(
            [one.criterion],
            *(one.flips, one.flips_beyond_noise, one.picks_first, one.lean, one.longer, one.confidence),
        )
        for one in judge.shown
    ]
    return Sheet(columns=("criterion", *columns), rows=rows)


def _pair_biases(judge: JudgePreferences) -> Iterator[str]:
    for one in judge.shown:
        yield f"{one.criterion}: the verdict changes with the order in {share(one.flips)} of pairs"
        if is_off(one.lean):
            place = "first" if (one.lean.value or 0.0) > 0 else "second"
            yield f"{one.criterion}: position bias to the {place} place, significant: lean {share(one.lean)}"
        if is_off(one.longer, 0.5):
            which = "longer" if (one.longer.value or 0.0) > 0.5 else "shorter"
            wins = one.longer.value or 0.0
            yield (
                f"{one.criterion}: the {which} output wins in {number(max(wins, 1 - wins))}, significant: length bias, "
                "if length is no merit"
            )
    if all(criterion.noise is None for criterion in judge.criteria):
        yield "how many flips are noise is not known; use --replicates 2 or more"


# regressions


def _conclusion(results: RegressionResults) -> str:
    raised = ", and a rate of regressions is too high or rose" if results.alerting else ""
    return (results.ship_decision or "no decision") + raised


def _conclusion_style(results: RegressionResults) -> str:
    return "red" if results.alerting else _STYLES[results.ship_decision]


def regression_findings(results: RegressionResults) -> Iterator[Block]:
    """Yield the decision with its shares, the worst pairs with the evidence, and the rates by dimension.

    The evidence quotes what was judged, and is not on the site.
    """
    yield Line(_conclusion(results), style=_conclusion_style(results))
    yield from _unusable((judge.judge, judge.unusable) for judge in results.judges)
    usable = [judge for judge in results.judges if judge.unusable is None]
    rows = [
        row_of(
            [judge.judge.model_id],
            len(judge.pairs),
            *(judge.decisions[name] for name in DECISIONS),
            *(judge.undecided, judge.unverified),
        )
        for judge in usable
    ]
    numbers = ("pairs", *DECISIONS, "undecided", "unverified")
    yield Captioned(Sheet(columns=("judge", *numbers), rows=rows, numbers=frozenset(numbers)), "Decisions")
    held = [(judge.judge.model_id, pair) for judge in usable for pair in judge.pairs if pair.ship_decision != "ship"]
    held.sort(key=lambda row: (row[1].ship_decision != "block", row[1].ship_decision is None))
    caption = f"The worst of {counted(len(held), 'pair')} that do not ship"
    if held:
        yield Only(("terminal", "markdown"), [Captioned(_worst_pairs(held[:_MAX_PAIRS]), caption)])
        yield Only(("site",), [Captioned(_held_pairs(held), "Pairs that do not ship")])
    yield Captioned(_dimension_sheet(usable), "Dimensions")
    if results.changes:
        yield Captioned(_change_sheet(results), f"Rates of regressions against {results.against}")
    if results.panel is not None:
        shares = ", ".join(f"{name} {share(results.panel.decisions[name])}" for name in DECISIONS)
        yield from panel_blocks(f"panel (majority): {shares}", results.panel)
    yield from cascade_blocks(results.cascade)


def _worst_pairs(held: Sequence[tuple[str, PairResult]]) -> Sheet:
    """Return a row for each regression or disagreement of the pairs, with the evidence side by side."""
    rows = []
    for judge, pair in held:
        decision = Cell(pair.ship_decision or "no decision", style=_STYLES[pair.ship_decision])
        found = [one for one in pair.dimensions if "candidate_worse" in (one.verdict, *one.by_order)]
        for one in found:
            rows.append(row_of([judge, pair.id], decision, *_finding_cells(pair, one)))
        if not found:
            rows.append(row_of([judge, pair.id], decision, "; ".join(pair.reasons), "–", "–"))
    columns = ("judge", "pair", "decision", "finding", "baseline", "candidate")
    return Sheet(columns=columns, rows=rows, below=("baseline", "candidate"))


def _finding_cells(pair: PairResult, dimension: DimensionResult) -> list[Cell]:
    """Return a dimension's verdict in short, and the evidence of the first answer that calls the candidate worse."""
    findings = (answer.finding(dimension.dimension) for answer in pair.answers)
    worse = next(one for one in findings if one is not None and one.verdict == "candidate_worse")
    impact = dimension.impact or worse.impact
    marks = [impact or "", *(["unverified"] if dimension.verified is False else [])]
    words = f"{dimension.dimension} {_VERDICTS.get(dimension.verdict, dimension.verdict)} ({', '.join(marks)})"
    return [Cell(words), _cut(worse.evidence_baseline), _cut(worse.evidence_candidate)]


def _held_pairs(held: Sequence[tuple[str, PairResult]]) -> Sheet:
    rows = [
        row_of(
            [judge, pair.id],
            Cell(pair.ship_decision or "no decision", style=_STYLES[pair.ship_decision]),
            "; ".join(pair.reasons),
        )
        for judge, pair in held
    ]
    return Sheet(columns=("judge", "pair", "decision", "reasons"), rows=rows)


def _dimension_sheet(judges: Sequence[JudgeRegressions]) -> Sheet:
    counts = ("pairs", "better", "same", "uncertain", "worse", "low", "medium", "high", "unverified", "flips")
    rows = [
        row_of(
            [judge.judge.model_id, one.dimension],
            "blocks" if one.blocking else "",
            *(one.worse.n, one.better, one.same, one.uncertain),
            one.worse,
            *one.impacts.values(),
            one.unverified,
            one.flips,
        )
        for judge in judges
        for one in judge.dimensions
    ]
    return Sheet(columns=("judge", "dimension", "", *counts), rows=rows, numbers=frozenset(counts))


def _change_sheet(results: RegressionResults) -> Sheet:
    numbers = ("earlier", "now", "difference", "p", "q")
    rows = [
        row_of(
            [one.judge, one.dimension],
            *(one.earlier, one.later, one.difference, probability(one.p), probability(one.q)),
            Cell("rose", style="red") if one.rose else "",
        )
        for one in results.changes
    ]
    return Sheet(columns=("judge", "dimension", *numbers, ""), rows=rows, numbers=frozenset(numbers))


def regression_notes(results: RegressionResults) -> Iterator[str]:
    """Yield the remarks below the tables."""
    pairs = results.judging.items
    if pairs < MIN_PAIRS:
        yield f"warning: {counted(pairs, 'pair')}: rates from fewer than {MIN_PAIRS} pairs are uncertain"
    if results.cascade is not None:
        yield "no alert is computed for a cascade: its judges see different pairs"
    yield from alert_sentences(results.alerts)
    for judge in results.judges:
        name, identical = judge.judge.model_id, sum(pair.identical for pair in judge.pairs)
        if judge.unscored and judge.unusable is None:
            yield f"{name}: {reasons(judge.unscored)} of {counted(judge.answers, 'answer')} unscored"
        if judge.unrequested:
            names = listed(_counts(judge.unrequested))
            yield f"{name}: dimensions that were not requested and count for nothing, by answers: {names}"
        if identical:
            yield f"{name}: {counted(identical, 'pair')} of identical outputs, the same without a call"
    yield from _left_out(results.left_out)


def _counts(counts: Mapping[str, int] | Mapping[Mismatch, int]) -> list[str]:
    return [f"{name} {count}" for name, count in counts.items()]


def alert_sentences(alerts: Iterable[RateAlert]) -> Iterator[str]:
    """Yield a sentence for each rate that the policy bounds, alerts first."""
    for alert in sorted(alerts, key=lambda alert: not alert.above):
        name = f"{alert.dimension} by {alert.judge}"
        if alert.corrected is None or alert.reported is None:
            yield f"no alert can be computed of {name} (at most {alert.allowed:g} is allowed): {alert.problem}"
            continue
        errors = (alert.sensitivity, alert.specificity)
        found, quiet = (f"{number(one.value)} of {one.n}" for one in errors if one is not None)
        few = f"; {alert.reported.n} pairs, and under {MIN_PAIRS} say little" * (alert.reported.n < MIN_PAIRS)
        yield (
            f"{'ALERT' if alert.above else 'no alert'}: {name}: corrected rate of regressions {share(alert.corrected)}"
            f", at most {alert.allowed:g} is allowed; reported {number(alert.reported.value)}, corrected by "
            f"sensitivity {found} and specificity {quiet} (calibration {alert.calibration}){few}"
        )


def _regression_bias_sheet(judge: JudgeRegressions) -> Sheet:
    rows = [
        row_of([one.dimension], one.flips, f"{one.unverified} of {sum(one.impacts.values())}")
        for one in judge.dimensions
    ]
    return Sheet(columns=("dimension", "orders disagree", "worse, unverified"), rows=rows)


def _regression_biases(judge: JudgeRegressions) -> Iterator[str]:
    yield f"the orders disagree in some dimension in {share(judge.flips)} of pairs"
    if is_off(judge.lean):
        place = "first" if (judge.lean.value or 0.0) > 0 else "second"
        yield f"position bias to the {place} place, significant: lean {share(judge.lean)}"
    else:
        yield f"no significant position bias: lean {share(judge.lean)}"
    if judge.repeats.n:
        yield f"replicates agree in every dimension in {share(judge.repeats)}"
    else:
        yield "agreement of replicates is not known; use --replicates 2 or more"
    mismatches = _counts(judge.mismatches)
    if mismatches:
        yield f"conclusions that do not follow from the findings, of {judge.answers} answers: {listed(mismatches)}"
    if judge.unrequested:
        yield f"dimensions that were not requested: {listed(_counts(judge.unrequested))}"
    yield f"severity: {severity_counts(judge.severity)}"
    if judge.unscored:
        yield f"answers that did not count: {reasons(judge.unscored)}"
    if not judge.declared_strong:
        yield "models.yaml does not declare it strong enough (judge: strong)"
