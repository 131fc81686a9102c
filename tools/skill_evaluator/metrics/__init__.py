"""The metrics, one line each: of one answer against the truth, and of all answers to a case against each other.

A package may add accuracy metrics through the entry-point group `skill_evaluator.metrics` (objects of type `Metric`).
"""

from collections.abc import Callable, Iterable, Mapping

from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.metrics.accuracy.exact_match import exact_match
from skill_evaluator.metrics.accuracy.field_level_f1 import field_level_f1
from skill_evaluator.metrics.accuracy.jaccard import jaccard
from skill_evaluator.metrics.accuracy.schema_valid import schema_valid
from skill_evaluator.metrics.accuracy.tree_similarity import tree_similarity
from skill_evaluator.metrics.agreement.array_lengths import array_length_stability
from skill_evaluator.metrics.agreement.distinct_outputs import distinct_outputs
from skill_evaluator.metrics.agreement.field_stability import field_stability
from skill_evaluator.metrics.agreement.pairwise_exact_match import pairwise_exact_match
from skill_evaluator.metrics.agreement.pairwise_field_f1 import pairwise_field_f1
from skill_evaluator.metrics.agreement.total_agreement import tara_at_n, tarr_at_n
from skill_evaluator.metrics.base import CaseAnswers, Metric
from skill_evaluator.text import nearest

_GROUP = "skill_evaluator.metrics"

METRICS: Mapping[str, Metric] = {
    "schema_valid": Metric(score=schema_valid, needs_truth=False, unparseable=0.0),
    "exact_match": Metric(score=exact_match),
    "field_level_f1": Metric(score=field_level_f1),
    "jaccard": Metric(score=jaccard),
    "tree_similarity": Metric(score=tree_similarity),
}

REPRODUCIBILITY: Mapping[str, Callable[[CaseAnswers], float | None]] = {
    "pairwise_exact_match": pairwise_exact_match,
    "pairwise_field_f1": pairwise_field_f1,
    "field_stability": field_stability,
    "array_length_stability": array_length_stability,
    "distinct_outputs": distinct_outputs,
    "tarr_at_n": tarr_at_n,
    "tara_at_n": tara_at_n,
}


def accuracy_metrics(names: Iterable[str], where: str) -> dict[str, Metric]:
    """The metrics named, in that order; raises ComponentError naming the unknown one."""
    chosen: dict[str, Metric] = {}
    for name in names:
        found = METRICS.get(name) or plugins.load(_GROUP, name)
        if found is None:
            known = METRICS.keys() | set(plugins.names(_GROUP))
            raise ComponentError(f"unknown metric '{name}' in {where} {nearest(name, known)}")
        chosen[name] = found
    return chosen
