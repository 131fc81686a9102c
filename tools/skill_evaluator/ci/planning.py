"""Plan the runs of a push or of a manual start: plan.json with every job, the reasons and the cost.

Planning makes no call and needs no key. The runs of a push depend on its version bump (base to head) and on the
leaderboards, so the next push makes up for a lost run.
"""

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from skill_evaluator import __version__
from skill_evaluator.ci.decisions import (
    changed_paths,
    decide,
    decide_again,
    grouped,
    newest_of,
    recorded_boards,
    refusals,
    refuse_code,
)
from skill_evaluator.ci.matrix import (
    CiOptions,
    PlannedEvaluation,
    affordable,
    capped,
    packed,
    runs_of,
    with_baseline,
    with_limits,
)
from skill_evaluator.ci.plan import OnModels, Plan
from skill_evaluator.display.options import (
    SKILLS,
    FormatOption,
    OnlyModels,
    PlatformOption,
    argument,
    option,
    options,
    rare,
)
from skill_evaluator.errors import GitError, NotEvaluatedError, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.runs import fresh_seed, judge_of
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, retiring, select_models
from skill_evaluator.library.sources import component_names, prompt_file
from skill_evaluator.library.versions import (
    ComponentVersion,
    Problem,
    read_version,
    read_versions,
    version_before,
    versioning_problems,
)
from skill_evaluator.providers import program, with_program
from skill_evaluator.records.archive import Archive, refusal_reason
from skill_evaluator.records.selection import versions_patched_to
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.journal import new_invocation
from skill_evaluator.runner.prices import forecasts_of, input_sizes, not_applicable
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed, nearest

