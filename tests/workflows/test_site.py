"""The site in CI, run by act: an artifact after each collect, or published from the default branch."""

from pathlib import Path

import pytest

from tests.support.sites import contents, site_page, words
from tests.workflows.forge import SITE, Forge

pytestmark = pytest.mark.act

REPOSITORY = {"repository": {"default_branch": "main"}}
PAGES = {"SKILL_EVALUATOR_SITE": "pages"}


def shown(site: Path) -> list[tuple[str, str]]:
    """The component and version of each row of the overview."""
    rows = site_page(site, "index.html").select("table.overview tbody th")
    return [(words(row.a), words(row.span)) for row in rows]


def test_pages_publish_the_records_of_the_default_branch(forge: Forge) -> None:
    forge.component("one", "1.0.0")
    assert forge.run({**forge.push(), **REPOSITORY}, variables=PAGES).jobs["publish"] == "success"
    assert shown(forge.pages) == [("one", "1.0.0")]
    assert forge.uploaded() == {"plan", "collected", "one@recorded", "github-pages-1"}
    (run_id,) = (row["run_id"] for row in forge.rows("one"))
    files = contents(forge.pages)
    assert any(run_id.encode() in content for content in files.values())
    assert not [name for name, content in files.items() if b"is the title of a notice" in content]

    forge.pull()
    forge.component("other", "0.1.0", cases=())  # nothing to evaluate
    acted = forge.run({**forge.push(), **REPOSITORY}, variables=PAGES)
    assert acted.jobs == dict.fromkeys(("plan", "build", "publish"), "success")
    assert "other : no fixtures" in words(site_page(forge.pages, "index.html").main)

    forge.pull()
    forge.git("checkout", "--quiet", "-b", "topic")
    forge.git("commit", "--quiet", "--allow-empty", "--message", "Not reviewed")
    forge.git("push", "--quiet", "origin", "HEAD:topic")
    acted = forge.run({"ref": "refs/heads/topic", **REPOSITORY}, "workflow_dispatch", SITE, variables=PAGES)
    assert (acted.jobs, forge.uploaded()) == ({"build": "success"}, {"site"})


def test_records_of_a_branch_of_their_own_are_on_the_site(forge: Forge) -> None:
    forge.component("one", "1.0.0")
    event = forge.push()
    acted = forge.run({**event, **REPOSITORY}, variables={**PAGES, "SKILL_EVALUATOR_PUBLISH": "branch"})
    assert (acted.code, forge.landed(event["after"])) == (0, [])
    assert shown(forge.pages) == [("one", "1.0.0")]
    row = site_page(forge.pages, "index.html").find("tr", attrs={"data-model": "recorded"})
    assert float(words(row.find(class_="figure"))) >= 0
