"""A component: its prompt and version, its output contract, and the metrics that it declares to matter.

Read once from `components/<name>/`; everything wrong there is a ComponentError that names file and place. What nothing
declares is inferred from its ground truths: JSON or text, and which fields are prose.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from skill_evaluator.checks.declared import Check, DeclaredCheck, read_checks
from skill_evaluator.comparing.declarations import FieldRule, refuse_wrong_rules, schema_places
from skill_evaluator.comparing.field_plan import FieldPlan, plan_fields
from skill_evaluator.errors import ComponentError, FixtureError, NotEvaluatedError
from skill_evaluator.files import StrictModel, read_json, read_text, validated
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.contract import Contract, constrains, read_schema
from skill_evaluator.library.programs import ProgramUnderTest
from skill_evaluator.library.prompts import Prompt, check_semver, checked_prompt, parse_prompt
from skill_evaluator.library.reading import Root, read_yaml
from skill_evaluator.library.sources import WrittenAt, numbered, origin_of, recorded_in
from skill_evaluator.library.sources.own import OWN, written_own
from skill_evaluator.library.sources.tree import Written
from skill_evaluator.library.tables import ENDINGS, CaseRows, Columns, read_table
from skill_evaluator.metrics import DEFAULT_METRICS, METRICS, REPRODUCIBILITY, accuracy_metrics, agreement_metrics
from skill_evaluator.metrics.base import AgreementMetric, Metric
from skill_evaluator.parsing import Output
from skill_evaluator.stats import quantile
from skill_evaluator.text import canonical_json, digest, nearest, nearest_path

DOCUMENT_FILES = ("document.pdf", "document.png", "document.jpg", "document.jpeg", "document.webp")
DOCUMENTS = ("document.md", "document.txt", "document.json", "input.md", "input.txt", "input.json", *DOCUMENT_FILES)
TEXT_TRUTHS = ("expected.md", "expected.txt")
TRUTHS = ("ground_truth.json", "expected.json", *TEXT_TRUTHS)
METAS = ("meta.json", "metadata.yaml")
_LONGEST_NAME = 60  # characters: a text whose median is longer says something, and can say it in other words
_NO_PROSE = ("enum", "const", "pattern", "format")
_OF_TEXTS = {"threshold", "weight"}  # what may be declared of a field without saying how it is compared


def places_of(component: Path, fixtures: str, fixtures_dir: Path | None, name: str) -> list[Path]:
    """Return where a component's `cases` or `questions.jsonl` may be, the best place first.

    Without `fixtures_dir` that is `fixtures/<name>/`, then the component's own `evals/`.
    """
    own = [component / "evals" / name] if fixtures_dir is None else []
    return [(fixtures_dir or Path("fixtures")) / fixtures / name, *own]


def root_of(component: Path, fixtures_dir: Path | None, place: Path, limits: SafetyLimits) -> Root:
    """Return the folder that cases found in a place must lie in: that of all fixtures, or of all components."""
    folder = component.parent if place.is_relative_to(component) else fixtures_dir or Path("fixtures")
    return Root(folder, FixtureError, follow_links=limits.follow_links)


def sources_of(places: Iterable[Path]) -> list[Path]:
    """Return the folder of cases and the tables beside it, or some of them, in the best place that has any."""
    for place in places:
        tables = [place.with_name(f"{place.name}{ending}") for ending in ENDINGS]
        if sources := [*([place] if place.is_dir() else []), *(table for table in tables if table.exists())]:
            return sources
    return []


def _folder_in(places: Iterable[Path]) -> Path | None:
    return next((source for source in sources_of(places) if source.suffix not in ENDINGS), None)


def output_of_truths(places: Sequence[Path], table: CaseRows) -> Output | None:
    """Return `text` if all ground truths are expected.md, expected.txt or texts in a table; None if there are none."""
    cases = _folder_in(places)
    names = {path.name for path in cases.glob("*/*")} & set(TRUTHS) if cases else set()
    kinds = {table.output, *(["text" if names <= set(TEXT_TRUTHS) else "json"] if names else [])} - {None}
    return "json" if "json" in kinds else "text" if kinds else None


def has_checks(
    component: Path, places: Sequence[Path], fixtures_dir: Path | None, limits: SafetyLimits, table: CaseRows
) -> bool:
    """Return whether a case that can be read has checks of its own; `load_cases` reports the others."""
    if any(row.get("checks") for _, _, row in table.rows):
        return True
    for path in _files_of_cases(component, places, fixtures_dir, METAS, limits):
        with suppress(FixtureError):
            meta = read_meta(path, limits)
            if isinstance(meta, dict) and meta.get("checks"):
                return True
    return False


def _files_of_cases(
    component: Path, places: Sequence[Path], fixtures_dir: Path | None, names: Sequence[str], limits: SafetyLimits
) -> Iterator[Path]:
    """Yield the first file of these names in the folder of each case, if it may be read."""
    place = _folder_in(places)
    for case in sorted(place.iterdir()) if place else ():
        path = next((case / name for name in names if (case / name).is_file()), None)
        if path is not None and not case.name.startswith("."):
            with suppress(FixtureError):
                yield root_of(component, fixtures_dir, case, limits).inside(path)


def read_meta(path: Path, limits: SafetyLimits) -> Any:
    """Read the JSON or YAML that says more of a case; raise FixtureError."""
    limit = limits.size_of("document_bytes")
    if path.suffix == ".json":
        return read_json(path, FixtureError, limit)
    return read_yaml(path, FixtureError, limit, depth=limits.yaml_depth)


def read_truths(
    component: Path, places: Sequence[Path], fixtures_dir: Path | None, output: Output, limits: SafetyLimits
) -> Iterator[Any]:
    """Yield the ground truths of folders that can be read; `load_cases` reports the others."""
    if output == "choice":
        return
    limit = limits.size_of("document_bytes")
    for path in _files_of_cases(component, places, fixtures_dir, TRUTHS, limits):
        with suppress(FixtureError):
            is_text = output == "text" and path.name in TEXT_TRUTHS
            yield read_text(path, FixtureError, limit).strip() if is_text else read_json(path, FixtureError, limit)


def table_beside(
    component: Path, places: Sequence[Path], fixtures_dir: Path | None, columns: Columns, limits: SafetyLimits
) -> CaseRows:
    """Return the table of cases, an empty one where it cannot be read: `load_cases` reports why."""
    for path in sources_of(places):
        with suppress(FixtureError):
            if path.suffix in ENDINGS:
                root_of(component, fixtures_dir, path, limits).inside(path)
                return read_table(path, columns, limits.size_of("document_bytes"), odd=lambda _: None)
    return CaseRows(columns=columns)


def find_texts(
    schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], truths: Iterable[Any]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median length, by path, of the fields that may be any text, and of those among them that are prose.

    A field is prose if the median length of its ground truths is over 60 characters and no rule declares how to compare
    it.
    """
    told = {path for path, rule in declared.items() if rule.compare is not None or rule.options.keys() - _OF_TEXTS}
    places = schema_places(schema or {})
    plain = {  # in the order of the schema
        path: place
        for path, place in places.items()
        if place.kind == "string" and not any(key in node for node in place.nodes for key in _NO_PROSE)
    }
    stars = {path: FieldRule() for path in declared.keys() & plain.keys() if "*" in path}
    plan = FieldPlan(leaves=stars, named=frozenset(places))
    lengths: dict[str, list[int]] = {path: [] for path in plain if "*" not in path}
    for truth in truths:
        for leaf, value in plan.walk(truth):
            if isinstance(value, str) and (schema is None or leaf.path in plain):
                lengths.setdefault(leaf.path, []).append(len(value))
    medians = {path: quantile(of_path, 0.5) or 0.0 for path, of_path in lengths.items()}
    numeric = {path for path, place in plain.items() if place.allows_numeric_text}
    medians = {path: long for path, long in medians.items() if long > _LONGEST_NAME or path not in numeric}
    return medians, {path: long for path, long in medians.items() if long > _LONGEST_NAME and path not in told}


