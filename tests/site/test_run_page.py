"""The page of a run: every answer once, failures first, only where answers may be shown, and nothing foreign runs."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from skill_evaluator.site.run import _BEGINNING

from tests.site.conftest import HOSTILE, serious
from tests.support.chat_server import notice
from tests.support.library import CASES, SKILL, Library
from tests.support.sites import build_undrawn, contents, site_data, watched

pytest.importorskip("vl_convert")
PUBLISHED = {"site": {"components": {SKILL: {"documents": True}}}}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Answers that are right, wrong, no JSON and long; its site has them."""
    library = Library(tmp_path_factory.mktemp("measured"))
    right = {(case_id, index): notice(case_id) for case_id in CASES for index in range(3)}
    wrong = {("alpha", 1): json.dumps({"title": "alpha", "year": 1999}), ("beta", 0): f"No. {'x' * 500} needle"}
    library.record_answers(right | wrong)
    assert library.evaluate_here("-n", "3").code == 0
    library.settings(**PUBLISHED)
    build_undrawn(library)
    return library


def run_of(library: Library) -> tuple[Any, Any]:
    """The rows and the texts of its only run."""
    (run,) = site_data(library.root / "site", f"cases/{SKILL}")["runs"]
    place = f"runs/{SKILL}/{run['run']}"
    return tuple(site_data(library.root / "site", f"{place}/{part}") for part in ("rows", "texts"))


@pytest.mark.process
def test_every_answer_is_there_once_the_worst_first_with_the_score_of_the_record(measured: Library) -> None:
    run, texts = run_of(measured)
    (record,) = measured.records()
    kept = {case["case_id"]: case for case in record["per_case"]}
    assert sum(row["times"] for row in run["rows"]) == record["planned"] == 9
    for row in run["rows"]:
        first = int(row["replicates"][0])
        assert row["score"] == kept[row["case"]]["replicates"][record["primary_metric"]][first]
        assert row["outcome"] == kept[row["case"]]["outcomes"][first]
    told = [(row["case"], row["outcome"], row["score"], row["off"]) for row in run["rows"][:3]]
    assert told[:2] == [
        ("beta", "unparseable", None, []),
        ("alpha", "scored", 0.5, [["year", "year", "wrong", "2024", "1999"]]),
    ]
    assert told[2][2:] == (1.0, [])
    assert texts[0] == f"No. {'x' * 500} needle"
    assert (run["rows"][0]["text"], run["rows"][0]["length"]) == (texts[0][:_BEGINNING], len(texts[0]))


@pytest.mark.process
def test_no_answer_stays_on_a_site_that_may_not_show_it(measured: Library, tmp_path: Path) -> None:
    library = measured.copy(tmp_path)
    assert any("/runs/" in name for name in contents(library.root / "site"))
    library.settings()
    everything = contents(build_undrawn(library))
    assert not [name for name in everything if "/runs/" in name]
    assert b"needle" not in b"".join(everything.values())
    assert site_data(library.root / "site", f"cases/{SKILL}")["runs"] == []


@pytest.mark.process
def test_a_run_without_its_folder_has_no_page(measured: Library, tmp_path: Path) -> None:
    library = measured.copy(tmp_path)
    (library.run_folder() / "replicates.jsonl").unlink()
    assert not [name for name in contents(build_undrawn(library)) if "/runs/" in name]


@pytest.mark.process
def test_an_answer_to_a_case_that_is_gone_says_so_and_a_new_build_follows_a_change(
    measured: Library, tmp_path: Path
) -> None:
    library = measured.copy(tmp_path)
    (library.root / f"fixtures/{SKILL}/cases/alpha").rename(tmp_path / "gone")
    build_undrawn(library)
    run, texts = run_of(library)
    assert run["remarks"] == ["alpha: no longer among the fixtures."]
    assert {row["case"] for row in run["rows"]} == {"beta", "gamma"}
    assert "1999" not in json.dumps([run["rows"], texts])


@pytest.mark.process
def test_what_has_no_room_is_cut_at_the_end_and_counted(measured: Library, tmp_path: Path) -> None:
    library = measured.copy(tmp_path)
    for path in (library.root / "site/data/runs").rglob("*.js"):
        path.unlink()
    with patch("skill_evaluator.site.run._ROWS", 700), patch("skill_evaluator.site.run._TEXTS", 400):
        build_undrawn(library)
    run, texts = run_of(library)
    assert 0 < len(run["rows"]) == len(texts) < 5
    assert len(run["rows"]) + run["left"] == 5
    assert run["rows"][0]["outcome"] == "unparseable"
    assert len(texts[0]) == 400 // len(texts) < run["rows"][0]["length"]


def small(root: Path) -> str:
    """The address of the newest run of the model that is more often wrong."""
    runs = site_data(root / "site", "cases/receipts")["runs"]
    return next(f"run.html#component=receipts&run={run['run']}" for run in runs if run["model"] == "example-small")


