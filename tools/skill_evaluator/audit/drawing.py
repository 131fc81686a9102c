"""Draw an audit: read its benchmarks (components), labelled cases, scenarios and models, and estimate its size."""

import datetime
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.audit.manifest import AUDIT, AuditedBenchmark, AuditManifest, audit_folders, read_audit_manifest
from skill_evaluator.audit.request import AuditFolders, AuditRunRequest
from skill_evaluator.display.options import LATEST
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError, ComponentError
from skill_evaluator.files import read_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.library.prompts import parse_prompt
from skill_evaluator.library.scenarios import BARE, Scenario, load_scenario, named_scenarios
from skill_evaluator.providers import Configuration, Kinds, key_note, read_configuration, refuse_unbatched
from skill_evaluator.providers.base import Request
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.journal import Run, new_invocation, settings_digest
from skill_evaluator.runner.prices import (
    CostEstimate,
    InputSize,
    ModelEstimate,
    estimate,
    input_sizes,
    not_applicable,
    refuse_unpriced,
    sum_of,
)
from skill_evaluator.runner.schedule import build_request, refuse_amounts
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import listed, nearest

_BENCHMARK_OUTPUT = "choice"
_MAX_CHANGES_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledBenchmark:
    """A component and its cases with a ground truth, by id; `unlabelled` counts its other cases."""

    component: Component
    cases: Mapping[str, Case]
    unlabelled: int


@dataclass(frozen=True, kw_only=True)  # no slots: `_components` is cached
class DrawnAudit:
    """An audit with its benchmarks and scenarios by name; `configuration` has only the models to call now."""

    configuration: Configuration
    manifest: AuditManifest
    benchmarks: Mapping[str, LabelledBenchmark]
    scenarios: Mapping[str, Scenario]

    @cached_property
    def _components(self) -> dict[tuple[str, str], Component]:
        return {
            (name, scenario): template.around(benchmark.component)
            for name, benchmark in self.benchmarks.items()
            for scenario, template in self.scenarios.items()
        }

    def request(self, _: Run, cell: str) -> Request:
        """Build the request of a cell, `<benchmark>/<scenario>/<case>`."""
        return build_request(*self._prompt_and_case(cell))

    def _prompt_and_case(self, cell: str) -> tuple[Component, Case]:
        benchmark, scenario, name = cell.split("/")
        return self._components[benchmark, scenario], replace(self.benchmarks[benchmark].cases[name], id=cell)

    def estimates(self) -> list[ModelEstimate]:
        """Estimate the calls, tokens and cost of each model to call now."""
        audit, kinds, keys = self.manifest, self.configuration.kinds, self.configuration.keys
        sizes: dict[str, InputSize] = {}
        for cell in audit.cells():
            component, case = self._prompt_and_case(cell)
            sizes |= input_sizes(component, [case])
        estimates = []
        for model in self.configuration.models:
            kind = kinds[model.provider]
            amounts = estimate(sizes, model, kind, audit.replicates, batch=audit.transport == "batch")
            note = key_note(model, kind, keys)
            estimates.append(ModelEstimate(model_id=model.id, provider=model.provider, key=note, **asdict(amounts)))
        return estimates


def read_benchmark(folders: AuditFolders, name: str) -> LabelledBenchmark:
    """Read a benchmark and its cases that have a ground truth; raise AuditError if no case has one."""
    component = load_component(folders.components, name, folders.limits, folders.fixtures)
    cases = load_cases(component, folders.fixtures)
    labelled = {case.id: case for case in cases if case.labelled}
    if not labelled:
        raise AuditError(f"no case of the benchmark '{name}' has a ground truth, which scores require")
    return LabelledBenchmark(component=component, cases=labelled, unlabelled=len(cases) - len(labelled))


