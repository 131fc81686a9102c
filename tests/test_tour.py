"""The tour of the commands: its examples, typed from top to bottom in a fresh clone, print what it shows."""

from pathlib import Path

import pytest
from skill_evaluator.cli import COMMANDS

from tests.shell import FINE, ROOT, blocks, clone, is_excerpt, type_block
from tests.support.markdown import mean_sentence

PAGE = ROOT / "docs" / "tour.md"
EXAMPLES = "".join(blocks(PAGE, "console"))


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
def test_the_examples_print_what_the_page_shows(tmp_path: Path) -> None:
    folder = clone(tmp_path)
    before = {path.name for path in folder.iterdir()}
    for typed in type_block(EXAMPLES, folder):
        assert typed.code in FINE, f"{typed.command}\n{typed.err}"
        assert is_excerpt("\n".join(typed.shown), typed.err + typed.out), f"{typed.command}\n{typed.err}{typed.out}"
    assert {path.name for path in folder.iterdir()} - before == {"demo"}


def test_every_command_has_an_example() -> None:
    typed = [f"{line} " for line in EXAMPLES.splitlines() if line.startswith("$ ")]
    assert not [name for name in COMMANDS if not any(f"skill-evaluator {name} " in line for line in typed)]


def test_it_stays_short() -> None:
    text = PAGE.read_text()
    assert len(text.split()) <= 6404  # words: lines are as long as they are wrapped
    assert mean_sentence(text) < 18
