"""`init --adopt`: what a library that exists is ready for, and the files that are proposed to evaluate it.

Nothing is written unless a person says so, on a terminal or with --yes, and then only files that are not there.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

import typer
from rich.text import Text

from skill_evaluator.checking.lint import Linted, lint_component
from skill_evaluator.commands.options import COMPONENTS, CONFIG
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Sheet, show
from skill_evaluator.errors import EXIT_OK, ComponentError
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.scaffolding import declarations, fitting_parts, ignore
from skill_evaluator.text import counted

_NEXT = """
Next: see that .evaluator/models.yaml has your models, then skill-evaluator lint && skill-evaluator plan
`skill-evaluator init` adds the workflows of GitHub and tools/evaluate_skill.py.
"""


def adopt(
    folder: Path, files: Mapping[str, str], write_missing: Callable[[Path, Mapping[str, str]], None], *, write: bool
) -> int:
    """Show what of a library can be evaluated and propose what it lacks, besides `files`; raise ComponentError."""
    with chdir(folder):
        names = sorted(path.parent.name for path in COMPONENTS.glob("*/prompt.md"))
        if not names:
            raise ComponentError(f"{COMPONENTS} in {folder} holds no component to adopt; `init` lays out an example")
        limits = load_settings(CONFIG).limits
        linted = [lint_component(COMPONENTS, name, None, (), (), limits) for name in names]
        bare = [name for name in names if not (COMPONENTS / name / "evals" / "datasets.json").exists()]
        fitting = {name: parts for name in bare if (parts := fitting_parts(COMPONENTS / name, limits))}
        contracts = {name: _choose_part(name, parts) for name, parts in fitting.items()}
        declared = {name: place for name, place in contracts.items() if place}
        texts = {name: declarations(COMPONENTS / name, declared.get(name), limits) for name in bare}
        proposed = {
            **files,
            **{f"{COMPONENTS}/{name}/evals/datasets.json": text for name, text in texts.items() if text},
        }
        show([_standings(linted, declared), Text()])
        for place, text in proposed.items():
            if not Path(place).exists():
                print(f"proposed {place}{'' if place in files else ': ' + ' '.join(text.split())}")
        if ignored := ignore(Path(), write=False):
            print(f"proposed .gitignore: {' '.join(ignored)}")
        new = [place for place in proposed if not Path(place).exists()]
        count = len(new) + bool(ignored)
        if count and not write and _is_terminal():
            write = typer.confirm(f"Write {counted(count, 'file')}?")
        if not count or not write:
            print("nothing was written; --yes writes what is proposed" if count else "nothing is to be written")
            return EXIT_OK
        write_missing(Path(), {place: proposed[place] for place in new})
        ignore(Path())
    print(_NEXT, end="")
    return EXIT_OK


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _choose_part(name: str, parts: Sequence[str]) -> str | None:
    """Return the part of a schema that is the contract: the only one that fits or is called output, else as told."""
    if len(parts) == 1 or parts[0].endswith("/output"):
        return parts[0]
    if not _is_terminal():
        return None
    print(f"Which part of its schema does {visible(name)} answer with? 0: none of these")
    for number, part in enumerate(parts, 1):
        print(f"{number}: {visible(part)}")
    number = typer.prompt("Number", type=int, default=0)
    return parts[number - 1] if 0 < number <= len(parts) else None


def _standings(linted: Sequence[Linted], declared: Mapping[str, str]) -> Sheet:
    rows = []
    for component in linted:
        if component.name in declared:
            standing, why = "ready", f"with {declared[component.name]} as its contract"
        elif component.problems:
            standing, why = "wrong", component.problems[0]
        elif component.not_evaluated is not None:
            standing, why = "not yet", component.not_evaluated.partition(": ")[2]
        else:
            standing, why = "ready", "; ".join((counted(component.cases, "case"), *component.inferred))
        rows.append((Cell(component.name), Cell(standing, "red" if standing == "wrong" else ""), Cell(why)))
    return Sheet(columns=("component", "evaluated", "why"), rows=rows)
