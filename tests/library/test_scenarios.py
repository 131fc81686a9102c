"""Scenarios: every mistake in one named, put around a component's prompt, and the shipped ones fit every component."""

import re
from pathlib import Path

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Model
from skill_evaluator.library.scenarios import (
    apply_scenario,
    family_paths,
    load_scenario,
    named_scenarios,
    read_scenario,
)
from skill_evaluator.runner.journal import input_digests

from tests.support.components import component

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.stem for path in (ROOT / ".evaluator" / "scenarios").glob("*.md"))


def _write(root: Path, content: str, name: str = "polite") -> Path:
    path = root / "scenarios" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return root


def test_scenario_wraps_the_prompt(tmp_path: Path) -> None:
    config = _write(tmp_path, "---\nname: polite\nintent: good manners\n---\nPlease.\n\n{{ prompt }}\n\nThank you.\n")
    skill = component(tmp_path)
    polite = apply_scenario(skill, config, "polite")
    assert polite.prompt.text == f"Please.\n\n{skill.prompt.text}\n\nThank you."
    assert (polite.scenario, skill.scenario) == ("polite", None)
    assert apply_scenario(skill, config, None) is skill


def test_scenario_is_part_of_the_digests(tmp_path: Path) -> None:
    config = _write(tmp_path, "---\nname: polite\nintent: good manners\n---\nPlease. {{ prompt }}\n")
    skill, model = component(tmp_path), Model(id="m", provider="replay")
    plain = input_digests(skill, model)
    first = input_digests(apply_scenario(skill, config, "polite"), model)
    assert first.items() > plain.items()
    _write(tmp_path, "---\nname: polite\nintent: good manners\n---\nPlease! {{ prompt }}\n")
    assert input_digests(apply_scenario(skill, config, "polite"), model)["scenario"] != first["scenario"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("Please. {{ prompt }}", "no front matter"),
        ("---\nname: polite\n---\n{{ prompt }}", "required key is missing at intent"),
        ("---\nname: rude\nintent: x\n---\n{{ prompt }}", "is not the file's name 'polite'"),
        ("---\nname: polite\nintent: x\n---\nPlease.", "must contain {{ prompt }} exactly once"),
        ("---\nname: polite\nintent: x\nmood: y\n---\n{{ prompt }}", "unknown key at mood"),
        ("---\nname: polite\nintent: x\ntemplate: y\n---\n{{ prompt }}", "unknown key at template"),
    ],
)
def test_invalid_scenario_is_refused(content: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"scenarios/polite\.md") as caught:
        load_scenario(_write(tmp_path, content), "polite")
    assert complaint in str(caught.value)


def test_family_name_selects_its_scenarios(tmp_path: Path) -> None:
    config = _write(tmp_path, "---\nname: polite\nintent: x\n---\n{{ prompt }}")
    legal = config / "scenarios" / "legal"
    legal.mkdir()
    for name in ("terse", "grave"):
        (legal / f"{name}.md").write_text(f"---\nname: {name}\nintent: x\n---\n{{{{ prompt }}}}")
    assert named_scenarios(config, ["polite", "legal", "terse"]) == ["polite", "grave", "terse"]
    assert [path.stem for path in family_paths(config, None)] == ["polite"]
    assert load_scenario(config, "grave").name == "grave"
    assert named_scenarios(config, ["../scenarios/legal"]) == ["../scenarios/legal"]
    for name, said in {"legal": "'legal' is a family of scenarios; name one", "lega": "did you mean 'legal'?"}.items():
        with pytest.raises(ConfigError, match=re.escape(said)):
            load_scenario(config, name)


def test_unreviewed_scenario_is_refused(tmp_path: Path) -> None:
    config = _write(tmp_path, "---\nname: polite\nintent: x\nunreviewed: true\n---\n{{ prompt }}")
    with pytest.raises(ConfigError, match=r"polite\.md was drafted by a model and is unreviewed"):
        load_scenario(config, "polite")
    assert read_scenario(config, config / "scenarios" / "polite.md").unreviewed


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_fit_every_component(name: str) -> None:
    for folder in (ROOT / "components").iterdir():
        skill = load_component(ROOT / "components", folder.name)
        shaped = apply_scenario(skill, ROOT / ".evaluator", name)
        assert skill.prompt.text in shaped.prompt.text
        assert (shaped.prompt == skill.prompt) == (name == "bare")
