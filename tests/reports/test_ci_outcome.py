"""What became of a plan, for people: every run with its figures and its calls, and nothing taken for mark-up."""

import json
from functools import cache
from typing import Any

import pytest
from skill_evaluator.ci.outcome import Figures, Outcome, RunOutcome
from skill_evaluator.reports.ci import outcome_page, print_outcome
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult

from tests.support.markdown import read_page
from tests.support.odd_texts import HOSTILE
from tests.support.records import a_record
from tests.verdicts.rules import some_rules

FIGURES = Figures(skill_version="1.1.0", accuracy=0.9, ci95=(0.85, 0.95), reproducibility=0.5)


def run(**changed: Any) -> RunOutcome:
    fields: dict[str, Any] = {
        "skill": "a",
        "model_id": "m",
        "status": "complete",
        "reason": "",
        "planned": 60,
        "scored": 60,
        "failed": {},
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


def test_a_run_stands_with_its_figures_a_dash_for_what_is_not_known_and_why_it_is_incomplete() -> None:
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


def test_the_first_line_accounts_for_every_call_and_the_row_of_a_run_has_its_verdict() -> None:
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
    before = a_record(dict.fromkeys("xyz", [1.0] * 10), run_id="old", skill="a")
    after = a_record(dict.fromkeys("xyz", [0.0] * 10), run_id="r", skill="a")
    rules = some_rules({}, skill="a")
    verdict = compare_records("a", [Pair(baseline=before, candidate=after)], rules)
    page = outcome_page(outcome(run()).model_copy(update={"verdicts": [verdict]})).markdown()
    assert read_page(page).tables[-1][1][5] == "regressed"
    assert page.index("# `a`: regressed") < page.index("<summary>Every run")
    assert "## `a`: regressed on these 3 cases" in page


@cache
def compared(skill: str, *scores: float, fields_each: int = 40) -> tuple[list[RunOutcome], ComparisonResult]:
    """A component whose models had 0.9 on many documents and now these scores: what became of it, and the verdict."""
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
    return runs, compare_records(skill, pairs, rules)


def test_the_page_begins_with_what_is_worse_and_unfolds_nothing_else() -> None:
    better, one = compared("better", 0.9, 0.9)
    worse, other = compared("worse", 0.9, 0.2)
    lost = [nothing(status="missing", skill=skill) for skill in ("lost", "better")]
    made = outcome(*better, *worse, run(skill="new", run_id="x"), *lost)
    page = outcome_page(made.model_copy(update={"verdicts": [one, other]})).markdown()
    top = "\n".join(page.splitlines()[:24])  # which version is worse, where, how sure that is, which model, what to do
    for answer in (
        "## `worse`: regressed on these 30 cases",
        "lost: fields",
        "next for `worse`: `look at",
        "`vendor/model-1`",
    ):
        assert answer in top, answer
    assert [line for line in page.splitlines() if line.startswith("- ") and " on `" in line] == [
        "- ▼ **regressed**, worse than the recorded version: `worse` on `vendor/model-1`",
        "- ! **not measured** in full, so nothing is said: `lost` on `m`, `better` on `m`",
        "- = **unchanged**, no drop beyond the tolerance (0.05): "
        "`better` on `vendor/model-0`, `better` on `vendor/model-1`, `worse` on `vendor/model-0`",
        "- – no lower version is recorded to compare with: `new` on `m`",
    ]
    assert "- next for `better`: not measured in full on m, else nothing is in the way\n" in page
    assert page.index("## `worse`: regressed") < page.index("## `better`: unchanged")
    assert page.index("### ▼ `vendor/model-1`") < page.index("<details>")
    assert page.count("<details>") == page.count("</details>") == 6


def test_many_regressions_fields_and_runs_are_cut_that_is_said_and_they_fit_into_a_comment() -> None:
    runs, verdict = compared("a", *[0.2] * 12, fields_each=1)
    page = outcome_page(outcome(*runs).model_copy(update={"verdicts": [verdict]})).markdown()
    assert "`a` on `vendor/model-9`, 2 more\n" in page
    runs, verdict = compared("receipts", *[0.2] * 8)
    page = outcome_page(outcome(*runs).model_copy(update={"verdicts": [verdict]})).markdown()
    assert len(page) < 60_000
    assert "… and 30 more fields" in page
    text = outcome_page(outcome(*[run()] * 305)).markdown()
    assert len(read_page(text).tables[0]) == 301
    assert "… and 5 more." in text


def test_nothing_from_outside_leaves_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        figures = FIGURES.model_copy(update={"skill_version": text})
        one = run(skill=text, model_id=text, reason=text, primary_metric=text, figures=figures)
        made = outcome(one, run(failed={text: 1}), reason=text)
        page = read_page(outcome_page(made).markdown())
        assert page.mark_up == ["h2", "ul", "<details><summary>Every run</summary>\n", "</details>\n"], text
        assert [[len(cells) for cells in table] for table in page.tables] == [[10, 10, 10]], text
        assert all(character.isprintable() for code in page.code for character in code), text
        print_outcome(made, "text")
        printed = capsys.readouterr().out
        assert all(character.isprintable() or character == "\n" for character in printed), text
    print_outcome(outcome(run()), "json")
    assert json.loads(capsys.readouterr().out)["runs"][0]["scored"] == 60


def test_through_a_pipe_a_run_is_one_line_with_nothing_cut(capsys: pytest.CaptureFixture[str]) -> None:
    name, why = "a-component-with-a-long-name" * 3, "nothing arrived of " + "a-job" * 20
    print_outcome(outcome(nothing(status="missing", skill=name, reason=why)), "text")
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith(name))
    assert line.rstrip().endswith(why)
