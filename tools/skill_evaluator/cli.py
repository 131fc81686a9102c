"""The command line: arguments in, exit code out, and the one place where errors become a line on stderr.

Only the module of the command that was typed is imported, so that help and dry runs stay quick; nothing that `main`
needs imports pydantic, which would look for plugins before it is told not to.
"""

import atexit
import errno
import gc
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from skill_evaluator import __version__
from skill_evaluator.commands.options import command_of
from skill_evaluator.display.safe_text import inert_output, visible
from skill_evaluator.errors import EXIT_BUG, EXIT_USER_ERROR, SkillEvaluatorError

# Each command and the first line of its docstring; `audit run` is the function `audit_run` in commands/audit_run.py.
COMMANDS: Mapping[str, str] = {
    "demo": "Lay out a small prompt library with recorded runs: see a verdict, a history and an explanation.",
    "evaluate": "Run a component N times per case on its models; score accuracy and reproducibility; append to its "
    "leaderboard.",
    "try": "Ask with the prompt as it is on disk; judge it against the record of the same cases; show what answers "
    "changed.",
    "score": "Score a saved run again without a call; rewrites its record.json and report.md, touches no leaderboard.",
    "explain": "Show where a saved answer is right and wrong, field by field, and why; or one field over all answers.",
    "compare": "Say whether a version is worse than the recorded one, where, and how sure that is; makes no call.",
    "leaderboard": "Rank the models of each component: who is told apart, what each costs, and which one to ship. "
    "Makes no call.",
    "history": "Show every recorded version beside every model, each judged against the one before, and what made it "
    "worse.",
    "export": "Write records as tables (CSV, JSON Lines, Parquet), verdicts as JUnit XML, or a run for inspect or "
    "promptfoo.",
    "switch": "Ask every component of two models, in the same minutes, and say which would be worse with the new one.",
    "accept": "Make a recorded version the anchor: the baseline of later ones, with who and why. Makes no call.",
    "mutate": "Damage the prompt in known ways, ask every mutant, and say which of them the cases would not notice.",
    "plan": "Say what is to be evaluated, why, in how many calls and at what cost; write it to plan.json. Makes no "
    "call.",
    "collect": "Put the answers of a plan's jobs together: one record per component and model, and what became of "
    "every call.",
    "publish": "Add collected records to a branch in one commit and push it; tries again on top of whoever was "
    "quicker.",
    "report": "Show what became of a plan: as a page, a job's summary, and a comment on the pull request it is about.",
    "site build": "Write what is recorded as static pages, which open from the file system and from any server. Makes "
    "no call.",
    "site serve": "Show the site in the browser, for this machine alone, until Ctrl-C. Makes no call.",
    "lint": "Check components and all their cases; show how every field is compared, and why. Exit code 2 if one is "
    "wrong.",
    "records import": "Make records of another tool's results, for `compare`, `history` and `leaderboard`; importing "
    "again adds nothing.",
    "init": "Lay out configuration, workflows and an example component in a repository; overwrites nothing.",
    "doctor": "Say which model has a key where, and what stands in the way of runs here and in CI; only --probe makes "
    "calls.",
    "cases audit": "Say which cases never told two versions or models apart, and which disagree with the rest. Makes "
    "no call.",
    "cases fetch": "Bring the fixtures that settings.yaml names in another repository, and say at which commit they "
    "are.",
    "cases import": "Make cases of the rows of a table, each checked against the contract; overwrites nothing.",
    "schemas": "Write the JSON Schema of every file format, for editors and other tools.",
    "audit run": "Ask every model every question in every scenario, and keep the answers in audits/<id>.",
    "audit report": "Say how able and how steady each model is, how sure that is, and which to take for what; with "
    "page and charts.",
    "audit plan": "Draw an audit and cut it into jobs, one a model or a shard of its questions. Makes no call and "
    "needs no key.",
    "scenarios draft": "Have a model draft system-prompt templates for a domain, marked unreviewed; overwrites "
    "nothing.",
    "scenarios check": "Say whether a family of scenarios can carry an audit, by its texts and a trial's answers. "
    "Makes no call.",
    "judge score": "Score outputs by a rubric: evidence, justification, score, suggestion and confidence for each "
    "criterion.",
    "judge pairwise": "Compare outputs two by two, always in both orders; say which is better, and how much the order "
    "decides.",
    "judge rubric": "Have a model draft a rubric, marked unreviewed until a person has read it; overwrites nothing.",
    "judge lint": "Check rubrics: is every criterion one thing, described, observable, and nothing that a metric "
    "measures?",
    "judge regression": "Ask a judge, in both orders, whether candidate outputs are worse than the baseline's; code "
    "decides what ships.",
    "judge pin": "Keep a run's first answers in the repository, as the baseline of later judgements. Makes no call.",
    "judge calibrate": "Say what judges are worth: from verdicts on pairs that people labelled, and on outputs that "
    "code broke.",
    "review label": "Label what the queue holds, item by item, with single keys; goes on where it stopped. Makes no "
    "call.",
    "review serve": "Show the review queue as a page in the browser, for this machine alone, until Ctrl-C. Makes no "
    "call.",
    "review add": "Queue outputs for people to label, all of a file or a sample of it; adding twice changes nothing.",
    "review export": "Write the labels that count as CSV; or, with --items, what people agree on as pairs for `judge "
    "calibrate`.",
    "review import": "Add the labels of a CSV file, as `review export` writes it; importing it again changes nothing.",
    "review status": "Say how far the queue is, how far its reviewers agree, and which items they see differently. "
    "Makes no call.",
}
GROUPS: Mapping[str, str] = {
    "cases": "Make, fetch or audit cases, which are documents with known answers.",
    "records": "Leaderboards and records of components, as files.",
    "site": "Pages of everything that is recorded: an overview of all components, and each one in full.",
    "audit": "How much does a model move when the prompt around the task changes in ordinary ways?",
    "scenarios": "Families of system-prompt templates of your own, to audit in.",
    "judge": "Judge with a model what no metric can see, and measure what that judge is worth.",
    "review": "Have people label what judges leave to them: in the terminal (review --reviewer NAME), or on a page.",
}
_RUN = re.compile(r"\d|.*[/\\]")


