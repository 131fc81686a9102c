"""The conclusion of a comparison: verdict, loss, evidence, version to ship and next step."""

from collections.abc import Mapping
from typing import Any

import pytest
from skill_evaluator.display.pages import page_of, terminal_pieces
from skill_evaluator.records.record import CaseAccuracy
from skill_evaluator.reports.summary import ComparisonSummary, Reader, amount_words, conclude, conclude_first
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult, SinceAccepted
from skill_evaluator.verdicts.sizing import can_show

from tests.reports.test_comparison import HOSTILE, hostile_result
from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules
from tests.verdicts.test_amounts import a_run

NAMES = [f"c{at:02d}" for at in range(12)]
GOOD: dict[str, list[Score]] = {name: [0.9, 0.92, 0.94] for name in NAMES}
BAD: dict[str, list[Score]] = {name: [0.2, 0.22, 0.24] for name in NAMES}
LOWER: dict[str, list[Score]] = {name: [0.7, 0.72, 0.74] for name in NAMES}
FLAKY: dict[str, list[Score]] = {name: [0.9, 0.5, 1.0] for name in NAMES}
MANY: dict[str, list[Score]] = {f"c{at:02d}": [0.9, 0.92, 0.94] for at in range(40)}
RIGHT, WRONG = ({"total": dict.fromkeys(NAMES, count)} for count in ((3, 3), (0, 3)))
HERE = Reader(outputs={"new": "new"})


def compared(
    before: Mapping[str, list[Score]], after: Mapping[str, list[Score]], old: Mapping[str, Any] = {}, **changed: Any
) -> ComparisonResult:
    baseline = a_record(before, run_id="old", skill="receipts", **old)
    candidate = {"run_id": "new", "skill": "receipts", "skill_version": "1.1.0", "beside": "old", **changed}
    pair = Pair(baseline=baseline, candidate=a_record(after, **candidate))
    return compare_records([pair], some_rules(skill="receipts"))


def lines_of(conclusion: ComparisonSummary) -> list[str]:
    return [str(piece) for piece in terminal_pieces(page_of("", [conclusion.closing]).blocks)][1:]


