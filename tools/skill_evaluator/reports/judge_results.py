"""The reports of judges: decisions, the worst outputs with the evidence, biases, calibrations and sizes."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, TypeVar

from skill_evaluator.checking.lint import RubricLint
from skill_evaluator.display import count, number, pages, plain, probability, shortened
from skill_evaluator.display.pages import Block, Cell, Chart, Drawing, Format, ForMedia, Heading, Line, Lines, Sheet
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.calibration.results import ANY, BatchResult, JudgeCalibration, JudgeResult, LabelAgreement
from skill_evaluator.judges.modes import regression
from skill_evaluator.judges.modes.pairwise import PAIR, JudgePreferences, PairwiseResults
from skill_evaluator.judges.modes.results import CascadeResult, PanelResult
from skill_evaluator.judges.modes.scoring import JudgeScores, ScoreResults
from skill_evaluator.judges.prompting.judging import Judged, JudgeRunSize, NoUsableOutput
from skill_evaluator.judges.statistics import Estimate, Trust, mean_within, rate
from skill_evaluator.judges.workflows.drafting import DraftedCases
from skill_evaluator.judges.workflows.judging import JudgedResults
from skill_evaluator.library.rubrics import USUAL_THRESHOLD
from skill_evaluator.records.pinned import PinReport
from skill_evaluator.reports.lint import print_drafted_cases, print_rubric_lint
from skill_evaluator.runner.prices import AMOUNTS, sum_of
from skill_evaluator.runner.session import print_resume_command
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed

_Judge = TypeVar("_Judge", bound=JudgeScores | JudgePreferences | regression.JudgeRegressions)
_TITLES = {"score": "Scores by judges", "pairwise": "Comparisons by judges", "regression": "Regressions by judges"}
_STYLES = {"ship": "green", "review_required": "yellow", "block": "red", None: "yellow"}
_STEPS_AFTER_DECISION = {
    "green": "nothing is in the way of the candidate",
    "red": "read the pairs that may not ship; their evidence is in the folder of the judge run",
    "yellow": "have people decide the pairs that are not clear: `skill-evaluator review serve`",
}
_STEPS_AFTER_CALIBRATION = {
    "green": "use the judges with this rubric",
    "red": "choose another judge or rewrite the rubric, then calibrate again",
    "yellow": "label more items, then calibrate again; the tables show what is missing",
}
_LENGTH_BIAS = ", a length bias unless length is a merit"
_MAX_PAIRS = 10  # shown with their evidence
_MAX_EVIDENCE = 160  # characters of each piece
_TRUST = {True: "trusted", False: "not trusted", None: "undecided"}
_TRUST_STYLES = {True: "green", False: "red", None: "yellow"}
_ITEMS = {"pairwise": "pairs", "score": "scores", "regression": "regressions", "sentences": "sentences"}
_RULE = (
    "A judge is trusted if the 95 % confidence interval of κ with people is at {bar} or above, and not trusted if it "
    "is below. The labelled items must be a random sample. If the two orders of a pair differ, its verdict is a tie."
)
_LEGEND = "κ: agreement beyond chance; TPR and TNR: the shares of positive and of negative labels that a judge gives."
_BIASES = ("position", "length", "self_preference", "leniency", "noise")  # all other biases are probes


def print_judged(judged: Judged | JudgeRunSize | RubricLint | DraftedCases, form: Format) -> int:
    """Print the result of a judge command and how to resume an incomplete judge run. Return the exit code."""
    if isinstance(judged, RubricLint):
        print_rubric_lint(judged, form)
    elif isinstance(judged, DraftedCases):
        print_drafted_cases(judged)
    elif isinstance(judged, JudgeRunSize):
        _print_size(judged, form)
    if not isinstance(judged, Judged):
        return EXIT_OK
    results = judged.results
    if results is not None:
        folder, blocks = {"folder": str(judged.folder)}, _judged_blocks(results, [f"results: {judged.folder}"])
        if isinstance(results, JudgeCalibration):
            folder, blocks = {}, chain(calibration_blocks(results), [_closing(results)])
        pages.print_page(
            form,
            json=lambda: {**folder, **results.model_dump(mode="json")},
            page=lambda: pages.page_of("the judge run", blocks),
        )
    for sentence in judged.stopped:
        print(sentence, file=sys.stderr)
    print_resume_command(judged.again)
    return judged.code


def _print_size(size: JudgeRunSize, form: Format) -> None:
    judging, total = size.judging, sum_of(size.judges)
    calls = counted(len(judging.questions), "call")
    rows = [pages.cells_of([judge.model_id], judge.provider, judge.key, *judge.amounts) for judge in size.judges]
    rows.append(pages.cells_of([], "all", "", "", *total.amounts))
    blocks: list[Block] = [
        Line(f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {calls} per judge"),
        Sheet(columns=("judge", "provider", "key", *AMOUNTS), rows=rows, numbers=frozenset(AMOUNTS)),
        Lines([*size.notes, "dry run: no call was made, nothing was written"]),
    ]
    content = {
        **judging.model_dump(mode="json", include={"mode", "rubric", "criteria", "prompts", "seed", "replicates"}),
        "items": len(judging.items),
        "questions": len(judging.questions),
        "judges": [asdict(judge) for judge in size.judges],
        "total": asdict(total),
        "notes": list(size.notes),
    }
    pages.print_page(form, json=lambda: content, page=lambda: pages.page_of("the judge run", blocks))


def print_pinned(report: PinReport, form: Format) -> None:
    """Print the component, version and model of pinned outputs, their number, and the path of their file."""
    source = Cell(f"{report.skill} {report.skill_version} by {report.model_id}", code=True)
    outputs, path = counted(len(report.cases), "output"), Cell(report.path, code=True)
    text = Line(f"{outputs} of ", source, " pinned in ", path, "; commit it")
    pages.print_page(form, json=lambda: report, page=lambda: pages.page_of("the pinned outputs", [text]))


def bias_report(results: JudgedResults | JudgeCalibration) -> str:
    """Return the Markdown text of a judge run's bias_analysis_report.md."""
    blocks = calibration_blocks(results) if isinstance(results, JudgeCalibration) else _bias_blocks(results)
    return pages.page_of("biases", blocks).markdown()


