"""The metrics: `METRICS` score one output, `REPRODUCIBILITY` compare all outputs of a case with each other.

A package may add accuracy metrics through the entry-point group `skill_evaluator.metrics` (objects of type `Metric`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.metrics import accuracy, agreement
from skill_evaluator.metrics.accuracy import Metric
from skill_evaluator.metrics.agreement import AgreementMetric
from skill_evaluator.metrics.tree_similarity import tree_similarity
from skill_evaluator.text import nearest

_GROUP = "skill_evaluator.metrics"

METRICS: Mapping[str, Metric] = {
    "schema_valid": Metric(
        score=accuracy.schema_valid, needs_truth=False, unparseable=0.0, symmetric=False, unordered_arrays="all"
    ),
    "exact_match": Metric(score=accuracy.exact_match, symmetric=True, unordered_arrays="none"),
    "field_level_f1": Metric(score=accuracy.field_level_f1, symmetric=True, unordered_arrays="all"),
    "jaccard": Metric(score=accuracy.jaccard, symmetric=True, unordered_arrays="outer"),
    "tree_similarity": Metric(score=tree_similarity, symmetric=True, unordered_arrays="none"),
    "checks": Metric(score=accuracy.checks, needs_truth=False, symmetric=True, unordered_arrays="all"),
}

REPRODUCIBILITY: Mapping[str, AgreementMetric] = {
    "pairwise_exact_match": AgreementMetric(score=agreement.pairwise_exact_match, unordered_arrays="none"),
    "pairwise_field_f1": AgreementMetric(score=agreement.pairwise_field_f1, unordered_arrays="all"),
    "field_stability": AgreementMetric(score=agreement.field_stability, unordered_arrays="all"),
    "array_length_stability": AgreementMetric(score=agreement.array_length_stability, unordered_arrays="all"),
    "distinct_outputs": AgreementMetric(score=agreement.distinct_outputs, is_count=True, unordered_arrays="none"),
    "tarr_at_n": AgreementMetric(score=agreement.tarr_at_n, reads_raw_text=True, unordered_arrays="none"),
    "tara_at_n": AgreementMetric(score=agreement.tara_at_n, unordered_arrays="none"),
}

# The metrics of a component whose evals/datasets.json declares none. A new metric is not added here, because it would
# enter the leaderboards and verdicts of components that did not declare it.
DEFAULT_METRICS = ("schema_valid", "exact_match", "field_level_f1", "jaccard", "tree_similarity")


def accuracy_metrics(names: Iterable[str], where: str) -> dict[str, Metric]:
    """Return the metrics by name, in the order of `names`. Raise ComponentError if a name is no accuracy metric."""
    metrics: dict[str, Metric] = {}
    for name in names:
        if name in REPRODUCIBILITY:
            raise ComponentError(f"'{name}' in {where} is a reproducibility metric; name accuracy metrics only")
        metric = METRICS.get(name)
        if metric is None and (added := plugins.load(_GROUP, name, Metric)):
            metric = replace(added, score=partial(accuracy.checked_score, name, added.score))
        if metric is None:
            choices = METRICS.keys() | REPRODUCIBILITY.keys() | set(plugins.names(_GROUP))
            raise ComponentError(f"unknown metric '{name}' in {where} {nearest(name, choices)}")
        metrics[name] = metric
    return metrics
