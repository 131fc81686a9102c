"""What the cases of a component are worth, for people: a mutation run, first what they would not notice."""

from collections.abc import Iterator

from skill_evaluator.display import cost_words
from skill_evaluator.display.pages import Block, Code, Heading, Line, Lines, Words, page_of, print_page
from skill_evaluator.display.safe_text import shortened
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.evaluation.mutation_results import MutantResult, MutationEstimate, MutationResult, Reaction
from skill_evaluator.text import counted, listed

_STYLES = {"killed": "green", "survived": "red", "undecided": "yellow"}
_NAMED = 5


def print_mutation(result: MutationResult, form: Format) -> None:
    """Print a result to stdout."""
    print_page(
        form,
        json=lambda: {**result.model_dump(mode="json"), "score": result.score},
        page=lambda: page_of(result.skill, _blocks(result)),
    )


def print_mutation_estimate(estimate: MutationEstimate, form: Format) -> None:
    """Print the mutants, and what asking them would take, to stdout."""
    sheet = Sheet(
        columns=("mutant", "what is damaged"),
        rows=[[Cell(one.id, code=True), Cell(shortened(one.text), code=True)] for one in estimate.mutants],
    )
    blocks: list[Block] = [Lines(_estimate(estimate)), sheet, Line("dry run: no call was made, nothing was written")]
    print_page(
        form,
        json=lambda: {"dry_run": True, **estimate.model_dump(mode="json")},
        page=lambda: page_of(estimate.skill, blocks),
    )


def _blocks(result: MutationResult) -> Iterator[Block]:
    yield Heading(*_headline(result), level=2)
    survivors = [one for one in result.mutants if one.status == "survived"]
    if survivors:
        yield Heading("Survived: these cases would not notice")
    for one in survivors:
        moved = f"{counted(one.moved, 'case')} scored otherwise, within what chance does"
        extent = moved if one.moved else "no case scored otherwise"
        yield Lines([Line(Cell(one.id, "bold", code=True), f": {extent}; would catch it: {one.advice}")], mark="-")
        yield Code("\n".join(one.diff))
    yield _sheet(result)
    yield Lines(list(_notes(result)), style="dim")


def _headline(result: MutationResult) -> Iterator[Words]:
    parts = [f"{result.count('killed')} of {counted(len(result.mutants), 'mutant')} killed"]
    parts += [f"{result.count(status)} {status}" for status in ("survived", "undecided") if result.count(status)]
    score = "" if result.score is None else f" · mutation score {result.score:.2f}"
    yield Cell(result.skill, code=True)
    yield f": {', '.join(parts)}{score} · "
    yield Cell(result.model_id, code=True)
    yield f", {counted(result.n_cases, 'case')}"


def _sheet(result: MutationResult) -> Sheet:
    """Return the table: a row a mutant, in the order of the prompt's lines."""
    rows = []
    for one in result.mutants:
        status = f"{one.status} (better without)" if one.better else one.status
        noticed = Cell(_noticed(one), code=bool(one.reactions or one.reason))
        rows.append(cells_of([one.id], Cell(status, _STYLES[one.status]), one.replicates, noticed))
    return Sheet(columns=("mutant", "status", "answers", "noticed by"), rows=rows, numbers=frozenset({"answers"}))


def _noticed(mutant: MutantResult) -> str:
    """Return which cases reacted and in which fields, else which fields or metrics, else why nothing is known."""
    cases = [_case(one) for one in mutant.reactions if one.kind == "case"]
    others = [f"{one.kind} {one.name} {_move(one)}" for one in mutant.reactions if one.kind != "case"]
    return listed(cases or others, _NAMED) or mutant.reason or "–"


def _case(reaction: Reaction) -> str:
    fields = listed([f"{path} {counts}" for path, counts in reaction.fields.items()], 2)
    return f"{reaction.name} {_move(reaction)}" + (f" ({fields})" if fields else "")


def _move(reaction: Reaction) -> str:
    return f"{reaction.before:.2f} → {reaction.after:.2f}"


def _notes(result: MutationResult) -> Iterator[str]:
    """Yield what a reader must know beyond the mutants themselves."""
    if result.silent:
        yield f"noticed no mutant: {listed(result.silent, _NAMED)}"
    moved = listed(result.control, _NAMED)
    yield (
        f"noise: three edits that mean nothing moved {counted(len(result.control), 'case')} of {result.n_cases}"
        + (f" ({moved}); a mutant must do more than they" if moved else "")
    )
    yield from (f"left out: {count} ({why})" for why, count in result.left_out.items())
    saved = f"{result.saved_calls} saved by stopping at a kill"
    yield f"{counted(result.calls, 'call')}, {saved}; cost {cost_words(result.cost_usd)}"
    yield f"answers: {result.folder}"


def _estimate(estimate: MutationEstimate) -> list[str]:
    return [
        f"{estimate.skill}: {counted(len(estimate.mutants), 'mutant')}, {counted(estimate.n_cases, 'case')}, "
        f"at most {counted(estimate.replicates, 'answer')} each",
        f"{estimate.model_id} (key {estimate.key}): {estimate.least_calls:,} calls if each is killed at once, "
        f"{estimate.most_calls:,} at most; cost at most {cost_words(estimate.cost_upper_usd, digits=2)}",
        *(f"left out: {count} ({why})" for why, count in estimate.left_out.items()),
    ]
