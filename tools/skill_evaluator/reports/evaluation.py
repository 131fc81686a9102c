"""The reports of an evaluation and of its dry run, and the `report.md` of a run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from skill_evaluator.display import (
    WHOLE,
    cost_words,
    count,
    interval,
    name_text,
    number,
    pages,
    percent,
    seconds,
    stability_words,
)
from skill_evaluator.display.pages import Block, Cell, Fold, Format, Heading, Lines, Page, Section, Sheet, cells_of
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR, SkillEvaluatorError
from skill_evaluator.evaluation.many import DryRun
from skill_evaluator.evaluation.pipeline import EvaluationResult
from skill_evaluator.evaluation.runs import Finished
from skill_evaluator.files import replace_text
from skill_evaluator.records.record import SCORED, Record, fault_lines
from skill_evaluator.records.summaries import MIN_LABELS, FieldSummary
from skill_evaluator.reports.comparison import comparison_section, legend_section
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.reports.history import ranking_blocks
from skill_evaluator.reports.summary import ComparisonSummary, Reader, conclude, conclude_first
from skill_evaluator.runner.journal import REPORT
from skill_evaluator.runner.prices import ESTIMATE_COLUMNS, Forecast
from skill_evaluator.scoring.answer_views import ChangedAnswers
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.component import RunSpread
from skill_evaluator.verdicts.decide.results import ComparisonResult

_CASE_KEYS = ("case_id", "accuracy", "reproducibility", "failures")
_DRAFT = "a draft: not recorded and never a baseline"
_MAX_WEAKEST, _MAX_WEAKEST_OPEN = 5, 3
_MAX_FAULTS = 3
_FIGURES = ("strict mean", "95 % interval", "cases", "mean", "stdev", "values in mean")
_COUNTS = ("wrong", "missing", "extra")
_FIELD_COLUMNS = ("weakest field", "accuracy", "right/values", *_COUNTS, "stability", "cases in which it is")
_OPEN_COLUMNS = tuple(name for name in _FIELD_COLUMNS if name not in _COUNTS)


def evaluation_json(done: EvaluationResult, changes: Sequence[ChangedAnswers] = ()) -> dict[str, Any]:
    """Return the JSON value of an evaluation. Omit `changed_answers` and `ranking` if there are none."""
    return {
        "skill": done.inputs.component.name,
        "runs": [run_json(run) for run in done.finished],
        "comparison": None if done.verdict is None else done.verdict.model_dump(mode="json"),
        "spreads": [asdict(spread) for spread in done.spreads],
        **({"changed_answers": [asdict(model) for model in changes]} if changes else {}),
        **({} if done.ranking is None else {"ranking": done.ranking.model_dump(mode="json")}),
    }


def run_json(finished: Finished) -> dict[str, Any]:
    """Return the JSON value of a run: its record without the scores of single outputs, its digest and its files."""
    record = finished.record
    value = record.model_dump(mode="json", exclude={"schema_version", "draft", "faults"})
    cases = [{key: case[key] for key in _CASE_KEYS} for case in value.pop("per_case")]
    last = record.model_dump(mode="json", include={"draft", "faults"})
    paths = {"record": str(finished.record_path), "run_folder": str(finished.folder)}
    return {**value, "digest": record.row().digest, "per_case": cases, **last, **paths}


def evaluation_page(
    done: EvaluationResult, changes: Sequence[ChangedAnswers] = (), folders: Sequence[str] = (), site: str | None = None
) -> Page:
    """Build the page of an evaluation. `folders`: options such as `--config DIR`, which suggested commands repeat."""
    verdict, ranking, summary = done.verdict, done.ranking, evaluation_summary(done, folders)
    sections = []
    if verdict is not None and summary is not None:
        runs = {model.model_id: model.candidate.run_id for model in verdict.models}
        examples = {runs[model.model_id]: changes_of(model) for model in changes if model.model_id in runs}
        sections.append(comparison_section(verdict, summary, examples))
    elif ranking is not None:
        sections.append(Section(name="the ranking", blocks=ranking_blocks(ranking)))
    models = () if verdict is None else verdict.models
    baselines = {model.baseline.run_id for model in models if model.baseline}
    shown = baselines | {model.candidate.run_id for model in models if model.metrics}
    opened = [run for run in done.finished if run.record.run_id not in shown and (verdict or not ranking)]
    closed = [run for run in done.finished if run not in opened]
    names = [name for run_id, name in _run_names(done).items() if run_id not in baselines]
    sections += [_run_section(run) for run in opened]
    remarks: list[Block] = [
        Lines([line for run in closed for line in _failure_lines(run.record)], style="yellow"),
        Lines([_spread_words(spread) for spread in done.spreads]),
        ranking.advice.sentence if verdict and ranking and ranking.advice.version is None else "",
        f"outputs: {listed(names, 1)}" if names and not (summary and names[0] in summary.next) else "",
        Fold("Each run", [block for run in closed for block in _run_section(run).blocks]),
        *([] if verdict or summary is None else [replace(summary, ship="" if ranking else summary.ship).closing]),
    ]
    sections.append(Section(name="the runs", blocks=remarks))
    return Page([*sections, *([legend_section([verdict])] if verdict else [])], site)


def evaluation_summary(done: EvaluationResult, folders: Sequence[str]) -> ComparisonSummary | None:
    """Summarize an evaluation. Return None if there is no run, or if it ran in a scenario and was not compared."""
    request, records = done.inputs.request, [run.record for run in done.finished]
    judged = done.judged or [one for one in records if not (one.is_final or one.is_baseline or one.shard)]
    if done.verdict is None and (not judged or request.scenario is not None):
        return None
    reader = Reader(outputs=_run_names(done), folders=folders, is_partial=done.is_partial)
    recorded = done.inputs.recorded()
    runs = (entry for entry in recorded.archive.entries if entry.complete and not entry.draft)
    if judged[0].skill_version not in {entry.version for entry in runs}:
        step = f"record a baseline for later versions: {reader.command('evaluate', request.skill)}"
        reader = replace(reader, record_step="collect all outputs with `ci collect`" if request.planned else step)
    ranked = done.ranking.advice.sentence if done.ranking and done.ranking.advice.version is not None else ""
    ship = (done.verdict and done.verdict.ship) or ranked or recorded.ship_words()
    if done.verdict is not None:
        return replace(conclude(done.verdict, reader), ship=ship)
    first = next((record for record in judged if not record.complete), judged[0])
    return conclude_first(first, reader, ship)


def _run_names(done: EvaluationResult) -> dict[str, str]:
    """Map each run id to the argument of `explain`: the run folder's name, or its path if outside the component."""
    results_dir = done.inputs.component.results_dir
    folders = {each.record.run_id: each.folder for each in done.finished}
    return {run_id: folder.name if folder.parent == results_dir else str(folder) for run_id, folder in folders.items()}


