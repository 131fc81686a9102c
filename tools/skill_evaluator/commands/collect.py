"""`skill-evaluator ci collect`: turn the artifacts of a plan's jobs into records and outcome.json.

Makes no call and changes no leaderboard. The outputs of all shards of a run are scored together.
"""

import sys

from skill_evaluator.api.ci import ContinuousIntegration
from skill_evaluator.ci.collecting import CollectRequest, resume_commands
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_BUG, EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.ci import add_outcome_summary, print_outcome

EXAMPLES = ("skill-evaluator ci collect artifacts --plan plan.json --out collected",)
EXITS = {4: "a run is incomplete (the others are collected)"}


def collect(options: CollectRequest) -> int:
    """Score the outputs of a plan's jobs; writes one record per component and model, and outcome.json."""
    outcome = ContinuousIntegration.collect(options)
    site = Site(options.configuration.settings.site.address)
    print_outcome(outcome, options.format, site)
    add_outcome_summary(outcome, options.platform, site)
    if not options.platform and not outcome.complete:
        for line in resume_commands(options, outcome):
            print(f"to make the missing calls: {visible(line)}", file=sys.stderr)
    return EXIT_BUG if outcome.has_bug else EXIT_OK if outcome.complete else EXIT_INCOMPLETE
