"""Texts that want to be more than text: to a shell, to Markdown, to HTML, to a terminal, to GitHub Actions."""

HOSTILE = (
    "`", "``", "```\n# head", "a`b``c", "|", "a|b", "\\|", "\\\\|", "`|`", "\\`", "| x |\n|---|\n| y |",
    "<img src=x onerror=alert(1)>", "<!-- ", "--> x", "</table>", "<details open>",
    "[click](https://example.com)", "![x](https://example.com/x.png)", "**bold**", "# head", "- item", "&lt;",
    "@everyone",
    "$(id)", "`id`", "; rm -rf /", "'\"", "${{ secrets.KEY }}",
    "::set-output name=a::b", "x\n::add-mask::y", "##[add-path]/tmp", "\r::error::x",
    "\x1b[31mred", "\x07", "\u202eright to left", "zero\u200bwidth", "\ud800", "[red]rich[/red]", "[/]",
    "", " ", "\n", "x" * 5000,
)  # fmt: skip