def _spread_words(spread: RunSpread) -> str:
    times = "once with these settings" if len(spread.scores) == 1 else f"{len(spread.scores)} times"
    scores = ", ".join(map(number, spread.scores.values()))
    text = f"{spread.model_id} {spread.version}, measured {times}: {spread.metric} {scores}"
    return text if spread.sigma is None else f"{text}; standard deviation between runs {number(spread.sigma)}"


def write_reports(result: EvaluationResult) -> EvaluationResult:
    """Write the report of each run. Return the result with the errors, and without the runs whose report failed."""
    finished, problems = list[Finished](), [*result.problems]
    for run in result.finished:
        try:
            write_report(run, result.verdict, result.inputs.settings.site.address)
            finished.append(run)
        except SkillEvaluatorError as problem:
            problems.append(problem)
    return replace(result, finished=finished, problems=problems)


def write_report(finished: Finished, verdict: ComparisonResult | None = None, site: str | None = None) -> None:
    """Write `report.md` into a run folder. If `verdict` compares this run, the report begins with the comparison."""
    replace_text(finished.folder / REPORT, report_page(finished, verdict, site).markdown())


def report_page(finished: Finished, verdict: ComparisonResult | None = None, site: str | None = None) -> Page:
    """Build the page of one run. If `verdict` compares this run, the page begins with the comparison."""
    model = None if verdict is None else verdict.on_run(finished.record.run_id)
    run = _run_section(finished)
    if verdict is None or model is None:
        return Page([run], site)
    reader = Reader(outputs={finished.record.run_id: finished.folder.name})
    alone = verdict.model_copy(update={"models": [model], "verdict": model.verdict})
    return Page([comparison_section(alone, conclude(alone, reader)), run, legend_section([alone])], site)


