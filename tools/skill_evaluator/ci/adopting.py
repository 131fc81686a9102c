"""`init --adopt`: find the components of a library, in our format or in others, and the files that it lacks.

A library in other formats is read in place. Our files then go into `.evaluator/` only, or below `--out`.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from skill_evaluator.checking.lint import Linted, lint_component
from skill_evaluator.ci.layout import Choose, InitRequest, component_there, files_of_library, write_missing
from skill_evaluator.display.options import COMPONENTS, CONFIG
from skill_evaluator.errors import ComponentError, ConfigError, SkillEvaluatorError
from skill_evaluator.files import read_text, replace_text, validated
from skill_evaluator.library.config import DeclaredSource, Model, Settings, load_models, load_settings
from skill_evaluator.library.reading import parse_yaml, yaml_text
from skill_evaluator.library.scaffolding import IGNORED_IN_CONFIG, declarations, example_files, fitting_parts, ignore
from skill_evaluator.library.sources import NOT_READ, component_names, formats, origin_of
from skill_evaluator.library.sources.tree import folder_tree
from skill_evaluator.scoring.parallel import side_by_side

_JUDGE = Model(id="judge", provider="openai")  # placeholder of a judge that is not yet configured
_MOST_READ = 200  # components in other formats that are read for the summary; `lint` reads all


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The components of a library, their candidate output schemas, the files to create by path, and lines of
    .gitignore.

    The `declared` files contain declarations that the components lack. `found` has the number of matches per searched
    format, and `lost` the files that belong to no component. `unread` is the number of components that were not read,
    and `sentences` the number of checks that need a judge.
    """

    linted: Sequence[Linted]
    files: Mapping[str, str]
    found: Sequence[tuple[str, int]]
    contracts: Mapping[str, str] = field(default_factory=dict)
    declared: Collection[str] = ()
    ignored: Sequence[str] = ()
    unread: int = 0
    sentences: int = 0
    lost: Sequence[str] = ()


def propose(request: InitRequest, schemas: Mapping[str, str], choose: Choose) -> Proposal:
    """Return the components of a library and the files that it lacks, by path in its folder; raise ComponentError.

    `choose` returns the part of a component's schema that is its output schema, if there are several candidates.
    """
    folder = request.folder
    files = files_of_library(request, schemas)
    if request.name and not component_there(folder, request.name):
        files |= example_files(request.name)
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    request = replace(request, folder=folder.absolute(), out=request.out and request.out.absolute())
    with chdir(folder):
        own = component_names(COMPONENTS)
        tree = folder_tree(Path(), load_settings(CONFIG).limits)
        places = {kind: len(source.find(tree)) for kind, source in formats().items() if kind != "own"}
        found = [(f"{COMPONENTS}/<name>/prompt.md", len(own))]
        found += [(formats()[kind].looks_for, count) for kind, count in places.items()]
        if own and not request.out:
            left = [f"left out: {words} ({n:,}); docs/sources.md says how both are read" for words, n in found[1:] if n]
            return replace(_of_own(own, files, found, choose), lost=() if load_settings(CONFIG).sources else left)
        if kinds := [*(["own"] if own else []), *(kind for kind, count in places.items() if count)]:
            lost = [str(left) for kind in kinds for left in formats()[kind].lost(tree)]
            if request.out and (cases := Path("fixtures").absolute()).is_dir():
                lost.append(f"with each command type --fixtures {cases}")
            return replace(_of_sources(request, kinds, files, found), lost=lost)
    looked = f"looked for {', '.join(words for words, _ in found)}"
    there = {pattern for pattern in NOT_READ if any(fnmatch(path, pattern) for path in tree.paths)}
    unread = "".join(f"; {pattern} is not read: {NOT_READ[pattern]}" for pattern in sorted(there))
    raise ComponentError(f"{folder} holds no component to adopt; {looked}{unread}; `init` writes an example")


def _of_own(
    names: Sequence[str], files: Mapping[str, str], found: Sequence[tuple[str, int]], choose: Choose
) -> Proposal:
    settings = load_settings(CONFIG)
    limits = settings.limits
    linted = list(side_by_side(lambda name: lint_component(COMPONENTS, name, None, (), settings), names))
    bare = [name for name in names if not (COMPONENTS / name / "evals" / "datasets.json").exists()]
    fitting = {name: parts for name in bare if (parts := fitting_parts(COMPONENTS / name, limits))}
    chosen = {
        name: parts[0] if len(parts) == 1 or parts[0].endswith("/output") else choose(name, parts)
        for name, parts in fitting.items()
    }
    contracts = {name: place for name, place in chosen.items() if place}
    texts = {name: declarations(COMPONENTS / name, contracts.get(name), limits) for name in bare}
    declared = {f"{COMPONENTS}/{name}/evals/datasets.json": text for name, text in texts.items() if text}
    return Proposal(
        linted=linted,
        contracts=contracts,
        files={place: text for place, text in {**files, **declared}.items() if not Path(place).exists()},
        declared=declared.keys() - files.keys(),
        ignored=ignore(Path(), write=False),
        found=found,
    )


