"""The finished runs of an evaluation → text, Markdown or JSON, and `report.md` in a run folder."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.text import Text

from skill_evaluator.display import WHOLE, cost_words, interval, number, standing_word
from skill_evaluator.display.addresses import NO_SITE, Site
from skill_evaluator.display.pages import Fold, Page, Section, bullets, print_page, terminal_pieces
from skill_evaluator.display.safe_text import code_span, name_text, prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, show
from skill_evaluator.evaluation.drift import RunSpread
from skill_evaluator.files import replace_text
from skill_evaluator.library.components import Component
from skill_evaluator.records.record import SCORED, Record, fault_lines
from skill_evaluator.records.summaries import FEWEST_LABELS, FieldSummary
from skill_evaluator.reports.comparison import (
    MARKS,
    brief_pieces,
    comparison_sections,
    joined,
    legend_section,
    model_section,
    with_served,
)
from skill_evaluator.reports.ending import print_ending
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.reports.ranking import ranking_section
from skill_evaluator.runner.journal import REPORT
from skill_evaluator.scoring.answer_views import ChangedAnswers
from skill_evaluator.scoring.recording import Finished
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.planning.advice import ModelRanking

_OF_A_CASE = ("case_id", "accuracy", "reproducibility", "failures")
_DRAFT = "a draft: in no leaderboard and never a baseline; raise the version and evaluate it to have it recorded"
_WEAKEST = 5
_FAULTS = 3
_MOST_CHANGES, _MOST_WEAK = 3, 3  # rows, where few are shown
FIGURES = ("strict mean", "95 % interval", "mean", "stdev", "n")
_FIELD_COLUMNS = (
    "weakest field",
    "accuracy",
    "right/n",
    "wrong",
    "missing",
    "extra",
    "stability",
    "cases in which it is",
)
_BRIEF_COLUMNS = ("weakest field", "accuracy", "right/n", "stability", "cases in which it is")
Quote = Callable[[str], str]  # how a text from outside is written: `visible` on a terminal, `code_span` on a page


def _as_json(record: Record) -> dict[str, Any]:
    """Return a record without what each of a case's answers scored."""
    value = record.model_dump(mode="json", exclude={"schema_version", "draft", "faults"})
    cases = [{key: case[key] for key in _OF_A_CASE} for case in value.pop("per_case")]
    last = record.model_dump(mode="json", include={"draft", "faults"})
    return {**value, "digest": record.digest, "per_case": cases, **last}


def print_finished(
    finished: Sequence[Finished],
    component: Component,
    form: Format,
    verdict: ComparisonResult | None = None,
    spreads: Sequence[RunSpread] = (),
    changes: Sequence[ChangedAnswers] = (),
    ranking: ModelRanking | None = None,
    site: Site = NO_SITE,
    folders: Sequence[str] = (),
    *,
    full: bool = True,
) -> None:
    """Print the result of an evaluation to stdout, then what it was for: a verdict, or the spread of one version.

    After the verdict comes what became of the answers, of several models which is better, and what to do next.
    `folders` are the flags that name the library. Text is what says most, or all if `full`.
    """
    answers = {  # by what `explain` finds the answers of each run
        run.record.run_id: run.folder.name if run.folder.parent == component.results_dir else str(run.folder)
        for run in finished
    }
    if form == "text" and not full:
        show(_brief(finished, verdict, spreads, changes, ranking, answers))
    else:
        print_page(
            form,
            json=lambda: {
                "skill": component.name,
                "runs": [
                    {**_as_json(run.record), "record": str(run.record_path), "run_folder": str(run.folder)}
                    for run in finished
                ],
                "comparison": None if verdict is None else verdict.model_dump(mode="json"),
                "spreads": [asdict(spread) for spread in spreads],
                **({"changed_answers": [asdict(model) for model in changes]} if changes else {}),
                **({} if ranking is None else {"ranking": ranking.model_dump(mode="json")}),
            },
            page=lambda: _page(finished, verdict, spreads, changes, ranking, site),
            full=True,
        )
    if verdict is not None:
        print_ending(verdict, form, answers, folders)


