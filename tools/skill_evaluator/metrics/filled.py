"""Which fields do the answers fill, and which does the truth?"""

from collections.abc import Iterable
from typing import NamedTuple

from skill_evaluator.metrics.per_field import FieldScores


class Filled(NamedTuple):
    """In how many outputs a field has a value, and for how many of these outputs the truth has one."""

    output: int = 0
    truth: int = 0


def filled_fields(outputs: Iterable[tuple[FieldScores, int]]) -> dict[str, Filled]:
    """Sum (fields of an output, how often it was given) by leaf path; divided by the outputs it is a share, 0 to 1.

    A field has a value where a leaf at its path is not null; of array items, where one item has. A path that nobody
    fills is left out. Best is the truth's own share: less is passed over, more invented (where it is the same, per
    field counts tell whether it was the right documents).

    >>> from skill_evaluator.metrics.comparison import compare
    >>> from skill_evaluator.metrics.fieldplan import FieldPlan
    >>> from skill_evaluator.metrics.per_field import per_field
    >>> filled_fields([(per_field(compare({"a": 1, "b": None}, {"b": 2}, FieldPlan())), 3)])
    {'a': Filled(output=0, truth=3), 'b': Filled(output=3, truth=0)}
    """
    found: dict[str, Filled] = {}
    for scores, times in outputs:
        for path, counts in scores.counts.items():
            known = found.get(path, Filled())
            found[path] = Filled(
                known.output + times * (counts.n > counts.missing), known.truth + times * (counts.n > counts.extra)
            )
    return found
