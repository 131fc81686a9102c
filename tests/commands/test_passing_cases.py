"""Cases that pass always, now and then or never, in words."""

from pathlib import Path

import pytest

from tests.commands.test_checks import DATASETS, GOOD, RUDE, answered, checked
from tests.support.library import CASES, SKILL, Library
from tests.support.sites import site_lines

BRIEF = "Be brief."


def bumped(library: Library, version: str = "1.1.0") -> None:
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\n{BRIEF}\n")


def test_reports_say_which_cases_turned_first_and_which_were_unreliable_before(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD, alpha_1=RUDE)
    done = library.evaluate_here()
    assert done.code == 0, done.err
    report = (library.run_folder() / "report.md").read_text()
    for shown in (done.out, report.replace("`", "")):
        assert "flaky: alpha (1 of 2)" in shown
        assert "passes always: 2 cases" in shown
    bumped(library)
    answered(library, GOOD, beta_0=RUDE, beta_1=RUDE, alpha_0=RUDE)
    library.evaluate_here()
    (model,) = library.call("compare", SKILL, "--format", "json").json["models"]
    (turned,) = model["cases"]["turned"]
    assert turned == {"case_id": "beta", "before": "passes always", "after": "fails always"}
    for form in ("text", "markdown"):
        shown = library.call("compare", SKILL, "--format", form).out.replace("`", "")
        words = "turned: beta passes always → fails always"
        assert words in shown
        assert "unreliable baseline: alpha flaky (1 of 2)" in shown
        reasons = [shown.index(reason) for reason in model["reasons"] if reason in shown]
        assert all(shown.index(words) < reason for reason in reasons)


def test_a_check_of_no_weight_for_the_verdict_fails_no_case_and_a_truth_has_to_be_met(tmp_path: Path) -> None:
    library = Library(tmp_path)
    advisory = {"contains": "thanks", "tier": "advisory"}
    library.write(DATASETS, {"datasets": [{"checks": [{"is_json": True}, advisory]}]})
    right = {(case_id, index): f'{{"title": "{case_id}", "year": 2024}}' for case_id in CASES for index in range(2)}
    wrong = right["beta", 1].replace("2024", "1999")
    library.record_answers({**right, ("beta", 1): wrong, ("gamma", 0): "no", ("gamma", 1): wrong})
    shown = library.evaluate_here().out
    assert "fails always: gamma" in shown
    assert "flaky: beta (1 of 2)" in shown
    assert "passes always: 1 case" in shown


@pytest.mark.usefixtures("without_charts")
def test_the_page_of_a_case_says_how_often_it_passes(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD, alpha_1=RUDE)
    library.evaluate_here()
    assert library.call("site", "build", "--out", "site").code == 0
    lines = site_lines(library.root / "site", f"cases/{SKILL}/alpha").values()
    (words,) = (shown["words"] for shown in lines if "words" in shown)
    assert words.startswith("Flaky (1 of 2); now right, now wrong: ")
