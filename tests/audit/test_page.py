"""The report of an audit: first screen, tables, dashes for unknown values, and no mark-up from names."""

import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from skill_evaluator.audit.calls import AuditResults, CallTally
from skill_evaluator.audit.manifest import DrawnAudit
from skill_evaluator.audit.page import audit_page, finding_text, points, print_audit, print_audit_runs
from skill_evaluator.audit.request import AuditRunRequest
from skill_evaluator.audit.results import AuditResult, RankEntry, Regime, audit
from skill_evaluator.audit.statistics import QUADRANTS
from skill_evaluator.library.config import Settings
from skill_evaluator.providers import Configuration

from tests.audit.cubes import an_audit, cube_of, manifest
from tests.support.markdown import Page, read_page

MODELS = ("ash", "birch", "cedar", "elm")
ODD = "<img src=x onerror=alert(1)>|`](http://x)\n# title\x1b[31m[red]\u202e&\"'"


def page_of(result: AuditResult) -> Page:
    return read_page(audit_page(result).markdown("charts"))


def table(page: Page, heading: str) -> list[dict[str, str]]:
    """The first table with such a column, as rows by heading."""
    found = next(rows for rows in page.tables if heading in rows[0])
    return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


def text(result: AuditResult, capsys: pytest.CaptureFixture[str]) -> str:
    print_audit(result, "text")
    return capsys.readouterr().out


def graded(result: AuditResult, **fields: object) -> AuditResult:
    gradings = [one.grading.model_copy(update=fields) for one in result.models]
    models = [one.model_copy(update={"grading": each}) for one, each in zip(result.models, gradings, strict=True)]
    return result.model_copy(update={"models": models})


def test_first_screen_has_neutrality_before_grades_and_three_regimes(capsys: pytest.CaptureFixture[str]) -> None:
    result = an_audit()
    screen = text(result, capsys).split("\nWarnings")[0].splitlines()
    assert len(screen) <= 20
    first = ["Stability audit", "4 models × 4 scenarios × 2 benchmarks (200 questions) × 2 replicates."]
    assert screen[:2] == first
    found = result.neutrality
    assert screen[2].startswith(f"Neutrality: {found.verdict}; means {min(found.means):.2f} to ")
    assert screen[2].endswith(f"range {found.range:.2f} points. Centering changes {result.regraded} of 4 grades.")
    assert screen[5].split()[:3] == ["model", "μ", "σ"]
    quadrants = "Q1 safe default · Q2 predictable baseline · Q3 avoid · Q4 strong but scenario-fragile."
    assert quadrants in screen
    starts = [line.split(":")[0].split("(")[0].strip(" -") for line in screen[-5:]]
    assert starts == ["Thresholds of σ", "Noise", "Agentic", "Single-shot", "Cost-sensitive"]
    assert f"Noise: {result.figures.noise_floor:.2f} points within a scenario" in screen[-4]
    left_out = [f"{entry.model} {entry.reason}" for entry in result.regimes["agentic"].left_out]
    assert f"; filtered out: {left_out[0]}" in screen[-3]


def test_row_holds_the_figures_of_its_model_and_the_best_grade_is_first() -> None:
    result = an_audit()
    rows = table(page_of(result), "quadrant")
    assert sorted(row["model"] for row in rows) == list(MODELS)
    for row in rows:
        one = next(one for one in result.models if one.model == row["model"])
        low, high = one.fluctuation_ci95
        figures = (row["μ"], row["σ"], row["95 % CI of σ"])
        assert figures == (f"{one.ability:.2f}", f"{one.fluctuation:.2f}", f"{low:.2f}–{high:.2f}")
        grading = one.grading
        assert (row["grade"], row["settled"]) == (grading.grade, "settled" if grading.settled else "not settled")
        assert row["quadrant"] == QUADRANTS[grading.quadrant]
    rows = table(page_of(an_audit(models=[f"m{at}" for at in range(12)])), "quadrant")
    order = [(["AAA", "AA", "A", "BBB"].index(row["grade"]), -float(row["μ"])) for row in rows]
    assert order == sorted(order)