def judge_run_blocks(results: JudgedResults | JudgeCalibration) -> list[Block]:
    """Return the blocks of a judge run's page. Evidence quotes outputs and is shown in terminal and Markdown only."""
    if isinstance(results, JudgeCalibration):
        return list(calibration_blocks(results))
    return [*_judged_blocks(results), *_bias_blocks(results)]


def _judged_blocks(results: JudgedResults, remarks: Sequence[str] = ()) -> Iterator[Block]:
    title = _TITLES[results.judging.mode]
    source = f": {results.judging.source}" if results.judging.source else ""
    yield _in_texts(Heading(title, source, level=2))
    yield ForMedia(("site",), [Heading(title)])  # the source may be a path on this machine
    yield _in_texts(_closing(results))  # the site has it above the heading
    for judge in results.judges:
        yield from _unusable_blocks(judge.judge.model_id, judge.unusable)
    if isinstance(results, regression.RegressionResults):
        yield from _regression_blocks(results)
    else:
        yield from _score_blocks(results) if isinstance(results, ScoreResults) else _pair_blocks(results)
    if results.cascade is not None:
        yield from _cascade_blocks(results.cascade)
    if isinstance(results, regression.RegressionResults):
        yield Lines(list(_regression_notes(results)))
    if results.left_out:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(results.left_out.items())[:5])
        yield Lines([f"not judged: {counted(len(results.left_out), 'case')}: {named}"])
    usable = _usable(results.judges)
    biases = [f"{judge.judge.model_id}: {sentence}" for judge in usable for sentence in _bias_parts(judge)[1]]
    yield _in_texts(Lines([*biases, *remarks]))


def _closing(results: JudgedResults | JudgeCalibration) -> pages.Closing:
    outcome, following = judge_outcome(results)
    return pages.Closing([Line(outcome), f"next: {following}"])


def _bias_blocks(results: JudgedResults) -> Iterator[Block]:
    yield Heading("Biases of the judges", level=1)
    yield Line(
        "These figures need no human labels, so a judge with good figures can still be wrong. ",
        Cell("judge calibrate", code=True),
        " compares judges with human labels.",
    )
    for judge in _usable(results.judges):
        table, sentences = _bias_parts(judge)
        yield replace(table, caption=f"Without labels, {judge.judge.model_id}")
        yield Lines(sentences)


def _bias_parts(judge: JudgeScores | JudgePreferences | regression.JudgeRegressions) -> tuple[Sheet, list[str]]:
    if isinstance(judge, JudgeScores):
        return _score_biases(judge)
    return _pair_biases(judge) if isinstance(judge, JudgePreferences) else _regression_biases(judge)