def _brief(
    finished: Sequence[Finished],
    verdict: ComparisonResult | None,
    spreads: Sequence[RunSpread],
    changes: Sequence[ChangedAnswers],
    ranking: ModelRanking | None,
    answers: Mapping[str, str],
) -> Iterator[Sheet | Text | str]:
    """Yield what says most in few lines: the verdict, the runs that it is not on, and what went wrong in any."""
    models = () if verdict is None else verdict.models
    baselines = {model.baseline.run_id for model in models if model.baseline is not None}
    asked = [run.record for run in finished if run.record.run_id not in baselines]
    compared = {model.candidate.run_id for model in models if model.metrics}
    if verdict is not None:
        yield from brief_pieces(verdict, list(_brief_changes(changes)))
    for record in asked if verdict is not None or ranking is None else ():
        yield from _measured(record) if record.run_id not in compared else ()
    for record in (run.record for run in finished):
        if record.failures or not record.complete:
            unfinished = "" if record.complete else f" · {incomplete(record, visible)}"
            scored = f"{record.model_id}: {record.scored} of {record.planned} scored"
            yield Text(visible(f"{scored}{unfinished}"), style="yellow")
        yield from (Text(line, style="yellow") for line in fault_lines(record, visible))
    yield from (Text(_spread(spread)) for spread in spreads)
    if ranking is not None:
        brief = Text(visible(ranking.advice.words))
        yield from terminal_pieces(ranking_section(ranking).blocks) if verdict is None else (brief,)
    if asked:
        shows = " (--full shows the rest)" if verdict is None else ""
        yield Text(visible(f"answers: {listed([answers[record.run_id] for record in asked], 1)}{shows}"))


def _brief_changes(changes: Sequence[ChangedAnswers]) -> Iterator[Sheet | Text]:
    """Yield what became of the answers of each model, and one table of the first that changed."""
    shown = {model.model_id: changes_of(model) for model in changes}
    yield from (Text(visible(words)) for words, _ in shown.values())
    yield from joined({name: sheet for name, (_, sheet) in shown.items()}, _MOST_CHANGES)


def _measured(record: Record) -> Iterator[Sheet | Text]:
    """Yield what says most of a run that no verdict is on: its metrics, the weakest fields, what must be known."""
    under = f" under {record.scenario}" if record.scenario else ""
    title = f"{record.skill} {version_words(record.skill_version, record.timestamp)}: {record.model_id}{under}"
    yield from (Text(visible(title), style="bold"), Text(facts(record, visible)))
    shown = [name for name, summary in record.accuracy.items() if summary.n] + list(record.reproducibility)[:1]
    yield _metrics(record, shown).only("metric", *FIGURES[:2], "n")
    weakest = weakest_sheet(record).only(*_BRIEF_COLUMNS, most=_MOST_WEAK)
    yield from (Text(), weakest) if weakest.rows else ()
    yield from (Text(visible(line)) for line in remarks(record, visible, full=False))


def _page(
    finished: Sequence[Finished],
    verdict: ComparisonResult | None,
    spreads: Sequence[RunSpread],
    changes: Sequence[ChangedAnswers],
    ranking: ModelRanking | None,
    site: Site,
) -> Page:
    """Return the page of an evaluation: the verdict, what changed, which model is better, then every run."""
    moved = bullets([prose(_spread(spread)) for spread in spreads])
    return Page(
        [
            *([] if verdict is None else comparison_sections(verdict, site)),
            *(
                Section(name=f"changed answers of {model.model_id}", blocks=[prose(words), sheet])
                for model, (words, sheet) in zip(changes, map(changes_of, changes), strict=True)
            ),
            *([Section(name="how far it moves by itself", blocks=[moved])] if spreads else []),
            *([] if ranking is None else [ranking_section(ranking)]),
            *(_run_section(run, site) for run in finished),
            *([] if verdict is None else [legend_section([verdict])]),
        ]
    )


def _spread(spread: RunSpread) -> str:
    """Return the scores of the runs of a version and their standard deviation, in a sentence."""
    name = visible(f"{spread.model_id} {spread.version}")
    times = "once with these settings" if len(spread.scores) == 1 else f"{len(spread.scores)} times"
    counted = f"{name}, measured {times}: {spread.metric} {', '.join(map(number, spread.scores.values()))}"
    return counted if spread.sigma is None else f"{counted}; standard deviation between runs {number(spread.sigma)}"


