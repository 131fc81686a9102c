"""The runs that a push or a person asks for → plan.json: every job, with the reasons and the cost.

No call is made and no key is needed. The runs of a push are decided without reading a case: by its own bump (base to
head) and by what the leaderboards record, so that the next push makes up for a lost run.
"""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from skill_evaluator import __version__
from skill_evaluator.ci.before_merge import changed_paths, refusals, refuse_code
from skill_evaluator.ci.matrix import (
    CheckJudge,
    Checkout,
    Wanted,
    affordable,
    beside_baselines,
    capped,
    packed,
    runs_of,
    with_limits,
)
from skill_evaluator.ci.plan import OnModels, Plan
from skill_evaluator.display.options import Names, OnlyModels, PlatformOption, option, options, rare
from skill_evaluator.errors import GitError, LeaderboardError, NotEvaluatedError, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.designs import fresh_seed
from skill_evaluator.evaluation.inputs import judge_of
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, retiring, select_models
from skill_evaluator.library.sources import component_names, prompt_file
from skill_evaluator.library.versions import (
    Bump,
    ComponentVersion,
    Problem,
    breaks_contract,
    bump,
    needs_evaluation,
    read_version,
    read_versions,
    version_before,
    versioning_problems,
)
from skill_evaluator.providers import asking, program
from skill_evaluator.records.archive import Archive, RecordedRun, why_refused
from skill_evaluator.records.leaderboard import newest_recorded
from skill_evaluator.records.record import short_digest
from skill_evaluator.records.selection import versions_patched_to
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.prices import forecasts_of, input_sizes, not_applicable
from skill_evaluator.runner.runs import new_invocation
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed, nearest

