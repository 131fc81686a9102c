"""The records of an undamaged prompt and of a mutant → did the cases notice? It decides with the comparison's noise.

The undamaged prompt is asked as it is, and with three edits that mean nothing, each with a seed of its own (the
controls). They are taken for runs of one version, so that what a meaningless edit does to each case is the noise that a
mutant must exceed. A case counts as one draw until the controls say otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skill_evaluator.library.mutants import Mutant, Operator
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Pair, case_means
from skill_evaluator.verdicts.effects import adjusted
from skill_evaluator.verdicts.measuring import Compared, Measured, measure_all
from skill_evaluator.verdicts.moved import chances_of_cases
from skill_evaluator.verdicts.mutation_results import LEAST_REPLICATES, MutantResult, Reaction
from skill_evaluator.verdicts.reasons import changed_fields
from skill_evaluator.verdicts.rules import ROUNDING, VerdictRules

_ADVICE: dict[Operator, str] = {
    "rule-dropped": "a document in which this rule decides: read without it, another answer is right",
    "negation-flipped": "a document that offers what this line forbids, so that following its opposite is wrong",
    "format-loosened": "a document that prints the value in another form than the one asked for",
    "example-removed": "a document as hard as the example, whose answer one gets wrong without having seen it",
    "descriptions-removed": "a document in which the name of a field alone misleads, and its description does not",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undamaged:
    """The undamaged prompt's record, and those of the same prompt with edits that mean nothing."""

    record: Record
    controls: tuple[Record, ...]

    def moved_by_controls(self) -> list[str]:
        """Return the cases whose primary metric a meaningless edit moved at all."""
        metric, moved = self.record.primary_metric, set()
        for control in self.controls:
            pair = Pair(baseline=self.record, candidate=_beside(control, self.record))
            (compared,) = measure_all([pair], metric, lambda measure: False)
            moved |= set(_moved(compared.primary(metric)))
        return [case.case_id for case in self.record.per_case if case.case_id in moved]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """A figure that a mutant may have moved, and `p`: how often chance alone would move it as far."""

    kind: Literal["metric", "field", "case"]
    name: str
    before: float
    after: float
    p: float
    tolerance: float
    fields: Mapping[str, str] = field(default_factory=dict)

    def reaction(self, q: float) -> Reaction:
        """Return what reports are told of it."""
        return Reaction(
            kind=self.kind,
            name=self.name,
            before=round(self.before, 6),
            after=round(self.after, 6),
            q=round(q, 6),
            fields=dict(self.fields),
        )


def looks_of_mutants(replicates: int) -> tuple[int, ...]:
    """Return after how many replicates a mutant is looked at: 2, then twice as many each time, and at the end.

    >>> looks_of_mutants(2), looks_of_mutants(4), looks_of_mutants(10)
    ((2,), (2, 4), (2, 4, 8, 10))
    """
    looks, at = [], LEAST_REPLICATES
    while at < replicates:
        looks.append(at)
        at *= 2
    return (*looks, replicates)


def judged_mutant(
    mutant: Mutant, undamaged: Undamaged, record: Record, rules: VerdictRules, *, looks: int, last: bool
) -> MutantResult | None:
    """Return what became of a mutant by the answers so far, or None where more are needed to say.

    Metrics, fields and cases are one family (Benjamini-Hochberg); a mutant is killed when one of them moved beyond the
    tolerance with q at or below α ÷ looks. So of mutants that change nothing no more than α are called killed, however
    often they are looked at (Bonferroni over the looks, Simes 1986, doi:10.1093/biomet/73.3.751, over the family).
    """
    pair = Pair(
        baseline=undamaged.record,
        candidate=_beside(record, undamaged.record),
        baseline_again=undamaged.controls,
    )
    (compared,) = measure_all([pair], rules.primary_metric)
    reactions = _reactions(compared, rules, rules.alpha / looks)
    if not reactions and not last:
        return None
    moved = _moved(compared.primary(rules.primary_metric))
    return MutantResult(
        **unasked(mutant).model_dump(exclude={"status", "advice", "reactions", "moved", "replicates", "better"}),
        status="killed" if reactions else "survived",
        reactions=reactions,
        better=bool(reactions) and all(one.after > one.before for one in reactions),
        moved=len(moved),
        replicates=record.replicates,
        advice=None if reactions else _ADVICE[mutant.operator],
    )


def unasked(mutant: Mutant, reason: str | None = None, replicates: int = 0) -> MutantResult:
    """Return a mutant of which nothing is known, and why."""
    return MutantResult(
        id=mutant.id,
        operator=mutant.operator,
        line=mutant.line,
        text=mutant.text,
        diff=list(mutant.diff),
        status="undecided",
        replicates=replicates,
        reason=reason,
    )


def silent_cases(case_ids: Sequence[str], mutants: Sequence[MutantResult]) -> list[str]:
    """Return the cases that reacted to no mutant; none while no mutant is decided."""
    reacted = {case_id for mutant in mutants for case_id in mutant.cases}
    decided = any(mutant.status != "undecided" for mutant in mutants)
    return [case_id for case_id in case_ids if case_id not in reacted] if decided else []


def _beside(record: Record, other: Record) -> Record:
    """Return a record as one whose calls alternated with another's, as those of mutants do."""
    return record.model_copy(update={"beside": other.run_id})


def _reactions(compared: Compared, rules: VerdictRules, level: float) -> list[Reaction]:
    """Return what moved beyond chance and beyond the tolerance: cases first, then fields, then metrics."""
    figures = [*_cases(compared, rules), *_figures(compared, rules)]
    q_values = adjusted([figure.p for figure in figures])
    return [
        figure.reaction(q)
        for figure, q in zip(figures, q_values, strict=True)
        if q <= level and abs(figure.after - figure.before) > figure.tolerance + ROUNDING
    ]


def _figures(compared: Compared, rules: VerdictRules) -> list[_Moved]:
    """Return the fields, then the metrics, on these very cases."""
    figures = []
    for own in compared.measured:
        effect, measure = own.effects["fixtures"], own.measure
        if measure.kind != "reproducibility" and effect is not None:
            before, after = (sum(means) / len(means) for means in map(case_means, (measure.before, measure.after)))
            figures.append(
                _Moved(
                    kind="field" if measure.kind == "field" else "metric",
                    name=measure.name,
                    before=before,
                    after=after,
                    p=effect.p,
                    tolerance=rules.tolerance(measure),
                )
            )
    return sorted(figures, key=lambda figure: figure.kind)


def _cases(compared: Compared, rules: VerdictRules) -> Iterator[_Moved]:
    """Yield the cases by the primary metric."""
    own = compared.primary(rules.primary_metric)
    if own is None or compared.common is None:
        return
    measure, pairs = own.measure, {before.case_id: (before, after) for before, after in compared.common.cases}
    means = zip(measure.case_ids, case_means(measure.before), case_means(measure.after), strict=True)
    for (case_id, before, after), p in zip(means, chances_of_cases(measure, own.noise), strict=True):
        yield _Moved(
            kind="case",
            name=case_id,
            before=before,
            after=after,
            p=p,
            tolerance=rules.tolerance(measure),
            fields=changed_fields(*pairs[case_id]),
        )


def _moved(own: Measured | None) -> list[str]:
    """Return the cases whose mean moved at all."""
    if own is None:
        return []
    moves = zip(own.measure.case_ids, own.measure.differences, strict=True)
    return [case_id for case_id, difference in moves if abs(difference) > ROUNDING]
