"""The reports of judges: decisions, the worst outputs with the evidence, biases, calibrations and sizes."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from skill_evaluator.display import count, number, pages, plain, probability, shortened
from skill_evaluator.display.pages import Block, Cell, Chart, Format, ForMedia, Heading, Line, Lines, Sheet
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.calibration.results import ANY, BatchResult, JudgeCalibration, JudgeResult, LabelAgreement
from skill_evaluator.judges.judge_run import Judged, JudgeRunSize, NoUsableOutput
from skill_evaluator.judges.modes import regression
from skill_evaluator.judges.modes.pairwise import PAIR, JudgePreferences, PairwiseResults
from skill_evaluator.judges.modes.results import CascadeResult, PanelResult
from skill_evaluator.judges.modes.run_outputs import PinReport, judged_words
from skill_evaluator.judges.modes.scoring import JudgeScores, ScoreResults
from skill_evaluator.judges.statistics import Estimate, Trust, mean_within, rate
from skill_evaluator.judges.workflows.drafting import DraftedCases
from skill_evaluator.judges.workflows.judging import JudgedResults
from skill_evaluator.library.rubrics import USUAL_THRESHOLD
from skill_evaluator.reports.lint import print_drafted_cases
from skill_evaluator.reports.summary import BOARD, ComparisonSummary, Reader
from skill_evaluator.runner.prices import ESTIMATE_COLUMNS, sum_of
from skill_evaluator.runner.session import print_resume_command
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed

JudgeRunResults = JudgedResults | JudgeCalibration
_Judge = TypeVar("_Judge", bound=JudgeScores | JudgePreferences | regression.JudgeRegressions)
_TITLES = {"score": "Scores by judges", "pairwise": "Comparisons by judges", "regression": "Regressions by judges"}
_STYLES = {"ship": "green", "review_required": "yellow", "block": "red", None: "yellow"}
_STEPS_AFTER_CALIBRATION = {
    "trusted": "use as a judge with this rubric",
    "undecided": "label more items, drawn at random, then calibrate again",
    "not trusted": "choose another judge or rewrite the rubric, then calibrate again",
}
_LENGTH_BIAS = ", a length bias unless length is a merit"
_MAX_PAIRS = 10  # shown with their evidence
_MAX_NAMED = 3
_MAX_EVIDENCE = 160  # characters of each piece
_TRUST_STYLES = {"trusted": "green", "not trusted": "red", "undecided": "yellow"}
_ITEMS = {"pairwise": "pairs", "score": "scores", "regression": "regressions", "sentences": "sentences"}
_RULE = (
    "A judge is trusted if the 95 % confidence interval of κ with people is at {bar} or above, and not trusted if it "
    "is below. The labelled items must be a random sample. If the two orders of a pair differ, its verdict is a tie."
)
_LEGEND = "κ: agreement beyond chance; TPR and TNR: the shares of positive and of negative labels that a judge gives."
_BIASES = ("position", "length", "self_preference", "leniency", "noise")  # all other biases are probes


def print_judged(judged: Judged | JudgeRunSize, form: Format, components: Path, folders: Sequence[str]) -> int:
    """Print the result of a judge command and how to resume an incomplete judge run. Return the exit code."""
    if isinstance(judged, JudgeRunSize):
        return print_judge_run_size(judged, form)
    if (results := judged.results) is not None:
        folder, blocks = {"folder": str(judged.folder)}, _judged_blocks(results, [f"results: {judged.folder}"])
        if isinstance(results, JudgeCalibration):
            folder, blocks = {}, calibration_blocks(results)
        closing = judge_outcome(results, components, folders).closing
        pages.print_page(
            form,
            json=lambda: {**folder, **results.model_dump(mode="json")},
            page=lambda: pages.page_of("the judge run", [next(blocks), closing, *blocks]),  # below the heading
        )
    for sentence in judged.reasons:
        print(sentence, file=sys.stderr)
    print_resume_command(judged.again)
    return judged.code


def print_drafted(drafted: DraftedCases | JudgeRunSize) -> int:
    """Print drafted cases, or the size of a dry run, and return the exit code."""
    if isinstance(drafted, JudgeRunSize):
        return print_judge_run_size(drafted, "text")
    print_drafted_cases(drafted)
    return EXIT_OK


def print_judge_run_size(size: JudgeRunSize, form: Format) -> int:
    """Print the size of a dry run and return the exit code."""
    judging, total = size.judging, sum_of(size.judges)
    calls = counted(len(judging.questions), "call")
    rows = [pages.cells_of([judge.model_id], judge.provider, judge.key, *judge.amounts) for judge in size.judges]
    rows.append(pages.cells_of([], "all", "", "", *total.amounts))
    blocks: list[Block] = [
        Line(f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {calls} per judge"),
        Sheet(columns=("judge", "provider", "key", *ESTIMATE_COLUMNS), rows=rows, numbers=frozenset(ESTIMATE_COLUMNS)),
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
    return EXIT_OK


def print_pinned(report: PinReport, form: Format) -> None:
    """Print the component, version and model of pinned outputs, their number, and the path of their file."""
    source = Cell(f"{report.skill} {report.skill_version} by {report.model_id}", code=True)
    outputs, path = counted(len(report.cases), "output"), Cell(report.path, code=True)
    text = Line(f"{outputs} of ", source, " pinned in ", path, "; commit it")
    pages.print_page(form, json=lambda: report, page=lambda: pages.page_of("the pinned outputs", [text]))


def bias_report(results: JudgeRunResults) -> str:
    """Return the Markdown text of a judge run's bias_analysis_report.md."""
    blocks = calibration_blocks(results) if isinstance(results, JudgeCalibration) else _bias_blocks(results)
    return pages.page_of("biases", blocks).markdown()