UNCHANGED = "unchanged against 1.0.0 on these 12 cases; of 100 new cases, up to 22 may still be worse"
ACCEPT = (
    "next: accept it as the baseline of later versions: "
    "`skill-evaluator accept receipts 1.1.0 --reason 'unchanged against 1.0.0'`"
)
SAME = (
    "how sure: field_level_f1 0.000 on 12 cases (95 % confidence interval -0.008 to +0.008, "
    "no drop beyond the tolerance 0.05)"
)
LESS = "how sure: field_level_f1 -0.{} on 12 cases (95 % confidence interval -0.{} to -0.{}, adjusted p-value <0.001)"


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (
            compared(GOOD, BAD, {"fields": RIGHT}, fields=WRONG),
            (
                "▼ receipts 1.1.0: regressed against 1.0.0 on these 12 cases",
                "lost: field total (1.000 → 0.000)",
                LESS.format("700", "882", "518"),
                "next: look at field total: `skill-evaluator explain new --field total`",
            ),
        ),
        (
            compared(GOOD, BAD, {"fields": {"": RIGHT["total"]}}, fields={"": WRONG["total"]}),
            (
                "▼ receipts 1.1.0: regressed against 1.0.0 on these 12 cases",
                "lost: field (the whole output) (1.000 → 0.000)",
                LESS.format("700", "882", "518"),
                "next: look at case c00: `skill-evaluator explain new --case c00`",
            ),
        ),
        (
            compared(MANY, MANY | {"c03": [0.0] * 3}),
            (
                "? receipts 1.1.0: inconclusive against 1.0.0 on these 40 cases",
                "lost: case c03",
                "how sure: field_level_f1 -0.023 on 40 cases "
                "(95 % confidence interval -0.049 to +0.003, adjusted p-value 0.038)",
                "next: look at case c03: `skill-evaluator explain new --case c03`",
            ),
        ),
        (
            compared(GOOD, GOOD | {"c00": [0.4, 0.42, 0.44]}),
            (
                "? receipts 1.1.0: inconclusive against 1.0.0 on these 12 cases",
                "a loss is neither significant nor ruled out",
                "how sure: field_level_f1 -0.042 on 12 cases "
                "(95 % confidence interval -0.090 to +0.006, adjusted p-value 0.038)",
                "next: look at case c00: `skill-evaluator explain new --case c00`",
            ),
        ),
        (
            compared(
                GOOD,
                GOOD,
                {"agreement": dict.fromkeys(NAMES, 1.0)},
                agreement={name: 0.3 + at % 3 / 100 for at, name in enumerate(NAMES)},
                skill_version="1.0.0",
            ),
            (
                f"= receipts 1.0.0: {UNCHANGED}",
                "nothing lost; less repeatable: pairwise_exact_match 1.000 → 0.310",
                SAME,
                "next: nothing is in the way; rank the models: `skill-evaluator leaderboard receipts`",
            ),
        ),
        (
            compared(GOOD, LOWER, {"fields": RIGHT}, fields={"total": RIGHT["total"] | {"c00": (1, 3)}}),
            (
                "▼ receipts 1.1.0: regressed against 1.0.0 on these 12 cases",
                "lost: field_level_f1 0.920 → 0.720, most in field total 1.000 → 0.944",
                LESS.format("200", "253", "147"),
                "next: look at case c00: `skill-evaluator explain new --case c00`",
            ),
        ),
        (
            compared(GOOD, GOOD, {"fields": RIGHT}, fields={"total": RIGHT["total"] | {"c00": (0, 3)}}),
            (
                f"= receipts 1.1.0: {UNCHANGED}",
                "nothing lost; fell most, not significantly: field total 1.000 → 0.917",
                SAME,
                ACCEPT,
            ),
        ),
        (
            compared(GOOD, GOOD, draft=True),
            (
                f"= receipts 1.1.0 (draft): {UNCHANGED}",
                "nothing lost",
                SAME,
                "next: record the version: `skill-evaluator evaluate receipts`",
            ),
        ),
        (
            compared(GOOD, GOOD, scorer_version=0),
            (
                "≠ receipts 1.1.0: incomparable with 1.0.0",
                "nothing was compared: not comparable: they were scored by different rules (scorer 1 and 0); "
                "`skill-evaluator evaluate receipts` runs both versions again",
                "next: run both versions interleaved: `skill-evaluator evaluate receipts`",
            ),
        ),
        (
            compared(GOOD, GOOD, digests={"schema": "sha256:0"}),
            (
                "≠ receipts 1.1.0: incomparable with 1.0.0",
                "nothing was compared: not comparable: the schema changed",
                "next: undo the change of the schema; or change the prompt and compare it with this run: "
                "`skill-evaluator try receipts`",
            ),
        ),
    ],
    ids=[
        "a field is lost",
        "all is lost",
        "a case is lost",
        "a case is worse in every output",
        "less repeatable",
        "a metric fell",
        "a field fell by chance",
        "a draft",
        "incomparable",
        "another schema",
    ],
)
def test_conclusion_has_verdict_loss_evidence_and_next_step(result: ComparisonResult, lines: tuple[str, ...]) -> None:
    assert lines_of(conclude(result, HERE)) == list(lines)


def test_inconclusive_conclusion_names_remedy_and_field_that_fell() -> None:
    result = compared(FLAKY, FLAKY, {"fields": RIGHT}, fields={"total": RIGHT["total"] | {"c00": (0, 3)}})
    conclusion = conclude(result, HERE)
    fell = "fell most, not significantly: field total 1.000 → 0.917"
    assert conclusion.lost == f"a loss is neither significant nor ruled out; {fell}"
    assert conclusion.next.startswith("about ")
    assert conclusion.next.endswith(
        "would decide it, if the difference stays; then run `skill-evaluator evaluate receipts`"
    )


