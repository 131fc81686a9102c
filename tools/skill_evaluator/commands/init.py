"""`skill-evaluator init`: lay out in another repository what evaluations need. What is there stays as it is.

Everything is looked at before anything is written, so that a refusal leaves nothing behind.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir, suppress
from pathlib import Path

import typer
from rich.text import Text

from skill_evaluator.checking.lint import Linted, lint_component
from skill_evaluator.ci.legs import Secrets, secrets_of, stale_workflows, with_legs
from skill_evaluator.commands.schemas import EDITED, schema_text
from skill_evaluator.display.options import COMPONENTS, CONFIG, argument, flag, option, options
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Sheet, show
from skill_evaluator.errors import EXIT_OK, ComponentError, ConfigError, GitError
from skill_evaluator.files import read_text, replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.config import load_models, load_settings
from skill_evaluator.library.scaffolding import (
    EXAMPLE,
    declarations,
    example_files,
    fitting_parts,
    ignore,
    library_files,
)
from skill_evaluator.providers import read_configuration
from skill_evaluator.repository import Repository
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator init --name invoice-extraction",
    "skill-evaluator init --adopt",
    "skill-evaluator init --workflows",
)
_NEXT = """
Next:
1. .evaluator/requirements.txt: see that the workflows can reach the repository and commit that it names.
2. Try it: skill-evaluator lint && skill-evaluator evaluate {name} {trial}
3. Models: add yours to .evaluator/models.yaml; for each provider an environment with its key:
   gh api -X PUT 'repos/{{owner}}/{{repo}}/environments/eval-openai' && gh secret set PROVIDER_API_KEY --env eval-openai
   or a secret of the repository, which only jobs of that provider are given:
   skill-evaluator init --workflows && gh secret set OPENAI_API_KEY
4. Commit and push to {branch}: the push evaluates the new component on all models and records it.
5. From then on raise `version` in a prompt.md: MINOR and MAJOR are evaluated, PATCH is not.
More: docs/ci.md of skill-evaluator.
"""
_NEXT_OF_ADOPTED = """
Next: see that .evaluator/models.yaml has your models, then skill-evaluator lint && skill-evaluator plan
`skill-evaluator init` adds the workflows of GitHub and tools/evaluate_skill.py.
"""


@options
class InitOptions:
    """The options of `init`."""

    folder: Path = argument("The root of a repository.", Path(), metavar="DIR")
    name: str = option("What to call the example component.", EXAMPLE)
    example: bool = flag("Lay out the example component beside components that are there.")
    adopt: bool = flag(
        "Read a library that exists, and propose .evaluator/ and evals/datasets.json files, and nothing else."
    )
    yes: bool = flag("With --adopt: write what is proposed.")
    workflows: bool = flag("Only give the workflows that are there a job for each key of models.yaml.")


def init(options: InitOptions) -> int:
    """Lay out configuration, workflows and an example component in a repository; overwrites nothing."""
    if not is_component_name(options.name):
        raise ComponentError(f"--name '{options.name}' cannot be a component's (letters, digits, '.', '_', '-')")
    if options.yes and not options.adopt:
        raise ConfigError("--yes writes what --adopt proposes: give both")
    branch = _find_branch(options.folder)
    if options.workflows:
        return _write_legs(options.folder)
    # no example where anything has its name already, lest a component be mixed of two
    places = (f"components/{options.name}", f"fixtures/{options.name}")
    there = next((place for place in places if (options.folder / place).exists()), None)
    names = sorted(path.parent.name for path in options.folder.glob("components/*/prompt.md"))
    wanted = options.example or (not options.adopt and (options.name != EXAMPLE or not names))
    files = {**library_files(branch), **{f"{CONFIG}/schemas/{name}.json": schema_text(name) for name in EDITED}}
    secrets: Secrets = {}
    with suppress(ConfigError):  # of no models.yaml: those that are laid out need no key; lint names a wrong one
        secrets = secrets_of(read_configuration(options.folder / CONFIG))
    files |= {place: with_legs(text, secrets) for place, text in files.items() if place.startswith(".github/")}
    if options.adopt:
        files = {place: text for place, text in files.items() if place.startswith(".evaluator/")}
    if wanted and not there:
        files |= example_files(options.name)
    if options.adopt:
        return _adopt(options.folder, files, write=options.yes)
    _refuse_places(options.folder, (*files, ".gitignore"))
    _write_missing(options.folder, files)
    if there or not wanted:
        print(f"kept     {there or 'components'} (so no example is laid out)")
    ignore(options.folder)
    name = options.name if wanted else names[0]
    print(_NEXT.format(name=name, trial=_trial(options.folder / CONFIG), branch=branch), end="")
    return EXIT_OK


def _trial(config: Path) -> str:
    """Return the options of an evaluation that needs no key: on a local model, or without a call."""
    with suppress(ConfigError):  # of a team's own models.yaml, which `lint` names
        for model in load_models(config):
            if model.provider == "local":
                return f"--model {model.id} -n 2"
    return "--dry-run"


def _write_legs(folder: Path) -> int:
    """Give each workflow a job for each key that models.yaml names."""
    config = folder / CONFIG
    secrets = secrets_of(read_configuration(config))
    for path in stale_workflows(config, secrets):
        replace_text(path, with_legs(read_text(path), secrets))
        print(f"written  {path.relative_to(folder).as_posix()}")
    print(f"jobs of their own for {counted(len(secrets), 'key')}: {', '.join(secrets) or 'none'}")
    return EXIT_OK


def _refuse_places(folder: Path, places: Iterable[str]) -> None:
    """Raise ConfigError for the first place where no file can be written."""
    for path in (folder / place for place in places):
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, where a file is to be; move it away")
        above = next(folder for folder in path.absolute().parents if folder.exists() or folder.is_symlink())
        if not above.is_dir():
            raise ConfigError(f"{above} is a file, where a folder is to be; move it away")
        if not path.exists() and not os.access(above, os.W_OK | os.X_OK):
            raise ConfigError(f"cannot write into {above}: no permission")


def _write_missing(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files that are not there, and say of each whether it was; raise ConfigError before any is written."""
    _refuse_places(folder, files)
    for place, text in files.items():
        path = folder / place
        if path.is_symlink() or path.exists():
            same = path.exists() and path.read_bytes() == text.encode()
            print(f"kept     {place}" + ("" if same else " (another than this version's)"))
        else:
            replace_text(path, text)
            print(f"written  {place}")


def _find_branch(folder: Path) -> str:
    """Return the branch to evaluate; raise ConfigError below a repository's root, where GitHub sees no workflow."""
    existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise ConfigError(f"{existing} is not a folder")
    try:
        repository = Repository(existing)
    except GitError:
        return "main"
    if repository.root.resolve() != folder.resolve():
        raise ConfigError(
            f"{folder} is inside of the repository {repository.root}, and GitHub sees workflows at its root only; "
            f"say: skill-evaluator init {repository.root}"
        )
    return repository.main_branch()


def _adopt(folder: Path, files: Mapping[str, str], *, write: bool) -> int:
    """Show what of a library can be evaluated, and propose `files` and what else it lacks; raise ComponentError."""
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
        _write_missing(Path(), {place: proposed[place] for place in new})
        ignore(Path())
    print(_NEXT_OF_ADOPTED, end="")
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
