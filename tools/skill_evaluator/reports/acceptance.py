"""Accepted versions → text, Markdown or JSON: the one that was just accepted, or all that were."""

from collections.abc import Iterator, Sequence

from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.records.archive import Acceptance
from skill_evaluator.records.record import Record
from skill_evaluator.stats import mean_or_none, rounded
from skill_evaluator.verdicts.history.component import Accepted

_COLUMNS = ("version", "accepted on", "by", "models", "why")


def print_accepted(accepted: Accepted, form: Format) -> None:
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


def _remarks(accepted: Accepted) -> Iterator[str]:
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
    sheet = Sheet(columns=_COLUMNS, rows=rows, whole=frozenset({"version", "accepted on"}))
    nothing = f"no version of {skill} was accepted; `skill-evaluator accept {skill} --why TEXT` accepts the highest"
    print_page(
        form,
        json=lambda: {"skill": skill, "accepted": [acceptance.model_dump(mode="json") for acceptance in acceptances]},
        page=lambda: page_of(skill, [sheet if rows else Line(nothing)]),
    )


def _strict_mean(records: Sequence[Record], metric: str) -> float | None:
    means = [record.accuracy[metric].strict_mean for record in records if metric in record.accuracy]
    return rounded(mean_or_none([mean for mean in means if mean is not None]))
