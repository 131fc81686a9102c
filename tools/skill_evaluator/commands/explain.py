"""`skill-evaluator explain`: one answer of a saved run beside its truth, or one field over all answers."""

import re
import sys
from functools import partial

from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, RunError
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_models, load_settings
from skill_evaluator.records.record import SCORED
from skill_evaluator.reports.explanation import print_explanation
from skill_evaluator.reports.field_table import print_field
from skill_evaluator.runner.journal import ANSWERS, Manifest, edited_since, find_run, outcomes, read_component_manifest
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.runner.schedule import Call, schedule_calls
from skill_evaluator.scoring.answer_views import explain_answer, field_view, read_answers
from skill_evaluator.scoring.parallel import open_scores
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.text import nearest

EXAMPLES = (
    "skill-evaluator explain <run-id> --case <case-id>",
    "skill-evaluator explain <run-folder> --field <path>",
)
_INDEX = re.compile(r"\[[^\]]*\]")


@options
class ExplainOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `explain`."""

    run: str = argument("A run folder, or the id of a run in a component's evals/results.", completes="runs")
    case: str | None = option("Show this case leaf by leaf.", metavar="ID")
    replicate: int | None = option("Which answer, from 0; default: the first scored.", metavar="N")
    field: str | None = option("Show this field (as lint names it) in every case and replicate.", metavar="PATH")
    full: bool = flag("Shorten neither document nor values.")


def explain(options: ExplainOptions) -> int:
    """Show where a saved answer is right and wrong, field by field, and why; or one field over all answers."""
    folder = find_run(options.run, options.components)
    manifest = read_component_manifest(folder)
    _refuse_unknown(options, manifest)
    limits = load_settings(options.config).limits
    component = load_component(options.components, manifest.skill, limits, options.fixtures)
    cases = {case.id: case for case in load_cases(component, options.fixtures)}
    # what shaped the answers may be different now, and the model may have left models.yaml
    models = load_models(options.config, limits) if (options.config / "models.yaml").exists() else ()
    model = next((model for model in models if model.id == manifest.model_id), None)
    now = {name: digest for name, digest in component.digests.items() if name in ("prompt", "schema", "contract")}
    digests = {**manifest.digests, **(input_digests(component, model) if model else now)}
    present = {case_id: cases[case_id].digest for case_id in manifest.cases if case_id in cases}
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        print(f"warning: changed since these answers were given: {visible(', '.join(changed))}", file=sys.stderr)
    record = edited_since(folder, manifest, component.records_dir)
    if record is not None:
        print(f"warning: {record} was made of other answers than {folder / ANSWERS} holds", file=sys.stderr)
    wanted = [options.case] if options.case is not None else list(manifest.cases)
    gone = [case_id for case_id in wanted if case_id not in cases]
    if gone:
        raise RunError(f"{folder} cannot be explained: case '{gone[0]}' is no longer among the fixtures")
    journal, mine = outcomes(folder), [cases[case_id] for case_id in wanted]
    calls = [call for call in schedule_calls(wanted, manifest.asked) if call in journal]
    with open_scores(component, mine, len(calls)) as scores:
        scorer = Scorer(component, mine, manifest.asked, scores)
        scorer.add_all(journal[call] for call in calls)
        answered = []
        for case in mine:
            given = [journal.get(Call(case.id, index)) for index in range(manifest.asked)]
            outcome_of = partial(_outcome, scorer, case.id)
            answered.append((case, read_answers(component, case, given, outcome_of)))
        if options.field is not None:
            path = _INDEX.sub("[]", options.field)
            view = field_view(component, answered, scorer.scorecard().cases, path)
            print_field(view, manifest, options.format, full=options.full)
            return EXIT_OK
    ((case, answers),) = answered
    index = options.replicate
    if index is None:  # the first replicate that was scored, else the first that says anything
        scored = (answer.index for answer in answers if answer.outcome == SCORED)
        spoken = (answer.index for answer in answers if answer.text is not None)
        index = next(scored, next(spoken, 0))
    print_explanation(explain_answer(component, case, answers, index), manifest, options.format, full=options.full)
    return EXIT_OK


def _outcome(scorer: Scorer, case_id: str, index: int, text: str) -> str:
    return scorer.scored(case_id, text).outcome


def _refuse_unknown(options: ExplainOptions, manifest: Manifest) -> None:
    """Raise RunError unless the run has what the options name."""
    if options.case in manifest.not_applicable:
        why = manifest.not_applicable[options.case]
        raise RunError(f"case '{options.case}' is not applicable to {manifest.model_id}, and was not asked: {why}")
    if options.case is not None and options.case not in manifest.cases:
        raise RunError(f"unknown case '{options.case}' in {manifest.run_id} {nearest(options.case, manifest.cases)}")
    if options.field is None and options.case is None:
        cases = ", ".join(manifest.cases)
        raise RunError(f"say what of the run to explain: --case ID or --field PATH (its cases: {cases})")
    if options.replicate is None:
        return
    if options.field is not None:
        raise RunError("--replicate does not go with --field, which shows all replicates")
    if not 0 <= options.replicate < manifest.asked:
        last = manifest.asked - 1
        raise RunError(f"no replicate {options.replicate} in {manifest.run_id}: they are numbered 0 to {last}")
