"""Text that tries to be more than text: for a shell, Markdown, HTML, a terminal, and the runner of GitHub Actions.

And what of a page is mark-up, by a Markdown parser; and which lines the runner takes for commands, by its own rules
(actions/runner, ActionCommand.cs; act's are narrower).
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

SHELL = "$(touch pwned) `touch pwned`; touch pwned & | touch pwned '\"$((1))"
MARKUP = "| cell | <script>alert(1)</script> @someone #123 [link](https://evil.example) **bold** ``` \\| --> <!--"
UNSEEN = "\x1b[31mred\x1b[0m \u202eright to left\u2069 zero\u200bwidth \x07\x9b1m"
COMMANDS = (
    "::add-mask::main",
    "::set-output name=jobs::0",
    "::error file=app.js,line=1::pwned",
    "::stop-commands::pwned",
    "::add-path::/pwned",
    "  \t::warning::pwned",
    "text before ##[add-mask]main",
    "##[error]pwned",
    "##[set-output name=jobs;]0",
)
EVERYTHING = "\n".join((f"first {SHELL}", MARKUP, UNSEEN, *COMMANDS, "\r::notice::pwned", "last"))
FILE_NAME = "$(touch pwned)`id`; <b> @someone #1 ##[error]pwned\n::error::pwned\n\x1b[31m\u202e"[:200]


_REGISTERED = (
    *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice", "remove-matcher"),
    *("save-state", "set-env", "set-output", "stop-commands", "warning"),
)
_NAMES = "|".join(_REGISTERED)
_AT_THE_START = re.compile(rf"\s*::({_NAMES})(?: [^\n]*?)?::", re.IGNORECASE)
_ANYWHERE = re.compile(rf"##\[({_NAMES})(?: [^\n]*?)?\]", re.IGNORECASE)


def runner_commands(printed: str) -> list[str]:
    """The lines of what was printed that the runner would do something for."""
    lines = re.split(r"\r\n|\r|\n", printed)
    return [line for line in lines if _AT_THE_START.match(line) or _ANYWHERE.search(line)]


def outside_of_code(page: str) -> str:
    """All text of a page, and all HTML but our folds, that is not in a code span or block; addresses of links, too."""
    page = re.sub(r"(?m)^(<details><summary>[\w ]+</summary>|</details>)$", "", page)
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)
    return "\n".join(_texts(tokens))


def _texts(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children is not None:
            yield from _texts(token.children)
        elif token.type not in ("code_inline", "code_block", "fence"):
            yield token.content
        yield from map(str, token.attrs.values())
