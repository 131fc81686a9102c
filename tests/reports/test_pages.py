"""Reports in Markdown equal their expected files, have no external mark-up and fit any limit.

After an intended change, write the expected pages again with `python -m tests.reports.test_pages`.
"""

import re
from pathlib import Path

from markdown_it import MarkdownIt
from skill_evaluator.ci.plan import Outcome
from skill_evaluator.display.pages import Fold, Heading, Page, Section
from skill_evaluator.reports.ci import outcome_page
from skill_evaluator.reports.evaluation import report_page
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records

from tests.reports.test_ci_outcome import compared, nothing, outcome, run
from tests.reports.test_comparison import HOSTILE, hostile_pair, hostile_result
from tests.support.components import finished
from tests.support.records import a_record
from tests.verdicts.rules import some_rules

EXPECTED = Path(__file__).parents[1] / "data" / "markdown"
SITE = "https://example.com/site/"
COMMENT = 65_000
_OURS = re.compile(r"<details><summary>[\w ,%]+</summary>|</details>")
_RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def an_outcome() -> Outcome:
    """Return results with an unchanged and a regressed component, one without a baseline, and a missing run."""
    better, one = compared("receipts", 0.9)
    worse, other = compared("invoices", 0.2)
    made = outcome(
        *better, *worse, run(skill="new", run_id="x"), nothing(status="missing", skill="lost"), reason="push"
    )
    return made.model_copy(update={"verdicts": [one, other]})


def a_report(site: str | None = SITE) -> Page:
    names = {f"case-{at}": [0.9, 0.92] for at in range(8)}
    fields = {"total": dict.fromkeys(names, (2, 2))}
    before = a_record(names, run_id="old", fields=fields)
    after = a_record(
        {**names, "case-0": [0.1, 0.1]},
        run_id="new",
        skill_version="2.0.0",
        fields={"total": dict.fromkeys(names, (1, 2))},
    )
    verdict = compare_records([Pair(baseline=before, candidate=after)], some_rules(skill="s"))
    done = finished(after, "records/new.json", "results/new")
    return report_page(done, verdict, site)


def a_hostile_report() -> Page:
    done = finished(hostile_pair().candidate, HOSTILE, HOSTILE)
    return report_page(done, hostile_result(), SITE)


def a_hostile_outcome(text: str = HOSTILE) -> Outcome:
    wrong = run(skill=text, model_id=text, reason=text, primary_metric=text, failed={text: 1})
    return outcome(wrong, reason=text).model_copy(update={"verdicts": [hostile_result()]})


PAGES = {
    "comment": lambda: outcome_page(an_outcome(), site=SITE),
    "report": a_report,
    "hostile-report": a_hostile_report,
    "hostile-comment": lambda: outcome_page(a_hostile_outcome(), site=SITE),
}


def test_page_equals_expected_file_and_escapes_external_text() -> None:
    for name in PAGES:
        page = PAGES[name]().markdown()
        assert page == (EXPECTED / f"{name}.md").read_text("utf-8"), name
        tokens = _RENDERER.parse(page)
        flat = [*tokens, *(child for token in tokens for child in token.children or ())]
        html = [token.content.strip() for token in flat if token.type in ("html_block", "html_inline")]
        assert all(_OURS.fullmatch(text) for text in html), html
        assert page.count("<details>") == page.count("</details>"), name
        links = [str(token.attrs["href"]) for token in flat if token.type == "link_open"]
        assert all(link.startswith("https://example.com/site/") for link in links), name
        assert not [token for token in flat if token.type in ("image", "s_open", "em_open")], name
        assert all(mark.isprintable() for line in page.splitlines() for mark in line), name


def test_verdict_comes_first_with_links_to_the_site() -> None:
    page = outcome_page(an_outcome()).markdown()
    parts = (
        "▼ regressed",
        "▼ invoices 1.0.0: regressed",
        "\nnext: ",
        "field or case |",
        "<details>",
        "| metric |",
        "| field |",
        "= receipts 1.0.0: unchanged",
        "Every run<",
    )
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    page = a_report().markdown()
    assert "[`total`](https://example.com/site/components/s.html#field-total)" in page
    assert "[`case-0`](https://example.com/site/cases/s/case-0.html)" in page
    assert "](" not in a_report(None).markdown()


def test_page_fits_its_limit_and_names_omitted_sections() -> None:
    runs, verdict = compared("receipts", *[0.2] * 8)
    whole = outcome_page(outcome(*runs * 40).model_copy(update={"verdicts": [verdict] * 5}))
    for most in (500, 2_000, 8_000, 20_000, COMMENT):
        page = whole.within(most)
        assert len(page) <= most
        assert page.count("<details>") == page.count("</details>"), most
        last = page.splitlines()[-1]
        assert re.search(r"Omitted because of the maximum length: .*(section|details)|Cut here", last), most
    page = outcome_page(a_hostile_outcome("<b>" + "x" * 1_000_000))
    assert len(page.within(COMMENT)) <= COMMENT


def test_last_sections_are_omitted_first() -> None:
    sections = [
        Section(name=f"s{at}", blocks=[Heading(str(at)), "open " * 10, Fold("more", ["x" * 100])]) for at in range(9)
    ]
    page = Page(sections)
    assert page.within(len(page.markdown())) == page.markdown()
    cut = page.within(900)
    assert re.findall(r"### (\d)", cut) == [str(at) for at in range(len(re.findall("###", cut)))]
    assert "Omitted" in cut


if __name__ == "__main__":
    for page_name, make in PAGES.items():
        (EXPECTED / f"{page_name}.md").write_text(make().markdown(), "utf-8")