def _usable(judges: Sequence[_Judge]) -> list[_Judge]:
    return [judge for judge in judges if judge.unusable is None]


def _in_texts(block: Block) -> ForMedia:
    return ForMedia(("terminal", "markdown"), [block])


def _unusable_blocks(judge: str, unusable: NoUsableOutput | None) -> Iterator[Block]:
    if unusable is not None:
        text = (Cell(judge, code=True), f": no usable output: {_reasons(unusable.unscored)}")
        quoted: list[str | Cell] = ["; for example: ", _evidence_cell(unusable.example)] if unusable.example else []
        yield ForMedia(("site",), [Line(*text, style="red")])
        yield _in_texts(Line(*text, *quoted, style="red"))


def _evidence_cell(text: str) -> Cell:
    return Cell(shortened(text, limit=_MAX_EVIDENCE) or "–", code=bool(text))


def _score_blocks(results: ScoreResults) -> Iterator[Block]:
    judges = _usable(results.judges)
    rows = [
        _row_of(
            [judge.judge.model_id, one.criterion],
            one.method,
            f"{one.score.n}/{len(judge.items)}",
            f"{number(one.score.value)} of {one.highest} {_interval(one.score)}",
            *(number(one.confidence.value), one.unsure, _reasons(one.unscored)),
        )
        for judge in judges
        for one in judge.criteria
    ]
    columns = ("judge", "criterion", "method", "outputs", "score", "confidence", "unsure", "unscored")
    yield Sheet(columns=columns, rows=rows, numbers=frozenset(columns[3:7]), caption="Scores")
    yield from _panel_blocks("mean", results.panel)
    yield _in_texts(_worst_scores(judges))


def _worst_scores(judges: Sequence[JudgeScores]) -> Sheet:
    scored = []
    for judge in judges:
        highest = {criterion.criterion: criterion.highest for criterion in judge.criteria}
        scored += [
            ((one.score - 1) / (highest[one.criterion] - 1), judge.judge.model_id, item.id, one)
            for item in judge.items
            for one in item.judgements
            if one.score is not None and one.replicate == 0
        ]
    rows = []
    for _, name, item_id, score in sorted(scored, key=lambda row: row[0])[:_MAX_PAIRS]:
        texts = (" … ".join(score.evidence), score.justification, score.suggestion)
        rows.append(_row_of([name, item_id, score.criterion], score.score, *map(_evidence_cell, texts)))
    columns = ("judge", "output", "criterion", "score", "evidence", "justification", "suggestion")
    caption = "The lowest scores"
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"score"}), below=columns[-3:], caption=caption)


def _score_biases(judge: JudgeScores) -> tuple[Sheet, list[str]]:
    rows, sentences = [], []
    for entry in judge.criteria:
        scores = " ".join(f"{score}: {entry.counts.get(score, 0)}" for score in range(1, entry.highest + 1))
        rows.append(_row_of([entry.criterion], scores, entry.length, entry.repeats, entry.confidence, entry.quoted))
        if entry.length.excludes(0.0):
            way = "higher" if (entry.length.value or 0.0) > 0 else "lower"
            longer = f"longer outputs score significantly {way} (ρ {share(entry.length)}){_LENGTH_BIAS}"
            sentences.append(f"{entry.criterion}: {longer}")
    columns = ("criterion", "scores", "length (ρ)", "replicates agree", "confidence", "evidence in the output")
    return Sheet(columns=columns, rows=rows), sentences


def _pair_blocks(results: PairwiseResults) -> Iterator[Block]:
    judges = _usable(results.judges)
    rows = [
        _row_of(
            [judge.judge.model_id, one.criterion],
            *(one.counts.get(winner, 0) for winner in ("1", "2", "tie")),
            *(one.disagreed, one.unsure, one.wins, one.similar_length, _reasons(one.unscored)),
        )
        for judge in judges
        for one in judge.shown
    ]
    numbers = ("1 better", "2 better", "ties", "order flips", "unsure", "1 wins", "1 wins, similar length")
    columns = ("judge", "criterion", *numbers, "unscored")
    yield Sheet(columns=columns, rows=rows, numbers=frozenset(numbers), caption="Comparisons")
    for judge in judges:
        if judge.win_rates:
            rows = [_row_of([name], wins) for name, wins in judge.win_rates.items()]
            yield Sheet(columns=("output", "win rate"), rows=rows, caption=f"Win rates by {judge.judge.model_id}")
    yield from _panel_blocks("majority, wins of output 1", results.panel)
    yield _in_texts(_uncertain_matches(judges))


