"""The reports of judges: the decision, the worst outputs with the evidence, biases, panels, cascades and sizes."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from skill_evaluator.checking.rubrics import RubricLint
from skill_evaluator.display import count, number, plain, probability
from skill_evaluator.display.pages import Block, ForMedia, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.safe_text import shortened
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.modes.pairwise import PAIR, JudgePreferences, PairwiseResults
from skill_evaluator.judges.modes.regression import Mismatch
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    MIN_PAIRS,
    JudgeRegressions,
    PairResult,
    RateAlert,
    RegressionResults,
)
from skill_evaluator.judges.modes.results import CascadeResult, PanelResult
from skill_evaluator.judges.modes.scoring import JudgeScores, ScoreResults
from skill_evaluator.judges.prompting.judging import JudgeRunSize
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.judges.statistics import Estimate, mean_within
from skill_evaluator.judges.workflows.drafting import DraftedCases
from skill_evaluator.judges.workflows.judging import Judged, JudgedResults
from skill_evaluator.library.rubrics import USUAL_THRESHOLD
from skill_evaluator.records.pinned import PinReport
from skill_evaluator.reports.lint import print_rubric_lint
from skill_evaluator.runner.prices import AMOUNTS, sum_of
from skill_evaluator.runner.session import print_resume_command
from skill_evaluator.text import counted, listed

TRUSTED = {True: "trusted", False: "not trusted", None: "undecided"}
_TRUST_STYLES = {True: "green", False: "red", None: "yellow"}
_NO_LABELS = Line(
    "These figures need no human labels, so a judge with good figures can still be wrong. ",
    Cell("judge calibrate", code=True),
    " compares judges with human labels.",
)
_Judge = TypeVar("_Judge", bound=JudgeScores | JudgePreferences | JudgeRegressions)
_STYLES = {"ship": "green", "review_required": "yellow", "block": "red", None: "yellow"}
_LENGTH_BIAS = ", a length bias unless length is a merit"
_MAX_PAIRS = 10  # shown with their evidence
_MAX_EVIDENCE = 160  # characters of each piece


def print_judged(judged: Judged | JudgeRunSize, form: Format) -> int:
    """Print the results of a judge run, or the size of a dry run. Return the exit code.

    Print the command to resume an incomplete run to stderr.
    """
    if isinstance(judged, JudgeRunSize):
        print_judge_run_size(judged, form)
        return EXIT_OK
    results, remarks = judged.results, [f"results: {judged.folder}"]
    if results is not None:
        print_page(
            form,
            json=lambda: {"folder": str(judged.folder), **results.model_dump(mode="json")},
            page=lambda: page_of("the judge run", judged_blocks(results, remarks)),
        )
    for sentence in judged.stopped:
        print(sentence, file=sys.stderr)
    if judged.again:
        print_resume_command(judged.again)
    return judged.code


def print_rubric_draft(drafted: RubricLint | JudgeRunSize, form: Format) -> int:
    """Print the remarks on a drafted rubric, or the size of a dry run. Return the exit code."""
    if isinstance(drafted, JudgeRunSize):
        return print_judged(drafted, form)
    print_rubric_lint(drafted, form)
    return EXIT_OK


def print_drafted_cases(drafted: DraftedCases | JudgeRunSize) -> int:
    """Print the drafted cases with their files, or the size of a dry run; return the exit code."""
    if isinstance(drafted, JudgeRunSize):
        return print_judged(drafted, "text")
    name = drafted.component.name
    print(f"{counted(len(drafted.cases), 'unreviewed case')} of {name}, in {drafted.folder}:")
    for case_id, files in sorted(drafted.cases.items()):
        print(f"  {case_id}: {', '.join(files)}")
    for reason, drafts in drafted.left_out.items():
        print(f"left out: {counted(drafts, 'draft')}: {reason}")
    print(f"Next: skill-evaluator review cases {name}")
    return EXIT_OK


def print_pinned(report: PinReport, form: Format) -> None:
    """Print the number of pinned outputs and the path of their file."""
    source = Cell(f"{report.skill} {report.skill_version} by {report.model_id}", code=True)
    outputs, path = counted(len(report.cases), "output"), Cell(report.path, code=True)
    text = Line(f"{outputs} of ", source, " pinned in ", path, "; commit it")
    print_page(form, json=lambda: report, page=lambda: page_of("the pinned outputs", [text]))


def judged_blocks(results: JudgedResults, remarks: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the decision, the worst outputs with the judge's evidence, biases and `remarks`.

    The site shows no evidence, because evidence quotes outputs.
    """
    titles = {"score": "Scores by judges", "pairwise": "Comparisons by judges", "regression": "Regressions by judges"}
    source = f": {results.judging.source}" if results.judging.source else ""
    yield ForMedia(("markdown",), [Heading(titles[results.judging.mode], source, level=2)])
    yield ForMedia(("site",), [Heading(titles[results.judging.mode])])  # the source may be a path on this machine
    if isinstance(results, RegressionResults):
        yield ForMedia(("terminal", "markdown"), [_conclusion(results)])  # the site has it above the heading
    for judge in results.judges:
        if judge.unusable is not None:
            text = f"{judge.judge.model_id}: no usable output: {reasons(judge.unusable.unscored)}"
            example = judge.unusable.example
            quoted: list[str | Cell] = ["; for example: ", _evidence_cell(example)] if example else []
            yield ForMedia(("site",), [Line(text, style="red")])
            yield ForMedia(("terminal", "markdown"), [Line(text, *quoted, style="red")])
    if isinstance(results, RegressionResults):
        yield from _regression_blocks(results)
    else:
        yield from _score_blocks(results) if isinstance(results, ScoreResults) else _pair_blocks(results)
    yield from cascade_blocks(results.cascade)
    notes = list(_regression_notes(results)) if isinstance(results, RegressionResults) else []
    if results.left_out:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(results.left_out.items())[:5])
        notes.append(f"not judged: {counted(len(results.left_out), 'case')}: {named}")
    yield Lines(notes)
    judges = _usable(results.judges)
    biases = [f"{judge.judge.model_id}: {sentence}" for judge in judges for sentence in _bias_parts(judge)[1]]
    yield ForMedia(("terminal", "markdown"), [Lines([*biases, *remarks])])
    if isinstance(results, RegressionResults):
        yield ForMedia(("terminal",), [_conclusion(results)])


