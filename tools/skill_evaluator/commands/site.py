"""`skill-evaluator site build | serve`: the pages of everything that is recorded. Makes no call."""

import signal
from contextlib import suppress

from skill_evaluator.api import Library
from skill_evaluator.errors import EXIT_BUG, EXIT_INCOMPLETE, EXIT_OK, InternalError
from skill_evaluator.site.build import SiteBuild
from skill_evaluator.site.server import ServedSite
from skill_evaluator.text import counted

EXAMPLES = {
    "site_build": ("skill-evaluator site build --out site",),
    "site_serve": ("skill-evaluator site serve", "skill-evaluator site serve --port 8000"),
}
EXITS = {"site_build": {4: "a component or an audit could not be read; the site lists it with why, and has all others"}}


def site_build(options: SiteBuild) -> int:
    """Write pages of everything that is recorded; they open from the file system and any server. Makes no call.

    Building again writes only what changed. Documents, ground truths and outputs are left out without --outputs, except
    of components whose settings say so: `site: {components: {NAME: {documents: true}}}`. What cannot be read is listed
    with why, beside everything else.
    """
    site = Library.at(options).site(options)
    changed = f"{counted(site.written, 'file')} written, {site.removed} removed"
    print(f"{options.out / 'index.html'} ({changed})", flush=True)
    has_bug = any(isinstance(problem, InternalError) for problem in site.problems.values())
    return EXIT_BUG if has_bug else EXIT_INCOMPLETE if site.problems else EXIT_OK


def site_serve(options: ServedSite) -> int:
    """Show these pages in the browser; for this machine alone, until Ctrl-C. Makes no call.

    It shows documents, truths and answers of every component. The address holds a token: only who has it can read.
    What was built is gone when it ends.
    """
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # a terminal that is closed
        signal.signal(number, signal.default_int_handler)
    with Library.at(options).served_site(options) as server, suppress(KeyboardInterrupt):  # which is how it is ended
        print(f"{server.address} (Ctrl-C ends)", flush=True)
        server.serve_forever()
    return EXIT_OK
