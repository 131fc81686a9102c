"""A repository of skills is evaluated in place, each skill by its evals."""

from pathlib import Path

import pytest

from tests.support.chat_server import Reply, chat_server
from tests.support.git import GitRepository
from tests.support.library import REPLAY, Library

SKILL = "---\nname: pdf\ndescription: Reads PDFs.\nversion: '1.0'\n---\nName a library.\n"
EVALS = [
    {"id": 1, "prompt": "How do I read a.pdf?", "assertions": [{"type": "contains", "value": "pypdf"}]},
    {"id": 2, "prompt": "And b.pdf?", "assertions": [{"type": "contains", "value": "pypdf"}]},
    {"id": 3, "prompt": "Read c.pdf.", "files": ["c.pdf"]},
]


@pytest.fixture
def skills(tmp_path: Path) -> Library:
    library = Library.__new__(Library)
    library.stand_in(tmp_path)
    library.settings(sources=[{"kind": "skills", "root": "skills"}])
    library.models(REPLAY)
    library.write("skills/pdf/SKILL.md", SKILL)
    library.write("skills/xlsx/SKILL.md", SKILL.replace("pdf", "xlsx").replace("PDFs", "sheets"))
    library.write("skills/pdf/evals/evals.json", {"skill_name": "pdf", "evals": EVALS})
    return library


def test_skill_without_a_usable_eval_is_refused_with_the_reason(skills: Library) -> None:
    skills.write("skills/xlsx/evals.json", [{"prompt": "Ask it.", "live_only": True}])
    refused = skills.call("evaluate", "xlsx")
    assert refused.refuses("it has no cases")
    assert refused.err.rstrip().endswith("; left out: eval: it needs a live system (Ask-it-b748a8)")


def test_restored_skill_is_compared_with_its_earlier_version(skills: Library) -> None:
    repository = GitRepository(skills.root)
    with chat_server() as server:
        server.reply = lambda asked: Reply(text="Use pypdf." if "1.0" not in str(asked.body) else "Use pypdf, too.")
        skills.served_by(server.url)
        repository.commit()
        assert skills.call("evaluate", "pdf").code == 0
        (skills.root / "skills/pdf/SKILL.md").unlink()
        repository.commit()
        skills.write("skills/pdf/SKILL.md", SKILL.replace("'1.0'", "1.1.0").replace("Name a", "Name one"))
        repository.commit()
        skills.settings(sources=[{"kind": "skills", "root": "skills"}], policy={"design": "beside"})
        done = skills.call("evaluate", "pdf", "--format", "json")
    assert done.code == 0, done.err
    assert done.json["comparison"]["models"][0]["baseline"]["skill_version"] == "1.0.0"
    assert [run["skill_version"] for run in done.json["runs"]] == ["1.1.0", "1.0.0"]
