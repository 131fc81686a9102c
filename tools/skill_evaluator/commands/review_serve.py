"""`skill-evaluator review serve`: the review queue as a page on this machine. Makes no call."""

from contextlib import suppress
from urllib.parse import urlencode

from skill_evaluator.commands.options import ConfigOption, option, options
from skill_evaluator.commands.review_options import OrderSeed, queue_with_items
from skill_evaluator.errors import EXIT_OK, JudgeError
from skill_evaluator.judges.people.server import HOST, ReviewServer
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review serve --reviewer ada",)


@options
class ReviewServeOptions(ConfigOption):
    """The options of `review serve`."""

    reviewer: str = option("Who labels; without it the page asks.", "", metavar="NAME")
    port: int = option("Default: any that is free.", 0, min=0, max=65535)
    seed: OrderSeed = 0


def review_serve(options: ReviewServeOptions) -> int:
    """Show the review queue as a page in the browser, for this machine alone, until Ctrl-C. Makes no call.

    The address holds a token: only who has it can read or label. Several people may open it, each with a name.
    """
    queue = queue_with_items(options.config)
    items = queue.items()
    queue.labels(items)  # what is wrong with them is said now, and not on the page
    try:
        server = ReviewServer(queue, options.port, options.seed)
    except OSError as problem:
        raise JudgeError(f"cannot listen on {HOST}:{options.port}: {problem.strerror}; choose another --port") from None
    query = f"?{urlencode({'reviewer': options.reviewer})}" if options.reviewer else ""
    print(f"{counted(len(items), 'item')} to review at {server.address}{query} (Ctrl-C ends)", flush=True)
    with server, suppress(KeyboardInterrupt):  # which is how it is ended
        server.serve_forever()
    return EXIT_OK
