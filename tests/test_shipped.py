"""What is shipped works as shipped: every component dry and on the local model, and the README's commands."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from skill_evaluator.api.schemas import EDITED, FORMATS
from skill_evaluator.library.config import Model
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.runner.prices import price_of

from tests.shell import clone
from tests.support.library import call

ROOT = Path(__file__).parents[1]
COMPONENTS = sorted(path.parent.name for path in (ROOT / "components").glob("*/prompt.md"))
DOCUMENTS = [
    "award-notice-extraction",
    "document-classification",
    "receipt-extraction",
    "solicitation-requirements",
]
# Ends a command that hangs, and is no test of speed: the local model takes two cores for a minute, and when other
# work has them too, ten times as long.
HANGS_AFTER_S = 1800
QUIZZES = ["quiz-knowledge", "quiz-misconceptions", "quiz-reasoning"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a command reads, so that nothing is written into the repository."""
    return clone(tmp_path)


def test_shipped_components_are_those_listed() -> None:
    assert sorted([*DOCUMENTS, *QUIZZES]) == COMPONENTS


@pytest.mark.parametrize("quiz", QUIZZES)
def test_quiz_questions_do_not_reveal_the_key(quiz: str) -> None:
    questions = [json.loads(line) for line in (ROOT / "fixtures" / quiz / "questions.jsonl").read_text().splitlines()]
    assert len(questions) >= 50
    assert len({one["question"].casefold() for one in questions}) == len(questions)
    keys: dict[int, Counter[str]] = {}
    for one in questions:
        assert 4 <= len(one["options"]) <= 6
        assert len(one["why"]) > 20
        keys.setdefault(len(one["options"]), Counter())[one["answer"]] += 1
    for options, letters in keys.items():
        times = [letters["ABCDEF"[place]] for place in range(options)]
        assert max(times) - min(times) <= 1, f"with {options} options the key is {dict(letters)}"
    longest = [max(one["options"], key=len) == one["options"]["ABCDEF".index(one["answer"])] for one in questions]
    assert sum(longest) / len(questions) <= 0.35


def test_shipped_components_pass_a_dry_run_on_each_model(checkout: Path) -> None:
    for component in COMPONENTS:
        done = call(checkout, "evaluate", component, "--dry-run", "--format", "json")
        assert done.code == 0, f"{component}: {done.err}"
        models = done.json["models"]
        assert [model["model_id"] for model in models] == [
            "claude-opus-4-7",
            "claude-sonnet-4-6",
            "gpt-5",
            "gemini-2.5-pro",
            "smollm2-135m-instruct",
            "smollm2-135m-instruct-greedy",
        ]
        assert all(model["cost_upper_usd"] is not None for model in models), component


@pytest.mark.local_model
@pytest.mark.parametrize(("component", "case"), [("document-classification", "*empty*"), ("quiz-reasoning", "chess*")])
def test_component_runs_on_the_local_model(component: str, case: str, checkout: Path) -> None:
    """A JSON output and a choice; README's main command runs receipt-extraction."""
    wanted = ("-m", "smollm2-135m-instruct", "-n", "1", "--case", case, "--format", "json")
    command = [sys.executable, "tools/evaluate_skill.py", component, *wanted]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False)
    row = json.loads(done.stdout)["runs"][0]
    assert done.returncode == (0 if row["complete"] else 4), done.stderr  # so small a model may write too little JSON
    assert row["coverage"] == 1.0
    assert row["scored"] + sum(row["failures"].values()) == row["planned"]
    assert Path(checkout, row["record"]).is_file()


@pytest.mark.parametrize(
    "entry",
    [
        entry
        for entry in yaml.safe_load((ROOT / ".evaluator" / "models.yaml").read_text())["models"]
        if entry["provider"] != "local"
    ],
    ids=lambda entry: entry["id"],
)
def test_shipped_prices_agree_with_the_price_library(entry: dict[str, object]) -> None:
    shipped = Model.model_validate(entry)
    listed = price_of(shipped.model_copy(update={"price": None}), PROVIDERS[shipped.provider])
    assert listed is not None
    assert shipped.price is not None
    assert shipped.price.model_dump(exclude_none=True).items() <= listed.model_dump().items()


def test_committed_schemas_are_up_to_date(tmp_path: Path) -> None:
    done = call(ROOT, "schemas", str(tmp_path))
    assert done.code == 0, done.err
    generated = {path.stem: path.read_text() for path in tmp_path.iterdir()}
    assert set(generated) == set(FORMATS)
    assert len(done.out.splitlines()) == len(generated)
    for name in EDITED:
        assert (ROOT / ".evaluator" / "schemas" / f"{name}.json").read_text() == generated[name]


def test_committed_files_have_no_path_of_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.exists() and path.suffix in {".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json"}:
            text = path.read_text(encoding="utf-8")
            assert str(ROOT) not in text or len(str(ROOT)) < 6, f"{name} holds a path of this machine"
            assert not re.search(r"/(?:home/|Users/|root/)\w", text), f"{name} holds a path of somebody's machine"