_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@options
class PlanRequest(Checkout, PlatformOption):
    """The options of `plan`. If `base` is None a person started it, and the version-bump rule does not apply."""

    names: Names = ()
    base: str | None = option(
        "The commit before the push: MINOR and MAJOR bumps since then run. Default: all that is named runs.",
        metavar="COMMIT",
    )
    models: OnlyModels = ()
    replicates: int | None = option("Answers per case and model.", None, "-n")
    seed: int | None = rare("Seed of the replicates' seeds.")
    max_cost: float | None = option("What all jobs together may cost.", metavar="USD")
    pull_request: str | None = rare(
        "Plan drafts of a pull request, by its merge commit: HEAD or a commit that HEAD applies to a branch.",
        metavar="COMMIT",
    )
    drift: bool = rare("Ask the recorded versions again, to see whether a model moved.", False)
    dry_run: bool = rare("Plan jobs that make no call.", False)


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan for a request; raise SkillEvaluatorError if it cannot be made."""
    if request.drift and (request.base is not None or request.pull_request is not None):
        raise PlanError("--drift runs the recorded versions: it cannot be combined with --base or --pull-request")
    refuse_amounts({"--replicates": request.replicates}, None, request.max_cost)
    models = select_models(request.configuration.models, request.models)
    changed = set[str]()
    if request.pull_request is not None:
        repository, limits = Repository(request.components), request.configuration.settings.jobs
        changed = changed_paths(repository, request.pull_request)
        caps = [cap for cap in (limits.max_cost, request.max_cost) if cap is not None]
        request = replace(request, base=repository.commit("HEAD^1"), max_cost=min(caps, default=None))
        settings = repository.place(request.config / "settings.yaml")
        if refused := list(refusals(changed, settings, limits)):
            return _cut(request, models, _Choice(decisions=[], problems=refused), changed)
    if request.base is None and not request.drift:
        names = request.names or component_names(request.components)
        if not names:
            raise PlanError(f"{request.components} holds no component; name its folder with --components DIR")
        decisions = [
            Decision(skill=name, model_id=model_id, runs=True, reason="started by hand")
            for name in dict.fromkeys(names)
            for model_id in _asked_of(read_version(request.components / name, name), models, request)
        ]
        choice = _Choice(decisions=decisions, problems=[])
    else:
        choice = _choose_by_record(request, models)
    return _cut(request, models, choice, changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadComponents:
    """The components that were read: runs to plan, components with reasons not to run, and problems."""

    wanted: list[Wanted] = field(default_factory=list)
    faults: list[Problem] = field(default_factory=list)
    not_evaluated: list[OnModels] = field(default_factory=list)


def _read_components(request: PlanRequest, decisions: "Sequence[Decision]", changed: set[str]) -> _ReadComponents:
    """Read every component that should run; a component that cannot be read is a fault, unless a person named it.

    `changed` are the paths that a pull request changes; what would run code of it is a fault.
    """
    read, repository = _ReadComponents(), Repository(request.components)
    for skill in dict.fromkeys(decision.skill for decision in decisions if decision.runs):
        ids = [decision.model_id for decision in decisions if decision.runs and decision.skill == skill]
        try:
            component = request.component(skill)
            archive = request.archive(component)
            cases = load_cases(component, request.fixtures)
            why = why_refused(archive.entries, component.version, component.digests["prompt"])
            if why is not None:
                raise PlanError(f"'{skill}' {why}")
            refuse_code(component, cases, repository.place(request.components), changed)
        except SkillEvaluatorError as problem:
            if skill in request.names:
                raise
            is_new = not (request.components / skill / "leaderboard.json").exists()
            if isinstance(problem, NotEvaluatedError) and is_new and not repository.empty_submodules():
                read.not_evaluated.append(OnModels(skill=skill, models=ids, reason=str(problem)))
                continue
            place = prompt_file(request.components, skill, repository.place(request.components))
            words = [str(problem), *(f"the submodule {path} is empty" for path in repository.empty_submodules())]
            read.faults.append(Problem(file=place, line=1, message="; ".join(words)))
            continue
        by_id = {model.id: model for model in asking(request.configuration, component).models}
        chosen = [by_id[model_id] for model_id in ids if model_id in by_id]
        wanted, not_evaluated = _on_models(chosen, component, cases, archive, request)
        read.not_evaluated.extend(not_evaluated)
        if request.configuration.settings.policy.design == "beside" and not request.drift:
            wanted = beside_baselines(wanted, cases, request, fresh=request.seed is None)
        for pair in wanted:
            try:
                read.wanted.append(replace(pair, judge=_judge_of(pair, cases, request)))
            except SkillEvaluatorError as problem:
                read.not_evaluated.append(OnModels(skill=skill, models=[pair.model.id], reason=str(problem)))
    return read


def _judge_of(pair: Wanted, cases: Sequence[Case], request: PlanRequest) -> CheckJudge | None:
    """Return the judge of the checks with `expect` of a run, or None if it has none; raise ConfigError."""
    mine, configuration = tuple(case for case in cases if case.id in pair.cases), request.configuration
    judge, _ = judge_of(pair.component, mine, (pair.model,), configuration.models, configuration.settings)
    return None if judge is None else CheckJudge(model=judge, kind=configuration.kinds[judge.provider], cases=mine)


def _asked_of(version: ComponentVersion | None, models: Sequence[Model], request: PlanRequest) -> list[str]:
    """Return the ids of what a component is to be asked: of the models, or if it is a program, that of programs."""
    if version is None or version.program is None:
        return [model.id for model in models]
    return [] if request.models else [program.MODEL.id]


def _on_models(
    models: Sequence[Model], component: Component, cases: Sequence[Case], archive: Archive, request: PlanRequest
) -> tuple[list[Wanted], list[OnModels]]:
    """Return a component on each model that a case is applicable to, and where cases are left out, and why."""
    configuration, sizes = asking(request.configuration, component), input_sizes(component, cases)
    wanted, skipped = [], []
    for model in models:
        kind = configuration.kinds[model.provider]
        left_out = not_applicable(cases, sizes, model, kind)
        if left_out:
            named = listed([f"{case_id} ({why})" for case_id, why in left_out.items()])
            reason = f"{len(left_out)} of {counted(len(cases), 'case')} not applicable: {named}"
            skipped.append(OnModels(skill=component.name, models=[model.id], reason=reason))
        applicable = {case.id: case.digest for case in cases if case.id not in left_out}
        seed = configuration.settings.seed if request.seed is None else request.seed
        if request.drift and request.seed is None:
            seed = fresh_seed(archive, model.id, versions_patched_to(archive.entries, component.version), seed)
        if applicable:
            wanted.append(
                Wanted(
                    component=component,
                    model=model,
                    kind=kind,
                    cases=applicable,
                    not_applicable=left_out,
                    sizes=sizes,
                    replicates=request.replicates or configuration.settings.replicates,
                    seed=seed,
                )
            )
    return wanted, skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The components and models to evaluate, not read yet, with what is wrong and how many need nothing."""

    decisions: "Sequence[Decision]"
    problems: Sequence[Problem]
    untouched: int = 0


