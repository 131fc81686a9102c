"""`skill-evaluator demo`: a small prompt library with recorded runs, to see a verdict, a history and an explanation.

The outputs are part of the package; `evaluate` scores and records them when the library is created.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.display.options import CONFIG, argument, options
from skill_evaluator.errors import EXIT_OK, ConfigError
from skill_evaluator.files import replace_text
from skill_evaluator.library.scaffolding import DEMO, DEMO_VERSIONS, demo_files, demo_version

EXAMPLES = ("skill-evaluator demo", "skill-evaluator demo /tmp/tour")
_NEXT = """{folder}: three versions of '{skill}', two models, {replicates} answers to each receipt.
No call was made.

Is the second version worse, and where? How did all do? What went wrong?
  cd {folder}
  skill-evaluator compare {skill} --candidate 1.1.0 --model example-large
  skill-evaluator history {skill}
  skill-evaluator explain --case booking \\
    {run}
"""


@options
class DemoOptions:
    """The options of `demo`."""

    folder: Path = argument("An empty or new folder.", Path("demo"))


def demo(options: DemoOptions) -> int:
    """Create a small prompt library; it has three recorded versions of a prompt.

    Makes no call: the outputs are shipped, and scored when the library is created.
    """
    if options.folder.exists() and (not options.folder.is_dir() or any(options.folder.iterdir())):
        raise ConfigError(f"{options.folder} is not empty; remove it, or name a new folder: skill-evaluator demo DIR")
    _write(options.folder, demo_files())
    for day, version in enumerate(DEMO_VERSIONS, 1):
        _write(options.folder, demo_version(version))
        with contextlib.chdir(options.folder):
            Library().evaluate(DEMO, invocation=f"2026010{day}T090000Z-00000{day}")
    run = f"20260102T090000Z-000002-{DEMO}-example-large"
    replicates = Library(config=options.folder / CONFIG).settings.replicates
    print(_NEXT.format(folder=options.folder, skill=DEMO, replicates=replicates, run=run), end="")
    return EXIT_OK


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        replace_text(folder / path, text)
