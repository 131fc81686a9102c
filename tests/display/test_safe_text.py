"""External text in Markdown: it is never mark-up."""

from skill_evaluator.display import code_span, prose

from tests.support.markdown import read_page
from tests.support.odd_texts import HOSTILE


def test_prose_becomes_code_only_if_it_could_be_markup() -> None:
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
