"""The formulas behind verdicts, computed by plain loops as their docstrings state them."""

import math
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.records.record import CaseRecord, FieldCount
from skill_evaluator.stats import smallest_drop
from skill_evaluator.verdicts.decide.comparability import common_part, cut_to, field_scores, pooled
from skill_evaluator.verdicts.decide.measuring import ArmStatistics, Effect, holm, paired_effect, replicate_effect
from skill_evaluator.verdicts.decide.results import MeasureResult, ModelVerdict, new_cases_words, per_1000
from skill_evaluator.verdicts.decide.rules import has_collapsed, is_harmed_everywhere

from tests.support.json_values import thorough
from tests.support.records import a_record
from tests.verdicts.rules import a_measured
from tests.verdicts.test_comparison import TWELVE, compared, shifted

Arm = list[list[float]]
RECORD = a_record({"a": [1.0]})
SCORES = st.integers(0, 10).map(lambda tenths: tenths / 10)


def replicated(least: int) -> st.SearchStrategy[tuple[Arm, Arm]]:
    """Two arms of the same two to five cases, each with its own number of replicates."""
    arm = st.lists(SCORES, min_size=least, max_size=4)
    return st.lists(st.tuples(arm, arm), min_size=2, max_size=5).map(
        lambda pairs: ([before for before, _ in pairs], [after for _, after in pairs])
    )


@thorough
@given(arms=replicated(2), day=st.sampled_from([0.0, 0.01]))
def test_replicate_effect_is_fishers_stratified_variance(arms: tuple[Arm, Arm], day: float) -> None:
    before, after = arms
    parts, freedom = [], []
    for old, new in zip(before, after, strict=True):
        freedom.append(len(old) + len(new) - 1)
        parts.append(variance([*old, *new]) * (1 / len(old) + 1 / len(new)) / len(before) ** 2)
    difference = fmean(map(fmean, after)) - fmean(map(fmean, before))
    outputs = min(sum(map(len, arm)) for arm in arms)
    effect = replicate_effect(ArmStatistics.of(before), ArmStatistics.of(after), day)
    assert effect is not None
    assert effect.n == outputs
    if sum(parts) < 1e-12:
        return
    seen = sum(parts) + (difference / (2 * outputs)) ** 2
    degrees = sum(parts) ** 2 / sum(part**2 / number for part, number in zip(parts, freedom, strict=True))
    assert effect.difference == pytest.approx(difference)
    assert effect.error == pytest.approx(math.sqrt(seen + day))
    assert effect.degrees == pytest.approx(degrees * ((seen + day) / seen) ** 2)


def test_replicate_effect_of_equal_outputs_has_all_degrees_of_freedom() -> None:
    arm = ArmStatistics.of([[0.5, 0.5], [0.7, 0.7]])
    effect = replicate_effect(arm, arm)
    assert effect is not None
    assert (effect.degrees, effect.error, effect.unseen) == (6.0, 0.0, 0.0)


def test_paired_error_is_that_of_the_mean_and_half_a_case() -> None:
    differences = [-0.1, -0.05, 0.02, -0.08, -0.03]
    effect = paired_effect(ArmStatistics.of([[0.5]] * 5), ArmStatistics.of([[0.5 + one] for one in differences]), 0.01)
    assert effect is not None
    seen = variance(differences) / 5 + (fmean(differences) / 10) ** 2
    assert effect.error == pytest.approx(math.sqrt(seen + 0.01))
    assert effect.degrees == pytest.approx(4 * ((seen + 0.01) / seen) ** 2)
    assert effect.lowest > effect.ci95[0], "97 % one-sided is nearer than 97.5 %"


def test_detectable_drop_excludes_the_part_of_the_present_difference() -> None:
    effect = Effect(difference=-0.2, error=0.05, degrees=1e9, p=0.1, ci95=(-0.3, -0.1), lowest=-0.3, n=4)
    assert effect.detectable(0.05) == smallest_drop(0.05**2 - (0.2 / 8) ** 2, 4, 1.6448536 + 0.8416212)
    still = Effect(difference=0.0, error=0.0, degrees=3, p=0.5, ci95=(0, 0), lowest=0, n=4, unseen=0.5)
    assert still.detectable(0.05) == 0.5


def test_holm_multiplies_each_p_by_the_number_of_larger_ones() -> None:
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def a_case(outcomes: list[str], right: int, n: int) -> CaseRecord:
    fields = {"total": FieldCount(right=right, n=n)} if n else {}
    return RECORD.per_case[0].model_copy(update={"outcomes": outcomes, "fields": fields})