def _of_sources(
    request: InitRequest, kinds: Sequence[str], files: Mapping[str, str], found: Sequence[tuple[str, int]]
) -> Proposal:
    """Read components in other formats as they would be read once settings.yaml names their sources."""
    settings, here = load_settings(CONFIG), Path.cwd()
    judge = settings.policy.judge.model
    if judge is None and "policy" not in settings.model_fields_set:  # else two parts of it would stand there
        with suppress(ConfigError):  # the last of several models can judge what the others answer
            models = load_models(request.home / CONFIG)
            judge = models[-1].id if len(models) > 1 else None
    model = _JUDGE.model_copy(update={"id": judge or _JUDGE.id})
    judging = settings.policy.judge.model_copy(update={"model": model.id})
    would = settings.model_copy(update={"policy": settings.policy.model_copy(update={"judge": judging})})
    with tempfile.TemporaryDirectory() as folder:
        config = CONFIG.absolute()
        if not settings.sources:
            roots = {"own": here / COMPONENTS}
            sources = [DeclaredSource(kind=kind, root=str(roots.get(kind, here))) for kind in kinds]
            config = Path(folder, CONFIG)
            config.mkdir()
            config.joinpath("settings.yaml").write_text(_settings_text("", sources, None, config))

        def read(name: str) -> tuple[Linted, Mapping[str, Any]]:
            linted = lint_component(config / "components", name, None, (), would, [model])
            hints: Mapping[str, Any] = {}
            with suppress(SkillEvaluatorError):
                if origin := origin_of(config / "components", name):
                    hints = origin.here(would.limits).hints
            return _without((f"{folder}/", f"{here}/"), linted), hints

        names = component_names(config / "components")
        every = list(side_by_side(read, names[:_MOST_READ]))
    sentences = sum(check.kind == "expect" for component, _ in every for check in component.checks)
    wanted = dict(files)
    if hints := [hint for _, hint in every if hint]:
        wanted[f"{CONFIG}/models.yaml"] = _models_text(hints)
    wanted[f"{CONFIG}/.gitignore"] = "".join(f"{line}\n" for line in IGNORED_IN_CONFIG)
    wanted = {place: text for place, text in wanted.items() if not (request.home / place).exists()}
    if not settings.sources:
        path = CONFIG / "settings.yaml"
        named = [source if request.out else source.model_copy(update={"root": "."}) for source in sources]
        text = wanted.get(str(path)) or read_text(request.home / path)
        wanted[str(path)] = _settings_text(text, named, judge if sentences else None, path)
    return Proposal(
        linted=[linted for linted, _ in every],
        files=wanted,
        found=found,
        unread=len(names) - len(every),
        sentences=sentences if judge is None else 0,
    )


def _without(folders: Sequence[str], linted: Linted) -> Linted:
    """Return the same with places as seen from here."""

    def shown(text: str) -> str:
        for folder in folders:
            text = text.replace(folder, "")
        return text

    problems, inferred = (list(map(shown, lines)) for lines in (linted.problems, linted.inferred))
    reason = linted.not_evaluated and shown(linted.not_evaluated)
    return replace(linted, problems=problems, inferred=inferred, not_evaluated=reason)


def _settings_text(text: str, sources: Sequence[DeclaredSource], judge: str | None, where: Path) -> str:
    """Return the text of a settings.yaml with added lines; raise ConfigError if the result is invalid."""
    declared: dict[str, Any] = {"sources": [source.model_dump(exclude_defaults=True) for source in sources]}
    if judge is not None:
        declared["policy"] = {"judge": {"model": judge}}
    text = f"{text.rstrip()}\n{yaml_text(declared)}".lstrip()
    if judge is not None:
        text += f"    # trusted: [{judge}]  # counts as calibrated, without labels\n"
    validated(Settings, parse_yaml(text, where), where)
    return text


def _models_text(hints: Sequence[Mapping[str, Any]]) -> str:
    """Return a models.yaml of the models that prompts were written for, each once; the first says its parameters."""
    models: dict[str, dict[str, Any]] = {}
    for hint in hints:
        vendor, _, name = str(hint.get("model", "")).replace(":", "/").rpartition("/")
        provider = next((each for each in ("anthropic", "google") if each in vendor), "openai")
        params = {key: value for key, value in hint.items() if key != "model"}
        if name:
            models.setdefault(name, {"id": name, "provider": provider, **({"params": params} if params else {})})
    return f"# The models that the prompts name.\n{yaml_text({'models': list(models.values())})}"


def adopt(request: InitRequest, proposal: Proposal) -> list[str]:
    """Write the proposed files and return one report line per file."""
    settings = f"{CONFIG}/settings.yaml"
    path, files, lines = request.home / settings, dict(proposal.files), []
    if path.exists() and settings in files:
        replace_text(path, files.pop(settings))
        lines.append(f"added to {settings}: sources")
    lines += write_missing(request.home, files)
    return [*lines, *(["added to .gitignore"] if proposal.ignored and ignore(request.home) else ())]
