"""The lock that the workflows install by holds all that the evaluator needs, at the versions its CI tests."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.act import WORKFLOWS
from tests.support.git import GitRepository
from tests.support.library import ROOT, Library

LOCK = ROOT / ".evaluator" / "requirements-lock.txt"
LOCKS = [LOCK.with_name(f"requirements-{purpose}lock.txt") for purpose in ("", "leg-", "plan-")]


def pins(lock: Path) -> dict[str, str]:
    pinned = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", lock.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pinned}


PINS = pins(LOCK)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("charts", "github", "local")  # what the workflows use


def test_the_locks_are_laid_out_as_they_are_here_and_agree() -> None:
    for lock in LOCKS:
        laid_out = ROOT / "tools" / "skill_evaluator" / "scaffold" / "evaluator" / lock.name
        assert laid_out.read_bytes() == lock.read_bytes(), "they differ; bash .ci/lock"
        assert pins(lock).items() <= PINS.items(), "they differ; bash .ci/lock"
    assert not {"numpy", "scipy", "pygithub"} & pins(LOCKS[2]).keys()


def test_every_version_is_the_one_of_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    constraints = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert {name: constraints.get(name) for name in PINS} == PINS, (
        "they differ; bash .ci/lock, or add to constraints.txt"
    )


@pytest.mark.parametrize("lock", [*LOCKS, ROOT / ".ci" / "tools-lock.txt"], ids=lambda lock: lock.name)
def test_everything_is_a_wheel_with_hashes_and_no_host_is_named(lock: Path) -> None:
    text = lock.read_text()
    requirements = [block for block in re.split(r"^(?=[\w])", text, flags=re.MULTILINE) if "==" in block]
    assert len(requirements) > 20
    for requirement in requirements:
        assert re.fullmatch(
            r"[\w.-]+(\[[\w,-]+\])?==\S+( ; [^\\]+)?(\s*\\\n    --hash=sha256:[0-9a-f]{64})+\n", requirement
        ), requirement
    assert "\n--only-binary :all:\n" in text  # a build would fetch what no hash holds
    assert "://" not in text


@pytest.mark.parametrize("name", ["build", "dependencies", *EXTRAS])
def test_what_pyproject_asks_for_is_in_it(name: str) -> None:
    project = PROJECT["project"]
    asked = {"build": PROJECT["build-system"]["requires"], "dependencies": project["dependencies"]}
    for text in (asked | project["optional-dependencies"])[name]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_what_the_installed_packages_ask_for_is_in_it() -> None:
    needed = []
    for name in PINS:
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of another platform, or an extra that is not installed
            continue
        requirements = [Requirement(text) for text in requires]
        needed += [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    assert len(needed) > 50
    assert not [each.name for each in needed if canonicalize_name(each.name) not in PINS]


@pytest.mark.parametrize("workflow", ["check.yml", "evaluate.yml", "leg.yml", "site.yml"])
def test_the_workflows_install_nothing_without_a_hash_or_a_commit(workflow: str) -> None:
    installs = set(re.findall(r"pip install (.*)", (WORKFLOWS / workflow).read_text()))
    installs.remove("--quiet --no-deps --no-build-isolation -r .evaluator/requirements.txt")
    locked = {f"--quiet --require-hashes -r .evaluator/{lock.name}" for lock in LOCKS}
    assert installs
    assert installs <= {*locked, '--quiet --require-hashes -r ".evaluator/$LOCK"'}


def test_what_plans_and_publishes_imports_nothing_that_its_lock_lacks(tmp_path: Path) -> None:
    library = Library(tmp_path)
    repository = GitRepository(library.root)
    repository.commit()
    script = (
        "import sys; from importlib.metadata import packages_distributions as names\n"
        "from skill_evaluator.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "used = {module.split('.')[0] for module in sys.modules}\n"
        "print(*(name for module, held in names().items() if module in used for name in held), file=sys.stderr)"
    )
    allowed = {*pins(LOCKS[2]), "skill-evaluator"}
    for words in (["plan"], ["plan", "--base", "0"], ["plan", "--drift"], ["cases", "fetch"], ["publish", "collected"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *words], cwd=library.root, capture_output=True, text=True, check=False
        )
        used = {canonicalize_name(name) for name in done.stderr.splitlines()[-1].split()}
        assert used <= allowed, (words, used - allowed)
