"""`skill-evaluator publish`: what `collect` put together → one commit, pushed to a branch, or up for review."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.text import Text

from skill_evaluator.ci.publishing import Target, publish_records, read_left, read_records
from skill_evaluator.display.options import ComponentsOption, FormatOption, argument, option, options
from skill_evaluator.display.sheets import print_result
from skill_evaluator.errors import EXIT_OK, LeaderboardError, PlanError
from skill_evaluator.records.record import Record
from skill_evaluator.repository import Repository
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator publish collected --to main",
    "skill-evaluator publish collected --mode branch --branch records",
)
EXITS = {2: "wrong input, or one could not be published (the others are there all the same)"}


@options
class PublishOptions(ComponentsOption, FormatOption):
    """The options of `publish`."""

    collected: Path = argument("What collect wrote.", Path("collected"))
    mode: Literal["push", "branch", "pull-request"] = option(
        "Onto the branch itself, a data branch, or a branch for review.", "push"
    )
    to: str = option("The branch that is evaluated.", "main", metavar="BRANCH")
    branch: str = option("The data branch, or the one for review.", "skill-evaluator-records", metavar="BRANCH")
    remote: str = option("The remote to push to.", "origin")


def publish(options: PublishOptions) -> int:
    """Add collected records to a branch in one commit and push it; tries again on top of whoever was quicker."""
    if not options.collected.is_dir():
        raise PlanError(f"{options.collected} is not a folder; give the one that collect wrote")
    records, problems = read_records(options.collected)
    left = read_left(options.collected, {record.run_id for record in records})
    pending = [run_id for (_, run_id), content in left.items() if content is not None]
    commit = branch = None
    if records or left:
        repository = Repository(options.components)
        branch = options.to if options.mode == "push" else options.branch
        target = Target(
            remote=options.remote,
            branch=branch,
            onto=options.to if options.mode == "pull-request" else None,
            components=repository.place(options.components),
            begins=options.mode != "push",
        )
        try:
            commit = publish_records(repository, records, target, _message(records, pending), left=left)
        except LeaderboardError as problem:
            raise LeaderboardError("; ".join(map(str, (*problems, problem)))) from None
    words = ", ".join(
        counted(len(group), noun) for group, noun in ((records, "record"), (pending, "pending run")) if group
    )
    if not records and commit is None and not pending:
        words = "no record to publish"
    elif commit is None:
        words = f"{words} already on {branch}: nothing to do"
    else:
        words = f"{words or 'no record'} on {branch} of {options.remote} by {commit}"
    print_result(
        options.format,
        json=lambda: {
            "records": [record.run_id for record in records],
            "branch": branch,
            "commit": commit,
            **({"pending": pending} if pending else {}),
        },
        markdown=lambda: f"{words}\n",
        text=lambda: [Text(words)],
    )
    if problems:
        raise LeaderboardError("; ".join(map(str, problems)))
    return EXIT_OK


def _message(records: Sequence[Record], pending: Sequence[str]) -> str:
    """Return the message of the commit: what is recorded, and what lies with vendors."""
    runs = ", ".join(dict.fromkeys(f"{record.skill} {record.skill_version}" for record in records))
    head = f"Record {counted(len(records), 'evaluation')}: {runs}"
    if not records:
        head = f"Keep {counted(len(pending), 'run')} at the vendor" if pending else "Drop runs that brought no answer"
    lines = [
        f"{record.skill} {record.skill_version} on {record.model_id}: {record.run_id}"
        + ("" if record.complete else " (incomplete)")
        for record in records
    ]
    return "\n".join([head[:200], "", *lines, *(f"{run_id}: its calls are in batches" for run_id in pending)])
