"""`skill-evaluator compare`: compare a version with its baseline and show where it is worse, with confidence."""

from dataclasses import replace

from skill_evaluator.api import Library
from skill_evaluator.commands.options import named_verdicts
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import Full, OnlyModels, RecordOptions, argument, flag, option, options, words_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.reports.comparison import comparison_page
from skill_evaluator.reports.summary import Reader
from skill_evaluator.runner.journal import answers_in

EXAMPLES = (
    "skill-evaluator compare <component>",
    "skill-evaluator compare <component> --baseline 1.2.0 --model <model>",
    "skill-evaluator compare old.csv new.csv",
    "skill-evaluator compare <component> --models <model> <model>",
)
EXITS = {3: "regression", 4: "another model answered, or a verdict of --fail-on"}


@options
class CompareOptions(RecordOptions):
    """The options of `compare`."""

    skill: str | None = argument("A component, a record, or results of a different tool.", None, "COMPONENT")
    second_file: str | None = argument("The file to compare with the first one.", None, "FILE")
    baseline: str | None = option("Version, run or file; default: the accepted baseline.", metavar="VERSION")
    candidate: str | None = option("Version, run or file to judge; default: the newest.", metavar="VERSION")
    models: OnlyModels = ()
    between: tuple[str, str] | None = option("Compare model B with model A.", None, "--models", metavar="A B")
    full: Full = False
    different_days: bool = flag("The two files were measured on different days.")
    fail_on: tuple[str, ...] = option("Verdicts that fail; default: settings.yaml.", (), metavar="VERDICT,...")


def compare(options: CompareOptions) -> int:
    """Compare a version with its baseline; show what got worse, and how sure that is. Makes no call."""
    if options.second_file is not None:
        if options.baseline or options.candidate or options.between:
            raise LeaderboardError("two files are compared: remove --baseline, --candidate and --models")
        options = replace(options, skill=None, baseline=options.skill, candidate=options.second_file)
    fail_on = named_verdicts(options.fail_on)
    library = Library(options.components, config=options.config)
    result = library.compare(
        options.skill,
        baseline=options.baseline,
        candidate=options.candidate,
        models=options.models,
        between=options.between,
        different_days=options.different_days,
    )
    outputs = None if options.skill is None else answers_in(library.component(options.skill).results_dir)
    reader, site = Reader(outputs=outputs, folders=words_of(options)), Site(library.settings.site.address)
    print_page(
        options.format, json=lambda: result, page=lambda: comparison_page(result, reader, site), full=options.full
    )
    return library.exit_code([result], fail_on)
