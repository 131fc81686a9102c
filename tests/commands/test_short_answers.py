"""What `evaluate`, `try`, `compare` and `explain` answer fits a terminal of 80 columns; `--full` shows the rest."""

import re
from collections.abc import Iterator

import pytest

from tests.support.chat_server import ChatServer, Reply, chat_server
from tests.support.library import SKILL, Library

KEY = {"OPENAI_API_KEY": "key"}
_STYLE = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as started:
        yield started


def screen(library: Library, command: str, *words: str, lines: int, last: str) -> list[str]:
    """Return the lines that a terminal shows of a command; there are at most so many, and the last say what is next."""
    target = (SKILL,) if command != "explain" else (sorted(path.name for path in library.results.iterdir())[-1],)
    done = library.call(command, *target, *words, env=KEY, columns=80)
    assert done.code in (0, 3), done.err
    shown = _STYLE.sub("", done.out).splitlines()
    assert len(shown) <= lines, done.out
    assert max(map(len, shown)) <= 80, done.out
    assert any(line.startswith(last) for line in shown[-4:]), done.out
    assert "`" not in done.out
    return shown


def test_what_an_answer_is_explained_by_fits_a_screen_however_many_leaves_it_has(
    server: ChatServer, library: Library
) -> None:
    names = [f"field_{at:02}" for at in range(40)]
    library.write(
        f"components/{SKILL}/schema.json",
        {"type": "object", "properties": {name: {"type": "integer"} for name in names}},
    )
    for name in ("alpha", "beta", "gamma"):
        library.case(name, dict.fromkeys(names, 1))
    answer = "{" + ", ".join(f'"{name}": {int(name != names[7])}' for name in names) + "}"
    library.served_by(server.url)
    server.reply = lambda asked: Reply(text=answer)
    library.call("evaluate", SKILL, env=KEY)
    shown = screen(library, "explain", "--case", "alpha", lines=24, last="alpha is the title")
    assert "fields: 78 right, 2 wrong" in shown
    assert [line.split()[0] for line in shown if line.startswith(("right", "wrong"))] == ["wrong"]
    assert "… and 39 more: --full shows them" in shown
    done = library.call("explain", library.run_folder().name, "--case", "alpha", "--full", env=KEY)
    assert done.out.count("\nright ") == 39
