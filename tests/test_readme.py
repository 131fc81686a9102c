"""The README's commands work as they stand there, in its order, in a fresh clone."""

import importlib.util
import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.shell import FINE, ROOT, blocks, clone, type_block
from tests.support.library import call
from tests.support.markdown import mean_sentence

README = ROOT / "README.md"
SETUP = "python3 -m venv"
BLOCKS = [block for block in blocks(README) if not block.startswith(SETUP)]
LOCAL = [block for block in BLOCKS if "--model smollm2" in block]


@pytest.mark.local_model
@pytest.mark.parametrize("block", LOCAL, ids=lambda block: block.splitlines()[-1])
def test_blocks_with_the_local_model_run(block: str, tmp_path: Path) -> None:
    for typed in type_block(block, clone(tmp_path)):
        assert typed.code in FINE, f"{typed.command}\n{typed.err}"
        assert typed.out, typed.command


def test_other_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, and without what draws the charts; the commands within the text are typed in a shell."""
    for block in BLOCKS:
        place = tmp_path
        for line in () if block in LOCAL else block.splitlines():
            program, *words = shlex.split(line)
            if program == "cd":
                place = (place / words[0]).resolve()
            elif program != "source":
                assert program == "skill-evaluator"
                done = call(place, *words)
                assert done.code in FINE, f"{line}\n{done.err}"
                assert done.out, line


def test_commands_within_the_text_run(tmp_path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", README.read_text(), flags=re.DOTALL | re.MULTILINE)
    commands = re.findall(r"`(skill-evaluator [^`]* [^`]*--[^`]*)`", text)
    for typed in type_block("\n".join(commands), clone(tmp_path)):
        assert typed.code in FINE, f"{typed.command}\n{typed.err}"


def test_set_up_commands_are_those_that_ci_runs() -> None:
    lines = [line for line in README.read_text().splitlines() if line.startswith(SETUP)]
    assert "charts" in lines[0], "`site build` needs them"
    assert [line.split(" && ")[-1].split()[1:3] for line in lines] == [
        [".venv/bin/activate"],  # for whom the demonstration is enough
        ["tools/evaluate_skill.py", "receipt-extraction"],
        ["-m", "pytest"],
    ]
    assert "readme_command evaluate_skill" in (ROOT / ".ci" / "run").read_text()
    assert "readme_command pytest" in (ROOT / ".ci" / "run").read_text()


def test_readme_is_short() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 200
    assert mean_sentence(text) < 18


def test_picture_shows_the_output_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    loaded = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert loaded is not None
    assert loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    monkeypatch.setitem(sys.modules, "picture", module)
    loaded.loader.exec_module(module)

    def demonstration(folder: Path) -> Path:
        assert call(folder, "demo", "demo").code == 0
        return folder / "demo"

    drawn = module.drawn(replace(module.PICTURES["verdict.svg"], lay_out=demonstration))
    assert _words(drawn.decode()) == _words((ROOT / "docs" / "verdict.svg").read_text("utf-8"))
    text = README.read_text()
    assert all(f"](docs/{name})" in text for name in module.PICTURES)
    assert all(0 < (ROOT / "docs" / name).stat().st_size < 150_000 for name in module.PICTURES)


def _words(picture: str) -> list[str]:
    return " ".join(re.findall(r">([^<]+)</text>", picture)).replace("&#160;", " ").split()