def _run_section(finished: Finished) -> Section:
    record = finished.record
    version = version_words(record.skill_version, record.timestamp)
    scenario = f" in scenario {record.scenario}" if record.scenario else ""
    weakest = _weakest_sheet(record)
    open_metrics = [name for name, summary in record.accuracy.items() if summary.n] + list(record.reproducibility)[:1]
    every = [*record.accuracy, *record.reproducibility]
    paths = (f"record: {finished.record_path}", f"outputs: {finished.folder}")
    powers = {k: summary.mean for k, summary in record.pass_hat_k.items() if summary.mean is not None}
    shown = ", ".join(f"{k}: {number(mean)}" for k, mean in powers.items()) if max(powers, default=1) > 1 else ""
    lines = [f"exact k times in a row (pass^k): {shown}"] if shown else []
    lines += [*_schema_violations(record), *paths]
    return Section(
        name=f"the run of {record.model_id}",
        blocks=[
            Heading(Cell(record.skill, code=True), f" {version}: {record.model_id}{scenario}", level=2),
            _facts(record),
            Lines(_failure_lines(record), style="yellow"),
            _metric_sheet(record, open_metrics).only("metric", *_FIGURES[:3]),
            weakest.only(*_OPEN_COLUMNS, limit=_MAX_WEAKEST_OPEN),
            Lines(list(_run_remarks(record)), "-"),
            Fold("All figures of the run", [_metric_sheet(record, every), weakest, Lines(lines, "-")]),
        ],
    )


def _failure_lines(record: Record) -> list[str]:
    if record.complete and not record.failures:
        return list(fault_lines(record, str))
    scored = f"{record.model_id}: {record.scored} of {record.planned} scored"
    if record.usable is not None:
        scored += f" · NOT MEASURED: {record.scored} of {record.planned} outputs could be read"
    elif not record.complete:
        stopped = f", stopped by {record.stopped}" if record.stopped else ""
        scored += f" · INCOMPLETE: completion {percent(record.coverage)}{stopped}"
    return [scored, *fault_lines(record, str)]


def _metric_sheet(record: Record, names: Sequence[str]) -> Sheet:
    rows = []
    for title, part in (("accuracy", record.accuracy), ("reproducibility", record.reproducibility)):
        for name, summary in part.items():
            if name in names and summary.n_cases:
                spread = (number(summary.mean), number(summary.stdev), summary.n)
                figures = (number(summary.strict_mean), interval(summary.ci95, summary.n_cases), summary.n_cases)
                rows.append(cells_of([f"{title}: {name}"], *figures, *spread))
    return Sheet(columns=("metric", *_FIGURES), rows=rows, numbers=frozenset(_FIGURES))


def _facts(record: Record) -> str:
    left_out = f" ({counted(len(record.not_applicable), 'case')} not applicable)" if record.not_applicable else ""
    failures = ", ".join(f"{times} {kind}" for kind, times in record.failures.items())
    several = sum(fault.count for fault in record.faults if fault.kind == SCORED)
    if reasons := Counter(record.reasons) - Counter(ambiguous=several):
        failures += f" ({', '.join(f'{reason} {times}' for reason, times in reasons.items())})"
    cost, tokens = record.cost, record.cost.tokens
    rate = tokens.hit_rate
    cached = "" if rate is None else f" ({percent(rate)} from a cache)"
    sent, received = ("unknown" if n is None else count(n) for n in (tokens.input, tokens.output))
    parts = [
        f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}{left_out}",
        f"{record.scored} of {record.planned} scored",
        f"failures: {failures or 'none'}",
        f"cost {cost_words(cost.cost_usd)}",
        f"tokens {sent} in{cached}, {received} out",
        f"latency p50 {seconds(cost.latency_s.p50)}, p95 {seconds(cost.latency_s.p95)}",
    ]
    if (judged := record.judged) is not None:
        proved = f"{judged.labels} labels" if judged.labels >= MIN_LABELS else "not calibrated"
        calls = f"{counted(judged.calls, 'call')}, cost {cost_words(judged.cost_usd)}"
        parts.append(f"judged by {judged.model_id}, {proved}: {calls}")
    return " · ".join(parts)


def _weakest_sheet(record: Record) -> Sheet:
    """Build the table of the five weakest fields with a score below 1: token F1 of free text, otherwise accuracy."""
    scored = [(path, field) for path, field in record.per_field.items() if field.counts.n]
    ranked = sorted(scored, key=lambda item: (_field_score(item[1]), item[0]))
    rows = []
    for path, field in ranked[:_MAX_WEAKEST]:
        score = _field_score(field)
        if score >= 1:
            break
        unit = " F1" if field.token_f1 is not None else ""
        of = field.counts
        counts = (f"{of.right}/{of.n}", str(of.wrong), str(of.missing), str(of.extra))
        name = Cell(name_text(path) or WHOLE, code=True, link=pages.component_address(record.skill, path))
        stabilities = field.profile.model_dump() if field.profile else {}
        cases_by_name = {name: cases for name, cases in stabilities.items() if cases}
        profile = [f"{cases} {stability_words(name, record.replicates)}" for name, cases in cases_by_name.items()]
        figures = (number(score) + unit, *counts, number(field.stability), " · ".join(profile) or "–")
        rows.append((name, *map(Cell, figures)))
    return Sheet(columns=_FIELD_COLUMNS, rows=rows, numbers=frozenset(_FIELD_COLUMNS[1:-1]))


