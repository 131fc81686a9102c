"""The lock that the workflows install by holds all that the evaluator needs, at the versions its CI tests."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.library import ROOT
from tests.workflows.act import SET_UP

LOCK = ROOT / ".evaluator" / "requirements-lock.txt"


def pins(lock: Path) -> dict[str, str]:
    pinned = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", lock.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pinned}


PINS = pins(LOCK)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("charts", "github", "local")  # what the workflows use


def test_scaffold_has_the_lock() -> None:
    scaffold = ROOT / "tools" / "skill_evaluator" / "scaffold" / "evaluator" / LOCK.name
    assert scaffold.read_bytes() == LOCK.read_bytes(), "they differ; bash .ci/lock"


def test_every_version_is_the_one_of_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    constraints = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert {name: constraints.get(name) for name in PINS} == PINS, (
        "they differ; bash .ci/lock, or add to constraints.txt"
    )


@pytest.mark.parametrize("lock", [LOCK, ROOT / ".ci" / "tools-lock.txt"], ids=lambda lock: lock.name)
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


def test_set_up_installs_nothing_without_a_hash_or_a_commit() -> None:
    assert re.findall(r"pip install (.*)", SET_UP.read_text()) == [
        "--quiet --require-hashes -r .evaluator/requirements-lock.txt",
        "--quiet --no-deps --no-build-isolation -r .evaluator/requirements.txt",
    ]