def bias_page(results: JudgedResults) -> str:
    """Return the text of bias_analysis_report.md of a judge run."""
    return page_of("biases", judged_doubts(results)).markdown()


def judged_doubts(results: JudgedResults) -> Iterator[Block]:
    """Yield, for each judge, the table and the sentences on its biases, which need no human labels."""
    yield Heading("Biases of the judges", level=1)
    yield _NO_LABELS
    for judge in _usable(results.judges):
        table, sentences = _bias_parts(judge)
        yield replace(table, caption=f"Without labels, {judge.judge.model_id}")
        yield Lines(sentences)


def _usable(judges: Sequence[_Judge]) -> list[_Judge]:
    return [judge for judge in judges if judge.unusable is None]


def _bias_parts(judge: JudgeScores | JudgePreferences | JudgeRegressions) -> tuple[Sheet, list[str]]:
    """Return the table and the sentences about the biases of a judge."""
    if isinstance(judge, JudgeScores):
        return _score_biases(judge)
    return _pair_biases(judge) if isinstance(judge, JudgePreferences) else _regression_biases(judge)


def _judge_table(names: Sequence[str], numbers: Sequence[str], last: str, rows: list[list[Cell]]) -> Sheet:
    return Sheet(columns=(*names, *numbers, last), rows=rows, numbers=frozenset(numbers))


def _evidence_cell(text: str) -> Cell:
    return Cell(shortened(text, limit=_MAX_EVIDENCE) or "–", code=bool(text))


# scores


def _score_blocks(results: ScoreResults) -> Iterator[Block]:
    judges = _usable(results.judges)
    for judge in judges:
        summary = f"{share(judge.summary)} from 0 to 1 over {counted(judge.summary.n, 'output')}"
        yield Line(f"{judge.judge.model_id}: {summary}")
    rows = [
        row_of(
            [judge.judge.model_id, one.criterion],
            one.method,
            f"{one.score.n}/{len(judge.items)}",
            f"{number(one.score.value)} of {one.highest} {interval(one.score)}",
            *(number(one.confidence.value), one.unsure, reasons(one.unscored)),
        )
        for judge in judges
        for one in judge.criteria
    ]
    numbers = ("outputs", "score", "confidence", "unsure")
    yield replace(_judge_table(("judge", "criterion", "method"), numbers, "unscored", rows), caption="Scores")
    yield from panel_blocks("mean", results.panel)
    if judges:
        yield ForMedia(("terminal", "markdown"), [replace(_worst_scores(judges), caption="The lowest scores")])


