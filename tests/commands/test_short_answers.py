"""What `evaluate`, `try`, `compare` and `explain` answer fits a terminal of 80 columns; `--full` shows all."""

import re
from collections.abc import Iterator

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, chat_server, notice
from tests.support.library import SKILL, Library

MODELS = ("claude-sonnet-4-6", "example-large", "gpt-5-mini")
KEY = {"OPENAI_API_KEY": "key"}
FALLEN = ("beta", "case-1", "case-2", "gamma")
_STYLE = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as started:
        yield started


def answered(server: ChatServer, library: Library, *models: str) -> None:
    """Have twelve cases and some models; record a first version, and have a second one that the last is worse with."""
    for at in range(9):
        library.case(f"case-{at}")
    library.models(*({"id": name, "provider": "openai", "base_url": server.url} for name in models))
    library.settings(replicates=4)
    server.reply = lambda asked: Reply(text=notice(asked.case_id))
    screen(library, "evaluate", lines=25 if len(models) == 1 else 40, last="next: change the prompt")
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("1.0.0", "1.1.0").replace("Extract", "Find"))

    def fallen(asked: Asked) -> Reply:
        worse = asked.body["model"] == models[-1] and asked.case_id in FALLEN
        return Reply(text=notice(asked.case_id, 1999 if worse else 2024))

    server.reply = fallen


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


def test_the_answers_on_one_model_fit_a_screen(server: ChatServer, library: Library) -> None:
    answered(server, library, MODELS[0])
    for command in ("try", "evaluate", "compare"):
        shown = screen(library, command, lines=26, last="next: look at case ")
        assert shown[0].startswith(f"{SKILL} 1.0.0 → 1.1.0")
        (head,) = (at for at, line in enumerate(shown[:3]) if line.startswith("metric "))
        assert shown[head].split()[-4:] == ["95", "%", "interval", "verdict"]
        assert shown[head + 1].startswith("field_level_f1 *"), "the critical metric comes first"
        assert sum("--full shows all figures" in line for line in shown) == 1
        assert any(line.startswith(f"▼ {SKILL}: regressed on these 12 cases") for line in shown[-8:])
    full = screen(library, "compare", "--full", lines=100, last="next: look at case ")
    assert sum(line.startswith("How to read the figures") for line in full) == 1


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
    assert "… and 39 more" in shown
    done = library.call("explain", library.run_folder().name, "--case", "alpha", "--full", env=KEY)
    assert done.out.count("\nright ") == 39