def write_report(finished: Finished, verdict: ComparisonResult | None = None, site: Site = NO_SITE) -> None:
    """Write `report.md` into the run folder; `verdict` may be on other runs."""
    replace_text(finished.folder / REPORT, report_page(finished, verdict, site).markdown())


def report_page(finished: Finished, verdict: ComparisonResult | None = None, site: Site = NO_SITE) -> Page:
    """Return the page of one run: the verdict on it and what changed, if there is one, then its own figures."""
    model = None if verdict is None else verdict.on_run(finished.record.run_id)
    run = _run_section(finished, site)
    if verdict is None or model is None:
        return Page([run])
    decided = replace(
        model_section(verdict, model, site), heading=f"{run.heading}: {MARKS[model.verdict]} {with_served(model)}"
    )
    return Page([decided, replace(run, heading="## The run"), legend_section([verdict])])


def _run_section(finished: Finished, site: Site) -> Section:
    """Return the section of one run: how it went, its metrics, the weakest fields, and where everything is."""
    record, places = finished.record, (f"record  {finished.record_path}", f"outputs {finished.folder}")
    unfinished = "" if record.complete else f" · **{incomplete(record, code_span)}**"
    version = version_words(record.skill_version)
    return Section(
        name=f"the run of {record.model_id}",
        heading=f"## {code_span(record.skill)} {code_span(version)} · {code_span(record.model_id)}",
        blocks=[
            f"{facts(record, code_span)}{unfinished}",
            bullets(list(fault_lines(record, code_span))),
            _metrics(record, (*record.accuracy, *record.reproducibility)),
            weakest_sheet(record, site),
            bullets(remarks(record, code_span)),
            Fold("Where its record and its answers are", [bullets([code_span(place) for place in places])]),
        ],
    )


def _metrics(record: Record, names: Sequence[str]) -> Sheet:
    """Return the table of some metrics."""
    rows = [
        [
            Cell(f"{title}: {prose(name)}"),
            Cell(number(summary.strict_mean)),
            Cell(interval(summary.ci95, summary.n_cases)),
            *(Cell(number(value)) for value in (summary.mean, summary.stdev)),
            Cell(str(summary.n)),
        ]
        for title, part in (("accuracy", record.accuracy), ("reproducibility", record.reproducibility))
        for name, summary in part.items()
        if name in names
    ]
    return Sheet(columns=("metric", *FIGURES), rows=rows, numbers=frozenset(FIGURES))


def facts(record: Record, quote: Quote) -> str:
    """Return how a run went, in a line: calls, failures, cost, tokens, time."""
    left_out = f" ({counted(len(record.not_applicable), 'case')} not applicable)" if record.not_applicable else ""
    failures = ", ".join(f"{count} {prose(kind)}" for kind, count in record.failures.items())
    several = sum(fault.count for fault in record.faults if fault.kind == SCORED)
    if reasons := Counter(record.reasons) - Counter(ambiguous=several):
        failures += f" ({', '.join(f'{quote(reason)} {count}' for reason, count in reasons.items())})"
    rate = record.tokens.hit_rate
    cached = "" if rate is None else f" ({rate:.0%} from a cache)"
    tokens = f"{_count(record.tokens.input)} in{cached}, {_count(record.tokens.output)} out"
    parts = [
        f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}{left_out}",
        f"{record.scored} of {record.planned} scored",
        f"failures: {failures or 'none'}",
        f"cost {cost_words(record.cost_usd)}",
        f"tokens {tokens}",
        f"latency p50 {number(record.latency_s.p50)} s, p95 {number(record.latency_s.p95)} s",
    ]
    if (judged := record.judged) is not None:
        proved = f"{judged.labels} labels" if judged.labels >= FEWEST_LABELS else "not calibrated"
        calls = f"{counted(judged.calls, 'call')}, cost {cost_words(judged.cost_usd)}"
        parts.append(f"judged by {quote(judged.model_id)}, {proved}: {calls}")
    return " · ".join(parts)


def _judged_shares(record: Record, quote: Quote) -> Iterator[str]:
    """Yield of how many answers each sentence holds, without the errors of the judge."""
    for sentence, share in record.judged.shares.items() if record.judged else ():
        name = quote(sentence) if sentence else "all sentences"
        interval_words = interval(share.ci95, record.planned)
        yield f"{name}: judged {share.judged:.3f}, without the judge's errors {number(share.value)} ({interval_words})"


