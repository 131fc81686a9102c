"""A comparison for people: the verdict, then the reasons, the tables, and how to read them.

A decided `ComparisonResult` comes in; text, Markdown or JSON goes out. A terminal gets the columns that fit it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rich.text import Text

from skill_evaluator.display import WHOLE, arrow, interval, number, probability, signed, standing_word
from skill_evaluator.display.addresses import NO_SITE, Site, linked
from skill_evaluator.display.pages import Fold, Only, Page, Section, bullets, cut_table, print_page
from skill_evaluator.display.safe_text import code_span, prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, show
from skill_evaluator.metrics.diagnosis.field_profile import Standing
from skill_evaluator.records.record import served_text
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.results import (
    ComparisonResult,
    MeasureResult,
    ModelVerdict,
    SinceAccepted,
    new_cases_words,
    per_1000,
)
from skill_evaluator.verdicts.decide.rules import WORST_FIRST

MARKS = {"regressed": "▼", "improved": "▲", "unchanged": "=", "inconclusive": "?", "incomparable": "≠"}
_MOST_NAMED, _MOST_LOST = 5, 3
_MOST_METRICS, _MOST_MOVES, _MOST_REASONS = 4, 4, 3  # of the only model, where few are shown
_MOST_MOVED = 6  # fields and cases of a model above the figures of a page
_LEGEND = (
    "* critical · before → after: strict means · detects: the smallest drop this comparison finds 4 times in 5",
    "p: one-sided; the interval, shown from five cases on, excludes 0 if p ≤ 0.025",
    "/ 1,000: of 1,000 outputs, failures of 1,000 calls, so that runs of different sizes can be compared",
    "n: outputs if each is a draw of its own, else cases",
)
STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
_MOST_ROWS, _MOST_FIELDS_OF_A_CASE = 10, 4
_STANDINGS: tuple[Standing, ...] = ("stable_right", "stable_wrong", "flaky", "stable", "unscored")
_NUMBERS = frozenset({"before → after", "change", "95 % interval", "p", "detects", "n"})


def print_comparison(result: ComparisonResult, form: Format, site: Site = NO_SITE, *, full: bool = True) -> None:
    """Print a comparison to stdout: as text all of it if `full`, else what says most."""
    if form == "text" and not full:
        show(brief_pieces(result))
        return
    first = [Section(name="the version on disk", blocks=[prose(result.unmeasured)])] if result.unmeasured else []
    page = Page([*first, *comparison_sections(result, site), legend_section([result])])
    print_page(form, json=lambda: result.model_dump(mode="json"), page=lambda: page, full=True)


def brief_pieces(result: ComparisonResult, changed: Sequence[Sheet | Text] = ()) -> Iterator[Sheet | Text]:
    """Yield what says most in few lines: how the models measure, what moved in them, and why that is the verdict.

    `changed` are the answers that changed, which say more than the fields and cases that moved.
    """
    yield from [Text(visible(result.unmeasured), style="yellow")] if result.unmeasured else []
    models, several = worst_first(result), len(result.models) > 1
    versions = listed(list(dict.fromkeys(" → ".join(_versions(model)) for model in models)))
    counts = {counted(model.candidate.replicates, "replicate") for model in models}
    size = [counted(result.n_cases, "case")] if result.n_cases is not None else []
    cases = f" on {' × '.join([*size, *(counts if len(counts) == 1 else ())])}" if size else ""
    metric = next((f"{one.metric} of " for model in models for one in model.metrics if one.tier == "critical"), "")
    on = f"{metric}{len(models)} models" if several else models[0].model_id
    yield Text(visible(f"{result.skill} {versions}: {on}{cases}"), style="bold")
    yield from joined({model.model_id: _brief_measures(model, several=several) for model in models}, _MOST_METRICS, 1)
    moved = changed or list(joined({model.model_id: _moves(model) for model in models}, _MOST_MOVES))
    yield from (Text(), *moved, Text()) if moved else (Text(),)
    by_reason = dict[str, list[str]]()
    for model in models:
        for reason in [*_turned(model), *model.reasons][: 1 if several else _MOST_REASONS]:
            by_reason.setdefault(reason, []).append(model.model_id)
    for reason, names in by_reason.items():
        yield Text(visible(f"{', '.join(names)}: {reason}" if several else reason))
    yield from (Text(visible(line), style="yellow") for line in _left_out(result))
    yield Text(f"unchanged: {tolerance_words(*models)} · --full shows the rest", style="dim")


def tolerance_words(*models: ModelVerdict) -> str:
    """Return what *unchanged* means for some models."""
    tolerated = {f"{one.tolerance:g}" for model in models for one in model.metrics if one.tier == "critical"}
    return f"no drop beyond the tolerance ({', '.join(sorted(tolerated)) or 'of settings.yaml'})"


def joined(sheets: Mapping[str, Sheet], most: int, most_of_several: int = 2) -> Iterator[Sheet]:
    """Yield one table of the first rows of each, by model if there are several; none without a row."""
    several = len(sheets) > 1
    shown = {name: sheet.rows[: most_of_several if several else most] for name, sheet in sheets.items()}
    if rows := [[Cell(name, code=True), *row] for name, rows in shown.items() for row in rows]:
        sheet = next(iter(sheets.values()))
        columns = ("model", *sheet.columns)
        yield replace(sheet, columns=columns, rows=rows, whole=sheet.whole | {"model"}).only(*columns[not several :])


def _brief_measures(model: ModelVerdict, *, several: bool) -> Sheet:
    """Return the metrics on these cases, the critical ones first; of several models with the verdict on the model."""
    columns = ("metric (* critical)", "before → after", "change", "95 % interval", "verdict")
    sheet = measure_sheet(model).only("metric", *columns[1:])
    rows = sorted((row for row in sheet.rows if row[0].text), key=lambda row: not row[0].text.endswith(" *"))
    if several:
        verdict = Cell(f"{MARKS[model.verdict]} {with_served(model)}", STYLES.get(model.verdict, ""))
        rows = [[*row[:-1], verdict] for row in rows[:1] or [[Cell("–")] * 5]]
    sheet = replace(sheet, columns=columns, rows=rows, below=columns[3:4], whole=frozenset(columns[:1]))
    return sheet.only(*columns[several:])


def _moves(model: ModelVerdict, page: Callable[..., str] = lambda **_: "") -> Sheet:
    """Return a row for each field and case that moved, those beyond chance first."""
    moved: list[tuple[str, str, float | None, float | None, str, str]] = []
    for field in _moved_fields(model):
        assert field.verdict is not None  # noqa: S101  (all fields are tested)
        right = [(profile or {}).get("stable_right", 0) for profile in (field.profile_before, field.profile_after)]
        always = f"{right[0]} → {right[1]}"
        path = field.metric or WHOLE
        moved.append((field.verdict, f"field {path}", field.baseline, field.candidate, always, page(field=path)))
    for verdict, changes in (("regressed", model.cases.broke), ("improved", model.cases.fixed)):
        for case in changes:
            counts = listed([f"{path or WHOLE} {count}" for path, count in case.fields.items()], 2)
            name = f"case {case.case_id}{': ' * bool(counts)}{counts}"
            moved.append((verdict, name, case.before, case.after, "–", page(case=case.case_id)))
    rows = [
        [
            Cell(f"{MARKS[verdict]} {name}", STYLES.get(verdict, ""), code=True, link=link),
            Cell(arrow(before, after)),
            Cell(counts),
        ]
        for verdict, name, before, after, counts, link in moved
    ]
    rows.sort(key=lambda row: row[0].text[0] not in (MARKS["regressed"], MARKS["improved"]))
    return Sheet(columns=("what moved", "before → after", "cases right in every answer"), rows=rows)


def comparison_sections(
    result: ComparisonResult, site: Site = NO_SITE, values: Mapping[str, Sheet] = {}
) -> list[Section]:
    """Return the sections of a page. Text from outside stands in code spans, so that none of it is taken for mark-up.

    What moved furthest stands open, and `values` has the table of lost values by run id; all figures are folded away.
    """
    skill = linked(code_span(result.skill), site.page(result.skill))
    return [
        Section(
            name=result.skill,
            heading=f"## {skill}: {scope_words(result)}{_lost_linked(result.skill, site, *result.models)}",
            blocks=[bullets([code_span(line) for line in _left_out(result)])],
        ),
        *(model_section(result, model, site, values.get(model.candidate.run_id)) for model in worst_first(result)),
    ]


def legend_section(results: Sequence[ComparisonResult]) -> Section:
    """Return how to read the figures of some comparisons, folded away."""
    lines = [line.replace("*", "\\*") for line in dict.fromkeys((*_LEGEND, *map(_family, results)))]
    return Section(name="how to read the figures", blocks=[Fold("How to read the figures", [bullets(lines)])])


def model_section(
    result: ComparisonResult, model: ModelVerdict, site: Site = NO_SITE, values: Sheet | None = None
) -> Section:
    """Return the section of one model: its verdict, the reasons, what changed, the figures."""
    lost = _lost_linked(result.skill, site, model)
    versions = " → ".join(map(code_span, _versions(model)))
    reasons = [prose(reason) for reason in (*_turned(model), *model.reasons, *_notes(model))]
    moves = _moves(model, partial(site.page, result.skill))
    largest = [Only(("markdown",), cut_table(moves, _MOST_MOVED))] if model.verdict != "unchanged" else []
    figures = [*changed_sheets(model, skill=result.skill, site=site), measure_sheet(model), run_sheet(model)]
    return Section(
        name=f"{result.skill} on {model.model_id}",
        heading=f"### {MARKS[model.verdict]} {code_span(model.model_id)}: {with_served(model)}{lost}",
        blocks=[
            f"{versions} · {_facts_of(model)}",
            bullets(reasons),
            *largest,
            *filter(None, [values]),
            Fold("The figures", figures),
        ],
    )


def verdict_words(result: ComparisonResult, name: str) -> str:
    """Return the verdict on `name` in a line, with the fields and cases that lost more than a good mean may hide."""
    return " · ".join(filter(None, [f"{name}: {scope_words(result)}", lost_words(*result.models)]))


def model_words(model: ModelVerdict, result: ComparisonResult) -> list[str]:
    """Return what a page says of one model above its figures: the other verdicts, then the reasons."""
    return [_facts_of(model), *_turned(model), *model.reasons, *_notes(model)]


def reading_words(result: ComparisonResult) -> list[str]:
    """Return how to read the figures of a comparison."""
    return [*_LEGEND, _family(result)]


def _family(result: ComparisonResult) -> str:
    return f"verdicts: by p adjusted over {result.family}; α {result.alpha:g}"


def worst_first(result: ComparisonResult) -> list[ModelVerdict]:
    """Sort the models of a comparison, the worst verdict first."""
    return sorted(result.models, key=lambda model: (WORST_FIRST.index(model.verdict), model.model_id))


def scope_words(result: ComparisonResult) -> str:
    """Return the verdict on a component with its cases, and whether a different model answered."""
    return with_served(*result.models, words=_on_cases(result))


def with_served(*models: ModelVerdict, words: str | None = None) -> str:
    """Return the words of a verdict (of one model: itself), what judged it, and whether a different model answered."""
    changes, words = {model.served for model in models}, words or models[0].verdict
    if judges := {model.unproved_judge for model in models if model.unproved_judge}:
        words = f"{words}; judged by {listed(sorted(judges))}, not calibrated"
    if "model" in changes:
        return f"{words}{':' if words == 'incomparable' else ';'} another model answered"
    return f"{words}; another release of the model answered" if "date" in changes else words


def _on_cases(result: ComparisonResult) -> str:
    """Return the verdict with the cases that it holds on, and what it says about new cases."""
    cases, verdict = result.n_cases, result.verdict
    if verdict == "incomparable":
        return verdict
    these = {None: "these cases", 1: "this case"}.get(cases, f"these {cases} cases")
    if result.asked_again:
        return f"{verdict} on {these}, asked again"
    is_good = verdict in ("improved", "unchanged") and cases is not None
    return f"{verdict} on {these}" + (f"; {new_cases_words(cases or 0)}" if is_good else "")


def _lost_linked(skill: str, site: Site, *models: ModelVerdict) -> str:
    def shown(kind: str, name: str) -> str:
        return linked(code_span(name or WHOLE), site.page(skill, **{kind: name}))

    lost = lost_words(*models, shown=shown)
    return f" · {lost}" if lost else ""


def lost_words(*models: ModelVerdict, shown: Callable[[str, str], str] = lambda _, name: name or WHOLE) -> str:
    """Name the fields and cases that lost more than a good mean may hide; nothing where there are none."""
    lost = {
        "field": dict.fromkeys(path for model in models for path in model.lost_fields),
        "case": dict.fromkeys(case_id for model in models for case_id in model.lost_cases),
    }
    words = [
        f"{kind}{'s' * (len(names) > 1)} {listed([shown(kind, name) for name in names], _MOST_LOST)}"
        for kind, names in lost.items()
        if names
    ]
    return f"lost: {'; '.join(words)}" if words else ""


def deepest_fall(model: ModelVerdict) -> MeasureResult | None:
    """Return the field whose mean fell furthest beyond its tolerance, or None if no field did."""
    fell = [one for one in model.fields if one.difference is not None and one.difference < -one.tolerance]
    return min(fell, key=lambda one: one.difference or 0.0, default=None)


def fell_most_words(model: ModelVerdict) -> str:
    """Name the field that fell most. Return "" if no field fell, or if the field is already named as lost."""
    most = deepest_fall(model)
    if most is None or most.metric in model.lost_fields or model.verdict == "incomparable":
        return ""
    return fall_words(most)


def fall_words(field: MeasureResult) -> str:
    """Format a field's name with its score before and after."""
    return f"field {field.metric or WHOLE} {arrow(field.baseline, field.candidate)}"