def _choose_by_record(request: PlanRequest, models: Sequence[Model]) -> _Choice:
    """Choose what a push asks for, or with `--drift` what is recorded as it is."""
    repository = Repository(request.components)
    head = repository.commit("HEAD")
    if head is None:
        raise GitError(f"{repository.root} has no commit yet")
    folder = repository.place(request.components)
    named = request.base or ""
    base = repository.commit(named)
    is_first_push = not named.strip("0")  # zeros say that there was no commit before
    if base is None and not is_first_push and not _FULL_ID.fullmatch(named):
        raise PlanError(f"--base {named} is not a commit here; for a branch that was never pushed use --base 0")
    left = base if base is None or _FULL_ID.fullmatch(named) else repository.merge_base(base)  # a name is of a branch
    before, after = read_versions(repository, (left, head), folder)
    unknown = [name for name in request.names if name not in after]
    if unknown:
        raise PlanError(f"no component '{unknown[0]}' in {request.components} at HEAD {nearest(unknown[0], after)}")
    boards, problems = recorded_boards(repository, ("HEAD", *request.recorded), folder)
    decisions: list[Decision] = []
    untouched = 0
    for name, version in after.items():
        if request.names and name not in request.names:
            continue
        if version.version:
            digests = {"prompt": version.prompt or "", "schema": version.schema or ""}
            version = replace(version, version=request.version_of(name, version.version, digests))
        change = PushedComponent(
            after=version,
            before=version_before(before, version),
            base_known=base is not None or is_first_push,  # an id may be of a commit that is lost
            board=newest_of(boards.get(each, {}) for each in (name, *version.formerly)),
        )
        ids = _asked_of(version, models, request)
        decided, wrong = (decide_again(change, ids), []) if request.drift else decide(change, ids)
        problems += wrong
        if before.get(name) == version and not any(each.runs for each in decided):
            untouched += 1
        else:
            decisions += decided
    decisions += _deleted_cases(request, repository, base, head, [one.skill for one in decisions if one.runs])
    broken = {problem.file for problem in problems}
    return _Choice(
        decisions=[
            decision for decision in decisions if within(folder, f"{decision.skill}/leaderboard.json") not in broken
        ],
        problems=problems,
        untouched=untouched,
    )


def _deleted_cases(
    request: PlanRequest, repository: Repository, base: str | None, head: str, running: Sequence[str]
) -> "list[Decision]":
    """Return a decision not to run for each component that lost files of its cases without a new version."""
    fixtures = request.fixtures or request.components.parent / "fixtures"
    if base is None or not fixtures.resolve().is_relative_to(repository.root.resolve()):
        return []
    folder = repository.place(fixtures)
    gone = repository.files(base, folder).keys() - repository.files(head, folder).keys()
    deleted = by_key((PurePosixPath(path).relative_to(folder).parts[0], path) for path in sorted(gone))
    return [
        Decision(
            skill=name,
            model_id=model.id,
            runs=False,
            reason=f"cases changed without a new version: {counted(len(paths), 'file')} deleted, as {paths[0]}",
        )
        for name, paths in deleted.items()
        if name not in running and (request.components / name / "prompt.md").exists()
        for model in request.configuration.models
    ]


def _cut(request: PlanRequest, models: Sequence[Model], choice: _Choice, changed: set[str]) -> Plan:
    """Read the chosen components, and return the plan of their runs and jobs."""
    now = datetime.datetime.now(datetime.UTC)
    read = _read_components(request, choice.decisions, changed)
    repository, configuration = Repository(request.components), request.configuration
    settings = configuration.settings
    max_cost = settings.jobs.max_cost if request.max_cost is None else request.max_cost
    wanted = affordable(read.wanted, max_cost)
    pairs = {(pair.component.name, pair.model.id): pair for pair in wanted}
    runs = capped(runs_of(wanted, settings.jobs), max_cost)
    minutes = {run.id: pairs[run.skill, run.model_id].minutes(run.calls) for run in runs}
    jobs = packed(runs, minutes, settings.jobs)
    return Plan(
        invocation=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        trigger="drift" if request.drift else "dispatch" if request.base is None else "push",
        base=None if request.base is None else repository.commit(request.base),
        head=repository.commit("HEAD"),
        dry_run=request.dry_run,
        draft=request.pull_request is not None,
        runs=with_limits(runs, jobs, configuration),
        jobs=jobs,
        chosen=grouped(one for one in choice.decisions if one.runs and (one.skill, one.model_id) in pairs),
        skipped=[*grouped(one for one in choice.decisions if not one.runs), *read.not_evaluated],
        untouched=choice.untouched,
        faults=[*choice.problems, *read.faults],
        evaluator_version=__version__,
        forecast=forecasts_of(estimate for pair in wanted for estimate in pair.estimates(pair.cases)) if runs else [],
        retiring=retiring(models),
    )


Board = Mapping[str, RecordedRun]
"""The newest version on a component's leaderboard, by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a component is evaluated on a model."""

    skill: str
    model_id: str
    runs: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedComponent:
    """A component at the head of a push and at its base, and its recorded versions.

    Without a known base (a force push) `before` says nothing, and only the recorded versions count.
    """

    after: ComponentVersion
    before: ComponentVersion | None
    base_known: bool
    board: Board


