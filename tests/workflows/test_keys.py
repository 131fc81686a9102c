"""Keys as secrets of the repository: what every process of every job had in its environment, in both workflows."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import skill_evaluator

from tests.support.library import REPLAY, ROOT
from tests.workflows.forge import CHECK, EVALUATE, Forge, with_key

SECRETS = {
    "SERVED_API_KEY": "key-of-the-served-model",
    "OTHER_API_KEY": "key-of-the-other-model",
    "FIXTURES_TOKEN": "token-to-read-fixtures",
}
OWN = {"served": {"SERVED_API_KEY"}, "other": {"OTHER_API_KEY"}}
_NOTE = """import json, os, sys
with open(os.environ["NOTED"], "a") as noted:
    noted.write(json.dumps([sys.orig_argv, dict(os.environ)]) + "\\n")
"""


@pytest.fixture
def noting(tmp_path: Path) -> dict[str, str]:
    """The environment in which every Python notes its arguments and its environment as it begins."""
    (tmp_path / "noting").mkdir()
    (tmp_path / "noting" / "sitecustomize.py").write_text(_NOTE)
    source = Path(skill_evaluator.__file__).parents[1]
    path = os.pathsep.join(map(str, (tmp_path / "noting", source, ROOT)))
    return {"PYTHONPATH": path, "NOTED": str(tmp_path / "noting" / "noted")}


def processes(noting: dict[str, str]) -> Iterator[tuple[str, set[str]]]:
    """Each process that began since the last look, and which of the secrets it was given, in whatever variable."""
    noted = Path(noting["NOTED"])
    for line in noted.read_text().splitlines():
        argv, environment = json.loads(line)
        yield " ".join(argv), {name for name, value in SECRETS.items() if value in "\n".join(environment.values())}
    noted.unlink()


def keys_of_asking(noting: dict[str, str], asking: str) -> dict[str, set[str]]:
    """By model: which keys the process was given that asked it. No other process may have been given any."""
    asked = {}
    for process, given in processes(noting):
        if f"{asking} " in process:
            asked[process.partition("--model ")[2].partition(" ")[0]] = given
        else:
            assert given <= ({"FIXTURES_TOKEN"} if "cases fetch" in process else set()), process
    return asked


@pytest.mark.act
def test_each_job_gets_only_its_own_key(forge: Forge, noting: dict[str, str]) -> None:
    forge.library.models(REPLAY, forge.served, {**forge.served, "id": "other", "api_key_env": "OTHER_API_KEY"})
    evaluate = forge.library.root / EVALUATE
    evaluate.write_text(with_key(evaluate.read_text(), "OTHER_API_KEY"))
    forge.component("one", "1.0.0")
    commit = forge.fixtures_elsewhere()
    forge.push()
    forge.component("one", "1.1.0")
    event = forge.push()

    pull_request = {"number": 7, "pull_request": {"number": 7}}
    assert forge.run(pull_request, "pull_request", CHECK, SECRETS, env=noting).code == 0
    assert keys_of_asking(noting, "nothing") == {}

    acted = forge.run(event, secrets=SECRETS, env=noting)
    assert (acted.code, SECRETS["FIXTURES_TOKEN"] in acted.log) == (0, False)
    assert keys_of_asking(noting, "tools/evaluate_skill.py") == {"recorded": set(), **OWN}
    rows = {row["model_id"]: (row["dataset_commit"], row["complete"]) for row in forge.rows("one")}
    assert rows == dict.fromkeys(("recorded", "served", "other"), (commit, True))


@pytest.mark.act
def test_program_runs_in_its_own_job_with_the_variables_it_declares(forge: Forge) -> None:
    code = (
        "import json, os, sys\n"
        "secrets = sorted(name for name, value in os.environ.items() if 'secret-value' in value)\n"
        "print(json.dumps({'answer': {'title': '-'.join(secrets), 'year': 2024}}))\n"
    )
    program = {"run": [sys.executable, "app.py"], "watch": ["app.py"], "env": ["FIRST", "SECOND"]}
    for version in ("1.0.0", "1.1.0"):
        forge.component("one", version)
        forge.component("two", version)
        front = {"name": "one", "version": version, "program": program}
        forge.library.write("components/one/prompt.md", f"---\n{json.dumps(front)}\n---\n")
        forge.library.write("components/one/app.py", code)
        event = forge.push()
    secret = "FIRST=secret-value-of-the-first\nSECOND=secret-value-of-the-second\nTHIRD=secret-value-not-named"
    assert forge.run(event, secrets={"PROGRAM_ENV": secret}).code == 0
    assert {name for name in forge.uploaded() if "@" in name} == {"one@program", "two@recorded"}
    (row,) = forge.rows("one")
    assert (row["model_id"], row["complete"], row["skill_version"]) == ("program", True, "1.1.0")
    (journal,) = (forge.artifacts / "one@program").rglob("replicates.jsonl")
    assert {json.loads(line)["text"] for line in journal.read_text().splitlines()} == {
        json.dumps({"title": "FIRST-SECOND", "year": 2024}, ensure_ascii=False)
    }
    everything = b"".join(path.read_bytes() for path in forge.artifacts.rglob("*") if path.is_file())
    assert b"secret-value" not in everything