def test_regression_only_since_accepted_version_names_that_version() -> None:
    since = SinceAccepted(
        version="0.9.0", run_id="r", metric="exact", difference=-0.1, ci95=(-0.2, -0.05), q=0.01, verdict="regressed"
    )
    same = compared(GOOD, GOOD)
    worse = {"verdict": "regressed", "since_accepted": since}
    result = same.model_copy(
        update={"verdict": "regressed", "models": [model.model_copy(update=worse) for model in same.models]}
    )
    conclusion = conclude(result, HERE)
    assert conclusion.verdict == "▼ receipts 1.1.0: regressed against 0.9.0 on these 12 cases"
    assert conclusion.lost == "lost by all changes since 0.9.0: exact -0.100"
    assert conclusion.sure == (
        "all changes since 0.9.0: exact -0.100 (95 % confidence interval -0.200 to -0.050, adjusted p-value 0.010), "
        "regressed"
    )
    command = "`skill-evaluator compare receipts --baseline 0.9.0`"
    assert conclusion.next == f"compare with 0.9.0: {command}"


def test_drop_on_one_case_has_no_confidence_interval() -> None:
    one_case = compared({"c00": [0.9]}, {"c00": [0.2]})
    assert one_case.verdict == "inconclusive"
    assert "-0.700 on 1 case (too few cases for a confidence interval, tolerance 0.05)" in conclude(one_case, HERE).sure


def test_version_to_ship_is_named_before_the_next_step() -> None:
    result = compared(GOOD, GOOD).model_copy(update={"ship": "to ship: 1.1.0 with m"})
    assert lines_of(conclude(result, HERE))[-2] == "to ship: 1.1.0 with m"


def test_next_step_names_only_commands_that_the_reader_can_run() -> None:
    worse, same = compared(GOOD, BAD), compared(GOOD, GOOD)
    elsewhere = "the outputs are not on this machine: `skill-evaluator compare receipts` has the scores"
    assert conclude(worse, Reader(outputs={})).next == f"look at case c00; {elsewhere}"
    assert conclude(worse, Reader()).next == "look at case c00"
    assert conclude(same, Reader()).next == "nothing is in the way"
    reader = Reader(outputs={"new": "new"}, folders=["--components", "my prompts"])
    command = "`skill-evaluator explain new --case c00 --components 'my prompts'`"
    assert conclude(worse, reader).next == f"look at case c00: {command}"


def test_next_step_in_ci_works_in_a_clone() -> None:
    worse, same = compared(GOOD, BAD), compared(GOOD, GOOD)
    merged, draft = Reader(in_ci=True), Reader(in_ci=True, draft=True)
    compare = "compare the two versions: `git pull && skill-evaluator compare receipts`"
    assert conclude(worse, merged).next == f"look at case c00; {compare}"
    artifacts = "its outputs are artifacts of this run; compare a new prompt: `skill-evaluator try receipts`"
    assert conclude(worse, draft).next == f"look at case c00; {artifacts}"
    assert "`git pull && skill-evaluator accept receipts 1.1.0 " in conclude(same, merged).next
    assert conclude(same, draft).next == "merge, nothing is in the way"


def test_conclusion_on_several_models_is_about_the_worst_model() -> None:
    fine, worse = compared(GOOD, GOOD, {"model_id": "a"}, model_id="a"), compared(GOOD, BAD)
    both = worse.model_copy(update={"models": [*fine.models, *worse.models]})
    conclusion = conclude(both, HERE)
    assert conclusion.verdict.endswith("regressed against 1.0.0 on these 12 cases (m, the worst of 2 models)")
    assert conclusion.sure.startswith("field_level_f1 -0.700 with m on 12 cases (")
    assert "look at case c00" in conclusion.next
    alike = worse.model_copy(update={"models": [*worse.models, *worse.models]})
    assert conclude(alike, HERE).verdict.endswith("(each of 2 models)")


def test_amounts_have_the_same_model_order_as_the_table() -> None:
    slow, quick = [1.0] * 6, [0.5] * 6
    pairs = [
        Pair(
            baseline=a_run({"latency_s": quick}, run_id=f"old-{name}", model_id=name),
            candidate=a_run({"latency_s": slow}, run_id=f"new-{name}", model_id=name, beside=f"old-{name}"),
        )
        for name in ("weak", "good")
    ]
    result = compare_records(pairs, some_rules())
    words = "latency 0.50 s → 1.00 s a call (× 2)"
    assert amount_words(result) == f"good: {words}, weak: {words}"


