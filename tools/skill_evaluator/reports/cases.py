"""The report of mutation testing."""

from collections.abc import Iterator

from skill_evaluator.display import amount, cost_words
from skill_evaluator.display.pages import Block, Heading, LinePart, Lines, Page, page_of
from skill_evaluator.display.safe_text import shortened
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.evaluation.mutation import MutantResult, MutationResult
from skill_evaluator.text import counted, listed

_STYLES = {"killed": "green", "survived": "red", "undecided": "yellow"}
_MAX_NAMED = 5


def mutation_page(result: MutationResult) -> Page:
    """Report mutation testing: the removed parts of a prompt, and the metrics that noticed."""
    return page_of(result.skill, _mutation_blocks(result))


def _mutation_blocks(result: MutationResult) -> Iterator[Block]:
    yield Heading(*_headline(result), level=2)
    columns = ("mutant", "removed") if result.dry_run else ("mutant", "removed", "status", "noticed by")
    yield Sheet(columns=columns, rows=[_mutant_row(one)[: len(columns)] for one in result.mutants])
    yield Lines(list(_mutation_notes(result)), style="dim")


def _headline(result: MutationResult) -> Iterator[LinePart]:
    yield Cell(result.skill, code=True)
    if result.dry_run:
        yield f": {counted(len(result.mutants), 'mutant')}"
    else:
        yield f": {result.count('killed')} of {counted(len(result.mutants), 'mutant')} killed"
        yield from (f", {count} {status}" for status in ("survived", "undecided") if (count := result.count(status)))
        yield "" if result.score is None else f" · mutation score {amount(result.score)}"
    yield " · "
    yield Cell(result.model_id, code=True)
    yield f", {counted(result.n_cases, 'case')}, {counted(result.replicates, 'replicate')}"


def _mutant_row(mutant: MutantResult) -> tuple[Cell, ...]:
    moved = [f"{one.name} {amount(one.before)} → {amount(one.after)}" for one in mutant.reactions]
    noticed = Cell(listed(moved, _MAX_NAMED) or mutant.reason or "–", code=bool(moved or mutant.reason))
    removed = Cell(shortened(mutant.text), code=True)
    return (Cell(mutant.id, code=True), removed, Cell(mutant.status, _STYLES[mutant.status]), noticed)


def _mutation_notes(result: MutationResult) -> Iterator[str]:
    if result.left_out:
        yield f"not removed: {counted(result.left_out, 'shorter part')} (--mutants)"
    if result.dry_run:
        yield f"{counted(result.calls, 'call')}; cost at most {cost_words(result.cost_usd, digits=2)}"
        yield "dry run: no call was made, nothing was written"
    else:
        yield f"{counted(result.calls, 'call')}; cost {cost_words(result.cost_usd)}"
        yield f"outputs: {result.folder}"
