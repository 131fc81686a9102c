"""Attested records: which ones a trusted workflow wrote, by what `gh` says of each, for `lint` and `plan`.

GitHub is not here, so a stand-in `gh` is: an executable on PATH that says what the real one says (its words and exit
codes are those of its sources) and notes how it was called. What GitHub signs is not tried by this.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import GitRepository
from tests.support.library import SKILL, Ended, Library
from tests.support.records import a_run, keep

REPOSITORY = "team/prompts"
_GH = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
table = json.loads((here / "table.json").read_text())
if sys.argv[1] == "repo":
    key = "branch" if "defaultBranchRef" in sys.argv else "repo"
else:
    key = pathlib.Path(sys.argv[3]).stem
workflow = sys.argv[sys.argv.index("--signer-workflow") + 1] if "--signer-workflow" in sys.argv else ""
out, err, code = table.get(workflow + "|" + key) or table.get(key, table["else"])
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
VERIFIED = (json.dumps([{"verificationResult": {}}]), "", 0)
NONE = ("", "✗ No attestations found for subject sha256:0\n", 1)
NOT_FOUND = ("", f"Error: HTTP 404: Not Found (https://api.github.com/repos/{REPOSITORY}/attestations/sha256:0)\n", 1)
NONE_BUT_0 = ("", "✗ No attestations found with predicate type: https://slsa.dev/provenance/v1\n", 0)
BROKEN = ("", '✗ Sigstore verification failed\n\nError: verifying with issuer "sigstore.dev"\n', 1)
OTHER_SIGNER = ("", "Error: expected SubjectAlternativeName to be evaluate.yml, got other.yml\n", 1)
TOO_OLD = ("", "unknown flag: --source-ref\n", 1)
NOT_LOGGED_IN = ("", "To get started with GitHub CLI, please run:  gh auth login\n", 4)
RUNS = [a_run(f"1.{minor}.0", minor + 1, {"alpha": [1.0, 0.5]}) for minor in range(3)]
FIRST, SECOND, THIRD = (run.run_id for run in RUNS)


class Gh:
    """The stand-in: what it says by run id (`else` of any other), and how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "gh").write_text(_GH)
        (folder / "gh").chmod(0o755)
        self.says({})

    def says(self, table: dict[str, tuple[str, str, int]]) -> None:
        branch = ("main\n", "", 0)
        (self.folder / "table.json").write_text(json.dumps({"else": VERIFIED, "branch": branch, **table}))

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def gh(tmp_path_factory: pytest.TempPathFactory) -> Gh:
    return Gh(tmp_path_factory.mktemp("gh") / "bin")


@pytest.fixture(autouse=True)
def _recorded(library: Library) -> None:
    keep(library, *RUNS)


def lint(library: Library, gh: Gh, *arguments: str, **env: str) -> Ended:
    path = f"{gh.folder}{os.pathsep}{os.environ['PATH']}"
    return library.call("lint", "--attested", *arguments, env={"PATH": path, "GITHUB_REPOSITORY": REPOSITORY, **env})


def component_of(done: Ended) -> dict[str, Any]:
    (component,) = done.json["components"]
    return component


EVALUATE = f"{REPOSITORY}/.github/workflows/evaluate.yml"
WHO = ["--signer-workflow", EVALUATE, "--source-ref", "refs/heads/main", "--deny-self-hosted-runners"]


def verified(library: Library, gh: Gh) -> list[tuple[str, list[str]]]:
    """Which records gh was asked about, and who may have signed them."""
    folder = str(library.component / "evals" / "records")
    asked = [call for call in gh.calls if call[0] == "attestation"]
    assert all(call[:2] + call[3:5] == ["attestation", "verify", "--repo", REPOSITORY] for call in asked)
    assert all(Path(call[2]).parent == Path(folder) for call in asked)
    return [(Path(call[2]).stem, call[5:-2]) for call in asked]


def test_every_record_is_verified_by_gh_as_written_by_the_workflow_on_the_default_branch(
    library: Library, gh: Gh
) -> None:
    done = lint(library, gh)
    assert (done.code, "records: 3 verified\n" in done.out) == (0, True)
    assert verified(library, gh) == [(run_id, WHO) for run_id in (FIRST, SECOND, THIRD)]


def test_other_workflows_branches_and_runners_are_believed_only_where_settings_list_them(
    library: Library, gh: Gh
) -> None:
    gh.says({f"{EVALUATE}|{FIRST}": OTHER_SIGNER, f"{REPOSITORY}/w.yml|{FIRST}": VERIFIED})
    assert lint(library, gh).code == 2
    library.settings(attestations={"workflows": [".github/workflows/evaluate.yml", "w.yml"], "self_hosted": True})
    assert lint(library, gh).code == 0
    assert verified(library, gh)[-4:-2] == [
        (FIRST, WHO[:-1]),
        (FIRST, ["--signer-workflow", f"{REPOSITORY}/w.yml", *WHO[2:-1]]),
    ]


