"""`skill-evaluator explain`: one answer of a saved run beside its truth, or one field over all answers."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import COMPONENTS, CONFIG, Components, Config, Fixtures, Form
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, RunError
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_models
from skill_evaluator.records.record import SCORED
from skill_evaluator.reports.explanation import print_explanation
from skill_evaluator.reports.field_table import print_field
from skill_evaluator.runner.journal import MANIFEST, Manifest, outcomes, read_component_manifest
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.runner.schedule import Call
from skill_evaluator.scoring.explanation import explain_answer, read_answer
from skill_evaluator.scoring.field_views import field_view
from skill_evaluator.text import nearest

EXAMPLES = (
    "skill-evaluator explain <run-id> --case clean-stationer-cash-sale",
    "skill-evaluator explain <run-folder> --field total",
)
_RUNS_NAMED = 5
_INDEX = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """The options of `explain`."""

    run: Annotated[str, typer.Argument(help="A run folder, or the id of a run in a component's evals/results.")]
    case: Annotated[str | None, typer.Option("--case", metavar="ID", help="Show this case leaf by leaf.")] = None
    replicate: Annotated[
        int | None, typer.Option("--replicate", metavar="N", help="Which answer, from 0; default: the first scored.")
    ] = None
    field: Annotated[
        str | None,
        typer.Option("--field", metavar="PATH", help="Show this field (as lint names it) in every case and replicate."),
    ] = None
    full: Annotated[bool, typer.Option("--full", help="Shorten neither document nor values.")] = False
    components: Components = COMPONENTS
    fixtures: Fixtures = None
    config: Config = CONFIG
    format: Form = "text"


def explain(options: ExplainOptions) -> int:
    """Show where a saved answer is right and wrong, field by field, and why; or one field over all answers."""
    folder = _find_run(options.run, options.components)
    manifest = read_component_manifest(folder)
    _refuse_unknown(options, manifest)
    component = load_component(options.components, manifest.skill)
    cases = {case.id: case for case in load_cases(component, options.fixtures)}
    # what shaped the answers may be different now, and the model may have left models.yaml
    models = load_models(options.config) if (options.config / "models.yaml").exists() else ()
    model = next((model for model in models if model.id == manifest.model_id), None)
    now = {name: digest for name, digest in component.digests.items() if name in ("prompt", "schema")}
    digests = {**manifest.digests, **(input_digests(component, model) if model else now)}
    present = {case_id: cases[case_id].digest for case_id in manifest.cases if case_id in cases}
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        print(f"warning: changed since these answers were given: {visible(', '.join(changed))}", file=sys.stderr)
    wanted = [options.case] if options.case is not None else list(manifest.cases)
    gone = [case_id for case_id in wanted if case_id not in cases]
    if gone:
        raise RunError(f"{folder} cannot be explained: case '{gone[0]}' is no longer among the fixtures")
    journal = outcomes(folder)
    answered = []
    for case in (cases[case_id] for case_id in wanted):
        replicates = [journal.get(Call(case.id, index)) for index in range(manifest.asked)]
        read = [read_answer(index, given, component.output, case.options) for index, given in enumerate(replicates)]
        answered.append((case, read))
    if options.field is not None:
        view = field_view(component, answered, _INDEX.sub("[]", options.field))
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


def _find_run(run: str, components: Path) -> Path:
    """Find a run folder by its path, or by its id in the results of any component; raise RunError."""
    if Path(run).exists():
        return Path(run)  # what it lacks is said where it is read
    folders = {path.parent.name: path.parent for path in components.glob(f"*/evals/results/*/{MANIFEST}")}
    if run in folders:
        return folders[run]
    newest = sorted(folders)[-_RUNS_NAMED:]
    raise RunError(f"no run folder '{run}', and no run of that id below {components} {nearest(run, newest)}")


def _refuse_unknown(options: ExplainOptions, manifest: Manifest) -> None:
    """Raise RunError unless the run has what the options name."""
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
