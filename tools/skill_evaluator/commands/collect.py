"""`skill-evaluator collect`: the artifacts of a plan's jobs → one record per component and model, and outcome.json.

It makes no call and touches no leaderboard. It scores the answers themselves, so that shards become one run. With
`--batches` every command that left batches goes on as it was begun, and asks nothing that it had not asked before.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote

from skill_evaluator.api import Library
from skill_evaluator.api.batches import UnfinishedBatches
from skill_evaluator.ci.arrivals import commands_again
from skill_evaluator.ci.collecting import CollectRequest
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.commands.audit import AuditRunOptions, audit_run
from skill_evaluator.commands.evaluating import measure
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import (
    AUDITS,
    JUDGEMENTS,
    FormatOption,
    PlatformOption,
    flag,
    option,
    options,
    rare,
    words_of,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import (
    EXIT_BUG,
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_REGRESSED,
    EXIT_USER_ERROR,
    RunError,
    SkillEvaluatorError,
)
from skill_evaluator.providers import Configuration
from skill_evaluator.providers.redaction import attempted
from skill_evaluator.reports.ci import print_outcome, tell_outcome
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.live import watch

EXAMPLES = (
    "skill-evaluator ci collect artifacts --plan plan.json --out collected",
    "skill-evaluator ci collect --batches",
    "skill-evaluator ci collect --batches --abandon <run>",
)
EXITS = {
    3: "worse than the recorded version (--batches)",
    4: "a run is not complete (the others are collected all the same)",
}


@options
class CollectOptions(CollectRequest, PlatformOption, FormatOption):
    """The options of `collect`."""

    batches: bool = flag("Take the answers of batches that --submit-only left; needs no plan.")
    planned: str | None = rare("With --batches: those of a job of plan --pending.", metavar="JOB")
    abandon: str | None = option(
        "With --batches: give up this pending run. Unanswered calls count as lost; the vendor is not asked.",
        metavar="RUN",
    )


def collect(options: CollectOptions) -> int:
    """Put the answers of a plan's jobs together; one record per component and model, and what became of every call."""
    if options.batches or options.abandon is not None:
        return _collect_batches(options)
    outcome = Library.at(options).collect(options)
    site = Site(options.configuration.settings.site.address)
    print_outcome(outcome, options.format, site)
    tell_outcome(outcome, options.platform, site)
    lost = [(run.skill, run.model_id) for run in outcome.runs if run.status in ("incomplete", "missing")]
    if lost and not options.platform and options.artifacts is not None:
        again = commands_again(read_plan(options.plan), options.artifacts, lost)
        folders = [quote(word) for word in words_of(options)]
        for line in again:
            print(f"to ask again what was lost: {visible(' '.join([line, *folders]))}", file=sys.stderr)
    return EXIT_BUG if outcome.has_bug else EXIT_OK if outcome.complete else EXIT_INCOMPLETE


def _collect_batches(options: CollectOptions) -> int:
    """Collect run by run, and return the worst exit code; what goes on at a vendor is no failure.

    The run folders of a `planned` job were of a different machine. Nothing of them is deleted at the vendor: what was
    taken is safe only once a later job has published it.
    """
    library, artifacts = Library.at(options), options.artifacts
    if options.planned is not None:
        roots = [artifacts or options.components]
        library.restore(options.plan, options.planned, roots[0])
    elif artifacts is not None and not artifacts.is_dir():
        raise RunError(f"{artifacts} is not a folder; name the folder that holds the runs, or leave it out")
    else:
        roots = [options.components, AUDITS, JUDGEMENTS] if artifacts is None else [artifacts]
    found = library.unfinished_batches(roots, options.abandon)
    for words in found.given_up:
        print(visible(words), file=sys.stderr)
    stories = list(_stories(options, library, found))
    if not stories and not found.problems and not found.given_up:
        print("no batch is left to collect", file=sys.stderr)
    codes = {EXIT_OK, *map(_tell, found.problems)}
    for story in stories:
        code = attempted("collect --batches", story)  # the others are collected all the same
        codes.add(_tell(code) if isinstance(code, SkillEvaluatorError) else code)
    return next(code for code in (EXIT_BUG, EXIT_USER_ERROR, EXIT_REGRESSED, EXIT_INCOMPLETE, EXIT_OK) if code in codes)


def _tell(problem: SkillEvaluatorError) -> int:
    """Print what keeps one run from being collected, and return its exit code."""
    print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
    return problem.exit_code


def _stories(options: CollectOptions, library: Library, found: UnfinishedBatches) -> Iterator[Callable[[], int]]:
    """Yield how to go on with each evaluation, audit and judging."""
    configuration, form = options.configuration, options.format
    if options.planned is not None:
        batch = configuration.settings.batch.model_copy(update={"delete_results": False})
        configuration = replace(configuration, settings=configuration.settings.model_copy(update={"batch": batch}))
    for request in found.evaluations:
        yield partial(measure, request, form, collecting=configuration)
    for (audit, shard), models in found.audits.items():
        begun = AuditRunOptions(
            resume=str(audit),
            shard=shard,
            models=tuple(models),
            audits=audit.parent,
            components=options.components,
            fixtures=options.fixtures,
            config=options.config,
            submit_only=True,
            format=form,
        )
        yield partial(audit_run, begun, collecting=configuration)
    for folder in found.judgings:
        yield partial(_judge, folder, library, configuration, form)


def _judge(folder: Path, library: Library, configuration: Configuration, form: Format) -> int:
    return print_judged(library.judge.collect(folder, configuration, watch=watch), form)
