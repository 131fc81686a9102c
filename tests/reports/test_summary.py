"""The conclusion: the verdict with its cases, what was lost, what to ship and what to do next."""

from collections.abc import Mapping
from typing import Any

import pytest
from skill_evaluator.display.pages import page_of, terminal_pieces
from skill_evaluator.reports.summary import ComparisonSummary, Reader, conclude, conclude_first
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult

from tests.reports.test_comparison import HOSTILE, hostile_result
from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules

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
    return compare_records("receipts", [pair], some_rules(skill="receipts"))


def lines_of(conclusion: ComparisonSummary) -> list[str]:
    return [str(piece) for piece in terminal_pieces(page_of("", [conclusion.closing]).blocks)][1:]


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (
            compared(GOOD, BAD, {"fields": RIGHT}, fields=WRONG),
            (
                "▼ receipts: regressed on these 12 cases",
                "lost: field total",
                "next: look at field total: `skill-evaluator explain new --field total`",
            ),
        ),
        (
            compared(GOOD, BAD, {"fields": {"": RIGHT["total"]}}, fields={"": WRONG["total"]}),
            (
                "▼ receipts: regressed on these 12 cases",
                "lost: field (the whole answer)",
                "next: look at (the whole answer): `skill-evaluator explain new`",
            ),
        ),
        (
            compared(MANY, MANY | {"c03": [0.0] * 3}),
            (
                "? receipts: inconclusive on these 40 cases",
                "lost: case c03",
                "next: look at case c03: `skill-evaluator explain new --case c03`",
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
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may get worse",
                "nothing lost; less repeatable: pairwise_exact_match 1.000 → 0.310",
                "next: nothing is in the way",
            ),
        ),
        (
            compared(GOOD, LOWER),
            (
                "▼ receipts: regressed on these 12 cases",
                "lost: field_level_f1 0.920 → 0.720",
                "next: look at case c00: `skill-evaluator explain new --case c00`",
            ),
        ),
        (
            compared(GOOD, LOWER, {"fields": RIGHT}, fields={"total": RIGHT["total"] | {"c00": (1, 3)}}),
            (
                "▼ receipts: regressed on these 12 cases",
                "lost: field_level_f1 0.920 → 0.720, most in field total 1.000 → 0.944",
                "next: look at case c00: `skill-evaluator explain new --case c00`",
            ),
        ),
        (
            compared(GOOD, GOOD, {"fields": RIGHT}, fields={"total": RIGHT["total"] | {"c00": (0, 3)}}),
            (
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may get worse",
                "nothing lost; fell most, not significantly: field total 1.000 → 0.917",
                "next: nothing is in the way of 1.1.0; `skill-evaluator accept receipts 1.1.0 --reason …` makes it "
                "the baseline of later versions",
            ),
        ),
        (
            compared(GOOD, GOOD),
            (
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may get worse",
                "nothing lost",
                "next: nothing is in the way of 1.1.0; `skill-evaluator accept receipts 1.1.0 --reason …` makes it "
                "the baseline of later versions",
            ),
        ),
        (
            compared(GOOD, GOOD, draft=True),
            (
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may get worse",
                "nothing lost",
                "next: `skill-evaluator evaluate receipts` records it",
            ),
        ),
        (
            compared(GOOD, GOOD, scorer_version=0),
            (
                "≠ receipts: incomparable",
                "nothing was compared: not comparable: they were scored by different rules (scorer 1 and 0); "
                "`skill-evaluator evaluate receipts` runs both versions again",
                "next: `skill-evaluator evaluate receipts` runs both versions side by side, by today's files",
            ),
        ),
    ],
    ids=[
        "a field is lost",
        "all is lost",
        "a case is lost",
        "less repeatable",
        "spread",
        "one field",
        "a field falls by chance",
        "unchanged",
        "a draft",
        "incomparable",
    ],
)
def test_conclusion_has_verdict_loss_and_next_step(result: ComparisonResult, lines: tuple[str, str, str]) -> None:
    assert lines_of(conclude(result, HERE)) == list(lines)


