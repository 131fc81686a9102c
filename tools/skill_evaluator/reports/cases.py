"""What the cases of a component are worth, for people: a mutation run, and what each case has told so far.

First comes what they would not notice; of cases that told something, those that disagree and those that told nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skill_evaluator.display import number, probability
from skill_evaluator.display.pages import Block, Code, Heading, Line, Lines, Words, page_of, print_page
from skill_evaluator.display.safe_text import shortened
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.evaluation.mutation_results import MutantResult, MutationEstimate, MutationResult, Reaction
from skill_evaluator.text import counted, listed

if TYPE_CHECKING:  # scipy comes with it
    from skill_evaluator.evaluation.discrimination import AuditedCase, CaseAudit

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


_ADVICE = {
    "disagrees": "those who are better elsewhere are worse here: look at its ground truth",
    "all wrong": "nobody solves it: too hard, or its ground truth is wrong",
    "all alike": "scored alike by all, neither right nor wrong: one field of it may be unsolvable",
    "all right": "everybody solves it: it guards what works, and tells nobody apart",
    "too few": "fewer than two versions or models answered it as it is now",
}
_OF_CASES = {"disagrees": "red", "all wrong": "red", "all alike": "yellow", "all right": "dim", "too few": "dim"}
_ORDER = ("disagrees", "all wrong", "all alike", "all right", "too few", "tells apart")


def print_case_audit(audit: "CaseAudit", form: Format) -> None:
    """Print an audit of cases to stdout."""
    blocks: list[Block] = [
        _audit_title(audit),
        Lines(_wanting(audit)),
        _audited(audit),
        Lines([f"{name} is left out: {why}" for name, why in audit.left_out.items()]),
    ]
    print_page(
        form,
        json=lambda: audit.model_dump(mode="json"),
        page=lambda: page_of(audit.skill, blocks),
    )


def _audit_title(audit: "CaseAudit") -> Heading:
    told = sum(case.standing in ("tells apart", "disagrees") for case in audit.cases)
    takers = f"{len(audit.takers)} versions and models"
    words = f": {told} of {counted(len(audit.cases), 'case')} tell {takers} apart, by {audit.metric}"
    return Heading(Cell(audit.skill, code=True), words, level=2)


def _wanting(audit: "CaseAudit") -> list[str]:
    """Return a line for each standing that wants something, with its cases."""
    lines = []
    for standing, advice in _ADVICE.items():
        names = [case.case_id for case in audit.cases if case.standing == standing]
        if names:
            lines.append(f"{standing} ({advice}): {listed(names)}")
    return lines


def _audited(audit: "CaseAudit") -> Sheet:
    rows = [
        [
            Cell(case.case_id, code=True),
            Cell(case.standing, _OF_CASES.get(case.standing, "")),
            Cell(number(case.discrimination)),
            Cell(probability(case.q)),
            Cell(str(case.n)),
            Cell(_extreme(case.lowest, case.lowest_by), code=True),
            Cell(_extreme(case.highest, case.highest_by), code=True),
        ]
        for case in sorted(audit.cases, key=_key)
    ]
    columns = ("case", "standing", "with the rest", "q", "n", "lowest", "highest")
    extremes = ("lowest", "highest")
    return Sheet(
        columns=columns,
        rows=rows,
        numbers=frozenset({"with the rest", "q", "n"}),
        whole=frozenset(extremes),
        below=extremes,
    )


def _key(case: "AuditedCase") -> tuple[int, float]:
    return _ORDER.index(case.standing), case.discrimination if case.discrimination is not None else 2.0


def _extreme(mean: float | None, taker: str | None) -> str:
    return "–" if mean is None else f"{mean:.3f} ({taker})"