@pytest.mark.parametrize("options", [(), ("--no-cases",)])
def test_a_gh_that_lacks_a_flag_is_a_failure_and_never_a_pass(
    library: Library, gh: Gh, options: tuple[str, ...]
) -> None:
    gh.says({"else": TOO_OLD})
    done = lint(library, gh, *options)
    assert done.code == 2
    assert "the attestation of this record does not hold: unknown flag: --source-ref" in done.out


def test_the_settings_before_a_change_say_whether_its_records_need_an_attestation(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    since = repository.commit()
    library.settings(attestations={"since": since})
    base = repository.commit()
    keep(library, a_run("1.9.0", 20, {"alpha": [1.0, 0.5]}))
    library.settings()  # the change itself switches it off, and edits what checks it
    library.write(".github/workflows/check.yml", "name: Check\n")
    repository.commit()
    gh.says({"else": NONE})
    path = f"{gh.folder}{os.pathsep}{os.environ['PATH']}"
    done = library.call("lint", "--base", base, env={"PATH": path, "GITHUB_REPOSITORY": REPOSITORY})
    assert done.code == 2
    assert "this record has no attestation" in done.out
    assert "warning: .github/workflows/check.yml: this change edits what checks it" in done.err
    assert [run_id for run_id, _ in verified(library, gh)] == [a_run("1.9.0", 20, {"alpha": [1.0, 0.5]}).run_id]


def test_a_record_without_attestation_is_counted_and_named(library: Library, gh: Gh) -> None:
    for answer in (NONE, NOT_FOUND, NONE_BUT_0):
        gh.says({SECOND: answer})
        done = lint(library, gh)
        assert (done.code, "records: 2 verified, 1 without attestation" in done.out) == (2, True), answer
        assert f"components/{SKILL}/evals/records/{SECOND}.json:1: this record has no attestation\n" in done.out


def test_an_attestation_that_does_not_hold_is_said_with_what_gh_says(library: Library, gh: Gh) -> None:
    gh.says({THIRD: BROKEN, FIRST: ("", "", 7)})
    component = component_of(lint(library, gh, "--format", "json"))
    assert component["attested"] == {"verified": 1, "absent": 0, "failed": 2}
    assert [problem.partition(".json:1: ")[2] for problem in component["problems"]] == [
        "the attestation of this record does not hold: gh ended with 7",
        'the attestation of this record does not hold: Error: verifying with issuer "sigstore.dev"',
    ]


def test_records_from_before_a_base_need_no_attestation_and_are_counted(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    base = repository.commit()
    keep(library, a_run("1.9.0", 20, {"alpha": [1.0, 0.5]}))
    gh.says(dict.fromkeys((FIRST, SECOND, THIRD), NONE))
    done = lint(library, gh, "--base", base, "--format", "json")
    assert (done.code, component_of(done)["attested"]) == (0, {"verified": 1, "absent": 3, "failed": 0})
    path = library.component / "evals" / "records" / f"{FIRST}.json"
    path.write_text(path.read_text().replace('"retries": 0', '"retries": 1'))
    problems = component_of(lint(library, gh, "--base", base, "--format", "json"))["problems"]
    assert any(problem.endswith(f"{FIRST}.json:1: this record has no attestation") for problem in problems)
    gh.says({"else": NONE})
    assert lint(library, gh, "--base", base).code == 2


def test_outside_of_a_job_gh_is_asked_for_the_repository(library: Library, gh: Gh) -> None:
    gh.says({"repo": ("other/library\n", "", 0)})
    assert lint(library, gh, GITHUB_REPOSITORY="").code == 0
    assert gh.calls[0] == ["repo", "view", "--json", "nameWithOwner", "--jq", ".nameWithOwner"]
    assert gh.calls[1][:3] == ["repo", "view", "other/library"]
    assert gh.calls[2][4] == "other/library"
    gh.says({"repo": ("", "no git remotes found\n", 1)})
    done = lint(library, gh, GITHUB_REPOSITORY="")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: gh does not know the repository on GitHub: no git remotes found; run this")


def test_without_gh_or_a_login_it_is_one_line_of_error_and_never_a_pass(
    library: Library, gh: Gh, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gh.says({"else": NOT_LOGGED_IN})
    done = lint(library, gh)
    assert done.refuses("error: gh is not logged in; run `gh auth login`, or set GH_TOKEN\n")
    done = lint(library, gh, PATH=str(tmp_path_factory.mktemp("empty")))
    why = "error: gh cannot be started (No such file or directory); install it from https://cli.github.com\n"
    assert done.refuses(why)


def test_without_the_option_nobody_is_asked(library: Library, gh: Gh) -> None:
    path = f"{gh.folder}{os.pathsep}{os.environ['PATH']}"
    done = library.call("lint", "--format", "json", env={"PATH": path})
    assert (done.code, component_of(done)["attested"], gh.calls) == (0, None, [])


def plan_of_push(library: Library, gh: Gh, *arguments: str) -> dict[str, Any]:
    env = {
        "PATH": f"{gh.folder}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_REPOSITORY": REPOSITORY,
        **{name: str(library.root / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")},
    }
    plan: dict[str, Any] = library.call("plan", "--platform", "github", "--format", "json", *arguments, env=env).json
    return plan


def test_a_push_does_not_take_a_record_for_a_baseline_that_no_trusted_job_wrote(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    library.settings(attestations={"since": repository.commit()})
    base = repository.commit()
    keep(library, a_run("1.9.0", 20, {"alpha": [1.0, 0.5]}))
    prompt = library.component / "prompt.md"
    prompt.write_text(re.sub("version: .*", "version: 1.10.0", prompt.read_text()))
    repository.commit()
    assert plan_of_push(library, gh, "--base", base)["entries"]
    gh.says({"else": NONE})
    plan = plan_of_push(library, gh, "--base", base)
    assert plan["entries"] == []
    assert [fault["message"] for fault in plan["faults"]] == ["this record has no attestation"]
    assert "attest=true" in (library.root / "GITHUB_OUTPUT").read_text()


def test_a_push_does_not_take_a_row_for_a_baseline_that_is_not_its_records(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    library.settings(attestations={"since": repository.commit()})
    base = repository.commit()
    board = library.component / "leaderboard.json"
    board.write_text(board.read_text().replace('"skill_version": "1.2.0"', '"skill_version": "1.8.0"'))
    prompt = library.component / "prompt.md"
    prompt.write_text(re.sub("version: .*", "version: 1.10.0", prompt.read_text()))
    repository.commit()
    plan = plan_of_push(library, gh, "--base", base)
    assert plan["entries"] == []
    assert {fault["file"] for fault in plan["faults"]} == {f"components/{SKILL}/leaderboard.json"}


def test_a_record_on_a_branch_beside_the_work_tree_is_no_baseline_without_attestation(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    library.settings(attestations={"since": repository.commit()})
    base = repository.commit()
    keep(library, a_run("1.9.0", 20, {"alpha": [1.0, 0.5]}))
    repository.git("checkout", "-q", "-b", "records")
    repository.commit()
    repository.git("checkout", "-q", "-")
    prompt = library.component / "prompt.md"
    prompt.write_text(re.sub("version: .*", "version: 1.10.0", prompt.read_text()))
    repository.commit()
    assert plan_of_push(library, gh, "--base", base, "--recorded", "records")["entries"]
    gh.says({"else": NONE})
    plan = plan_of_push(library, gh, "--base", base, "--recorded", "records")
    assert (plan["entries"], plan["faults"][0]["message"]) == ([], "this record has no attestation")


def test_a_draft_needs_an_attestation_where_a_row_names_it(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    library.settings(attestations={"since": repository.commit()})
    base = repository.commit()
    run = a_run("1.9.0", 20, {"alpha": [1.0, 0.5]})
    keep(library, run)
    path = library.component / "evals" / "records" / f"{run.run_id}.json"
    path.write_text(path.read_text().replace('"draft": false', '"draft": true'))
    prompt = library.component / "prompt.md"
    prompt.write_text(re.sub("version: .*", "version: 1.10.0", prompt.read_text()))
    repository.commit()
    gh.says({"else": NONE})
    plan = plan_of_push(library, gh, "--base", base)
    assert (plan["entries"], plan["faults"][0]["message"]) == ([], "this record has no attestation")


def test_a_change_that_makes_the_configuration_a_link_is_refused(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    library.settings(attestations={"since": repository.commit()})
    base = repository.commit()
    (library.root / ".evaluator").rename(library.root / "other")
    (library.root / ".evaluator").symlink_to("other")
    repository.commit()
    path = f"{gh.folder}{os.pathsep}{os.environ['PATH']}"
    done = library.call("lint", "--base", base, env={"PATH": path, "GITHUB_REPOSITORY": REPOSITORY})
    why = f"error: {library.root / '.evaluator'} is a link, which another commit may not have; make it a folder\n"
    assert done.refuses(why)


def test_a_change_may_mend_settings_that_this_version_refuses(library: Library, gh: Gh) -> None:
    repository = GitRepository(library.root)
    library.settings(policy={"design": "interleaved"})  # as an earlier version took it
    base = repository.commit()
    library.settings(policy={"design": "beside"})
    repository.commit()
    assert library.call("lint", "--base", base).code == 0
    assert plan_of_push(library, gh, "--base", base)["faults"] == []
