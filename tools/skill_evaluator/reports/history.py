"""The versions of a component for people: its history beside its models, what moved, and what was accepted."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import semver

from skill_evaluator.display import number
from skill_evaluator.display.addresses import NO_SITE, Site
from skill_evaluator.display.pages import Block, Fold, Heading, Line, Lines, line_chart, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.records.archive import Acceptance
from skill_evaluator.records.record import Record
from skill_evaluator.reports.comparison import MARKS, STYLES, since_anchor
from skill_evaluator.stats import mean_or_none, rounded

if TYPE_CHECKING:  # it imports scipy
    from skill_evaluator.verdicts.history.component import Accepted
    from skill_evaluator.verdicts.history.series import History

_LEGEND = " · ".join(f"{mark} {name}" for name, mark in MARKS.items())
_WHERE = {
    "these": "on these cases",
    "beyond": "beyond these cases",
    "both": "on these cases and beyond them",
}
_MOVED = ("regressed", "improved")
_MOST_DRAWN, _MOST_VERSIONS = 12, 30


def print_history(history: "History", form: Format, site: Site = NO_SITE) -> None:
    """Print a history to stdout."""
    print_page(
        form, json=lambda: history.model_dump(mode="json"), page=lambda: page_of(history.skill, _blocks(history, site))
    )


def _blocks(history: "History", site: Site) -> Iterator[Block]:
    title = f": {history.metric} by version, each against the one before"
    yield Heading(Cell(history.skill, code=True, link=site.page(history.skill)), title, level=2)
    steps = [point.step for model in history.models for point in model.points if point.step is not None]
    no_change = [] if any(step.verdict in _MOVED for step in steps) else ["no version regressed or improved"]
    yield Lines([*_findings(history), *no_change])
    yield _sheet(history)
    explanation = f"strict means, verdicts {_WHERE[history.gate]}, α {history.alpha:g}"
    yield Line(f"{_LEGEND} · {explanation}", style="dim")
    yield Fold("The trend of each model, drawn", list(_trends(history)))


def _trends(history: "History") -> Iterator[str]:
    """Yield a chart for each model that has two versions or more, in the order of the table."""
    for model in history.models[:_MOST_DRAWN]:
        scores = [(point.version, point.strict_mean) for point in model.points[-_MOST_VERSIONS:]]
        drawn = {version: score for version, score in scores if score is not None}
        if len(drawn) > 1:
            yield line_chart(f"{model.model_id}: {history.metric}", "strict mean", drawn)


def _findings(history: "History") -> Iterator[Line]:
    """Yield what moved, what became of it since the anchor, and remarks."""
    for model in history.models:
        name = Cell(model.model_id, code=True)
        for point in model.points:
            step = point.step
            if step is not None and step.verdict in _MOVED:
                words = f"{MARKS[step.verdict]} {point.version} {step.verdict} against {step.before}"
                reason = f": {step.reasons[0]}" if step.reasons else ""
                yield Line(name, f": {words}{reason}", style=STYLES[step.verdict])
        highest = model.points[-1].step
        if highest is not None and highest.watch is not None:
            yield Line(name, f": {since_anchor(highest.watch)}", style=STYLES.get(highest.watch.verdict, ""))
        yield from (Line(name, f": {remark}", style="yellow") for remark in model.remarks)


def _sheet(history: "History") -> Sheet:
    """Return versions beside models, the lowest first. A cell is empty where a model was not evaluated."""
    by_model = [{point.version: point for point in model.points} for model in history.models]
    versions = sorted({version for points in by_model for version in points}, key=semver.Version.parse)
    rows = []
    for version in versions:
        cells = [Cell(version, code=True)]
        for point in (points.get(version) for points in by_model):
            if point is None:
                cells.append(Cell(""))
            elif point.step is None:
                cells.append(Cell(number(point.strict_mean)))
            else:
                verdict = point.step.verdict
                cells.append(Cell(f"{number(point.strict_mean)} {MARKS[verdict]}", STYLES.get(verdict, "")))
        rows.append(cells)
    names = [model.model_id for model in history.models]
    return Sheet(columns=("version", *names), rows=rows, named=frozenset(names))


def print_accepted(accepted: "Accepted", form: Format) -> None:
    """Print what is accepted: version, models and their strict means, over all the records that it rests on."""
    acceptance, records = accepted.acceptance, accepted.records
    metric, skill = records[0].primary_metric, records[0].skill
    by_model: dict[str, list[Record]] = {}
    for record in records:
        by_model.setdefault(record.model_id, []).append(record)
    means = {model_id: _strict_mean(of_model, metric) for model_id, of_model in by_model.items()}
    sheet = Sheet(
        columns=("model", "runs", metric),
        rows=[
            [Cell(model_id, code=True), Cell(str(len(of_model))), Cell(number(means[model_id]))]
            for model_id, of_model in by_model.items()
        ],
        numbers=frozenset({"runs", metric}),
    )
    title = f" {acceptance.version} {'is accepted' if accepted.new else 'was accepted before, for the same reason'}"
    blocks: list[Block] = [
        Heading(Cell(skill, code=True), title, level=2),
        Line(f"by {acceptance.by}: {acceptance.why}"),
        sheet,
        Lines(list(_remarks(accepted))),
    ]
    print_page(
        form,
        json=lambda: {
            "skill": skill,
            "new": accepted.new,
            "acceptance": acceptance.model_dump(mode="json"),
            "metric": metric,
            "strict_means": means,
        },
        page=lambda: page_of(skill, blocks),
    )


def _remarks(accepted: "Accepted") -> Iterator[str]:
    """Yield what follows."""
    version, path, above = accepted.acceptance.version, accepted.path, accepted.above
    if accepted.new:
        yield f"commit {path}: later versions are held against {version} from then on"
    if above is not None:
        yield f"versions above {above} are still held against that one, unless its entry in {path} is removed"


def print_acceptances(skill: str, acceptances: Sequence[Acceptance], form: Format) -> None:
    """Print all that was accepted of a component, newest last."""
    rows = [
        [
            Cell(acceptance.version),
            Cell(acceptance.date.isoformat()),
            Cell(acceptance.by, code=True),
            Cell(", ".join(acceptance.models) if acceptance.models else "all", code=bool(acceptance.models)),
            Cell(acceptance.why, code=True),
        ]
        for acceptance in acceptances
    ]
    sheet = Sheet(
        columns=("version", "accepted on", "by", "models", "why"),
        rows=rows,
        whole=frozenset({"version", "accepted on"}),
    )
    nothing = f"no version of {skill} was accepted; `skill-evaluator accept {skill} --why TEXT` accepts the highest"
    print_page(
        form,
        json=lambda: {"skill": skill, "accepted": [acceptance.model_dump(mode="json") for acceptance in acceptances]},
        page=lambda: page_of(skill, [sheet if rows else Line(nothing)]),
    )


def _strict_mean(records: Sequence[Record], metric: str) -> float | None:
    means = [record.accuracy[metric].strict_mean for record in records if metric in record.accuracy]
    return rounded(mean_or_none([mean for mean in means if mean is not None]))