def draw_audit(request: AuditRunRequest) -> tuple[DrawnAudit, Path]:
    """Return the audit to resume, or a new one, and its folder. Raise AuditError if the audit cannot be resumed."""
    validate_request(request)
    if request.resumed is None:
        drawn = new_audit(request, keyed=True)
        for doubt in drawn.manifest.doubts:
            print(f"warning: {visible(doubt)}", file=sys.stderr)
        return drawn, request.audits / drawn.manifest.id
    folder = Path(request.resumed)
    if not (folder / AUDIT).is_file():  # an id or `latest`
        ids = [audit_folder.name for audit_folder in audit_folders(request.audits)]
        audit_id = ids[-1] if request.resumed == LATEST and ids else request.resumed
        if audit_id not in ids:
            raise AuditError(f"no audit '{audit_id}' in {request.audits} to resume {nearest(audit_id, ids)}")
        folder = request.audits / audit_id
    audit = read_audit_manifest(folder / AUDIT)
    if request.batch and audit.transport != "batch":
        raise AuditError(f"cannot resume the audit {audit.id} with --batch: it was started without it")
    return drawn_audit(audit, request), folder


def new_audit(request: AuditRunRequest, *, keyed: bool) -> DrawnAudit:
    """Draw a new audit. If `keyed`, skip models without an API key and record the commit of the components."""
    configuration = read_configuration(request.config)
    settings, kinds = configuration.settings, configuration.kinds
    models = select_models(configuration.models, request.models)
    if request.max_cost is not None:
        refuse_unpriced(models, kinds)
    names = request.benchmarks or tuple(settings.audit.benchmarks) or _default_benchmarks(request)
    benchmarks = {name: read_benchmark(request, name) for name in dict.fromkeys(names)}
    names_of_family = named_scenarios(request.config, request.scenarios or settings.audit.scenarios)
    scenarios = _read_scenarios(request, names_of_family or default_scenarios(request))
    if keyed:
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
        commit=commit_of(request.components) if keyed else None,
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
    configuration = replace(configuration, models=models)
    return DrawnAudit(configuration=configuration, manifest=manifest, benchmarks=benchmarks, scenarios=scenarios)


def drawn_audit(manifest: AuditManifest, request: AuditRunRequest) -> DrawnAudit:
    """Read the inputs of an audit to resume. Raise AuditError if they have changed, or for a model not in the audit."""
    configuration = read_configuration(request.config)
    for model_id in request.models:
        if model_id not in manifest.models:
            raise AuditError(
                f"'{model_id}' is not a model of the audit {manifest.id} {nearest(model_id, manifest.models)}; "
                "start a new audit to add a model"
            )
    models = select_models(configuration.models, request.models or tuple(manifest.models))
    if request.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    drawn = DrawnAudit(
        configuration=replace(configuration, models=models),
        manifest=manifest,
        benchmarks={benchmark.name: read_benchmark(request, benchmark.name) for benchmark in manifest.benchmarks},
        scenarios=_read_scenarios(request, manifest.scenarios),
    )
    if changed := _changes_in(drawn):
        raise AuditError(
            f"cannot resume the audit {manifest.id}: changed since it was drawn: "
            f"{listed(changed, _MAX_CHANGES_NAMED)}; check out the commit it was drawn from, or start a new audit"
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
            f"no component in {folders.components} has output: {_BENCHMARK_OUTPUT}; name the benchmarks with "
            f"--benchmark NAME, or in {folders.config / 'settings.yaml'}: audit: {{benchmarks: [NAME, NAME]}}"
        )
    return names


def default_scenarios(folders: AuditFolders) -> tuple[str, ...]:
    """Return the names of the scenarios outside of families, `bare` first; raise AuditError if there are none."""
    names = sorted(path.stem for path in (folders.config / "scenarios").glob("*.md"))
    if not names:
        raise AuditError(
            f"{folders.config / 'scenarios'} contains no scenario outside of families; "
            "write at least two, or name some with --scenario NAME"
        )
    return tuple(sorted(names, key=lambda name: name != BARE))


