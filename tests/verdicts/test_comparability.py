"""What is measured of each case: strict scores, agreement, fields; what says nothing is left out, never 0."""

from typing import Any

import pytest
from skill_evaluator.records.record import CaseRecord, FieldCount
from skill_evaluator.verdicts.decide.comparability import common_part, strict_scores
from skill_evaluator.verdicts.decide.measuring import field_measures, metric_measures

from tests.support.records import Score, a_record


def case(*scores: Score, right: int = 0, n: int = 0) -> CaseRecord:
    record = a_record({"a": list(scores)})
    fields = {"total": FieldCount(right=right, n=n)} if n else {}
    return record.per_case[0].model_copy(update={"fields": fields})


@pytest.mark.parametrize(
    ("scores", "strict"),
    [
        ((0.5, 0.7), (0.5, 0.7)),
        ((0.5, "unparseable"), (0.5, 0.0)),
        ((0.5, "refused", "truncated"), (0.5, 0.0, 0.0)),
        ((0.5, "provider_error", "timeout", "not_run"), (0.5,)),
        (("unparseable",), (0.0,)),
        (("provider_error",), ()),
        ((), ()),
    ],
)
def test_strict_scores(scores: tuple[Score, ...], strict: tuple[float, ...]) -> None:
    assert strict_scores(case(*scores), "field_level_f1") == strict


def test_undefined_metric_has_no_score() -> None:
    one = case(0.5, 0.5, "unparseable").model_copy(update={"replicates": {"jaccard": [None, None, None]}})
    assert strict_scores(one, "jaccard") == ()
    assert strict_scores(one, "unknown") == ()


def of_field(before: CaseRecord, after: CaseRecord) -> tuple[tuple[float, ...], tuple[float, ...]]:
    (found,) = field_measures([(before, after)])
    before, after = found.scores
    return before[0], after[0]


def test_field_has_one_score_per_output() -> None:
    assert of_field(case(1.0, 1.0, 1.0, right=2, n=3), case(1.0, 1.0, 1.0, right=0, n=3)) == ((1, 1, 0), (0, 0, 0))


def test_array_items_of_an_output_count_together() -> None:
    """Twelve items in three answers, nine of them right: three scores with a mean of 9 ÷ 12."""
    before, _ = of_field(case(1.0, 1.0, 1.0, right=9, n=12), case(1.0, right=1, n=1))
    assert len(before) == 3
    assert sum(before) / 3 == pytest.approx(9 / 12)


def test_measure_has_the_cases_of_both_versions() -> None:
    cases = [(case(1.0), case("provider_error")), (case(1.0), case(0.5))]
    (found,) = metric_measures(cases, ["field_level_f1"])
    assert found.scores == (((1.0,),), ((0.5,),))
    assert list(metric_measures(cases[:1], ["field_level_f1"])) == []


def test_agreement_has_one_score_per_case() -> None:
    left, right = (a_record({"a": [1.0] * 3}, agreement={"a": share}).per_case[0] for share in (0.5, 0.25))
    found = list(metric_measures([(left, right)], []))
    assert [(one.name, one.scores) for one in found] == [("pairwise_exact_match", (((0.5,),), ((0.25,),)))]


OLD = {"run_id": "20260101T000000Z-000000-m", "skill_version": "0.9.0", "timestamp": "2026-01-01T00:00:00Z"}
REMEDY = ": run `evaluate` to call both prompts in one run"


@pytest.mark.parametrize(
    ("changed", "remarks"),
    [
        ({}, []),
        ({"timestamp": "2026-01-31T23:00:00Z"}, []),
        ({"timestamp": "2026-02-01T00:00:00Z"}, [f"the baseline is 31 days older{REMEDY}"]),
        ({"timestamp": "2026-02-01T00:00:00"}, [f"the baseline is 31 days older{REMEDY}"]),
        ({"timestamp": "last year"}, []),
        ({"timestamp": "2020-01-01T00:00:00+02:00"}, []),
        ({"served_model": "m-1-0613"}, [f"the vendor served m-1, then m-1-0613{REMEDY}"]),
        ({"served_model": None}, [f"the vendor served m-1, then an unnamed model{REMEDY}"]),
        (
            {"served_model": "m-1-0613", "timestamp": "2026-04-11T00:00:00Z"},
            [f"the baseline is 100 days older and the vendor served m-1, then m-1-0613{REMEDY}"],
        ),
        ({"served_model": "m-1-0613", "beside": OLD["run_id"]}, ["the vendor served m-1, then m-1-0613"]),
        ({"replicates": 2}, ["the baseline has 1 replicate per case, the candidate 2"]),
    ],
)
def test_possible_model_change_is_a_remark_with_a_remedy(changed: dict[str, Any], remarks: list[str]) -> None:
    candidate = a_record({"a": [1.0]}, **{"run_id": "20260102T000000Z-000000-m", **changed})
    assert list(common_part(a_record({"a": [1.0]}, **OLD), candidate).remarks) == remarks


SETTINGS = a_record({"a": [1.0]}).settings.model_dump()
OTHER_SETTINGS = {"prompt": "p", "schema": "s", "settings": "other", "datasets": "d"}
ELSEWHERE = "only the endpoint changed, which is not a setting of the model: "
DIGESTS = {"prompt": "p", "schema": "s", "settings": "m", "datasets": "d"}
SERVER = {"concurrency": 3, "version": "0.10.0", "fingerprints": {"fp_a": 6}}
LATER_SERVER = {"concurrency": 2, "version": "0.11.0", "fingerprints": {"fp_b": 6}}