def _uncertain_matches(judges: Sequence[JudgePreferences]) -> Sheet:
    matches = [(judge.judge.model_id, match, match.judgements[-1]) for judge in judges for match in judge.matches]
    matches = [row for row in matches if row[2].winner is not None and (row[2].confidence or 0.0) < USUAL_THRESHOLD]
    matches.sort(key=lambda row: (row[2].agreed is True, row[2].confidence or 0.0))
    rows = []
    for name, match, overall in matches[:_MAX_PAIRS]:
        pair = match.item if match.names == PAIR else f"{match.item}: {' / '.join(match.names)}"
        texts = (f"{one.winner or one.unscored}: {one.justification}" for one in match.judgements[0].orders)
        rows.append(_row_of([name, pair], overall.winner, *map(_evidence_cell, texts)))
    columns = ("judge", "pair", "winner", "order 1", "order 2")
    return Sheet(columns=columns, rows=rows, below=columns[3:], caption="The least certain comparisons")


def _pair_biases(judge: JudgePreferences) -> tuple[Sheet, list[str]]:
    columns = ("criterion", "order flips", "noise", "first wins", "position bias", "longer wins", "confidence")
    rows, sentences = [], []
    for bias in judge.shown:
        figures = bias.flips, bias.noise, bias.picks_first, bias.lean, bias.longer, bias.confidence
        rows.append(_row_of([bias.criterion], *figures))
        sentences.append(f"{bias.criterion}: the verdict changes with the order in {share(bias.flips)} of pairs")
        sentences += [f"{bias.criterion}: {sentence}" for sentence in _position_bias(bias.lean)]
        if bias.longer.excludes(0.5):
            wins = bias.longer.value or 0.0
            which = f"the {'longer' if wins > 0.5 else 'shorter'} output wins in {number(max(wins, 1 - wins))}"
            sentences.append(f"{bias.criterion}: significantly often, {which}{_LENGTH_BIAS}")
    return Sheet(columns=columns, rows=rows), sentences


def _position_bias(lean: Estimate) -> list[str]:
    position = "first" if (lean.value or 0.0) > 0 else "second"
    return [f"significant position bias to the {position} output: {share(lean)}"] if lean.excludes(0.0) else []


def judge_outcome(results: JudgedResults | JudgeCalibration) -> tuple[Cell, str]:
    """Return the outcome of a judge run in the colour of its decision, and the next step as text."""
    records = [judge.record if isinstance(judge, JudgeResult) else judge.judge for judge in results.judges]
    steps: Mapping[str, str] = {}
    if isinstance(results, JudgeCalibration):
        outcome, steps = _calibration_cell(results), _STEPS_AFTER_CALIBRATION
    elif isinstance(results, regression.RegressionResults):
        style = "red" if results.alerting else _STYLES[results.ship_decision]
        outcome, steps = Cell(_decision_words(results), style), _STEPS_AFTER_DECISION
    elif isinstance(results, ScoreResults):
        scores = "; ".join(f"{one.judge.model_id} {share(one.summary)}" for one in results.judges)
        outcome = Cell(f"mean score from 0 to 1: {scores}")
    else:
        wins = [f"{one.judge.model_id} {share(one.criteria[-1].wins)}" for one in results.judges if one.criteria]
        outcome = Cell(f"output 1 wins: {'; '.join(wins)}")
    if any(record is not None and record.stopped for record in records):
        made = counted(sum(record.answered for record in records if record is not None), "answer")
        return Cell(
            f"incomplete, with {made}: {outcome.text}", "yellow"
        ), "continue it with the command that the judge run printed"
    if not steps:
        if all(judge.unusable is not None for judge in results.judges):
            return outcome, "choose another judge or rewrite the rubric"
        return outcome, "label outputs, then compare the judge with people: `skill-evaluator judge calibrate --help`"
    return outcome, steps.get(outcome.style, steps["yellow"])


