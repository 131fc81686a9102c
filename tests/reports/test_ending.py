"""The last three lines: the verdict with its scope, what was lost, and what to do next."""

from collections.abc import Mapping
from typing import Any

import pytest
from skill_evaluator.reports.ending import ending, print_ending, print_first
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
HERE = {"new": "new"}


def compared(
    before: Mapping[str, list[Score]], after: Mapping[str, list[Score]], old: Mapping[str, Any] = {}, **changed: Any
) -> ComparisonResult:
    baseline = a_record(before, run_id="old", skill="receipts", **old)
    candidate = {"run_id": "new", "skill": "receipts", "skill_version": "1.1.0", "beside": "old", **changed}
    pair = Pair(baseline=baseline, candidate=a_record(after, **candidate))
    return compare_records("receipts", [pair], some_rules(skill="receipts"))


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
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may fail",
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
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may fail",
                "nothing lost; fell most, not significantly: field total 1.000 → 0.917",
                "next: nothing is in the way of 1.1.0; `skill-evaluator accept receipts 1.1.0 --why …` holds later "
                "versions against it",
            ),
        ),
        (
            compared(GOOD, GOOD),
            (
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may fail",
                "nothing lost",
                "next: nothing is in the way of 1.1.0; `skill-evaluator accept receipts 1.1.0 --why …` holds later "
                "versions against it",
            ),
        ),
        (
            compared(GOOD, GOOD, draft=True),
            (
                "= receipts: unchanged on these 12 cases; up to 22 of 100 new cases may fail",
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
                "next: `skill-evaluator evaluate receipts` asks both versions side by side, by today's files",
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
def test_the_verdict_what_was_lost_and_what_to_do(result: ComparisonResult, lines: tuple[str, str, str]) -> None:
    assert ending(result, HERE) == lines


def test_what_is_inconclusive_ends_with_what_would_decide_it_and_its_cost() -> None:
    first, lost, following = ending(compared(FLAKY, FLAKY), HERE)
    assert (first, lost) == (
        "? receipts: inconclusive on these 12 cases",
        "no loss is shown, and none is ruled out",
    )
    assert following.startswith("next: about ")
    assert "× the calls" in following
    assert following.endswith("would decide it, if the difference stays")


def test_no_command_is_named_that_does_not_work() -> None:
    """Answers that are elsewhere are not explained, results of another tool have no library, and flags are kept."""
    worse, same = compared(GOOD, BAD), compared(GOOD, GOOD)
    assert ending(worse, {})[2] == "next: look at case c00; the answers are not on this machine"
    assert ending(worse, None)[2] == "next: look at case c00"
    assert ending(same, None)[2] == "next: nothing is in the way"
    folders = ["--components", "my prompts"]
    command = "`skill-evaluator explain new --case c00 --components 'my prompts'`"
    assert ending(worse, HERE, folders)[2] == f"next: look at case c00: {command}"


def test_of_several_models_the_end_speaks_of_the_worst() -> None:
    fine, worse = compared(GOOD, GOOD, {"model_id": "a"}, model_id="a"), compared(GOOD, BAD)
    both = worse.model_copy(update={"models": [*fine.models, *worse.models]})
    assert ending(both, HERE)[0] == ("▼ receipts: regressed on these 12 cases (m, the worst of 2 models)")
    assert "look at case c00" in ending(both, HERE)[2]
    alike = worse.model_copy(update={"models": [*worse.models, *worse.models]})
    assert ending(alike, HERE)[0].endswith("(each of 2 models)")


def test_three_lines_are_three_whatever_the_names_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_ending(hostile_result(), "text", {"2" + HOSTILE: HOSTILE}, ["--components", HOSTILE])
    blank, *lines = capsys.readouterr().out.splitlines()
    assert (blank, len(lines)) == ("", 3)
    assert all(line.isprintable() for line in lines)
    print_ending(hostile_result(), "markdown")
    assert capsys.readouterr().out == ""


def test_a_first_run_ends_with_what_its_cases_can_show(capsys: pytest.CaptureFixture[str]) -> None:
    record = a_record({name: [0.9, 0.8] for name in "abc"}, skill="receipts")
    print_first(record, "text", kept=True)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "receipts 1.0.0: measured on 3 cases; there is no lower version to judge it against",
        "3 cases can detect a drop of 0.42 or the loss of a field; about 30 cases could detect a drop of 0.05",
        "next: change the prompt, and `skill-evaluator try receipts` holds it against this run",
    ]
    print_first(record, "text", kept=False)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "next: `skill-evaluator evaluate receipts` records what later versions are held against"
    )
    print_first(record, "json", kept=True)
    assert capsys.readouterr().out == ""