def test_loss_names_a_regressed_metric_and_a_regressed_amount() -> None:
    old = a_run({"latency_s": [0.5] * 6}, run_id="old")
    new = a_run({"latency_s": [5.0] * 6}, run_id="new", beside="old")
    lower = {"field_level_f1": [0.8, 0.8]}
    new = new.model_copy(update={"per_case": [one.model_copy(update={"replicates": lower}) for one in new.per_case]})
    rules = some_rules({"metrics": {"latency_s": {"tier": "critical"}}})
    lost = conclude(compare_records([Pair(baseline=old, candidate=new)], rules), HERE).lost
    assert lost == "lost: field_level_f1 1.000 → 0.800; latency 0.50 s → 5.00 s a call (× 10)"


def test_external_names_add_no_line_to_the_conclusion() -> None:
    reader = Reader(outputs={"2" + HOSTILE: HOSTILE}, folders=["--components", HOSTILE])
    lines = lines_of(conclude(hostile_result(), reader))
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


def test_conclusion_on_first_run_names_the_detectable_drop() -> None:
    record = a_record({name: [0.9, 0.8] for name in "abcd"}, skill="receipts")
    unlabelled = conclude_first(record, HERE)
    assert unlabelled.sure == "field_level_f1 is not measured, because no case has a ground truth for it"
    score = {"field_level_f1": CaseAccuracy(mean=0.85, strict_mean=0.85, n=2)}
    labelled = [case.model_copy(update={"accuracy": score}) for case in record.per_case[:3]]
    record = record.model_copy(update={"per_case": [*labelled, record.per_case[3]]})
    assert lines_of(conclude_first(record, HERE, "to ship: 1.0.0 with m")) == [
        "receipts 1.0.0: measured on 4 cases; no lower version has a complete run to compare it with",
        f"how sure: {can_show(3)}",
        "to ship: 1.0.0 with m",
        "next: change the prompt and compare it with this run: `skill-evaluator try receipts`",
    ]
    not_recorded = Reader(outputs={}, record_step="record a baseline")
    assert conclude_first(record, not_recorded).next == "record a baseline"
    assert conclude(compared(GOOD, GOOD), not_recorded).next == "record a baseline"


def test_next_step_of_first_run_that_scored_0_shows_its_outputs() -> None:
    record = a_record({name: [0.0] for name in "abc"}, skill="receipts")
    zero = record.accuracy["field_level_f1"].model_copy(update={"strict_mean": 0.0})
    record = record.model_copy(update={"accuracy": {"field_level_f1": zero}})
    reader = Reader(outputs={record.run_id: "run"})
    assert lines_of(conclude_first(record, reader, "to ship: 1.0.0 with m")) == [
        "receipts 1.0.0: measured on 3 cases; no lower version has a complete run to compare it with",
        "field_level_f1 is 0 in every case, so no later version can be worse",
        "next: compare the outputs with the ground truth: `skill-evaluator explain run --case a`",
    ]


def test_next_step_if_version_is_accepted_or_not_measured() -> None:
    same = compared(GOOD, GOOD)
    accepted = conclude(same.model_copy(update={"accepted": "1.1.0"}), HERE)
    assert accepted.next == "change the prompt and compare it with this run: `skill-evaluator try receipts`"
    unmeasured = conclude(same.model_copy(update={"unmeasured": "1.2.0 on disk is not measured"}), HERE)
    assert unmeasured.next == "measure the version on disk: `skill-evaluator evaluate receipts`"


def test_incomplete_run_has_version_to_ship_but_no_verdict() -> None:
    record = a_record(GOOD, skill="receipts").model_copy(
        update={"complete": False, "stopped": "max_calls: --max-calls is used up"}
    )
    assert lines_of(conclude_first(record, HERE, "to ship: 1.0.0 with m")) == [
        f"{record.skill} {record.skill_version}: not measured on {record.n_cases} cases, so this run has no verdict",
        f"{record.scored} of {record.planned} outputs are scored; stopped by max_calls: --max-calls is used up",
        "to ship: 1.0.0 with m",
        "next: continue the run",
    ]
