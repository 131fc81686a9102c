"""`skill-evaluator review`: accept drafted cases; queue outputs, label them and export the labels. Makes no call."""

from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from skill_evaluator.api import library_of
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.library import options as cli
from skill_evaluator.text import counted

EXAMPLES = {
    "review_cases": (
        "skill-evaluator review cases <component>",
        "skill-evaluator review cases <component> --accept draft-01 --accept 'draft-1*'",
    ),
    "review_serve": ("skill-evaluator review serve --reviewer ada",),
    "review_add": ("skill-evaluator review add pairs.jsonl --sample 20",),
    "review_export": ("skill-evaluator review export --labels labels.jsonl",),
}


@cli.options
class ReviewCasesOptions(cli.ComponentsOption, cli.FixturesOption, cli.ConfigOption):
    skill: str = cli.argument("The component.", metavar="COMPONENT")
    accept: tuple[str, ...] = cli.option("Accept these cases: an id or a pattern; repeatable.", (), metavar="ID")


def review_cases(options: ReviewCasesOptions) -> int:
    """Show or accept cases that a model drafted. Accept a case once a person has read and corrected it.

    An accepted case loses its mark `unreviewed` in meta.json and is evaluated from then on.
    """
    cases = library_of(options).review_cases(options.skill, accept=options.accept)
    for name in cases:
        print(name)
    if options.accept:
        print(f"{counted(len(cases), 'case')} accepted")
    else:
        advice = f"; correct them, then: skill-evaluator review cases {options.skill} --accept ID" if cases else ""
        print(f"{counted(len(cases), 'unreviewed case')}{advice}")
    return EXIT_OK


@cli.options
class ReviewServeOptions(cli.ConfigOption):
    reviewer: str = cli.option("The reviewer's name; default: the page asks.", "", metavar="NAME")
    port: int = cli.option("Port of the page; by default any free one.", 0, min=0, max=65535)


def review_serve(options: ReviewServeOptions) -> int:
    """Label queued outputs on a local web page. Stop it with Ctrl-C.

    The page also shows how many items wait and where reviewers differ. Its address contains a token, without which
    nobody can read or label. Several people may open it, each with a name.
    """
    server = library_of(options).judge.review_page(options.port)
    query = f"?{urlencode({'reviewer': options.reviewer})}" if options.reviewer else ""
    items = counted(len(server.queue.items()), "item")
    print(f"{items} to review at {server.address}{query} (Ctrl-C ends)", flush=True)
    with server, suppress(KeyboardInterrupt):  # Ctrl-C stops the server
        server.serve_forever()
    return EXIT_OK


@cli.options
class ReviewAddOptions(cli.ConfigOption):
    file: Path = cli.argument("JSON Lines, each with an id and two outputs.")
    sample: int | None = cli.option("Queue only N random pairs of the file.", metavar="N", min=1)
    seed: int = cli.rare("Seed of the sample.", 0)
    dimensions: tuple[str, ...] = cli.option("Dimension that reviewers compare; repeatable.", (), metavar="NAME")


def review_add(options: ReviewAddOptions) -> int:
    """Queue pairs of a file for people to label. Adding twice changes nothing.

    The file has the format of `judge pairwise` or `judge regression`. Their option --review queues doubtful items.
    """
    judge = library_of(options).judge
    fresh, queued = judge.queue_for_review(options.file, options.dimensions, sample=options.sample, seed=options.seed)
    already = f", {queued} already queued" if queued else ""
    print(f"{counted(fresh, 'item')} added to {options.config / 'reviews'}{already}")
    return EXIT_OK


@cli.options
class ReviewExportOptions(cli.ConfigOption):
    labels: Path = cli.option("File to create or extend; replaces labels of the same items.", ..., metavar="FILE")


def review_export(options: ReviewExportOptions) -> int:
    """Add reviewers' labels to a file of labels.

    Only items that were drawn at random are exported, but none of a `judge regression` run. Doubtful items are harder,
    so they would distort the agreement.
    """
    labels, disputed, others = library_of(options).judge.export_labels(options.labels)
    skipped = f"{disputed} disputed, {counted(others, 'item')} not drawn at random"
    print(f"{counted(labels, 'label')} in {options.labels}; skipped: {skipped}")
    return EXIT_OK
