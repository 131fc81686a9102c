"""What an audit is made of, read and checked: benchmarks (components) with their labelled cases, and scenarios.

Its own module because drawing the questions, asking them and scoring the answers all begin with it.

A cell's request: a benchmark under a scenario, asked about one case. Materials in, requests and their sizes out.

Its own module because running makes the requests and a dry run only weighs them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import read_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component, parse_prompt
from skill_evaluator.library.scenarios import Scenario, load_scenario
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.prices import InputSize, input_sizes
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.schedule import Call

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


def parts_of(cell: str) -> tuple[str, str, str]:
    """Benchmark, scenario and case of a cell.

    >>> parts_of("geography/bare/q-17")
    ('geography', 'bare', 'q-17')
    """
    benchmark, scenario, case = cell.split("/")
    return benchmark, scenario, case


class Cells:
    """Every cell that could be asked about; components are put into their scenarios once."""

    def __init__(self, materials: Materials) -> None:
        self._materials = materials
        self._under = {
            (name, scenario): template.around(material.component)
            for name, material in materials.benchmarks.items()
            for scenario, template in materials.scenarios.items()
        }

    def request(self, call: Call, *, seed: int, max_output_tokens: int) -> Request:
        """The request of a call; its seed derives from the cell, so that no two cells of a case share one."""
        component, case = self._asked(call.case_id)
        return build_request(component, case, replicate=call.replicate, seed=seed, max_output_tokens=max_output_tokens)

    def sizes(self, cells: Iterable[str]) -> dict[str, InputSize]:
        """By cell, the size of its request."""
        found: dict[str, InputSize] = {}
        for cell in cells:
            component, case = self._asked(cell)
            found |= input_sizes(component, [case])
        return found

    def _asked(self, cell: str) -> tuple[Component, Case]:
        benchmark, scenario, name = parts_of(cell)
        case = self._materials.benchmarks[benchmark].cases[name]
        return self._under[benchmark, scenario], replace(case, id=cell)
