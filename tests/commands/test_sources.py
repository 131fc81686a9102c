"""Components in other formats have versions, baselines and a plan from git, and all that is ready is asked at once."""

import json
import re
from pathlib import Path

import pytest
from skill_evaluator.text import is_generated

from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.git import git
from tests.support.library import Ended, Library

SKILL = "---\nname: {0}\ndescription: d\n---\nName a library for {0}.{1}\n"
PROMPT_YML = """
name: notices
messages:
  - {role: system, content: Say the word.}
  - {role: user, content: "{{input}}"}
testData: [{input: one, expected: yes-1}, {input: two, expected: yes-2}]
evaluators: [{name: word, string: {contains: "{{expected}}"}}]
"""


class Sourced(Library):
    """A repository of two skills and a .prompt.yml, committed, with one model behind a server."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        self.stand_in(root)
        self.server, self.wrong = server, False
        git(root, "init", "-qb", "main")
        for name in ("pdf", "docx"):
            self.skill(name)
            check = {"type": "contains", "value": "fine"}
            self.write(
                f"skills/{name}/evals/evals.json", [{"id": n, "prompt": f"{n}?", "assertions": [check]} for n in (1, 2)]
            )
        self.write("prompts/notices.prompt.yml", PROMPT_YML)
        self.settings(sources=[{"kind": "skills"}, {"kind": "prompt_yml"}], policy={"design": "beside"}, replicates=4)
        self.served_by(server.url, price={"input": 1.0, "output": 1.0})
        server.reply = lambda asked: Reply(text=self.answer(asked))
        self.commit("start", "2026-03-01T08:00:00Z")

    def skill(self, name: str, more: str = "") -> None:
        self.write(f"skills/{name}/SKILL.md", SKILL.format(name, more))

    def answer(self, asked: Asked) -> str:
        said = json.dumps(asked.body["messages"])
        return "bad" if "Be bad." in said else "fine yes-1 yes-2"

    def commit(self, message: str, moment: str) -> str:
        git(self.root, "add", "-A")
        git(self.root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", message, f"--date={moment}")
        return git(self.root, "rev-parse", "HEAD")

    def books(self, name: str) -> list[dict[str, object]]:
        path = self.root / ".evaluator" / "components" / name / "leaderboard.json"
        return list(json.loads(path.read_text())["runs"]) if path.exists() else []

    def record(self, name: str) -> dict[str, object]:
        (path,) = (self.root / ".evaluator" / "components" / name / "evals" / "records").glob("*.json")
        return dict(json.loads(path.read_text()))


@pytest.fixture
def sourced(tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Sourced:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-03-01T08:00:00Z")
    return Sourced(tmp_path, server)


def changed(sourced: Sourced, monkeypatch: pytest.MonkeyPatch, more: str = "\nBe bad.") -> str:
    """Commit a change of one skill a day later."""
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-03-02T08:00:00Z")
    sourced.skill("pdf", more)
    return sourced.commit("change", "2026-03-02T08:00:00Z")


def verdicts(done: Ended) -> dict[str, str]:
    return {row["component"]: row["verdict"] for row in done.json["runs"]}


def test_evaluate_without_a_name_requires_a_limit_for_all(sourced: Sourced) -> None:
    refused = sourced.call("evaluate")
    assert (refused.code, sourced.server.requests) == (2, 0)
    assert "3 components: 24 calls, at most $" in refused.err
    done = sourced.call("evaluate", "--max-cost", "1", "--format", "json")
    assert (done.code, verdicts(done)) == (0, dict.fromkeys(("docx", "notices", "pdf"), "recorded")), done.err
    assert sourced.server.requests == 24
    assert all(is_generated(str(row["skill_version"])) for row in sourced.books("pdf"))
    status = git(sourced.root, "status", "--porcelain", "-uall").splitlines()
    assert all(line.startswith("?? .evaluator/components/") for line in status)
    table = sourced.call("evaluate", "*x", "--yes").out.splitlines()
    assert (table[1].split()[:2], table[2]) == (["docx", "served"], "")


def test_broken_component_ends_with_2_and_stops_no_other(sourced: Sourced) -> None:
    sourced.write("skills/pptx/SKILL.md", SKILL.format("pptx", ""))
    assert sourced.call("evaluate", "--dry-run").code == 0  # one without cases is not broken
    sourced.write("skills/docx/SKILL.md", "no front matter")
    assert sourced.call("evaluate", "--dry-run").code == 2
    done = sourced.call("evaluate", "--yes", "--format", "json")
    assert done.code == 2
    assert set(verdicts(done)) == {"pdf", "notices"}
    assert set(done.json["left_out"]) == {"docx", "pptx"}
    assert "front matter" in done.json["left_out"]["docx"]
    capped = sourced.call("evaluate", "--max-cost", "0.0000001", "--format", "json")
    assert capped.code in (2, 4)


def test_changed_skill_is_compared_with_its_baseline_commit(sourced: Sourced, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sourced.call("evaluate", "--yes").code == 0
    base = sourced.commit("records", "2026-03-01T09:00:00Z")
    assert sourced.call("ci", "plan", "--base", base, "--format", "json").json["runs"] == []
    changed(sourced, monkeypatch)
    planned = sourced.call("ci", "plan", "--base", base, "--format", "json")
    (entry,) = planned.json["runs"]
    assert (entry["skill"], bool(entry["baseline"])) == ("pdf", True), (planned.err, entry)
    assert sourced.call("lint", "--base", base).code == 0
    sourced.server.forget()
    done = sourced.call("evaluate", "--changed", "--base", base, "--yes", "--format", "json")
    assert (done.code, verdicts(done)) == (3, {"pdf": "regressed"}), done.err
    assert sourced.server.requests == 2 * 4 + 2 * 2  # half as many of the baseline, in turns
    before, after = (str(row["skill_version"]) for row in reversed(sourced.books("pdf")))
    assert (before.partition("+")[0], after.partition("+")[0]) == ("0.1.0", "0.2.0")


def test_prompt_keeps_its_version_after_stash_and_revert(sourced: Sourced) -> None:
    def measured() -> list[str]:
        assert sourced.call("evaluate", "pdf").code in (0, 3)
        return [str(row["skill_version"]).partition("+")[0] for row in sourced.books("pdf")]

    assert measured() == ["0.1.0"]
    base = sourced.commit("records", "2026-03-01T09:00:00Z")
    sourced.skill("pdf", "\nBe kind.")
    assert measured() == ["0.2.0", "0.1.0"]
    git(sourced.root, "-c", "user.name=A", "-c", "user.email=a@b", "stash", "-q", "--", "skills")
    assert measured() == ["0.1.0", "0.2.0", "0.1.0"]
    git(sourced.root, "stash", "pop", "-q")
    sourced.commit("kind", "2026-03-02T08:00:00Z")
    assert measured() == ["0.2.0", "0.1.0", "0.2.0", "0.1.0"]
    dated = sourced.call("history", "pdf").out
    assert re.search(r"0\.2\.0\+[0-9a-f]{8} \(20\d\d-\d\d-\d\d\) +1\.000", dated)
    sourced.commit("more records", "2026-03-02T09:00:00Z")
    planned = sourced.call("ci", "plan", "--base", base, "--format", "json").json
    assert (planned["runs"], planned["faults"]) == ([], [])
    sourced.skill("pdf")  # as it was at first
    sourced.commit("revert", "2026-03-03T08:00:00Z")
    planned = sourced.call("ci", "plan", "--base", "HEAD~1", "--format", "json").json
    assert (planned["runs"], planned["faults"]) == ([], [])
    reasons = [one["reason"] for one in planned["skipped"]]
    assert any(re.match(r"0\.1\.0\+\w+ is below the recorded 0\.2\.0\+", reason) for reason in reasons)
    assert sourced.call("lint", "--base", "HEAD~1").code == 0


def test_read_only_checkout_is_evaluated_from_another_folder(
    sourced: Sourced, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (sourced.root / ".evaluator" / "settings.yaml").unlink()
    models = (sourced.root / ".evaluator" / "models.yaml").read_text()
    out = tmp_path_factory.mktemp("out")
    (out / ".evaluator").mkdir()
    (out / ".evaluator" / "models.yaml").write_text(models)
    sourced.write("components/memo/prompt.md", "---\nversion: 1.0.0\noutput: text\n---\nSay fine.\n")
    sourced.write("fixtures/memo/cases/one/document.md", "A memo.")
    before = sourced.tree()
    assert re.search(r"\nleft out: SKILL.md.* \(2\); docs/sources.md", sourced.call("init", "--adopt").out)
    done = sourced.call("init", "--adopt", "--yes", "--out", str(out))
    assert done.code == 0, done.err
    assert "SKILL.md" in done.out.splitlines()[0]
    assert "add --fixtures" in done.out
    elsewhere = Library.__new__(Library)
    elsewhere.stand_in(out)
    asked = elsewhere.call("evaluate", "--yes", "--format", "json", "--fixtures", str(sourced.root / "fixtures"))
    assert (asked.code, set(verdicts(asked))) == (0, {"pdf", "docx", "notices", "memo"}), asked.err
    assert sourced.tree() == before


def test_invalid_source_is_refused_in_one_line(sourced: Sourced) -> None:
    sourced.settings(sources=[{"kind": "skill"}])
    assert sourced.call("lint").refuses(
        "unknown source 'skill' at sources[0].kind in settings.yaml (did you mean 'skills'?)"
    )
    sourced.settings(sources=[{"kind": "skills", "root": "nowhere"}])
    assert sourced.call("lint").refuses("nowhere is not a folder; see sources in settings.yaml")
    sourced.settings(
        sources=[{"kind": "skills"}, {"kind": "prompt_yml"}, {"kind": "skills", "root": "./skills/../skills"}]
    )
    assert sourced.call("lint").refuses("sources[0] and sources[2] in settings.yaml contain 'skills/docx/SKILL.md'")
    sourced.settings(sources=[{"kind": "skills", "leave_out": ["docx", "pdf/2"]}])
    done = sourced.call("lint", "--format", "json")
    (linted,) = done.json["components"]
    assert (linted["component"], linted["cases"]) == ("pdf", 1)
    assert any("leave_out in settings.yaml" in hint for hint in linted["hints"])


def test_equal_names_in_two_sources_are_made_different(sourced: Sourced) -> None:
    for path in ("a/pdf/prompt.md", "b/pdf/prompt.md"):
        sourced.write(path, "---\nversion: 1.0.0\noutput: text\n---\nSay hi.\n")
    sourced.write("b/pdf/SKILL.md", SKILL.format("pdf", ""))
    sourced.settings(
        sources=[{"kind": kind, "root": root} for kind, root in (("own", "a"), ("own", "b"), ("skills", "b"))]
    )
    names = {each["component"] for each in sourced.call("lint", "--format", "json").json["components"]}
    assert names == {"a.pdf", "own.b.pdf", "skills.b.pdf"}


def test_own_source_brings_its_cases_and_declarations(sourced: Sourced) -> None:
    sourced.write("lib/memo/prompt.md", "---\nversion: 1.0.0\noutput: text\n---\nSay fine.\n")
    sourced.write("lib/memo/evals/cases/one/document.md", "A memo.")
    sourced.write("lib/memo/evals/datasets.json", {"datasets": [{"checks": [{"contains": "fine"}]}]})
    sourced.settings(sources=[{"kind": "own", "root": "lib"}], replicates=1)
    (linted,) = sourced.call("lint", "--format", "json").json["components"]
    beside = sourced.call("lint", "--components", "lib", "--format", "json").json["components"]
    assert [linted] == beside
    assert (linted["cases"], linted["problems"]) == (1, [])
    assert sourced.call("evaluate", "--yes").code == 0
    assert [row["skill"] for row in sourced.books("memo")] == ["memo"]
    sourced.write(".evaluator/components/memo/evals/datasets.json", {"datasets": [{"checks": [{"contains": "yes"}]}]})
    assert "contains yes" in sourced.call("lint").out
    sourced.write("lib/memo/prompt.md", "---\nversion: 1.0.0\nprogram: {run: [app], watch: [app]}\n---\n")
    assert sourced.call("lint").code == 2
    assert "memo/prompt.md: a program cannot be run from `sources`; use --components lib" in sourced.call("lint").out


def test_changed_components_are_found_from_the_main_branch(sourced: Sourced, monkeypatch: pytest.MonkeyPatch) -> None:
    git(sourced.root, "checkout", "-qb", "feature")
    changed(sourced, monkeypatch)
    assert "1 component: 8 calls" in sourced.call("evaluate", "--changed", "--dry-run").err
    git(sourced.root, "checkout", "-q", "main")
    sourced.skill("docx", " Be brief.")  # what others changed meanwhile is no change of this branch
    sourced.commit("meanwhile", "2026-03-03T08:00:00Z")
    git(sourced.root, "checkout", "-q", "feature")
    for base in ((), ("--base", "main")):
        done = sourced.call("evaluate", "--dry-run", "--changed", *base)
        assert "1 component: 8 calls" in done.err
        assert re.match(
            r"2 of 3 components skipped: .* unchanged since [0-9a-f]{12}, the merge base with main$", done.err, re.M
        )
    planned = sourced.call("ci", "plan", "--base", "main", "--format", "json").json  # no version was lowered
    assert ([entry["skill"] for entry in planned["runs"]], planned["faults"]) == (["pdf"], [])
    git(sourced.root, "checkout", "-q", "main")
    on_main = sourced.call("evaluate", "--dry-run", "--changed")
    assert (on_main.code, on_main.err.splitlines()[0].partition(" unchanged since ")[2]) == (
        0,
        "HEAD, which is on main",
    )


def test_changed_is_refused_without_a_commit_to_compare_with(
    sourced: Sourced, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    git(sourced.root, "checkout", "-qb", "feature")
    changed(sourced, monkeypatch)
    clone = tmp_path_factory.mktemp("clone")  # of depth 1, so HEAD is its only commit
    git(clone, "clone", "-q", "--depth=1", "-b", "feature", f"file://{sourced.root}", ".")
    asked = Library.__new__(Library)
    asked.stand_in(clone)
    refused = asked.call("evaluate", "--changed", "--dry-run")
    assert refused.refuses("found no merge base of HEAD and the main branch; ")
    assert refused.err.endswith("or name a commit: --changed --base COMMIT\n")
    assert sourced.call("evaluate", "--changed", "--base", "none").refuses("--base none is not a commit here")


def test_library_without_cases_ends_with_4(sourced: Sourced) -> None:
    for path in ("skills/pdf/evals/evals.json", "skills/docx/evals/evals.json"):
        (sourced.root / path).unlink()
    sourced.write("prompts/notices.prompt.yml", PROMPT_YML.partition("testData")[0])
    done = sourced.call("evaluate", "--yes")
    assert (done.code, sourced.server.requests) == (4, 0)
    assert "it has no cases: write evals into skills/pdf/evals/evals.json, or cases into fixtures/pdf/cases" in done.err
    assert "write testData into prompts/notices.prompt.yml" in done.err
