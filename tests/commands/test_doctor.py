"""`doctor`: where each model has its key, and what is wrong with the set-up, by what `gh` says of it.

GitHub is not here, so a stand-in `gh` is: an executable on PATH that answers a path of the API with what a test gives.
"""

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.act import WORKFLOWS
from tests.support.git import GitRepository, git
from tests.support.library import REPLAY, SKILL, Ended, Library

REPOSITORY = "team/prompts"
ROOT = f"repos/{REPOSITORY}"
# It finds the answer to a path in a file, and starts no program: some tests ask it a dozen times.
_GH = """#!/usr/bin/env bash
here="${0%/*}"
export -p > "$here/environment"
[ -f "$here/answers" ] || exit 4
while read -r path answer; do
    [ "$path" = "${2%%\\?*}" ] || continue
    [ "${answer:0:1}" = "{" ] && printf '%s\\n' "$answer" && exit
    break
done < "$here/answers"
echo "gh: Refused (HTTP ${answer:-404})" >&2
exit 1
"""
MODELS = ({"id": "gpt-5", "provider": "openai"}, {"id": "claude", "provider": "anthropic"}, REPLAY)


def secrets(*names: str) -> dict[str, Any]:
    return {"secrets": [{"name": name} for name in names]}


def environments(**limited: bool) -> dict[str, Any]:
    policy = {"protected_branches": False, "custom_branch_policies": True}
    listed = [
        {"name": f"eval-{name}", "deployment_branch_policy": policy if is_limited else None}
        for name, is_limited in limited.items()
    ]
    return {"environments": listed}


GOOD: dict[str, Any] = {
    ROOT: {"default_branch": "main"},
    f"{ROOT}/environments": environments(openai=True, anthropic=True, unrelated=False),
    f"{ROOT}/environments/eval-openai/secrets": secrets("PROVIDER_API_KEY"),
    f"{ROOT}/environments/eval-anthropic/secrets": secrets("PROVIDER_API_KEY"),
    f"{ROOT}/branches/main": {"protected": False},
    f"{ROOT}/actions/permissions/workflow": {"can_approve_pull_request_reviews": False},
    f"{ROOT}/actions/secrets": secrets(),
}

LEGACY = {"build_type": "legacy"}  # a branch is published


class Doctor:
    def __init__(self, library: Library, folder: Path) -> None:
        self.library = library
        self.folder = folder
        folder.mkdir()
        (folder / "gh").write_text(_GH)
        (folder / "gh").chmod(0o755)
        library.models(*MODELS)

    def __call__(self, answers: Any, *arguments: str, **env: str) -> Ended:
        file = self.folder / "answers"
        file.unlink(missing_ok=True)
        if answers is not None:  # else nobody is logged in
            file.write_text("".join(f"{path} {json.dumps(answer)}\n" for path, answer in answers.items()))
        given = {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}", "GITHUB_REPOSITORY": REPOSITORY, **env}
        return self.library.call("doctor", *arguments, env=given)


@pytest.fixture
def doctor(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Doctor:
    return Doctor(library, tmp_path_factory.mktemp("gh") / "bin")


def test_each_model_says_where_it_has_its_key_and_no_key_is_shown_or_handed_on(doctor: Doctor) -> None:
    ended = doctor(GOOD, OPENAI_API_KEY="sk-of-this-machine")
    assert (ended.code, ended.err) == (0, "")
    rows = [line.split("  ") for line in ended.out.splitlines()]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["model", "key here", "key in CI"],
        ["gpt-5", "set", "eval-openai: set"],
        ["claude", "ANTHROPIC_API_KEY not set", "eval-anthropic: set"],
        ["recorded", "not needed", "not needed"],
        ["site in CI: an artifact of each run"],
        ["notice-extraction: 3 cases: a lost field is seen, a drop of 0.05 is not; 12 would see 0.12"],
        ["0 problems"],
    ]
    assert "sk-of-this-machine" not in ended.out + (doctor.folder / "environment").read_text()