def judge_run_blocks(results: JudgeRunResults) -> list[Block]:
    """Return the blocks of a judge run's page. Blocks that quote outputs are not shown on the site."""
    if isinstance(results, JudgeCalibration):
        return list(calibration_blocks(results))
    return [*_judged_blocks(results), *_bias_blocks(results)]


def _judged_blocks(results: JudgedResults, remarks: Sequence[str] = ()) -> Iterator[Block]:
    yield Heading(_TITLES[results.judging.mode], level=2)
    for judge in results.judges:
        yield from _unusable_blocks(judge.judge.model_id, judge.unusable)
    if isinstance(results, regression.RegressionResults):
        yield from _regression_blocks(results)
    else:
        yield from _score_blocks(results) if isinstance(results, ScoreResults) else _pair_blocks(results)
    if results.cascade is not None:
        yield from _cascade_blocks(results.cascade)
    if results.left_out:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(results.left_out.items())[:5])
        yield Lines([f"not judged: {counted(len(results.left_out), 'case')}: {named}"])
    usable = _usable(results.judges)
    biases = [f"{judge.judge.model_id}: {sentence}" for judge in usable for sentence in _bias_parts(judge)[1]]
    yield _hidden_on_site(Lines([*biases, *remarks]))


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


def _hidden_on_site(block: Block) -> ForMedia:
    return ForMedia(("terminal", "markdown"), [block])


def _unusable_blocks(judge: str, unusable: NoUsableOutput | None) -> Iterator[Block]:
    if unusable is not None:
        text = (Cell(judge, code=True), f": no usable output: {_reasons(unusable.unscored)}")
        quoted: list[str | Cell] = ["; for example: ", _evidence_cell(unusable.example)] if unusable.example else []
        yield ForMedia(("site",), [Line(*text, style="red")])
        yield _hidden_on_site(Line(*text, *quoted, style="red"))


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
    yield _hidden_on_site(_worst_scores(judges))


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
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"score"}), below=columns[-3:], caption="Lowest scores")


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
    yield _hidden_on_site(_uncertain_matches(judges))


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
    return Sheet(columns=columns, rows=rows, below=columns[3:], caption="Least certain comparisons")


def _pair_biases(judge: JudgePreferences) -> tuple[Sheet, list[str]]:
    columns = ("criterion", "order flips", "noise", "first wins", "position bias", "longer wins", "confidence")
    rows, sentences = [], []
    for bias in judge.shown:
        position = bias.position
        figures = position.flips, bias.noise, position.picks_first, position.lean, bias.longer, bias.confidence
        rows.append(_row_of([bias.criterion], *figures))
        sentences.append(f"{bias.criterion}: the verdict changes with the order in {share(position.flips)} of pairs")
        sentences += [f"{bias.criterion}: {sentence}" for sentence in _position_bias(position.lean)]
        if bias.longer.excludes(0.5):
            wins = bias.longer.value or 0.0
            which = f"the {'longer' if wins > 0.5 else 'shorter'} output wins in {number(max(wins, 1 - wins))}"
            sentences.append(f"{bias.criterion}: significantly often, {which}{_LENGTH_BIAS}")
    return Sheet(columns=columns, rows=rows), sentences