def refuse_unknown_paths(paths: Iterable[str], output: Output, truths: Sequence[Any], where: Path) -> None:
    """Raise ComponentError for a declared path that no answer can have, where there is no schema; `*` is any key."""
    if output == "json" and not truths:
        return
    known = {part.path for truth in truths for part, _ in FieldPlan().walk(truth)} if output == "json" else {""}
    for path in paths:
        if path not in known and "*" not in path:
            reason = (
                f"no ground truth has it {nearest_path(path, known)}"
                if output == "json"
                else (f'the answer is one {output}, and the path of the whole answer is ""')
            )
            raise ComponentError(f"field '{path}' in {where} does not exist: {reason}")


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
_INNER_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]*(/[A-Za-z0-9_][A-Za-z0-9 ._-]*)*")
# What a component is read from, and where its records go.
_FILES = (
    "prompt.md",
    "schema.json",
    "leaderboard.json",
    "evals/datasets.json",
    "evals/accepted.json",
    "evals/records",
    "evals/pinned",
)
_AS_TEXT = FieldRule(compare="text")
_INFERRED = (FieldRule(compare="string"), _AS_TEXT)  # these rules of a text are what is inferred without them


class Dataset(StrictModel, defer_build=False):
    """One entry of evals/datasets.json."""

    id: str = "default"
    evaluate: bool = Field(default=True, description="false: this component is not to be evaluated")
    fixtures: str | None = Field(default=None, description="its folder in the fixtures folder, if not that of its name")
    columns: Columns = Field(default_factory=Columns, description="which columns of a table of cases are what")
    contract: str | None = Field(
        default=None,
        alias="schema",
        description="the contract, if not all of schema.json: a file of this repository and a part of it, such as "
        "schema.json#/$defs/output",
    )
    output: Output | None = Field(default=None, description="the kind of output, if the format of the prompt has none")
    metrics: tuple[str, ...] = Field(default=(), description="metrics to score, also those not scored by default")
    primary_metric: str | None = None
    fields: dict[str, FieldRule] = Field(default_factory=dict, description="how fields are compared, by path")
    checks: tuple[DeclaredCheck, ...] = Field(default=(), description="what every answer to every case is held against")

    @field_validator("fixtures")
    @classmethod
    def _stays_inside(cls, fixtures: str | None) -> str | None:
        if fixtures is not None and not (len(fixtures) <= 200 and _INNER_FOLDER.fullmatch(fixtures)):
            raise ValueError(
                f"{fixtures[:100]!a} is no folder inside the fixtures folder (names of letters, digits, ' ', '.', '_' "
                "and '-', with '/' between them); give --fixtures DIR for another place"
            )
        return fixtures


