"""`scenarios check` on templates: number, near-copies and placeholders; formats are no error."""

from pathlib import Path

import pytest
from skill_evaluator.audit.family import check_scenarios, check_templates, similarity
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.scenarios import SLOT, Scenario

from tests.audit.audit_library import LEGAL

ROOT = Path(__file__).parents[2]


def family(texts: dict[str, str]) -> list[Scenario]:
    return [Scenario(name=name, intent=name, template=f"{text}\n\n{SLOT}") for name, text in texts.items()]


def test_templates_that_ask_for_a_format_are_accepted() -> None:
    assert list(check_templates(family(LEGAL))) == []


def test_few_templates_copies_and_placeholders_are_named() -> None:
    texts = {**LEGAL, "copy": LEGAL["expert"], "alike": "You are a senior lawyer who reviews contracts."}
    remarks = list(check_templates(family({**texts, "slot": "Answer for {name}."})))
    found = {(remark.severity, remark.scenario, remark.rule) for remark in remarks}
    assert found == {
        ("error", "slot", "placeholder"),
        ("error", "copy", "near-copy"),
        ("warning", "alike", "near-copy"),
    }
    (few,) = check_templates(family(dict(list(LEGAL.items())[:5])))
    assert (few.severity, few.rule, few.message) == ("error", "too few", "5 scenarios; an audit requires at least 6")


def test_similarity_is_that_of_the_words() -> None:
    first, second = family({"a": "One two three.", "b": "one, TWO three"})
    assert similarity(first, second) == 1.0


def test_shipped_scenarios_are_ready() -> None:
    check = check_scenarios(ScenariosCheckRequest(config=ROOT / ".evaluator", components=ROOT / "components"))
    assert (check.verdict, check.remarks) == ("ready", [])


def test_draft_is_not_reviewed_and_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "scenarios" / "legal"
    folder.mkdir(parents=True)
    for name, text in LEGAL.items():
        front = f"---\nname: {name}\nintent: i\nunreviewed: true\n---\n"
        (folder / f"{name}.md").write_text(f"{front}{text}\n\n{SLOT}\n")
    request = ScenariosCheckRequest(config=tmp_path, family="legal", audits=tmp_path)
    assert check_scenarios(request).verdict == "not reviewed"
    (folder / "json.md").write_text("no front matter")
    check = check_scenarios(request)
    errors = [remark.rule for remark in check.remarks if remark.severity == "error"]
    assert (check.verdict, errors) == ("not ready", ["unreadable"])
    with pytest.raises(ConfigError, match="contains no scenario outside of families"):
        check_scenarios(ScenariosCheckRequest(config=tmp_path))
