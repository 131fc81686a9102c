"""A cell's request: a benchmark under a scenario, asked about one case. Materials in, requests and their sizes out.

Its own module because running makes the requests and a dry run only weighs them.
"""

from collections.abc import Iterable
from dataclasses import replace

from skill_evaluator.audit.materials import Materials
from skill_evaluator.components import Component
from skill_evaluator.estimating import InputSize, input_sizes
from skill_evaluator.fixtures import Case
from skill_evaluator.prompting import build_request
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.replicates import Call


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
