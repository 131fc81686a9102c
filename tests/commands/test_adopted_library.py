"""A prompt library as teams have them, in all its shapes: what can be evaluated is, and nothing else is an error."""

import contextlib
import io
import json
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
NO_SCHEMA = "any JSON is a valid answer: there is no components/{}/schema.json, so schema_valid is not measured"
TEXT = "output: text, because its ground truths are texts; prompt.md declares no output"
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


def test_what_cannot_be_evaluated_yet_is_listed_with_the_reason_and_counted(adopted: Library) -> None:
    adopted.write("components/opening-hours/evals/datasets.json", CONTRACT)
    ended, components = linted(adopted)
    assert (ended.code, ended.err) == (0, "")
    assert {name for name, found in components.items() if found["not_evaluated"] is None} == READY
    waits = "has input-source.md and no document.md"
    no_cases = "'{0}' is not evaluated yet: it has no cases: fixtures/{0}/cases and components/{0}/evals/cases missing"
    for name, reason in {
        "loan-notice": f"'loan-notice' is not evaluated yet: case 'r-17' {waits}",
        "event-list": f"'event-list' is not evaluated yet: case 'may' {waits}",
        "poster-render": no_cases.format("poster-render"),
        "poster-review": no_cases.format("poster-review"),
    }.items():
        assert components[name]["not_evaluated"].startswith(reason)
    assert {name: found["waiting"] for name, found in components.items() if found["waiting"]} == {
        "event-list": ["may"],
        "loan-notice": ["r-17"],
    }
    counted = "not evaluated: 4 of 9 components and 2 cases without a document"
    assert adopted.call("lint").out.endswith(f"{counted}\n")
    assert adopted.call("lint", "--format", "markdown").out.endswith(f"{counted}\n")
    strict = adopted.call("lint", "--strict")
    assert (strict.code, strict.err) == (2, f"error: {counted}\n")


def test_what_is_inferred_is_said(adopted: Library) -> None:
    _, components = linted(adopted)
    assert {name: found["output"] for name, found in components.items() if found["output"] == "text"} == {
        "fine-check": "text",
        "event-list": "text",
    }
    assert TEXT in components["fine-check"]["hints"]
    assert NO_SCHEMA.format("shelf-count") in components["shelf-count"]["hints"]
    assert TEXT in adopted.call("evaluate", "fine-check", "--dry-run").out
    assert NO_SCHEMA.format("shelf-count") in adopted.call("evaluate", "shelf-count", "--dry-run").out


def test_all_that_has_documents_is_planned_and_the_rest_skipped(adopted: Library) -> None:
    adopted.write("components/opening-hours/evals/datasets.json", CONTRACT)
    adopted.write("components/letter-kind/evals/datasets.json", {"datasets": [{"evaluate": False}]})
    planned = adopted.call("ci", "plan", "--format", "json")
    assert (planned.code, planned.json["faults"]) == (0, [])
    assert {entry["skill"] for entry in planned.json["runs"]} == READY - {"letter-kind"}
    skipped = {one["skill"]: one["reason"] for one in planned.json["skipped"]}
    assert len(skipped) == 5
    assert skipped["letter-kind"] == (
        "'letter-kind' is not evaluated: components/letter-kind/evals/datasets.json says evaluate: false"
    )
    for name, reason in skipped.items():
        refused = adopted.call("evaluate", name)
        assert (refused.code, refused.out, refused.err) == (2, "", f"error: {reason}\n")
    ended, components = linted(adopted)
    assert (ended.code, components["letter-kind"]["not_evaluated"]) == (0, skipped["letter-kind"])
    assert "5 of 9 components" in adopted.call("lint", "--strict").err


@pytest.mark.parametrize(("name", "truth"), [("shelf-count", "expected.json"), ("fine-check", "expected.md")])
def test_without_a_contract_all_but_its_validity_is_measured(adopted: Library, name: str, truth: str) -> None:
    (case,) = (adopted.root / "components" / name / "evals" / "cases").iterdir()
    adopted.record_answers({(case.name, index): (case / truth).read_text() for index in range(2)})
    assert adopted.call("evaluate", name).code == 0
    board = json.loads((adopted.root / "components" / name / "leaderboard.json").read_text())
    accuracy = board["runs"][0]["accuracy"]
    assert "schema_valid" not in accuracy
    assert accuracy["exact_match"]["mean"] == 1.0
    declared = {"datasets": [{"metrics": ["schema_valid"]}]}
    adopted.write(f"components/{name}/evals/datasets.json", declared)
    assert "and no schema to validate against" in adopted.call("evaluate", name).err


class Typed(io.StringIO):
    """What somebody types on a terminal."""

    def isatty(self) -> bool:
        return True


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


def test_adopting_proposes_and_writes_nothing_unless_told(adopted: Library) -> None:
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
    assert adopted.call("init", "--adopt", "--yes").out.endswith("nothing is to be written\n")
    for name in READY:
        assert adopted.call("evaluate", name, "--dry-run").code == 0


