"""Draw an audit from benchmarks (components), scenarios and models; audit.json has the digest of each."""

import datetime
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from skill_evaluator import __version__
from skill_evaluator import identifiers as ids
from skill_evaluator.audit.request import AuditFolders, AuditRunRequest
from skill_evaluator.display import visible
from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import FrozenModel, read_text, read_versioned
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.library.options import LATEST
from skill_evaluator.library.prompts import parse_prompt
from skill_evaluator.library.scenarios import BARE, Scenario, load_scenario, named_scenarios
from skill_evaluator.providers import Configuration, Kinds, read_configuration, refuse_unbatched
from skill_evaluator.repository import commit_of
from skill_evaluator.runner import prices
from skill_evaluator.runner.journal import Manifest, Transport, new_invocation, run_id_of, settings_digest
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import counted, digest, listed, nearest

AUDIT = "audit.json"
RUNS = "runs"  # next to audit.json; one run folder per model
MANIFEST_VERSION = 1
MIN_MODELS, MIN_SCENARIOS, MIN_QUESTIONS = 4, 6, 50  # smaller audits get a warning
_BENCHMARK_OUTPUT = "choice"
_MAX_CHANGES_NAMED = 3


class AuditedBenchmark(FrozenModel):
    """A component that serves as benchmark. `cases` has the digest of each drawn case by case id.

    `of` is the number of cases that could be drawn. `unlabelled` is the number of cases without a ground truth.
    `not_applicable` has the cases that some model does not accept, with reasons. `digests` has the digest of each file.
    """

    name: ids.ComponentName
    version: ids.VersionText
    metric: ids.Label
    weight: PositiveFloat
    of: PositiveInt
    unlabelled: NonNegativeInt = 0
    not_applicable: dict[ids.CaseId, ids.Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    cases: dict[ids.CaseId, ids.Digest] = Field(min_length=1)
    digests: dict[str, ids.Digest]

    @property
    def left_out(self) -> list[str]:
        """A list of one sentence on the cases of `not_applicable` and the reasons, or an empty list."""
        names = listed([f"{case_id} ({why})" for case_id, why in self.not_applicable.items()])
        return [f"'{self.name}': skipped for every model, since not applicable to some: {names}"] if names else []

    @property
    def shaping(self) -> dict[str, str]:
        """The digests of the files that determine a call, by name: all `digests` except `datasets`."""
        return {name: value for name, value in sorted(self.digests.items()) if name != "datasets"}

    def cell_digest(self, case: str, template: str) -> str:
        """Return the digest of the inputs of a case in a scenario; `template` is the digest of the scenario."""
        shaping = (f"{name} {value}" for name, value in self.shaping.items())
        return digest("\n".join((self.cases[case], template, *shaping)))


class AuditManifest(FrozenModel):
    """The file audit.json. `models` has the settings digest by model id, `scenarios` the template digest by name.

    `questions` is the number of cases to draw from each benchmark; None means all. `commit` is the components' commit.
    """

    manifest_version: int = MANIFEST_VERSION
    id: ids.RunId
    created: ids.Timestamp
    commit: ids.Commit | None = None
    seed: int
    replicates: ids.ReplicateCount
    questions: PositiveInt | None
    models: dict[ids.ModelId, ids.Digest] = Field(min_length=1)
    scenarios: dict[ids.Label, ids.Digest] = Field(min_length=1)
    benchmarks: list[AuditedBenchmark] = Field(min_length=1)
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    max_cost_usd: ids.Usd | None = Field(default=None, exclude_if=lambda cap: cap is None)
    evaluator_version: ids.Label

    @property
    def questions_in_all(self) -> int:
        """The number of questions of all benchmarks together."""
        return sum(len(benchmark.cases) for benchmark in self.benchmarks)

    @property
    def calls_per_model(self) -> int:
        """The number of planned calls per model."""
        return self.questions_in_all * len(self.scenarios) * self.replicates

    def cells(self) -> dict[str, str]:
        """Return the digest of each cell (a case in a scenario) by name `<benchmark>/<scenario>/<case>`.

        The order is that of the calls: benchmarks alternate, and all scenarios of a question come before the next
        question, so that the scenarios of an interrupted audit can be compared.
        """
        rounds = zip_longest(*([(benchmark, case) for case in benchmark.cases] for benchmark in self.benchmarks))
        return {
            f"{benchmark.name}/{scenario}/{case}": benchmark.cell_digest(case, template)
            for questions in rounds
            for benchmark, case in filter(None, questions)
            for scenario, template in self.scenarios.items()
        }

    def run(self, model_id: str, provider: str, settings: str) -> Manifest:
        """Build the manifest of a model's run; `settings` is the digest of the model's settings."""
        return Manifest.view(
            self,
            run_id=run_id_of(self.id, "", model_id),
            skill="audit",
            skill_version=str(MANIFEST_VERSION),
            model_id=model_id,
            provider=provider,
            audit=self.id,
            cases=self.cells(),
            digests={"settings": settings},
            evaluator_version=__version__,
        )

    @property
    def doubts(self) -> list[str]:
        """Warnings about sizes that are too small, too few cases to draw, and skipped cases."""
        questions = {benchmark.name: len(benchmark.cases) for benchmark in self.benchmarks}
        sentences = size_warnings(len(self.models), len(self.scenarios), questions, self.replicates)
        for name, available in questions.items():
            if available < (self.questions or 0):
                few = f"{counted(available, 'question')} of '{name}'"
                sentences.append(f"{few}: {self.questions} were requested, but it has no more")
        for benchmark in self.benchmarks:
            if benchmark.unlabelled:
                skipped = f"{counted(benchmark.unlabelled, 'case')} of '{benchmark.name}'"
                sentences.append(f"{skipped} skipped: no ground truth")
            sentences += benchmark.left_out
        return sentences


def size_warnings(models: int, scenarios: int, questions: Mapping[str, int], replicates: int | None) -> list[str]:
    """Return a warning for each size that is too small. `questions` has the number of questions by benchmark."""
    few = [f"{name} {count}" for name, count in questions.items() if count < MIN_QUESTIONS]
    warnings = {
        f"{counted(models, 'model')}, fewer than {MIN_MODELS}: grades are only a ranking": models < MIN_MODELS,
        f"{counted(scenarios, 'scenario')}, fewer than {MIN_SCENARIOS}: σ is imprecise": scenarios < MIN_SCENARIOS,
        f"fewer than {MIN_QUESTIONS} questions ({', '.join(few)}): use the confidence intervals": bool(few),
        "one output per question: the noise within a scenario is unknown; use -n 2": replicates == 1,
    }
    return [warning for warning, applies in warnings.items() if applies]


def audit_folders(audits: Path) -> list[Path]:
    """Return the folders of all audits in a folder, oldest first."""
    return sorted(path.parent for path in audits.glob(f"*/{AUDIT}"))


def read_audit_manifest(path: Path) -> AuditManifest:
    """Read an audit.json; raise AuditError if it is invalid or of a newer version."""
    return read_versioned(AuditManifest, path, "manifest_version", MANIFEST_VERSION, AuditError)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledBenchmark:
    """A component and its cases with a ground truth, by id; `unlabelled` counts its other cases."""

    component: Component
    cases: Mapping[str, Case]
    unlabelled: int


@dataclass(frozen=True, kw_only=True)  # no slots: `_components` is cached
class DrawnAudit:
    """An audit with its options, folder, benchmarks and scenarios. `configuration` has only the models to call now."""

    options: AuditRunRequest
    manifest: AuditManifest
    folder: Path
    configuration: Configuration
    benchmarks: Mapping[str, LabelledBenchmark]
    scenarios: Mapping[str, Scenario]

    @cached_property
    def _components(self) -> dict[tuple[str, str], Component]:
        return {
            (name, scenario): template.around(benchmark.component)
            for name, benchmark in self.benchmarks.items()
            for scenario, template in self.scenarios.items()
        }

    def requests(self) -> dict[str, tuple[Component, Case]]:
        """Return the component (with its scenario) and the case of each request, by `<benchmark>/<scenario>/<case>`."""
        prompts_and_cases = {}
        for cell in self.manifest.cells():
            benchmark, scenario, name = cell.split("/")
            case = replace(self.benchmarks[benchmark].cases[name], id=cell)
            prompts_and_cases[cell] = self._components[benchmark, scenario], case
        return prompts_and_cases

    @cached_property
    def estimates(self) -> list[prices.ModelEstimate]:
        """The estimated calls, tokens and cost of each model to call now."""
        audit, kinds, keys = self.manifest, self.configuration.kinds, self.configuration.keys
        sizes: dict[str, prices.InputSize] = {}
        for component, case in self.requests().values():
            sizes |= prices.input_sizes(component, [case])
        estimates = []
        for model in self.configuration.models:
            kind = kinds[model.provider]
            amounts = prices.estimate(sizes, model, kind, audit.replicates, batch=audit.transport == "batch")
            estimates.append(prices.ModelEstimate.of(model, kind, keys, amounts))
        return estimates

    @property
    def total(self) -> prices.CostEstimate:
        """The sum of the estimates over all models. A cost is None if it is unknown for a model."""
        return prices.sum_of(self.estimates)

    @property
    def changes(self) -> list[str]:
        """The names of scenarios, benchmark files, cases and model settings that changed since the audit was drawn."""
        audit = self.manifest
        settings = {model.id: settings_digest(model) for model in self.configuration.models}
        changed = [f"scenario '{name}'" for name, old in audit.scenarios.items() if self.scenarios[name].digest != old]
        for benchmark in audit.benchmarks:
            digests = self.benchmarks[benchmark.name].component.digests
            shaping = benchmark.shaping.items()
            changed += [f"{part} of benchmark '{benchmark.name}'" for part, old in shaping if digests.get(part) != old]
            changed += changed_cases(benchmark, self.benchmarks[benchmark.name])
        edited = [name for name, current in settings.items() if current != audit.models.get(name)]
        return changed + [f"the settings of model '{name}'" for name in edited]


def read_benchmark(folders: AuditFolders, name: str) -> LabelledBenchmark:
    """Read a benchmark and its cases that have a ground truth; raise AuditError if no case has one."""
    component = load_component(folders.components, name, folders.limits, folders.fixtures)
    cases = load_cases(component)
    labelled = {case.id: case for case in cases if case.labelled}
    if not labelled:
        raise AuditError(f"no case of the benchmark '{name}' has a ground truth; add ground truths, or leave it out")
    return LabelledBenchmark(component=component, cases=labelled, unlabelled=len(cases) - len(labelled))


def changed_cases(benchmark: AuditedBenchmark, labelled: LabelledBenchmark) -> list[str]:
    """Return `case 'a' of benchmark 'b'` for each case that was changed or deleted since the audit was drawn."""
    digests = {name: case.digest for name, case in labelled.cases.items()}
    changed = (name for name, recorded_digest in benchmark.cases.items() if digests.get(name) != recorded_digest)
    return [f"case '{name}' of benchmark '{benchmark.name}'" for name in changed]


def draw_audit(request: AuditRunRequest) -> DrawnAudit:
    """Draw a new audit, or read the audit to resume. A dry run requires no API keys.

    Raise a SkillEvaluatorError if an option or an input is invalid.
    """
    counts = {"--replicates": request.replicates, "--questions": request.questions}
    refuse_amounts({**counts, "--concurrency": request.concurrency}, request.max_calls, request.max_cost)
    if request.resumed is None:
        return _new_audit(request)
    if request.dry_run:
        raise AuditError("--dry-run cannot be combined with --resume or --run")
    fixed_options = ("benchmarks", "scenarios", "questions", "replicates", "seed")
    if any(getattr(request, name) not in (None, ()) for name in fixed_options):
        raise AuditError(
            "--benchmark, --scenario, --questions, --replicates and --seed cannot be combined with --resume or --run; "
            "omit them, or start a new audit"
        )
    return _resumed_audit(request, _find_audit(request.resumed, request.audits))


def _new_audit(request: AuditRunRequest) -> DrawnAudit:
    configuration = read_configuration(request.config)
    settings, kinds = configuration.settings, configuration.kinds
    models = select_models(configuration.models, request.models)
    if request.max_cost is not None:
        prices.refuse_unpriced(models, kinds)
    names = request.benchmarks or tuple(settings.audit.benchmarks) or _default_benchmarks(request)
    benchmarks = {name: read_benchmark(request, name) for name in dict.fromkeys(names)}
    names_of_family = named_scenarios(request.config, request.scenarios or settings.audit.scenarios)
    scenarios = _read_scenarios(request, names_of_family or default_scenarios(request))
    if not request.dry_run:
        models = tuple(with_keys(models, configuration).values())
    if request.batch:
        refuse_unbatched(models)
    weights = {name: benchmark.weight for name, benchmark in settings.audit.benchmarks.items()}
    questions = settings.audit.questions if request.questions is None else request.questions
    seed = settings.seed if request.seed is None else request.seed
    created = datetime.datetime.now(datetime.UTC)
    manifest = AuditManifest(
        id=new_invocation(created),
        created=f"{created:%Y-%m-%dT%H:%M:%SZ}",
        commit=None if request.dry_run else commit_of(request.components),
        seed=seed,
        replicates=request.replicates or settings.audit.replicates,
        questions=questions,
        models={model.id: settings_digest(model) for model in models},
        scenarios={name: scenario.digest for name, scenario in scenarios.items()},
        benchmarks=[
            _draw_benchmark(labelled, weights.get(name, 1.0), questions, seed, _skipped_cases(labelled, models, kinds))
            for name, labelled in benchmarks.items()
        ],
        transport="batch" if request.batch else "direct",
        max_cost_usd=request.max_cost,
        evaluator_version=__version__,
    )
    for doubt in manifest.doubts:
        print(f"warning: {visible(doubt)}", file=sys.stderr)
    return DrawnAudit(
        options=request,
        manifest=manifest,
        folder=request.audits / manifest.id,
        configuration=replace(configuration, models=models),
        benchmarks=benchmarks,
        scenarios=scenarios,
    )


def _find_audit(reference: str, audits: Path) -> Path:
    """Return the folder of the audit that `reference` names: a folder, an id or `latest`."""
    if (Path(reference) / AUDIT).is_file():
        return Path(reference)
    names = [folder.name for folder in audit_folders(audits)]
    if not names:
        raise AuditError(f"there is no audit in {audits} to resume; start one without --resume and --run")
    audit_id = names[-1] if reference == LATEST else reference
    if audit_id not in names:
        raise AuditError(f"no audit '{audit_id}' in {audits} to resume {nearest(audit_id, names)}")
    return audits / audit_id


def _resumed_audit(request: AuditRunRequest, folder: Path) -> DrawnAudit:
    manifest = read_audit_manifest(folder / AUDIT)
    if request.batch and manifest.transport != "batch":
        raise AuditError(f"the audit {manifest.id} was started without --batch; resume it without --batch, too")
    for model_id in request.models:
        if model_id not in manifest.models:
            raise AuditError(
                f"'{model_id}' is not a model of the audit {manifest.id} {nearest(model_id, manifest.models)}; "
                "start a new audit to add a model"
            )
    configuration = read_configuration(request.config)
    models = select_models(configuration.models, request.models or tuple(manifest.models))
    if request.max_cost is not None:
        prices.refuse_unpriced(models, configuration.kinds)
    drawn = DrawnAudit(
        options=request,
        manifest=manifest,
        folder=folder,
        configuration=replace(configuration, models=models),
        benchmarks={benchmark.name: read_benchmark(request, benchmark.name) for benchmark in manifest.benchmarks},
        scenarios=_read_scenarios(request, manifest.scenarios),
    )
    if changes := drawn.changes:
        raise AuditError(
            f"cannot resume the audit {manifest.id}: changed since it was drawn: "
            f"{listed(changes, _MAX_CHANGES_NAMED)}; check out the commit it was drawn from, or start a new audit"
        )
    return drawn


def _default_benchmarks(folders: AuditFolders) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    for path in sorted(folders.components.glob("*/prompt.md")):
        try:
            text = read_text(path, ComponentError, folders.limits.size_of("prompt_bytes"))
            front, _ = parse_prompt(text, path, depth=folders.limits.yaml_depth)
        except ComponentError as problem:
            print(f"warning: not in the audit: {visible(str(problem))}", file=sys.stderr)
            continue
        if front.output == _BENCHMARK_OUTPUT:
            names += (path.parent.name,)
    if not names:
        raise AuditError(
            f"no component in {folders.components} declares `output: {_BENCHMARK_OUTPUT}`; name the benchmarks with "
            f"--benchmark NAME, or with `audit: {{benchmarks: [NAME, NAME]}}` in {folders.config / 'settings.yaml'}"
        )
    return names


def default_scenarios(folders: AuditFolders) -> tuple[str, ...]:
    """Return the names of the scenarios that are in no family, `bare` first. Raise AuditError if there are none."""
    names = sorted(path.stem for path in (folders.config / "scenarios").glob("*.md"))
    if not names:
        raise AuditError(
            f"{folders.config / 'scenarios'} has no NAME.md beside its subfolders (families); "
            "write at least two, or name scenarios with --scenario NAME"
        )
    return tuple(sorted(names, key=lambda name: name != BARE))


def _read_scenarios(folders: AuditFolders, names: Iterable[str]) -> dict[str, Scenario]:
    return {name: load_scenario(folders.config, name, folders.limits) for name in names}


def draw_questions(case_ids: Sequence[str], questions: int | None, seed: int, benchmark: str) -> list[str]:
    """Draw `questions` case ids at random (None: all) and return them sorted. Equal arguments give the same draw."""
    ordered = sorted(case_ids)
    if questions is None or questions >= len(ordered):
        return ordered
    return sorted(random.Random(f"{seed}/{benchmark}").sample(ordered, questions))  # noqa: S311 (no secret)


def _skipped_cases(labelled: LabelledBenchmark, models: Sequence[Model], kinds: Kinds) -> dict[str, str]:
    cases = list(labelled.cases.values())
    sizes = prices.input_sizes(labelled.component, cases)
    reasons = {
        case_id: f"{model.id}: {reason}"
        for model in models
        for case_id, reason in prices.not_applicable(cases, sizes, model, kinds[model.provider]).items()
    }
    if len(reasons) == len(cases):
        raise AuditError(
            f"no case of benchmark '{labelled.component.name}' can be sent to every model "
            f"({next(iter(reasons.values()))}); leave out that model or benchmark"
        )
    return reasons


def _draw_benchmark(
    labelled: LabelledBenchmark, weight: float, questions: int | None, seed: int, left_out: dict[str, str]
) -> AuditedBenchmark:
    component, cases = labelled.component, labelled.cases
    applicable = [case_id for case_id in cases if case_id not in left_out]
    chosen = draw_questions(applicable, questions, seed, component.name)
    return AuditedBenchmark(
        name=component.name,
        version=component.version,
        metric=component.scoring.primary_metric,
        weight=weight,
        of=len(applicable),
        unlabelled=labelled.unlabelled,
        not_applicable=left_out,
        cases={case_id: cases[case_id].digest for case_id in chosen},
        digests=dict(component.digests),
    )