def _worst_scores(judges: Sequence[JudgeScores]) -> Sheet:
    """Build the table of the lowest scores with the judge's evidence."""
    scored = []
    for judge in judges:
        highest = {criterion.criterion: criterion.highest for criterion in judge.criteria}
        scored += [
            ((one.score - 1) / (highest[one.criterion] - 1), judge.judge.model_id, item.id, one)
            for item in judge.items
            for one in item.judgements
            if one.score is not None and one.replicate == 0
        ]
    rows = [
        row_of([name, item, one.criterion], one.score, *map(_evidence_cell, texts))
        for _, name, item, one in sorted(scored, key=lambda row: row[0])[:_MAX_PAIRS]
        for texts in [(" … ".join(one.evidence), one.justification, one.suggestion)]
    ]
    columns = ("judge", "output", "criterion", "score", "evidence", "justification", "suggestion")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"score"}), below=columns[-3:])


def _score_biases(judge: JudgeScores) -> tuple[Sheet, list[str]]:
    rows, sentences = [], []
    for entry in judge.criteria:
        scores = " ".join(f"{score}: {entry.counts.get(score, 0)}" for score in range(1, entry.highest + 1))
        rows.append(row_of([entry.criterion], scores, entry.length, entry.repeats, entry.confidence, entry.quoted))
        if entry.length.excludes(0.0):
            way = "higher" if (entry.length.value or 0.0) > 0 else "lower"
            longer = f"longer outputs score significantly {way} (ρ {share(entry.length)}){_LENGTH_BIAS}"
            sentences.append(f"{entry.criterion}: {longer}")
    columns = ("criterion", "scores", "length (ρ)", "replicates agree", "confidence", "evidence in the output")
    return Sheet(columns=columns, rows=rows), sentences


# pairwise comparisons


def _pair_blocks(results: PairwiseResults) -> Iterator[Block]:
    judges = _usable(results.judges)
    for judge in judges:
        wins, similar = judge.criteria[-1].wins, judge.criteria[-1].similar_length
        if wins.n:
            text = f"output 1 wins {share(wins)} of {counted(wins.n, 'pair')}"
            yield Line(f"{judge.judge.model_id}: {text}, {share(similar)} of {similar.n} pairs of similar length")
    rows = [
        row_of(
            [judge.judge.model_id, one.criterion],
            *(one.counts.get(winner, 0) for winner in ("1", "2", "tie")),
            *(one.disagreed, one.unsure, one.wins, one.similar_length, reasons(one.unscored)),
        )
        for judge in judges
        for one in judge.shown
    ]
    numbers = ("1 better", "2 better", "ties", "order flips", "unsure", "1 wins", "1 wins, similar length")
    yield replace(_judge_table(("judge", "criterion"), numbers, "unscored", rows), caption="Comparisons")
    for judge in judges:
        if judge.win_rates:
            rows = [row_of([name], wins) for name, wins in judge.win_rates.items()]
            yield Sheet(columns=("output", "win rate"), rows=rows, caption=f"Win rates by {judge.judge.model_id}")
    yield from panel_blocks("majority, wins of output 1", results.panel)
    uncertain = _uncertain_matches(judges)
    if uncertain.rows:
        yield ForMedia(("terminal", "markdown"), [replace(uncertain, caption="The least certain comparisons")])


def _uncertain_matches(judges: Sequence[JudgePreferences]) -> Sheet:
    """Build the table of the least certain comparisons with the justifications in both orders."""
    matches = [(judge.judge.model_id, match, match.judgements[-1]) for judge in judges for match in judge.matches]
    matches = [row for row in matches if row[2].winner is not None and (row[2].confidence or 0.0) < USUAL_THRESHOLD]
    matches.sort(key=lambda row: (row[2].agreed is True, row[2].confidence or 0.0))
    rows = []
    for name, match, overall in matches[:_MAX_PAIRS]:
        pair = match.item if match.names == PAIR else f"{match.item}: {' / '.join(match.names)}"
        orders = [
            _evidence_cell(f"{one.winner or one.unscored}: {one.justification}") for one in match.judgements[0].orders
        ]
        rows.append(row_of([name, pair], overall.winner, *orders))
    return Sheet(columns=("judge", "pair", "winner", "order 1", "order 2"), rows=rows, below=("order 1", "order 2"))


