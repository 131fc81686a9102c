"""PDFs and images of cases: what is told of them, and one line for each that cannot be used, whatever is in it."""

import json
import os
import resource
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from skill_evaluator.errors import FixtureError
from skill_evaluator.library.cases import Case, load_cases, refuse_unfilled
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.prompts import File, Prompt
from skill_evaluator.text import digest

from tests.library.test_cases import TRUTH, write_case
from tests.support.components import component, with_fixtures
from tests.support.documents import a_bomb, a_pdf, a_png

WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\x04\xc0\x01\0\0\0\0\0\0\0\0\0"
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08\0\x07\0\x05\x01\x01\x11\0\xff\xd9"


@pytest.fixture
def skill(tmp_path: Path) -> Component:
    return component(tmp_path)


def load(skill: Component, fixtures: Path, files: Mapping[str, str | bytes]) -> Case:
    write_case(fixtures / "receipts" / "cases" / "a", {"ground_truth.json": TRUTH, **files})
    (case,) = load_cases(with_fixtures(skill, fixtures))
    return case


def refused(skill: Component, fixtures: Path, files: Mapping[str, str | bytes]) -> str:
    with pytest.raises(FixtureError) as problem:
        load(skill, fixtures, files)
    assert "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize(
    ("name", "content", "media_type", "extent"),
    [
        ("document.png", a_png(30, 20), "image/png", (30, 20, None)),
        ("document.jpg", JPEG, "image/jpeg", (5, 7, None)),
        ("document.webp", WEBP, "image/webp", (5, 8, None)),
        ("document.pdf", a_pdf(["A 9", "B"]), "application/pdf", (None, None, 2)),
        ("document.pdf", a_png(), "image/png", (3, 2, None)),  # by its bytes, whatever its name says
    ],
)
def test_document_may_be_a_file(
    skill: Component, tmp_path: Path, name: str, content: bytes, media_type: str, extent: tuple[int | None, ...]
) -> None:
    case = load(skill, tmp_path / "f", {name: content})
    (file,) = case.files
    assert (file.media_type, file.width, file.height, file.pages) == (media_type, *extent)
    assert (file.size, file.digest) == (len(content), digest(content))
    assert case.document.startswith(f"[{name}: {media_type}, ")
    assert skill.prompt.filled(case.inputs)[-1].files == (file,)


def test_case_digest_covers_its_file(skill: Component, tmp_path: Path) -> None:
    cases = [
        load(skill, tmp_path / name, {"document.png": a_png(padding=many)})
        for name, many in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert cases[0].digest == cases[1].digest != cases[2].digest


def test_input_names_a_file_of_the_case(tmp_path: Path) -> None:
    skill = replace(component(tmp_path), prompt=Prompt(messages=Prompt.of("Read.").messages, inputs=("document",)))
    inputs = json.dumps({"document": {"file": "pages/scan.png"}, "note": {"file": "a", "b": 1}})
    folder = tmp_path / "f" / "receipts" / "cases" / "a"
    write_case(folder, {"inputs.json": inputs, "ground_truth.json": TRUTH})
    write_case(folder / "pages", {"scan.png": a_png()})
    (case,) = load_cases(with_fixtures(skill, tmp_path / "f"))
    assert [type(value) for value in case.inputs.values()] == [File, dict]


@pytest.mark.parametrize("name", ["../scan.png", "/etc/passwd", "", 7, "pages/../../scan.png", "a\0"])
def test_file_outside_the_case_is_refused(skill: Component, tmp_path: Path, name: object) -> None:
    assert "a" in refused(skill, tmp_path / "f", {"inputs.json": json.dumps({"document": {"file": name}})})


def test_file_is_allowed_in_user_messages_alone(tmp_path: Path) -> None:
    prompt = "---\nname: receipts\nversion: 1.0.0\ninputs: [document, kind]\nmessages: sections\n---\n## System\n\nSee "
    skill = component(tmp_path, prompt=prompt + "{{document}}.\n\n## User\n\n{{kind}}, {{document}}\n")
    inputs = {"document.png": a_png(), "inputs.json": '{"kind": "x"}'}
    assert "'document' is a file, which only user messages can contain" in refused(skill, tmp_path / "f", inputs)


ATTACKS = {
    "encrypted": (a_pdf(password="secret"), "is encrypted"),
    "a bomb": (a_bomb(400_000_000), "cannot be read as a PDF"),
    "too many pages": (a_pdf(["x"] * 11), "more than 10 pages"),
    "a page tree in a circle": (a_pdf(kids="2 0 R"), "cannot be read as a PDF: it is broken ("),
    "an image that is none": (b"\x89PNG\r\n\x1a\n and so on", "cannot be read as an image"),
    "segments without end": (b"\xff\xd8\xff" + b"\xe0\0\x02\xff" * 4_000_000, "cannot be read as an image"),
    "empty": (b"", "begins neither as"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_unreadable_file_is_refused_quickly(tmp_path: Path, attack: str) -> None:
    content, words = ATTACKS[attack]
    skill = replace(component(tmp_path), limits=SafetyLimits(file_pages=10))
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert words in refused(skill, tmp_path / "f", {"document.pdf": content})
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_file_over_the_limit_is_not_read(skill: Component, tmp_path: Path) -> None:
    folder = tmp_path / "f" / "receipts" / "cases" / "a"
    write_case(folder, {"ground_truth.json": TRUTH, "document.pdf": a_pdf()})
    os.truncate(folder / "document.pdf", 500_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FixtureError, match=r"500,000,000 bytes; at most 20,000,000 are read \(limits.file_bytes"):
        load_cases(with_fixtures(skill, tmp_path / "f"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def as_text(folder: Path) -> Component:
    return component(folder, prompt="---\nname: receipts\nversion: 1.0.0\ntext_of: pdf\n---\nRead.\n")


def test_text_of_a_pdf_changes_the_digests(skill: Component, tmp_path: Path) -> None:
    plain = load(skill, tmp_path / "f", {"document.pdf": a_pdf(["Shop A", "Total 9"])})
    other = as_text(tmp_path / "other")
    (case,) = load_cases(with_fixtures(other, tmp_path / "f"))
    assert (case.document, case.files) == ("Shop A\n\nTotal 9", ())
    assert case.digest == digest(f"Shop A\n\nTotal 9\0{json.dumps(case.truth, separators=(',', ':'))}") != plain.digest
    assert other.digests["prompt"] != component(tmp_path / "same", prompt=prompt_without(other)).digests["prompt"]


def prompt_without(other: Component) -> str:
    return (other.files.folder / "prompt.md").read_text().replace("text_of: pdf\n", "")


def test_versions_with_and_without_pdf_text_are_not_interleaved(skill: Component, tmp_path: Path) -> None:
    other = as_text(tmp_path / "other")
    for version, beside in ((skill, other), (other, skill)):
        with pytest.raises(FixtureError, match=r"versions .* only one has the key text_of"):
            refuse_unfilled(version, [], beside)
    refuse_unfilled(skill, [], skill)


def test_scan_without_text_is_refused(tmp_path: Path) -> None:
    words = refused(as_text(tmp_path), tmp_path / "f", {"document.pdf": a_pdf([""])})
    assert "has no text (it may be a scan)" in words


def test_pdf_text_over_the_limit_is_refused(tmp_path: Path) -> None:
    skill = replace(as_text(tmp_path), limits=SafetyLimits(document_bytes=100))
    assert "too long; at most 100 are read" in refused(skill, tmp_path / "f", {"document.pdf": a_pdf(["x" * 200])})