def test_every_table_of_the_page_holds_the_results_figures() -> None:
    result = an_audit()
    page, ash = page_of(result), result.models[0]
    (scores,) = [row for row in table(page, "strict") if row["model"] == "ash"]
    assert scores == {"model": "ash"} | {name: points(score) for name, score in ash.scenarios.items()}
    rows = {row["scenario"]: row for row in table(page, "shifts all models")}
    for effect in result.neutrality.shifts:
        row = rows[effect.scenario]
        shown = (float(row["shift"]), float(row["standard errors"]))
        assert shown == pytest.approx((effect.shift, effect.ratio), abs=0.05)
        assert row["shifts all models"] == ("yes" if effect.significant else "no")
    (figures,) = [row for row in table(page, "centered grade") if row["model"] == "ash"]
    assert (figures["noise"], figures["σ without noise"]) == (points(ash.noise), points(ash.corrected))
    assert (figures["$ per 1,000 right"], figures["latency, s"]) == (points(ash.calls.usd_per_1000_right, 4), "1.25")
    on, law = ash.benchmarks["law"], next(used for used in result.used if used.name == "law")
    assert table(page, "law")[0]["law"].startswith(f"{on.grade} {points(on.fluctuation)}")
    assert f"law: weight 0.5; 100 questions; AAA ≤ {points(law.thresholds.q25)}" in audit_page(result).markdown()


def test_headline_names_the_safe_defaults() -> None:
    headline = finding_text(an_audit())
    assert headline[0] == "ash, birch: safe default (Q1)"
    assert headline[1] == "grades and quadrants are relative to the 4 models of this audit."
    assert finding_text(graded(an_audit(), quadrant="avoid"))[0] == "No model is a safe default (Q1)"
    assert "no cohort" in finding_text(an_audit(models=("alone",)))[1]


def test_unknown_value_is_a_dash_and_json_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    alone = audit(cube_of([[50.0, 60.0, 58.0]]))
    for form in ("text", "markdown"):
        print_audit(alone, form)  # type: ignore[arg-type]
        out = capsys.readouterr().out
        assert "None" not in out, form
        assert "Thresholds of σ: none (a single model has no cohort)." in out, form
        (row,) = [line for line in out.splitlines() if re.match(r"[| `]*model-0", line)][:1]
        assert row.count("–") == 4, form  # interval, grade, settled, quadrant
    print_audit(an_audit(), "json")
    assert AuditResult.model_validate(json.loads(capsys.readouterr().out)) == an_audit()


def odd_result() -> AuditResult:
    """A result in which every text from outside is an odd one."""
    names = [f"{at}{ODD}" for at in range(4)]
    result = an_audit(models=names, scenarios=[f"s{at}{ODD}" for at in range(4)], benchmarks=[f"b{ODD}"])
    entries = [RankEntry(model=ODD, reason=ODD)]
    regime = Regime(title=ODD, note=ODD, ranked=entries, left_out=entries)
    neutrality = result.neutrality.model_copy(update={"verdict": ODD})
    texts = {"warnings": [ODD], "treatment": ODD, "regimes": {"odd": regime}, "neutrality": neutrality}
    return graded(result.model_copy(update=texts), grade=ODD, centered_grade=ODD)


def test_name_is_no_mark_up_on_a_page_and_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    plain, odd = page_of(an_audit(benchmarks=("one",))), page_of(odd_result())
    shapes = [[(len(rows), len(rows[0])) for rows in page.tables] for page in (plain, odd)]
    assert shapes[0] == shapes[1]
    shown = MarkdownIt("commonmark").enable("table").render(audit_page(odd_result()).markdown("charts"))
    assert re.findall(r"<(?:img src|a href)=\W?\w+", shown) == ['<img src="charts'] * 3
    assert not any("onerror" in word or "http" in word for word in odd.words)
    for form in ("text", "markdown", "json"):
        print_audit(odd_result(), form)  # type: ignore[arg-type]
        out = capsys.readouterr().out
        assert not {"\x1b", "\u202e"} & set(out), form
        assert "\n# title" not in out, form


def results() -> AuditResults:
    """An audit with a run that was stopped."""
    tally = CallTally(
        planned=20,
        outcomes={"scored": 9, "unparseable": 1, "refused": 2, "truncated": 1, "timeout": 2, "provider_error": 1},
        cost_usd=None,
        hit_rate=None,
        latency_s=0.25,
        served_models=(),
    )
    configuration = Configuration(models=(), settings=Settings(), kinds={}, keys={})
    audit, folder = manifest([50], 6), Path("audits/a")
    drawn = DrawnAudit(
        options=AuditRunRequest(),
        manifest=audit,
        folder=folder,
        configuration=configuration,
        benchmarks={},
        scenarios={},
    )
    stopped = {"m0": "interrupted: stopped by the user"}
    return AuditResults(drawn=drawn, tallies={"m0": tally}, stopped=stopped)


def test_columns_of_a_run_add_up_to_the_planned_calls(capsys: pytest.CaptureFixture[str]) -> None:
    print_audit_runs(results(), "text")
    head, row, _, stopped = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "model"
    assert row.split() == ["m0", "20", "9", "1", "3", "3", "4", "unknown", "0.25"]
    assert stopped == "m0 stopped: interrupted: stopped by the user"