def _run_remarks(record: Record) -> Iterator[str]:
    if record.draft:
        yield _DRAFT
    yield from _pass_statuses(record)
    for sentence, share in record.judged.shares.items() if record.judged else ():
        corrected = f"without the judge's errors {number(share.value)} ({interval(share.ci95, record.planned)})"
        yield f"{sentence or 'all sentences'}: judged {number(share.judged)}, {corrected}"
    if record.served_note is not None:
        yield record.served_note
    if record.not_applicable:
        named = [f"{case_id} ({why})" for case_id, why in record.not_applicable.items()]
        yield f"not applicable to this model: {listed(named)}"


def _pass_statuses(record: Record) -> Iterator[str]:
    by_words: dict[str, list[str]] = {"fails always": [], "flaky": [], "passes always": []}
    for case in record.per_case if any(case.checks for case in record.per_case) else ():
        if text := case.pass_text(record.primary_metric):
            kind, _, times = text.partition(" (")
            by_words[kind].append(f"{case.case_id} ({times}" if times else case.case_id)
    for text, names in by_words.items():
        if names:
            yield f"{text}: {counted(len(names), 'case') if text == 'passes always' else listed(names)}"


def _schema_violations(record: Record) -> Iterator[str]:
    contract = record.contract
    if contract is None:
        return
    if contract.errors:
        shown = (
            f"{name_text(fault.path) or 'the whole output'}: {fault.rule} {fault.count} ({fault.message})"
            for fault in contract.errors[:_MAX_FAULTS]
        )
        yield (
            f"output schema: {number(contract.valid)} of {contract.n} parsed outputs are valid, "
            f"{number(contract.valid_apart_from_extra_keys)} apart from extra keys"
        )
        yield from shown
        if len(contract.errors) > _MAX_FAULTS:
            yield f"and {len(contract.errors) - _MAX_FAULTS} more rules"
    for title, keys in (("missing", contract.missing_keys), ("extra", contract.extra_keys)):
        if keys:
            yield f"{title} top-level keys: {listed([f'{key} {times}' for key, times in keys.items()], _MAX_WEAKEST)}"


def _field_score(field: FieldSummary) -> float:
    return next(float(score) for score in (field.token_f1, field.accuracy) if score is not None)


_COLUMNS = ("cost if called", "calls", "directly", "with caching", "in batches")


def forecast_sheet(forecasts: Sequence[Forecast]) -> Sheet:
    """Build the table of maximum costs in USD: a row per model, then a row for all models if there are several."""
    shown = forecasts if len(forecasts) > 2 else forecasts[:1]
    rows = []
    for entry in shown:
        model = Cell("all") if entry.model_id is None else Cell(entry.model_id, code=True)
        costs = [cost_words(usd, digits=2) for usd in (entry.direct_usd, entry.cached_usd, entry.batch_usd)]
        if entry.batch_usd is None and entry.direct_usd is not None:
            costs[-1] = "no batch API"
        rows.append(cells_of([], model, count(entry.calls), *costs))
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS[1:]))


def print_dry_run(dry: DryRun, form: Format) -> int:
    """Print the cases, problems, calls and maximum cost of an evaluation. Return 2 if there is a problem, else 0."""
    component = dry.component
    labelled = sum(case.labelled for case in dry.cases)
    cases = f"{counted(len(dry.cases), 'case')}, {labelled} with ground truth"
    state = counted(len(dry.problems), "problem") if dry.problems else "valid"
    rows = [cells_of([], one.model_id, one.provider, one.key, *one.amounts) for one in dry.estimates]
    value = {
        "skill": component.name,
        "dry_run": True,
        "inferred": list(component.inferred),
        "further": list(dry.further),
        "problems": list(dry.problems),
        "models": [asdict(estimate) for estimate in dry.estimates],
        "forecast": [forecast.model_dump(mode="json") for forecast in dry.forecasts],
    }
    blocks: list[Block] = [
        Lines([f"{component.name} {component.version}: {cases}, {state}"]),
        Lines([f"problem: {problem}" for problem in dry.problems], style="red"),
        Lines([*component.inferred, *dry.further]),
        Sheet(columns=("model", "provider", "key", *ESTIMATE_COLUMNS), rows=rows, numbers=frozenset(ESTIMATE_COLUMNS)),
        forecast_sheet(dry.forecasts),
        "dry run: no call was made, nothing was written",
    ]
    pages.print_page(form, json=lambda: value, page=lambda: pages.page_of("the dry run", blocks))
    return EXIT_USER_ERROR if dry.problems else EXIT_OK
