"""The report of a run: external names stay text on a terminal and in Markdown."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from skill_evaluator.display.pages import print_pieces, terminal_pieces, unfold
from skill_evaluator.evaluation.runs import Finished
from skill_evaluator.library.components import Component
from skill_evaluator.reports.evaluation import report_page

from tests.support.components import FAILED, NOT_RUN, REFUSED, case, component, finished, record

HOSTILE = ("[bold]loud[/bold]", "[/]", "a|b", "`tick`", "two\nlines", "\x1b[31mred", "list[].leaf")
TRUTH = dict.fromkeys(HOSTILE, 1)


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in HOSTILE}}
    return component(tmp_path_factory.mktemp("library"), schema=schema)


def scored(skill: Component, *outcomes: str) -> Finished:
    return finished(record(skill, [(case("a", TRUTH), outcomes), (case("b", TRUTH), outcomes)]))


def text(skill: Component, *outcomes: str) -> str:
    console = Console(file=io.StringIO(), width=110, force_terminal=True, color_system="truecolor")
    print_pieces(terminal_pieces(unfold(report_page(scored(skill, *outcomes)).blocks)), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_field_name_with_markup_is_shown_as_text(skill: Component) -> None:
    shown = text(skill, "{}", "{}")
    assert "\x1b[31m" not in shown
    for name in ("[bold]loud[/bold]", "[/]", "a|b", "`tick`"):
        assert name in shown
    page = report_page(scored(skill, "{}", "{}")).markdown()
    table = page.rpartition("| weakest field |")[2].splitlines()
    assert {line.replace("\\|", "").count("|") for line in table if line.startswith("|")} == {9}
    assert "| `[bold]loud[/bold]` |" in page
    assert "\x1b" not in page


def test_failures_are_counted_by_kind_and_reason(skill: Component, tmp_path: Path) -> None:
    page = report_page(scored(skill, "{}", "prose", REFUSED, FAILED, NOT_RUN)).markdown()
    assert "2 not_run, 2 provider_error, 2 refused, 2 unparseable" in page
    assert "server_error 2" in page
    assert "INCOMPLETE: completion 60%" in page
    skill = component(tmp_path)
    run = record(skill, [(case("a", {"shop": "A", "total": 1}), ['{"shop": "A", "total": 1}'] * 2)])
    page = report_page(finished(run)).markdown()
    assert "weakest" not in page
    assert "failures: none" in page
    assert "contract" not in page
    assert "top-level keys" not in page
    assert "(pass^k): 1: 1.000, 2: 1.000" in page
    assert "INCOMPLETE" not in page


def test_weakest_fields_and_violated_rules_are_listed(tmp_path: Path) -> None:
    skill = component(tmp_path)
    truth = {"shop": "A", "total": 1}
    right, wrong = '{"shop": "A", "total": 1}', '{"shop": "A", "total": 2}'
    outcomes = [[right, right], [wrong, wrong], [wrong, wrong], [right, wrong], [FAILED, right]]
    run = record(skill, [(case(f"c{index}", truth), answers) for index, answers in enumerate(outcomes)])
    done = finished(run)
    assert "| 1 right · 2 wrong · 1 flaky · 1 unscored |" in report_page(done).markdown()
    old = {path: field.model_copy(update={"profile": None}) for path, field in run.per_field.items()}
    before = finished(run.model_copy(update={"per_field": old}))
    assert "| 0.875 | – |" in report_page(before).markdown()
    skill = component(tmp_path)
    renamed, mark_up = '{"vendor": "A", "total": 1}', '{"shop": "A", "total": "[red]`|"}'
    run = record(skill, [(case("a", {"shop": "A", "total": 1}), [renamed, renamed, mark_up])])
    page = report_page(finished(run)).markdown()
    assert "output schema: 0.000 of 3 parsed outputs are valid, 0.000 apart from extra keys" in page
    assert "shop: required 2 (" in page
    assert 'total: type 1 ("[red]`\\|" is not of types' in page
    assert "missing top-level keys: shop 2" in page
    assert "extra top-level keys: vendor 2" in page