def decide(change: PushedComponent, model_ids: Iterable[str]) -> tuple[list[Decision], list[Problem]]:
    """Return a decision for every model, and the problems of the change; where there are problems, nothing runs."""
    problems = list(versioning_problems(change.before, change.after))
    version = change.after.version
    decisions = []
    for model_id in model_ids:
        recorded = change.board.get(model_id)
        if problems or version is None:
            runs, reason = False, "wrong, see below"
        elif recorded is None:
            runs, reason = _decide_by_push(change, version)
        else:
            runs, reason = _decide_by_record(change, version, recorded)
        decisions.append(Decision(skill=change.after.name, model_id=model_id, runs=runs, reason=reason))
    return decisions, problems


def decide_again(change: PushedComponent, model_ids: Iterable[str]) -> list[Decision]:
    """Return a decision for every model: the version at the head is asked again if it, or what it patches, is recorded.

    After a PATCH the prompt at the head is asked, not the recorded one: that is what is in use.
    """
    decisions = []
    for model_id in model_ids:
        recorded, version = change.board.get(model_id), change.after.version
        step = None if recorded is None or version is None else bump(recorded.version, version)
        runs, reason = step in (Bump.SAME, Bump.PATCH), f"{version} is not recorded"
        if recorded is not None and runs:
            reason = f"{version} is recorded" if step is Bump.SAME else f"PATCH since the recorded {recorded.version}"
        decisions.append(Decision(skill=change.after.name, model_id=model_id, runs=runs, reason=reason))
    return decisions


def _decide_by_record(change: PushedComponent, version: str, recorded: RecordedRun) -> tuple[bool, str]:
    step = bump(recorded.version, version)
    if step is Bump.SAME:
        return False, f"{version} is recorded"
    if step is Bump.LOWERED:
        return False, f"{version} is below the recorded {recorded.version}"
    if not needs_evaluation(step):
        return False, f"{step} since the recorded {recorded.version}"
    schema = change.after.schema and short_digest(change.after.schema)
    recorded_schema = recorded.digests.get("schema")
    schema_changed = None not in (recorded_schema, schema) and recorded_schema != schema
    if schema_changed and not breaks_contract(recorded.version, version):
        return False, f"the schema is not that of the recorded {recorded.version}, which asks for a new MAJOR version"
    before = change.before.version if change.base_known and change.before else None
    asked_by_push = before is None or needs_evaluation(bump(before, version))
    return True, f"{step} {recorded.version} → {version}{'' if asked_by_push else f' ({version} was never recorded)'}"


def _decide_by_push(change: PushedComponent, version: str) -> tuple[bool, str]:
    if not change.base_known:
        return False, "no record of this model, and the base of this push is unknown; start it by hand"
    before = change.before.version if change.before else None
    if change.before is not None and before is None:
        return True, f"{version}, after a version that could not be read"
    step = bump(before, version)
    if step is Bump.NEW:
        return True, f"new component at {version}"
    if needs_evaluation(step):
        return True, f"{step} {before} → {version}"
    change_in_words = "unchanged" if step is Bump.SAME else f"{step} {before} → {version}"
    return False, f"{change_in_words}; no record of this model yet: start it by hand to have one"


def grouped(decisions: Iterable[Decision]) -> list[OnModels]:
    """Return what is decided alike once, with all its models, in the order of the decisions."""
    groups = by_key(((decision.skill, decision.reason), decision.model_id) for decision in decisions)
    return [OnModels(skill=skill, models=models, reason=reason) for (skill, reason), models in groups.items()]


def recorded_boards(
    repository: Repository, refs: Iterable[str], folder: str
) -> tuple[dict[str, dict[str, RecordedRun]], list[Problem]]:
    """Return the newest recorded version by component and model over the leaderboards of some commits, and problems.

    A commit that is not here is left out; a leaderboard that cannot be read is a problem.
    """
    commits = dict.fromkeys(filter(None, (repository.commit(ref) for ref in refs)))
    blobs = [
        (path, blob)
        for commit in commits
        for path, blob in repository.files(commit, folder).items()
        if path.endswith("/leaderboard.json") and path.count("/") == within(folder, "name/leaderboard.json").count("/")
    ]
    texts = repository.contents(blob for _, blob in blobs)
    boards: dict[str, dict[str, RecordedRun]] = {}
    problems: dict[tuple[str, str], Problem] = {}
    for path, blob in dict.fromkeys(blobs):
        try:
            newest = newest_recorded(texts[blob], path)
        except LeaderboardError as problem:
            problems[path, str(problem)] = Problem(file=path, line=1, message=str(problem))
            continue
        name = PurePosixPath(path).parent.name
        boards[name] = newest_of((boards.get(name, {}), newest))
    return boards, list(problems.values())


def newest_of(boards: Iterable[Board]) -> dict[str, RecordedRun]:
    """Return the highest recorded version of each model over several leaderboards."""
    newest: dict[str, RecordedRun] = {}
    for model_id, recorded in (item for board in boards for item in board.items()):
        highest = newest.get(model_id)
        if highest is None or bump(recorded.version, highest.version) is Bump.LOWERED:
            newest[model_id] = recorded
    return newest