def test_a_contract_that_may_be_one_of_several_parts_is_asked_for_and_not_guessed(adopted: Library) -> None:
    section = {"type": "array", "items": {"type": "object", "required": ["day"]}}
    parts = {"plain": section, "long": {**section, "minItems": 2}, "wrong": {"type": "null"}}
    adopted.write("components/opening-hours/schema.json", {"$defs": parts})
    assert "proposed components/opening-hours" not in adopted.call("init", "--adopt").out
    shown = answered(adopted, "init", "--adopt", typed="2\ny\n")
    assert "wrong" not in shown.partition("Which part of its schema")[2].partition("component")[0]
    assert "? [y/N]" in shown
    declared = json.loads((adopted.root / "components" / "opening-hours" / "evals" / "datasets.json").read_text())
    assert declared["datasets"] == [{"schema": "schema.json#/$defs/long"}]


def test_what_is_written_down_of_texts_compares_as_before_and_stays_with_longer_cases(adopted: Library) -> None:
    name, answer = "loan-notice", {"title": "Maps of the coast", "due": "2026-05-01", "reader": "R17"}
    case = adopted.root / "components" / name / "evals" / "cases" / "r-17"
    (case / "document.md").write_text("Maps of the coast, to R17 until 2026-05-01.")
    adopted.record_answers({("r-17", index): json.dumps(answer) for index in range(2)})
    assert adopted.call("evaluate", name).code == 0
    assert adopted.call("init", "--adopt", "--yes").code == 0
    longer = case.with_name("r-18")
    longer.mkdir()
    (longer / "document.md").write_text("Another.")
    (longer / "expected.json").write_text(json.dumps({**answer, "title": "A map " * 59}))
    prompt = adopted.root / "components" / name / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.1.0", "version: 1.2.0"))
    calls = {(case_id, index): json.dumps(answer) for case_id in ("r-17", "r-18") for index in range(2)}
    adopted.record_answers(calls)
    ended = adopted.call("evaluate", name, "--recorded-baseline")
    assert (ended.code, "incomparable" in ended.out, "1.1.0" in ended.out) == (0, False, True)

    (adopted.root / "components" / name / "evals" / "datasets.json").unlink()
    prompt.write_text(prompt.read_text().replace("version: 1.2.0", "version: 1.3.0"))
    ended = adopted.call("evaluate", name, "--recorded-baseline")
    assert '\'title\' as string, then text; to go on as before, write "title": {"compare": "string"} at' in ended.out


def test_a_component_is_added_to_a_library_only_if_it_is_named(adopted: Library) -> None:
    assert adopted.call("init").code == 0
    assert not (adopted.root / "components" / "example-component").exists()
    assert adopted.call("init", "--adopt", "--yes", "--name", "new").code == 0
    assert (adopted.root / "components" / "new" / "prompt.md").exists()
    assert adopted.call("lint", "new").code == 0
    assert adopted.call("init", "--yes").err == "error: --yes requires --adopt\n"


def test_there_must_be_a_library_to_adopt(library: Library) -> None:
    shutil.rmtree(library.root / "components")
    refused = library.call("init", "--adopt")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "holds no component to adopt" in refused.err


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


@pytest.mark.parametrize("folder", [".", "below"])
def test_what_settings_say_stays_when_sources_are_added(skills: Library, folder: str) -> None:
    if folder == "below":
        git(skills.root, "init", "-qb", "main", folder)
        for name in ("skills", ".evaluator"):
            shutil.move(skills.root / name, skills.root / folder / name)
    assert skills.call("init", folder, "--adopt", "--yes").code == 0
    text = (skills.root / folder / SETTINGS).read_text()
    assert text == "replicates: 3\npolicy:\n  design: recorded\nsources:\n- kind: skills\n"


def test_adopt_names_a_judge_and_how_to_trust_it(skills: Library) -> None:
    (skills.root / SETTINGS).unlink()
    assert skills.call("init", "--adopt", "--yes").code == 0
    text = (skills.root / SETTINGS).read_text()
    assert text.endswith("    model: another\n    # trusted: [another]  # counts as calibrated, without labels\n")


@pytest.mark.parametrize("text", ["sources: []\n", "{replicates: 3}\n"])
def test_settings_that_nothing_can_be_added_to_stay_as_they_are(skills: Library, text: str) -> None:
    skills.write(SETTINGS, text)
    done = skills.call("init", "--adopt", "--yes")
    assert done.code == 2
    assert f"{SETTINGS}:" in done.err
    assert (skills.root / SETTINGS).read_text() == text


def test_workflows_are_laid_out_at_adopting_and_a_folder_that_is_missing_is_one_line(skills: Library) -> None:
    nowhere = skills.root.with_name("nowhere")
    assert skills.call("init", str(nowhere), "--adopt").refuses(f"{nowhere} is not a folder")
    assert "`skill-evaluator init --adopt --workflows --yes` adds" in skills.call("init", "--adopt", "--yes").out
    done = skills.call("init", "--adopt", "--workflows", "--yes")
    assert (done.code, "--workflows" in done.out) == (0, False)
    assert (skills.root / ".github/workflows/evaluate.yml").exists()
