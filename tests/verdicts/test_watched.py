"""What looks see of two records: scores in the order of the replicates, and nothing where nothing was measured."""

import numpy as np
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.watched import metric_arms, watch

from tests.support.records import a_record
from tests.support.rules import some_rules

BASELINE = a_record({"a": [1.0, 0.5], "gone": [1.0, 1.0]}, fields={"shop": {"a": (2, 2)}})
CANDIDATE = a_record(
    {"a": [0.5, "provider_error", "unparseable"], "new": [1.0, 1.0, 0.25]}, fields={"shop": {"a": (1, 1)}}
)
PAIR = Pair(baseline=BASELINE, candidate=CANDIDATE)
NAN = float("nan")


def test_scores_are_in_the_order_of_the_replicates() -> None:
    arms = metric_arms(PAIR)["field_level_f1"]
    np.testing.assert_equal(arms.after, [[0.5, NAN, 0.0], [1.0, 1.0, 0.25]])
    np.testing.assert_equal(arms.before, [[1.0, 0.5], [NAN, NAN]])


def test_critical_measures_are_watched_with_what_is_tolerated() -> None:
    rules = some_rules({"tolerance": 0.03, "components": {"s": {"fields": {"shop": {"tier": "critical"}}}}})
    watched = watch(PAIR, rules)
    assert watched is not None
    np.testing.assert_equal(watched.after[0], [[0.5, NAN, 0.0], [1.0, 1.0, 0.25]])
    np.testing.assert_equal(watched.after[1], [[1.0, NAN, NAN], [NAN, NAN, NAN]])
    assert watched.tolerances.tolist() == [0.03, 0.03]


def test_where_only_agreement_is_critical_no_order_tells_anything() -> None:
    tiers = {"field_level_f1": {"tier": "supporting"}, "pairwise_exact_match": {"tier": "critical"}}
    assert watch(PAIR, some_rules({"metrics": tiers})) is None
