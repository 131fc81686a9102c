"""`skill-evaluator ci plan`, `collect`, `publish` and `report`: the steps of a workflow."""

import sys
from functools import partial
from pathlib import Path

from skill_evaluator.ci import collecting, publishing
from skill_evaluator.ci.collecting import CollectRequest
from skill_evaluator.ci.plan import outputs_of, read_outcome, sha256_of
from skill_evaluator.ci.planning import PlanRequest, make_plan
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.ci.publishing import PublishRequest
from skill_evaluator.display import visible
from skill_evaluator.display.pages import Format, Line, page_of, print_page
from skill_evaluator.errors import EXIT_BUG, EXIT_INCOMPLETE, EXIT_OK, InternalError, LeaderboardError, PlanError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library import options as cli
from skill_evaluator.library.config import load_settings
from skill_evaluator.reports.ci import outcome_page, plan_page
from skill_evaluator.text import counted

EXAMPLES = {
    "plan": (
        "skill-evaluator ci plan --base origin/main",
        "skill-evaluator ci plan <component> --model <model> --max-cost 5",
    ),
    "collect": ("skill-evaluator ci collect artifacts --plan plan.json --out collected",),
    "publish": (
        "skill-evaluator ci publish collected --to main",
        "skill-evaluator ci publish collected --mode branch --branch records",
    ),
    "report": ("skill-evaluator ci report collected --platform github",),
}
EXITS = {
    "collect": {4: "a run is incomplete (the others are collected)"},
    "publish": {2: "invalid input, or a record could not be published (the others are published)"},
    "report": {3: "regression or drift", 4: "missing run, another model answered, or a verdict of policy.fail_on"},
}


def plan(options: PlanRequest) -> int:
    """Plan the runs of a push and their maximum cost; write plan.json. Makes no call."""
    made = make_plan(options)
    replace_text(options.out, json_text(made.model_dump(mode="json")))
    print_page(options.format, json=lambda: made, page=lambda: plan_page(made))
    if options.platform is not None:
        platform = PLATFORMS[options.platform]
        platform.set_outputs({**outputs_of(made), "sha256": sha256_of(options.out)})
        platform.add_summary(plan_page(made))
        for fault in made.decisions.faults:
            platform.annotate("warning", fault.message, fault.file, fault.line)
    return EXIT_OK


def collect(options: CollectRequest) -> int:
    """Score the outputs of a plan's jobs; write one record per run, and outcome.json."""
    outcome, problems = collecting.collect(options)
    page = partial(outcome_page, outcome, site=options.configuration.settings.site.address)
    print_page(options.format, json=lambda: outcome, page=page)
    if options.platform is not None:
        PLATFORMS[options.platform].add_summary(page())
    elif not outcome.complete:
        for line in collecting.resume_commands(options, outcome):
            print(f"to make the missing calls: {visible(line)}", file=sys.stderr)
    elif not outcome.draft and any(run.run_id for run in outcome.runs):
        print("commands that begin with `git pull` require the records: run `ci publish` first", file=sys.stderr)
    has_bug = any(isinstance(problem, InternalError) for problem in problems)
    return EXIT_BUG if has_bug else EXIT_OK if outcome.complete else EXIT_INCOMPLETE


def publish(options: PublishRequest) -> int:
    """Commit collected records to a branch and push it; try again if the branch has moved."""
    records, commit, problems = publishing.publish(options)
    message, branch = "no record to publish", options.target if records else None
    if records and commit is None:
        message = f"{counted(len(records), 'record')} already on {branch}: nothing to do"
    elif records:
        message = f"{counted(len(records), 'record')} on {branch} of origin by {commit}"
    print_page(
        options.format,
        json=lambda: {"records": [record.run_id for record in records], "branch": branch, "commit": commit},
        page=lambda: page_of("published", [Line(message)]),
    )
    if problems:
        raise LeaderboardError("; ".join(map(str, problems)))
    return EXIT_OK


@cli.options
class ReportOptions(cli.ConfigOption):
    collected: Path = cli.argument("The folder that `ci collect` wrote.", Path("collected"))
    plan: Path | None = cli.rare("The file of `ci plan`, read if `ci collect` wrote nothing.", metavar="FILE")
    commits: tuple[str, ...] = cli.rare(
        "Comment on the merged PR of this commit; repeatable.", (), "--commit", metavar="COMMIT"
    )
    pull_request: int | None = cli.rare("Comment on this pull request.", metavar="NUMBER")
    open_from: str | None = cli.rare("Open a pull request from this branch.", None, "--open", metavar="BRANCH")
    to: str = cli.rare("With --open: the branch to merge the pull request into.", "main", metavar="BRANCH")
    published: bool = cli.rare(
        "With --unpublished, state that some records were not pushed.", True, negative="--unpublished"
    )
    platform: cli.PlatformName | None = cli.rare("On GitHub Actions: also write the job summary.")
    format: Format = cli.option("Format of the result.", "markdown", group=cli.COMMON)


def report(options: ReportOptions) -> int:
    """Show the results of a plan as a page, a job summary or a comment on a pull request."""
    platform = None if options.platform is None else PLATFORMS[options.platform]
    if options.commits or options.pull_request or options.open_from:
        if platform is None:
            raise PlanError("--commit, --pull-request and --open require --platform github")
        platform.check_access()
    settings, outcome = load_settings(options.config), read_outcome(options.collected, options.plan)
    page = partial(outcome_page, outcome, site=settings.site.address)
    print_page(options.format, json=lambda: outcome, page=page)
    if platform is not None:
        shown = page(published=options.published)
        platform.add_summary(shown)
        addresses = [] if options.pull_request is None else [platform.comment_on(options.pull_request, shown)]
        addresses += filter(None, (platform.comment(commit, shown) for commit in options.commits))
        for url in dict.fromkeys(addresses):
            print(f"comment: {url}", file=sys.stderr)
        if options.commits and not addresses:
            print("comment: none, because no merged pull request has a commit of this push", file=sys.stderr)
        if options.open_from and any(run.run_id for run in outcome.runs):
            address = platform.pull_request(options.open_from, options.to, "Record evaluations")
            print(f"pull request of the records: {address or 'nothing to review'}", file=sys.stderr)
    return outcome.exit_code(settings.policy)