def _read_scenarios(folders: AuditFolders, names: Iterable[str]) -> dict[str, Scenario]:
    return {name: load_scenario(folders.config, name, folders.limits) for name in names}


def draw_questions(names: Sequence[str], questions: int | None, seed: int, benchmark: str) -> list[str]:
    """Draw `questions` of the names (None: all) and sort them. Equal names, seed and benchmark give the same draw."""
    ordered = sorted(names)
    if questions is None or questions >= len(ordered):
        return ordered
    return sorted(random.Random(f"{seed}/{benchmark}").sample(ordered, questions))  # noqa: S311 (no secret)


def _skipped_cases(labelled: LabelledBenchmark, models: Sequence[Model], kinds: Kinds) -> dict[str, str]:
    cases = list(labelled.cases.values())
    sizes = input_sizes(labelled.component, cases)
    reasons = {
        case_id: f"{model.id}: {reason}"
        for model in models
        for case_id, reason in not_applicable(cases, sizes, model, kinds[model.provider]).items()
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
        metric=component.primary_metric,
        weight=weight,
        of=len(applicable),
        unlabelled=labelled.unlabelled,
        not_applicable=left_out,
        cases={case_id: cases[case_id].digest for case_id in chosen},
        digests=dict(component.digests),
    )


def _changes_in(drawn: DrawnAudit) -> list[str]:
    manifest = drawn.manifest
    changed = [f"scenario '{name}'" for name, old in manifest.scenarios.items() if drawn.scenarios[name].digest != old]
    for benchmark in manifest.benchmarks:
        labelled = drawn.benchmarks[benchmark.name]
        digests = labelled.component.digests
        changed += [
            f"{part} of benchmark '{benchmark.name}'"
            for part, old in benchmark.shaping.items()
            if digests.get(part) != old
        ]
        changed += changed_cases(benchmark, labelled)
    settings = {model.id: settings_digest(model) for model in drawn.configuration.models}
    return changed + [
        f"the settings of model '{name}'" for name, new in settings.items() if new != manifest.models.get(name)
    ]


def changed_cases(benchmark: AuditedBenchmark, labelled: LabelledBenchmark) -> list[str]:
    """Return a text, such as `case 'a' of 'b'`, for each case that was changed or deleted since the audit was drawn."""
    digests = {name: case.digest for name, case in labelled.cases.items()}
    changed = (name for name, recorded_digest in benchmark.cases.items() if digests.get(name) != recorded_digest)
    return [f"case '{name}' of benchmark '{benchmark.name}'" for name in changed]


def validate_request(request: AuditRunRequest) -> None:
    """Raise ConfigError or AuditError if an option of `audit run` is invalid or cannot be changed on resuming."""
    counts = {"--replicates": request.replicates, "--questions": request.questions}
    refuse_amounts({**counts, "--concurrency": request.concurrency}, request.max_calls, request.max_cost)
    fixed_options = ("benchmarks", "scenarios", "questions", "replicates", "seed")
    if request.resumed is not None and any(getattr(request, name) not in (None, ()) for name in fixed_options):
        raise AuditError(
            "--benchmark, --scenario, --questions, --replicates and --seed cannot be changed with --resume or --run; "
            "start a new audit"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSize:
    """An audit, and the estimated calls, tokens and cost of each model."""

    audit: AuditManifest
    models: Sequence[ModelEstimate]

    @property
    def total(self) -> CostEstimate:
        """The sum of the estimates over all models. A cost is None if it is unknown for a model."""
        return sum_of(self.models)


def size_audit(request: AuditRunRequest) -> AuditSize:
    """Check the inputs of a new audit and estimate its size, without API keys. Raise AuditError for a resumed audit."""
    if request.resumed is not None:
        raise AuditError("--dry-run cannot be combined with --resume or --run")
    validate_request(request)
    drawn = new_audit(request, keyed=False)
    return AuditSize(audit=drawn.manifest, models=drawn.estimates())