def test_a_program_says_which_of_its_variables_are_missing_and_where_they_are_in_ci(doctor: Doctor) -> None:
    program = "program:\n  run: [python, app.py]\n  watch: [app.py]\n  env: [INDEX_TOKEN, SEARCH_KEY, LOG_LEVEL]"
    front = f"---\nname: {SKILL}\nversion: 1.0.0\n{program}\n---\n"
    doctor.library.write(f"components/{SKILL}/prompt.md", front)
    doctor.library.write(f"components/{SKILL}/app.py", "")
    environment = f"eval-program-{SKILL}"
    listed = {f"{ROOT}/environments": environments(openai=True, anthropic=True, **{environment[5:]: True})}
    keyed = {f"{ROOT}/environments/{environment}/secrets": secrets("PROVIDER_API_KEY")}
    keys = {"OPENAI_API_KEY": "one", "ANTHROPIC_API_KEY": "other", "LOG_LEVEL": "1"}
    row = f"{SKILL} (program)  INDEX_TOKEN and SEARCH_KEY not set"
    found = doctor({**GOOD, **listed, **keyed}, **keys)
    assert (found.code, f"{row}  {environment}: set" in found.out) == (0, True)
    lacking = doctor(GOOD, **keys)
    assert lacking.code == 4
    assert f"CI has no key for {SKILL} (program) and skips it: gh api -X PUT" in lacking.out
    assert f"gh secret set PROVIDER_API_KEY --env {environment} (lines such as INDEX_TOKEN=value)" in lacking.out
    assert "set INDEX_TOKEN and SEARCH_KEY" in doctor(None, **keys).out


PROBLEMS: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {f"{ROOT}/environments": environments(anthropic=True)},
        "CI has no key for gpt-5 and skips it: gh api -X PUT 'repos/team/prompts/environments/eval-openai' && "
        "gh secret set PROVIDER_API_KEY --env eval-openai (or, for the whole repository, "
        "gh secret set OPENAI_API_KEY)",
    ),
    (
        {f"{ROOT}/environments/eval-openai/secrets": secrets("OPENAI_API_KEY")},
        "CI has no key for gpt-5 and skips it: gh secret set PROVIDER_API_KEY --env eval-openai "
        "(or, for the whole repository, gh secret set OPENAI_API_KEY)",
    ),
    (
        {f"{ROOT}/environments": environments(openai=False, anthropic=True)},
        "environment eval-openai gives its key to every branch: limit it to main "
        "(Settings → Environments → Deployment branches)",
    ),
    (
        {f"{ROOT}/actions/secrets": secrets("PROVIDER_API_KEY")},
        "PROVIDER_API_KEY is a secret of the repository, and no provider's own: gh secret delete PROVIDER_API_KEY",
    ),
    (
        {f"{ROOT}/branches/main": {"protected": True}},
        "main is protected, so the token of a job cannot push records to it: "
        "gh variable set SKILL_EVALUATOR_PUBLISH --body branch (or pull-request)",
    ),
    (
        {f"{ROOT}/actions/variables/SKILL_EVALUATOR_PUBLISH": {"value": "pull-request"}},
        "a job may not open pull requests, so records stay on their branch: "
        "Settings → Actions → General → Allow GitHub Actions to create and approve pull requests",
    ),
    (
        {f"{ROOT}/actions/variables/SKILL_EVALUATOR_SITE": {"value": "pages"}},
        "the site is to be published, and Pages takes none from workflows: "
        "gh api repos/team/prompts/pages -f build_type=workflow",
    ),
    (
        {f"{ROOT}/actions/variables/SKILL_EVALUATOR_SITE": {"value": "pages"}, f"{ROOT}/pages": LEGACY},
        "the site is to be published, and Pages takes none from workflows: "
        "gh api -X PUT repos/team/prompts/pages -f build_type=workflow",
    ),
    (
        {f"{ROOT}/actions/variables/SKILL_EVALUATOR_SITE": {"value": "on"}},
        "SKILL_EVALUATOR_SITE is 'on', so no site is built: gh variable set SKILL_EVALUATOR_SITE --body pages",
    ),
    (
        {"repos/team/data": {"private": True}},
        "team/data is private, and no secret can read it: gh secret set FIXTURES_TOKEN",
    ),
)


def test_what_is_wrong_is_a_line_with_its_remedy_and_exit_code_4(doctor: Doctor) -> None:
    for changed, problem in PROBLEMS:
        doctor.library.settings(**({"fixtures": {"repository": "team/data"}} if "repos/team/data" in changed else {}))
        ended = doctor({**GOOD, **changed}, "--format", "json")
        assert (ended.code, ended.json["problems"], ended.json["unseen"]) == (4, [problem], []), changed


