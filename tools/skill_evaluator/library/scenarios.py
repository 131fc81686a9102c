"""A scenario: a system prompt around a component's own, to see how much a model moves when the surroundings change.

Read from `.evaluator/scenarios/<name>.md`: front matter (`name`, `intent`) and a body with `{{ prompt }}` in it once.
"""

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import StrictModel, read_text, validated
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.roots import Root
from skill_evaluator.library.yaml_files import parse_front_matter
from skill_evaluator.text import digest, nearest

BARE = "bare"  # the prompt by itself, which the other scenarios are compared with
SCHEMA_ALONE = "schema alone"  # without the prompt: what it adds is told beside this
_SLOT = "{{ prompt }}"


class ScenarioFrontMatter(StrictModel):
    """The YAML at the head of a scenario: its name, which is the file's, and what it stands for."""

    name: str
    intent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A template with its slot still in it."""

    name: str
    intent: str
    template: str

    def around(self, component: Component) -> Component:
        """Return the component under this scenario: its prompt stands in the template's slot."""
        return replace(
            component,
            prompt=self.template.replace(_SLOT, component.prompt),
            scenario=self.name,
            digests={**component.digests, "scenario": digest(self.template)},
        )


def load_scenario(config_dir: Path, name: str, limits: SafetyLimits = DEFAULT_LIMITS) -> Scenario:
    """Read one scenario; raise ConfigError."""
    folder = config_dir / "scenarios"
    paths = {path.stem: path for path in sorted(folder.glob("*.md"))}
    if name not in paths:
        raise ConfigError(f"unknown scenario '{name}' in {folder} {nearest(name, paths)}")
    path = Root(config_dir, ConfigError, follow_links=limits.follow_links).inside(paths[name])
    text = read_text(path, ConfigError, limits.size_of("prompt_bytes"))
    values, body = parse_front_matter(text, path, depth=limits.yaml_depth)
    front = validated(ScenarioFrontMatter, values, path)
    if front.name != name:
        raise ConfigError(f"name '{front.name}' in {path} is not the file's name '{name}'")
    if body.count(_SLOT) != 1:
        raise ConfigError(f"{path} must hold {_SLOT} once, where the component's own prompt goes")
    return Scenario(name=name, intent=front.intent, template=body.strip())


def spread_scenarios(config_dir: Path, count: int, seed: int) -> list[str]:
    """Return the names of so many scenarios, the bare prompt first, then drawn by the seed; raise ConfigError.

    The draw of a larger number begins with that of a smaller.
    """
    folder = config_dir / "scenarios"
    names = sorted(path.stem for path in folder.glob("*.md"))
    if not 1 < count <= len(names):
        raise ConfigError(f"--neutral must be from 2 to {len(names)}, the scenarios in {folder}, not {count}")
    random.Random(f"{seed}/scenarios").shuffle(names)  # noqa: S311 (no secret)
    return sorted(names, key=lambda name: name != BARE)[:count]


def apply_scenario(component: Component, config_dir: Path, scenario: str | None) -> Component:
    """Return the component under a scenario, or as it is when none is named; raise ConfigError."""
    if scenario is None:
        return component
    if scenario == SCHEMA_ALONE:
        return _without_prompt(component)
    return load_scenario(config_dir, scenario, component.limits).around(component)


def _without_prompt(component: Component) -> Component:
    """Return the component with no more in its prompt than what an answer must be; raise ConfigError."""
    if component.output == "choice":
        prompt = "Answer with the letter of the right option."
    elif component.schema is not None:
        prompt = f"Answer with JSON that this JSON Schema allows:\n\n{json.dumps(component.schema, indent=2)}"
    else:
        raise ConfigError(f"'{component.name}' has no schema, so that nothing is left to ask without its prompt")
    digests = {**component.digests, "scenario": digest(prompt)}
    return replace(component, prompt=prompt, scenario=SCHEMA_ALONE, digests=digests)
