"""The specification of verdicts: (baseline, candidate, policy) → the verdict and a reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ModelVerdict

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules

Cases = Mapping[str, list[Score]]


def alike(count: int, *scores: Score) -> dict[str, list[Score]]:
    """So many cases with the same scores."""
    return {f"case-{index:04d}": list(scores) for index in range(count)}


def shifted(cases: Cases, by: float) -> dict[str, list[Score]]:
    """The same cases, moved by about so much: by a little more in some than in others."""
    return {
        case_id: [score + by + 0.01 * (at % 3 - 1) for score in scores if not isinstance(score, str)]
        for at, (case_id, scores) in enumerate(cases.items())
    }


def varied(count: int, replicates: int) -> dict[str, list[Score]]:
    """Cases of different difficulty, each with replicates that differ a little."""
    return {
        f"case-{index:04d}": [0.5 + 0.3 * (index % 7) / 7 + 0.02 * ((index + 3 * one) % 5) for one in range(replicates)]
        for index in range(count)
    }


@dataclass(frozen=True)
class Row:
    """One line of the specification."""

    says: str
    before: Record
    after: Record
    verdict: str
    policy: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


TWELVE = varied(12, 5)
FORTY = varied(40, 5)
SOME_FELL = {
    case_id: [score - 0.3 for score in scores if not isinstance(score, str)] if at % 4 == 0 else scores
    for at, (case_id, scores) in enumerate(TWELVE.items())
}
THREE_FIELDS = {name: dict.fromkeys(FORTY, (5, 5)) for name in ("x", "y", "z")}
ONE_CASE_LOST = {name: {**counts, "case-0000": (0, 5)} for name, counts in THREE_FIELDS.items()}
DETERMINISTIC = a_record({}).settings.model_copy(update={"profile": "deterministic"}).model_dump()
PERFECT = alike(20, *[1.0] * 10)
AGREE_LESS = {name: 0.3 + 0.01 * (at % 3) for at, name in enumerate(PERFECT)}
PAIRS = {f"case-{index:04d}": [1.0 if index % 4 else 0.0] for index in range(2000)}
FLIPPED = {case_id: ([1.0 - scores[0]] if case_id < "case-0012" else scores) for case_id, scores in PAIRS.items()}

SPECIFICATION = [
    Row(
        "a large drop in every case",
        a_record(TWELVE),
        a_record(shifted(TWELVE, -0.3)),
        "regressed",
        reasons=("field_level_f1 fell from 0.651 to 0.351",),
    ),
    Row(
        "a large gain in every case",
        a_record(TWELVE),
        a_record(shifted(TWELVE, 0.2)),
        "improved",
        reasons=("field_level_f1 rose from 0.651 to 0.851",),
    ),
    Row(
        "no case in common",
        a_record(TWELVE),
        a_record({f"other-{name}": scores for name, scores in TWELVE.items()}),
        "incomparable",
        reasons=(
            "not comparable: no case is the same in both",
            "coverage 0.00 is below the required 0.90; the missing outputs would decide it",
            (
                "24 cases left out: case-0000 (removed), case-0001 (removed), case-0002 (removed), "
                "case-0003 (removed), case-0004 (removed) and 19 more"
            ),
        ),
    ),
    Row(
        "most cases of the baseline lost",
        a_record(TWELVE),
        a_record(dict(list(TWELVE.items())[:4])),
        "inconclusive",
        reasons=(
            "coverage 0.33 is below the required 0.90; the missing outputs would decide it",
            (
                "8 cases left out: case-0004 (removed), case-0005 (removed), case-0006 (removed), case-0007 (removed), "
                "case-0008 (removed) and 3 more"
            ),
        ),
    ),
    Row(
        "ten identical pairs of one replicate",
        a_record(alike(10, 1.0)),
        a_record(alike(10, 1.0)),
        "inconclusive",
        reasons=(
            (
                "field_level_f1: a drop beyond 0.05 is not ruled out, as 26% of new outputs could fail unseen; 2 "
                "replicates of each case, or 59 cases, would decide it"
            ),
        ),
    ),
    Row(
        "ten identical cases of 3 replicates",
        a_record(alike(10, *[1.0] * 3)),
        a_record(alike(10, *[1.0] * 3)),
        "unchanged",
    ),
    Row(
        "ten nearly identical cases of 3 replicates: as unchanged as identical ones",
        a_record(alike(10, 0.9, 0.91, 0.9)),
        a_record(alike(10, 0.9, 0.9, 0.91)),
        "unchanged",
    ),
    Row(
        "six documents with one field value wrong of six hundred: no less and no more than perfect ones",
        a_record(alike(6, *[1.0] * 10)),
        a_record({**alike(6, *[1.0] * 10), "case-0003": [0.9] + [1.0] * 9}, settings=DETERMINISTIC),
        "unchanged",
    ),
    Row(
        "single answers, right or wrong: 50 of 200 lost and 14 won",
        a_record(alike(200, 1.0) | {f"case-{at:04d}": [0.0] for at in range(14)}, settings=None),
        a_record(alike(200, 1.0) | {f"case-{at:04d}": [0.0] for at in range(14, 64)}, settings=None),
        "regressed",
        reasons=("field_level_f1 fell from 0.930 to 0.750",),
    ),
    Row(
        "answers of three documents that no longer fit the schema, while the primary metric stays",
        a_record(alike(3, *[0.5] * 10), other={"schema_valid": alike(3, *[1.0] * 9, 0.0)}),
        a_record(alike(3, *[0.5] * 10), other={"schema_valid": alike(3, *[0.0] * 10)}),
        "regressed",
        reasons=("schema_valid fell from 0.900 to 0.000",),
    ),
    Row(
        "the same in one document: nobody can tell copies from draws",
        a_record(alike(1, *[0.5] * 10), other={"schema_valid": alike(1, *[1.0] * 10)}, settings=DETERMINISTIC),
        a_record(alike(1, *[0.5] * 10), other={"schema_valid": alike(1, *[0.0] * 10)}, settings=DETERMINISTIC),
        "inconclusive",
        reasons=(
            (
                "one case cannot show the effect of chance: more cases would decide it, or `profile: sampled` of m "
                "in models.yaml, which samples each output independently; then `skill-evaluator evaluate s "
                "--replicates 5`"
            ),
        ),
    ),
    Row("two thousand pairs with few balanced changes", a_record(PAIRS), a_record(FLIPPED), "unchanged"),
    Row(
        "one case with 40 replicates that fell",
        a_record({"only": [1.0, 0.9] * 20}),
        a_record({"only": [0.3, 0.4] * 20}),
        "regressed",
        reasons=("field_level_f1 fell from 0.950 to 0.350",),
    ),
    Row(
        "an outage of the provider",
        a_record(alike(12, *[0.9] * 5)),
        a_record(alike(12, *["provider_error"] * 5)),
        "inconclusive",
        reasons=(
            "coverage 0.00 is below the required 0.90; the missing outputs would decide it",
            "0 of 60 outputs of the candidate could be read, fewer than half",
        ),
    ),
    Row(
        "a drop inside the tolerance, beyond chance",
        a_record(TWELVE),
        a_record(shifted(TWELVE, -0.02)),
        "unchanged",
        reasons=("field_level_f1 fell from 0.651 to 0.631 significantly, but by no more than the tolerated 0.05",),
    ),
    Row(
        "a drop within chance where none is tolerated",
        a_record(PERFECT),
        a_record(PERFECT | {"case-0000": [0.0] + [1.0] * 9}),
        "inconclusive",
        policy={"tolerance": 0.0},
        reasons=(
            (
                "field_level_f1 fell from 1.000 to 0.995, not significantly, and no drop is tolerated; about 74 "
                "cases (3.7 × the calls) would decide it, if the difference stays"
            ),
        ),
    ),
    Row(
        "a field lost in every answer while another rises: the mean hides it, the verdict does not",
        a_record(
            alike(12, *[0.5] * 10),
            fields={"a": dict.fromkeys(alike(12), (0, 10)), "b": dict.fromkeys(alike(12), (10, 10))},
        ),
        a_record(
            alike(12, *[0.5] * 10),
            fields={"a": dict.fromkeys(alike(12), (10, 10)), "b": dict.fromkeys(alike(12), (0, 10))},
        ),
        "regressed",
        reasons=("1 field lost more than 0.25, which alone is a regression: b 1.000 → 0.000",),
    ),
    Row(
        "a field lost on three cases, though its past was not perfect",
        a_record(alike(3, *[0.5] * 10), fields={"b": {**dict.fromkeys(alike(3), (10, 10)), "case-0001": (9, 10)}}),
        a_record(alike(3, *[0.5] * 10), fields={"b": dict.fromkeys(alike(3), (0, 10))}),
        "regressed",
        reasons=("1 field lost more than 0.25, which alone is a regression: b 0.967 → 0.000",),
    ),
    Row(
        "an advisory field that lost a fifth: shown, not gating",
        a_record(TWELVE, fields={"b": dict.fromkeys(TWELVE, (5, 5))}),
        a_record(shifted(TWELVE, 0.0), fields={"b": dict.fromkeys(TWELVE, (4, 5))}),
        "unchanged",
    ),
    Row(
        "a drop that the answers of one run share: nothing tells the run from the version",
        a_record(TWELVE, settings=DETERMINISTIC),
        a_record(SOME_FELL, settings=DETERMINISTIC),
        "inconclusive",
        reasons=(
            (
                "field_level_f1: a drop beyond 0.05 is not ruled out (interval -0.162 to +0.012); about 14 cases "
                "(1.2 × the calls), or `profile: sampled` of m in models.yaml, if each output is an independent "
                "sample, would decide it, if the difference stays"
            ),
        ),
    ),
    Row(
        "the same drop where the provider samples every answer: it is one of these documents",
        a_record(TWELVE),
        a_record(SOME_FELL),
        "regressed",
        reasons=("field_level_f1 fell from 0.651 to 0.576",),
    ),
    Row(
        "a case that is lost beside a gain: improved is not said",
        a_record(FORTY, fields=THREE_FIELDS),
        a_record({**shifted(FORTY, 0.1), "case-0000": [0.0] * 5}, fields=ONE_CASE_LOST),
        "inconclusive",
        reasons=(
            "not called improved, since 1 case lost more than 0.25: case-0000 0.540 → 0.000",
            "field_level_f1 rose from 0.663 to 0.747",
        ),
    ),
    Row(
        "the same case where it is critical",
        a_record(FORTY, fields=THREE_FIELDS),
        a_record({**shifted(FORTY, 0.1), "case-0000": [0.0] * 5}, fields=ONE_CASE_LOST),
        "regressed",
        policy={"components": {"s": {"critical_cases": ["case-0000"]}}},
        reasons=(
            "1 critical case lost more than 0.25: case-0000 0.540 → 0.000",
            "not called improved, since 1 case lost more than 0.25: case-0000 0.540 → 0.000",
            "field_level_f1 rose from 0.663 to 0.747",
        ),
    ),
    Row(
        "a drop in one critical field only",
        a_record(alike(12, *[0.5] * 10), fields={"b": dict.fromkeys(alike(12), (10, 10))}),
        a_record(alike(12, *[0.5] * 10), fields={"b": dict.fromkeys(alike(12), (0, 10))}),
        "regressed",
        policy={"components": {"s": {"fields": {"b": {"tier": "critical"}}}}},
        reasons=(
            "1 field lost more than 0.25, which alone is a regression: b 1.000 → 0.000",
            "b fell from 1.000 to 0.000",
        ),
    ),
    Row(
        "replicates agree less while accuracy is flat",
        a_record(PERFECT, agreement=dict.fromkeys(PERFECT, 1.0)),
        a_record(PERFECT, agreement=AGREE_LESS),
        "unchanged",
        reasons=("less repeatable: pairwise_exact_match 1.000 → 0.309",),
    ),
    Row(
        "another scorer",
        a_record(TWELVE),
        a_record(TWELVE, scorer_version=99),
        "incomparable",
        reasons=(
            (
                "not comparable: they were scored by different rules (scorer 1 and 99); `skill-evaluator evaluate "
                "s` runs both versions again"
            ),
        ),
    ),
]


def compared(before: Record | None, after: Record, policy: Mapping[str, Any] | None = None) -> ModelVerdict:
    (model,) = compare_records([Pair(baseline=before, candidate=after)], some_rules(policy)).models
    return model


@pytest.mark.parametrize("row", SPECIFICATION, ids=lambda row: row.says)
def test_verdict_is_as_specified(row: Row) -> None:
    found = compared(row.before, row.after, row.policy)
    assert found.verdict == row.verdict
    assert tuple(found.reasons) == row.reasons
    assert (found.remedy is not None) is (row.verdict == "inconclusive" and "not called" not in row.reasons[0])
    assert (found.remedy or "") in "; ".join(row.reasons)


def test_first_version_is_incomparable() -> None:
    found = compared(None, a_record(TWELVE))
    assert (found.verdict, found.reasons) == (
        "incomparable",
        ["there is no complete record of a lower version to compare with"],
    )


def test_changed_case_is_skipped_and_named() -> None:
    after = a_record(TWELVE)
    moved = after.per_case[0].model_copy(update={"digest": "another"})
    found = compared(a_record(TWELVE), after.model_copy(update={"per_case": [moved, *after.per_case[1:]]}))
    assert found.cases.left_out == {"case-0000": "inputs or truth changed"}
    assert found.metrics[0].test.n_cases == 11


def test_cases_that_broke_or_were_fixed_are_named_with_their_fields() -> None:
    right = {"a": (5, 5), "b": (0, 5), "c": (5, 5)}
    after = {"a": (0, 5), "b": (5, 5), "c": (5, 5)}
    cases = compared(
        a_record({"a": [1.0] * 5, "b": [0.0] * 5, "c": [0.5] * 5}, fields=dict.fromkeys("xyz", right)),
        a_record({"a": [0.0] * 5, "b": [0.8] * 5, "c": [0.5] * 5}, fields=dict.fromkeys("xyz", after)),
    ).cases
    assert [(one.case_id, one.before, one.after, one.fields) for one in cases.broke] == [
        ("a", 1.0, 0.0, dict.fromkeys("xyz", "5/5 → 0/5"))
    ]
    assert [(one.case_id, one.fields) for one in cases.fixed] == [("b", dict.fromkeys("xyz", "0/5 → 5/5"))]


def test_advisory_fields_do_not_change_the_critical_q() -> None:
    names = list(alike(8))
    falls: dict[str, list[Score]] = {
        name: [0.0 if (at + one) % 3 == 0 else 1.0 for one in range(6)] for at, name in enumerate(names)
    }
    before, after = a_record(alike(8, *[1.0] * 6)), a_record(falls)
    noise = {f"field-{at}": dict.fromkeys(names, (3, 6)) for at in range(40)}
    alone = compared(before, after).metrics[0]
    among = compared(a_record(alike(8, *[1.0] * 6), fields=noise), a_record(falls, fields=noise)).metrics[0]
    assert alone.test == among.test


def test_all_models_are_one_family() -> None:
    """A drop that is beyond chance alone is less so among many models in which nothing fell, and is named."""
    fell = {
        case_id: [score + 0.02 - 0.1 * (at % 4) for score in scores if not isinstance(score, str)]
        for at, (case_id, scores) in enumerate(varied(8, 5).items())
    }
    pair = Pair(
        baseline=a_record(varied(8, 5), settings=DETERMINISTIC), candidate=a_record(fell, settings=DETERMINISTIC)
    )
    others = [
        Pair(baseline=a_record(TWELVE, model_id=f"n{at}"), candidate=a_record(TWELVE, model_id=f"n{at}"))
        for at in range(7)
    ]
    alone = compare_records([pair], some_rules()).models[0]
    among = compare_records([pair, *others], some_rules()).models[0]
    assert alone.metrics[0].test.p == among.metrics[0].test.p
    assert (alone.verdict, among.verdict) == ("regressed", "inconclusive")
    assert alone.metrics[0].test.detectable_drop is not None
    assert among.metrics[0].test.detectable_drop is not None
    assert among.metrics[0].test.detectable_drop > alone.metrics[0].test.detectable_drop
    assert any("not significantly among all measures" in reason for reason in among.reasons)


@pytest.mark.parametrize(("cases", "verdict"), [(2, "inconclusive"), (3, "regressed"), (4, "regressed")])
def test_drop_in_every_case_is_regressed_from_three_cases_on(cases: int, verdict: str) -> None:
    records = (varied(cases, 5), shifted(varied(cases, 5), -0.3))
    assert compared(*(a_record(one, settings=DETERMINISTIC) for one in records)).verdict == verdict


def test_policy_may_judge_whichever_model_answered() -> None:
    before, after = a_record(TWELVE, served_model="one"), a_record(shifted(TWELVE, -0.3), served_model="two")
    assert compared(before, after).verdict == "incomparable"
    assert compared(before, after, {"served": "any"}).verdict == "regressed"


def test_hidden_models_belong_to_the_family() -> None:
    shown, hidden = (
        Pair(baseline=a_record(TWELVE, model_id=name), candidate=a_record(shifted(TWELVE, by), model_id=name))
        for name, by in (("m", -0.01), ("n", 0.0))
    )
    both = compare_records([shown, hidden], some_rules())
    alone = compare_records([shown], some_rules(), hidden=[hidden])
    assert alone.models == both.models[:1]
    assert alone.models[0].metrics[0].test.q != compare_records([shown], some_rules()).models[0].metrics[0].test.q


def test_component_has_the_verdict_of_its_worst_model() -> None:
    good = Pair(baseline=a_record(TWELVE), candidate=a_record(shifted(TWELVE, 0.0)))
    bad = Pair(baseline=a_record(TWELVE, model_id="n"), candidate=a_record(shifted(TWELVE, -0.3), model_id="n"))
    result = compare_records([good, bad], some_rules())
    assert [one.verdict for one in result.models] == ["unchanged", "regressed"]
    assert result.verdict == "regressed"
