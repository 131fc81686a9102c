"""`skill-evaluator judge pin`: some of a run's outputs, kept in the repository as a baseline. Makes no call."""

from rich.text import Text

from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    argument,
    option,
    options,
)
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import print_result
from skill_evaluator.errors import EXIT_OK, JudgeError
from skill_evaluator.judges.modes.regression_batch import outputs_of_run
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.records.pinned import PinReport, pinned_folder, write_pinned
from skill_evaluator.runner.journal import find_run, read_component_manifest
from skill_evaluator.runner.runs import slug
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator judge pin components/<component>/evals/results/<run-id>",
    "skill-evaluator judge pin <run-id> --case 'clean-*'",
)


@options
class JudgePinOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `judge pin`."""

    run: str = argument("A run folder, or the id of a run in a component's evals/results.")
    cases: tuple[str, ...] = option("Only the outputs of these cases; repeatable.", (), "--case", metavar="GLOB")


def judge_pin(options: JudgePinOptions) -> int:
    """Keep a run's first answers in the repository, as the baseline of later judgements. Makes no call.

    They go to components/<name>/evals/pinned/, in place of those of the same model. `judge regression --candidate RUN`
    holds a new run against them.
    """
    folder = find_run(options.run, options.components)
    if read_component_manifest(folder).draft:
        raise JudgeError(f"{folder} is a draft, which is no baseline; pin a run of a version that is recorded")
    outputs, unanswered = outputs_of_run(folder)
    component = load_component(
        options.components, outputs.skill, load_settings(options.config).limits, options.fixtures
    )
    cases = {case.id: case for case in load_cases(component, options.fixtures, options.cases)}
    wanted = [case_id for case_id in cases if case_id in outputs.outputs or case_id in unanswered]
    if not wanted:
        raise JudgeError(f"{folder} asked none of these cases")
    for case_id in wanted:
        if case_id in unanswered:
            raise JudgeError(
                f"case '{case_id}' of {folder} has no answer ({unanswered[case_id]}); name others with --case"
            )
        if outputs.outputs[case_id].case != cases[case_id].digest:
            raise JudgeError(f"case '{case_id}' is not as it was when {folder} was run; pin a newer run")
    kept = outputs.model_copy(update={"outputs": {case_id: outputs.outputs[case_id] for case_id in wanted}})
    path = pinned_folder(component.folder) / f"{slug(outputs.model_id)}.json"
    write_pinned(path, kept)
    report = PinReport(**kept.model_dump(exclude={"outputs"}), path=path.as_posix(), cases=wanted)
    whose = f"{kept.skill} {kept.skill_version} by {kept.model_id}"
    print_result(
        options.format,
        json=lambda: report.model_dump(mode="json"),
        markdown=lambda: f"{counted(len(wanted), 'output')} of {code_span(whose)} pinned in {code_span(str(path))}\n",
        text=lambda: [Text(visible(f"{counted(len(wanted), 'output')} of {whose} pinned in {path}; commit it"))],
    )
    return EXIT_OK