def _versions(model: ModelVerdict) -> list[str]:
    return [run.title for run in (model.baseline, model.candidate) if run is not None]


def _facts_of(model: ModelVerdict) -> str:
    """Return what a comparison rests on: its cases, what they say about new ones, its coverage and its runs."""
    words = [counted(model.n_cases, "case"), *filter(None, [new_cases_words(model.n_cases)])]
    words.append(f"coverage {model.coverage:.2f}")
    if model.baseline is not None and model.baseline_runs + model.candidate_runs > 2:
        counts = zip((model.baseline, model.candidate), (model.baseline_runs, model.candidate_runs), strict=True)
        words.append("runs: " + ", ".join(f"{count} of {run.skill_version}" for run, count in counts))
    return " · ".join(words)


def since_accepted_words(change: SinceAccepted) -> str:
    """Return the change of a model since the accepted version in words."""
    low, high = map(signed, change.ci95)
    moved = f"{change.metric} {signed(change.difference)} ({low} to {high})"
    return f"all changes since {version_words(change.version)}: {moved}, {change.verdict}"


def _turned(model: ModelVerdict) -> Iterator[str]:
    """Yield which cases pass otherwise than before, and of which the baseline says little."""
    if turned := [f"{one.case_id} {one.before} → {one.after}" for one in model.cases.turned]:
        yield f"turned: {listed(turned, _MOST_NAMED)}"
    if unreliable := [f"{one.case_id} {one.before}" for one in model.cases.unreliable]:
        yield f"unreliable baseline: {listed(unreliable, _MOST_NAMED)}"