def _pair_biases(judge: JudgePreferences) -> tuple[Sheet, list[str]]:
    columns = ("criterion", "order flips", "noise", "first wins", "position bias", "longer wins", "confidence")
    rows, sentences = [], []
    for bias in judge.shown:
        figures = bias.flips, bias.noise, bias.picks_first, bias.lean, bias.longer, bias.confidence
        rows.append(row_of([bias.criterion], *figures))
        sentences.append(f"{bias.criterion}: the verdict changes with the order in {share(bias.flips)} of pairs")
        sentences += [f"{bias.criterion}: {sentence}" for sentence in _position_bias(bias.lean)]
        if bias.longer.excludes(0.5):
            wins = bias.longer.value or 0.0
            which = f"the {'longer' if wins > 0.5 else 'shorter'} output wins in {number(max(wins, 1 - wins))}"
            sentences.append(f"{bias.criterion}: significantly often, {which}{_LENGTH_BIAS}")
    return Sheet(columns=columns, rows=rows), sentences


def _position_bias(lean: Estimate) -> Iterator[str]:
    if lean.excludes(0.0):
        position = "first" if (lean.value or 0.0) > 0 else "second"
        yield f"significant position bias to the {position} output: {share(lean)}"


# regressions


def decision_words(results: RegressionResults) -> str:
    """Format the ship decision; if it is not `ship`, with the number of pairs that may not ship by judge.

    Add a clause if a rate of regressions is too high or rose.
    """
    counts = [(judge.judge.model_id, judge.pairs) for judge in _usable(results.judges)]
    held = [f"{name} {sum(pair.ship_decision != 'ship' for pair in pairs)} of {len(pairs)}" for name, pairs in counts]
    shown = f" (pairs that may not ship: {listed(held)})" if results.ship_decision != "ship" and held else ""
    raised = "; a rate of regressions is too high or rose" if results.alerting else ""
    return f"{results.ship_decision or 'no decision'}{shown}{raised}"


def _conclusion(results: RegressionResults) -> Line:
    style = "red" if results.alerting else _STYLES[results.ship_decision]
    return Line(decision_words(results), style=style)


def _regression_blocks(results: RegressionResults) -> Iterator[Block]:
    """Yield the count of each decision, the pairs that may not ship, rates by dimension, their changes, and the panel.

    The terminal and Markdown show the worst pairs with evidence, the site all of them.
    """
    judges = _usable(results.judges)
    numbers = ("pairs", *DECISIONS, "undecided", "unverified")
    rows = [
        row_of([one.judge.model_id], len(one.pairs), *one.decisions.values(), one.undecided, one.unverified)
        for one in judges
    ]
    yield Sheet(columns=("judge", *numbers), rows=rows, numbers=frozenset(numbers), caption="Decisions")
    held = [(judge.judge.model_id, pair) for judge in judges for pair in judge.pairs if pair.ship_decision != "ship"]
    held.sort(key=lambda row: (row[1].ship_decision != "block", row[1].ship_decision is None))
    if held:
        caption = f"The worst of {counted(len(held), 'pair')} without the decision to ship"
        yield ForMedia(("terminal", "markdown"), [replace(_worst_pairs(held[:_MAX_PAIRS]), caption=caption)])
        rows = [row_of([judge, pair.id], _decision_cell(pair), "; ".join(pair.reasons)) for judge, pair in held]
        sheet = Sheet(columns=("judge", "pair", "decision", "reasons"), rows=rows)
        yield ForMedia(("site",), [replace(sheet, caption="Pairs without the decision to ship")])
    yield replace(_dimension_sheet(judges), caption="Dimensions")
    if results.changes:
        rows = [
            row_of(
                [one.judge, one.dimension],
                *(one.earlier, one.later, one.difference, probability(one.p), probability(one.q)),
                Cell("rose", style="red") if one.rose else "",
            )
            for one in results.changes
        ]
        sheet = _judge_table(("judge", "dimension"), ("earlier", "now", "difference", "p", "q"), "", rows)
        yield replace(sheet, caption=f"Rates of regressions against {results.against}")
    yield from panel_blocks("majority", results.panel)


