"""`evaluate` of several components: which are ready and what all of them cost, then each of them, one after the other.

A component that is not ready, or fails, takes none of the others with it.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

from skill_evaluator.display import with_progress
from skill_evaluator.errors import ComponentError, ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.evaluation.dry_run import DryRun, dry_run
from skill_evaluator.evaluation.pipeline import Evaluation, EvaluationResult, WriteReport
from skill_evaluator.evaluation.request import ManyRequest
from skill_evaluator.library.sources import component_names
from skill_evaluator.library.versions import bump, needs_evaluation, read_version, read_versions
from skill_evaluator.providers.redaction import attempted
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyPlanned:
    """The components to evaluate, with calls and cost, and by name the errors of the others."""

    ready: Sequence[DryRun]
    left_out: Mapping[str, SkillEvaluatorError]

    @property
    def calls(self) -> int:
        """The number of calls of all components."""
        return sum(estimate.calls for each in self.ready for estimate in each.estimates)

    @property
    def cost_at_most_usd(self) -> float | None:
        """The maximum cost of all components in USD; None if a price is unknown."""
        return total_or_none(estimate.cost_upper_usd for each in self.ready for estimate in each.estimates)


def plan_many(request: ManyRequest) -> ManyPlanned:
    """Return the components that are ready, among those that match a pattern or changed; raise if no name matches."""
    names = component_names(request.components)
    chosen = [name for name in names if fnmatchcase(name, request.skill or "*")]
    if not chosen:
        raise ComponentError(f"no component matches '{request.skill or '*'}' {nearest(request.skill, names)}")
    if request.changed:
        chosen = _changed(request, chosen, request.base)
    elif request.base is not None:
        raise ConfigError("--base requires --changed")
    ready: list[DryRun] = []
    left_out: dict[str, SkillEvaluatorError] = {}
    for name in with_progress(chosen, len(chosen), "components"):
        asked = replace(request, skill=name, dry_run=request.resumed is None)
        plan = attempted(name, partial(dry_run, asked))
        if isinstance(plan, SkillEvaluatorError):
            left_out[name] = plan
        else:
            ready.append(plan)
    if left_out and not ready and all(isinstance(problem, ConfigError) for problem in left_out.values()):
        raise next(iter(left_out.values()))  # models.yaml or an option, which is wrong for all
    return ManyPlanned(ready=ready, left_out=left_out)


def _changed(request: ManyRequest, names: Sequence[str], ref: str | None) -> list[str]:
    """Return the components that changed since HEAD left a commit, by default the main branch; say since when."""
    repository = Repository(request.components if request.components.exists() else request.config)
    main, head = ref or repository.main_branch() or "", repository.commit("HEAD")
    tip = next(filter(None, map(repository.commit, [ref] if ref else [f"origin/{main}", main])), None)
    base = tip and repository.merge_base(tip)
    if base is None or (base == head and not ref and repository.is_shallow):
        what = f"--base {ref} is not a commit here" if ref else "found no commit where HEAD left the main branch"
        raise GitError(f"{what}; fetch more (`fetch-depth: 0` in CI), or name a commit: --changed --base COMMIT")
    folder = repository.place(request.components)
    (before,) = read_versions(repository, (base,), folder)
    changed = []
    for name in names:
        then, now = before.get(name), read_version(request.components / name, within(folder, name))
        rose = now and now.version and needs_evaluation(bump(then.version if then else None, now.version))
        if rose or then is None or now is None or (then.prompt, then.schema) != (now.prompt, now.schema):
            changed.append(name)
    since = f"HEAD, which {main} has, too" if base == head else f"{base[:12]}, where HEAD left {main}"
    of_all = f"{counted(len(names) - len(changed), 'component')} of {len(names):,} not asked"
    print(f"{of_all}: prompt, schema and version are as at {since}", file=sys.stderr)
    return changed


def evaluate_many(
    request: ManyRequest, planned: ManyPlanned, watch: Watch, write_report: WriteReport
) -> dict[str, EvaluationResult | SkillEvaluatorError]:
    """Evaluate each component that is ready, under shared limits; return its result or its error by name."""
    results: dict[str, EvaluationResult | SkillEvaluatorError] = {}
    for each in planned.ready:
        name = each.component.name
        evaluation = Evaluation(replace(request, skill=name), watch)
        results[name] = result = attempted(name, partial(evaluation.run, write_report))
        if isinstance(result, EvaluationResult):
            request = result.remaining(request)
    return results
