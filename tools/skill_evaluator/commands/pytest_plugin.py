"""The pytest plugin: the fixture `evaluate_skill` compares a component with its recorded runs in a team's own tests.

Every run of pytest loads it if this package is installed, so it imports nothing of the package. `skill-evaluator try`
runs in a separate process, which also isolates its signals and event loop from the tests.
"""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_JUDGED = (0, 3, 4)  # exit codes of a run with a result
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedSkill:
    """The result of `skill-evaluator try` for a component: `result` is its JSON, `remarks` its output on stderr.

    `exit_code` is 0, 3 (regressed), or 4 (incomplete, another model answered, or a verdict of `policy.fail_on`).
    """

    skill: str
    exit_code: int
    result: Mapping[str, Any]
    remarks: str

    @property
    def verdict(self) -> str | None:
        """The worst verdict of all models. It is None if no baseline is recorded or if the run is incomplete."""
        comparison = self.result["comparison"]
        return None if comparison is None else str(comparison["verdict"])

    def check(self) -> None:
        """Fail the test with the text of the result if `exit_code` is not 0. Warn if it is 0 without a verdict."""
        __tracebackhide__ = True
        if self.exit_code:
            pytest.fail(str(self), pytrace=False)
        if self.verdict is None:
            warnings.warn(str(self), stacklevel=2)

    def __str__(self) -> str:
        return "\n".join([f"{self.skill}: {self.verdict or 'no verdict'}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        for run in self.result["runs"]:
            if not run["complete"]:
                yield f"{run['model_id']}: {run['scored']} of {run['planned']} calls scored {run['failures']}"
        comparison = self.result["comparison"]
        if comparison is None:
            yield self.remarks.strip()
            return
        for model in comparison["models"]:
            versions = [f"{run['skill_version']}" for run in (model["baseline"], model["candidate"]) if run]
            yield f"{model['model_id']}: {model['verdict']}, {' → '.join(versions)}"
            yield from (f"  {reason}" for reason in model["reasons"])
            if model["lost_fields"]:
                yield f"  lost fields: {', '.join(model['lost_fields'])}"
            for case in model["cases"]["broke"][:_MAX_NAMED]:
                fields = ", ".join(f"{path} {counts}" for path, counts in case["fields"].items())
                yield f"  broke {case['case_id']}: {case['before']:.3f} → {case['after']:.3f} ({fields})"


@pytest.fixture
def evaluate_skill(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., TriedSkill]:
    """Return a function that runs a component's prompt on disk and compares it with its recorded runs.

    It runs `skill-evaluator try` in the folder of the prompt library (by default pytest's root), and records nothing.
    """

    def evaluate_skill(
        skill: str,
        *,
        models: Sequence[str] = (),
        cases: Sequence[str] = (),
        replicates: int = 3,
        max_cost: float | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> TriedSkill:
        __tracebackhide__ = True
        command = [sys.executable, "-m", "skill_evaluator", "try", f"--replicates={replicates}", "--format=json"]
        command += [f"--model={model}" for model in models] + [f"--case={case}" for case in cases]
        command += [] if max_cost is None else [f"--max-cost={max_cost}"]
        command += [f"--results={tmp_path / 'results'}", "--", skill]
        done = subprocess.run(  # noqa: S603 (the arguments come from a test)
            command, cwd=folder or request.config.rootpath, capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode not in _JUDGED:
            pytest.fail(f"skill-evaluator try {skill}: {done.stderr.strip()}", pytrace=False)
        return TriedSkill(skill=skill, exit_code=done.returncode, result=json.loads(done.stdout), remarks=done.stderr)

    return evaluate_skill
