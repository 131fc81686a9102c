"""The charts of an audit as SVG files: a finished result in, the paths of the files out.

Its own module because the libraries that draw are an extra, and reports do without them until something is drawn.
"""

from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.audit.findings.results import AuditResult
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError
from skill_evaluator.files import replace_text
from skill_evaluator.runner.runs import slug

INSTALL = "pip install altair vl-convert-python"
MAP, HEAT, NEUTRALITY, BOXES = "map.svg", "heat.svg", "neutrality.svg", "boxes.svg"
_LONGEST = 60  # characters of a benchmark in the name of a file


def draw(result: AuditResult, folder: Path) -> list[Path]:
    """Write every chart; raise AuditError where the extra is not installed, StorageError when the system refuses."""
    try:
        from skill_evaluator.audit.report.map import benchmark_map, overall_map
        from skill_evaluator.audit.report.pictures import box_chart, heat_map, neutrality_chart
        from skill_evaluator.display.chart_style import svg
    except ImportError as problem:
        raise AuditError(f"charts need libraries that do not load ({problem}): {INSTALL}") from problem
    charts = {
        MAP: overall_map(result),
        HEAT: heat_map(result),
        NEUTRALITY: neutrality_chart(result),
        BOXES: box_chart(result),
    }
    names = map_names([used.name for used in result.used])
    charts |= {name: benchmark_map(result, used) for name, used in zip(names, result.used, strict=True)}
    for name, chart in charts.items():
        replace_text(folder / name, svg(chart))
    return [folder / name for name in charts]


def map_names(benchmarks: Sequence[str]) -> list[str]:
    """List the names of the benchmarks' maps, each different whatever the benchmarks are called.

    >>> map_names(["GPQA", "gpqa"])
    ['map-gpqa.svg', 'map-gpqa-2.svg']
    """
    names: list[str] = []
    for place, benchmark in enumerate(benchmarks, 1):
        start = f"map-{slug(visible(benchmark)).lower()[:_LONGEST]}"
        names.append(f"{start}.svg" if f"{start}.svg" not in names else f"{start}-{place}.svg")
    return names