@pytest.mark.browser
def test_from_the_component_to_the_worst_answer_and_on_to_its_leaf(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open("components/receipts.html")
        page.locator("#cases").get_by_role("link", name="example-small 1.2.0").click()
        rows = page.get_by_role("table", name="Answers of this run").locator("tbody tr")
        rows.first.wait_for()
        assert "unparseable: prose" in rows.first.inner_text()
        page.get_by_label("Field that differs").select_option("total")
        scores = [float(text) for text in rows.locator("td:nth-child(3)").all_inner_texts()]
        assert scores == sorted(scores)
        assert 0 < len(scores) < 22
        rows.first.get_by_role("link", name="total").click()
        page.locator("tr.sought").first.wait_for()
        assert page.get_by_label("Model", exact=True).input_value() == "example-small"
        page.get_by_role("link", name="Every answer of this run").first.click()
        page.get_by_role("heading", name="Every answer of example-small to receipts 1.2.0").wait_for()
        assert watch.errors == []


@pytest.mark.browser
def test_what_is_sought_and_chosen_is_in_the_address_and_comes_back_from_it(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open(small(root))
        heads = page.locator("table.answered thead th")
        every = page.locator("table.answered tbody tr").count()
        page.get_by_label("Show").select_option("those not right")
        page.get_by_text("Columns", exact=True).click()
        page.get_by_label("Answer", exact=True).uncheck()
        page.get_by_label("exact_match").check()
        before = page.locator("table.answered tbody tr").count()
        page.get_by_label("Search in the answers").fill("KESUMA")
        others = page.locator("table.answered tbody tr").filter(has_not_text="service-charge")
        others.first.wait_for(state="detached")
        few = page.locator("table.answered tbody tr").count()
        assert 0 < few < before < every
        assert heads.all_inner_texts()[0].startswith("Case")
        assert "Answer" not in heads.all_inner_texts()
        assert "exact_match" in heads.all_inner_texts()
        page = watch.open(page.url.removeprefix(watch.root))
        assert page.locator("table.answered tbody tr").count() == few
        assert "exact_match" in heads.all_inner_texts()
        page.get_by_label("Search in the answers").fill("nobody said this")
        page.get_by_text("No such answer.").wait_for()
        assert watch.errors == []


@pytest.mark.browser
def test_a_run_that_is_not_here_or_may_not_be_shown_is_said_to_be_so(browser: Any, root: Path) -> None:
    for site, address, words in (
        ("site", "run.html", "names no run"),
        ("site", "run.html#component=x&run=y", "nothing recorded of 'x'"),
        ("site", "run.html#component=receipts&run=../../../cases/receipts", "No answers of a run '../../../cases"),
        ("site", "run.html#component=receipts&run=__proto__", "No answers of a run"),
        ("public", small(root), "they are private"),
    ):
        with watched(browser, f"file://{root}/{site}/") as watch:
            assert words in watch.open(address).inner_text("main"), address
            assert watch.errors == []


@pytest.mark.browser
@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious_and_nothing_scrolls_to_the_side(
    browser: Any, root: Path, scheme: str, width: int
) -> None:
    view = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with watched(browser, f"file://{root}/site/", **view) as watch:
        page = watch.open(f"{small(root)}&q=total")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (watch.errors, watch.left) == ([], [])
        assert serious(page) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_answers_and_names_are_text_and_a_long_one_unfolds(browser: Any, tmp_path: Path, width: int) -> None:
    library = Library(tmp_path)
    case_id = "a <img src=x onerror=ran=4> \u202eb"
    library.write(f"fixtures/{SKILL}/cases/{case_id}/document.md", "A notice.")
    library.write(f"fixtures/{SKILL}/cases/{case_id}/ground_truth.json", {"title": HOSTILE, "year": 1})
    schema = json.loads((library.component / "schema.json").read_text())
    library.write(f"components/{SKILL}/schema.json", {**schema, "additionalProperties": True})
    answer = {"title": HOSTILE[::-1], "year": 2, HOSTILE: ["x" * 5000], "__proto__": 1}
    library.record_answers({(case_id, 0): json.dumps(answer), (case_id, 1): f"{'y' * 4000}{HOSTILE}"})
    library.settings(**PUBLISHED)
    for other in CASES:
        (tmp_path / "fixtures" / SKILL / "cases" / other).rename(tmp_path / other)
    library.evaluate_here()
    assert library.call("site", "build", "--out", "site").code == 0
    with watched(browser, f"file://{tmp_path}/site/", viewport={"width": width, "height": 800}) as watch:
        page = watch.open(f"components/{SKILL}.html")
        page.locator("#cases p").get_by_role("link").first.click()
        page.locator("table.answered").wait_for()
        page.get_by_label("Search in the answers").fill("<script>window.ran=2")
        page.locator("table.answered mark").first.wait_for()
        page.locator("table.answered summary").last.click()
        page.locator("table.answered pre").wait_for()
        text = page.inner_text("main")
        assert "<script>window.ran=2</script>**bold** [x](javascript:ran=3) \\u202egnp \\u001b[31m" in text
        assert page.evaluate("window.ran") is None
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (watch.errors, watch.left) == ([], [])
