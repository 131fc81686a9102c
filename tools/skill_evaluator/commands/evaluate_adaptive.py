"""`evaluate --adaptive`: the looks at a run while its calls are made, and what its record says of them."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skill_evaluator.commands.evaluate_inputs import Inputs
from skill_evaluator.commands.evaluate_options import EvaluateOptions
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of
from skill_evaluator.records.record import AdaptiveLooks, Record
from skill_evaluator.records.selection import why_no_lower
from skill_evaluator.runner.journal import Looks, Manifest
from skill_evaluator.runner.runs import Run
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.rules import VerdictRules, rules_for
from skill_evaluator.verdicts.history.baselines import pair_of, usual_baseline

if TYPE_CHECKING:  # numpy is imported where a run is looked at
    from skill_evaluator.evaluation.adaptive import Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookout:
    """Looks at one run between its replicates. `models`: those that are run beside it."""

    run: Run
    scorer: Scorer
    inputs: Inputs
    archive: Archive
    baseline: RecordedRun
    rules: VerdictRules
    models: int
    looks: "tuple[Look, ...]"

    def look(self, after: int) -> Looks:
        """Return the looks up to this one, and what it settles; no call of the run may be in flight."""
        from skill_evaluator.evaluation.adaptive import HELD_OUT, settled_between

        candidate = _so_far(self.run, self.scorer, self.inputs, after)
        pair = pair_of(candidate, self.baseline, self.archive, self.rules.policy)
        pair = replace(pair, candidate_again=())  # a look is at the run that is asked, and no earlier one
        (look,) = (look for look in self.looks if look.after == after)
        verdict = settled_between(pair, self.rules, look, self.models)
        return Looks(
            after=tuple(look.after for look in self.looks if look.after <= after),
            against=self.baseline.run_id,
            verdict=verdict,
            enough=after + HELD_OUT if verdict else None,
        )


def lookout_for(run: Run, scorer: Scorer, inputs: Inputs, options: EvaluateOptions, models: int) -> Lookout | None:
    """Return who looks at an adaptive run; None, with a line on stderr, for one that cannot be compared."""
    if not run.manifest.adaptive:
        return None
    from skill_evaluator.evaluation.adaptive import looks_of

    archive = Archive(inputs.component)
    candidate = _so_far(run, scorer, inputs, run.manifest.replicates)
    entry = entry_of(candidate)
    baseline = usual_baseline(entry, archive, inputs.settings.policy)
    against = None if baseline is None else archive.record(baseline)
    absent = why_no_lower(archive.entries, entry)
    reason = next(_find_obstacles(against, candidate, inputs, absent), None)
    if reason is not None or baseline is None:
        print(f"{run.model.id}: --adaptive saves nothing, all replicates are asked: {reason}", file=sys.stderr)
        return None
    return Lookout(
        run=run,
        scorer=scorer,
        inputs=inputs,
        archive=archive,
        baseline=baseline,
        rules=rules_for(inputs.settings, options.config, candidate),
        models=models,
        looks=looks_of(run.manifest.replicates),
    )


def with_looks(record: Record, manifest: Manifest) -> Record:
    """Return the record of a run; of an adaptive one with the looks at it, and its means corrected for them."""
    looks = manifest.looks
    if looks is None:
        return record
    from skill_evaluator.evaluation.adaptive import corrected_means

    adaptive = AdaptiveLooks(
        planned_replicates=manifest.replicates,
        looks=list(looks.after),
        verdict=looks.verdict,
        against=looks.against,
        corrected=corrected_means(record, looks.after[-1]) if record.complete else {},
    )
    return record.model_copy(update={"adaptive": adaptive})


def _find_obstacles(baseline: Record | None, candidate: Record, inputs: Inputs, absent: str) -> Iterator[str]:
    """Yield the reasons why no number of replicates would settle a verdict."""
    if baseline is None:
        yield absent
        return
    if inputs.settings.policy.gate == "beyond":
        yield "the policy asks what holds beyond these cases, which cases tell and replicates do not"
    common = common_part(baseline, candidate, any_served=inputs.settings.policy.served == "any")
    yield from common.barriers
    if not common.cases:
        yield "no case is the same in both"


def _so_far(run: Run, scorer: Scorer, inputs: Inputs, replicates: int) -> Record:
    """Return what the record would be if no more than these replicates were asked."""
    recorder = Recorder(component=inputs.component, settings=inputs.settings, kinds=inputs.kinds)
    return recorder.record(run.model, run.manifest, scorer.scorecard(replicates))
