"""A prompt library as teams have them, in all its shapes: what can be evaluated is, and nothing else is an error."""

import contextlib
import os
import pty
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import git
from tests.support.library import REPLAY, SCRIPT, Ended, Library

ADOPTED = Path(__file__).parents[1] / "data" / "adopted"
READY = {"letter-kind", "opening-hours", "fine-check", "loan-translate", "shelf-count"}
CONTRACT = {"datasets": [{"schema": "schema.json#/$defs/output"}]}


@pytest.fixture
def adopted(library: Library) -> Library:
    """The library in git, without any file of the evaluator's but the models."""
    for folder in ("components", "fixtures"):
        shutil.rmtree(library.root / folder)
    shutil.copytree(ADOPTED / "components", library.root / "components")
    library.models(REPLAY)
    git(library.root, "init", "-qb", "main")
    return library


def linted(library: Library, *arguments: str) -> tuple[Ended, Mapping[str, Mapping[str, Any]]]:
    ended = library.call("lint", "--format", "json", *arguments)
    return ended, {component["component"]: component for component in ended.json["components"]}


def test_unevaluated_components_are_listed_with_the_reason(adopted: Library) -> None:
    adopted.write("components/opening-hours/evals/datasets.json", CONTRACT)
    ended, components = linted(adopted)
    assert (ended.code, ended.err) == (0, "")
    assert {name for name, found in components.items() if found["not_evaluated"] is None} == READY
    for name, reason in (
        ("loan-notice", "case 'r-17' has input-source.md and no document.md"),
        ("poster-render", "it has no cases: fixtures/poster-render/cases and components/poster-render/evals/cases m"),
    ):
        assert components[name]["not_evaluated"].startswith(f"component '{name}' is not evaluated yet: {reason}")
    counted = "not evaluated: 4 of 9 components and 2 cases without a document"
    assert adopted.call("lint").out.endswith(f"{counted}\n")
    strict = adopted.call("lint", "--strict")
    assert (strict.code, strict.err) == (2, f"error: {counted}\n")
    adopted.write("components/letter-kind/evals/datasets.json", {"datasets": [{"evaluate": False}]})
    reason = (
        "component 'letter-kind' is not evaluated: components/letter-kind/evals/datasets.json has `evaluate: false`"
    )
    assert adopted.call("evaluate", "letter-kind").err == f"error: {reason}\n"
    planned = adopted.call("ci", "plan", "--format", "json")
    assert (planned.code, planned.json["faults"]) == (0, [])
    assert {entry["skill"] for entry in planned.json["runs"]} == READY - {"letter-kind"}
    assert reason in [one["reason"] for one in planned.json["skipped"]]


def answered(library: Library, *arguments: str, typed: str) -> str:
    """Run a command on a terminal, type the answers to its questions, and return what it shows."""
    keyboard, terminal = pty.openpty()
    with library.command(
        "-m", "skill_evaluator", *arguments, env={"PYTHONPATH": str(SCRIPT.parent)}, stdin=terminal, stdout=terminal
    ) as process:
        os.write(keyboard, typed.encode())
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(keyboard, 10_000):
                shown += part
        assert process.wait(30) == 0
    os.close(keyboard)
    return shown.decode()


PROPOSED = (
    "opening-hours/evals/datasets.json: contract schema.json#/$defs/output, 1 field compared as string\n",
    "letter-kind/evals/datasets.json: 1 field compared as text\n",
    "fine-check/evals/datasets.json: 1 field compared as text\n",
    "proposed .gitignore: components/*/evals/results/ ",
)
DECLARED = {"event-list", "fine-check", "letter-kind", "loan-notice", "loan-translate", "opening-hours"}


def test_adopt_writes_its_proposal_only_with_yes(adopted: Library) -> None:
    shutil.rmtree(adopted.root / ".evaluator")
    before = adopted.tree()
    proposed = adopted.call("init", "--adopt")
    assert (proposed.code, proposed.err) == (0, "")
    assert adopted.tree() == before
    assert all(words in proposed.out for words in PROPOSED)
    assert proposed.out.endswith("nothing was written; --yes writes the proposed files\n")
    rows = dict(line.split(maxsplit=1) for line in proposed.out.split("\n\n")[1].splitlines()[1:])
    assert {name for name, standing in rows.items() if standing.startswith("ready")} == READY
    assert rows["opening-hours"].split(maxsplit=1) == ["ready", "with schema.json#/$defs/output as its contract"]
    assert rows["event-list"].endswith("case 'may' has input-source.md and no document.md")

    assert adopted.call("init", "--adopt", "--yes").code == 0
    written = {f"components/{name}/evals/datasets.json" for name in DECLARED}
    added = {place for place in adopted.tree().keys() - before.keys() if not place.startswith(".evaluator")}
    assert added == {".gitignore", *written}
    assert {place: content for place, content in adopted.tree().items() if place in before} == before
    assert adopted.call("lint").code == 0
    assert adopted.call("init", "--adopt", "--yes").out.endswith("nothing is missing\n")
    assert adopted.call("evaluate", "letter-kind", "--dry-run").code == 0


