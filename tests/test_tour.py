"""The tour of the commands: the examples of its two pages, typed in order in a fresh clone, print what they show."""

from pathlib import Path

import pytest
from skill_evaluator.cli import COMMANDS

from tests.shell import FINE, ROOT, blocks, clone, is_excerpt, type_block
from tests.support.markdown import mean_sentence

PAGES = [ROOT / "docs" / name for name in ("tour.md", "tour-ci-judges.md")]
EXAMPLES = "".join(block for page in PAGES for block in blocks(page, "console"))


@pytest.fixture
def nobodys_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give git an author, and hide the keys and settings of whoever runs the tests."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Reader")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "reader@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for vendor in ("ANTHROPIC", "OPENAI"):
        monkeypatch.delenv(f"{vendor}_API_KEY", raising=False)


@pytest.mark.usefixtures("nobodys_machine")
@pytest.mark.pages
def test_examples_print_the_shown_output(tmp_path: Path) -> None:
    folder = clone(tmp_path)
    before = {path.name for path in folder.iterdir()}
    for typed in type_block(EXAMPLES, folder):
        assert typed.code in FINE, f"{typed.command}\n{typed.err}"
        assert is_excerpt("\n".join(typed.shown), typed.err + typed.out), f"{typed.command}\n{typed.err}{typed.out}"
    assert {path.name for path in folder.iterdir()} - before == {"demo"}


def test_every_command_has_an_example() -> None:
    typed = [f"{line} " for line in EXAMPLES.splitlines() if line.startswith("$ ")]
    assert not [name for name in COMMANDS if not any(f"skill-evaluator {name} " in line for line in typed)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tour_page_is_short(page: Path) -> None:
    text = page.read_text()
    assert len(text.splitlines()) <= 350
    assert mean_sentence(text) < 18