@pytest.mark.parametrize(
    ("outcomes", "right", "n", "scores"),
    [
        (["scored", "scored"], 1, 2, (1.0, 0.0)),
        (["scored", "unparseable", "provider_error"], 1, 1, (1.0, 0.0)),
        (["scored", "scored"], 3, 4, (1.0, 0.5)),
        (["scored", "refused"], 0, 0, (0.0,)),
        (["scored"], 0, 0, ()),
    ],
)
def test_field_scores_count_unreadable_outputs_as_wrong(
    outcomes: list[str], right: int, n: int, scores: tuple[float, ...]
) -> None:
    assert field_scores(a_case(outcomes, right, n), "total") == scores


def test_record_cut_to_cases_has_their_completion() -> None:
    record = a_record({"a": [1.0, "provider_error"], "b": [1.0, 1.0]})
    assert (cut_to(record, {"a"}).coverage, cut_to(record, {"b"}).coverage, cut_to(record, set()).coverage) == (
        0.5,
        1.0,
        0.0,
    )


def test_pooled_case_has_the_mean_agreement_of_its_runs() -> None:
    first, second, third = (a_record({"a": [1.0]}, agreement=shares) for shares in ({"a": 0.5}, {"a": 0.2}, {}))
    (case,) = pooled(first, [second, third]).per_case
    assert case.reproducibility == {"pairwise_exact_match": 0.35}
    assert pooled(first, [second]).coverage == 1.0


@pytest.mark.parametrize(("before", "after", "is_named"), [(None, 0.7, True), (0.0, 0.7, True), (0.1, 0.7, False)])
def test_prompt_cache_of_one_run_only_is_remarked(before: float | None, after: float, *, is_named: bool) -> None:
    tokens = [{"input": 10, "output": 10, "hit_rate": rate} for rate in (before, after)]
    old, new = (a_record({"a": [1.0]}, run_id=f"r{at}", beside="r0", tokens=known) for at, known in enumerate(tokens))
    assert any("prompt cache" in remark for remark in common_part(old, new).remarks) is is_named


@pytest.mark.parametrize(("cases", "words"), [(0, ""), (15, "of 100 new cases, up to 18 may still be worse")])
def test_share_of_new_cases_that_may_be_worse_is_a_percentage(cases: int, words: str) -> None:
    assert new_cases_words(cases) == words


def test_amount_per_1000_is_none_without_calls_or_total() -> None:
    assert (per_1000(0.5, 200), per_1000(None, 200), per_1000(0.5, 0)) == (2.5, None, None)


@pytest.mark.parametrize(
    ("before", "after", "harm", "is_lost", "is_harmed"),
    [
        ([[1] * 9 + [0]] * 3, [[0] * 10] * 3, 0.9, True, False),  # 0.9 before is mostly right; the drop equals the harm
        ([[1] * 8 + [0] * 2] * 3, [[0] * 10] * 3, 0.79, False, True),
        ([[1] * 4] * 3, [[1] * 4, [0] * 4, [0] * 4], 0.25, False, False),
    ],
)
def test_limits_of_a_lost_and_of_a_harmed_measure(
    before: Arm, after: Arm, harm: float, *, is_lost: bool, is_harmed: bool
) -> None:
    measured = a_measured(before, after)
    assert (has_collapsed(measured, 1), is_harmed_everywhere(measured, harm)) == (is_lost, is_harmed)


def of_fields(**counts: tuple[tuple[int, int], tuple[int, int]]) -> ModelVerdict:
    """Return the verdict on twelve equal cases with these (right, n) of each field before and after."""
    old, new = ({name: dict.fromkeys(TWELVE, both[at]) for name, both in counts.items()} for at in (0, 1))
    return compared(a_record(TWELVE, fields=old), a_record(TWELVE, fields=new))


def test_field_that_fell_most_is_the_largest_drop_beyond_the_tolerance() -> None:
    model = of_fields(a=((10, 10), (8, 10)), b=((10, 10), (7, 10)), c=((0, 10), (10, 10)))
    assert isinstance(model.fell_most, MeasureResult)
    assert (model.fell_most.metric, model.fell_most.difference) == ("b", -0.3)
    assert of_fields(a=((20, 20), (19, 20))).fell_most is None


def test_number_of_cases_is_that_of_critical_metrics() -> None:
    few = {name: scores for name, scores in TWELVE.items() if name < "case-0004"}
    model = compared(a_record(TWELVE, other={"exact_match": few}), a_record(TWELVE, other={"exact_match": few}))
    assert (model.n_cases, [one.test.n_cases for one in model.metrics]) == (12, [12, 4])


def test_moved_measures_of_a_regression_are_those_that_decide() -> None:
    model = compared(a_record(TWELVE), a_record(shifted(TWELVE, -0.3)))
    assert (model.moved, model.has_loss_to_see) == (["field_level_f1 0.651 → 0.351"], True)
    assert compared(a_record(TWELVE), a_record(TWELVE)).moved == []
