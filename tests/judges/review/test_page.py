"""The review page in Chromium: labels by keyboard, reload, and judged texts that contain scripts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.judges.review.queue import latest

from tests.judges.review.review_page import a_browser, review_page  # noqa: F401
from tests.judges.review.reviews import change, pair, queue_of, scored

pytestmark = pytest.mark.browser
PAIRS = [pair(f"p{number}") for number in range(18)]
ITEMS = [*PAIRS, change(), scored()]
READY = "body[aria-busy='false']"
HOSTILE = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'><svg onload='window.ran = 3'></svg>"
    "<a href='javascript:window.ran=4'>x</a></textarea></script>"
    "<iframe srcdoc='<script>parent.ran=5</script>'></iframe>"
)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


def press(page: Any, keys: Iterable[str]) -> None:
    """Press keys one after the other, each once the page is ready for it."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_selector(READY)


def open_item(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("#item:not([hidden])")


def labelled(page: Any) -> str:
    return str(page.inner_text("#place")).rpartition("· ")[2]


def test_twenty_items_are_labelled_by_keyboard_alone(page: Any, tmp_path: Path) -> None:
    queue = queue_of(tmp_path, *ITEMS)
    with review_page(tmp_path) as address:
        page.goto(address)
        page.keyboard.type("ada")
        page.keyboard.press("Enter")
        page.wait_for_selector("#item:not([hidden])")
        press(page, "123" * 6)
        assert labelled(page) == "18 of 20 labelled"
        assert not {"baseline", "candidate"} & set(page.inner_text("#item").lower().split())
        press(page, "37")  # factuality: A is better, high impact; tone: the same
        press(page, "2")
        page.wait_for_selector("#done:not([hidden])")
        assert labelled(page) == "20 of 20 labelled"
        page.click("#queue summary")
        page.wait_for_selector(READY)
        assert "ada: 20 labels" in page.inner_text("#lines")
    given = latest(queue.labels(queue.items()))
    assert set(given) == {item.id for item in ITEMS}
    for place, item in enumerate(PAIRS):
        label = given[item.id]["ada"]
        second = 3 - (label.first or 0)
        assert label.answers[0].answer == [str(label.first), str(second), "tie"][place % 3]
    factuality, tone = given[change().id]["ada"].answers
    assert (factuality.impact, tone.answer) == ("high", "same")
    assert given[scored().id]["ada"].answers[0].answer == "2"


def test_reload_keeps_an_incomplete_label(page: Any, tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair(), change())
    with review_page(tmp_path, "--reviewer", "ada") as address:
        open_item(page, address)
        press(page, "1")
        press(page, "1")  # the first of two questions
        press(page, "t")
        page.keyboard.type("is an estimate a fact?")
        page.reload()
        page.wait_for_selector("#item:not([hidden])")
        assert labelled(page) == "1 of 2 labelled"
        assert page.input_value("#note") == "is an estimate a fact?"
        assert page.inner_text(".step.active p").startswith("tone")
        press(page, "7")
        page.wait_for_selector("#done:not([hidden])")
        page.reload()
        page.wait_for_selector("#done:not([hidden])")
    label = latest(queue.labels(queue.items()))[change().id]["ada"]
    assert (label.answers[0].impact, label.note) == ("low", "is an estimate a fact?")


def test_judged_text_runs_no_script(page: Any, tmp_path: Path) -> None:
    item = pair(document=HOSTILE, reference=HOSTILE, outputs=(HOSTILE, f"{HOSTILE} more"))
    queue = queue_of(tmp_path, item)
    with review_page(tmp_path, "--reviewer", "ada") as address:
        open_item(page, address)
        page.wait_for_timeout(300)
        assert page.evaluate("window.ran") is None
        assert page.locator("#item script, #item img, #item svg, #item a, #item iframe").count() == 0
        assert page.locator(".text").first.inner_text() == HOSTILE
        press(page, "1")
        open_item(page, f"{address}?reviewer={HOSTILE[:60].replace('#', '')}")
        assert page.evaluate("window.ran") is None
        with pytest.raises(Exception, match="TrustedHTML"):
            page.evaluate("document.body.innerHTML = '<p>x</p>'")
    assert len(queue.labels(queue.items())) == 1
