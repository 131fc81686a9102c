"""Accepted versions → text, Markdown or JSON: the one that was just accepted, or all that were."""

from collections.abc import Sequence

from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.records.archive import Acceptance
from skill_evaluator.records.record import Record
from skill_evaluator.stats import mean_or_none, rounded

_COLUMNS = ("version", "accepted on", "by", "models", "why")


def print_accepted(
    acceptance: Acceptance, records: Sequence[Record], form: Format, *, new: bool, remarks: Sequence[str]
) -> None:
    """Print what is accepted: version, models and their strict means, over all the records that it rests on.

    `new` is false where it was accepted before; `remarks` say what follows.
    """
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
    title = f" {acceptance.version} {'is accepted' if new else 'was accepted before, for the same reason'}"
    blocks: list[Block] = [
        Heading(Cell(skill, code=True), title, level=2),
        Line(f"by {acceptance.by}: {acceptance.why}"),
        sheet,
        Lines(remarks),
    ]
    print_page(
        form,
        json=lambda: {
            "skill": skill,
            "new": new,
            "acceptance": acceptance.model_dump(mode="json"),
            "metric": metric,
            "strict_means": means,
        },
        page=lambda: page_of(skill, blocks),
    )


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