class Datasets(StrictModel):
    """The file evals/datasets.json."""

    editor_schema: str | None = Field(default=None, alias="$schema", description="for editors alone")
    datasets: tuple[Dataset, ...] = Field(min_length=1, max_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A versioned prompt with its output contract, ready to be evaluated, by itself or under a scenario.

    It and its cases are read under `limits`. `inferred` says what was inferred; `prose` has the median length, by path,
    of fields that are prose. `checks` are those of all its cases. Its prompt is made of `files`. One in a format of its
    own has an `origin`, and `rows` for cases. Its cases may be in its `home`, its records go to its `folder`. Records
    under its `formerly` names are its own.
    """

    name: str
    folder: Path
    home: Path
    declared_in: Path
    version: str
    output: Output
    prompt: Prompt
    schema: Mapping[str, Any] | None
    contract: Contract
    plan: FieldPlan
    metrics: Mapping[str, Metric]
    agreement: Mapping[str, AgreementMetric]
    primary_metric: str
    fixtures: str
    digests: Mapping[str, str]
    checks: tuple[Check, ...] = ()
    columns: Columns = field(default_factory=Columns)
    scenario: str | None = None
    limits: SafetyLimits = DEFAULT_LIMITS
    inferred: tuple[str, ...] = ()
    prose: Mapping[str, float] = field(default_factory=dict)
    program: ProgramUnderTest | None = None
    rows: CaseRows = field(default_factory=CaseRows)
    origin: WrittenAt | None = None
    files: tuple[Path, ...] = ()
    formerly: tuple[str, ...] = ()

    @property
    def left_out(self) -> list[str]:
        """What its source holds and is not used, such as files beside a skill, which are not sent."""
        return [line for line in self.inferred if line.startswith("left out: ")]

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
        """The default folder of its run folders."""
        return self.folder / "evals" / "results"


def load_component(
    components_dir: Path, name: str, limits: SafetyLimits = DEFAULT_LIMITS, fixtures_dir: Path | None = None
) -> Component:
    """Read one component; raise ComponentError, or NotEvaluatedError where its evals/datasets.json says so.

    The folder of its cases is read only to infer what is not declared.
    """
    folder = home = components_dir / name
    origin = origin_of(components_dir, name)
    if origin is None:
        written, root = _read_own(components_dir, name, limits), folder
    else:
        _refuse_links(folder, limits)
        written, root = origin.here(limits), origin.root
        home = (root / written.path).parent if origin.source is OWN else folder
        _refuse_links(home, limits)
    where = (folder if (folder / "evals" / "datasets.json").exists() else home) / "evals" / "datasets.json"
    dataset = _read_dataset(where, name, limits)
    places = places_of(home, dataset.fixtures or name, fixtures_dir, "cases")
    rows = CaseRows(path=root / (written.rows_path or written.path), rows=written.rows, name=written.rows_name)
    table = rows if rows.rows else table_beside(home, places, fixtures_dir, dataset.columns, limits)
    checked = bool(written.checks or dataset.checks) or has_checks(home, places, fixtures_dir, limits, table)
    schema_in = folder if (folder / "schema.json").exists() else where.parent.parent
    answers = _read_contract(schema_in, written, dataset, output_of_truths(places, table), limits, checked)
    truths = list(read_truths(home, places, fixtures_dir, answers.output, limits))
    truths += table.truths(answers.output, answers.schema)
    comparing, compared = _compared(dataset, answers, truths, where, checked=checked)
    inside = Root(where.parents[2], ComponentError, follow_links=limits.follow_links).inside
    digests = {"prompt": written.prompt.digest, **answers.digests, "datasets": compared}
    version = written.version or numbered(digests, recorded_in(folder / "leaderboard.json"))
    before = read_checks(written.checks, root, root / written.path, ComponentError, Path)
    return Component(
        name=name,
        folder=folder,
        home=home,
        declared_in=where,
        version=check_semver(version, root / written.path),
        output=answers.output,
        prompt=written.prompt,
        schema=answers.schema,
        contract=answers.contract,
        fixtures=dataset.fixtures or name,
        columns=dataset.columns,
        digests=digests,
        checks=read_checks(dataset.checks, where.parent, where, ComponentError, inside, before=before),
        limits=limits,
        inferred=(*answers.inferred, *map(str, written.left_out)),
        program=written.program,
        rows=rows,
        origin=origin,
        files=tuple(root / path for path in written.files),
        formerly=written.formerly,
        **comparing,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contracted:
    """What a component answers with; see Component."""

    output: Output
    schema: Mapping[str, Any] | None
    contract: Contract
    digests: Mapping[str, str]
    inferred: tuple[str, ...]


def _compared(
    dataset: Dataset, answers: _Contracted, truths: Sequence[Any], where: Path, *, checked: bool
) -> tuple[dict[str, Any], str]:
    """Return the parts of a Component that say how its answers are compared, and the digest of what declares them."""
    plain, prose = find_texts(answers.schema, dataset.fields, truths)
    if answers.schema is None:  # else that says which paths there are
        refuse_unknown_paths(dataset.fields, answers.output, truths, where)
    texts = {path: replace(dataset.fields.get(path, FieldRule()), compare="text") for path in prose}
    plan = plan_fields(answers.schema, {**_WHOLE_ANSWER[answers.output], **dataset.fields, **texts}, str(where))
    labelled = bool(truths) or answers.output == "choice"
    metrics, primary = _choose_metrics(dataset, answers, plan, where, checked=checked, labelled=labelled)
    uncompared = {key for key in ("evaluate", "contract", "output") if key not in dataset.model_fields_set}
    fields = {path: rule for path, rule in dataset.fields.items() if path not in plain or rule not in _INFERRED}
    kept = dataset.model_copy(update={"fields": fields})
    declared = kept.model_dump(mode="json", exclude={*uncompared, "checks", "columns"})
    as_prose = sorted({*prose, *(path for path in plain if dataset.fields.get(path) == _AS_TEXT)})
    agreement = agreement_metrics(dataset.metrics)
    return (
        {"plan": plan, "prose": prose, "metrics": metrics, "agreement": agreement, "primary_metric": primary},
        digest(canonical_json({**declared, **({"prose": as_prose} if as_prose else {})})),
    )


def _choose_metrics(
    dataset: Dataset, answers: _Contracted, plan: FieldPlan, where: Path, *, checked: bool, labelled: bool
) -> tuple[dict[str, Metric], str]:
    """Return the accuracy metrics by name, and the primary one: those declared, else the usual ones.

    The share of checks passed is one where there are checks, and the primary one where no truth can rank answers.
    """
    declared = [metric for metric in dataset.metrics if metric not in REPRODUCIBILITY]
    if answers.schema is None and "schema_valid" in declared:
        raise ComponentError(f"schema_valid among the metrics of {where}, and no schema to validate against")
    usual = [name for name in _DEFAULT_METRICS[answers.output] if answers.schema is not None or name != "schema_valid"]
    if checked:
        usual = [name for name in usual if labelled or not METRICS[name].needs_truth]
    elif "checks" in declared:
        raise ComponentError(f"checks among the metrics of {where}, and neither it nor a case has a check")
    metrics = accuracy_metrics(dict.fromkeys([*(declared or usual), *(["checks"] if checked else [])]), str(where))
    ranking = "field_level_f1" if answers.output != "choice" and plan.counts else "exact_match"
    ranking = "checks" if checked and not (labelled and (plan.counts or answers.output == "choice")) else ranking
    primary = dataset.primary_metric or (ranking if ranking in metrics else next(iter(metrics)))
    if primary not in metrics:
        raise ComponentError(
            f"primary_metric '{primary}' is not among the metrics of {where} {nearest(primary, metrics)}"
        )
    return metrics, primary


def _read_dataset(path: Path, name: str, limits: SafetyLimits) -> Dataset:
    if not path.exists():
        return Dataset()
    content = read_json(path, ComponentError, limits.size_of("schema_bytes"))
    dataset = validated(Datasets, content, path, ComponentError).datasets[0]
    refuse_wrong_rules(dataset.fields, "datasets[0].fields", str(path))
    if not dataset.evaluate:
        raise NotEvaluatedError(f"'{name}' is not evaluated: {path} says evaluate: false")
    return dataset


def _refuse_links(folder: Path, limits: SafetyLimits) -> None:
    root = Root(folder.parent, ComponentError, follow_links=limits.follow_links)
    for file in _FILES:
        root.inside(folder / file)


def _read_own(components_dir: Path, name: str, limits: SafetyLimits) -> Written:
    if not is_component_name(name):
        raise ComponentError(f"a component is named like its folder (letters, digits, '.', '_', '-'), not '{name}'")
    if not components_dir.is_dir():
        raise ComponentError(f"{components_dir} is not a folder; name the components with --components DIR")
    path = components_dir / name / "prompt.md"
    if not path.is_file():
        names = [path.parent.name for path in components_dir.glob("*/prompt.md")]
        raise ComponentError(f"unknown component '{name}' in {components_dir} {nearest(name, names)}")
    _refuse_links(path.parent, limits)
    text = read_text(path, ComponentError, limits.size_of("prompt_bytes"))
    front, prompt = parse_prompt(text, path, depth=limits.yaml_depth)
    if front.name != name:
        raise ComponentError(f"name '{front.name}' in {path} is not the folder's name '{name}'")
    for former in front.formerly:
        if former == name:
            raise ComponentError(f"formerly in {path} is the component's own name; name the folder that it had before")
        if (components_dir / former / "prompt.md").exists():
            raise ComponentError(
                f"formerly in {path} names '{former}', which is a component in {components_dir}; a renamed component "
                "has one folder: remove the old one, or formerly"
            )
    return written_own(front, checked_prompt(text, front, prompt, path), path.name)


def _read_contract(
    folder: Path, written: Written, dataset: Dataset, of_truths: Output | None, limits: SafetyLimits, checked: bool
) -> _Contracted:
    """Read what a component answers with, and infer what is not declared."""
    output = dataset.output or written.output
    if output == "choice" and (folder / "schema.json").exists():
        raise ComponentError(
            f"{folder / 'schema.json'} does nothing: a component with output: choice answers with a letter"
        )
    schema, place, digests = read_schema(folder, dataset.contract, limits)
    if schema is None and written.schema is not None:
        schema, place, digests = written.schema, written.path, {"schema": digest(canonical_json(written.schema))}
    inferred = []
    if schema is None and output is None and (of_truths == "text" or (checked and of_truths is None)):
        output = "text"
        why = "its ground truths are texts" if of_truths else "it has checks and no ground truth"
        inferred.append(f"output: text, because {why}; {written.path} declares no output")
    if schema is None and output in (None, "json"):
        inferred.append(f"any JSON is a valid answer: there is no {place}, so schema_valid is not measured")
    asked = "".join(message.text for message in written.prompt.messages)
    if output == "text" and dataset.output is None and written.rows_name and "json" in asked.lower():
        declared = f'{{"datasets": [{{"output": "json"}}]}} in {folder / "evals" / "datasets.json"}'
        inferred.append(f"output: text; if the prompt asks for JSON, say {declared}")
    contract = Contract({} if schema is None else schema, place)
    if schema is not None and not constrains(schema, schema):
        names = [name for name in ("output", *schema.get("$defs", {})) if name in schema.get("$defs", {})]
        advice = f' as in "schema": "schema.json#/$defs/{names[0]}"' if names else ""
        raise ComponentError(
            f"{place} asks nothing, so that any JSON is valid; say what an answer is like, or name the part that does "
            f"in evals/datasets.json{advice}"
        )
    return _Contracted(
        output=output or "json", schema=schema, contract=contract, digests=digests, inferred=tuple(inferred)
    )
