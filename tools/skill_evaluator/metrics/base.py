"""What an accuracy metric is given and what it says of itself.

One `Comparison` is shared by all metrics of a replicate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skill_evaluator.metrics.comparison import Row, compare_sides
from skill_evaluator.metrics.fieldplan import FieldPlan
from skill_evaluator.metrics.leaves import Lexicon
from skill_evaluator.metrics.sides import Side
from skill_evaluator.text import canonical_json


def truth_side(truth: Any, plan: FieldPlan) -> Side:
    """A truth made ready to be compared with any number of outputs."""
    return Side(truth, Lexicon(plan))


class Comparison:
    """One parsed output beside its ground truth; the aligned rows are worked out when first asked for.

    `truth` is None for an unlabelled case too; metrics that need it are then not called.
    """

    def __init__(
        self,
        truth: Any,
        output: Any,
        plan: FieldPlan,
        schema_valid: Callable[[Any], bool],
        prepared: Side | None = None,
    ) -> None:
        """`prepared` is `truth_side(truth, plan)`, kept for all outputs of a case: its work is then done once."""
        self.truth = truth
        self.output = output
        self.plan = plan
        if prepared is None or prepared.lexicon.large:
            prepared = truth_side(truth, plan)
        self.truth_side = prepared
        self.output_side = Side(output, prepared.lexicon)
        self._schema_valid = schema_valid

    @cached_property
    def rows(self) -> list[Row]:
        """The aligned leaves."""
        return compare_sides(self.truth_side, self.output_side)

    @cached_property
    def truth_key(self) -> str:
        """One text for all JSON values equal to the truth."""
        return canonical_json(self.truth)

    @cached_property
    def output_key(self) -> str:
        """One text for all JSON values equal to the output."""
        return canonical_json(self.output)

    def conforms(self) -> bool:
        """Whether the output validates against the component's schema."""
        return self._schema_valid(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One accuracy metric: a pure function of a comparison to [0, 1], or None where it is undefined.

    `unparseable` is its value for an answer that could not be parsed (None: not measured).
    """

    score: Callable[[Comparison], float | None]
    needs_truth: bool = True
    unparseable: float | None = None
