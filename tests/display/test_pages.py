"""One list of blocks, rendered as Markdown, on a terminal and as HTML."""

from dataclasses import replace

import pytest
from skill_evaluator.display.pages import (
    Cell,
    Chart,
    Closing,
    Fold,
    ForMedia,
    Heading,
    Line,
    Lines,
    Page,
    Section,
    Sheet,
    print_page,
    sections_of,
)

SHEET = Sheet(columns=("model", "score"), rows=[(Cell("ash", code=True), Cell("0.5"))], numbers=frozenset({"score"}))
MAP = Chart(name="map", alt_text="Map of 1 model", draw=dict, figures=SHEET)
PAGE = Page(
    [
        Section(
            name="all",
            blocks=[
                Heading("Scores of ", Cell("ash", code=True), level=2),
                Line(Cell("It is able", "bold"), ", but <b>"),
                replace(SHEET, caption="Every model", note="of one run"),
                ForMedia(("markdown",), [MAP]),
                Closing([Line("all in all")]),
                Lines(["first", Line("second")], "[ ]"),
                Lines([], "-"),
                Fold("More", [Lines(["a remark"], "-")], brief=["a start"]),
                ForMedia(("terminal",), [Line("see --format markdown")]),
            ],
        )
    ]
)


def test_markdown_has_all_blocks_in_order() -> None:
    table = "| model | score |\n| ---|---: |\n| `ash` | 0.5 |"
    assert PAGE.markdown() == (
        f"## Scores of `ash`\n\n**It is able**`, but <b>`\n\nEvery model:\n\n{table}\n\nof one run\n\n"
        "all in all\n\n- [ ] first\n- [ ] second\n\n"
        "a start\n\n<details><summary>More</summary>\n\n- a remark\n\n</details>\n"
    )
    assert "![Map of 1 model](charts/map.svg)" in PAGE.markdown("charts")
    long = Page([*PAGE.sections, Section(name="more", blocks=[Fold("More", ["x" * 3_000])])])
    assert "a remark" in long.within(2_000)
    assert "xxx" not in long.within(2_000)


def test_terminal_prints_closing_last_and_opens_folds_if_full(capsys: pytest.CaptureFixture[str]) -> None:
    print_page("text", json=dict, page=lambda: PAGE, full=False)
    assert capsys.readouterr().out.splitlines() == [
        "Scores of ash",
        "It is able, but <b>",
        "",
        "Every model",
        "model  score",
        "ash      0.5",
        "of one run",
        "",
        "  - first",
        "  - second",
        "a start",
        "see --format markdown",
        "--full shows all",
        "",
        "all in all",
    ]
    print_page("text", json=dict, page=lambda: PAGE, full=True)
    assert capsys.readouterr().out.splitlines()[-5:] == [
        "More",
        "  - a remark",
        "see --format markdown",
        "",
        "all in all",
    ]


def test_html_page_has_a_section_for_each_heading() -> None:
    ((title, blocks),) = sections_of(PAGE.blocks)
    assert title == "Scores of ash"
    assert [type(block).__name__ for block in blocks] == ["Line", "Sheet", "Line", "Lines", "Lines", "Fold"]
