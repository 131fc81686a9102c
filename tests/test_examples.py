"""The examples of docs/use-elsewhere.md do what the page says, in the tools they are for where those are installed."""

import doctest
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.exchange.imported import records_in

ROOT = Path(__file__).parents[1]
WRONG_PRICE = "wrong at lines[0].price: 89.9 is expected, not 98.9 (compared as number)"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples, outside the project and its pytest settings."""
    return Path(shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples"))


def spoil(examples: Path) -> None:
    """Let the answer to one invoice have one wrong price."""
    answer = examples / "invoices" / "office-chairs" / "answer.txt"
    answer.write_text(answer.read_text().replace("89.9", "98.9"))


def run(arguments: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    importable = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": importable, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.pages
def test_examples_of_the_page_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "skill_evaluator", "demo", "demo"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "demo")
    failed, tried = doctest.testfile(str(ROOT / "docs" / "use-elsewhere.md"), module_relative=False)
    assert tried
    assert not failed


def test_page_links_every_example() -> None:
    page = (ROOT / "docs" / "use-elsewhere.md").read_text()
    for name in ("test_invoices.py", "promptfoo_invoices.py", "promptfooconfig.yaml", "inspect_invoices.py"):
        assert f"(examples/{name})" in page
        assert (ROOT / "docs" / "examples" / name).is_file()


def test_pytest_example_names_the_wrong_value(examples: Path) -> None:
    spoilt = Path(shutil.copytree(examples, examples.parent / "spoilt"))
    spoil(spoilt)
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    suites = [str(folder / "test_invoices.py") for folder in (examples, spoilt)]
    done = run([sys.executable, "-m", "pytest", *options, *suites], examples.parent, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert (done.returncode, "1 failed, 3 passed" in done.stdout) == (1, True), done.stdout
    assert "FAILED spoilt/test_invoices.py" in done.stdout
    assert WRONG_PRICE in done.stdout


def grade(examples: Path, case: str, answer: Any = None, truth: Any = None, config: Any = None) -> dict[str, Any]:
    """What the assertion returns when called as promptfoo calls it: loaded by path, all arguments and results JSON."""
    script = examples / "promptfoo_invoices.py"
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = examples / "invoices" / case
    output = (folder / "answer.txt").read_text() if answer is None else answer
    truth = (folder / "ground_truth.json").read_text() if truth is None else truth
    variables = {"answer": output, "truth": truth}
    context = {
        "prompt": "Read the invoice.",
        "vars": variables,
        "test": {"vars": variables, "assert": [{"type": "python", "value": f"file://{script.name}"}], "options": {}},
        "config": config,
        "provider": {"label": "", "config": {"basePath": "."}},
        "providerResponse": {"output": output, "raw": output, "cost": 0, "cached": False, "metadata": {}},
        "metadata": {},
    }
    if config is None:
        del context["config"]  # promptfoo leaves out what the assertion does not say
    graded: dict[str, Any] = json.loads(json.dumps(module.get_assert(*json.loads(json.dumps([output, context])))))
    return graded


def test_promptfoo_assertion_passes_a_right_output(examples: Path) -> None:
    graded = grade(examples, "garden-tools")
    assert (graded["pass"], graded["score"], graded["reason"]) == (True, 1.0, "every field is right")
    assert graded["namedScores"]["jaccard"] == 1.0
    assert graded["componentResults"] == []


def test_promptfoo_assertion_names_every_wrong_value(examples: Path) -> None:
    spoil(examples)
    graded = grade(examples, "office-chairs")
    assert (graded["pass"], graded["score"], graded["reason"]) == (False, 0.8, WRONG_PRICE)
    assert graded["componentResults"] == [{"pass": False, "score": 0, "reason": WRONG_PRICE}]
    assert grade(examples, "office-chairs", config={"minimum": 0.75})["pass"]


def test_promptfoo_assertion_takes_values_and_texts(examples: Path) -> None:
    value = json.loads((examples / "invoices" / "office-chairs" / "ground_truth.json").read_text())
    assert grade(examples, "office-chairs", answer=value, truth=value)["pass"]


def test_promptfoo_assertion_fails_an_invalid_output(examples: Path) -> None:
    graded = grade(examples, "office-chairs", answer="{}", config={"minimum": 0})
    assert not graded["pass"]
    assert '/: "supplier" is a required property' in graded["reason"]
    graded = grade(examples, "office-chairs", answer="I cannot.", config={"minimum": 0})
    assert (graded["pass"], graded["score"], graded["reason"]) == (False, 0.0, "prose")


@pytest.mark.newest
def test_promptfoo_runs_the_example(examples: Path, tmp_path: Path) -> None:
    spoil(examples)
    out = tmp_path / "out.json"
    done = run(
        ["promptfoo", "eval", "-c", "promptfooconfig.yaml", "--no-cache", "-o", str(out)],
        examples,
        PROMPTFOO_PYTHON=sys.executable,
        PROMPTFOO_CONFIG_DIR=str(tmp_path),
        PROMPTFOO_DISABLE_TELEMETRY="1",
        PROMPTFOO_DISABLE_UPDATE="1",
    )
    assert out.exists(), done.stdout + done.stderr
    results = json.loads(out.read_text())["results"]["results"]
    assert [(result["success"], result["score"]) for result in results] == [(True, 1), (False, 0.8)]
    assert results[1]["gradingResult"]["reason"] == WRONG_PRICE
    (record,) = records_in(out)
    assert (record.n_cases, record.accuracy["score"].mean) == (2, 0.9)


INSPECT = """
import json
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_invoices import INVOICES, invoices

answers = []
for case in sorted(INVOICES.glob("*/")):
    answer = ModelOutput.from_content("mockllm/model", (case / "answer.txt").read_text())
    answer.usage = ModelUsage()  # else inspect_ai counts tokens with a table it fetches from the network
    answers.append(answer)
model = get_model("mockllm/model", custom_outputs=answers)
(log,) = eval(invoices(), model=model, log_dir="logs", display="none", max_samples=1)
assert log.status == "success", log.error
print(json.dumps({
    "means": {score.name: score.metrics["mean"].value for score in log.results.scores},
    "explanations": [sample.scores["field_scores"].explanation for sample in log.samples],
    "rows": [len(sample.scores["field_scores"].metadata["rows"]) for sample in log.samples],
}))
"""


@pytest.mark.newest
def test_inspect_ai_runs_the_scorer_over_a_task(examples: Path) -> None:
    spoil(examples)
    done = run([sys.executable, "-c", INSPECT], examples)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "means": {"schema_valid": 1.0, "exact_match": 0.0, "field_level_f1": 0.9},
        "explanations": ["every field is right", WRONG_PRICE],
        "rows": [9, 5],
    }
    (log,) = (examples / "logs").glob("*.eval")
    dumped = run([str(Path(sys.executable).with_name("inspect")), "log", "dump", str(log)], examples)
    log.with_suffix(".json").write_text(dumped.stdout)
    (record,) = records_in(log.with_suffix(".json"))
    assert (record.n_cases, record.accuracy["field_scores/field_level_f1"].mean) == (2, 0.9)
