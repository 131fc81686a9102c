"""A component: its prompt and version, its output contract, and the metrics that it declares to matter.

Read once from `components/<name>/`; everything wrong there is a ComponentError that names file and place.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import semver
from pydantic import BaseModel, ConfigDict, Field

from skill_evaluator.comparing.declarations import FieldRule, refuse_wrong_rules
from skill_evaluator.comparing.field_plan import FieldPlan, plan_fields
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import StrictModel, parse_front_matter, read_json, read_text, validated
from skill_evaluator.library.contract import Contract
from skill_evaluator.metrics import DEFAULT_METRICS, REPRODUCIBILITY, accuracy_metrics, agreement_metrics
from skill_evaluator.metrics.base import AgreementMetric, Metric
from skill_evaluator.parsing import Output
from skill_evaluator.text import canonical_json, digest, nearest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DEFAULT_METRICS: Mapping[Output, Collection[str]] = {
    "json": DEFAULT_METRICS,
    "text": DEFAULT_METRICS,
    "choice": ("exact_match",),
}
_WHOLE_ANSWER: Mapping[Output, Mapping[str, FieldRule]] = {
    "json": {},
    "text": {},
    "choice": {"": FieldRule(compare="category")},  # so that confusions of letters are counted
}
_PROMPT_SECTION = re.compile(r"^## Prompt[ \t]*\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


class FrontMatter(BaseModel):
    """The YAML at the head of prompt.md; other keys are the team's own."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    name: str
    version: str
    output: Output = "json"


class Dataset(StrictModel):
    """One entry of evals/datasets.json."""

    id: str = "default"
    fixtures: str | None = None
    metrics: tuple[str, ...] = Field(default=(), description="metrics to score, also those not scored by default")
    primary_metric: str | None = None
    fields: dict[str, FieldRule] = Field(default_factory=dict, description="how fields are compared, by path")


class Datasets(StrictModel):
    """The file evals/datasets.json."""

    datasets: tuple[Dataset, ...] = Field(min_length=1, max_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A versioned prompt with its output contract, ready to be evaluated, by itself or under a scenario."""

    name: str
    folder: Path
    version: str
    output: Output
    prompt: str
    schema: Mapping[str, Any] | None
    contract: Contract
    plan: FieldPlan
    metrics: Mapping[str, Metric]
    agreement: Mapping[str, AgreementMetric]
    primary_metric: str
    fixtures: str
    digests: Mapping[str, str]
    scenario: str | None = None

    @property
    def leaderboard_path(self) -> Path:
        """The file of its summary rows."""
        return self.folder / "leaderboard.json"

    @property
    def records_dir(self) -> Path:
        """The folder of its records."""
        return self.folder / "evals" / "records"

    @property
    def accepted_path(self) -> Path:
        """The file of the versions that people accepted."""
        return self.folder / "evals" / "accepted.json"

    @property
    def results_dir(self) -> Path:
        """The folder of its run folders, unless `--results` names another."""
        return self.folder / "evals" / "results"

    def schema_errors(self, value: Any) -> list[str]:
        """Say where and how a value breaks the schema; nothing when it validates."""
        return self.contract.errors(value)

    def conforms(self, value: Any) -> bool:
        """Return whether a value validates against the schema."""
        return self.contract.conforms(value)


def load_component(components_dir: Path, name: str) -> Component:
    """Read one component; raise ComponentError."""
    folder = components_dir / name
    front, prompt = _read_prompt(components_dir, name)
    schema, contract = _read_contract(folder, front.output)
    declared_path = folder / "evals" / "datasets.json"
    dataset = Dataset()
    if declared_path.exists():
        content = read_json(declared_path, ComponentError)
        dataset = validated(Datasets, content, declared_path, ComponentError).datasets[0]
        refuse_wrong_rules(dataset.fields, "datasets[0].fields", str(declared_path))
    declared = [name for name in dataset.metrics if name not in REPRODUCIBILITY]
    metrics = accuracy_metrics(declared or _DEFAULT_METRICS[front.output], str(declared_path))
    usual = "exact_match" if front.output == "choice" else "field_level_f1"
    primary = dataset.primary_metric or (usual if usual in metrics else next(iter(metrics)))
    if primary not in metrics:
        raise ComponentError(
            f"primary_metric '{primary}' is not among the metrics of {declared_path} {nearest(primary, metrics)}"
        )
    return Component(
        name=name,
        folder=folder,
        version=check_semver(front.version, folder / "prompt.md"),
        output=front.output,
        prompt=prompt,
        schema=schema,
        contract=contract,
        plan=plan_fields(schema, {**_WHOLE_ANSWER[front.output], **dataset.fields}, str(declared_path)),
        metrics=metrics,
        agreement=agreement_metrics(dataset.metrics),
        primary_metric=primary,
        fixtures=dataset.fixtures or name,
        digests={
            "prompt": digest(prompt),
            "schema": digest(canonical_json(schema)),
            "datasets": digest(canonical_json(dataset.model_dump(mode="json"))),
        },
    )


def is_component_name(name: str) -> bool:
    """Return whether a folder's name can be a component's."""
    return _NAME.fullmatch(name) is not None


def _read_prompt(components_dir: Path, name: str) -> tuple[FrontMatter, str]:
    if not is_component_name(name):
        raise ComponentError(f"a component is named like its folder (letters, digits, '.', '_', '-'), not '{name}'")
    if not components_dir.is_dir():
        raise ComponentError(f"{components_dir} is not a folder; name the components with --components DIR")
    path = components_dir / name / "prompt.md"
    if not path.is_file():
        names = [path.parent.name for path in components_dir.glob("*/prompt.md")]
        raise ComponentError(f"unknown component '{name}' in {components_dir} {nearest(name, names)}")
    front, prompt = parse_prompt(read_text(path, ComponentError), path)
    if front.name != name:
        raise ComponentError(f"name '{front.name}' in {path} is not the folder's name '{name}'")
    return front, prompt


def parse_prompt(text: str, path: Path) -> tuple[FrontMatter, str]:
    """Split a prompt.md into front matter and prompt; raise ComponentError.

    A name that is left out is the folder's. The version is not checked here: `check_semver` does that.
    """
    values, body = parse_front_matter(text, path, ComponentError)
    if "version" not in values:
        raise ComponentError(f"no version in the front matter of {path}; add a line such as version: 1.0.0")
    front = validated(FrontMatter, {"name": path.parent.name, **values}, path, ComponentError)
    section = _PROMPT_SECTION.search(body)
    prompt = (section[1] if section else body).strip()
    if not prompt:
        raise ComponentError(f"{path} has no prompt: its body, or its '## Prompt' section, is empty")
    return front, prompt


def check_semver(text: str, where: Path) -> str:
    """Return the text, if it is a semantic version; raise ComponentError otherwise."""
    if not semver.Version.is_valid(text):
        raise ComponentError(f"version '{text}' in {where} is not semver; write MAJOR.MINOR.PATCH, such as 1.2.0")
    return text


def _read_contract(folder: Path, output: Output) -> tuple[Mapping[str, Any] | None, Contract]:
    path = folder / "schema.json"
    if output == "choice":
        if path.exists():
            raise ComponentError(f"{path} does nothing: a component with output: choice answers with a letter")
        return None, Contract({}, str(path))
    if not path.exists():
        if output == "json":
            raise ComponentError(f"{path} does not exist; a component with JSON output needs its schema")
        return None, Contract({}, str(path))
    schema = read_json(path, ComponentError)
    return schema, Contract(schema, str(path))
