"""`skill-evaluator review status`: how far the queue is, and how far its reviewers agree. Makes no call."""

from skill_evaluator.commands.options import ConfigOption, FormatOption, options
from skill_evaluator.commands.review_options import queue_with_items
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.people.agreement import review_status as status_of
from skill_evaluator.reports.reviewing import print_review_status

EXAMPLES = ("skill-evaluator review status",)


@options
class ReviewStatusOptions(ConfigOption, FormatOption):
    """The options of `review status`."""


def review_status(options: ReviewStatusOptions) -> int:
    """Say how far the queue is, how far its reviewers agree, and which items they see differently. Makes no call."""
    queue = queue_with_items(options.config)
    items = queue.items()
    print_review_status(status_of(items, queue.labels(items)), options.format)
    return EXIT_OK
