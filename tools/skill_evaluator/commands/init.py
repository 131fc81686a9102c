"""`skill-evaluator init`, `demo`, `schemas`, `lint` and `doctor`: write the files of a library and check its set-up."""

import contextlib
import shlex
import sys
from pathlib import Path

from rich.text import Text

from skill_evaluator.api import Library, library_of
from skill_evaluator.api.schemas import edited_schemas, write_schemas
from skill_evaluator.ci import linting
from skill_evaluator.ci.layout import InitRequest, adopt, create_library, find_branch, propose
from skill_evaluator.ci.linting import LintRequest
from skill_evaluator.display import visible
from skill_evaluator.display.pages import page_of, print_page, show
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR, ConfigError
from skill_evaluator.files import replace_text
from skill_evaluator.library import options as cli
from skill_evaluator.library.scaffolding import DEMO, DEMO_VERSIONS, demo_files, demo_version
from skill_evaluator.reports.ci import doctor_blocks
from skill_evaluator.reports.lint import adoption_sheet, declared_words, mark_linted, not_evaluated, print_linted
from skill_evaluator.reports.live import agreed
from skill_evaluator.text import counted

EXAMPLES = {
    "init": (
        "skill-evaluator init --name invoice-extraction",
        "skill-evaluator init --adopt",
        "skill-evaluator init --workflows",
    ),
    "demo": ("skill-evaluator demo", "skill-evaluator demo /tmp/tour"),
    "schemas": ("skill-evaluator schemas .evaluator/schemas",),
    "lint": ("skill-evaluator lint <component>", "skill-evaluator lint --base origin/main"),
    "doctor": ("skill-evaluator doctor", "skill-evaluator doctor --format json"),
}
EXITS = {
    "lint": {2: "invalid input, or a component with an error"},
    "doctor": {0: "no problem found", 4: "a problem; the output says what to do"},
}
_NEXT = """
Next: {prefix}skill-evaluator evaluate {name} --dry-run
Then put your prompt, schema and fields into components/{name}, your cases into fixtures/{name}/cases
and your models into .evaluator/models.yaml: {prefix}skill-evaluator evaluate {name} --max-cost 1
"""
_NEXT_OF_WORKFLOWS = """
On GitHub a push to {branch} that brings a component, or raises its version by MINOR or MAJOR, is evaluated.
`skill-evaluator doctor` says which keys and settings are missing, and how to add them. More: docs/ci.md.
"""
_NEXT_OF_DEMO = """{folder}: three versions of '{skill}', two models, {replicates} outputs for each receipt.
No call was made.

Is the second version worse? How did each version score? What went wrong?
  cd {folder}
  skill-evaluator compare {skill} --candidate 1.1.0 --model example-large
  skill-evaluator history {skill}
  skill-evaluator explain --case booking \\
    20260102T090000Z-000002-{skill}-example-large
"""
_NEXT_OF_ADOPTED = "\nNext: {} .evaluator/models.yaml{}, then: {}skill-evaluator evaluate --max-cost 1"
_WORKFLOWS = "`{}skill-evaluator init {}` adds the workflows of GitHub."


def init(options: InitRequest) -> int:
    """Write the files that a first run needs: settings, models and a component with one case. Overwrites nothing."""
    if options.adopt:
        _adopt(options)
        return EXIT_OK
    lines, name = create_library(options, edited_schemas())
    for line in lines:
        print(line)
    if name:
        print(_NEXT.format(name=name, prefix=options.command_prefix), end="")
    if options.workflows:
        print(_NEXT_OF_WORKFLOWS.format(branch=find_branch(options.folder)), end="")
    else:
        print(_WORKFLOWS.format(options.command_prefix, "--workflows"))
    return EXIT_OK


