"""`skill-evaluator doctor`: say which model has a key where, and what stands in the way of runs here and in CI."""

from skill_evaluator.api import Library
from skill_evaluator.display import cost_words
from skill_evaluator.display.options import ConfigOption, FormatOption, option, options
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import print_result
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.ci import print_doctor

EXAMPLES = ("skill-evaluator doctor", "skill-evaluator doctor --format json")
EXITS = {0: "nothing is wrong in what could be looked at", 4: "something is, and the output says what to do"}


@options
class DoctorOptions(ConfigOption, FormatOption):
    """The options of `doctor`."""

    probe: str | None = option("Ask whether answers depend on load.", metavar="MODEL")


def doctor(options: DoctorOptions) -> int:
    """Say what stands in the way of runs, here and in CI; which model has a key where. Only --probe makes calls.

    Keys here are environment variables. Those in CI are secrets, whose names `gh` lists if it is logged in; without it
    the command says that it could not look. No key is shown or checked with its vendor.
    """
    library = Library.at(options)
    if options.probe is None:
        report = library.doctor()
        print_doctor(report, options.format)
        return EXIT_INCOMPLETE if report.problems else EXIT_OK
    told = library.probe(options.probe)
    cost = cost_words(told["cost_usd"])
    calls = f"{told['model']}: {told['answered']} of {told['calls']} calls answered, cost {cost}"
    print_result(
        options.format,
        json=lambda: told,
        markdown=lambda: f"- {code_span(calls)}\n- {code_span(told['verdict'])}\n",
        text=lambda: map(visible, (calls, told["verdict"])),
    )
    return EXIT_OK if told["answered"] == told["calls"] else EXIT_INCOMPLETE