def _decision_words(results: regression.RegressionResults) -> str:
    counts = [(judge.judge.model_id, judge.pairs) for judge in _usable(results.judges)]
    held = [f"{name} {sum(pair.ship_decision != 'ship' for pair in pairs)} of {len(pairs)}" for name, pairs in counts]
    shown = f" (pairs that may not ship: {listed(held)})" if results.ship_decision != "ship" and held else ""
    raised = "; a rate of regressions is too high or rose" if results.alerting else ""
    return f"{results.ship_decision or 'no decision'}{shown}{raised}"


def _regression_blocks(results: regression.RegressionResults) -> Iterator[Block]:
    judges = _usable(results.judges)
    numbers = ("pairs", *regression.DECISIONS, "undecided", "unverified")
    rows = [
        _row_of([one.judge.model_id], len(one.pairs), *one.decisions.values(), one.undecided, one.unverified)
        for one in judges
    ]
    yield Sheet(columns=("judge", *numbers), rows=rows, numbers=frozenset(numbers), caption="Decisions")
    held = [(judge.judge.model_id, pair) for judge in judges for pair in judge.pairs if pair.ship_decision != "ship"]
    held.sort(key=lambda row: (row[1].ship_decision != "block", row[1].ship_decision is None))
    if held:
        caption = f"The worst of {counted(len(held), 'pair')} without the decision to ship"
        yield _in_texts(replace(_worst_pairs(held[:_MAX_PAIRS]), caption=caption))
        rows = [_row_of([judge, pair.id], _decision_cell(pair), "; ".join(pair.reasons)) for judge, pair in held]
        sheet = Sheet(columns=("judge", "pair", "decision", "reasons"), rows=rows)
        yield ForMedia(("site",), [replace(sheet, caption="Pairs without the decision to ship")])
    yield replace(_dimension_sheet(judges), caption="Dimensions")
    if results.changes:
        columns = ("judge", "dimension", "earlier", "now", "difference", "p", "q", "")
        rows = []
        for change in results.changes:
            figures = (change.earlier, change.later, change.difference, probability(change.p), probability(change.q))
            mark = Cell("rose", style="red") if change.rose else ""
            rows.append(_row_of([change.judge, change.dimension], *figures, mark))
        caption = f"Rates of regressions against {results.against}"
        yield Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:7]), caption=caption)
    yield from _panel_blocks("majority", results.panel)


def _decision_cell(pair: regression.PairResult) -> Cell:
    return Cell(pair.ship_decision or "no decision", style=_STYLES[pair.ship_decision])


def _worst_pairs(held: Sequence[tuple[str, regression.PairResult]]) -> Sheet:
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
            rows.append(_row_of([judge, pair.id], _decision_cell(pair), text, *evidence))
        if not matches:
            rows.append(_row_of([judge, pair.id], _decision_cell(pair), "; ".join(pair.reasons), "–", "–"))
    columns = ("judge", "pair", "decision", "finding", "baseline", "candidate")
    return Sheet(columns=columns, rows=rows, below=("baseline", "candidate"))


def _dimension_sheet(judges: Sequence[regression.JudgeRegressions]) -> Sheet:
    counts = ("pairs", "better", "same", "uncertain", "worse", "low", "medium", "high", "unverified", "order flips")
    rows = [
        _row_of(
            [judge.judge.model_id, one.dimension],
            "blocks" if one.blocking else "",
            *(one.worse.n, one.better, one.same, one.uncertain, one.worse),
            *one.impacts.values(),
            *(one.unverified, one.flips),
        )
        for judge in judges
        for one in judge.dimensions
    ]
    return Sheet(columns=("judge", "dimension", "", *counts), rows=rows, numbers=frozenset(counts))


def _regression_notes(results: regression.RegressionResults) -> Iterator[str]:
    pairs = results.judging.items
    if pairs < regression.MIN_PAIRS:
        yield f"warning: {counted(pairs, 'pair')}: rates from fewer than {regression.MIN_PAIRS} pairs are uncertain"
    if results.cascade is not None:
        yield "no alert is computed for a cascade, because its judges see different pairs"
    yield from map(_alert_sentence, sorted(results.alerts, key=lambda alert: not alert.above))
    for judge in results.judges:
        name, identical = judge.judge.model_id, sum(pair.identical for pair in judge.pairs)
        if judge.unscored and judge.unusable is None:
            yield f"{name}: {_reasons(judge.unscored)} of {counted(judge.answers, 'output')} unscored"
        if identical:
            yield f"{name}: {counted(identical, 'pair')} of identical outputs, without a call"


def _alert_sentence(alert: regression.RateAlert) -> str:
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