def _position_bias(lean: Estimate) -> list[str]:
    position = "first" if (lean.value or 0.0) > 0 else "second"
    return [f"significant position bias to the {position} output: {share(lean)}"] if lean.excludes(0.0) else []


def judge_outcome(results: JudgeRunResults, components: Path, folders: Sequence[str] = ()) -> ComparisonSummary:
    """Summarize a judge run. `folders`: options such as `--config DIR`, which suggested commands repeat."""
    reader, skill = Reader(folders=folders), None if results.judging is None else results.judging.skill
    if isinstance(results, JudgeCalibration):
        outcome = _conclude_calibration(results)
    elif isinstance(results, regression.RegressionResults):
        outcome = _conclude_regressions(results, judged_words(results, components), reader)
    else:
        outcome = _conclude_figures(results, judged_words(results, components))
    if skill is not None:
        outcome = replace(outcome, ship=f"{BOARD.format(reader.command('leaderboard', skill))}, by ground truth")
    records = [judge.record if isinstance(judge, JudgeResult) else judge.judge for judge in results.judges]
    if any(record is not None and record.stopped for record in records):
        made = counted(sum(record.answered for record in records if record is not None), "answer")
        again = "continue it with the command that the judge run printed"
        return replace(outcome, verdict=f"incomplete, with {made}: {outcome.verdict}", next=again, style="yellow")
    if all(judge.unusable is not None for judge in results.judges):
        remedy = "choose another judge or rewrite the rubric"
        return replace(outcome, lost="", sure="no output of a judge is usable", next=remedy)
    return outcome


def _conclude_regressions(results: regression.RegressionResults, about: str, reader: Reader) -> ComparisonSummary:
    judges, judging = _usable(results.judges), results.judging
    raised = "; a rate of regressions is too high or rose" if results.alerting else ""
    rates = {judge.judge.model_id: rate(len(judge.held), len(judge.pairs)) for judge in judges}
    shares = [f"{name} {one.count} of {one.n} {_interval(one)}" for name, one in rates.items()]
    few = f"; fewer than {regression.MIN_PAIRS} pairs" if judging.items < regression.MIN_PAIRS else ""
    causes = by_key((pair.reasons[0], pair.id) for _, pair in results.held)
    where = [f"{reason} ({_names(ids)})" for reason, ids in causes.items()]
    where += [f"{counted(len(results.left_out), 'case')} not judged"] if results.left_out else []
    style = "red" if results.alerting else _STYLES[results.ship_decision]
    steps = {
        "green": "nothing is in the way of the candidate",
        "red": f"read the evidence in the folder of the judge run {judging.id}, then change the prompt",
        "yellow": "have people decide the pairs that --review queued: `skill-evaluator review serve`",
    }
    retry = f": {reader.command('try', judging.skill)}" if judging.skill and style == "red" else ""
    return ComparisonSummary(
        verdict=f"{results.ship_decision or 'no decision'}: {about}{raised}",
        lost=f"where: {listed(where, _MAX_NAMED) or 'no pair is worse'}",
        sure=f"pairs that may not ship, with 95 % confidence interval of their share: {listed(shares)}{few}",
        next=steps[style] + retry,
        style=style,
    )


def _conclude_figures(results: ScoreResults | PairwiseResults, about: str) -> ComparisonSummary:
    if isinstance(results, ScoreResults):
        title, sheet = f"mean score from 0 to 1 of {about}", _worst_scores(_usable(results.judges))
        figures = {judge.judge.model_id: judge.summary for judge in results.judges}
    else:
        title, sheet = f"win rate of output 1 on {about}", _uncertain_matches(_usable(results.judges))
        figures = {judge.judge.model_id: judge.criteria[-1].wins for judge in results.judges if judge.criteria}
    judges, items = "".join(f" --judge {name}" for name in figures), counted(results.judging.items, "item")
    command = f"`skill-evaluator judge calibrate --labels FILE --rubric RUBRIC{judges}`"
    return ComparisonSummary(
        verdict=f"{title}: {'; '.join(f'{name} {share(figure)}' for name, figure in figures.items())}",
        lost=f"{sheet.caption.lower()}: {_names([row[1].text for row in sheet.rows])}" if sheet.rows else "",
        sure=f"the brackets are 95 % confidence intervals over {items}; no labels and no other version were used",
        next=f"label some of these outputs in FILE, then compare the judge with people: {command}",
        style="",
    )


