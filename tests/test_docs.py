"""What the pages say can be done: their links lead somewhere, and the reference is the help.

docs/commands.md is what the commands' help says, and docs/python.md has the docstrings of the public API:
`python -m tests.test_docs` writes both.
"""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from skill_evaluator.cli import COMMANDS, GROUPS, load_command, main
from skill_evaluator.library.options import COMMON, RARE, app_of

from tests.support.api_reference import api_reference

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
REFERENCE = ROOT / "docs" / "commands.md"
API_REFERENCE = ROOT / "docs" / "python.md"
HEAD = """# Commands

What `--help --all` prints. [The tour](tour.md) shows the commands at work.
"""


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_existing_files_and_headings(page: Path) -> None:
    for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if address.startswith("http"):
            continue
        file, _, anchor = address.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), address
        assert not anchor or anchor in anchors(target), address


def test_glossary_has_at_most_60_words() -> None:
    words = re.findall(r"\*\*[^*]+\*\*", (ROOT / "docs" / "glossary.md").read_text())
    assert len(words) == len(set(words)) <= 60, "explain a word that one page needs on that page"


def help_of(*words: str) -> str:
    """Return what a terminal of 80 columns shows."""
    out = io.StringIO()
    with patch.dict("os.environ", {"COLUMNS": "80"}), redirect_stdout(out), pytest.raises(SystemExit) as end:
        main([*words, "--help"])
    assert end.value.code == 0
    return out.getvalue()


def reference() -> str:
    sections = [("skill-evaluator", help_of()), *((name, help_of(*name.split(), "--all")) for name in COMMANDS)]
    return HEAD + "".join(f"\n## {name}\n\n```text\n{text.strip()}\n```\n" for name, text in sections)


def test_command_reference_equals_the_help() -> None:
    assert REFERENCE.read_text() == reference(), "python -m tests.test_docs writes it"


def test_api_reference_equals_the_docstrings() -> None:
    assert API_REFERENCE.read_text() == api_reference(), "python -m tests.test_docs writes it"


@pytest.mark.parametrize("command", ["", *GROUPS, *COMMANDS])
def test_help_fits_a_terminal(command: str) -> None:
    lines = help_of(*command.split()).splitlines()
    assert len(lines) <= (60 if command else 23), "a terminal of 24 rows, with a prompt"
    assert max(map(len, lines)) <= 80


def test_help_lists_the_usual_commands_first() -> None:
    lines = help_of().partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["evaluate", "try", "compare", "explain", "site"]
    whole = help_of("--all")
    assert all(f"  {name} " in whole and text in whole for name, (_, text, _) in COMMANDS.items())
    assert max(len(text) for _, text, _ in COMMANDS.values()) <= 58  # which is one line


def options_of(command: str) -> list[tuple[str, str, str]]:
    """Return the name, help text and section of each option of a command."""
    options = [each for each in app_of(load_command(command)).assemble_argument_collection() if each.index is None]
    return [(each.name, str(each.parameter.help), each.parameter.group[0].name) for each in options]


def test_help_of_an_option_is_one_line() -> None:
    assert [text for command in COMMANDS for _, text, _ in options_of(command) if len(text) > 60] == []


def test_number_of_options_is_bounded() -> None:
    """An option is counted for each command that has it; options of most commands are explained once."""
    options = [(name, section) for command in COMMANDS for name, _, section in options_of(command)]
    assert sum(section not in (COMMON, RARE) for _, section in options) <= 180
    assert len({name for name, section in options if section == RARE}) <= 70


if __name__ == "__main__":
    REFERENCE.write_text(reference())
    API_REFERENCE.write_text(api_reference())
