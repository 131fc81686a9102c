"""`judge lint`: the rules with their lines, exit codes, and annotations in CI."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.checking.lint import lint_rubrics
from skill_evaluator.library.config import SafetyLimits

from tests.shell import blocks
from tests.support.asked_judges import JudgingLibrary
from tests.support.library import ROOT, Library
from tests.support.rubrics import some_criterion

FILE = ".evaluator/rubrics/totals.yaml"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


def test_rubric_linked_from_outside_is_refused(tmp_path: Path) -> None:
    library = JudgingLibrary(tmp_path / "library")
    secret = tmp_path / "secret.yaml"
    (library.root / "rubric.yaml").rename(secret)
    (library.root / "linked.yaml").symlink_to(secret)
    for path in ("linked.yaml", str(library.root / "linked.yaml")):
        refused = library.call("judge", "lint", path)
        assert (refused.code, "leads out of" in refused.out) == (2, True)
        assert "allow it in settings.yaml: limits: {follow_links: true}" in refused.out
    library.settings(limits={"follow_links": True})
    assert library.call("judge", "lint", "linked.yaml").code == 0


def without(key: str, *scores: str) -> dict[str, Any]:
    """Levels that lack a key for some scores."""
    return {
        score: {name: value for name, value in level.items() if name != key or score not in scores}
        for score, level in LEVELS.items()
    }


LEVELS = some_criterion()["rubric"]
SWAPPED = {"primary": "direct_scoring", "bias_mitigations": ["position_swap"]}


def test_each_rule_finds_its_mistake_alone(library: Library) -> None:
    for changed, severity, rule, message in (
        ({"rubric": without("description", "3")}, "error", "format", "missing at criteria[0].rubric.3.description"),
        ({"rubric": {"1": LEVELS["1"], "3": LEVELS["3"]}, "scale": "1-5"}, "error", "undescribed-level", "level 5 is"),
        ({"rubric": {"2": LEVELS["1"], "5": LEVELS["5"]}}, "error", "undescribed-level", "level 1 is an end"),
        ({"rubric": {"1": LEVELS["1"], "10": LEVELS["5"]}}, "error", "undescribed-level", "missing: 2, 3, 4, 5"),
        ({"edge_cases": None}, "warning", "no-edge-case", "no edge case"),
        ({"rubric": without("characteristics", *"135")}, "error", "no-characteristic", "no level has characteristics"),
        ({"rubric": without("characteristics", "3")}, "warning", "no-characteristic", "level 3 has no characteristics"),
        ({"type": None}, "warning", "no-type", "no type; set `objective`"),
        ({"type": "subjective"}, "warning", "method", "direct_scoring for a subjective criterion"),
        ({"method": {"primary": "pairwise_comparison"}}, "warning", "method", "pairwise_comparison for an objective"),
        ({"method": SWAPPED}, "warning", "mitigation", "position_swap has no effect on direct_scoring; it is for"),
    ):
        library.write(FILE, {"criteria": [some_criterion(**changed)]})
        (remark,) = lint_rubrics([library.root / FILE], SafetyLimits()).rubrics[0].remarks
        assert (remark.severity, remark.rule) == (severity, rule), changed
        assert message in remark.message, changed


def test_remark_has_the_line_of_the_mistake(library: Library) -> None:
    library.write(FILE, (ROOT / ".evaluator/rubrics/support-reply.yaml").read_text().replace("label: Cold\n", "\n"))
    ended = library.call("judge", "lint")
    assert ended.code == 2
    lines = (library.root / FILE).read_text().splitlines()
    places = [line.split(":")[1] for line in ended.out.splitlines() if "error" in line and FILE in line]
    assert [lines[int(place) - 1].strip() for place in places] == ["2:"]


def test_unreadable_file_hides_no_other(library: Library) -> None:
    assert library.call("judge", "lint").refuses(".evaluator/rubrics has no rubrics; add one, or name a file")
    library.write(".evaluator/rubrics/broken.yaml", "# a rubric\ncriteria:\n  - name: a: b\n")
    library.write(FILE, {"criteria": [some_criterion(edge_cases=None)]})
    ended = library.call("judge", "lint")
    assert (ended.code, ended.err) == (2, "error: 1 error in 2 rubrics\n")
    first, second, closing = ended.out.splitlines()
    assert first.startswith(".evaluator/rubrics/broken.yaml:3: error unreadable: broken YAML: ")
    assert second.startswith(f"{FILE}:1: warning no-edge-case: ")
    assert closing == "2 rubrics, 1 criterion: 1 error, 1 warning"


def test_ci_annotates_each_line(library: Library) -> None:
    rubric = {score: level for score, level in LEVELS.items() if score != "1"}
    library.write(FILE, {"criteria": [some_criterion(edge_cases=None, rubric=rubric)]})
    marked = library.call("judge", "lint", "--platform", "github").err.splitlines()
    assert {line.partition(" ")[0] for line in marked[:2]} == {"::error", "::warning"}
    assert all(f"file={FILE},line=1::" in line for line in marked[:2])


def test_shipped_and_documented_rubrics_have_no_remark(library: Library) -> None:
    ended = library.call("judge", "lint", f"--config={ROOT / '.evaluator'}")
    assert (ended.code, ended.out) == (0, "6 rubrics, 7 criteria: 0 errors, 0 warnings\n")
    library.write(FILE, blocks(ROOT / "docs" / "judge.md", "yaml")[0])
    ended = library.call("judge", "lint")
    assert (ended.code, ended.out) == (0, "1 rubric, 1 criterion: 0 errors, 0 warnings\n")


@pytest.mark.parametrize("option", ["--components", "--fixtures"])
def test_options_without_effect_are_refused(option: str, library: Library) -> None:
    assert library.call("judge", "lint", option, "x").code == 2
