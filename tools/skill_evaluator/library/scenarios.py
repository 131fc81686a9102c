"""Scenarios, `.evaluator/scenarios/<name>.md`: system-prompt templates; a subfolder is a family of scenarios."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import StrictModel, read_text, storing, validated
from skill_evaluator.identifiers import NAME_RULE, is_component_name, is_file_name
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.reading import ConfinedFolder, parse_front_matter
from skill_evaluator.text import digest, nearest

BARE = "bare"  # the prompt alone, the reference for the other scenarios
SCHEMA_ALONE = "without the prompt"  # the schema in place of the prompt, to measure the effect of the prompt
SLOT = "{{ prompt }}"


class ScenarioFrontMatter(StrictModel):
    """The YAML front matter of a scenario. If it is `unreviewed`, a model drafted it, and runs refuse it."""

    name: str
    intent: str
    unreviewed: bool = False


class Scenario(ScenarioFrontMatter):
    """A system-prompt template with `{{ prompt }}` in place of the component's prompt."""

    template: str

    @property
    def digest(self) -> str:
        """The digest of the template."""
        return digest(self.template)

    def around(self, component: Component) -> Component:
        """Return the component with its system message inside the template. Raise ConfigError for a program."""
        _refuse_program(component)
        prompt = component.prompt.within(*self.template.split(SLOT))
        digests = {**component.digests, "scenario": self.digest}
        return replace(component, prompt=prompt, scenario=self.name, digests=digests)


def _refuse_program(component: Component) -> None:
    if component.program is not None:
        raise ConfigError(f"component '{component.name}' is a program without a prompt, so it has no scenarios")


def load_scenario(config_dir: Path, name: str, limits: SafetyLimits = DEFAULT_LIMITS) -> Scenario:
    """Read the scenario `name`. Raise ConfigError if it is unknown, ambiguous, invalid or unreviewed."""
    folder = config_dir / "scenarios"
    paths: dict[str, Path] = {}
    for path in sorted([*folder.glob("*.md"), *folder.glob("*/*.md")]):
        if path.stem in paths:
            raise ConfigError(f"{path} and {paths[path.stem]} have the same name; rename one of them")
        paths[path.stem] = path
    if name not in paths:
        families = {path.parent.name: path.stem for path in paths.values() if path.parent != folder}
        if name in families:
            raise ConfigError(f"'{name}' is a family of scenarios; name one of them, such as {families[name]}")
        raise ConfigError(f"unknown scenario '{name}' in {folder} {nearest(name, [*paths, *families])}")
    scenario = read_scenario(config_dir, paths[name], limits)
    if scenario.unreviewed:
        advice = "review it, then delete `unreviewed` from its front matter"
        raise ConfigError(f"{paths[name]} was drafted by a model and is unreviewed; {advice}")
    return scenario


def read_scenario(config_dir: Path, path: Path, limits: SafetyLimits = DEFAULT_LIMITS) -> Scenario:
    """Read the scenario in a file, reviewed or not. Raise ConfigError if it is invalid."""
    inside = ConfinedFolder(config_dir, ConfigError, follow_links=limits.follow_links).inside(path)
    text = read_text(inside, ConfigError, limits.size_of("prompt_bytes"))
    values, body = parse_front_matter(text, inside, depth=limits.yaml_depth)
    front = validated(ScenarioFrontMatter, values, inside)
    scenario = Scenario(**front.model_dump(), template=body.strip())
    if scenario.name != path.stem:
        raise ConfigError(f"name '{scenario.name}' in {inside} is not the file's name '{path.stem}'")
    if body.count(SLOT) != 1:
        raise ConfigError(f"{inside} must contain {SLOT} exactly once, in place of the component's prompt")
    return scenario


def family_paths(config_dir: Path, family: str | None) -> list[Path]:
    """Return the scenario files of a family, or of no family if it is None. Raise ConfigError for an unknown family."""
    folder = config_dir / "scenarios"
    families = sorted({path.parent.name for path in folder.glob("*/*.md")})
    if family is not None and family not in families:
        raise ConfigError(f"no family '{family}' in {folder} {nearest(family, families)}")
    return sorted((folder / (family or "")).glob("*.md"))


def new_family(config_dir: Path, family: str) -> Path:
    """Return the folder for a new family of scenarios. Raise ConfigError if it exists or if the name is not valid."""
    if not is_component_name(family):
        raise ConfigError(f"--family '{family}' cannot be a family's name ({NAME_RULE})")
    folder = config_dir / "scenarios" / family
    if folder.exists():
        raise ConfigError(f"{folder} exists already; choose a new --family")
    return folder


def write_family(folder: Path, texts: Mapping[str, str]) -> None:
    """Create the folder with a file per scenario; `texts` is by scenario name. Raise StorageError if it exists."""
    with storing(folder):
        folder.mkdir(parents=True)  # raises if another process was faster
        for name, text in texts.items():
            with (folder / f"{name}.md").open("x", encoding="utf-8") as file:
                file.write(text)


def named_scenarios(config_dir: Path, names: Iterable[str]) -> list[str]:
    """Return scenario names without duplicates. The name of a family is replaced by those of its scenarios."""
    scenarios: dict[str, None] = {}
    for name in names:
        members = sorted((config_dir / "scenarios" / name).glob("*.md")) if is_file_name(name) else []
        scenarios |= dict.fromkeys([path.stem for path in members] or [name])
    return list(scenarios)


def apply_scenario(component: Component, config_dir: Path, scenario: str | None) -> Component:
    """Put the component's prompt into a scenario. If `scenario` is None, return the component unchanged.

    The scenario `SCHEMA_ALONE` replaces the prompt by the schema, or for multiple choice by one sentence. If a SKILL.md
    has no schema, the prompt is removed. Raise ConfigError if the scenario cannot be applied.
    """
    if scenario is None:
        return component
    if scenario != SCHEMA_ALONE:
        return load_scenario(config_dir, scenario, component.limits).around(component)
    _refuse_program(component)
    if component.output == "choice":
        prompt = "Answer with the letter of the right option."
    elif component.contract.schema is not None:
        prompt = f"Answer with JSON that this JSON Schema allows:\n\n{json.dumps(component.contract.schema, indent=2)}"
    elif component.files.origin is not None and component.prompt.is_plain:  # a skill's cases are complete requests
        prompt = ""
    else:
        raise ConfigError(f"component '{component.name}' has no schema to send in place of its prompt")
    digests = {**component.digests, "scenario": digest(prompt)}
    bare = component.prompt.bare(prompt) if prompt else replace(component.prompt, messages=())
    return replace(component, prompt=bare, scenario=SCHEMA_ALONE, digests=digests)
