"""A repository of skills is evaluated in place: each skill by its evals, all of them by the queries for them."""

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
QUERIES = [
    {"id": 1, "query": "Read a.pdf.", "should_trigger": True},
    {"id": 2, "query": "Add up column B.", "should_trigger": False},
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
    library.write("skills/pdf/evals/trigger-eval.json", QUERIES)
    library.record_answers({(case_id, at): "Use pypdf." for case_id in ("1", "2") for at in range(2)})
    return library


def _files(library: Library) -> set[str]:
    return {path for path, content in library.tree().items() if content is not None}


def test_a_skill_is_measured_by_its_evals_and_nothing_is_written_beside_it(skills: Library) -> None:
    before = _files(skills)
    done = skills.call("evaluate", "pdf", "--format", "json")
    assert done.code == 0, done.err
    (run,) = done.json["runs"]
    assert (run["skill_version"], run["primary_metric"], run["n_cases"]) == ("1.0.0", "checks", 2)
    assert run["accuracy"]["checks"]["mean"] == 1.0
    assert all(path.startswith(".evaluator/") for path in _files(skills) - before)


def test_a_skill_whose_evals_are_all_left_out_says_why(skills: Library) -> None:
    skills.write("skills/xlsx/evals.json", [{"prompt": "Ask it.", "live_only": True}])
    refused = skills.call("evaluate", "xlsx")
    assert refused.refuses("it has no cases")
    assert refused.err.rstrip().endswith("; left out: eval: it needs a live system (Ask-it-b748a8)")


def test_what_a_skill_adds_is_told_beside_the_same_requests_without_it(skills: Library) -> None:
    assert skills.call("evaluate", "pdf").code == 0
    skills.record_answers({(case_id, at): "I cannot." for case_id in ("1", "2") for at in range(2)})
    alone = skills.call("evaluate", "pdf", "--no-prompt")
    assert alone.code == 0, alone.err
    assert "checks: with pdf 1.000, without 0.000" in alone.out


def test_a_skill_that_was_away_for_a_while_is_held_against_its_version_before(skills: Library) -> None:
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


def test_a_repository_of_skills_is_adopted_with_what_is_ready_and_what_is_not(skills: Library) -> None:
    skills.write("skills/pdf/evals/evals.json", [{"prompt": "Go.", "expectations": ["It went."]}])
    skills.write("misc/evals/_template/evals.json", [])
    asked = {"messages": [{"role": "user", "content": "{{x}}"}], "responseFormat": "json_object"}
    skills.write("sum.prompt.yml", {**asked, "testData": [{"x": "1"}]})
    for path in (".evaluator/settings.yaml", ".evaluator/models.yaml"):
        (skills.root / path).unlink()
    proposed = skills.call("init", "--adopt")
    standings = {words[0]: words[1] for line in proposed.out.splitlines() if len(words := line.split()) > 1}
    assert (proposed.code, standings["pdf"], standings["routing"], standings["xlsx"]) == (0, "ready", "ready", "not")
    assert "evals of no SKILL.md" in proposed.out
    assert "1 sentence among the checks" in proposed.out
    assert "there is no .evaluator/components/sum/schema.json" in proposed.out