def _regression_biases(judge: regression.JudgeRegressions) -> tuple[Sheet, list[str]]:
    bias = _position_bias(judge.lean) or [f"no significant position bias: {share(judge.lean)}"]
    sentences = [f"order flips in some dimension: {share(judge.flips)} of pairs", *bias]
    if judge.repeats.n:
        sentences.append(f"replicates agree in every dimension in {share(judge.repeats)}")
    if judge.mismatches:
        outputs, mismatches = counted(judge.answers, "output"), _counts_text(judge.mismatches)
        sentences.append(f"conclusions that contradict the findings, of {outputs}: {mismatches}")
    if judge.unrequested:
        sentences.append(f"ignored dimensions, because they were not requested: {_counts_text(judge.unrequested)}")
    return _dimension_sheet([judge]), [*sentences, f"severity: {_counts_text(judge.severity)}"]


def _counts_text(counts: Mapping[Any, int]) -> str:
    return listed([f"{name} {count}" for name, count in counts.items()])


def _panel_blocks(method: str, panel: PanelResult | None) -> Iterator[Block]:
    if panel is not None:
        figures = ", ".join(f"{name} {share(one)}" for name, one in panel.figures.items())
        summary = "" if panel.summary is None else f" {share(panel.summary)};"
        yield Line(f"panel ({method}):{summary} {figures}; all judges agree on {share(panel.agreement)}")
        rows = [_row_of([one.judge], plain(one.weight), one.agrees) for one in panel.judges]
        yield Sheet(columns=("judge", "weight", "agrees with the panel"), rows=rows, caption="Panel")


def _cascade_blocks(cascade: CascadeResult) -> Iterator[Block]:
    parts = [f"{stage.judge} decided {count(stage.decided)} of {count(stage.asked)}" for stage in cascade.stages]
    yield Line(f"cascade: {', '.join(parts)}; sent to human review: {count(cascade.people)}")
    verdicts = [one.verdict for one in cascade.decisions]
    if measured := [verdict for verdict in verdicts if isinstance(verdict, int | float)]:
        yield Line(f"both judges together: {share(mean_within(measured))} over {counted(len(measured), 'verdict')}")
    if named := Counter(verdict for verdict in verdicts if isinstance(verdict, str)):
        yield Line(f"both judges together: {', '.join(f'{times} {name}' for name, times in named.items())}")


def _calibration_cell(calibration: JudgeCalibration) -> Cell:
    judges = by_key((row.trust.trusted, judge.judge) for judge in calibration.judges for row in _shown(judge))
    unusable = [judge.judge for judge in calibration.judges if judge.unusable is not None]
    parts = [
        f"{words}: {listed(list(dict.fromkeys(judges[key])), 3)}" for key, words in _TRUST.items() if key in judges
    ]
    parts += [f"without a usable output: {listed(unusable, 3)}"] if unusable else []
    style = _TRUST_STYLES[next(iter(judges))] if len(judges) == 1 and not unusable else ""
    return Cell("; ".join(parts) or "no labels", style)


def _shown(judge: JudgeResult) -> Sequence[LabelAgreement]:
    """Return the agreements to show. Agreement on regressions is shown only over all dimensions."""
    regressions = [row for row in judge.agreement if row.mode == "regression"][:1]
    return [*(row for row in judge.agreement if row.mode != "regression"), *regressions]


def calibration_blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    """Yield the blocks of a calibration: agreement with people, biases, corruption tests and batch rates by judge."""
    yield Heading("Agreement with people", level=1)
    charted = [(judge.judge, row) for judge in calibration.judges for row in _shown(judge)]
    rule = _RULE.format(bar=plain(calibration.bar))
    if charted:
        yield ForMedia(("site",), [_trust_chart(charted, calibration.bar, rule)])
    for judge in calibration.judges:
        yield from _unusable_blocks(judge.judge, judge.unusable)
        for row in _shown(judge):
            yield _agreement_sheet(judge, row)
            parts: list[str | Cell] = []
            for stratum, part in row.strata.items():
                trust = f" {_TRUST[part.trust.trusted]}, κ {share(part.trust.kappa)}"
                parts += ["; " if parts else "by stratum: ", Cell(stratum, code=True), trust]
            if parts:
                yield Line(*parts)
        yield Lines(list(_finding_lines(judge)))
        if judge.batch is not None:
            yield from _batch_blocks(judge, judge.batch)
    if charted:
        yield _in_texts(Line(rule))
        yield Line(_LEGEND)