def test_schedules_that_github_switches_off_soon_are_a_problem(doctor: Doctor) -> None:
    now = datetime.datetime.now(datetime.UTC)

    def answers(days: int, variable: str = "AUDIT", **changed: Any) -> dict[str, Any]:
        made = f"{now - datetime.timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        branch = {"protected": False, "commit": {"commit": {"committer": {"date": made}}}}
        repository = {"default_branch": "main", "private": False, **changed}
        value = {"value": "5" if variable == "DRIFT" else "on"}
        return {
            **GOOD,
            ROOT: repository,
            f"{ROOT}/branches/main": branch,
            f"{ROOT}/actions/variables/SKILL_EVALUATOR_{variable}": value,
        }

    for variable, title in (("DRIFT", "Drift"), ("AUDIT", "Audit")):
        ended = doctor(answers(46, variable), "--format", "json")
        (problem,) = ended.json["problems"]
        assert f"the newest commit on main is of {now - datetime.timedelta(days=46):%Y-%m-%d}, and GitHub" in problem
        assert f"Actions → {title} → Enable workflow" in problem
        assert ended.code == 4
    for fine in (answers(44), answers(46, private=True), answers(46, variable="SITE_")):
        assert doctor(fine).code == 0
    assert doctor({**answers(46), f"{ROOT}/branches/main": {"commit": {"commit": {"committer": "who"}}}}).code == 0


def test_it_says_what_becomes_of_the_site(doctor: Doctor) -> None:
    variable = f"{ROOT}/actions/variables/SKILL_EVALUATOR_SITE"
    published = {variable: {"value": "pages"}, f"{ROOT}/pages": {**LEGACY, "build_type": "workflow"}}
    sites: tuple[tuple[dict[str, Any], str], ...] = (
        ({f"{ROOT}/pages": LEGACY}, "an artifact of each run"),
        (published, "published on Pages"),
        ({variable: 403}, "not looked at"),
    )
    for changed, site in sites:
        ended = doctor({**GOOD, **changed})
        assert (ended.code, f"site in CI: {site}" in ended.out.splitlines()) == (0, True), site


def test_without_a_login_it_says_what_it_could_not_look_at_and_what_is_missing_here(doctor: Doctor) -> None:
    ended = doctor(None, OPENAI_API_KEY="sk-of-this-machine")
    assert ended.code == 4
    assert ended.out.splitlines()[-3:] == [
        "problem: claude has no key here, and CI could not be looked at: set ANTHROPIC_API_KEY",
        "not looked at: GitHub: gh is not logged in; run `gh auth login`, or set GH_TOKEN",
        "1 problem",
    ]
    assert doctor(None, OPENAI_API_KEY="one", ANTHROPIC_API_KEY="another").code == 0


def test_what_a_login_may_not_see_is_no_problem_and_said(doctor: Doctor) -> None:
    for status in (403, 404, 502):
        hidden = {f"{ROOT}/environments/eval-openai/secrets": status, f"{ROOT}/actions/secrets": status}
        ended = doctor({**GOOD, **hidden}, "--format", "json", OPENAI_API_KEY="one")
        assert (ended.code, ended.json["problems"]) == (0, []), status
        assert ended.json["unseen"] == [f"{path}: gh: Refused (HTTP {status})" for path in hidden]
        assert [model["in_ci"] for model in ended.json["models"]] == ["unknown", "environment", "not_needed"], status


