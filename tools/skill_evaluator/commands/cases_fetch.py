"""`skill-evaluator cases fetch`: bring the fixtures that settings.yaml names in another repository."""

from skill_evaluator.ci.fixtures import fetched_fixtures
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.options import ConfigOption, PlatformOption, options
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.library.config import load_settings

EXAMPLES = ("skill-evaluator cases fetch",)
EXITS = {0: "done, or none is named"}


@options
class CasesFetchOptions(ConfigOption, PlatformOption):
    """The options of `cases fetch`."""


def cases_fetch(options: CasesFetchOptions) -> int:
    """Bring the fixtures that settings.yaml names in another repository, and say at which commit they are.

    Every command that reads cases does the same first.
    """
    elsewhere = load_settings(options.config).fixtures
    if elsewhere is None:
        print("settings.yaml names no other repository for fixtures; nothing was fetched")
        return EXIT_OK
    folder, commit = fetched_fixtures(elsewhere)
    print(f"{elsewhere.repository} at {commit} is in {folder}")
    if options.platform:
        PLATFORMS[options.platform].set_outputs({"commit": commit})
    return EXIT_OK
