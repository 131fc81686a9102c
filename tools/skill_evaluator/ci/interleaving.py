"""Work that is asked with its baseline beside it (`policy.design: beside`): the prompt that it is compared with.

The commit of that prompt is planned, since a job sees neither the branch of records nor the plan.
"""

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.ci.matrix import Wanted
from skill_evaluator.ci.plan import PlannedBaseline
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.designs import find_baseline, fresh_seed, past_prompt_of
from skill_evaluator.library.cases import Case
from skill_evaluator.library.config import Policy
from skill_evaluator.library.versions import component_at, find_prompt
from skill_evaluator.records.archive import Archive
from skill_evaluator.repository import Repository
from skill_evaluator.runner.prices import input_sizes
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.stats import total_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """Where records are: in the work tree, and at some refs of its repository."""

    repository: Repository
    refs: Sequence[str]


def beside_baselines(
    wanted: Iterable[Wanted], cases: Sequence[Case], recordings: Recordings, policy: Policy, *, fresh: bool
) -> list[Wanted]:
    """Return work with the baseline of each beside it; as it is, with a warning, where that cannot be asked.

    `fresh`: with a seed that neither version was asked with.
    """
    paired = []
    for alone in wanted:
        try:
            paired.append(_beside_baseline(alone, cases, recordings, policy, fresh))
        except SkillEvaluatorError as problem:
            where = f"{alone.component.name} on {alone.model.id}"
            print(f"warning: {where} is asked without its baseline: {problem}", file=sys.stderr)
            paired.append(alone)
    return paired


def affordable(
    wanted: Sequence[Wanted], batched: Collection[str], others: Iterable[float | None], cap_usd: float | None
) -> list[Wanted]:
    """Return work without baselines, with a warning, where a cap is enough for it and the `others` costs alone."""
    alone = [replace(each, beside=None, sizes_beside={}) for each in wanted]
    if cap_usd is None or alone == wanted:
        return list(wanted)
    rest = total_or_none(others)
    one, both = (
        total_or_none(
            [rest, *(each.estimate(each.cases, batch=each.model.id in batched).cost_upper_usd for each in work)]
        )
        for work in (alone, wanted)
    )
    if one is None or both is None or not one <= cap_usd < both:
        return list(wanted)
    print(
        f"warning: baselines are not asked: ${cap_usd:,.2f} is enough for the new versions (at most ${one:,.2f}), not "
        f"for both (${both:,.2f})",
        file=sys.stderr,
    )
    return alone


def _beside_baseline(
    wanted: Wanted, cases: Sequence[Case], recordings: Recordings, policy: Policy, fresh: bool
) -> Wanted:
    component, model = wanted.component, wanted.model
    archive = Archive(component, recordings.repository, recordings.refs)
    entry = find_baseline(component, model, archive, policy)
    if entry is None or model.provider == "replay":  # which answers every prompt alike
        return wanted
    commit = find_prompt(component, past_prompt_of(archive.record(entry))).commit
    again, _ = component_at(component, commit)
    seed = fresh_seed(archive, model.id, (again.version, component.version), wanted.seed) if fresh else wanted.seed
    return replace(
        wanted,
        seed=seed,
        beside=PlannedBaseline(skill_version=again.version, commit=commit, digests=input_digests(again, model)),
        sizes_beside=input_sizes(again, cases),
    )
