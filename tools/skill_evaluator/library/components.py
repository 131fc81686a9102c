"""A component: its prompt, version, output schema and metrics, with settings inferred from its ground truths."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from skill_evaluator.checks import Check, DeclaredCheck, read_checks
from skill_evaluator.comparing.declarations import FieldRule, refuse_wrong_rules, schema_places
from skill_evaluator.comparing.field_plan import FieldPlan, plan_fields
from skill_evaluator.errors import ComponentError, FixtureError, NotEvaluatedError
from skill_evaluator.files import StrictModel, read_json, read_text, validated
from skill_evaluator.identifiers import NAME_RULE, is_component_name
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.contract import Contract, constrains, read_schema
from skill_evaluator.library.prompts import ProgramUnderTest, Prompt, check_semver, checked_prompt, parse_prompt
from skill_evaluator.library.reading import ConfinedFolder, read_yaml
from skill_evaluator.library.sources import SourceLocation, numbered, recorded_in, source_of
from skill_evaluator.library.sources.tree import OWN, SourceComponent, written_own
from skill_evaluator.library.tables import ENDINGS, CaseRows, Columns, read_table
from skill_evaluator.metrics import DEFAULT_METRICS, METRICS, REPRODUCIBILITY, accuracy_metrics
from skill_evaluator.metrics.accuracy import Metric
from skill_evaluator.parsing import Output
from skill_evaluator.stats import quantile
from skill_evaluator.text import canonical_json, digest, nearest, nearest_path

DOCUMENT_FILES = ("document.pdf", "document.png", "document.jpg", "document.jpeg", "document.webp")
DOCUMENTS = ("document.md", "document.txt", "document.json", "input.md", "input.txt", "input.json", *DOCUMENT_FILES)
TEXT_TRUTHS = ("expected.md", "expected.txt")
TRUTHS = ("ground_truth.json", "expected.json", *TEXT_TRUTHS)
METAS = ("meta.json", "metadata.yaml")
NO_FOLDER = "is not a folder; run this in the root of your library, set --components DIR, or run `init --name NAME`"
_MAX_NAME_CHARS = 60  # characters; text fields with a longer median are prose
_NO_PROSE = ("enum", "const", "pattern", "format")
_OF_TEXTS = {"threshold", "weight"}  # options of a field that do not determine how it is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFiles:
    """The case files of a component, or the `rows` of cases in the format of another tool, such as promptfoo.

    The files are in the folder `fixtures_dir`/`fixtures`. If `fixtures_dir` is None, the files are in
    ./fixtures/`fixtures` or else in `home`/evals.
    """

    home: Path  # folder of the component
    fixtures: str  # name of the folder of its cases
    fixtures_dir: Path | None = None
    limits: SafetyLimits = DEFAULT_LIMITS
    columns: Columns = field(default_factory=Columns)
    rows: CaseRows = field(default_factory=CaseRows)

    def possible_paths(self, name: str = "cases") -> list[Path]:
        """Return the possible paths of the folder or file `name`, in order of preference."""
        fallback = [self.home / "evals" / name] if self.fixtures_dir is None else []
        return [(self.fixtures_dir or Path("fixtures")) / self.fixtures / name, *fallback]

    def root(self, path: Path) -> ConfinedFolder:
        """If `path` is inside `home`, return the parent folder of `home`. Otherwise return the fixtures folder."""
        folder = self.home.parent if path.is_relative_to(self.home) else self.fixtures_dir or Path("fixtures")
        return ConfinedFolder(folder, FixtureError, follow_links=self.limits.follow_links)

    def sources(self) -> list[Path]:
        """Return the case folder and tables at the first existing path of `possible_paths()`, or [] if none exists."""
        return next(filter(None, map(sources_at, self.possible_paths())), [])

    def table(self) -> CaseRows:
        """Return `rows`, or else the cases of the first readable table file. Return no rows if no file is readable."""
        if self.rows.rows:
            return self.rows
        limit = self.limits.size_of("document_bytes")
        for path in self.sources():
            with suppress(FixtureError):
                if path.suffix in ENDINGS:
                    return read_table(self.root(path).inside(path), self.columns, limit, on_problem=lambda _: None)
        return CaseRows(columns=self.columns)

    def output(self, table: CaseRows) -> Output | None:
        """Return "text" if all ground truths are texts, and else "json". Return None if there are no ground truths."""
        names = {path.name for path in self._first_files(TRUTHS)}
        kinds = {table.output, *(["text" if names <= set(TEXT_TRUTHS) else "json"] if names else [])} - {None}
        return "json" if "json" in kinds else "text" if kinds else None

    def has_checks(self, table: CaseRows) -> bool:
        """Return whether any readable case declares checks."""
        if any(row.get("checks") for _, _, row in table.rows):
            return True
        return any(self._meta(path).get("checks") for path in self._first_files(METAS))

    def truths(self, table: CaseRows, output: Output, schema: Mapping[str, Any] | None) -> Iterator[Any]:
        """Yield the ground truths of reviewed cases, except those that cannot be read."""
        limit = self.limits.size_of("document_bytes")
        for path in self._first_files(TRUTHS) if output != "choice" else ():
            if any(self._meta(path.with_name(name)).get("unreviewed") is True for name in METAS):
                continue
            is_text = output == "text" and path.name in TEXT_TRUTHS
            with suppress(FixtureError):
                yield read_text(path, FixtureError, limit).strip() if is_text else read_json(path, FixtureError, limit)
        yield from table.truths(output, schema)

    def _first_files(self, names: Sequence[str]) -> Iterator[Path]:
        folder = next((source for source in self.sources() if source.suffix not in ENDINGS), None)
        for case in sorted(folder.iterdir()) if folder else ():
            path = next((case / name for name in names if (case / name).is_file()), None)
            if path is not None and not case.name.startswith("."):
                with suppress(FixtureError):
                    yield self.root(case).inside(path)

    def _meta(self, path: Path) -> Mapping[str, Any]:
        """Return the content of a meta file. Return {} if it is missing, invalid or no mapping."""
        with suppress(FixtureError):
            if path.is_file() and isinstance(meta := read_meta(path, self.limits), dict):
                return meta
        return {}


def sources_at(path: Path) -> list[Path]:
    """Return `path` if it is a folder, and the tables beside it that have its name, such as cases.csv."""
    tables = [path.with_name(f"{path.name}{ending}") for ending in ENDINGS]
    return [*([path] if path.is_dir() else []), *(table for table in tables if table.exists())]


def read_meta(path: Path, limits: SafetyLimits) -> Any:
    """Read a case's meta file, JSON or YAML. Raise FixtureError if it is invalid."""
    limit = limits.size_of("document_bytes")
    if path.suffix == ".json":
        return read_json(path, FixtureError, limit)
    return read_yaml(path, FixtureError, limit, depth=limits.yaml_depth)