def _notes(model: ModelVerdict) -> Iterator[str]:
    """Yield the field that fell most, the change since the accepted version, and cases that moved within the noise."""
    if fell := fell_most_words(model):
        yield f"fell most: {fell}"
    change = model.since_accepted
    if change is not None and change.verdict != "regressed":  # a regression is already a reason
        yield since_accepted_words(change)
    cases = model.cases
    if cases.within_noise:
        yield f"cases that moved, though each by itself no more than by noise: {cases.within_noise}"
    if cases.every_answer_worse:
        named = listed(cases.every_answer_worse, _MOST_NAMED)
        yield f"of these, worse in every output: {named}"


def _left_out(result: ComparisonResult) -> list[str]:
    return [f"{model_id} is left out: {why}" for model_id, why in result.left_out.items()]


def all_sheets(
    model: ModelVerdict, *, skill: str = "", site: Site = NO_SITE, most: int = _MOST_ROWS
) -> Iterator[Sheet | str]:
    """Yield every table that has a row, and a line on the rows that were cut off."""
    if model.metrics:
        yield measure_sheet(model)
    yield from changed_sheets(model, skill=skill, site=site, most=most)
    yield run_sheet(model)


def changed_sheets(
    model: ModelVerdict, *, skill: str = "", site: Site = NO_SITE, most: int = _MOST_ROWS
) -> Iterator[Sheet | str]:
    """Yield the tables of the fields that moved or weigh, and of the cases that broke or were fixed."""
    page = partial(site.page, skill)
    fields = _moved_fields(model)
    if fields:
        runs = [run for run in (model.baseline, model.candidate) if run is not None]
        yield _field_sheet(fields[:most], page, min(run.replicates for run in runs))
        yield from _more(len(fields) - most, " fields")
    for title, changes in (("broke", model.cases.broke), ("fixed", model.cases.fixed)):
        if changes:
            rows = []
            for change in changes[:most]:
                counts = [f"{path or WHOLE} {count}" for path, count in change.fields.items()]
                cell = Cell(listed(counts, _MOST_FIELDS_OF_A_CASE), code=True) if counts else Cell("–")
                case = Cell(change.case_id, code=True, link=page(case=change.case_id))
                rows.append([case, Cell(arrow(change.before, change.after)), cell])
            first = f"{title}: {len(changes)}"
            columns = (first, "before → after", "right answers by field, before → after")
            yield Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({first}))
            yield from _more(len(changes) - most)