def _agreement_sheet(judge: JudgeResult, row: LabelAgreement) -> Sheet:
    items = row.criterion if row.mode == "score" else _ITEMS[row.mode]
    if row.mode == "pairwise" and row.criterion != "overall":
        items = f"pairs by {row.criterion}"
    notes = [f"{row.labels - row.n} without a verdict"] if row.labels > row.n else []
    notes += [f"{counted(row.unusable, 'output')} could not be read"] if row.unusable else []
    rho = "" if row.correlation is None else f" · ρ {share(row.correlation)}"
    confidence = "–"
    if row.confidence is not None:
        confidence = f"{number(row.confidence.right)} where right, {number(row.confidence.wrong)} where wrong"
    lines = {
        "labels": f"{row.n} ({', '.join(notes)})" if notes else str(row.n),
        "agreement": share(row.agreement),
        "weighted κ · Spearman's ρ" if rho else "κ": f"{share(row.trust.kappa)}{rho}",
        "TPR · TNR": f"{share(row.sensitivity)} · {share(row.specificity)}",
        "order flips": _order_words(judge, row),
        "confidence": confidence,
    }
    title = f"{judge.judge}, {items}"
    rows = [pages.cells_of([], name, words) for name, words in lines.items()]
    return Sheet(columns=(title, _decision_text(row.trust)), rows=rows, named=frozenset({title}))


def _decision_text(trust: Trust) -> str:
    if trust.trusted is not None:
        return _TRUST[trust.trusted]
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
        trust = "–" if row is None else _trust_cell(row.trust.trusted)
        cells.append(_row_of([entry.dimension], entry.reported, entry.corrected, *figures, trust))
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
            rows=[_row_of([], f"people: {level}", *counts.values()) for level, counts in batch.rated.items()],
            caption=f"{judge.judge}: impact against rated severity, κ {share(batch.rated_kappa)}",
        )
    if batch.too_few:
        yield Line(f"warning: {counted(batch.pairs, 'pair')}; rates from fewer than 100 pairs are uncertain")


def _trust_chart(rows: Sequence[tuple[str, LabelAgreement]], bar: float, rule: str) -> Block:
    points, cells = list[dict[str, Any]](), []
    for judge, row in rows:
        label, kappa = f"{_ITEMS[row.mode]}: {row.criterion}", row.trust.kappa
        cells.append(_row_of([judge], label, kappa, row.n, _trust_cell(row.trust.trusted)))
        if kappa.value is not None:
            low, high = kappa.ci95 or (None, None)
            point = {"label": label, "series": judge, "value": kappa.value, "low": low, "high": high}
            points.append({**point, "words": f"{label}, {judge}: {share(kappa)}"})
    columns = ("judge", "on", "κ, 95 % interval", "n", "")
    sheet = Sheet(columns=columns, rows=cells, numbers=frozenset(columns[2:4]))
    if not points:
        return replace(sheet, caption="Agreement with people", note=rule)
    counts = Counter(_TRUST[row.trust.trusted] for _, row in rows)
    decisions = ", ".join(f"{count} {text}" for text, count in counts.items())

    def draw() -> Any:
        from skill_evaluator.display.chart_style import interval_chart, title  # imports altair

        marks = {bar: f"the bar, {plain(bar)}", 0.0: "chance"}
        return interval_chart(points, "κ", marks).properties(title=title(decisions, rule))

    return Chart("trust", [Drawing(file="", alt_text=decisions, draw=draw, figures=sheet)])


def share(figure: Estimate) -> str:
    """Format a figure with its confidence interval, as `0.540 (0.310–0.780)`, or as a dash if it is unknown."""
    return f"{number(figure.value)} {_interval(figure)}" if figure.n and figure.value is not None else "–"


def _interval(figure: Estimate) -> str:
    return "–" if figure.ci95 is None else f"({number(figure.ci95[0])}–{number(figure.ci95[1])})"


def _row_of(names: Sequence[str], *values: Cell | Estimate | str | int | None) -> list[Cell]:
    return pages.cells_of(names, *(share(value) if isinstance(value, Estimate) else value for value in values))


def _reasons(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{times} {reason}" for reason, times in counts.items()) or "–"


def _trust_cell(trusted: bool | None) -> Cell:
    return Cell(_TRUST[trusted], style=_TRUST_STYLES[trusted])
