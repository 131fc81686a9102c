"""`skill-evaluator site serve`: the site on this machine alone, built anew. Makes no call."""

import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from skill_evaluator.commands.options import (
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
from skill_evaluator.commands.site_build import SiteBuildOptions, build
from skill_evaluator.errors import EXIT_OK, ConfigError
from skill_evaluator.site.server import HOST, SiteServer

EXAMPLES = ("skill-evaluator site serve", "skill-evaluator site serve --port 8000")


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
        site = build(
            SiteBuildOptions(
                out=Path(folder),
                audits=options.audits,
                judgements=options.judgements,
                components=options.components,
                fixtures=options.fixtures,
                config=options.config,
            ),
            own=True,
        )
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