def find_texts(
    schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], truths: Iterable[Any]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return median lengths in characters by path: of all free-text fields, and of prose fields only.

    Lengths are those of `truths`. A field is prose if its median is more than 60 and its rule has no comparator.
    """
    declared_paths = {
        path for path, rule in declared.items() if rule.compare is not None or rule.options.keys() - _OF_TEXTS
    }
    schema_paths = schema_places(schema or {})
    text_paths = {  # keys are in schema order
        path: schema_path
        for path, schema_path in schema_paths.items()
        if schema_path.kind == "string" and not any(key in node for node in schema_path.nodes for key in _NO_PROSE)
    }
    wildcards = {path: FieldRule() for path in declared.keys() & text_paths.keys() if "*" in path}
    plan = FieldPlan(leaves=wildcards, named=frozenset(schema_paths))
    lengths: dict[str, list[int]] = {path: [] for path in text_paths if "*" not in path}
    for truth in truths:
        for leaf, value in plan.walk(truth):
            if isinstance(value, str) and (schema is None or leaf.path in text_paths):
                lengths.setdefault(leaf.path, []).append(len(value))
    medians = {path: quantile(lengths_at_path, 0.5) or 0.0 for path, lengths_at_path in lengths.items()}
    numeric = {path for path, schema_path in text_paths.items() if schema_path.allows_numeric_text}
    medians = {path: median for path, median in medians.items() if median > _MAX_NAME_CHARS or path not in numeric}
    return medians, {
        path: median for path, median in medians.items() if median > _MAX_NAME_CHARS and path not in declared_paths
    }


def _refuse_unknown_paths(paths: Iterable[str], output: Output, truths: Sequence[Any], file: Path) -> None:
    if output == "json" and not truths:
        return
    existing = {part.path for truth in truths for part, _ in FieldPlan().walk(truth)} if output == "json" else {""}
    for path in paths:
        if path not in existing and "*" not in path:
            reason = f'the output is one {output}, and the path of the whole output is ""'
            if output == "json":
                reason = f"no ground truth has it {nearest_path(path, existing)}"
            raise ComponentError(f"field '{path}' in {file} does not exist: {reason}")


_LETTER = {"": FieldRule(compare="category")}  # counts confusions between the letters of a question
_EVALS = ("datasets.json", "accepted.json", "records", "pinned")
_INNER_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]*(/[A-Za-z0-9_][A-Za-z0-9 ._-]*)*")
# The files a component is read from, and the folders of its records.
_FILES = ("prompt.md", "schema.json", "leaderboard.json", *(f"evals/{name}" for name in _EVALS))
_AS_TEXT = FieldRule(compare="text")
_INFERRED = (FieldRule(compare="string"), _AS_TEXT)  # rules that equal the inferred rule of a text field


class Dataset(StrictModel, defer_build=False):
    """One entry of evals/datasets.json."""

    id: str = "default"
    evaluate: bool = Field(default=True, description="false: do not evaluate this component")
    fixtures: str | None = Field(default=None, description="folder of its cases in the fixtures folder")
    columns: Columns = Field(default_factory=Columns, description="columns of a table of cases")
    contract: str | None = Field(
        default=None,
        alias="schema",
        description="file and part of the output schema, such as schema.json#/$defs/output; default: schema.json",
    )
    output: Output | None = Field(default=None, description="the output type; default: that of the prompt")
    metrics: tuple[str, ...] = Field(default=(), description="metrics to score in place of the default ones")
    primary_metric: str | None = None
    fields: dict[str, FieldRule] = Field(default_factory=dict, description="comparison rules of fields by path")
    checks: tuple[DeclaredCheck, ...] = Field(default=(), description="checks of the outputs of all cases")

    @field_validator("fixtures")
    @classmethod
    def _stays_inside(cls, fixtures: str | None) -> str | None:
        if fixtures is not None and not (len(fixtures) <= 200 and _INNER_FOLDER.fullmatch(fixtures)):
            advice = "use letters, digits, ' ', '.', '_', '-' and '/', or --fixtures DIR for another folder"
            raise ValueError(f"{fixtures[:100]!a} is not a folder inside the fixtures folder; {advice}")
        return fixtures


class Datasets(StrictModel):
    """The file evals/datasets.json."""

    editor_schema: str | None = Field(default=None, alias="$schema", description="used by editors only")
    datasets: tuple[Dataset, ...] = Field(min_length=1, max_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The rules that score the outputs of a component: its field plan, metrics and checks."""

    plan: FieldPlan
    prose: Mapping[str, float]  # median length in characters of prose fields by path
    metrics: Mapping[str, Metric]
    primary_metric: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentFiles:
    """The files of a component: its folder, its prompt, its datasets.json and its cases."""

    folder: Path  # folder of the records
    formerly: tuple[str, ...]  # earlier names of the component
    prompts: tuple[Path, ...]
    datasets: Path  # path of datasets.json, which may be missing
    cases: CaseFiles
    origin: SourceLocation | None  # location in a source of another format

    @property
    def folders(self) -> list[Path]:
        """The folder of the records, and the folders of the earlier names."""
        return [self.folder, *(self.folder.parent / name for name in self.formerly)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A versioned prompt with its output schema, ready to be evaluated, alone or under a scenario."""

    name: str
    version: str
    files: ComponentFiles
    prompt: Prompt
    program: ProgramUnderTest | None
    output: Output
    contract: Contract
    scoring: Scoring
    digests: Mapping[str, str]  # keys: prompt, schema, datasets, and optionally contract and scenario
    limits: SafetyLimits
    inferred: tuple[str, ...]  # one text per inferred setting and per unused part of the source
    scenario: str | None = None

    @property
    def left_out(self) -> list[str]:
        """One text per unused part of the component's source, such as files beside a SKILL.md."""
        return [line for line in self.inferred if line.startswith("left out: ")]

    @property
    def leaderboard_path(self) -> Path:
        """The path of its leaderboard."""
        return self.files.folder / "leaderboard.json"

    @property
    def records_dir(self) -> Path:
        """The folder of its records."""
        return self.files.folder / "evals" / "records"

    @property
    def accepted_path(self) -> Path:
        """The path of the file with its accepted versions."""
        return self.files.folder / "evals" / "accepted.json"

    @property
    def results_dir(self) -> Path:
        """The default folder of its run folders."""
        return self.files.folder / "evals" / "results"


def load_component(
    components_dir: Path, name: str, limits: SafetyLimits = DEFAULT_LIMITS, fixtures_dir: Path | None = None
) -> Component:
    """Read a component. Raise ComponentError if it is invalid, NotEvaluatedError if it has `evaluate: false`."""
    folder = home = components_dir / name
    origin = source_of(components_dir, name)
    if origin is None:
        written, root = _read_prompt(components_dir, name, limits), folder
    else:
        _refuse_links(folder, limits)
        written, root = origin.here(limits), origin.root
        home = (root / written.path).parent if origin.source is OWN else folder
        _refuse_links(home, limits)
    where = (folder if (folder / "evals" / "datasets.json").exists() else home) / "evals" / "datasets.json"
    dataset = _read_dataset(where, name, limits)
    case_files = CaseFiles(
        home=home,
        fixtures=dataset.fixtures or name,
        fixtures_dir=fixtures_dir,
        limits=limits,
        columns=dataset.columns,
        rows=replace(written.cases, path=root / written.cases.path),
    )
    table = case_files.table()
    checked = bool(written.checks or dataset.checks) or case_files.has_checks(table)
    schema_in = folder if (folder / "schema.json").exists() else where.parent.parent
    spec = _read_contract(schema_in, written, dataset, case_files.output(table), limits, checked)
    truths = list(case_files.truths(table, spec.output, spec.contract.schema))
    plan, prose, compared = _plan_comparison(dataset, spec, truths, where)
    labelled = bool(truths) or spec.output == "choice"
    metrics, primary_metric = _choose_metrics(dataset, spec, plan, where, checked=checked, labelled=labelled)
    inside = ConfinedFolder(where.parents[2], ComponentError, follow_links=limits.follow_links).inside
    digests = {"prompt": written.prompt.digest, **spec.digests, "datasets": compared}
    version = written.version or numbered(digests, recorded_in(folder / "leaderboard.json"))
    before = read_checks(written.checks, root, root / written.path, ComponentError, Path)
    return Component(
        name=name,
        version=check_semver(version, root / written.path),
        files=ComponentFiles(
            folder=folder,
            formerly=written.formerly,
            prompts=tuple(root / path for path in written.files),
            datasets=where,
            cases=case_files,
            origin=origin,
        ),
        prompt=written.prompt,
        program=written.program,
        output=spec.output,
        contract=spec.contract,
        scoring=Scoring(
            plan=plan,
            prose=prose,
            metrics=metrics,
            primary_metric=primary_metric,
            checks=read_checks(dataset.checks, where.parent, where, ComponentError, inside, earlier=before),
        ),
        digests=digests,
        limits=limits,
        inferred=(*spec.inferred, *written.left_out),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutputSpec:
    output: Output
    contract: Contract
    digests: Mapping[str, str]
    inferred: tuple[str, ...]


def _plan_comparison(
    dataset: Dataset, spec: _OutputSpec, truths: Sequence[Any], file: Path
) -> tuple[FieldPlan, dict[str, float], str]:
    """Return the field plan, the median lengths of prose fields by path, and the digest of the comparison rules."""
    schema = spec.contract.schema
    texts_lengths, prose = find_texts(schema, dataset.fields, truths)
    if schema is None:  # the ground truths define the valid paths
        _refuse_unknown_paths(dataset.fields, spec.output, truths, file)
    texts = {path: replace(dataset.fields.get(path, FieldRule()), compare="text") for path in prose}
    letter = _LETTER if spec.output == "choice" else {}
    plan = plan_fields(schema, {**letter, **dataset.fields, **texts}, str(file))
    uncompared = {key for key in ("evaluate", "contract", "output") if key not in dataset.model_fields_set}
    fields = {path: rule for path, rule in dataset.fields.items() if path not in texts_lengths or rule not in _INFERRED}
    compared_settings = dataset.model_copy(update={"fields": fields})
    declared = compared_settings.model_dump(mode="json", exclude={*uncompared, "checks", "columns"})
    prose_paths = sorted({*prose, *(path for path in texts_lengths if dataset.fields.get(path) == _AS_TEXT)})
    return plan, prose, digest(canonical_json({**declared, **({"prose": prose_paths} if prose_paths else {})}))


def _choose_metrics(
    dataset: Dataset, spec: _OutputSpec, plan: FieldPlan, where: Path, *, checked: bool, labelled: bool
) -> tuple[dict[str, Metric], str]:
    """Return the accuracy metrics by name, and the primary metric. Raise ComponentError for an invalid metric."""
    declared = [metric for metric in dataset.metrics if metric not in REPRODUCIBILITY]
    if spec.contract.schema is None and "schema_valid" in declared:
        raise ComponentError(f"the metric 'schema_valid' in {where} requires a schema")
    is_choice = spec.output == "choice"
    usual = ["exact_match"] if is_choice else list(DEFAULT_METRICS)
    usual = [name for name in usual if spec.contract.schema is not None or name != "schema_valid"]
    if checked:
        usual = [name for name in usual if labelled or not METRICS[name].needs_truth]
    elif "checks" in declared:
        raise ComponentError(f"the metric 'checks' in {where} requires a check in that file or in a case")
    metrics = accuracy_metrics(dict.fromkeys([*(declared or usual), *(["checks"] if checked else [])]), str(where))
    ranking = "field_level_f1" if plan.counts and not is_choice else "exact_match"
    if checked and not (labelled and (plan.counts or is_choice)):  # no ground truth can rank outputs
        ranking = "checks"
    primary = dataset.primary_metric or (ranking if ranking in metrics else next(iter(metrics)))
    if primary not in metrics:
        advice = nearest(primary, metrics)
        raise ComponentError(f"primary_metric '{primary}' is not among the metrics of {where} {advice}")
    return metrics, primary


def _read_dataset(path: Path, name: str, limits: SafetyLimits) -> Dataset:
    if not path.exists():
        return Dataset()
    content = read_json(path, ComponentError, limits.size_of("schema_bytes"))
    dataset = validated(Datasets, content, path, ComponentError).datasets[0]
    refuse_wrong_rules(dataset.fields, "datasets[0].fields", str(path))
    if not dataset.evaluate:
        raise NotEvaluatedError(f"component '{name}' is not evaluated: {path} has `evaluate: false`")
    return dataset


def _refuse_links(folder: Path, limits: SafetyLimits) -> None:
    root = ConfinedFolder(folder.parent, ComponentError, follow_links=limits.follow_links)
    for file in _FILES:
        root.inside(folder / file)


def _read_prompt(components_dir: Path, name: str, limits: SafetyLimits) -> SourceComponent:
    if not is_component_name(name):
        raise ComponentError(f"'{name}' cannot be a component's name ({NAME_RULE})")
    if not components_dir.is_dir():
        raise ComponentError(f"{components_dir} {NO_FOLDER}")
    path = components_dir / name / "prompt.md"
    if not path.is_file():
        if path.parent.is_dir():
            raise ComponentError(f"component '{name}' has no prompt: {path} does not exist")
        names = [path.parent.name for path in components_dir.glob("*/prompt.md")]
        raise ComponentError(f"unknown component '{name}' in {components_dir} {nearest(name, names)}")
    _refuse_links(path.parent, limits)
    text = read_text(path, ComponentError, limits.size_of("prompt_bytes"))
    front, prompt = parse_prompt(text, path, depth=limits.yaml_depth)
    if front.name != name:
        raise ComponentError(f"name '{front.name}' in {path} is not the folder's name '{name}'")
    for former in front.formerly:
        if (components_dir / former / "prompt.md").exists():
            advice = "write an earlier name" if former == name else "delete the key `formerly`, or that folder"
            raise ComponentError(
                f"`formerly` in {path} names the folder '{former}', which still exists in {components_dir}; {advice}"
            )
    return written_own(front, checked_prompt(text, front, prompt, path), path.name)


def _read_contract(
    folder: Path,
    written: SourceComponent,
    dataset: Dataset,
    truth_output: Output | None,
    limits: SafetyLimits,
    checked: bool,
) -> _OutputSpec:
    output = dataset.output or written.output
    if output == "choice" and (folder / "schema.json").exists():
        raise ComponentError(f"{folder / 'schema.json'} has no effect with `output: choice`; delete the file")
    schema, schema_path, digests = read_schema(folder, dataset.contract, limits)
    if schema is None and written.schema is not None:
        schema, schema_path, digests = written.schema, written.path, {"schema": digest(canonical_json(written.schema))}
    inferred = []
    if schema is None and output is None and (truth_output == "text" or (checked and truth_output is None)):
        output = "text"
        reason = "its ground truths are texts" if truth_output else "it has checks and no ground truth"
        inferred.append(f"output: text, because {reason}; {written.path} declares no output")
    if schema is None and output in (None, "json"):
        inferred.append(f"any JSON is a valid output: there is no {schema_path}, so schema_valid is not measured")
    text = "".join(message.text for message in written.prompt.messages)
    if output == "text" and dataset.output is None and written.cases.name and "json" in text.lower():
        declared = f'{{"datasets": [{{"output": "json"}}]}} in {folder / "evals" / "datasets.json"}'
        inferred.append(f"output: text; if the prompt asks for JSON, write {declared}")
    contract = Contract(schema or {}, schema_path)
    if written.prompt.by_tool_call and (output != "json" or (schema or {}).get("type") != "object"):
        raise ComponentError(f'`output: tool_call` in {written.path} requires "type": "object" in {schema_path}')
    if schema is not None and not constrains(schema, schema):
        names = sorted(schema.get("$defs", {}), key="output".__ne__)
        advice = f', or write "schema": "schema.json#/$defs/{names[0]}" into evals/datasets.json' if names else ""
        raise ComponentError(f"{schema_path} has no constraints, so any JSON is valid; describe the output{advice}")
    return _OutputSpec(output=output or "json", contract=contract, digests=digests, inferred=tuple(inferred))
