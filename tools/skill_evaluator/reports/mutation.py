"""A mutation run for people: what these cases would not notice first, then every mutant and what noticed it."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display.safe_text import code_block, code_span, shortened, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.evaluation.mutation_results import MutantResult, MutationEstimate, MutationResult, Reaction
from skill_evaluator.text import counted, listed

_STYLES = {"killed": "green", "survived": "red", "undecided": "yellow"}
_NAMED = 5


def print_mutation(result: MutationResult, form: Format) -> None:
    """Print a result to stdout."""
    print_result(
        form,
        json=lambda: {**result.model_dump(mode="json"), "score": result.score},
        markdown=lambda: mutation_markdown(result),
        text=lambda: _text(result),
    )


def print_mutation_estimate(estimate: MutationEstimate, form: Format) -> None:
    """Print the mutants, and what asking them would take, to stdout."""
    facts = _estimate(estimate)
    sheet = Sheet(
        columns=("mutant", "what is damaged"),
        rows=[[Cell(one.id, code=True), Cell(shortened(one.text), code=True)] for one in estimate.mutants],
    )
    print_result(
        form,
        json=lambda: {"dry_run": True, **estimate.model_dump(mode="json")},
        markdown=lambda: "\n".join([*(f"- {code_span(fact)}" for fact in facts), "", markdown_table(sheet)]),
        text=lambda: [*map(visible, facts), "", sheet, "\ndry run: no call was made, nothing was written"],
    )


def mutation_markdown(result: MutationResult) -> str:
    """Return the page. Text from outside stands in code spans, so that none of it is taken for mark-up."""
    lines = [f"## {_headline(result, code_span(result.skill), code_span(result.model_id))}", ""]
    survivors = [one for one in result.mutants if one.status == "survived"]
    if survivors:
        lines += ["### Survived: these cases would not notice", ""]
    for one in survivors:
        lines += [f"- {code_span(one.id)}, {_extent(one)}; {_wanted(one)}", "", code_block("\n".join(one.diff)), ""]
    lines += [markdown_table(_sheet(result)), *(f"- {code_span(line)}" for line in _notes(result))]
    return "\n".join(lines) + "\n"


def _text(result: MutationResult) -> Iterator[Sheet | Text]:
    yield Text(visible(_headline(result, result.skill, result.model_id)), style="bold")
    survivors = [one for one in result.mutants if one.status == "survived"]
    if survivors:
        yield Text("\nsurvived: these cases would not notice", style="red")
    for one in survivors:
        yield Text(f"\n{visible(one.id)}: {_extent(one)}", style="bold")
        yield from (Text(f"  {visible(line)}") for line in one.diff)
        yield Text(f"  {_wanted(one)}")
    yield Text()
    yield _sheet(result)
    yield Text()
    yield from (Text(visible(line), style="dim") for line in _notes(result))


def _headline(result: MutationResult, skill: str, model_id: str) -> str:
    parts = [f"{result.count('killed')} of {counted(len(result.mutants), 'mutant')} killed"]
    parts += [f"{result.count(status)} {status}" for status in ("survived", "undecided") if result.count(status)]
    score = "" if result.score is None else f" · mutation score {result.score:.2f}"
    return f"{skill}: {', '.join(parts)}{score} · {model_id}, {counted(result.n_cases, 'case')}"


def _extent(mutant: MutantResult) -> str:
    if not mutant.moved:
        return "no case scored otherwise"
    return f"{counted(mutant.moved, 'case')} scored otherwise, within what chance does"


def _wanted(mutant: MutantResult) -> str:
    return f"would catch it: {mutant.advice}"


def _sheet(result: MutationResult) -> Sheet:
    """Return the table: a row a mutant, in the order of the prompt's lines."""
    rows = []
    for one in result.mutants:
        status = f"{one.status} (better without)" if one.better else one.status
        rows.append(
            [
                Cell(one.id, code=True),
                Cell(status, _STYLES[one.status]),
                Cell(str(one.replicates)),
                Cell(_noticed(one), code=bool(one.reactions or one.reason)),
            ]
        )
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
    cost = "unknown" if result.cost_usd is None else f"${result.cost_usd:.4f}"
    yield f"{counted(result.calls, 'call')}, {result.saved_calls} saved by stopping at a kill; cost {cost}"
    yield f"answers: {result.folder}"


def _estimate(estimate: MutationEstimate) -> list[str]:
    cost = "unknown" if estimate.cost_upper_usd is None else f"${estimate.cost_upper_usd:,.2f}"
    return [
        f"{estimate.skill}: {counted(len(estimate.mutants), 'mutant')}, {counted(estimate.n_cases, 'case')}, "
        f"at most {counted(estimate.replicates, 'answer')} each",
        f"{estimate.model_id} (key {estimate.key}): {estimate.least_calls:,} calls if each is killed at once, "
        f"{estimate.most_calls:,} at most; cost at most {cost}",
        *(f"left out: {count} ({why})" for why, count in estimate.left_out.items()),
    ]