def settings_of(place: str, **changed: Any) -> dict[str, Any]:
    """Return keys of a record whose settings have an address, or other values."""
    return {"settings": {**SETTINGS, "base_url": place, **changed}, "digests": {**DIGESTS, "settings": place[-4:]}}


def fields_as(**comparators: str) -> dict[str, Any]:
    """Return the key `per_field` of a record with a comparator for each path."""
    counts = {"n": 1, "right": 1, "wrong": 0, "missing": 0, "extra": 0, "accuracy": 1.0, "stability": 1.0}
    return {"per_field": {path: {"compare": name, **counts} for path, name in comparators.items()}}


def tokens_of(hit_rate: float) -> dict[str, Any]:
    return {"tokens": {"input": 10, "output": 10, "hit_rate": hit_rate}}


@pytest.mark.parametrize(
    ("before", "after", "remark"),
    [
        (
            settings_of("http://first"),
            settings_of("http://last"),
            f'{ELSEWHERE}base_url "http://first" → "http://last"',
        ),
        (
            {"provider": "replay", **settings_of("a", params={"file": "a"}), "served_model": None},
            {"provider": "replay", **settings_of("b", params={"file": "b"}), "served_model": None},
            f'{ELSEWHERE}base_url "a" → "b", params.file "a" → "b"',
        ),
        ({}, {"evaluator_version": "0.2.0"}, "the evaluator was 0.1.0, then 0.2.0 (same scorer)"),
        ({"stopped": "max_calls"}, {}, "the baseline's run is incomplete: max_calls"),
        ({}, {"stopped": "max_cost"}, "the candidate's run is incomplete: max_cost"),
        ({}, {"transport": "batch"}, "the baseline was called directly, the candidate in batches"),
        ({}, {"model_id": "n"}, "the models differ: m and n"),
        (
            tokens_of(0.0),
            {"beside": "r", **tokens_of(0.69)},
            "a prompt cache was read in one run only: 0% of the input, then 69%",
        ),
        (
            {"server": SERVER},
            {"server": LATER_SERVER, "beside": "r"},
            "the server's version: 0.10.0, then 0.11.0 and the server's fingerprints: fp_a, then fp_b "
            "and the server's concurrency: 3, then 2",
        ),
        ({"scenario": "without the prompt"}, {}, "the baseline was run without the prompt"),
    ],
)
def test_difference_that_prevents_no_comparison_is_remarked(
    before: dict[str, Any], after: dict[str, Any], remark: str
) -> None:
    baseline, candidate = a_record({"a": [1.0]}, run_id="r", **before), a_record({"a": [1.0]}, run_id="s", **after)
    found = common_part(baseline, candidate)
    assert (found.barriers, found.remarks) == ((), (remark,))


ASK_ANEW = "`evaluate` runs both versions with the model served now; `policy.served: any` ignores the difference"


@pytest.mark.parametrize(
    ("before", "after", "barrier"),
    [
        ({}, {"skill": "t"}, "they are of different components: 's' and 't'"),
        ({}, {"digests": {**DIGESTS, "schema": "t"}}, "the schema changed"),
        ({}, {"digests": {**DIGESTS, "contract": "c"}}, "a file or part that the schema refers to changed"),
        ({}, {"digests": {**DIGESTS, "scenario": "c"}}, "their scenarios differ"),
        ({}, {"digests": {**DIGESTS, "datasets": "e"}}, "fields are compared by other rules"),
        (
            fields_as(total="number", date="date", place="text"),
            fields_as(total="exact", date="text", place="text") | {"digests": {**DIGESTS, "datasets": "e"}},
            "fields are compared by other rules ('total' as number, then exact, 'date' as date, then text)",
        ),
        ({}, {"digests": OTHER_SETTINGS}, "the model's settings changed"),
        (settings_of("a"), settings_of("a", max_output_tokens=9) | {"digests": OTHER_SETTINGS}, "tokens 100 → 9"),
        (settings_of("a"), settings_of("b", max_output_tokens=9), "the model's settings changed: base_url"),
        ({"served_model": "m"}, {"served_model": "n"}, f"another model answered: m, then n; {ASK_ANEW}"),
        (
            {"served_model": "m"},
            {"served_model": {"m": 20, "n": 4}},
            f"another model answered: m, then m (20), n (4); {ASK_ANEW}",
        ),
    ],
)
def test_difference_of_the_measurement_prevents_a_comparison(
    before: dict[str, Any], after: dict[str, Any], barrier: str
) -> None:
    baseline, candidate = a_record({"a": [1.0]}, run_id="r", **before), a_record({"a": [1.0]}, run_id="s", **after)
    (found,) = common_part(baseline, candidate).barriers
    assert barrier in found


def test_run_without_the_prompt_is_compared_across_scenarios() -> None:
    alone = a_record({"a": [1.0]}, run_id="r", scenario="without the prompt", digests={**DIGESTS, "scenario": "c"})
    assert common_part(alone, a_record({"a": [1.0]}, run_id="s")).barriers == ()


def test_run_is_comparable_with_itself() -> None:
    """Also if two models answered in it."""
    run = a_record({"a": [0.0]}, served_model={"first": 1, "second": 1})
    assert common_part(run, run).barriers == ()
