"""A calibrated gate for people: what it said of halves of one run, beside what it should; text, Markdown or JSON."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, print_result
from skill_evaluator.verdicts.calibration import Calibration, Planted

_COLUMNS = ("lowered by", "fell by", "times", "regressed", "nominal", "improved", "unchanged", "inconclusive")


def print_calibration(result: Calibration, form: Format) -> None:
    """Print a calibration to stdout."""
    print_result(
        form,
        json=lambda: result.model_dump(mode="json"),
        markdown=lambda: calibration_markdown(result),
        text=lambda: _text(result),
    )


def _text(result: Calibration) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{result.skill} · {result.model_id} · run {result.run_id}"))
    yield from map(Text, _facts(result))
    rows = [[Cell(text) for text in _cells(row)] for row in result.planted]
    yield Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS))
    yield Text(_note(result))


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
