"""`init`: the written files work unchanged, and existing files are kept."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from skill_evaluator.ci.plan import environment_of
from skill_evaluator.library.config import load_models, load_settings
from skill_evaluator.library.scaffolding import EXAMPLE
from skill_evaluator.providers import PROVIDERS, key_variables
from skill_evaluator.verdicts.sizing import can_show

from tests.support.git import IDENTITY, git
from tests.support.library import ROOT, SCRIPT, Ended, call, ended, read, start

SCAFFOLD = ROOT / "tools" / "skill_evaluator" / "scaffold"
WRITTEN = ("workflows/check.yml", "workflows/evaluate.yml", "workflows/site.yml", "actions/set-up/action.yml")


def skill_evaluator(root: Path, *arguments: str) -> Ended:
    return call(root, *arguments, env=IDENTITY)


def tree(root: Path) -> dict[str, bytes | None]:
    paths = (path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts)
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in paths}


def fresh(root: Path) -> Path:
    """Make a repository on main, without a commit."""
    root.mkdir()
    git(root, "init", "-qb", "main")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fresh(tmp_path / "library")


def write_models(root: Path, *models: object) -> None:
    (root / ".evaluator").mkdir(exist_ok=True)
    (root / ".evaluator" / "models.yaml").write_text(json.dumps({"models": models}))


def test_edited_files_name_their_schema_and_are_valid(root: Path) -> None:
    assert skill_evaluator(root, "init", "--workflows", "--judge").code == 0
    written = list(root.glob(".evaluator/**/*.yaml"))
    assert len(written) > 5
    for path in written:
        text = path.read_text()
        place = re.search(r"\$schema(?:=|\": \")([^\"\s]+)", text)
        assert place is not None, path
        schema = read(path.parent / place[1])
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(yaml.safe_load(text), schema)


def test_init_writes_a_component_that_lints_plans_and_evaluates(root: Path) -> None:
    done = skill_evaluator(root, "init", "--name", "invoices")
    assert (done.code, done.err) == (0, "")
    case = Path("fixtures", "invoices", "cases", "stationer")
    names = "CHANGELOG.md", "evals/datasets.json", "prompt.md", "schema.json"
    assert {place for place, content in tree(root).items() if content is not None} == {
        *(".gitignore", ".evaluator/models.yaml", ".evaluator/settings.yaml"),
        *(f"components/invoices/{name}" for name in names),
        *(f"{case}/{name}" for name in ("document.md", "ground_truth.json")),
    }
    linted = skill_evaluator(root, "lint", "--format", "json")
    assert linted.code == 0, linted.out
    (found,) = linted.json["components"]
    assert (found["component"], found["labelled"], found["hints"]) == ("invoices", 1, [can_show(1)])
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    planned = skill_evaluator(root, "ci", "plan", f"--base={'0' * 40}", "--format", "json")
    (entry,) = planned.json["runs"]
    assert (entry["id"], entry["key_variable"]) == ("invoices@smollm2-135m-instruct", "")

    text = (root / case / "ground_truth.json").read_text()
    answers = [json.dumps({"case_id": case.name, "replicate": index, "text": text}) for index in range(2)]
    (root / "answers.jsonl").write_text("\n".join(answers))
    write_models(root, {"id": "recorded", "provider": "replay", "params": {"file": "answers.jsonl"}})
    made = skill_evaluator(root, "evaluate", "invoices", "--replicates", "2")
    assert made.code == 0, made.err
    (row,) = read(root / "components" / "invoices" / "leaderboard.json")["runs"]
    assert (row["scored"], row["accuracy"]["exact_match"]["strict_mean"]) == (2, 1.0)
    assert skill_evaluator(root, "lint", "--base", "HEAD").code == 0
    status = git(root, "status", "--porcelain", "-uall")
    assert "results" not in status
    assert "plan.json" not in status


@pytest.mark.parametrize("models", [None, [{"id": "keyed", "provider": "openai", "price": {"input": 1, "output": 1}}]])
def test_next_command_printed_by_init_runs(root: Path, models: Sequence[Any] | None) -> None:
    if models is not None:
        write_models(root, *models)
    done = skill_evaluator(root, "init", "--name", "invoices")
    (command,) = re.findall(r"(?m)^Next: skill-evaluator (.*)$", done.out)
    assert command == "evaluate invoices --dry-run"
    dry = skill_evaluator(root, *command.split())
    assert (dry.code, "valid" in dry.out) == (0, True), dry.err
    (command,) = re.findall(r"`skill-evaluator (init .*)` adds", done.out)
    assert "written  .github/workflows/evaluate.yml" in skill_evaluator(root, *command.split()).out
    assert skill_evaluator(root, "lint", "--strict").code == 0


def test_next_command_of_init_runs_from_another_folder(root: Path) -> None:
    done = skill_evaluator(root.parent, "init", "my prompts", "--name", "invoices")
    commands = re.findall(r"(?m)^Next: (.*)$|`(.*)` adds", done.out)
    for command in ("".join(found) for found in commands):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        shell = subprocess.run(["bash", "-c", command], cwd=root.parent, env={**os.environ, "PATH": path}, check=False)
        assert (len(commands), shell.returncode) == (2, 0), command
    assert (root.parent / "my prompts" / ".github").is_dir()


def test_init_with_workflows_writes_no_component_unless_it_is_named(root: Path) -> None:
    done = skill_evaluator(root, "init", "--workflows")
    assert (done.code, "Next:" in done.out, (root / "components").exists()) == (0, False, False)
    added = skill_evaluator(root, "init", "--workflows", "--audit", "--name", "invoices")
    assert "written  components/invoices/prompt.md" in added.out
    assert "written  .evaluator/scenarios/bare.md" in added.out
    with start(root, "tools/evaluate_skill.py", "invoices", "--dry-run", env={"PYTHONPATH": str(SCRIPT.parent)}) as run:
        assert ended(run).code == 0


def test_written_workflows_equal_those_of_this_project() -> None:
    assert sorted(path.name for path in (SCAFFOLD / "workflows").iterdir()) == ["check.yml", "evaluate.yml", "site.yml"]
    lines = 0
    for name in WRITTEN:
        own, laid_out = ROOT / ".github" / name, SCAFFOLD / name
        command = f"cp {own.relative_to(ROOT)} {laid_out.relative_to(ROOT)}"
        assert laid_out.read_bytes() == own.read_bytes(), f"they differ; {command}"
        lines += len(own.read_text().splitlines())
    assert lines <= 520


def test_entry_point_and_settings_equal_those_of_this_project(root: Path) -> None:
    skill_evaluator(root, "init", "--workflows", "--audit", "--judge")
    assert (root / "tools" / "evaluate_skill.py").read_bytes() == SCRIPT.read_bytes()
    lock = Path(".evaluator") / "requirements-lock.txt"
    assert (root / lock).read_bytes() == (ROOT / lock).read_bytes()
    assert load_settings(root / ".evaluator") == load_settings(ROOT / ".evaluator")
    for folder in ("scenarios", "rubrics"):
        for own in (ROOT / ".evaluator" / folder).iterdir():
            assert (root / ".evaluator" / folder / own.name).read_bytes() == own.read_bytes()
    assert skill_evaluator(root, "judge", "lint").code == 0


def test_written_files_name_no_model_of_a_vendor(root: Path) -> None:
    """Models are switched off; the comment says how to list those that there are."""
    assert skill_evaluator(root, "init", "--workflows", "--name", "x").code == 0
    named = re.compile(rb"(?i)\b(gemini|gpt|claude|mistral|llama(?!\.cpp)|qwen)\b|\bo[134]-|sonnet|opus|haiku")
    laid_out = [
        path for path in (*root.rglob("*"), *SCAFFOLD.rglob("*")) if path.is_file() and ".git" not in path.parts
    ]
    assert [path for path in laid_out if named.search(path.read_bytes())] == []
    text = (root / ".evaluator" / "models.yaml").read_text()
    assert [host in text for host in ("api.anthropic.com", "api.openai.com", "generativelanguage")] == [True] * 3


def test_written_models_are_free_and_the_commented_ones_valid(root: Path) -> None:
    skill_evaluator(root, "init")
    config = root / ".evaluator"
    assert all(PROVIDERS[model.provider].free for model in load_models(config))
    path = config / "models.yaml"
    text = path.read_text()
    path.write_text(re.sub(r"^  # (?=- id|  \w+:)", "  ", text, flags=re.MULTILINE))
    models = load_models(config)
    assert [model.provider for model in models] == ["local", "anthropic", "openai", "google", "openai"]
    said = dict(re.findall(r"^  # - id: (\S+) .*environment (\S+?)(?:,.*)?$", text, re.MULTILINE))
    assert said == {model.id: environment_of(model, PROVIDERS[model.provider]) for model in models[1:]}
    for model in models[1:4]:
        assert f"variable {key_variables(model, PROVIDERS[model.provider])[0]}\n" in text


def test_lint_names_what_the_workflow_lacks_for_the_models(root: Path) -> None:
    skill_evaluator(root, "init", "--workflows", "--name", "invoices")
    assert skill_evaluator(root, "lint", "--strict").err == ""
    write_models(
        root,
        {"id": "gpt-5", "provider": "openai"},
        {"id": "gemini-2.5-pro", "provider": "google"},
        {"id": "claude", "provider": "anthropic", "auth": "oidc"},
        {"id": "mine", "provider": "openai", "base_url": "http://127.0.0.1/v1", "api_key_env": "MINE_API_KEY"},
    )
    line = "MINE_API_KEY: ${{ contains(matrix.keys, 'MINE_API_KEY') && secrets.MINE_API_KEY || '' }}"
    linted = skill_evaluator(root, "lint")
    assert (linted.code, linted.err.splitlines()) == (
        0,
        [
            "warning: .github/workflows/evaluate.yml lacks lines that models.yaml requires; add to the job `evaluate`: "
            f"{line}; id-token: write (below permissions; `skill-evaluator init --workflows --keyless` writes it)"
        ],
    )
    assert skill_evaluator(root, "lint", "--strict").code == 2


def test_lint_names_the_missing_key_of_a_judge(root: Path) -> None:
    skill_evaluator(root, "init", "--workflows", "--name", "invoices")
    datasets = root / "components" / "invoices" / "evals" / "datasets.json"
    datasets.parent.mkdir(exist_ok=True)
    datasets.write_text('{"datasets": [{"checks": [{"expect": "It names the total."}]}]}')
    (root / ".evaluator" / "settings.yaml").write_text("policy: {judge: {model: gpt-5}}\n")
    gpt, mini = {"id": "gpt-5", "provider": "openai"}, {"id": "gpt-5-mini", "provider": "openai"}
    write_models(root, gpt, mini)
    assert "its judge" not in skill_evaluator(root, "lint").out
    write_models(root, gpt, {"id": "claude", "provider": "anthropic"})
    hint = "in CI, OPENAI_API_KEY of its judge gpt-5 must be a secret of the repository, or of eval-anthropic, too"
    linted = skill_evaluator(root, "lint")
    assert hint in " ".join(linted.out.split()), linted.out + linted.err


def test_keyless_workflows_pass_their_linters(root: Path) -> None:
    skill_evaluator(root, "init", "--workflows", "--keyless")
    bin_ = Path(sys.executable).parent
    files = sorted(str(path) for path in (root / ".github" / "workflows").iterdir())
    for command in (
        ["zizmor", "--quiet", "--offline", "--persona", "auditor", ".github"],
        ["actionlint", *files],
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files],
    ):
        done = subprocess.run([bin_ / command[0], *command[1:]], cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    job = yaml.safe_load((root / ".github" / "workflows" / "evaluate.yml").read_text())["jobs"]["evaluate"]
    assert "id-token" in job["permissions"]


def test_init_keeps_existing_files(root: Path) -> None:
    mine = {
        ".evaluator/models.yaml": "models: [{id: mine, provider: openai}]\n",
        ".github/workflows/evaluate.yml": "name: mine\n",
        f"components/{EXAMPLE}/prompt.md": "mine",
    }
    (root / ".gitignore").write_text("build/")
    for place, text in mine.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    arguments = ("init", "--workflows", "--name", EXAMPLE)
    done = skill_evaluator(root, *arguments)
    assert done.code == 0
    for place, text in mine.items():
        assert (root / place).read_text() == text
    lines = done.out.splitlines()
    assert "kept     .evaluator/models.yaml (differs from the file that init writes)" in lines
    assert "kept     .github/workflows/evaluate.yml (differs from the file that init writes)" in lines
    assert f"kept     components/{EXAMPLE} (it gets no example)" in lines
    assert "written  .github/workflows/check.yml" in lines
    assert [path.name for path in (root / "components" / EXAMPLE).iterdir()] == ["prompt.md"]
    assert not (root / "fixtures").exists()
    assert {"build/", "components/*/evals/results/"} <= set((root / ".gitignore").read_text().splitlines())
    before = tree(root)
    again = skill_evaluator(root, *arguments)
    assert again.code == 0
    assert "written" not in again.out
    assert "added" not in again.out
    assert tree(root) == before


def test_init_refuses_in_one_line_and_writes_nothing(tmp_path: Path) -> None:
    for index, (file, folder, arguments, words) in enumerate(
        (
            (".github", None, ("--workflows",), ".github is a file, but a folder must go there; move it away"),
            (None, ".evaluator/models.yaml", (), "models.yaml is a folder, but a file must go there; move it away"),
            (None, "sub", ("sub",), "sub is inside the repository"),
            ("file", None, ("file",), "file is not a folder"),
            (None, None, ("--name", "../elsewhere"), "--name '../elsewhere' cannot be a component's name"),
        )
    ):
        root = fresh(tmp_path / str(index))
        if file:
            (root / file).write_text("x")
        if folder:
            (root / folder).mkdir(parents=True)
        before = tree(root)
        assert skill_evaluator(root, "init", *arguments).refuses(words), words
        assert tree(root) == before, words


def branches(root: Path) -> list[str]:
    workflow = yaml.safe_load((root / ".github" / "workflows" / "evaluate.yml").read_text())
    found: list[str] = workflow[True]["push"]["branches"]  # YAML 1.1 reads the key `on` as true
    return found


def test_workflows_name_the_main_branch(tmp_path: Path) -> None:
    for index, (name, current, expected) in enumerate(
        [("trunk", None, "trunk"), ("main", "set-up", "main"), ("v1,#x", None, "v1,#x")]
    ):
        root = tmp_path / str(index)
        root.mkdir()
        git(root, "init", "-qb", name)
        git(root, "commit", "--allow-empty", "-qm", "first")
        if current:
            git(root, "checkout", "-qb", current)
        done = skill_evaluator(root, "init", "--workflows")
        assert f"a push to {expected} that" in done.out
        assert branches(root) == [expected]
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(tmp_path / "0"), str(clone))
    git(clone, "checkout", "-qb", "feature")
    skill_evaluator(clone, "init", "--workflows")
    assert branches(clone) == ["trunk"]