def test_inconclusive_conclusion_names_what_would_decide_it() -> None:
    conclusion = conclude(compared(FLAKY, FLAKY), HERE)
    assert conclusion.verdict == "? receipts: inconclusive on these 12 cases"
    assert conclusion.lost == "no loss is shown, and none is ruled out"
    assert conclusion.next.startswith("about ")
    assert conclusion.next.endswith("would decide it, if the difference stays")


def test_inconclusive_conclusion_names_the_field_that_fell_most() -> None:
    result = compared(FLAKY, FLAKY, {"fields": RIGHT}, fields={"total": RIGHT["total"] | {"c00": (0, 3)}})
    fell = "fell most, not significantly: field total 1.000 → 0.917"
    assert conclude(result, HERE).lost == f"no loss is shown, and none is ruled out; {fell}"


def test_what_to_ship_is_named_before_the_next_step() -> None:
    result = compared(GOOD, GOOD).model_copy(update={"ship": "to ship: 1.1.0 with m"})
    assert lines_of(conclude(result, HERE))[2] == "to ship: 1.1.0 with m"


def test_next_step_names_only_commands_that_work() -> None:
    worse, same = compared(GOOD, BAD), compared(GOOD, GOOD)
    assert conclude(worse, Reader(outputs={})).next == "look at case c00; the answers are not on this machine"
    assert conclude(worse, Reader()).next == "look at case c00"
    assert conclude(same, Reader()).next == "nothing is in the way"
    reader = Reader(outputs={"new": "new"}, folders=["--components", "my prompts"])
    command = "`skill-evaluator explain new --case c00 --components 'my prompts'`"
    assert conclude(worse, reader).next == f"look at case c00: {command}"


def test_next_step_in_ci_names_where_the_outputs_are() -> None:
    worse = compared(GOOD, BAD)
    after = "after a pull, `skill-evaluator compare receipts` shows where"
    assert conclude(worse, Reader(in_ci=True)).next == f"look at case c00; {after}"
    draft = conclude(worse, Reader(in_ci=True, draft=True))
    assert draft.next == "look at case c00; the artifacts of this run have the outputs"


def test_conclusion_of_several_models_is_about_the_worst() -> None:
    fine, worse = compared(GOOD, GOOD, {"model_id": "a"}, model_id="a"), compared(GOOD, BAD)
    both = worse.model_copy(update={"models": [*fine.models, *worse.models]})
    conclusion = conclude(both, HERE)
    assert conclusion.verdict == "▼ receipts: regressed on these 12 cases (m, the worst of 2 models)"
    assert "look at case c00" in conclusion.next
    alike = worse.model_copy(update={"models": [*worse.models, *worse.models]})
    assert conclude(alike, HERE).verdict.endswith("(each of 2 models)")


def test_names_from_outside_add_no_line() -> None:
    reader = Reader(outputs={"2" + HOSTILE: HOSTILE}, folders=["--components", HOSTILE])
    lines = lines_of(conclude(hostile_result(), reader))
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


def test_first_run_concludes_with_the_drop_that_it_could_detect() -> None:
    record = a_record({name: [0.9, 0.8] for name in "abc"}, skill="receipts")
    assert lines_of(conclude_first(record, HERE, is_recorded=True)) == [
        "receipts 1.0.0: measured on 3 cases; there is no lower version to compare it with",
        "3 cases can detect a drop of 0.42 or the loss of a field; about 30 cases could detect a drop of 0.05",
        "next: change the prompt, and `skill-evaluator try receipts` compares it with this run",
    ]
    not_recorded = conclude_first(record, HERE, is_recorded=False)
    assert not_recorded.next == "`skill-evaluator evaluate receipts` records a baseline for later versions"
