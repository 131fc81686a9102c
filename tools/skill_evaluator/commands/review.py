"""`skill-evaluator review`: accept drafted cases; queue outputs, label them and export the labels. Makes no call."""

from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from skill_evaluator.api import Library
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    argument,
    folders_of,
    option,
    options,
    rare,
)
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.library.cases import text_of
from skill_evaluator.text import counted, listed

EXAMPLES = {
    "review_cases": (
        "skill-evaluator review cases",
        "skill-evaluator review cases COMPONENT --accept draft-01 --accept 'draft-1*'",
    ),
    "review_serve": ("skill-evaluator review serve --reviewer ada",),
    "review_add": ("skill-evaluator review add pairs.jsonl --sample 20",),
    "review_export": ("skill-evaluator review export --labels labels.jsonl",),
}
_HOW_TO_ACCEPT = "; correct their files, then: skill-evaluator review cases COMPONENT --accept ID"


@options
class ReviewCasesOptions(ComponentsOption, FixturesOption, ConfigOption):
    """The options of `review cases`."""

    skill: str | None = argument("The component; default: all.", None, metavar="COMPONENT")
    accept: tuple[str, ...] = option("Accept these cases: an id or a pattern; repeatable.", (), metavar="ID")


def review_cases(options: ReviewCasesOptions) -> int:
    """Show the cases that a model drafted, or accept those that a person has read and corrected.

    An accepted case loses its mark `unreviewed` and is evaluated from then on.
    """
    library = Library(**folders_of(options))
    if options.accept:
        accepted = library.accept_cases(options.skill, options.accept)
        print(f"accepted: {listed(accepted) or 'none, no case that matches is unreviewed'}")
        return EXIT_OK
    waiting = library.unreviewed_cases(options.skill)
    for name, cases in waiting.items():
        for case, place in cases:
            print(f"{name}: {case.id}, in {place}\n{case.document.strip()}\n→ {text_of(case.truth)}\n")
    count = sum(map(len, waiting.values()))
    print(f"{counted(count, 'unreviewed case')}{_HOW_TO_ACCEPT if count else ''}")
    return EXIT_OK


@options
class ReviewServeOptions(ConfigOption):
    """The options of `review serve`."""

    reviewer: str = option("The reviewer's name; default: the page asks.", "", metavar="NAME")
    port: int = option("Port of the page; 0: any free one.", 0, min=0, max=65535)


def review_serve(options: ReviewServeOptions) -> int:
    """Label queued outputs on a local web page. Stop it with Ctrl-C.

    The page also shows how many items wait and where reviewers differ. Its address contains a token, without which
    nobody can read or label. Several people may open it, each with a name.
    """
    server = Library(config=options.config).judge.review_page(options.port)
    query = f"?{urlencode({'reviewer': options.reviewer})}" if options.reviewer else ""
    print(
        f"{counted(len(server.queue.items()), 'item')} to review at {server.address}{query} (Ctrl-C ends)", flush=True
    )
    with server, suppress(KeyboardInterrupt):  # Ctrl-C stops the server
        server.serve_forever()
    return EXIT_OK


@options
class ReviewAddOptions(ConfigOption):
    """The options of `review add`."""

    file: Path = argument("JSON Lines: id and two outputs.")
    sample: int | None = option("Queue N random items.", min=1)
    seed: int = rare("Seed of the sample.", 0)
    dimensions: tuple[str, ...] = option("A dimension to compare in; repeatable.", (), metavar="NAME")


def review_add(options: ReviewAddOptions) -> int:
    """Queue pairs of a file for people to label. Adding twice changes nothing.

    The file is in the format of `judge pairwise` or `judge regression`, which queue doubtful items with --review.
    """
    judge = Library(config=options.config).judge
    fresh, known = judge.queue_for_review(options.file, options.dimensions, sample=options.sample, seed=options.seed)
    already = f", {known} already queued" if known else ""
    print(f"{counted(fresh, 'item')} added to {options.config / 'reviews'}{already}")
    return EXIT_OK


@options
class ReviewExportOptions(ConfigOption):
    """The options of `review export`."""

    labels: Path = option("The file of labels, which `judge calibrate` reads.", ..., metavar="FILE")


def review_export(options: ReviewExportOptions) -> int:
    """Add agreed labels to a file of labels.

    Only items that were drawn at random are exported: doubtful items are harder than the rest.
    """
    labels, disputed, others = Library(config=options.config).judge.export_labels(options.labels)
    skipped = f"{disputed} disputed, {counted(others, 'item')} not drawn at random"
    print(f"{counted(labels, 'label')} in {options.labels}; skipped: {skipped}")
    return EXIT_OK
