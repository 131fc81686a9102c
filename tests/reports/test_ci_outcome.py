"""The report of CI results: the comment on a pull request."""

from functools import cache, partial
from typing import Any

import pytest
from skill_evaluator.ci.plan import CallCounts, Figures, Outcome, RunOutcome
from skill_evaluator.display.pages import print_page
from skill_evaluator.records.summaries import CaseAmount
from skill_evaluator.reports.ci import outcome_page
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult

from tests.support.markdown import read_page
from tests.support.odd_texts import HOSTILE
from tests.support.records import a_record
from tests.verdicts.rules import some_rules

FIGURES = Figures(skill_version="1.1.0", accuracy=0.9, ci95=(0.85, 0.95), reproducibility=0.5)


def run(scored: int = 60, planned: int = 60, failed: dict[str, int] | None = None, **changed: Any) -> RunOutcome:
    fields: dict[str, Any] = {
        "skill": "a",
        "model_id": "m",
        "status": "complete",
        "reason": "",
        "counts": CallCounts(planned=planned, scored=scored, failed=failed or {}),
        "run_id": "r",
        "primary_metric": "field_level_f1",
        "figures": FIGURES,
        "cost_usd": 0.1234,
    }
    return RunOutcome(**fields).model_copy(update=changed)  # a report trusts no file's model


def nothing(**changed: Any) -> RunOutcome:
    return run(scored=0, run_id=None, primary_metric=None, figures=None, cost_usd=None, **changed)


def outcome(*runs: RunOutcome, reason: str = "") -> Outcome:
    return Outcome(invocation="i", head=None, dry_run=False, runs=list(runs))


def row(one: RunOutcome) -> list[str]:
    ((_, cells),) = read_page(outcome_page(outcome(one)).markdown()).tables
    return cells


def test_run_row_has_figures_and_the_reason_if_incomplete() -> None:
    measured = ["0.900 (0.850 to 0.950)", "–", "0.500", "60/60"]
    assert row(run()) == ["a", "m", "1.1.0", "field_level_f1", *measured, "$0.1234", ""]
    assert "$0.1234 (69% cached)" in row(run(hit_rate=0.69))
    bare = FIGURES.model_copy(update={"ci95": None, "accuracy": None, "reproducibility": None})
    assert row(run(figures=bare, cost_usd=None))[4:9] == ["–", "–", "–", "60/60", "–"]
    assert row(nothing(status="missing", reason="nothing arrived"))[2:] == [
        *["–"] * 5,
        "0/60",
        "–",
        "MISSING; nothing arrived",
    ]
    one = run(status="incomplete", scored=40, failed={"refusal": 3, "timeout": 7}, reason="cap reached")
    assert row(one)[7:] == ["40/60", "$0.1234", "INCOMPLETE; 3 refusal, 7 timeout; cap reached"]


def test_summary_names_the_rise_in_tokens_of_an_unchanged_version() -> None:
    scores = {f"c{at}": [1.0, 1.0] for at in range(6)}
    old, new = (
        record.model_copy(update={"per_case": [case.model_copy(update={"amounts": rise}) for case in record.per_case]})
        for record, rise in (
            (a_record(scores, run_id="old"), {"output_tokens": CaseAmount(mean=61, n=2)}),
            (a_record(scores, run_id="r", beside="old"), {"output_tokens": CaseAmount(mean=12_000, n=2)}),
        )
    )
    result = compare_records([Pair(baseline=old, candidate=new)], some_rules(skill="a"))
    page = outcome_page(outcome(run()).model_copy(update={"verdicts": [result]})).markdown()
    summary = page[: page.index("<details>")]
    assert result.verdict == "unchanged"
    assert "- a: output tokens 61 → 12,000 a call (× 197)" in summary


def test_summary_accounts_for_every_call() -> None:
    runs = (
        run(),
        run(status="incomplete", scored=40, failed={"timeout": 5}),
        nothing(status="missing"),
        nothing(status="skipped", planned=1000),
    )
    text = outcome_page(outcome(*runs)).markdown()
    assert (
        "4 runs (1 complete, 1 incomplete, 1 missing, 1 skipped); "
        "1,180 calls planned: 100 scored, 5 failed, 1,075 not run."
    ) in text
    assert "Nothing was to be evaluated." in outcome_page(outcome()).markdown()


@pytest.mark.parametrize(
    ("draft", "made", "expected"),
    [
        (
            True,
            run(skill="new"),
            "- new: there is no lower version to compare with; next: merge, nothing is in the way",
        ),
        (
            True,
            nothing(status="missing"),
            "- a: nothing was measured; next: run the missing calls of m: re-run the jobs",
        ),
        (False, nothing(status="missing"), "- a: nothing was measured; next: run the missing calls of m: re-run the"),
    ],
)
def test_component_without_verdict_has_a_next_step(draft: bool, made: RunOutcome, expected: str) -> None:
    assert expected in outcome_page(outcome(made).model_copy(update={"draft": draft})).markdown()


