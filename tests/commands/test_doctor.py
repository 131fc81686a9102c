"""`doctor`: the location of each key, the calls, and the problems of the set-up.

A stand-in `gh` on PATH answers for GitHub: it prints what a test gives for a path of the API.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import ChatServer, Reply
from tests.support.git import GitRepository, git
from tests.support.library import REPLAY, Ended, Library

REPOSITORY = "team/prompts"
ROOT = f"repos/{REPOSITORY}"
# It finds the answer to a path in a file, and starts no program: some tests ask it a dozen times.
_GH = """#!/usr/bin/env bash
here="${0%/*}"
export -p > "$here/environment"
[ -f "$here/answers" ] || exit 4
while read -r path answer; do
    [ "$path" = "${2%%\\?*}" ] || continue
    [ "$answer" = 4 ] && exit 4
    [ "${answer:0:1}" = "{" ] && printf '%s\\n' "$answer" && exit
    break
done < "$here/answers"
echo "gh: Refused (HTTP ${answer:-404})" >&2
exit 1
"""
MODELS = (
    {"id": "gpt-5", "provider": "openai", "api_key_env": "OPENAI_API_KEY"},
    {"id": "claude", "provider": "openai", "api_key_env": "ANTHROPIC_API_KEY"},
)


def secrets(*names: str) -> dict[str, Any]:
    return {"secrets": [{"name": name} for name in names]}


def environments(*names: str) -> dict[str, Any]:
    return {"environments": [{"name": f"eval-{name}"} for name in names]}


GOOD: dict[str, Any] = {
    ROOT: {"default_branch": "main"},
    f"{ROOT}/environments": environments("openai", "anthropic", "unrelated"),
    f"{ROOT}/environments/eval-openai/secrets": secrets("OPENAI_API_KEY"),
    f"{ROOT}/environments/eval-anthropic/secrets": secrets("ANTHROPIC_API_KEY"),
    f"{ROOT}/actions/secrets": secrets(),
}


class Doctor:
    def __init__(self, library: Library, folder: Path, url: str) -> None:
        self.library = library
        self.folder = folder
        folder.mkdir()
        (folder / "gh").write_text(_GH)
        (folder / "gh").chmod(0o755)
        library.models(*({**model, "base_url": url} for model in MODELS), REPLAY)

    def __call__(self, answers: Any, *arguments: str, **env: str) -> Ended:
        file = self.folder / "answers"
        file.unlink(missing_ok=True)
        if answers is not None:  # else nobody is logged in
            file.write_text("".join(f"{path} {json.dumps(answer)}\n" for path, answer in answers.items()))
        given = {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}", "GITHUB_REPOSITORY": REPOSITORY, **env}
        return self.library.call("doctor", *arguments, env=given)


@pytest.fixture
def doctor(library: Library, server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Doctor:
    server.reply = lambda asked: Reply(text="Yes.")
    return Doctor(library, tmp_path_factory.mktemp("gh") / "bin", server.url)


def test_doctor_shows_where_each_key_is_and_no_key(doctor: Doctor) -> None:
    ended = doctor(GOOD, OPENAI_API_KEY="sk-of-this-machine")
    assert (ended.code, ended.err) == (0, "")
    rows = [line.split("  ") for line in ended.out.splitlines() if line]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["model", "key here", "key in CI", "call"],
        ["gpt-5", "set", "eval-openai: set", "answered"],
        ["claude", "ANTHROPIC_API_KEY not set", "eval-anthropic: set", "not made"],
        ["recorded", "not needed", "not needed", "not made"],
        ["workflows: none; `skill-evaluator init --workflows` adds them"],
        ["0 problems"],
    ]
    assert "sk-of-this-machine" not in ended.out + (doctor.folder / "environment").read_text()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {f"{ROOT}/environments": environments("anthropic")},
            "CI has no key for gpt-5 and skips it: gh api -X PUT 'repos/team/prompts/environments/eval-openai' && ",
        ),
        (
            {f"{ROOT}/environments/eval-openai/secrets": secrets("OTHER_API_KEY")},
            "CI has no key for gpt-5 and skips it: gh secret set OPENAI_API_KEY --env eval-openai (or, for the ",
        ),
    ],
)
def test_key_that_ci_lacks_is_a_problem(doctor: Doctor, changed: Any, problem: str) -> None:
    ended = doctor({**GOOD, **changed}, "--format", "json")
    (found,) = ended.json["problems"]
    assert (ended.code, found.startswith(problem), ended.json["unseen"]) == (4, True, [])


def test_failing_model_is_a_problem_and_shows_no_key(doctor: Doctor, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(status=401, text=f"no such key: {asked.key}")
    ended = doctor(GOOD, "--format", "json", OPENAI_API_KEY="sk-of-this-machine")
    assert ended.code == 4
    (problem,) = ended.json["problems"]
    assert problem.startswith("gpt-5 does not answer: ")
    assert "sk-of-this-machine" not in ended.out
    assert [model["call"] for model in ended.json["models"]] == ["failed", "not_made", "not_made"]
    assert server.requests == 1


def test_doctor_without_a_login_names_what_it_could_not_check(doctor: Doctor) -> None:
    ended = doctor(None, OPENAI_API_KEY="sk-of-this-machine")
    assert ended.code == 4
    assert ended.out.splitlines()[-3:] == [
        "problem: claude has no key here, and the secrets of CI cannot be read: set ANTHROPIC_API_KEY",
        "not checked: GitHub: gh is not logged in; run `gh auth login`, or set GH_TOKEN",
        "1 problem",
    ]
    assert doctor(None, OPENAI_API_KEY="one", ANTHROPIC_API_KEY="another").code == 0


def test_doctor_reports_the_rest_if_gh_fails_midway(doctor: Doctor) -> None:
    ended = doctor({**GOOD, f"{ROOT}/actions/secrets": 4}, "--format", "json", OPENAI_API_KEY="one")
    assert ended.json["unseen"] == ["GitHub: gh is not logged in; run `gh auth login`, or set GH_TOKEN"]
    assert ended.json["problems"] == [
        "claude has no key here, and the secrets of CI cannot be read: set ANTHROPIC_API_KEY"
    ]
    assert ended.code == 4


def test_forbidden_settings_are_no_problem(doctor: Doctor) -> None:
    for status in (403, 502):
        hidden = {f"{ROOT}/environments/eval-openai/secrets": status, f"{ROOT}/actions/secrets": status}
        ended = doctor({**GOOD, **hidden}, "--format", "json", OPENAI_API_KEY="one")
        assert (ended.code, ended.json["problems"]) == (0, []), status
        assert ended.json["unseen"] == [f"{path}: exit code 1: gh: Refused (HTTP {status})" for path in hidden]
        assert [model["in_ci"] for model in ended.json["models"]] == ["unknown", "environment", "not_needed"], status


def test_key_may_be_a_secret_of_repository_or_organisation(doctor: Doctor) -> None:
    answers = {
        **GOOD,
        f"{ROOT}/environments": environments("anthropic"),
        f"{ROOT}/actions/secrets": secrets("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        f"{ROOT}/actions/organization-secrets": secrets("GOOGLE_API_KEY"),
    }
    doctor.library.models(*MODELS, REPLAY, {"id": "gemini", "provider": "google"})
    ended = doctor(answers, "--format", "json")
    assert (ended.code, ended.json["problems"]) == (0, [])
    assert {model["id"]: model["in_ci"] for model in ended.json["models"]} == {
        "gpt-5": "repository",
        "claude": "environment",
        "recorded": "not_needed",
        "gemini": "repository",
    }
    assert "repository: GEMINI_API_KEY or GOOGLE_API_KEY set" in doctor(answers).out


def test_doctor_names_each_placeholder_with_its_file_and_line(doctor: Doctor) -> None:
    doctor.library.write(".evaluator/requirements.txt", "# FILL IN is explained here\nFILL IN the address\n")
    doctor.library.write(".evaluator/models.yaml", "models:\n  - id: MODEL-OF-OPENAI\n    provider: openai\n")
    ended = doctor(GOOD)
    found = [line for line in ended.out.splitlines() if line.startswith("problem: .evaluator/")]
    assert (ended.code, found) == (
        4,
        [
            "problem: .evaluator/models.yaml:2: replace the placeholder in: - id: MODEL-OF-OPENAI",
            "problem: .evaluator/requirements.txt:2: replace the placeholder in: FILL IN the address",
        ],
    )


def test_results_that_git_would_add_are_a_problem(doctor: Doctor) -> None:
    root = doctor.library.root
    GitRepository(root)
    said = "git does not ignore the output paths components/*/evals/results/, audits/*/runs/, judgements/, "
    ended = doctor(GOOD)
    assert (ended.code, f"problem: {said}" in ended.out) == (4, True)
    assert doctor.library.call("init", "--adopt", "--yes").code == 0
    assert (doctor(GOOD).code, "not ignore" in doctor(GOOD).out) == (0, False)
    (root / ".gitignore").write_text("results/\n/plan.json\n/collected\n**/site/**\njudgements\nruns\n.*.lock\n")
    assert doctor(GOOD).code == 0, "other words for the same"
    for place in ("components/a/evals/results/r/replicates.jsonl", "plan.json", "site/index.html"):
        doctor.library.write(place, "x")
    assert not {"results", "plan.json", "site"} & set(git(root, "status", "-s", "-uall").replace("/", " ").split())