def load_command(path: str) -> Any:
    """Import a command of COMMANDS and return it with its options."""
    name = path.replace(" ", "_")
    name += "_" * iskeyword(name)  # `try`
    module = import_module(f"skill_evaluator.commands.{name}")
    return command_of(getattr(module, name), path.split()[-1], module.EXAMPLES, getattr(module, "EXITS", {}))


class _LateCommands(TyperGroup):
    """Commands that are listed by their summaries, and loaded when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        path = " ".join([*ctx.command_path.split()[1:], name or ""])
        return name, load_command(path) if path in COMMANDS else listed, rest


def _application() -> typer.Typer:
    """Return the program with all its commands as they are listed."""
    root = typer.Typer(
        cls=_LateCommands,
        help="How right, how repeatable, and how much worse than last time is a versioned prompt?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def print_version(wanted: bool) -> None:
        if wanted:
            print(f"skill-evaluator {__version__}")
            raise typer.Exit

    @root.callback()
    def take_options(
        version: Annotated[
            bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        """Take the options that stand before a command."""

    groups = {"": root}
    for name, summary in GROUPS.items():
        groups[name] = typer.Typer(cls=_LateCommands, name=name, help=summary, no_args_is_help=True)
        root.add_typer(groups[name])
    for path, summary in COMMANDS.items():
        group, _, name = path.rpartition(" ")
        groups[group].command(name, help=summary)(lambda: None)
    return root


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 2 and one line for what the user can put right, 1 and a traceback for a bug."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads every installed package
    gc.disable()  # start-up leaves no garbage worth a walk; the engine turns it on again
    atexit.register(gc.freeze)  # nor does the end: what is alive goes with the process
    with inert_output():  # the error, too, since it quotes what was read
        _run(sys.argv[1:] if arguments is None else arguments)


def _run(arguments: list[str]) -> None:
    """Run one command, and turn what escapes it into a line on stderr and an exit code."""
    # now: a command takes its keys out of the environment
    keys = [value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN"))]
    try:
        try:
            _application()(args=_with_label(_with_resume_value(arguments)), prog_name="skill-evaluator")
        finally:
            sys.stdout.flush()  # what cannot be printed is an error of now, not of the exit
    except SkillEvaluatorError as problem:
        print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BUG)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            _report_bug(keys)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: the result could not be printed: {problem.strerror}", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    except Exception:
        _report_bug(keys)


def _report_bug(keys: Sequence[str]) -> NoReturn:
    """Print the traceback of the current exception without secrets, and exit with the code of a bug."""
    import traceback

    from skill_evaluator.providers.redaction import Redactor

    print(Redactor(keys)(traceback.format_exc()), file=sys.stderr, end="")
    sys.exit(EXIT_BUG)


def _with_resume_value(arguments: list[str]) -> list[str]:
    """Give `--resume` the value `latest` where it stands alone, which Typer does not know.

    The argument after it is its RUN if it looks like a run id (they begin with the year) or a path.
    """
    following = [*arguments[1:], ""]
    return [
        "--resume=latest" if argument == "--resume" and not _RUN.match(after) else argument
        for argument, after in zip(arguments, following, strict=False)
    ]


def _with_label(arguments: list[str]) -> list[str]:
    """Make `review --reviewer NAME` the command `review label`, which is the usual one of its group."""
    command, *rest = [*arguments, ""]
    usual = command == "review" and rest[0].startswith("-") and not {"-h", "--help"} & {rest[0]}
    return ["review", "label", *arguments[1:]] if usual else arguments
