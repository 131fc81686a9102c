"""`skill-evaluator ci publish`: commit the collected records, and push them to a branch or for review."""

from skill_evaluator.api.ci import ContinuousIntegration
from skill_evaluator.ci.publishing import PublishRequest
from skill_evaluator.display.pages import Line, page_of, print_page
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator ci publish collected --to main",
    "skill-evaluator ci publish collected --mode branch --branch records",
)
EXITS = {2: "invalid input, or a record could not be published (the others are published)"}


def publish(options: PublishRequest) -> int:
    """Commit collected records to a branch and push it; tries again if the branch has moved."""
    done = ContinuousIntegration.publish(options)
    message = "no record to publish"
    if done.records and done.commit is None:
        message = f"{counted(len(done.records), 'record')} already on {done.branch}: nothing to do"
    elif done.records:
        message = f"{counted(len(done.records), 'record')} on {done.branch} of {options.remote} by {done.commit}"
    print_page(
        options.format,
        json=lambda: {"records": done.records, "branch": done.branch, "commit": done.commit},
        page=lambda: page_of("published", [Line(message)]),
    )
    if done.problems:
        raise LeaderboardError("; ".join(map(str, done.problems)))
    return EXIT_OK