def _decision_cell(pair: PairResult) -> Cell:
    return Cell(pair.ship_decision or "no decision", style=_STYLES[pair.ship_decision])


def _worst_pairs(held: Sequence[tuple[str, PairResult]]) -> Sheet:
    """Build a table with a row for each regression or order flip, and the evidence of the first output with it."""
    rows = []
    for judge, pair in held:
        matches = [entry for entry in pair.dimensions if "candidate_worse" in (entry.verdict, *entry.by_order)]
        for entry in matches:
            findings = (answer.finding(entry.dimension) for answer in pair.answers)
            worse = next(each for each in findings if each is not None and each.verdict == "candidate_worse")
            verdict = "worse" if entry.verdict == "candidate_worse" else entry.verdict
            mark = ", unverified" * (entry.verified is False)
            text = f"{entry.dimension} {verdict} ({entry.impact or worse.impact}{mark})"
            evidence = (_evidence_cell(worse.evidence_baseline), _evidence_cell(worse.evidence_candidate))
            rows.append(row_of([judge, pair.id], _decision_cell(pair), text, *evidence))
        if not matches:
            rows.append(row_of([judge, pair.id], _decision_cell(pair), "; ".join(pair.reasons), "–", "–"))
    columns = ("judge", "pair", "decision", "finding", "baseline", "candidate")
    return Sheet(columns=columns, rows=rows, below=("baseline", "candidate"))


def _dimension_sheet(judges: Sequence[JudgeRegressions]) -> Sheet:
    counts = ("pairs", "better", "same", "uncertain", "worse", "low", "medium", "high", "unverified", "order flips")
    rows = [
        row_of(
            [judge.judge.model_id, one.dimension],
            "blocks" if one.blocking else "",
            *(one.worse.n, one.better, one.same, one.uncertain),
            one.worse,
            *one.impacts.values(),
            *(one.unverified, one.flips),
        )
        for judge in judges
        for one in judge.dimensions
    ]
    return Sheet(columns=("judge", "dimension", "", *counts), rows=rows, numbers=frozenset(counts))


def _regression_notes(results: RegressionResults) -> Iterator[str]:
    pairs = results.judging.items
    if pairs < MIN_PAIRS:
        yield f"warning: {counted(pairs, 'pair')}: rates from fewer than {MIN_PAIRS} pairs are uncertain"
    if results.cascade is not None:
        yield "no alert is computed for a cascade, because its judges see different pairs"
    yield from map(_alert_sentence, sorted(results.alerts, key=lambda alert: not alert.above))
    for judge in results.judges:
        name, identical = judge.judge.model_id, sum(pair.identical for pair in judge.pairs)
        if judge.unscored and judge.unusable is None:
            yield f"{name}: {reasons(judge.unscored)} of {counted(judge.answers, 'output')} unscored"
        if identical:
            yield f"{name}: {counted(identical, 'pair')} of identical outputs, without a call"


def _alert_sentence(alert: RateAlert) -> str:
    name = f"{alert.dimension} by {alert.judge}"
    if alert.corrected is None or alert.reported is None:
        return f"no alert can be computed for {name} (at most {plain(alert.allowed)} is allowed): {alert.problem}"
    errors = (alert.sensitivity, alert.specificity)
    matches, quiet = (f"{number(one.value)} of {one.n}" for one in errors if one is not None)
    return (
        f"{'ALERT' if alert.above else 'no alert'}: {name}: corrected rate of regressions {share(alert.corrected)}"
        f", at most {plain(alert.allowed)} is allowed; reported {number(alert.reported.value)}, corrected by "
        f"sensitivity {matches} and specificity {quiet} (calibration {alert.calibration})"
    )


def _regression_biases(judge: JudgeRegressions) -> tuple[Sheet, list[str]]:
    bias = list(_position_bias(judge.lean)) or [f"no significant position bias: {share(judge.lean)}"]
    sentences = [f"order flips in some dimension: {share(judge.flips)} of pairs", *bias]
    if judge.repeats.n:
        sentences.append(f"replicates agree in every dimension in {share(judge.repeats)}")
    if judge.mismatches:
        mismatches = _counts_text(judge.mismatches)
        sentences.append(
            f"conclusions that contradict the findings, of {counted(judge.answers, 'output')}: {mismatches}"
        )
    if judge.unrequested:
        sentences.append(f"ignored dimensions, because they were not requested: {_counts_text(judge.unrequested)}")
    return _dimension_sheet([judge]), [*sentences, f"severity: {_counts_text(judge.severity)}"]


