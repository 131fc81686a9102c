"""An audit's table and page: every figure is the result's, what is not known is a dash, no name is mark-up."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from markdown_it import MarkdownIt
from skill_evaluator.audit.cube import cube_of_scores
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.report.page import audit_page, print_audit
from skill_evaluator.audit.report.wording import finding_words, likelihood, points
from skill_evaluator.audit.results import AuditResult, BenchmarkUsed, Beyond, ModelAudit, Regime, Thresholds
from skill_evaluator.display.safe_text import code_span, prose

from tests.support.audit_results import an_audit
from tests.support.markdown import Page, read_page
from tests.support.odd_texts import HOSTILE

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


def changed(result: AuditResult, **fields: object) -> AuditResult:
    return result.model_copy(update={"models": [one.model_copy(update=fields) for one in result.models]})


def nothing_known() -> AuditResult:
    """As little as a result can say."""
    unknown = dict.fromkeys(name for name, field in ModelAudit.model_fields.items() if not field.is_required())
    bare = changed(an_audit(models=("alone",)), **unknown, grade=None, quadrant=None)
    fields = {"noise_floor": None, "noise_ceiling": None, "replicates": None, "treatment": None}
    lists = {"regimes": {}, "warnings": []}
    neutrality = bare.neutrality.model_copy(
        update={"trend_tau": None, "trend_p": None, "friedman_p": None, "shifts": []}
    )
    used = [BenchmarkUsed(name=one.name, weight=one.weight, questions=None) for one in bare.used]
    return bare.model_copy(update={**fields, **lists, "neutrality": neutrality, "used": used})


def test_a_row_holds_the_figures_of_its_model_and_the_best_grade_is_first() -> None:
    result = an_audit()
    rows = table(page_of(result), "quadrant")
    assert sorted(row["model"] for row in rows) == list(MODELS)
    for row in rows:
        one = next(one for one in result.models if one.model == row["model"])
        assert row["ability"] == f"{one.ability:.2f} ({one.ability_ci95[0]:.2f}–{one.ability_ci95[1]:.2f})"
        assert row["fluctuation"] == f"{one.fluctuation:.2f}"
        assert (row["grade"], row["quadrant"], row["P"]) == (one.grade, one.quadrant, likelihood(one.odds))
        assert (row["worst in"], row["drop"]) == (one.worst.scenario, points(one.worst.drop))
    cost = table(page_of(result), "latency")[0]
    assert list(cost.values()) == ["ash", f"{result.models[0].usd_per_1000_right:.4f}", "1.25 s"]
    result = an_audit(models=[f"m{at}" for at in range(12)])
    rows = table(page_of(result), "quadrant")
    grades = [row["grade"] for row in rows]
    assert grades == sorted(grades, key=["AAA", "AA", "A", "BBB"].index)
    abilities = [float(row["ability"].split()[0]) for row in rows if row["grade"] == "AAA"]
    assert abilities == sorted(abilities, reverse=True)


def headline(result: AuditResult) -> str:
    return ": ".join(finding_words(result))


def test_the_headline_names_the_safe_default_and_how_sure_its_grade_is() -> None:
    sure = changed(an_audit(), grade_probability={"AAA": 0.7})
    said = headline(sure)
    assert said.startswith("ash is the safe default: ability ")
    assert "Its grade, AAA, has a probability of 0.70 over other scenarios like these and is settled." in said
    assert said.endswith("Grades and quadrants are relative to the 4 models of this audit.")
    beyond = Beyond(fluctuation_ci95=(1.0, 2.0), grade_probability={"AAA": 0.24})
    here = headline(changed(sure.model_copy(update={"resampled": "cases"}), beyond=beyond))
    assert "has a probability of 0.70 over these scenarios and is settled. Over other scenarios like these" in here
    assert "if their effects are as modelled, it has 0.24." in here
    unsure = changed(sure, grade_probability={"AAA": 0.31})
    assert "has a probability of 0.31 over other scenarios like these and is not settled" in headline(unsure)
    assert headline(changed(sure, quadrant="avoid")).startswith("No model is a safe default")
    assert "without medians" in headline(an_audit(models=("alone",)))


def test_every_table_of_the_page_holds_the_results_figures() -> None:
    result = an_audit()
    page, ash = page_of(result), result.models[0]
    (scores,) = [row for row in table(page, "strict") if row["model"] == "ash"]
    assert scores == {"model": "ash"} | {name: points(score) for name, score in ash.scenarios.items()}
    odds = {grade: likelihood(value) for grade, value in ash.grade_probability.items()}
    assert table(page, "BBB")[0] == {"model": "ash", **odds}
    shift, shown = result.neutrality.shifts[0], table(page, "beyond chance")[0]
    assert list(shown.values())[:2] == [shift.scenario, f"{shift.shift:+.2f}"]
    assert list(shown.values())[2:] == [f"{shift.p:.3f}", f"{shift.q:.3f}", "yes" if shift.significant else "no"]
    split = next(rows for rows in page.tables if "noise" in rows[0])
    (noise,) = [dict(zip(split[0], row, strict=True)) for row in split[1:] if row[0] == "ash"]
    assert (noise["noise"], noise["corrected"][:4]) == (points(ash.noise), points(ash.corrected))
    on = ash.benchmarks["law"]
    assert table(page, "law")[0]["law"].startswith(f"{on.grade} {points(on.fluctuation)}")


def test_grades_of_each_benchmark_stand_beside_those_over_all() -> None:
    """Steady over all, as its benchmarks move against each other, and on neither alone."""
    swing = np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
    by_benchmark = [[50 + 4 * swing, 50 - 4 * swing], [60 + swing, 60 + swing], [70 + 2 * swing, 70 + 2 * swing]]
    scores = np.array(by_benchmark).transpose(0, 2, 1)
    names, scenarios = ["ash", "birch", "cedar"], [f"s{at}" for at in range(6)]
    cube = cube_of_scores(names, scenarios, ["law", "logic"], scores, weights={})
    result = audit(replace(cube, questions={"law": 100, "logic": 400}))
    ash = next(model for model in result.models if model.model == "ash")
    assert (ash.grade, ash.benchmarks["law"].grade, ash.benchmarks["logic"].grade) == ("AAA", "BBB", "BBB")
    law, logic = result.used
    spreads = [model.benchmarks["law"].fluctuation for model in result.models]
    assert (law.thresholds.q25, law.thresholds.q50) == pytest.approx(np.quantile(spreads, [0.25, 0.5]))
    assert law.noise_ceiling == pytest.approx(2 * logic.noise_ceiling)
    page = audit_page(result).markdown()
    assert f"law: weight 0.5; 100 questions; grades end at {points(law.thresholds.q25)}" in page


def test_figures_of_all_models_stand_in_both_forms_and_a_regime_with_its_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cuts = Thresholds(q25=1.234, q50=2.345, q75=3.456, cuts={"AA+": 1.5})
    result = an_audit(thresholds=cuts)
    for shown in (text(result, capsys), audit_page(result).markdown()):
        assert "thresholds of the fluctuation: 1.23 · 2.35 · 3.46 (AA+ 1.50)" in shown
        assert f"medians: ability {result.medians.ability:.2f}" in shown
        assert "cohort, to which all grades are relative: 4 models" in shown
        assert f"warning: {result.warnings[0]}" in shown
        found = result.neutrality
        tests = f"trend τ {found.trend_tau:+.2f}, trend p {found.trend_p:.3f}"
        assert f"range of their means {found.range:.2f} points, {tests}" in shown
    ranked = re.findall(r"^  (\d)\. (\w+): AAA", text(result, capsys), re.MULTILINE)
    assert ranked == [("1", result.regimes["agentic"].ranked[0].model)]
    unpriced = {"cost": Regime(title="Cost first", note="no prices are known", ranked=[])}
    assert "Cost first: no prices are known\n" in text(an_audit(regimes=unpriced), capsys)


def test_charts_are_linked_beside_the_page_or_not_at_all() -> None:
    page = audit_page(an_audit()).markdown("charts")
    linked = re.findall(r"^!\[(.+)\]\(charts/([\w.-]+)\)$", page, re.MULTILINE)
    names = ["map.svg", "odds.svg", "heat.svg", "neutrality.svg", "map-logic.svg", "map-law.svg", "boxes.svg"]
    assert [file for _, file in linked] == names
    assert "charts/" not in audit_page(an_audit()).markdown()


def test_what_is_not_known_is_a_dash_and_json_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "markdown"):
        print_audit(nothing_known(), form)  # type: ignore[arg-type]
        out = capsys.readouterr().out
        assert "None" not in out, form
        assert "no thresholds; no medians" in out, form
        (row,) = [line for line in out.splitlines() if re.match(r"[| `]*alone", line)][:1]
        assert row.count("–") == 3, form  # grade, its odds, quadrant
    print_audit(an_audit(), "json")
    assert AuditResult.model_validate(json.loads(capsys.readouterr().out)) == an_audit()


def odd_result() -> AuditResult:
    """Everything that is a text is an odd one."""
    names = [f"{at}{ODD}" for at in range(4)]
    result = an_audit(models=names, scenarios=[f"s{at}{ODD}" for at in range(3)], benchmarks=[f"b{ODD}"])
    first = next(iter(result.regimes.values()))
    ranked = [one.model_copy(update={"reason": ODD}) for one in first.ranked]
    regime = first.model_copy(update={"title": ODD, "note": ODD, "ranked": ranked})
    neutrality = result.neutrality.model_copy(update={"verdict": ODD})
    texts = {"warnings": [ODD], "treatment": ODD, "regimes": {"odd": regime}, "neutrality": neutrality}
    likely = {ODD: 0.5, **{f"{at}{ODD}": 0.1 for at in range(3)}}
    return changed(result.model_copy(update=texts), grade=ODD, corrected_grade=ODD, grade_probability=likely)


def test_no_name_is_mark_up_on_a_page_or_a_control_character_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    plain, odd = page_of(an_audit(benchmarks=("one",))), page_of(odd_result())
    shapes = [[(len(rows), len(rows[0])) for rows in page.tables] for page in (plain, odd)]
    assert shapes[0] == shapes[1]
    shown = MarkdownIt("commonmark").enable("table").render(audit_page(odd_result()).markdown("charts"))
    assert re.findall(r"<(?:img src|a href)=\W?\w+", shown) == ['<img src="charts'] * 5
    assert not any("onerror" in word or "http" in word for word in odd.words)
    for form in ("text", "markdown", "json"):
        print_audit(odd_result(), form)  # type: ignore[arg-type]
        out = capsys.readouterr().out
        assert not {"\x1b", "\u202e"} & set(out), form
        assert "\n# title" not in out, form


def test_prose_is_never_mark_up_nor_code_but_where_github_would_read_more_into_it() -> None:
    for odd in HOSTILE:
        page = read_page(f"- {prose(odd)}")
        said = page.words or page.code
        whole, inside = (read_page(code_span(text)).code[0] for text in (odd, odd.strip("`")))
        assert "".join(said) in (odd, whole, inside), odd
        assert page.mark_up == ["ul"], odd
    figures = ("p <0.001 with 4 models", "$0.43 per 1,000 right", "Seed-1.6: 81.87 (80.3 to 83.2)")
    for plain in (*figures, "all of it is from mmlu_pro"):
        assert prose(plain) == plain, plain
        assert "".join(read_page(f"- {plain}").words) == plain, plain
    for meant in ("$1 and 2$", "see http://x", "www.x.org", "a :smile: b", "GH-12"):
        assert prose(meant) == f"`{meant}`", meant