def _conclude_calibration(calibration: JudgeCalibration) -> ComparisonSummary:
    judges = by_key((row.trust.decision, name) for name, row in calibration.shown)
    judges |= {"without a usable output": [judge.judge for judge in calibration.judges if judge.unusable is not None]}
    parts = [f"{decision}: {_names(names)}" for decision, names in judges.items() if names]
    style = _TRUST_STYLES.get(next(iter(judges)), "yellow") if len(parts) == 1 else "yellow"
    texts = by_key((row.trust.summary(calibration.bar), name) for name, row in calibration.shown)
    steps = list[str]()
    for decision, step in _STEPS_AFTER_CALIBRATION.items():
        todo = [_names(texts[text]) + text.removeprefix(decision) for text in texts if text.startswith(decision)]
        steps += [f"{step}: {listed(todo, _MAX_NAMED)}"] if todo else []
    kappas = [f"{name} {share(row.trust.kappa)} from {counted(row.n, 'label')}" for name, row in calibration.shown]
    sure = f"κ, with 95 % confidence interval: {listed(kappas, _MAX_NAMED)}; the bar is {plain(calibration.bar)}"
    return ComparisonSummary(
        verdict=f"agreement with people: {'; '.join(parts) or 'no labels'}",
        sure=sure if kappas else "",
        next="; ".join(steps) or "label items drawn at random, to compare the judges with people",
        style=style,
    )


def _names(names: Sequence[str]) -> str:
    return listed(list(dict.fromkeys(names)), _MAX_NAMED)


def _regression_blocks(results: regression.RegressionResults) -> Iterator[Block]:
    judges = _usable(results.judges)
    numbers = ("pairs", *regression.DECISIONS, "undecided", "unverified")
    rows = [
        _row_of([one.judge.model_id], len(one.pairs), *one.decisions.values(), one.undecided, one.unverified)
        for one in judges
    ]
    yield Sheet(columns=("judge", *numbers), rows=rows, numbers=frozenset(numbers), caption="Decisions")
    if held := results.held:
        caption = f"The worst of {counted(len(held), 'pair')} without the decision to ship"
        yield _hidden_on_site(replace(_worst_pairs(held[:_MAX_PAIRS]), caption=caption))
        rows = [_row_of([pair.id], _decision_cell(pair), f"{judge}: {'; '.join(pair.reasons)}") for judge, pair in held]
        sheet = Sheet(columns=("pair", "decision", "reasons"), rows=rows)
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
    yield Lines(list(_regression_notes(results)))


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
        if judge.outputs.unscored and judge.unusable is None:
            yield f"{name}: {_reasons(judge.outputs.unscored)} of {counted(judge.outputs.answers, 'output')} unscored"
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
    if judge.outputs.mismatches:
        total, mismatches = counted(judge.outputs.answers, "output"), _reasons(judge.outputs.mismatches)
        sentences.append(f"conclusions that contradict the findings, of {total}: {mismatches}")
    if judge.outputs.unrequested:
        sentences.append(f"ignored dimensions, because they were not requested: {_reasons(judge.outputs.unrequested)}")
    return _dimension_sheet([judge]), [*sentences, f"severity: {_reasons(judge.severity)}"]


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