@cache
def compared(skill: str, *scores: float, fields_each: int = 40) -> tuple[list[RunOutcome], ComparisonResult]:
    """Return the runs and comparison of a component whose models scored 0.9 before and now have these scores."""
    names = [f"case-{at:02d}" for at in range(30)]
    fields = {f"contract.parties[].field-{at:02d}": dict.fromkeys(names, (2, 2)) for at in range(fields_each)}
    fallen = {path: dict.fromkeys(names, (0, 2)) for path in fields}
    pairs, runs = [], []
    for at, score in enumerate(scores):
        before = {name: [0.9, 0.89] for name in names}
        after = {name: [score - 0.005 + 0.01 * (place % 3 - 1)] * 2 for place, name in enumerate(names)}
        of_model = {"skill": skill, "model_id": f"vendor/model-{at}"}
        pairs.append(
            Pair(
                baseline=a_record(before, fields=fields, run_id=f"{skill}-old-{at}", **of_model),
                candidate=a_record(
                    after, fields=fallen if score < 0.9 else fields, run_id=f"{skill}-new-{at}", **of_model
                ),
            )
        )
        runs.append(run(run_id=f"{skill}-new-{at}", **of_model))
    rules = some_rules(skill=skill)
    return runs, compare_records(pairs, rules)


def test_comment_has_conclusions_first_and_collapses_figures() -> None:
    better, one = compared("better", 0.9, 0.9)
    worse, other = compared("worse", 0.9, 0.2)
    lost = [nothing(status="missing", skill=skill) for skill in ("lost", "better")]
    made = outcome(*better, *worse, run(skill="new", run_id="x"), *lost)
    other = other.model_copy(update={"ship": "to ship: 1.0.0 with vendor/model-0"})
    page = outcome_page(made.model_copy(update={"verdicts": [one, other]})).markdown()
    assert [line for line in page.splitlines() if line[:3] in ("- ▼", "- !", "- =", "- –")] == [
        "- ▼ regressed, worse than the recorded version: worse with vendor/model-1",
        "- ! not measured in full, so there is no verdict: lost with m, better with m",
        "- = unchanged, no drop beyond the tolerance (0.05): "
        "better with vendor/model-0, better with vendor/model-1, worse with vendor/model-0",
        "- – no lower version is recorded: new with m",
    ]
    parts = (
        "▼ worse 1.0.0: regressed against 1.0.0 on these 30 cases (vendor/model-1, the worst of 2 models)",
        "lost: fields",
        "how sure: ",
        "to ship: 1.0.0 with vendor/model-0",
        "next: look at field",
        "<details>",
        "<summary>Unchanged",
        "= better 1.0.0: unchanged",
        "that `ci collect` prints; otherwise nothing is in the way",
        "<summary>Every run",
    )
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page[: places[4]].count("\n") < 24
    assert page[: places[5]].count("\n") <= 60
    assert page.count("<details>") == page.count("</details>")


def test_unreadable_run_has_no_missing_calls() -> None:
    runs, verdict = compared("a", 0.2)
    for failed, missing in (({"unparseable": 60}, False), ({"unparseable": 59, "timeout": 1}, True)):
        one = run(status="incomplete", scored=0, failed=failed)
        made = outcome(one), outcome(*runs, one).model_copy(update={"verdicts": [verdict]})
        assert ["next: run the missing calls" in outcome_page(each).markdown() for each in made] == [missing] * 2


def test_long_lists_of_runs_and_fields_are_cut_with_a_count() -> None:
    runs, verdict = compared("a", *[0.2] * 12, fields_each=1)
    page = outcome_page(outcome(*runs).model_copy(update={"verdicts": [verdict]})).markdown()
    assert "a with vendor/model-9 and 2 more\n" in page
    runs, verdict = compared("receipts", *[0.2] * 8)
    page = outcome_page(outcome(*runs).model_copy(update={"verdicts": [verdict]})).markdown()
    assert len(page) < 60_000
    assert "… and 30 more." in page
    text = outcome_page(outcome(*[run()] * 305)).markdown()
    assert len(read_page(text).tables[0]) == 301
    assert "… and 5 more." in text


def test_external_names_are_no_mark_up(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        figures = FIGURES.model_copy(update={"skill_version": text})
        one = run(skill=text, model_id=text, reason=text, primary_metric=text, figures=figures)
        made = outcome(one, run(failed={text: 1}), reason=text)
        page = read_page(outcome_page(made).markdown())
        assert page.mark_up == ["h2", "ul", "<details><summary>Every run</summary>\n", "</details>\n"], text
        assert [[len(cells) for cells in table] for table in page.tables] == [[10, 10, 10]], text
        assert all(character.isprintable() for code in page.code for character in code), text
        print_page("text", json=dict, page=partial(outcome_page, made))
        printed = capsys.readouterr().out
        assert all(character.isprintable() or character == "\n" for character in printed), text


def test_run_in_a_pipe_is_one_uncut_line(capsys: pytest.CaptureFixture[str]) -> None:
    name, why = "a-component-with-a-long-name" * 3, "nothing arrived of " + "a-job" * 20
    made = outcome(nothing(status="missing", skill=name, reason=why))
    print_page("text", json=dict, page=partial(outcome_page, made))
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith(name))
    assert line.rstrip().endswith(why)
