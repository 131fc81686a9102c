"""`skill-evaluator site build | serve`: the pages of everything that is recorded. Makes no call."""

import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from skill_evaluator.display.options import (
    AUDITS,
    JUDGEMENTS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    Judgements,
    option,
    options,
)
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError
from skill_evaluator.site.build import SiteBuild
from skill_evaluator.site.server import HOST, SiteServer
from skill_evaluator.text import counted

EXAMPLES = {
    "site_build": ("skill-evaluator site build --out site",),
    "site_serve": ("skill-evaluator site serve", "skill-evaluator site serve --port 8000"),
}
EXITS = {"site_build": {4: "a component or an audit could not be read; the site lists it with why, and has all others"}}


@options
class SiteBuildOptions(ComponentsOption, FixturesOption, ConfigOption):
    """The options of `site build`."""

    out: Path = option("An empty folder, or one that holds an earlier build.", Path("site"), metavar="DIR")
    recorded: tuple[str, ...] = option(
        "A branch that holds records beside the work tree; repeatable.", (), metavar="REF"
    )
    audits: Audits = AUDITS
    judgements: Judgements = JUDGEMENTS


def site_build(options: SiteBuildOptions) -> int:
    """Write what is recorded as static pages, which open from the file system and from any server. Makes no call.

    Building again writes only what changed. Documents, truths and raw answers are in it only of components whose
    settings say so: `site: {components: {NAME: {documents: true}}}`. What cannot be read is listed with why, beside
    everything else.
    """
    site = SiteBuild(**vars(options)).write()
    changed = f"{counted(site.written, 'file')} written, {site.removed} removed"
    print(f"{options.out / 'index.html'} ({changed})", flush=True)
    return EXIT_INCOMPLETE if site.problems else EXIT_OK


@options
class SiteServeOptions(ComponentsOption, FixturesOption, ConfigOption):
    """The options of `site serve`."""

    port: int = option("Default: any that is free.", 0, min=0, max=65535)
    audits: Audits = AUDITS
    judgements: Judgements = JUDGEMENTS


def site_serve(options: SiteServeOptions) -> int:
    """Show the site in the browser, for this machine alone, until Ctrl-C. Makes no call.

    It shows documents, truths and answers of every component. The address holds a token: only who has it can read.
    What was built is gone when it ends.
    """
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # a terminal that is closed
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="skill-evaluator-site-") as folder:
        site = SiteBuild(
            out=Path(folder),
            components=options.components,
            config=options.config,
            fixtures=options.fixtures,
            audits=options.audits,
            judgements=options.judgements,
            own=True,
        ).write()
        try:
            server = SiteServer(Path(folder), options.port, site.later)
        except OSError as problem:
            raise ConfigError(
                f"cannot listen on {HOST}:{options.port}: {problem.strerror}; choose another --port"
            ) from None
        with server, suppress(KeyboardInterrupt):  # which is how it is ended
            print(f"{server.address} (Ctrl-C ends)", flush=True)
            server.serve_forever()
    return EXIT_OK
