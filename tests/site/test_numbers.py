"""Tables of the site: each number is the record's figure that the column title names."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import built_site, site_page, words

pytest.importorskip("vl_convert")
COMPONENT = f"components/{SKILL}.html"
CASES = {f"case-{at}": [1.0, 0.9] for at in range(5)}
WORSE = {name: [0.5, 0.6] for name in CASES}
FIELD = {"compare": "category", "accuracy": 0.7, "n": 10, "right": 7, "wrong": 2, "missing": 1, "extra": 4}
CONFUSION = {"A": {"A": 5, "B": 1}, "B": {"B": 2, "C": 2}}
SPREAD = {"p5": 0.11, "p25": 0.22, "p50": 0.33, "p75": 0.44, "p95": 0.55}


def figures(mean: float) -> dict[str, Any]:
    """Return different figures, so that a wrong column is noticed."""
    score = {"mean": mean, "strict_mean": mean, "stdev": 0.1, "n": 10, "n_cases": 5, "ci95": (mean - 0.2, mean + 0.01)}
    field = {**FIELD, "stability": 0.65, "profile": {"stable_right": 3, "stable_wrong": 1, "flaky": 2}}
    return {
        "accuracy": {"field_level_f1": score},
        "reproducibility": {"pairwise_exact_match": {**score, "mean": 0.77, "strict_mean": 0.77}},
        "planned": 12,
        "coverage": 10 / 12,
        "failures": {"timeout": 2},
        "tokens": {"input": 50, "output": 620},
        "cost_usd": 0.25,
        "latency_s": {"p50": 1.5, "p95": 9.25},
        "calls": {"latency_s": SPREAD, "cost_usd": SPREAD},
        "per_array": {"rows": {"stability": 0.85, "n_cases": 5, "varied": 2, "widest": 3}},
        "per_field": {"title": {**field, "confusion": CONFUSION, "macro_f1": 0.61}, "rows[].name": field},
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a component whose newest version scored lower with one of its two models."""
    library = Library(tmp_path_factory.mktemp("numbers"))
    keep(library, a_run("1.0.0", 1, CASES, **figures(0.95)), a_run("1.1.0", 2, WORSE, **figures(0.55)))
    keep(library, a_run("1.1.0", 3, CASES, model_id="n", **figures(0.85)))
    library.settings(site={"components": {SKILL: {"documents": True}}})
    return built_site(library)


@pytest.mark.parametrize(
    ("place", "caption", "row"),
    [
        (
            "index.html",
            "Components beside models",
            f"{SKILL} 1.1.0 m ? inconclusive -0.400 since 1.0.0 0.550 0.302 to 0.753 – 25.00 1.50 2026-01-02",
        ),
        (COMPONENT, "Models, the best first", "1 = n 1.1.0 0.950 0.522 to 0.973 – first version 25.00"),
        (COMPONENT, "More of each model", "n – 1.50 2026-01-03"),
        (COMPONENT, "Every version of every model", "1.0.0 m 0.950 0.750 to 0.960 first version – 2026-01-01"),
        (COMPONENT, "Output tokens, cost and latency", "1.0.0 m 62.00 25.00 1.50 2026-01-01"),
        (COMPONENT, "Fields beside models", "title 3 right · 1 wrong · 2 flaky 3 right · 1 wrong · 2 flaky"),
        (COMPONENT, "Values of each field", "title m category 0.700 10 7 2 1 4 0.650"),
        (COMPONENT, "The figures: latency", "m 1.1.0 1.50 0.11 0.22 0.44 0.55"),
        (COMPONENT, "The figures: cost", "m 1.1.0 25.00 110.00 220.00 440.00 550.00"),
        (COMPONENT, "Failures", "m timeout 166.7"),
        (
            COMPONENT,
            "Values in arrays",
            "rows m rows · m: 7 right rows · m: 2 wrong rows · m: 1 missing rows · m: 4 extra 14 7 2 1 4",
        ),
        (COMPONENT, "Lengths of arrays", "rows m 0.850 2 of 5 3"),
        (COMPONENT, "title, m: macro F1 0.610", "A 5 1 0"),
        (
            f"verdicts/{SKILL}/1.1.0.html",
            "Figures of this version",
            "m 0.550 0.350 to 0.560 0.833 20260102T080000Z-abc002-m",
        ),
    ],
)
def test_table_row_has_the_figures_of_its_record(site: Path, place: str, caption: str, row: str) -> None:
    table = site_page(site, place).find("caption", string=caption).parent
    assert words(table.select_one("tbody tr")) == row


def test_verdict_page_has_the_change_and_its_evidence(site: Path) -> None:
    page = site_page(site, f"verdicts/{SKILL}/1.1.0.html")
    change = "field_level_f1 -0.400 on 5 cases (95 % confidence interval -0.631 to -0.169, adjusted p-value 0.001)"
    assert words(page.find(class_="figures")) == f"How sure: since 1.0.0: {change}"
