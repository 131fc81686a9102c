"""The versions of a component for people: its history beside its models, what moved, and what was accepted."""

from collections.abc import Iterator, Sequence

from skill_evaluator.display import interval, number, signed
from skill_evaluator.display.addresses import NO_SITE, Site
from skill_evaluator.display.pages import Block, Fold, Heading, Line, Lines, line_chart, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.records.archive import Acceptance, precedence
from skill_evaluator.records.selection import Accepted
from skill_evaluator.reports.comparison import MARKS, STYLES, since_accepted_words
from skill_evaluator.reports.ending import next_step
from skill_evaluator.stats import by_key, mean_or_none, rounded
from skill_evaluator.text import version_words
from skill_evaluator.verdicts.history.series import History

_MOVED, _VERBS = ("regressed", "improved"), ("fell", "rose")
_MOST_DRAWN, _MOST_VERSIONS = 12, 30


def print_history(history: "History", form: Format, site: Site = NO_SITE, folders: Sequence[str] = ()) -> None:
    """Print a history to stdout; `folders` are the flags that name the library."""
    print_page(form, json=lambda: history, page=lambda: page_of(history.skill, _blocks(history, site, folders)))


def _blocks(history: "History", site: Site, folders: Sequence[str]) -> Iterator[Block]:
    yield Lines([*filter(None, [history.unmeasured])], style="yellow")
    title = f": {history.metric} (strict mean) by version, each against the one before"
    yield Heading(Cell(history.skill, code=True, link=site.page(history.skill)), title, level=2)
    steps = [point.step for model in history.models for point in model.points if point.step is not None]
    no_change = [] if any(step.verdict in _MOVED for step in steps) else ["no version regressed or improved"]
    yield Lines([*_findings(history), *no_change])
    yield _sheet(history)
    within = {"unchanged": f": no drop beyond the tolerance ({history.tolerance:g})"}
    legend = [f"{mark} {name}{within.get(name, '')}" for name, mark in MARKS.items()]
    yield Line(" · ".join([*legend, f"on these cases, 95 % intervals, α {history.alpha:g}"]), style="dim")
    yield Fold("The trend of each model, drawn", list(_trends(history)))
    name, newest = history.skill, history.newest
    if not any(history.newest_steps.values()):
        following = next_step("try", folders, name)
    elif newest != history.to_ship:
        following = next_step("compare", folders, name)
    else:
        following = next_step("accept", folders, name, newest, "--why", "…")
    if history.advice is not None:
        yield from (Line(""), Line(history.advice.words, style="bold"))
    yield Line(f"next: {following}")


def _trends(history: "History") -> Iterator[str]:
    """Yield a chart for each model that has two versions or more, in the order of the table."""
    for model in history.models[:_MOST_DRAWN]:
        scores = [(point.version, point.strict_mean) for point in model.points[-_MOST_VERSIONS:]]
        drawn = {version: score for version, score in scores if score is not None}
        if len(drawn) > 1:
            yield line_chart(f"{model.model_id}: {history.metric}", "strict mean", drawn)


def _findings(history: "History") -> Iterator[Line]:
    """Yield what moved, the change since the accepted version, and remarks."""
    for model in history.models:
        name = Cell(model.model_id, code=True)
        for point in model.points:
            step = point.step
            if step is not None and step.verdict in _MOVED:
                words = f"{MARKS[step.verdict]} {point.version} {step.verdict} against {step.before}"
                change = f"{signed(step.difference)} ({interval(step.ci95, point.n_cases, signed)})"
                why = (
                    ""
                    if step.why.startswith(tuple(f"{history.metric} {verb} " for verb in _VERBS))
                    else f"; {step.why}"
                )
                yield Line(name, f": {words}: {change}{why}", style=STYLES[step.verdict])
        highest = model.points[-1].step
        since = None if highest is None else highest.since_accepted
        if since is not None:
            yield Line(name, f": {since_accepted_words(since)}", style=STYLES.get(since.verdict, ""))
        yield from (Line(name, f": {remark}", style="yellow") for remark in model.remarks)


def _sheet(history: "History") -> Sheet:
    """Return versions beside models, the lowest first. A cell is empty where a model was not evaluated."""
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


def print_accepted(accepted: "Accepted", form: Format) -> None:
    """Print what is accepted: version, models and their strict means, over all the records that it rests on."""
    acceptance, records = accepted.acceptance, accepted.records
    metric, skill = records[0].primary_metric, records[0].skill
    by_model = by_key((record.model_id, record) for record in records)
    means = {}
    for model_id, of_model in by_model.items():
        all_means = [record.accuracy[metric].strict_mean for record in of_model if metric in record.accuracy]
        means[model_id] = rounded(mean_or_none([mean for mean in all_means if mean is not None]))
    rows = [cells_of([name], len(of_model), number(means[name])) for name, of_model in by_model.items()]
    sheet = Sheet(columns=("model", "runs", metric), rows=rows, numbers=frozenset({"runs", metric}))
    title = f" {acceptance.version} {'is accepted' if accepted.new else 'was accepted before, for the same reason'}"
    heading, why = Heading(Cell(skill, code=True), title, level=2), Line(f"by {acceptance.by}: {acceptance.why}")
    page = page_of(skill, [heading, why, sheet, Lines(list(_remarks(accepted)))])
    value = {"skill": skill, "new": accepted.new, "acceptance": acceptance, "metric": metric, "strict_means": means}
    print_page(form, json=lambda: value, page=lambda: page)


def _remarks(accepted: "Accepted") -> Iterator[str]:
    """Yield what follows."""
    version, path, above = accepted.acceptance.version, accepted.path, accepted.above
    if accepted.new:
        yield f"commit {path}: later versions are held against {version} from then on"
    if above is not None:
        yield f"versions above {above} are still held against that one, unless its entry in {path} is removed"


def print_acceptances(skill: str, acceptances: Sequence[Acceptance], form: Format) -> None:
    """Print all that was accepted of a component, newest last."""
    rows = []
    for one in acceptances:
        models = Cell(", ".join(one.models), code=True) if one.models else Cell("all")
        by, why = Cell(one.by, code=True), Cell(one.why, code=True)
        rows.append(cells_of([], one.version, one.date.isoformat(), by, models, why))
    columns = ("version", "accepted on", "by", "models", "why")
    sheet = Sheet(columns=columns, rows=rows, whole=frozenset(columns[:2]))
    nothing = f"no version of {skill} was accepted; `skill-evaluator accept {skill} --why TEXT` accepts the highest"
    page = page_of(skill, [sheet if rows else Line(nothing)])
    print_page(form, json=lambda: {"skill": skill, "accepted": acceptances}, page=lambda: page)
