"""A calibrated gate for people: what it said of halves of one run, beside what it should; text, Markdown or JSON."""

import json
import sys
from typing import Literal

from rich.console import Console
from rich.table import Table

from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.verdicts.calibration import Calibration, Planted

_WIDTH = 120
_COLUMNS = ("lowered by", "fell by", "times", "regressed", "nominal", "improved", "unchanged", "inconclusive")


def print_calibration(found: Calibration, form: Literal["text", "json", "markdown"]) -> None:
    """Write it to stdout."""
    if form == "json":
        json.dump(found.model_dump(mode="json"), sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif form == "markdown":
        sys.stdout.write(calibration_markdown(found))
    else:
        console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False)
        console.print(f"{visible(found.skill)} · {visible(found.model_id)} · run {visible(found.run_id)}")
        for line in _facts(found):
            console.print(line, soft_wrap=True)
        table = Table(*_COLUMNS, box=None, pad_edge=False)
        for column in table.columns:
            column.justify = "right"
        for row in found.planted:
            table.add_row(*_cells(row))
        console.print(table)
        console.print(_note(found), soft_wrap=True)


def calibration_markdown(found: Calibration) -> str:
    """The page: nothing in it that came from outside is taken for mark-up."""
    head = f"## Calibration of {code_span(found.skill)}, {code_span(found.model_id)}, run {code_span(found.run_id)}"
    lines = [head, "", *(f"- {line}" for line in _facts(found)), ""]
    lines += [f"| {' | '.join(_COLUMNS)} |", f"|{'---:|' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in found.planted]
    return "\n".join([*lines, "", _note(found)]) + "\n"


def _facts(found: Calibration) -> list[str]:
    left_out = f" ({found.left_out} with fewer than 4 answers left out)" if found.left_out else ""
    seen = "no drop, whatever its size," if found.detectable_drop is None else f"a drop of {found.detectable_drop:.3f}"
    return [
        f"halves of {found.replicates} replicates in {found.n_cases} cases{left_out}, {found.family} measures",
        f"false alarms {found.false_alarms:.1%} of {found.planted[0].times:,}, nominal at most {found.alpha:.1%}",
        f"at this size {seen} in {visible(found.metric)} alone is seen with 80 % power; "
        f"{found.tolerance:g} is tolerated",
    ]


def _cells(row: Planted) -> tuple[str, ...]:
    nominal = "–" if row.nominal is None else f"{'≤ ' if not row.drop else ''}{row.nominal:.1%}"
    shares = (row.improved, row.unchanged, row.inconclusive)
    return (
        f"{row.drop:.3f}",
        f"{abs(row.fell) if abs(row.fell) < 5e-4 else row.fell:.3f}",
        f"{row.times:,}",
        f"{row.regressed:.1%}",
        nominal,
        *(f"{one:.1%}" for one in shares),
    )


def _note(found: Calibration) -> str:
    gate = "these fixtures" if found.gate == "fixtures" else "cases beyond these fixtures"
    return (
        f"Verdicts of the gate (on {gate}) on random halves of one run, in which nothing differs but what was planted: "
        "every score of one half lowered. Nominal: of the primary metric alone, normal approximation."
    )
