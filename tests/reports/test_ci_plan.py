"""The report of a CI plan."""

from functools import partial
from typing import Any

import pytest
from skill_evaluator.ci.plan import Decisions, OnModels, Plan, PlannedJob, PlannedRun
from skill_evaluator.display.pages import print_page
from skill_evaluator.library.versions import Problem
from skill_evaluator.reports.ci import plan_page

from tests.ci.test_plan import ENTRY, PLAN
from tests.support.markdown import read_page
from tests.support.odd_texts import HOSTILE


def entry(
    skill: str, model: str, cost: float | None = 0.5, shard: str | None = None, cap: float | None = None
) -> PlannedRun:
    asked = {"replicates": 100, "cases": {f"case-{number}": "d" for number in range(6)}, "shard": shard}
    paid = {"cost_upper_usd": cost, "max_cost_usd": cap}
    return ENTRY.model_copy(update={"id": f"{skill}@{model}", "skill": skill, "model_id": model, **asked, **paid})


def plan(*entries: PlannedRun, dry_run: bool = False, **changed: Any) -> Plan:
    by_skill = {one.skill: sorted({other.model_id for other in entries if other.skill == one.skill}) for one in entries}
    chosen = [OnModels(skill=skill, models=models, reason="MINOR 1.0.0 → 1.1.0") for skill, models in by_skill.items()]
    jobs = [PlannedJob(id=one.id, runs=[one.id], environment="e", keys=[]) for one in entries]
    decisions = Decisions(chosen=chosen, skipped=[], faults=[]).model_copy(update=changed)
    update = {"runs": list(entries), "jobs": jobs, "decisions": decisions, "dry_run": dry_run}
    return PLAN.model_copy(update=update)


def test_chosen_runs_have_jobs_calls_and_cost() -> None:
    made = plan(
        entry("a", "m", shard="1/2"), entry("a", "m", shard="2/2"), entry("a", "n"), entry("b", "m"), untouched=3
    )
    page = read_page(plan_page(made).markdown())
    assert page.words[1] == "4 jobs, 2,400 calls, $2.00 at most; 3 components untouched."
    assert page.tables == [
        [
            ["component", "models", "jobs", "calls", "cost at most", "why"],
            ["a", "m, n", "3", "1,800", "$1.50", "MINOR 1.0.0 → 1.1.0"],
            ["b", "m", "1", "600", "$0.50", "MINOR 1.0.0 → 1.1.0"],
        ]
    ]
    for made, words in (
        (plan(), "Nothing to evaluate."),
        (plan(untouched=1), "Nothing to evaluate; 1 component untouched."),
        (plan(entry("a", "m", cost=None)), "1 job, 600 calls, unknown cost at most."),
        (plan(entry("a", "m", cap=0.25), entry("a", "n", cap=0.1)), "$1.00 at most, capped at $0.35."),
        (plan(entry("a", "m"), dry_run=True), "$0.50 at most, as a dry run (no call is made)."),
    ):
        assert read_page(plan_page(made).markdown()).words[1].endswith(words)


def test_skipped_and_faulty_components_have_a_reason() -> None:
    skipped = [OnModels(skill="a", models=["m", "n"], reason="PATCH since the recorded 1.0.0")]
    faults = [Problem(file="components/b/prompt.md", line=3, message="raise it above 1.0.0")]
    page = read_page(plan_page(plan(skipped=skipped, faults=faults)).markdown())
    assert page.tables[0][1] == ["a", "m, n", "PATCH since the recorded 1.0.0"]
    assert page.tables[1][1] == ["components/b/prompt.md:3", "raise it above 1.0.0"]
    skipped = [OnModels(skill=f"s{number}", models=["m"], reason="r") for number in range(205)]
    faults = [Problem(file="f", line=1, message="x" * 1000)]
    text = plan_page(plan(skipped=skipped, faults=faults)).markdown()
    assert len(read_page(text).tables[0]) == 201
    assert "… and 5 more." in text
    assert " … " in text
    assert "x" * 401 not in text


def test_external_names_are_no_mark_up(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        made = plan(
            entry("a", "m"),
            skipped=[OnModels(skill=text, models=[text], reason=text)],
            faults=[Problem(file=text, line=1, message=text)],
        )
        page = read_page(plan_page(made).markdown())
        assert page.mark_up == ["h2", "ul", "h3", "h3"], text
        assert [[len(row) for row in table] for table in page.tables] == [[6, 6], [3, 3], [2, 2]], text
        assert all(character.isprintable() for code in page.code for character in code), text
        print_page("text", json=dict, page=partial(plan_page, made))
        printed = capsys.readouterr().out
        assert all(character.isprintable() or character == "\n" for character in printed), text
        assert printed.count("\n") == len(printed.splitlines()) == 15, text