_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@options
class PlanRequest(CiOptions, PlatformOption, FormatOption):
    """The options of `plan`. If `base` is None, a person started the plan and the version-bump rule does not apply."""

    names: tuple[str, ...] = argument(SKILLS, (), "COMPONENT")
    base: str | None = option("Plan new components and bumps since this commit.", metavar="COMMIT")
    models: OnlyModels = ()
    replicates: int | None = option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    seed: int | None = rare("Seed from which each replicate's seed is drawn.")
    max_cost: float | None = option("Maximum cost of all jobs together.", metavar="USD")
    pull_request: str | None = rare("Plan drafts of the pull request with this merge commit.", metavar="COMMIT")
    drift: bool = rare("Plan the recorded versions again, to detect drift.", False)
    dry_run: bool = rare("Plan jobs that make no call.", False)


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan for a request; raise SkillEvaluatorError if it cannot be made."""
    if request.drift and (request.base is not None or request.pull_request is not None):
        raise PlanError("--drift runs the recorded versions: it cannot be combined with --base or --pull-request")
    refuse_amounts({"--replicates": request.replicates}, None, request.max_cost)
    models = select_models(request.configuration.models, request.models)
    repository, limits = Repository(request.components), request.configuration.settings.jobs
    changed, refused = set[str](), list[Problem]()
    if request.pull_request is not None:
        changed = changed_paths(repository, request.pull_request)
        refused = list(refusals(changed, repository.relative_path(request.config / "settings.yaml"), limits))
        caps = [cap for cap in (limits.max_cost, request.max_cost) if cap is not None]
        request = replace(request, base=repository.commit("HEAD^1"), max_cost=min(caps, default=None))
    now = datetime.datetime.now(datetime.UTC)
    plan = Plan(
        invocation=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        trigger="drift" if request.drift else "dispatch" if request.base is None else "push",
        base=None if request.base is None else repository.commit(request.base),
        head=repository.commit("HEAD"),
        dry_run=request.dry_run,
        draft=request.pull_request is not None,
        runs=[],
        jobs=[],
        chosen=[],
        skipped=[],
        faults=refused,
        evaluator_version=__version__,
        retiring=retiring(models),
    )
    if refused:
        return plan
    if plan.trigger == "dispatch":
        plan.chosen.extend(_named(request, models))
        return _with_runs(plan, request, changed)
    untouched = _add_decisions(plan, request, models)
    return _with_runs(plan.model_copy(update={"untouched": untouched}), request, changed)


def _with_runs(plan: Plan, request: PlanRequest, changed: set[str]) -> Plan:
    limits = request.configuration.settings.jobs
    max_cost = limits.max_cost if request.max_cost is None else request.max_cost
    wanted = affordable(list(_read_components(plan, request, changed)), max_cost)
    pairs = {(pair.component.name, pair.model.id): pair for pair in wanted}
    runs = capped(runs_of(wanted, limits), max_cost)
    jobs = packed(runs, {run.id: pairs[run.skill, run.model_id].minutes(run.calls) for run in runs}, limits)
    return plan.model_copy(
        update={
            "runs": with_limits(runs, jobs, request.configuration),
            "jobs": jobs,
            "chosen": grouped(each for each in plan.chosen if (each.skill, each.models[0]) in pairs),
            "skipped": grouped(plan.skipped),
            "forecast": forecasts_of(each for pair in wanted for each in pair.estimates(pair.cases)) if runs else [],
        }
    )


def _named(request: PlanRequest, models: Sequence[Model]) -> Iterator[OnModels]:
    names = request.names or component_names(request.components)
    if not names:
        raise PlanError(f"{request.components} holds no component; name its folder with --components DIR")
    for name in dict.fromkeys(names):
        for model_id in _models_of(read_version(request.components / name, name), models, request):
            yield OnModels(skill=name, models=[model_id], reason="started by hand")


def _models_of(version: ComponentVersion | None, models: Sequence[Model], request: PlanRequest) -> list[str]:
    """Return the ids of the models to run a component on: for a program its own id, or none with `--models`."""
    if version is None or version.program is None:
        return [model.id for model in models]
    return [] if request.models else [program.MODEL.id]


def _add_decisions(plan: Plan, request: PlanRequest, models: Sequence[Model]) -> int:
    """Add the runs and the skipped runs of each component to a plan.

    The version bumps of the push and the records decide; with `--drift`, the records alone. Problems of versions and
    unreadable leaderboards become faults of the plan. Return the number of unchanged components without a planned run.
    """
    repository = Repository(request.components)
    if plan.head is None:
        raise GitError(f"{repository.root} has no commit yet")
    folder = repository.relative_path(request.components)
    base_commit, base_known = _base_of(plan, request, repository)
    before, after = read_versions(repository, (base_commit, plan.head), folder)
    unknown = [name for name in request.names if name not in after]
    if unknown:
        raise PlanError(f"no component '{unknown[0]}' in {request.components} at HEAD {nearest(unknown[0], after)}")
    boards, unreadable = recorded_boards(repository, ("HEAD", *request.recorded), folder)
    plan.faults.extend(unreadable)
    untouched = 0
    for name, version in after.items():
        path = within(folder, f"{name}/leaderboard.json")
        if (request.names and name not in request.names) or any(problem.file == path for problem in unreadable):
            continue
        version = _numbered(version, request)
        earlier = version_before(before, version)
        version_problems = [] if request.drift else list(versioning_problems(earlier, version))
        plan.faults.extend(version_problems)
        board = newest_of(boards.get(component_name, {}) for component_name in (name, *version.formerly))
        chosen, skipped = list[OnModels](), list[OnModels]()
        for model_id in _models_of(version, models, request):
            runs, reason = False, "invalid version, see the faults"
            if request.drift:
                runs, reason = decide_again(version.version, board.get(model_id))
            elif not version_problems:
                runs, reason = decide(earlier, version, board.get(model_id), base_known=base_known)
            (chosen if runs else skipped).append(OnModels(skill=name, models=[model_id], reason=reason))
        if before.get(name) == version and not chosen:
            untouched += 1
            continue
        plan.chosen.extend(chosen)
        plan.skipped.extend(skipped)
    plan.skipped.extend(_deleted_cases(plan, request, repository))
    return untouched


def _numbered(version: ComponentVersion, request: PlanRequest) -> ComponentVersion:
    """Replace the version by the number that the records give it, if the prompt declares none."""
    if not version.version:
        return version
    digests = {"prompt": version.prompt or "", "schema": version.schema or ""}
    return replace(version, version=request.version_of(version.name, version.version, digests))


def _base_of(plan: Plan, request: PlanRequest, repository: Repository) -> tuple[str | None, bool]:
    """Return the commit to compare the head with, and whether the base of the push is known.

    The base is known if the commit exists here or is all zeros (first push). The id of a lost commit is unknown.
    """
    base = request.base or ""
    is_first_push = not base.strip("0")
    is_id = _FULL_ID.fullmatch(base) is not None
    if plan.base is None and not is_first_push and not is_id:
        raise PlanError(f"--base {base} is not a commit here; run git fetch, or use --base 0 for a new branch")
    # a branch stands for its merge base with the head
    commit = plan.base if plan.base is None or is_id else repository.merge_base(plan.base)
    return commit, plan.base is not None or is_first_push


def _deleted_cases(plan: Plan, request: PlanRequest, repository: Repository) -> Iterator[OnModels]:
    """Yield the components whose case files were deleted without a new version."""
    fixtures = request.fixtures or request.components.parent / "fixtures"
    if plan.base is None or plan.head is None or not fixtures.resolve().is_relative_to(repository.root.resolve()):
        return
    folder = repository.relative_path(fixtures)
    missing = repository.files(plan.base, folder).keys() - repository.files(plan.head, folder).keys()
    deleted = by_key((PurePosixPath(path).relative_to(folder).parts[0], path) for path in sorted(missing))
    running = {decision.skill for decision in plan.chosen}
    for name, paths in deleted.items():
        if name not in running and (request.components / name / "prompt.md").exists():
            reason = f"cases changed without a new version: {counted(len(paths), 'file')} deleted, as {paths[0]}"
            yield OnModels(skill=name, models=[model.id for model in request.configuration.models], reason=reason)


def _read_components(plan: Plan, request: PlanRequest, changed: set[str]) -> Iterator[PlannedEvaluation]:
    """Yield the chosen components on each model, and add skipped components and faults to the plan.

    A component that cannot be read is a fault, or an error if a person named it. `changed` has the paths that a pull
    request changes; a component that would run changed code is a fault, too.
    """
    repository = Repository(request.components)
    for skill, ids in by_key((decision.skill, decision.models[0]) for decision in plan.chosen).items():
        try:
            component = request.component(skill)
            archive = request.archive(component)
            cases = load_cases(component, request.fixtures)
            refusal = refusal_reason(archive.entries, component.version, component.digests["prompt"])
            if refusal is not None:
                raise PlanError(f"'{skill}' {refusal}")
            refuse_code(component, cases, repository.relative_path(request.components), changed)
        except SkillEvaluatorError as problem:
            if skill in request.names:
                raise
            empty = [f"the submodule {path} is empty" for path in repository.empty_submodules()]
            is_new = not (request.components / skill / "leaderboard.json").exists()
            if isinstance(problem, NotEvaluatedError) and is_new and not empty:
                plan.skipped.append(OnModels(skill=skill, models=ids, reason=str(problem)))
                continue
            path = prompt_file(request.components, skill, repository.relative_path(request.components))
            plan.faults.append(Problem(file=path, line=1, message="; ".join([str(problem), *empty])))
            continue
        yield from _on_models(plan, request, component, archive, cases, ids)


def _on_models(
    plan: Plan,
    request: PlanRequest,
    component: Component,
    archive: Archive,
    cases: Sequence[Case],
    ids: Sequence[str],
) -> Iterator[PlannedEvaluation]:
    """Yield the evaluation of a component on each model; cases and models that cannot run are added to the plan."""
    configuration, sizes = with_program(request.configuration, component), input_sizes(component, cases)
    settings, models = configuration.settings, {model.id: model for model in configuration.models}
    for model in (models[model_id] for model_id in ids if model_id in models):
        kind = configuration.kinds[model.provider]
        excluded = not_applicable(cases, sizes, model, kind)
        if excluded:
            cases_with_reasons = listed([f"{case_id} ({reason})" for case_id, reason in excluded.items()])
            reason = f"{len(excluded)} of {counted(len(cases), 'case')} not applicable: {cases_with_reasons}"
            plan.skipped.append(OnModels(skill=component.name, models=[model.id], reason=reason))
        applicable = {case.id: case for case in cases if case.id not in excluded}
        if not applicable:
            continue
        try:
            judge, _ = judge_of(component, applicable.values(), (model,), request.configuration.models, settings)
        except SkillEvaluatorError as problem:
            plan.skipped.append(OnModels(skill=component.name, models=[model.id], reason=str(problem)))
            continue
        seed = settings.seed if request.seed is None else request.seed
        if request.drift and request.seed is None:
            seed = fresh_seed(archive, model.id, versions_patched_to(archive.entries, component.version), seed)
        wanted = PlannedEvaluation(
            component=component,
            model=model,
            kind=kind,
            cases=applicable,
            not_applicable=excluded,
            sizes=sizes,
            replicates=request.replicates or settings.replicates,
            seed=seed,
            judge=None if judge is None else (judge, configuration.kinds[judge.provider]),
        )
        if settings.policy.design == "beside" and not request.drift:
            wanted = with_baseline(wanted, archive, settings.policy, fresh=request.seed is None)
        yield wanted