def _moved_fields(model: ModelVerdict) -> list[MeasureResult]:
    """Return the fields that moved or weigh: those beyond chance first, then by weight and by difference."""
    return sorted(
        (field for field in model.fields if field.difference or field.tier != "advisory"),
        key=lambda field: (
            field.verdict not in ("regressed", "improved"),
            field.tier == "advisory",
            -abs(field.difference or 0.0),
            field.metric,
        ),
    )


def _more(count: int, of: str = "") -> Iterator[str]:
    if count > 0:
        yield f"… and {count} more{of}"


def measure_sheet(model: ModelVerdict) -> Sheet:
    """Return the table of metrics."""
    figures = ("95 % interval", "p", "detects", "n")
    rows = []
    for result in model.metrics:
        usual = "advisory" if result.kind == "reproducibility" else "supporting"
        mark = " *" if result.tier == "critical" else "" if result.tier == usual else f" ({result.tier})"
        chances = (interval(result.ci95, result.n_cases, signed), probability(result.p))
        counts = (number(result.detectable_drop), f"{result.n:,}" if result.n else "–")
        scores = (arrow(result.baseline, result.candidate), signed(result.difference))
        name = Cell(result.metric + mark, code=True)
        rows.append([name, *map(Cell, (*scores, *chances, *counts)), _verdict_cell(result.verdict)])
    columns = ("metric", "before → after", "change", *figures, "verdict")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"metric"}), below=figures[::-1])


