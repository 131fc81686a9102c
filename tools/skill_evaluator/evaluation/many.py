"""`evaluate` of several components: plan all of them with their total cost, then evaluate one after the other.

A component that is not ready or fails does not stop the others.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

from skill_evaluator.display import with_progress
from skill_evaluator.errors import ComponentError, ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.evaluation.dry_run import DryRun, dry_run
from skill_evaluator.evaluation.pipeline import EvaluationResult, WriteReport, evaluate
from skill_evaluator.evaluation.request import ManyRequest
from skill_evaluator.library.sources import component_names
from skill_evaluator.library.versions import bump, needs_evaluation, read_version, read_versions
from skill_evaluator.providers.redaction import result_or_error
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyPlanned:
    """The dry runs of the components to evaluate, and the errors of the other components by name."""

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
    """Plan the components that match the pattern and, with `--changed`, differ from the base commit.

    Raise ComponentError if none matches.
    """
    all_names = component_names(request.components)
    names = [name for name in all_names if fnmatchcase(name, request.skill or "*")]
    if not names:
        raise ComponentError(f"no component matches '{request.skill or '*'}' {nearest(request.skill, all_names)}")
    if request.changed:
        names = _changed(request, names, request.base)
    elif request.base is not None:
        raise ConfigError("--base requires --changed")
    ready: list[DryRun] = []
    left_out: dict[str, SkillEvaluatorError] = {}
    for name in with_progress(names, len(names), "components"):
        component_request = replace(request, skill=name, dry_run=request.resumed is None)
        plan = result_or_error(name, partial(dry_run, component_request))
        if isinstance(plan, SkillEvaluatorError):
            left_out[name] = plan
        else:
            ready.append(plan)
    if left_out and not ready and all(isinstance(problem, ConfigError) for problem in left_out.values()):
        raise next(iter(left_out.values()))  # models.yaml or an option is wrong for all components
    return ManyPlanned(ready=ready, left_out=left_out)


def _changed(request: ManyRequest, names: Sequence[str], ref: str | None) -> list[str]:
    """Return the components that changed since the merge base of HEAD and `ref`, by default the main branch."""
    repository = Repository(request.components if request.components.exists() else request.config)
    main, head = ref or repository.main_branch() or "", repository.commit("HEAD")
    tip = next(filter(None, map(repository.commit, [ref] if ref else [f"origin/{main}", main])), None)
    base = tip and repository.merge_base(tip)
    if base is None or (base == head and not ref and repository.is_shallow):
        message = f"--base {ref} is not a commit here" if ref else "found no merge base of HEAD and the main branch"
        raise GitError(f"{message}; fetch more (`fetch-depth: 0` in CI), or name a commit: --changed --base COMMIT")
    folder = repository.relative_path(request.components)
    (versions,) = read_versions(repository, (base,), folder)
    changed = []
    for name in names:
        old, new = versions.get(name), read_version(request.components / name, within(folder, name))
        is_bumped = new and new.version and needs_evaluation(bump(old.version if old else None, new.version))
        if is_bumped or old is None or new is None or (old.prompt, old.schema) != (new.prompt, new.schema):
            changed.append(name)
    description = f"HEAD, which {main} also has" if base == head else f"{base[:12]}, the merge base with {main}"
    counts = f"{counted(len(names) - len(changed), 'component')} of {len(names):,} skipped"
    print(f"{counts}: prompt, schema and version are unchanged since {description}", file=sys.stderr)
    return changed


def evaluate_many(
    request: ManyRequest, planned: ManyPlanned, watch: Watch, write_report: WriteReport
) -> dict[str, EvaluationResult | SkillEvaluatorError]:
    """Evaluate the planned components under shared limits. Return the result or the error of each by name."""
    results: dict[str, EvaluationResult | SkillEvaluatorError] = {}
    for plan in planned.ready:
        name = plan.component.name
        run = partial(evaluate, replace(request, skill=name), watch, write_report)
        results[name] = result = result_or_error(name, run)
        if isinstance(result, EvaluationResult):
            request = result.remaining(request)
    return results
