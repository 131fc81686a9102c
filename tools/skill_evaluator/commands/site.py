"""`skill-evaluator site build | serve`: build or serve the website of all records. Makes no call."""

import signal
from contextlib import suppress

from skill_evaluator.errors import EXIT_BUG, EXIT_INCOMPLETE, EXIT_OK, InternalError
from skill_evaluator.site.build import ServedSite, SiteBuild, build_site, serving
from skill_evaluator.text import counted

EXAMPLES = {
    "site_build": ("skill-evaluator site build --out site",),
    "site_serve": ("skill-evaluator site serve", "skill-evaluator site serve --port 8000"),
}
EXITS = {"site_build": {4: "a part could not be read; the site names it and has all others"}}


def site_build(options: SiteBuild) -> int:
    """Write a static website of all results; it opens from the file system and any server. Makes no call.

    Building again writes only files that changed. Documents, ground truths and outputs require --outputs or the setting
    `site: {components: {NAME: {documents: true}}}`. Files that cannot be read are listed with the reason.
    """
    site = build_site(options)
    changed = f"{counted(site.written, 'file')} written, {site.removed} removed"
    print(f"{options.out / 'index.html'} ({changed})", flush=True)
    has_bug = any(isinstance(problem, InternalError) for problem in site.problems.values())
    return EXIT_BUG if has_bug else EXIT_INCOMPLETE if site.problems else EXIT_OK


def site_serve(options: ServedSite) -> int:
    """Show the website on this machine until Ctrl-C; with documents and outputs. Makes no call.

    The address contains a token, without which nobody can read the pages. The pages are deleted when the server ends.
    """
    signal.signal(getattr(signal, "SIGHUP", signal.SIGTERM), signal.default_int_handler)  # the terminal was closed
    with serving(options) as server, suppress(KeyboardInterrupt):  # Ctrl-C stops the server
        print(f"{server.address} (Ctrl-C ends)", flush=True)
        server.serve_forever()
    return EXIT_OK