def calibration_blocks(calibration: JudgeCalibration) -> Iterator[Block]:
    """Yield the blocks of a calibration: agreement with people, biases, detected corruptions, rates of regressions."""
    yield Heading("Agreement with people", level=1)
    rule = _RULE.format(bar=plain(calibration.bar))
    if calibration.shown:
        yield ForMedia(("site",), [_trust_chart(calibration.shown, calibration.bar, rule)])
    for judge in calibration.judges:
        yield from _unusable_blocks(judge.judge, judge.unusable)
        for row in judge.shown:
            yield _agreement_sheet(judge, row, calibration.bar)
            parts: list[str | Cell] = []
            for stratum, part in row.strata.items():
                trust = f" {part.trust.decision}, κ {share(part.trust.kappa)}"
                parts += ["; " if parts else "by stratum: ", Cell(stratum, code=True), trust]
            if parts:
                yield Line(*parts)
        yield Lines(list(_finding_lines(judge)))
        if judge.batch is not None:
            yield from _batch_blocks(judge, judge.batch)
    if calibration.shown:
        yield _hidden_on_site(Line(rule))
        yield Line(_LEGEND)


def _agreement_sheet(judge: JudgeResult, row: LabelAgreement, bar: float) -> Sheet:
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
        "TPR · TNR": f"{share(row.accuracy.sensitivity)} · {share(row.accuracy.specificity)}",
        "order flips": _order_words(judge, row),
        "confidence": confidence,
    }
    title = f"{judge.judge}, {items}"
    rows = [pages.cells_of([], name, words) for name, words in lines.items()]
    return Sheet(columns=(title, row.trust.summary(bar)), rows=rows, named=frozenset({title}))


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
        alarms = {row.dimension: row.false_alarms for row in test.dimensions}
        whole = next(row for row in test.dimensions if row.dimension == ANY)
        kinds = ", ".join(f"{kind} {one.count} of {one.n}" for kind, one in test.kinds.items())
        others = ", ".join(f"{key} {one.count} of {one.n}" for key, one in alarms.items() if key != ANY)
        unscored = f"; {counted(test.unscored, 'pair')} without a usable output" if test.unscored else ""
        yield Line(name, f", detected: {share(whole.sensitivity)} of corruptions ({kinds}){unscored}")
        yield Line(name, f", false alarms: {share(alarms[ANY])} of controls ({others})")


def _batch_blocks(judge: JudgeResult, batch: BatchResult) -> Iterator[Block]:
    agreements = {row.criterion: row for row in judge.agreement if row.mode == "regression"}
    cells = []
    for entry in batch.dimensions:
        figures: Sequence[Estimate | Cell | str | None] = (None, None, None, "–")
        if row := agreements.get(entry.dimension):
            figures = (row.trust.kappa, row.accuracy.sensitivity, row.accuracy.specificity, _trust_cell(row.trust))
        cells.append(_row_of([entry.dimension], entry.reported, entry.corrected, *figures))
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
        cells.append(_row_of([judge], label, kappa, row.n, _trust_cell(row.trust)))
        if kappa.value is not None:
            low, high = kappa.ci95 or (None, None)
            point = {"label": label, "series": judge, "value": kappa.value, "low": low, "high": high}
            points.append({**point, "words": f"{label}, {judge}: {share(kappa)}"})
    columns = ("judge", "on", "κ, 95 % interval", "n", "")
    sheet = Sheet(columns=columns, rows=cells, numbers=frozenset(columns[2:4]))
    if not points:
        return replace(sheet, caption="Agreement with people", note=rule)
    decisions = _reasons(Counter(row.trust.decision for _, row in rows))

    def draw() -> Any:
        from skill_evaluator.display.chart_style import interval_chart, title  # imports altair

        marks = {bar: f"the bar, {plain(bar)}", 0.0: "chance"}
        return interval_chart(points, "κ", marks).properties(title=title(decisions, rule))

    return Chart(name="trust", alt_text=decisions, draw=draw, figures=sheet)


def share(figure: Estimate) -> str:
    """Format a figure with its confidence interval, as `0.540 (0.310–0.780)`, or as a dash if it is unknown."""
    return f"{number(figure.value)} {_interval(figure)}" if figure.n and figure.value is not None else "–"


def _interval(figure: Estimate) -> str:
    return "–" if figure.ci95 is None else f"({number(figure.ci95[0])}–{number(figure.ci95[1])})"


def _row_of(names: Sequence[str], *values: Cell | Estimate | str | int | None) -> list[Cell]:
    return pages.cells_of(names, *(share(value) if isinstance(value, Estimate) else value for value in values))


def _reasons(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{times} {reason}" for reason, times in counts.items()) or "–"


def _trust_cell(trust: Trust) -> Cell:
    return Cell(trust.decision, style=_TRUST_STYLES[trust.decision])