def test_adopt_asks_in_a_terminal_and_declares_no_part_of_several(adopted: Library) -> None:
    section = {"type": "array", "items": {"type": "object", "required": ["day"]}}
    adopted.write("components/opening-hours/schema.json", {"$defs": {"plain": section, "long": section}})
    shown = answered(adopted, "init", "--adopt", typed="y\n")
    assert "? [y/N]" in shown
    assert (adopted.root / ".evaluator" / "models.yaml").exists()
    assert not (adopted.root / "components" / "opening-hours" / "evals" / "datasets.json").exists()


def test_init_adds_a_component_only_by_name(adopted: Library) -> None:
    assert adopted.call("init").code == 0
    assert not (adopted.root / "components" / "example-component").exists()
    assert adopted.call("init", "--adopt", "--yes", "--name", "new").code == 0
    assert (adopted.root / "components" / "new" / "prompt.md").exists()
    assert adopted.call("lint", "new").code == 0
    assert adopted.call("init", "--yes").err == "error: --yes requires --adopt\n"
    assert adopted.call("init", "--out", "x").err == "error: --out requires --adopt\n"
    shutil.rmtree(adopted.root / "components")
    assert adopted.call("init", "--adopt").refuses("holds no component to adopt")


SETTINGS = ".evaluator/settings.yaml"


@pytest.fixture
def skills(adopted: Library) -> Library:
    """A repository of one skill, with a sentence to judge, and a settings.yaml that ends without a new line."""
    shutil.rmtree(adopted.root / "components")
    adopted.write("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\nName a library.\n")
    adopted.write("skills/pdf/evals/evals.json", [{"prompt": "Go.", "expectations": ["It went."]}])
    adopted.models(REPLAY, {**REPLAY, "id": "another"})
    adopted.write(SETTINGS, "replicates: 3\npolicy:\n  design: recorded")
    return adopted


def test_adopt_adds_sources_and_keeps_the_settings(skills: Library) -> None:
    git(skills.root, "init", "-qb", "main", "below")
    for name in ("skills", ".evaluator"):
        shutil.move(skills.root / name, skills.root / "below" / name)
    assert skills.call("init", "below", "--adopt", "--yes").code == 0
    text = (skills.root / "below" / SETTINGS).read_text()
    assert text == "replicates: 3\npolicy:\n  design: recorded\nsources:\n- kind: skills\n"


def test_adopt_names_a_judge_and_how_to_trust_it(skills: Library) -> None:
    (skills.root / SETTINGS).unlink()
    assert skills.call("init", "--adopt", "--yes").code == 0
    text = (skills.root / SETTINGS).read_text()
    assert text.endswith("    model: another\n    # trusted: [another]  # counts as calibrated, without labels\n")
    (skills.root / SETTINGS).unlink()
    skills.models(REPLAY)
    assert "models.yaml, set policy.judge.model in .evaluator/settings" in skills.call("init", "--adopt", "--yes").out


def test_adopt_refuses_settings_it_cannot_extend(skills: Library) -> None:
    text = "{replicates: 3}\n"
    skills.write(SETTINGS, text)
    done = skills.call("init", "--adopt", "--yes")
    assert done.code == 2
    assert f"{SETTINGS}:" in done.err
    assert (skills.root / SETTINGS).read_text() == text


def test_adopt_checks_all_files_before_it_writes_one(skills: Library) -> None:
    before = (skills.root / SETTINGS).read_text()
    (skills.root / ".github").write_text("x")
    done = skills.call("init", "--adopt", "--workflows", "--yes")
    assert (done.code, "a folder must go there; move it away" in done.err) == (2, True)
    assert (skills.root / SETTINGS).read_text() == before


def test_adopt_writes_workflows_on_request(skills: Library) -> None:
    nowhere = skills.root.with_name("nowhere")
    assert skills.call("init", str(nowhere), "--adopt").refuses(f"{nowhere} is not a folder")
    assert "`skill-evaluator init --adopt --workflows --yes` adds" in skills.call("init", "--adopt", "--yes").out
    done = skills.call("init", "--adopt", "--workflows", "--yes")
    assert (done.code, "--workflows" in done.out) == (0, False)
    assert (skills.root / ".github/workflows/evaluate.yml").exists()