def _adopt(options: InitRequest) -> None:
    proposal = propose(options, edited_schemas())
    show([Text(f"looked for: {', '.join(f'{words} ({count:,})' for words, count in proposal.searched)}"), Text()])
    show([adoption_sheet(proposal), Text()])
    for line in proposal.lost:
        print(line)
    if proposal.unread:
        print(f"{proposal.unread:,} more components were not read for this table; `lint` reads all\n")
    if proposal.sentences:
        print(f"A model must judge {counted(proposal.sentences, 'check')}; set policy.judge.model in settings.yaml\n")
    for path, text in proposal.files.items():
        print(f"proposed {path}{f': {declared_words(text)}' if path in proposal.declared else ''}")
    if proposal.ignored:
        print(f"proposed .gitignore: {' '.join(proposal.ignored)}")
    count = len(proposal.files) + bool(proposal.ignored)
    if count and agreed(f"Write {counted(count, 'file')}?", yes=options.yes):
        for line in adopt(options, proposal):
            print(line)
        local = all(model.provider == "local" for model in Library(config=options.home / cli.CONFIG).models)
        judge = ", set policy.judge.model in .evaluator/settings.yaml" if proposal.sentences else ""
        models = "write your models into" if local else "check the models in"
        print(_NEXT_OF_ADOPTED.format(models, judge, options.command_prefix))
        if local:
            print("Until then the small local model in that file is called; its first call downloads 98 MB.")
        if not options.workflows:
            print(_WORKFLOWS.format(options.command_prefix, "--adopt --workflows --yes"))
    else:
        print("nothing was written; --yes writes the proposed files" if count else "nothing is missing")


@cli.options
class DemoOptions:
    folder: Path = cli.argument("An empty or new folder.", Path("demo"))


def demo(options: DemoOptions) -> int:
    """Create a small prompt library with three recorded versions of a prompt.

    Makes no call: the outputs are part of the package and are scored when the library is created.
    """
    if options.folder.exists() and (not options.folder.is_dir() or any(options.folder.iterdir())):
        raise ConfigError(f"{options.folder} is not an empty folder; name a new one: skill-evaluator demo DIR")
    for day, version in enumerate(DEMO_VERSIONS, 1):
        for path, text in {**demo_files(), **demo_version(version)}.items():
            replace_text(options.folder / path, text)
        with contextlib.chdir(options.folder):
            Library().evaluate(DEMO, invocation=f"2026010{day}T090000Z-00000{day}")
    replicates = Library(config=options.folder / cli.CONFIG).settings.replicates
    print(_NEXT_OF_DEMO.format(folder=shlex.quote(str(options.folder)), skill=DEMO, replicates=replicates), end="")
    return EXIT_OK


@cli.options
class SchemasOptions:
    folder: Path = cli.argument("The folder to write to.", cli.CONFIG / "schemas")


def schemas(options: SchemasOptions) -> int:
    """Write the JSON Schemas of all file formats."""
    for path in write_schemas(options.folder):
        print(path)
    return EXIT_OK


def lint(options: LintRequest) -> int:
    """Check components and all their cases; show how every field is compared, and why.

    A prompt that is not the recorded prompt of its version requires a higher version. With --base, also check the
    versions of all prompts that changed since that commit, and that no record was changed or deleted. Components that
    did not change are skipped, unless they are named.
    """
    linted = linting.lint(options)
    print_linted(linted, options.format)
    mark_linted(linted, options.platform)
    wrong = [problem.message for problem in linted.broken]
    if linted.problems:
        bad = sum(bool(component.problems) for component in linted.components)
        of = counted(len(linted.components), "component")
        wrong.insert(0, f"{counted(len(linted.problems), 'problem')} in {bad} of {of}")
    if options.strict:
        wrong += [*not_evaluated(linted.components), *(problem.message for problem in linted.stale)]
    if not wrong:
        return EXIT_OK
    print(f"error: {visible('; '.join(wrong))}", file=sys.stderr)
    return EXIT_USER_ERROR


@cli.options
class DoctorOptions(cli.ConfigOption, cli.FormatOption):
    """The options of `doctor`."""


def doctor(options: DoctorOptions) -> int:
    """Check the set-up: the keys here and in CI, one call to each model, git, placeholders and workflows.

    Keys on this machine are environment variables, keys in CI are secrets. The names of the secrets are checked if
    you are logged in with `gh`. No key is shown. Each model whose key is set on this machine gets one short call,
    except local models, replayed models and programs.
    """
    report = library_of(options).doctor()
    print_page(options.format, json=lambda: report, page=lambda: page_of("the set-up", doctor_blocks(report)))
    return EXIT_INCOMPLETE if report.problems else EXIT_OK
