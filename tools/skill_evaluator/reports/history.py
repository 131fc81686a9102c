"""The reports of a component's versions: its history by model, and the accepted baselines."""

from collections.abc import Iterator, Sequence
from typing import Any

from skill_evaluator.display import WHOLE, interval, number, plain, probability, signed
from skill_evaluator.display.addresses import component_address
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Page, page_of
from skill_evaluator.display.sheets import Cell, Sheet, cells_of
from skill_evaluator.records.archive import Acceptance, precedence
from skill_evaluator.records.selection import Accepted
from skill_evaluator.reports.summary import (
    MARKS,
    STYLES,
    Reader,
    accept_step,
    measure_step,
    since_accepted_words,
    try_step,
)
from skill_evaluator.stats import by_key, mean_or_none, rounded
from skill_evaluator.text import version_words
from skill_evaluator.verdicts.history.series import History, Point, Step

_MAX_FLAKY = 5
_MOVED = {"regressed", "improved"}


def history_page(history: History, site: str | None = None, folders: Sequence[str] = ()) -> Page:
    """Report a history; `folders` are the options for the library's folders, repeated in suggested commands."""
    return page_of(history.skill, _history_blocks(history, Reader(folders=folders)), site)


def _history_blocks(history: History, reader: Reader) -> Iterator[Block]:
    yield Lines([history.unmeasured] if history.unmeasured else [], style="yellow")
    title = f": {history.metric} (strict mean over all runs of a version)"
    yield Heading(Cell(history.skill, code=True, link=component_address(history.skill)), title, level=2)
    yield _version_sheet(history)
    verdicts = {point.step.verdict for model in history.models for point in model.points if point.step}
    within = {"unchanged": f": no drop beyond the tolerance ({plain(history.tolerance)})"}
    legend = [f"{mark} {name}{within.get(name, '')}" for name, mark in MARKS.items() if name in verdicts]
    yield Line(" · ".join([*legend, f"95 % intervals, q: adjusted p-value, α {plain(history.alpha)}"]), style="dim")
    no_change = [] if verdicts & _MOVED else ["no version regressed or improved"]
    yield Lines([*_findings(history), *no_change])
    yield Lines(list(_flaky_lines(history)))
    if history.advice is not None:
        yield Line(history.advice.words, style="bold")
    name, newest = history.skill, history.newest
    newest_steps = [step for step in history.newest_steps.values() if step is not None]
    if history.unmeasured:
        following = measure_step(name, reader)
    elif not newest_steps or newest == history.accepted:
        following = try_step(name, reader)
    elif newest != history.to_ship:
        following = f"compare the two versions: {reader.command('compare', name)}"
    else:
        reason = f"{history.newest_verdict} against {newest_steps[0].before}"
        following = accept_step(name, newest, reason, reader)
    yield f"next: {following}"


def _findings(history: History) -> Iterator[Line]:
    for model in history.models:
        name = Cell(model.model_id, code=True)
        for point in model.points:
            step = point.step
            is_open = step is not None and step.verdict == "inconclusive" and point.version == history.newest
            if step is not None and (step.verdict in _MOVED or is_open):
                style = STYLES[step.verdict]
                yield Line(name, f": {_step_words(history.metric, point, step, is_open=is_open)}", style=style)
        highest = model.points[-1].step
        since = None if highest is None else highest.since_accepted
        if since is not None:
            yield Line(name, f": {since_accepted_words(since)}", style=STYLES.get(since.verdict, ""))
        yield from (Line(name, f": {remark}", style="yellow") for remark in model.remarks)


def _flaky_lines(history: History) -> Iterator[str]:
    for model in history.models:
        for values in model.flaky[:_MAX_FLAKY]:
            right = f"right in {', '.join(values.right)} outputs of the last runs"
            yield f"flaky with {model.model_id}: {values.path or WHOLE} of case {values.case_id}, {right}"
    if any(model.flaky for model in history.models):
        setting = f"policy.components.{history.skill}.unstable_cases"
        yield f"after a review, `{setting}` in settings.yaml lets such a case decide nothing"


