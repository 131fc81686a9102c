"""Shared by `evaluate` and `try`: evaluate, show the results, and return the exit code."""

import sys
from collections.abc import Mapping
from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.ci.plan import planned_request, read_plan
from skill_evaluator.commands.options import agreed
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import folders_of, words_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import (
    EXIT_BUG,
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_REGRESSED,
    EXIT_USER_ERROR,
    NotEvaluatedError,
    RunError,
    SkillEvaluatorError,
)
from skill_evaluator.evaluation.dry_run import dry_run
from skill_evaluator.evaluation.many import evaluate_many, plan_many
from skill_evaluator.evaluation.pipeline import EvaluationResult, evaluate, evaluate_at_each_save
from skill_evaluator.evaluation.request import EvaluationRequest, ManyRequest
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.archive import entry_of
from skill_evaluator.records.selection import skipped_run_notes
from skill_evaluator.reports.evaluation import evaluation_json, evaluation_page, write_report
from skill_evaluator.reports.live import watch
from skill_evaluator.reports.many import many_json, many_page, print_planned
from skill_evaluator.reports.planning import print_dry_run
from skill_evaluator.runner.session import print_resume_command


def measure(request: EvaluationRequest, form: Format, *, full: bool = False, show_changes: bool = False) -> int:
    """Evaluate, show the results (all rows if `full`), and return the exit code."""
    done = evaluate(request, watch, write_report)
    return _show(done, request, form, full=full, show_changes=show_changes)


def measure_at_each_save(request: EvaluationRequest, form: Format, *, full: bool) -> int:
    """Evaluate a prompt after each save, show the results, and return the exit code of the last evaluation."""
    code = EXIT_INCOMPLETE
    for done in evaluate_at_each_save(request, watch, write_report):
        code = _show(done, request, form, full=full, show_changes=True)
    return code


def _show(done: EvaluationResult, request: EvaluationRequest, form: Format, *, full: bool, show_changes: bool) -> int:
    """Show the results of an evaluation, and return the exit code."""
    site = Site(done.inputs.settings.site.address)
    changes = done.changed_outputs() if show_changes else []
    page = evaluation_page(done, changes, words_of(request), site)
    print_page(form, json=lambda: evaluation_json(done, changes), page=lambda: page, full=full)
    if done.verdict is None:
        _warn_without_verdict(done, show_changes=show_changes)
    print_resume_command(done.resume_command())
    if done.problems:
        raise done.problems[0]
    return _code(Library(**folders_of(request)), done)


def measure_planned(request: ManyRequest, form: Format, plan: Path, run: str) -> int:
    """Make or resume a run of a plan, show the results, and return the exit code."""
    read = read_plan(plan)
    request = planned_request(request, read, read.run(run))
    if request.dry_run:
        return print_dry_run(dry_run(request), form)
    return measure(request, form)


def measure_many(request: ManyRequest, form: Format) -> int:
    """Show the cost of several components, evaluate them after confirmation, and return the worst exit code."""
    library = Library(**folders_of(request))
    planned = plan_many(request)
    print_planned(planned)
    done: Mapping[str, EvaluationResult | SkillEvaluatorError] = {}
    if planned.ready and not request.dry_run:
        if request.max_cost is None and not agreed("Ask them?", yes=request.yes):
            raise RunError("no call was made; set a cap with --max-cost USD, or use --yes to run without a cap")
        done = evaluate_many(request, planned, watch, write_report)
    if done or form == "json":
        folders = words_of(request)
        print_page(form, json=lambda: many_json(done, planned), page=lambda: many_page(done, planned, folders))
    broken = [problem for problem in planned.left_out.values() if not isinstance(problem, NotEvaluatedError)]
    codes = [_code(library, each) for each in (*done.values(), *broken)]
    codes += [EXIT_USER_ERROR for plan in planned.ready if plan.problems and request.dry_run]
    codes = codes or [EXIT_INCOMPLETE] * bool(planned.left_out and not request.dry_run)  # nothing was measured
    return next(
        (code for code in (EXIT_BUG, EXIT_REGRESSED, EXIT_INCOMPLETE, EXIT_USER_ERROR) if code in codes), EXIT_OK
    )


def _code(library: Library, done: EvaluationResult | SkillEvaluatorError) -> int:
    if isinstance(done, SkillEvaluatorError):
        return done.exit_code
    if done.problems:
        return done.problems[0].exit_code
    scored = (run.record for run in done.finished if not (run.record.is_final and entry_of(run.record).is_baseline))
    if not all(record.complete for record in scored):
        return EXIT_INCOMPLETE
    return EXIT_OK if done.verdict is None else library.exit_code([done.verdict])


def _warn_without_verdict(done: EvaluationResult, *, show_changes: bool) -> None:
    """Print on stderr the reason why there is no verdict, and the remedy."""
    name = done.inputs.component.name
    for record in done.judged:
        notes = [*skipped_run_notes(done.archive.entries, entry_of(record), None), record.served_note]
        for note in filter(None, notes):
            print(f"warning: {note}", file=sys.stderr)
    if done.inputs.request.scenario == SCHEMA_ALONE and done.judged:
        print(f"evaluate {name} without --no-prompt, too, to see what the prompt adds", file=sys.stderr)
    if show_changes and done.judged:
        print(f"there is no complete record to compare with: evaluate {name} first", file=sys.stderr)