def _counts_text(counts: Mapping[str, int] | Mapping[Mismatch, int]) -> str:
    return listed([f"{name} {count}" for name, count in counts.items()])


# parts of several reports


def interval(figure: Estimate) -> str:
    """Format a confidence interval as `(0.310–0.780)`, or as a dash if there is none."""
    if figure.ci95 is None:
        return "–"
    low, high = figure.ci95
    return f"({number(low)}–{number(high)})"


def share(figure: Estimate) -> str:
    """Format a figure with its confidence interval, or as a dash if it is unknown."""
    return f"{number(figure.value)} {interval(figure)}" if figure.n and figure.value is not None else "–"


def row_of(names: Sequence[str], *values: Cell | Estimate | str | int | None) -> list[Cell]:
    """Return the cells of a row: names, which are external text, then values; an estimate has its interval."""
    return cells_of(names, *(share(value) if isinstance(value, Estimate) else value for value in values))


def reasons(counts: Mapping[UnscoredReason, int]) -> str:
    """Format the number of unscored outputs by reason, or a dash if there are none."""
    return ", ".join(f"{times} {reason}" for reason, times in counts.items()) or "–"


def trust_cell(trusted: bool | None) -> Cell:
    """Return a cell with `trusted`, `not trusted`, or `undecided` for None."""
    return Cell(TRUSTED[trusted], style=_TRUST_STYLES[trusted])


def panel_blocks(method: str, panel: PanelResult | None) -> Iterator[Block]:
    """Yield the figures of a panel and the table of its judges; nothing if there is no panel."""
    if panel is None:
        return
    figures = ", ".join(f"{name} {share(one)}" for name, one in panel.figures.items())
    summary = "" if panel.summary is None else f" {share(panel.summary)};"
    yield Line(f"panel ({method}):{summary} {figures}; all judges agree on {share(panel.agreement)}")
    rows = [row_of([one.judge], plain(one.weight), one.agrees) for one in panel.judges]
    yield Sheet(columns=("judge", "weight", "agrees with the panel"), rows=rows, caption="Panel")


def cascade_blocks(cascade: CascadeResult | None) -> Iterator[Block]:
    """Yield the number of items that each judge and people decided, and a summary of the verdicts.

    Yield nothing if there is no cascade.
    """
    if cascade is None:
        return
    parts = [f"{stage.judge} decided {count(stage.decided)} of {count(stage.asked)}" for stage in cascade.stages]
    yield Line(f"cascade: {', '.join(parts)}; sent to human review: {count(cascade.people)}")
    verdicts = [one.verdict for one in cascade.decisions]
    measured = [verdict for verdict in verdicts if isinstance(verdict, int | float)]
    named = Counter(verdict for verdict in verdicts if isinstance(verdict, str))
    if measured:
        yield Line(f"both judges together: {share(mean_within(measured))} over {counted(len(measured), 'verdict')}")
    if named:
        yield Line(f"both judges together: {', '.join(f'{times} {name}' for name, times in named.items())}")


def print_judge_run_size(size: JudgeRunSize, form: Format) -> None:
    """Print the calls and the maximum cost of a judge run to stdout."""
    judging, judges, notes = size.judging, size.judges, size.notes
    total = sum_of(judges)
    calls = counted(len(judging.questions), "call")
    rows = [cells_of([judge.model_id], judge.provider, judge.key, *judge.amounts) for judge in judges]
    rows.append(cells_of([], "all", "", "", *total.amounts))
    blocks: list[Block] = [
        Line(f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {calls} per judge"),
        Sheet(columns=("judge", "provider", "key", *AMOUNTS), rows=rows, numbers=frozenset(AMOUNTS)),
        Lines([*notes, "dry run: no call was made, nothing was written"]),
    ]
    print_page(
        form,
        json=lambda: {
            **judging.model_dump(mode="json", include={"mode", "rubric", "criteria", "prompts", "seed", "replicates"}),
            "items": len(judging.items),
            "questions": len(judging.questions),
            "judges": [asdict(judge) for judge in judges],
            "total": asdict(total),
            "notes": list(notes),
        },
        page=lambda: page_of("the judge run", blocks),
    )