def _verdict_cell(verdict: str | None) -> Cell:
    return Cell(verdict or "–", STYLES.get(verdict or "", ""))


def _field_sheet(fields: Sequence[MeasureResult], page: Callable[..., str], replicates: int) -> Sheet:
    """Return the table of fields, with the stability of each field before and after."""
    figures = ("before → after", "change", "95 % interval", "p")
    rows = []
    for field in fields:
        mark = {"critical": " *", "supporting": " (supporting)", "advisory": ""}[field.tier]
        chances = (interval(field.ci95, field.n_cases, signed), probability(field.p))
        values = (arrow(field.baseline, field.candidate), signed(field.difference), *chances)
        before, after = field.profile_before or {}, field.profile_after or {}
        counts = {name: (before.get(name, 0), after.get(name, 0)) for name in _STANDINGS}
        words = (
            f"{standing_word(name, replicates)} {then} → {now}" for name, (then, now) in counts.items() if then != now
        )
        changed = ", ".join(words)
        path = field.metric or WHOLE
        name = Cell(path + mark, code=True, link=page(field=path))
        rows.append([name, *map(Cell, values), _verdict_cell(field.verdict), Cell(changed or "as before")])
    columns = ("field", *figures, "verdict", "cases in which it is")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"field"}))


def run_sheet(model: ModelVerdict) -> Sheet:
    """Return the table of the two runs: how they went, what an output took, and the failures by kind."""
    runs = [run for run in (model.baseline, model.candidate) if run is not None]
    failures = sorted({kind for run in runs for kind, count in run.failures.items() if count})
    failed = {kind: [per_1000(run.failures.get(kind, 0), run.planned) for run in runs] for kind in failures}
    rows = [
        _facts("run", [run.run_id for run in runs], code=True),
        _facts("served model", [served_text(run.served_model) or "–" for run in runs], code=True),
        _facts("replicates", [str(run.replicates) for run in runs]),
        _facts("answered", [f"{run.coverage * 100:.4g} %" for run in runs]),
        *(_amounts(f"{kind} / 1,000", shares, "{:,.4g}", code=True) for kind, shares in failed.items()),
        _amounts("input tokens / 1,000", [per_1000(run.input_tokens, run.outputs) for run in runs], "{:,.0f}"),
        _amounts("output tokens / 1,000", [per_1000(run.output_tokens, run.outputs) for run in runs], "{:,.0f}"),
        *(
            [_facts("read from a cache", ["–" if run.hit_rate is None else f"{run.hit_rate:.0%}" for run in runs])]
            if any(run.hit_rate for run in runs)
            else []
        ),
        _amounts("cost / 1,000", [per_1000(run.cost_usd, run.outputs) for run in runs], "${:,.4f}"),
        _amounts("latency, median", [run.latency_p50_s for run in runs], "{:.2f} s"),
        _amounts("latency, 95 % below", [run.latency_p95_s for run in runs], "{:.2f} s"),
    ]
    columns = ("the run", "candidate", "change") if len(runs) == 1 else ("the runs", "before", "after", "change")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"change"}))


def _facts(name: str, values: Sequence[str], *, code: bool = False) -> list[Cell]:
    return [Cell(name), *(Cell(value, code=code) for value in values), Cell("")]


def _amounts(name: str, amounts: Sequence[float | None], form: str, *, code: bool = False) -> list[Cell]:
    cells = [Cell("–" if amount is None else form.format(amount)) for amount in amounts]
    measured = [amount for amount in amounts if amount is not None]
    change = ""
    if len(measured) == 2:
        before, after = measured
        share = round((after / before - 1) * 100) if before else None
        change = "=" if before == after or share == 0 else f"{after:+.4g}" if share is None else f"{share:+} %"
    return [Cell(name, code=code), *cells, Cell(change)]