def _step_words(metric: str, point: Point, step: Step, *, is_open: bool) -> str:
    change = f"{signed(step.difference)} ({interval(step.ci95, point.n_cases, signed)}, q {probability(step.q)})"
    is_shown = step.why.startswith(tuple(f"{metric} {verb} " for verb in ("fell", "rose")))
    reason = "" if is_open or is_shown else f"; {step.why}"
    if step.fell_most and step.fell_most not in reason:
        reason += f"; fell most: {step.fell_most}"
    return f"{MARKS[step.verdict]} {point.version} {step.verdict} against {step.before}: {change}{reason}"


def _version_sheet(history: History) -> Sheet:
    by_model = [{point.version: point for point in model.points} for model in history.models]
    versions = sorted(dict.fromkeys(version for points in by_model for version in points), key=precedence)
    rows = []
    for version in versions:
        first = min(points[version].timestamp for points in by_model if version in points)
        cells = [Cell(version_words(version, first), code=True)]
        for point in (points.get(version) for points in by_model):
            verdict = "" if point is None or point.step is None else point.step.verdict
            score = "" if point is None else f"{number(point.strict_mean)} {MARKS.get(verdict, '')}".rstrip()
            cells.append(Cell(score, STYLES.get(verdict, "")))
        rows.append(cells)
    names = [model.model_id for model in history.models]
    return Sheet(columns=("version", *names), rows=rows, named=frozenset(names))


def accepted_json(accepted: Accepted) -> dict[str, Any]:
    """Return an accepted version as JSON, with the strict mean of each model."""
    record = accepted.records[0]
    means = {name: mean for name, (_, mean) in _strict_means(accepted).items()}
    facts = {"skill": record.skill, "new": accepted.new, "acceptance": accepted.acceptance}
    return {**facts, "metric": record.primary_metric, "strict_means": means}


def accepted_page(accepted: Accepted) -> Page:
    """Report an accepted version: its models with their strict means, and the file to commit."""
    acceptance, metric, skill = accepted.acceptance, accepted.records[0].primary_metric, accepted.records[0].skill
    rows = [cells_of([name], runs, number(mean)) for name, (runs, mean) in _strict_means(accepted).items()]
    title = f" {acceptance.version} {'is accepted' if accepted.new else 'was accepted before, for the same reason'}"
    lines = []
    if accepted.new:
        lines.append(f"commit {accepted.path}: later versions are compared with {acceptance.version} from then on")
    if accepted.above is not None:
        above = f"versions above {accepted.above} are still compared with that one"
        lines.append(f"{above}, unless its entry in {accepted.path} is removed")
    heading, reason = Heading(Cell(skill, code=True), title, level=2), f"by {acceptance.by}: {acceptance.why}"
    sheet = Sheet(columns=("model", "runs", metric), rows=rows, numbers=frozenset({"runs", metric}))
    return page_of(skill, [heading, reason, sheet, Lines(lines)])


def _strict_means(accepted: Accepted) -> dict[str, tuple[int, float | None]]:
    """Return the number of runs and the mean of their strict means by model id. The mean is None if no run has one."""
    metric = accepted.records[0].primary_metric
    means = {}
    for model_id, records in by_key((record.model_id, record) for record in accepted.records).items():
        scores = [record.accuracy[metric].strict_mean for record in records if metric in record.accuracy]
        means[model_id] = len(records), rounded(mean_or_none([score for score in scores if score is not None]))
    return means


def acceptances_page(skill: str, acceptances: Sequence[Acceptance]) -> Page:
    """Report all accepted versions of a component, the newest last."""
    columns = ("version", "accepted on", "by", "models", "why")
    rows = []
    for entry in acceptances:
        models = Cell(", ".join(entry.models), code=True) if entry.models else Cell("all")
        by, reason = Cell(entry.by, code=True), Cell(entry.why, code=True)
        rows.append(cells_of([], entry.version, entry.date.isoformat(), by, models, reason))
    nothing = f"no version of {skill} was accepted; `skill-evaluator accept {skill} --reason TEXT` accepts the highest"
    return page_of(skill, [Sheet(columns=columns, rows=rows, whole=frozenset(columns[:2])) if rows else nothing])
