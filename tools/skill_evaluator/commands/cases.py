"""`skill-evaluator cases`: draft cases, import cases from a table, and fetch cases from another repository."""

from skill_evaluator.api import library_of
from skill_evaluator.errors import EXIT_OK, refuse
from skill_evaluator.judges.workflows.requests import CasesDraftRequest
from skill_evaluator.library import options as cli
from skill_evaluator.library.case_table import CaseTable
from skill_evaluator.reports.judge_results import print_drafted
from skill_evaluator.reports.live import agreed, leave_out, watch
from skill_evaluator.text import counted

EXAMPLES = {
    "cases_draft": (
        "skill-evaluator cases draft <component> --model <model> --dry-run",
        "skill-evaluator cases draft <component> --model <model> -n 10",
    ),
    "cases_fetch": ("skill-evaluator cases fetch", "skill-evaluator cases fetch --platform github"),
    "cases_import": (
        "skill-evaluator cases import letters.csv --input text --truth kind=label",
        "skill-evaluator cases import logs.jsonl --input article --truth summary --yes",
        "skill-evaluator cases import items.json --input input.text --truth expected",
    ),
}

EXITS = {"cases_draft": {4: "no draft that can be used"}}
_SHOWN = 3


def cases_draft(options: CasesDraftRequest) -> int:
    """Have a model draft cases, marked as unreviewed. Overwrites nothing.

    The model drafts inputs and ground truths from the prompt and the schema. Invalid drafts are left out. Unreviewed
    cases are not evaluated; `review cases` accepts them.
    """
    drafted = library_of(options).judge.draft_cases(
        options.skill,
        model=options.model,
        count=options.count,
        seed=options.seed,
        max_cost=options.max_cost,
        dry_run=options.dry_run,
        watch=watch,
    )
    return print_drafted(drafted)


@cli.options
class CasesImportOptions(CaseTable):
    skip_invalid: cli.SkipInvalid = False


def cases_import(options: CasesImportOptions) -> int:
    """Import the rows of a table as cases; ground truths are checked against the schema. Overwrites nothing."""
    made = library_of(options).import_cases(options, on_problem=leave_out if options.skip_invalid else refuse)
    counts = f"{counted(len(made.cases), 'case')} of {made.component.name}, {made.labelled} with ground truth"
    print(f"{counts}, in {made.folder}:")
    for case_id, files in list(made.cases.items())[:_SHOWN]:
        print(f"  {case_id}: {', '.join(files)}")
    if len(made.cases) > _SHOWN:
        print(f"  … and {len(made.cases) - _SHOWN} more, up to {list(made.cases)[-1]}")
    if made.existing:
        print(f"left out: {counted(made.existing, 'row')}: it is a case already")
    if made.schema is not None:
        print(f"inferred: {made.component.files.folder / 'schema.json'}; make it as strict as the outputs must be")
    written = agreed("Write the cases?", yes=options.yes)
    if written and not options.yes:
        made.write()
    print("written" if written else "nothing was written; --yes writes them")
    return EXIT_OK


@cli.options
class CasesFetchOptions(cli.ConfigOption):
    platform: cli.PlatformName | None = cli.rare("On GitHub Actions: also write the commit as a step output.")


def cases_fetch(options: CasesFetchOptions) -> int:
    """Fetch the cases that are kept in a different repository.

    Every command that reads cases does the same first.
    """
    fetched = library_of(options).fetch_cases(options.platform)
    if fetched is None:
        print("settings.yaml names no repository with fixtures; nothing was fetched")
    else:
        print("{} at {} is in {}".format(*fetched))
    return EXIT_OK