def test_a_key_may_be_a_secret_of_the_repository_or_of_its_organisation(doctor: Doctor) -> None:
    answers = {
        **GOOD,
        f"{ROOT}/environments": environments(anthropic=True),
        f"{ROOT}/actions/secrets": secrets("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        f"{ROOT}/actions/organization-secrets": secrets("GOOGLE_API_KEY"),
    }
    doctor.library.models(*MODELS, {"id": "gemini", "provider": "google"})
    ended = doctor(answers, "--format", "json")
    assert (ended.code, ended.json["problems"]) == (0, [])
    assert {model["id"]: model["in_ci"] for model in ended.json["models"]} == {
        "gpt-5": "repository",
        "claude": "environment",
        "recorded": "not_needed",
        "gemini": "repository",
    }
    assert "repository: GEMINI_API_KEY or GOOGLE_API_KEY set" in doctor(answers).out


def test_workflows_that_do_not_hand_the_keys_on_are_a_problem(doctor: Doctor) -> None:
    text = (WORKFLOWS / "audit.yml").read_text()
    doctor.library.write(".github/workflows/audit.yml", text)
    (problem,) = doctor(GOOD, "--format", "json").json["problems"]
    assert problem.endswith(
        "audit.yml has not the jobs that the keys of models.yaml ask for: skill-evaluator init --workflows"
    )


def test_a_repository_that_is_not_to_be_seen_is_one_line(doctor: Doctor) -> None:
    ended = doctor({}, "--format", "json", OPENAI_API_KEY="one", ANTHROPIC_API_KEY="another")
    assert (ended.code, ended.json["repository"]) == (0, None)
    assert ended.json["unseen"] == [f"GitHub: it could not be asked for {ROOT}: gh: Refused (HTTP 404)"]


def test_models_that_cannot_be_read_are_wrong_input(doctor: Doctor) -> None:
    doctor.library.models({"id": "gpt-5", "provider": "opnai"})
    assert doctor(GOOD).code == 2


def test_a_model_without_a_key_needs_variables_that_say_who_the_job_is(doctor: Doctor) -> None:
    doctor.library.models({"id": "gpt-5", "provider": "openai", "auth": "oidc"}, REPLAY)
    listed = {"variables": [{"name": name} for name in ("OPENAI_IDENTITY_PROVIDER_ID", "OPENAI_SERVICE_ACCOUNT_ID")]}
    good = {**GOOD, f"{ROOT}/environments/eval-openai/secrets": secrets(), f"{ROOT}/actions/variables": listed}
    ended = doctor(good)
    assert (ended.code, ended.err) == (0, "")
    assert "none, in CI only  identity of eval-openai" in ended.out
    lacking = {**good, f"{ROOT}/actions/variables": {"variables": listed["variables"][:1]}}
    ended = doctor({**lacking, f"{ROOT}/environments": environments(openai=False)}, "--format", "json")
    assert ended.code == 4
    assert ended.json["problems"] == [
        "gpt-5 cannot be asked in CI, which has no variable OPENAI_SERVICE_ACCOUNT_ID: "
        "gh variable set OPENAI_SERVICE_ACCOUNT_ID",
        "environment eval-openai gives its identity to every branch: limit it to main "
        "(Settings → Environments → Deployment branches)",
    ]


def test_doctor_names_each_placeholder_with_its_file_and_line(doctor: Doctor) -> None:
    doctor.library.write(".evaluator/requirements.txt", "# FILL IN is explained here\nFILL IN the address\n")
    doctor.library.write(".evaluator/models.yaml", "models:\n  - id: MODEL-OF-OPENAI\n    provider: openai\n")
    ended = doctor(GOOD)
    found = [line for line in ended.out.splitlines() if line.startswith("problem: .evaluator/")]
    assert (ended.code, found) == (
        4,
        [
            "problem: .evaluator/models.yaml:2: - id: MODEL-OF-OPENAI",
            "problem: .evaluator/requirements.txt:2: FILL IN the address",
        ],
    )


def test_answers_that_git_would_add_are_a_problem_until_they_are_ignored(doctor: Doctor) -> None:
    root = doctor.library.root
    GitRepository(root)
    said = "git add would publish components/*/evals/results/, audits/*/runs/, judgements/, "
    ended = doctor(GOOD)
    assert (ended.code, f"problem: {said}" in ended.out) == (4, True)
    assert doctor.library.call("init", "--adopt", "--yes").code == 0
    assert (doctor(GOOD).code, "publish" in doctor(GOOD).out) == (0, False)
    (root / ".gitignore").write_text(
        "results/\n/plan.json\n/audit-plan.json\n/collected\n**/site/**\njudgements\nruns\n.*.lock\n"
    )
    assert doctor(GOOD).code == 0, "other words for the same"
    for place in ("components/a/evals/results/r/replicates.jsonl", "plan.json", "site/index.html"):
        doctor.library.write(place, "x")
    assert not {"results", "plan.json", "site"} & set(git(root, "status", "-s", "-uall").replace("/", " ").split())
