"""The state of a component on the overview: verdicts with their baseline, evidence and next step."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import built_site, site_page, states, words

RIGHT = {f"case-{at}": [0.9, 0.95] for at in range(12)}
WORSE = {name: [0.2, 0.25] for name in RIGHT}
WORST = {name: [0.0, 0.05] for name in RIGHT}
BETTER = {name: [1.0, 1.0] for name in RIGHT}


def state(library: Library, code: int = 0) -> Any:
    return site_page(built_site(library, code), "index.html").find(class_="state")


def test_regressed_newest_version_is_an_alarm_against_one_baseline(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, RIGHT), a_run("1.2.0", 3, WORSE))
    line = state(library)
    assert "regressed" in line["class"]
    assert words(line.p).startswith(f"{SKILL} 1.2.0 · to ship: 1.1.0 with m · ▼ regressed since 1.1.0")
    where, sure, following = (words(answer) for answer in line.find_all("dd"))
    assert where == "cases case-0 , case-1 , case-10 and 9 more with m since 1.1.0"
    assert sure.startswith("since 1.1.0: field_level_f1 -0.700 on 12 cases (95 % confidence interval -")
    assert sure.endswith(", adjusted p-value <0.001)")
    assert following == "look at case-0 and the comparison"
    assert [link["href"] for link in line.find_all("dd")[2].find_all("a")] == [
        f"cases/{SKILL}/case-0.html",
        f"compare/{SKILL}/1.2.0.html",
    ]


def test_state_is_about_the_model_to_ship_if_no_model_lost(tmp_path: Path) -> None:
    library = Library(tmp_path)
    for day, (model, scores) in enumerate({"m": RIGHT, "n": WORSE}.items()):
        keep(library, a_run("1.0.0", 1 + day, scores, model_id=model), a_run("1.1.0", 5 + day, scores, model_id=model))
    where, _, following = (words(answer) for answer in state(library).find_all("dd"))
    assert where == "nothing lost with m since 1.0.0"
    assert following.startswith("accept it as the baseline of later versions: skill-evaluator accept")


def test_next_step_on_the_overview_equals_the_terminal(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, RIGHT))
    assert library.call("accept", SKILL, "1.1.0", "--reason", "good", "--by", "A Reader").code == 0
    following = words(state(library).find_all("dd")[2])
    assert following == f"change the prompt and compare it with this run: skill-evaluator try {SKILL}"
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.2.0"))
    following = words(state(library).find_all("dd")[2])
    assert following == f"measure the version on disk: skill-evaluator evaluate {SKILL}"


def test_inconclusive_version_links_to_the_case_that_broke(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, RIGHT | {"case-3": [0.6, 0.62]}))
    line = state(library)
    assert "? inconclusive since 1.0.0" in words(line.p)
    assert words(line.find_all("dd")[2]) == "look at case-3 and the comparison"


def test_fixed_regression_is_below_the_newest_version(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WORSE), a_run("1.2.0", 3, RIGHT))
    line = state(library)
    assert "regressed" not in line["class"]
    assert words(line.p) == f"{SKILL} 1.2.0 · to ship: 1.2.0 with m · ▲ improved since 1.1.0, unchanged since 1.0.0"
    past = site_page(tmp_path / "site", "index.html").find(class_="past")
    assert words(past).startswith(f"{SKILL} 1.1.0 had regressed since 1.0.0 with m (")
    assert words(past).endswith("; fixed in 1.2.0")
    row = site_page(tmp_path / "site", "index.html").select_one("table.overview tbody tr")
    assert row["data-verdict"].split("\n") == ["unchanged", "improved"]
    keep(library, a_run("1.3.0", 4, BETTER))
    assert "▲ improved since 1.0.0" in words(state(library).p)


@pytest.mark.parametrize(
    ("newest", "verdicts", "line", "ship"),
    [
        (
            WORSE,
            "▼ regressed since 1.0.0",
            "▼ regressed m 1.2.0 of",
            "to ship: 1.0.0 with m (1.2.0: regressed since 1.0.0 with m)",
        ),
        (
            RIGHT,
            "▲ improved since 1.1.0 = unchanged since 1.0.0",
            "▲ improved m 1.2.0 since 1.1.0 of",
            "to ship: 1.2.0 with m (improved against 1.1.0 with m; unchanged since 1.0.0)",
        ),
    ],
)
def test_verdict_names_the_baseline_that_it_is_against(
    newest: dict[str, list[float]], verdicts: str, line: str, ship: str, tmp_path: Path
) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WORST), a_run("1.2.0", 3, newest))
    assert library.call("accept", SKILL, "1.0.0", "--reason", "good", "--by", "A Reader").code == 0
    site = built_site(library)
    heading = site_page(site, f"verdicts/{SKILL}/1.2.0.html").select_one("section.card h2")
    assert words(heading) == f"1.2.0 with m {verdicts}"
    advice = words(site_page(site, f"verdicts/{SKILL}/1.2.0.html").select_one(".advice"))
    assert advice.startswith(ship)
    change = site_page(site, "changes.html").select_one("li.change")
    assert words(change).startswith(line)
    assert words(change.select_one(".figures")).startswith("since 1.0.0: ")


@pytest.mark.parametrize(
    ("usable", "alarm", "reason"), [(0.0, True, "could not be measured"), (None, False, "not finished")]
)
def test_unreadable_outputs_are_an_alarm_but_unfinished_run_is_not(
    usable: float | None, alarm: bool, reason: str, tmp_path: Path
) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WORSE, complete=False, usable=usable))
    line = state(library)
    assert ("regressed" in line["class"]) == alarm
    assert f"1.1.0 with m: {reason}" in words(line)


def test_pages_name_the_same_version_to_ship_as_history(tmp_path: Path) -> None:
    library = Library(tmp_path)
    m = [a_run(f"1.{at}.0", at + 1, cases) for at, cases in enumerate((RIGHT, RIGHT, WORSE, WORST))]
    keep(library, *m, *(a_run(f"1.{at}.0", at + 6, BETTER, model_id="n") for at in range(4)))
    site = built_site(library)
    ship = words(site_page(site, f"components/{SKILL}.html").find(class_="advice"))
    assert ship.startswith("to ship: 1.1.0 with n (1.3.0: regressed against 1.2.0 with m")
    assert "1.3.0 · to ship: 1.1.0 with n" in words(states(site)[SKILL])
    assert all(ship in library.call(*words).out for words in (("history", SKILL), ("leaderboard",)))
    assert "skill-evaluator explain" not in "".join(path.read_text() for path in (site / "compare").rglob("*.html"))


def test_changes_name_the_worst_verdict_since_the_first_version(tmp_path: Path) -> None:
    library = Library(tmp_path)
    unsure = {name: [0.92 if at else 0.6, 0.9] for at, name in enumerate(RIGHT)}
    keep(library, *(a_run(f"1.{at}.0", at + 1, cases) for at, cases in enumerate((RIGHT, BETTER, unsure))))
    keep(library, *(a_run(f"1.{at}.0", at + 6, cases, model_id="n") for at, cases in enumerate((WORSE, RIGHT, RIGHT))))
    page = site_page(built_site(library), "changes.html")
    assert "inconclusive since 1.0.0" in words(page.find(class_="change-of").find("p", recursive=False))


def test_banner_and_terminal_name_every_model_of_a_verdict(tmp_path: Path) -> None:
    library = Library(tmp_path)
    middle = {name: [0.6, 0.65] for name in RIGHT}
    keep(library, *(a_run(f"1.{at}.0", at + 1, cases) for at, cases in enumerate((RIGHT, RIGHT, WORSE))))
    of_n = (a_run(f"1.{at}.0", at + 6, cases, model_id="n") for at, cases in enumerate((BETTER, RIGHT, middle)))
    keep(library, *of_n)
    assert words(state(library).p).endswith("▼ regressed since 1.1.0, regressed since 1.0.0")
    assert "regressed since 1.0.0 with m, n" in library.call("history", SKILL).out


def test_compare_names_the_same_version_to_ship_as_history(tmp_path: Path) -> None:
    library = Library(tmp_path)
    for model, versions in {"m": (RIGHT, WORSE, RIGHT), "n": (RIGHT, RIGHT, BETTER)}.items():
        keep(library, *(a_run(f"1.{at}.0", at + 1, cases, model_id=model) for at, cases in enumerate(versions)))
    (ship,) = (line for line in library.call("compare", SKILL).out.splitlines() if line.startswith("to ship: 1.2.0"))
    assert all(ship in library.call(*command).out for command in (("history", SKILL), ("leaderboard", SKILL)))
