"""What an audit is made of, read and checked: benchmarks (components) with their labelled cases, and scenarios.

Its own module because drawing the questions, asking them and scoring the answers all begin with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.components import Component, load_component, parse_prompt
from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import read_text
from skill_evaluator.fixtures import Case, load_cases
from skill_evaluator.scenarios import Scenario, load_scenario

_FIRST_SCENARIO = "bare"  # what the others are compared with
_BENCHMARK_OUTPUT = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The folders that are read."""

    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A benchmark with its cases that have a ground truth, by id; `unlabelled` is how many have none."""

    component: Component
    cases: Mapping[str, Case]
    unlabelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """Everything an audit asks about, by name, in the order in which it is asked."""

    benchmarks: Mapping[str, Material]
    scenarios: Mapping[str, Scenario]


def read_materials(places: Places, benchmarks: Sequence[str], scenarios: Sequence[str]) -> Materials:
    """Read them; raises ComponentError, FixtureError, ConfigError or AuditError."""
    return Materials(
        benchmarks={name: read_material(places, name) for name in dict.fromkeys(benchmarks)},
        scenarios={name: load_scenario(places.config, name) for name in dict.fromkeys(scenarios)},
    )


def read_material(places: Places, name: str) -> Material:
    """Read one benchmark; raises ComponentError, FixtureError or, where no case could be scored, AuditError."""
    component = load_component(places.components, name)
    cases = load_cases(component, places.fixtures)
    labelled = {case.id: case for case in cases if case.labelled}
    if not labelled:
        raise AuditError(f"no case of the benchmark '{name}' has a ground truth, so that no answer could be scored")
    return Material(component=component, cases=labelled, unlabelled=len(cases) - len(labelled))


def default_benchmarks(places: Places) -> tuple[str, ...]:
    """All components whose answer is a choice among options, by name; raises AuditError when there is none."""
    paths = sorted(places.components.glob("*/prompt.md"))
    chosen = (path for path in paths if _output_of(path) == _BENCHMARK_OUTPUT)
    found = tuple(path.parent.name for path in chosen)
    if not found:
        raise AuditError(
            f"no component in {places.components} has output: {_BENCHMARK_OUTPUT}; say what to audit on with "
            f"--benchmark NAME, or in {places.config / 'settings.yaml'}: audit: {{benchmarks: [NAME, NAME]}}"
        )
    return found


def _output_of(path: Path) -> str:
    front, _ = parse_prompt(read_text(path, ComponentError), path)
    return str(front.output)


def default_scenarios(places: Places) -> tuple[str, ...]:
    """All scenarios by name, the bare prompt first; raises AuditError when there is none."""
    names = sorted(path.stem for path in (places.config / "scenarios").glob("*.md"))
    if not names:
        raise AuditError(f"{places.config / 'scenarios'} holds no scenario; an audit compares two or more")
    return tuple(sorted(names, key=lambda name: name != _FIRST_SCENARIO))
