"""`skill-evaluator evaluate`, `try`, `switch` and `mutate`: run prompts, show the results and return the exit code."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from skill_evaluator import errors
from skill_evaluator.api import Library, evaluate_and_report, evaluate_planned, library_of, switch_models
from skill_evaluator.ci.plan import planned_request, read_plan
from skill_evaluator.display.pages import print_page
from skill_evaluator.evaluation import many, mutation, pipeline
from skill_evaluator.evaluation.pipeline import EvaluationResult
from skill_evaluator.evaluation.runs import EvaluationRequest
from skill_evaluator.library import options as cli
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.archive import entry_of
from skill_evaluator.records.selection import skipped_run_notes
from skill_evaluator.reports.evaluation import evaluation_json, evaluation_page, print_dry_run, write_reports
from skill_evaluator.reports.live import agreed, watch
from skill_evaluator.reports.many import many_json, many_page, mutation_page, print_planned, switch_json, switch_page
from skill_evaluator.runner.session import print_resume_command

EXAMPLES = {
    "evaluate": (
        "skill-evaluator evaluate --max-cost 5",
        "skill-evaluator evaluate <component> --dry-run",
        "skill-evaluator evaluate <component> --model <model> --replicates 2",
        "skill-evaluator evaluate <component> --recorded-baseline",
        "skill-evaluator evaluate <component> --failing",
        "skill-evaluator evaluate <component> --resume",
    ),
    "try_": (
        "skill-evaluator try <component>",
        "skill-evaluator try <component> --case 'clean-*' -n 2",
        "skill-evaluator try <component> --watch --max-cost 0.50",
    ),
    "switch": (
        "skill-evaluator switch <model> <model> --dry-run",
        "skill-evaluator switch <model> <model> <component>",
    ),
    "mutate": (
        "skill-evaluator mutate <component> --model <model> --dry-run",
        "skill-evaluator mutate <component> --model <model> --max-cost 2",
    ),
}
EXITS = {
    "evaluate": {3: "regression", 4: "incomplete run, another model answered, or a verdict of policy.fail_on"},
    "try_": {3: "regression", 4: "incomplete run, another model answered, or a verdict of policy.fail_on"},
    "switch": {3: "regression with the new model", 4: "a component not compared, or a verdict of policy.fail_on"},
    "mutate": {4: "a mutant is undecided (the same command resumes)"},
}


@cli.options
class EvaluateOptions(many.ManyRequest):
    full: cli.Full = False
    plan: Path = cli.rare("With --planned: the file that `ci plan` wrote.", Path("plan.json"), metavar="FILE")
    run_of_plan: str | None = cli.rare(
        "Start or continue the run that has this id in the plan.", None, "--planned", metavar="RUN"
    )


def evaluate(options: EvaluateOptions) -> int:
    """Run a prompt on its cases and models; score the outputs and record the result."""
    if options.run_of_plan:
        options = planned_request(options, read_plan(options.plan), options.run_of_plan)
    elif not options.skill or options.changed or options.base is not None or set("*?[") & set(options.skill):
        return _evaluate_many(options)
    if options.dry_run:
        return print_dry_run(many.dry_run(options), options.format)
    return _show(evaluate_and_report(options, watch), options, full=options.full)


@cli.options
class TryOptions(cli.LimitsOption, cli.LibraryOptions):
    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    cases: cli.Cases = ()
    replicates: int = cli.option("Calls per case and model.", 3, "-n")
    models: cli.OnlyModels = ()
    full: cli.Full = False
    watch: bool = cli.flag("Evaluate again after each save; default limit: 200 calls.")
    results: Path | None = cli.rare("Folder for the runs; default: the component's evals/results.", metavar="DIR")


def try_(options: TryOptions) -> int:
    """Evaluate the prompt on disk without recording it; show the verdict and the outputs that changed.

    The outputs stay in the run folder, so that `explain` can show them.
    """
    passed_on = options.__dataclass_fields__.keys() - {"full", "watch"}
    values = {name: getattr(options, name) for name in passed_on}
    request = EvaluationRequest(**values, draft=True, leaderboard=False)
    if not options.watch:
        return _show(evaluate_and_report(request, watch), request, full=options.full, show_changes=True)
    code = errors.EXIT_INCOMPLETE
    for done in pipeline.evaluate_at_each_save(request, watch):
        code = _show(write_reports(done), request, full=options.full, show_changes=True)
    return code


def switch(options: many.SwitchRequest) -> int:
    """Compare two models on every component, or on the named components.

    Both models are called at the same time, and the results are recorded. If the old model does not answer, its newest
    record of the same version is used.
    """
    result = switch_models(options, watch)
    folders = cli.words_of(options)
    print_page(options.format, json=lambda: switch_json(result, folders), page=lambda: switch_page(result, folders))
    return result.exit_code


def mutate(options: mutation.MutationRequest) -> int:
    """Remove parts of a prompt and show whether the cases notice.

    A mutant lacks one sentence, bullet or section; --mutants limits the number of mutants. All mutants are called
    interleaved with the whole prompt. Nothing is recorded; the outputs stay in one folder, and the same command resumes
    there without repeating a call.
    """
    result = mutation.mutate(options, watch)
    value = {**result.model_dump(mode="json"), "score": result.score}
    print_page(options.format, json=lambda: value, page=lambda: mutation_page(result))
    if result.dry_run or not result.count("undecided"):
        return errors.EXIT_OK
    print(mutation.RESUME_ADVICE, file=sys.stderr)
    return errors.EXIT_INCOMPLETE


def _show(done: EvaluationResult, request: EvaluationRequest, *, full: bool, show_changes: bool = False) -> int:
    site = done.inputs.settings.site.address
    changes = done.changed_outputs() if show_changes else []
    page = evaluation_page(done, changes, cli.words_of(request), site)
    print_page(request.format, json=lambda: evaluation_json(done, changes), page=lambda: page, full=full)
    if done.verdict is None:
        _warn_without_verdict(done, show_changes=show_changes)
    print_resume_command(done.resume_command())
    if done.problems:
        raise done.problems[0]
    return _code(library_of(request), done)


def _evaluate_many(request: many.ManyRequest) -> int:
    library = library_of(request)
    planned = many.plan_many(request)
    print_planned(planned)
    done: Mapping[str, EvaluationResult | errors.SkillEvaluatorError] = {}
    if planned.ready and not request.dry_run:
        if request.max_cost is None and not agreed("Make these calls?", yes=request.yes):
            remedy = "set a cap with --max-cost USD, or use --yes to run without this cap"
            if planned.cost_at_most_usd is None:  # --max-cost requires the price of each model
                remedy = "the price of a model is unknown: use --yes, and cap the calls with --max-calls N"
            raise errors.RunError(f"no call was made; {remedy}")
        done = evaluate_planned(request, planned, watch)
    if done or request.format == "json":
        folders = cli.words_of(request)
        page = partial(many_page, done, planned, folders)
        print_page(request.format, json=lambda: many_json(done, planned), page=page)
    broken = [problem for problem in planned.left_out.values() if not isinstance(problem, errors.NotEvaluatedError)]
    codes = [_code(library, each) for each in (*done.values(), *broken)]
    codes += [errors.EXIT_USER_ERROR for plan in planned.ready if plan.problems and request.dry_run]
    codes = codes or [errors.EXIT_INCOMPLETE] * bool(planned.left_out and not request.dry_run)  # nothing was measured
    worst_first = (errors.EXIT_BUG, errors.EXIT_REGRESSED, errors.EXIT_INCOMPLETE, errors.EXIT_USER_ERROR)
    return next((code for code in worst_first if code in codes), errors.EXIT_OK)


def _code(library: Library, done: EvaluationResult | errors.SkillEvaluatorError) -> int:
    if isinstance(done, errors.SkillEvaluatorError):
        return done.exit_code
    if done.problems:
        return done.problems[0].exit_code
    scored = (run.record for run in done.finished if not (run.record.is_final and run.record.is_baseline))
    if not all(record.complete for record in scored):
        return errors.EXIT_INCOMPLETE
    return errors.EXIT_OK if done.verdict is None else library.exit_code([done.verdict])


def _warn_without_verdict(done: EvaluationResult, *, show_changes: bool) -> None:
    name = done.inputs.component.name
    for record in done.judged:
        notes = [*skipped_run_notes(done.archive.entries, entry_of(record), None), record.served_note]
        for note in filter(None, notes):
            print(f"warning: {note}", file=sys.stderr)
    if done.inputs.request.scenario == SCHEMA_ALONE and done.judged:
        print(f"to see what the prompt adds, also run: skill-evaluator evaluate {name}", file=sys.stderr)
    if show_changes and done.judged:
        print(f"no complete record to compare with; first run: skill-evaluator evaluate {name}", file=sys.stderr)
