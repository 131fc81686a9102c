"""What a judging takes of each judge, before any call: calls in both orders, tokens, and the cost at most."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.text import Text

from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.runner.prices import Estimate, sum_of
from skill_evaluator.text import counted

_AMOUNTS = ("calls", "input tokens (estimate)", "output tokens (at most)", "cost (at most)")
_CLOSING = "dry run: no call was made, nothing was written"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSize:
    """What one judge is asked, and whether its key is there."""

    model_id: str
    provider: str
    key: str
    estimate: Estimate


def print_judging_size(judging: Judging, judges: Sequence[JudgeSize], notes: Sequence[str], form: Format) -> None:
    """Write the size of a judging to stdout; `notes` are sentences about how its calls come about."""
    total = sum_of([judge.estimate for judge in judges])
    asked = counted(len(judging.questions), "question")
    heading = f"{counted(len(judging.items), 'item')}, {', '.join(judging.criteria)}: {asked} a judge"
    print_result(
        form,
        json=lambda: {
            **judging.model_dump(mode="json", include={"mode", "rubric", "criteria", "prompts", "seed", "replicates"}),
            "items": len(judging.items),
            "questions": len(judging.questions),
            "judges": [_row(judge) for judge in judges],
            "total": asdict(total),
            "notes": list(notes),
        },
        markdown=lambda: "\n".join(
            [f"{visible(heading)}\n", markdown_table(_sheet(judges, total)), *(f"{note}\n" for note in notes), _CLOSING]
        ),
        text=lambda: [
            Text(visible(heading)),
            Text(),
            _sheet(judges, total),
            *(Text(note) for note in notes),
            Text(_CLOSING),
        ],
    )


def _row(judge: JudgeSize) -> Mapping[str, object]:
    return {"model_id": judge.model_id, "provider": judge.provider, "key": judge.key, **asdict(judge.estimate)}


def _sheet(judges: Sequence[JudgeSize], total: Estimate) -> Sheet:
    rows = [
        (Cell(judge.model_id, code=True), Cell(judge.provider), Cell(judge.key), *_amounts(judge.estimate))
        for judge in judges
    ]
    rows.append((Cell("all"), Cell(""), Cell(""), *_amounts(total)))
    return Sheet(columns=("judge", "provider", "key", *_AMOUNTS), rows=rows, numbers=frozenset(_AMOUNTS))


def _amounts(estimate: Estimate) -> tuple[Cell, ...]:
    cost = "unknown" if estimate.cost_upper_usd is None else f"${estimate.cost_upper_usd:,.2f}"
    counts = (estimate.calls, estimate.input_tokens_estimate, estimate.output_tokens_upper)
    return (*(Cell(f"{count:,}") for count in counts), Cell(cost))