def incomplete(record: Record, quote: Quote) -> str:
    """Say that a run is no measurement, and why."""
    if record.usable is not None:
        return f"NOT MEASURED: {record.scored} of {record.planned} outputs could be read"
    stopped = f", stopped by {quote(record.stopped)}" if record.stopped else ""
    return f"INCOMPLETE: coverage {record.coverage:.2f}{stopped}"


def weakest_sheet(record: Record, site: Site = NO_SITE) -> Sheet:
    """Return the fields with the lowest accuracy below 1; free text shows its token F1."""
    scored = [(path, field) for path, field in record.per_field.items() if field.n]
    ranked = sorted(scored, key=lambda item: (_field_score(item[1]), item[0]))
    rows = []
    for path, field in ranked[:_WEAKEST]:
        score = _field_score(field)
        if score >= 1:
            break
        unit = " F1" if field.token_f1 is not None else ""
        counts = (f"{field.right}/{field.n}", str(field.wrong), str(field.missing), str(field.extra))
        name = Cell(name_text(path) or WHOLE, code=True, link=site.page(record.skill, field=path))
        standings = field.profile.model_dump() if field.profile else {}  # `3 right · 9 wrong · 2 flaky` of the cases
        words = {standing_word(name, record.replicates): count for name, count in standings.items() if count}
        profile = " · ".join(f"{count} {word}" for word, count in words.items())
        figures = (number(score) + unit, *counts, number(field.stability), profile if field.profile else "–")
        rows.append((name, *map(Cell, figures)))
    return Sheet(columns=_FIELD_COLUMNS, rows=rows, numbers=frozenset(_FIELD_COLUMNS[1:-1]))


def remarks(record: Record, quote: Quote, *, full: bool = True) -> list[str]:
    """Return what a draft is, what judges make of it, and if `full`, pass^k and what broke the contract."""
    remarks = [*([_DRAFT] if record.draft else []), *_passes(record, quote), *_judged_shares(record, quote)]
    if record.served_otherwise is not None:
        remarks.append(quote(record.served_otherwise))
    if record.not_applicable:
        named = [f"{quote(case_id)} ({quote(why)})" for case_id, why in record.not_applicable.items()]
        remarks.append(f"not applicable to this model, and not asked: {listed(named)}")
    if not full:
        return remarks
    powers = {k: summary.mean for k, summary in record.pass_hat_k.items() if summary.mean is not None}
    if max(powers, default=1) > 1:
        remarks.append("exact k times in a row (pass^k): " + ", ".join(f"{k}: {number(p)}" for k, p in powers.items()))
    contract = record.contract
    if contract is not None and contract.errors:
        faults = "; ".join(
            f"{quote(name_text(fault.path)) if fault.path else 'the whole output'}: {fault.rule} {fault.count} "
            f"({quote(fault.message)})"
            for fault in contract.errors[:_FAULTS]
        )
        remarks.append(
            f"contract: {number(contract.valid)} of {contract.n} parsed outputs are valid, "
            f"{number(contract.valid_apart_from_extra_keys)} apart from extra keys; "
            f"{faults}{_more(len(contract.errors) - _FAULTS)}"
        )
    for title, keys in (("missing", contract.missing_keys), ("extra", contract.extra_keys)) if contract else ():
        if keys:
            named = [f"{quote(key)} {count}" for key, count in list(keys.items())[:_WEAKEST]]
            remarks.append(f"{title} top-level keys: {', '.join(named)}{_more(len(keys) - _WEAKEST)}")
    return remarks


def _passes(record: Record, quote: Quote) -> Iterator[str]:
    """Yield, of a component with checks, which cases fail always, which are flaky, and how many pass always."""
    by_words: dict[str, list[str]] = {"fails always": [], "flaky": [], "passes always": []}
    for case in record.per_case if any(case.checks for case in record.per_case) else ():
        if words := case.words(record.primary_metric):
            kind, _, times = words.partition(" (")
            by_words[kind].append(f"{quote(case.case_id)} ({times}" if times else quote(case.case_id))
    for words, names in by_words.items():
        if names:
            yield f"{words}: {counted(len(names), 'case') if words == 'passes always' else listed(names)}"


def _more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""


def _field_score(field: FieldSummary) -> float:
    return next(float(score) for score in (field.token_f1, field.accuracy) if score is not None)


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
