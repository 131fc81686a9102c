"""`evaluate --adaptive`: the lower version that a run is compared with while its calls are made."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from skill_evaluator.commands.evaluate_inputs import EvaluateOptions, Inputs
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import next_lower
from skill_evaluator.runner.runs import Run
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.verdicts.comparability import Pair, common_part
from skill_evaluator.verdicts.rules import VerdictRules, rules_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookout:
    """Looks at one run between its replicates. `shares`: by replicates asked, the part of the error of that look."""

    run: Run
    scorer: Scorer
    inputs: Inputs
    baseline: Record
    rules: VerdictRules
    models: int
    shares: dict[int, float]

    def is_settled(self, after: int) -> bool:
        """Return whether this many replicates settle the verdict; no call of the run may be in flight."""
        from skill_evaluator.verdicts.adaptive import settled_between

        pair = Pair(baseline=self.baseline, candidate=_so_far(self.run, self.scorer, self.inputs, after))
        return settled_between(pair, self.rules, self.shares[after], self.models) is not None


def lookout_for(run: Run, scorer: Scorer, inputs: Inputs, options: EvaluateOptions, models: int) -> Lookout | None:
    """Return who looks at an adaptive run; None, with a line on stderr, for one that cannot be compared."""
    if not run.manifest.adaptive:
        return None
    from skill_evaluator.verdicts.adaptive import looks_of

    archive = Archive(inputs.component)
    manifest = run.manifest
    entry = RecordedRun(
        run_id=manifest.run_id,
        version=manifest.skill_version,
        model_id=manifest.model_id,
        scenario=manifest.scenario,
        complete=False,
        timestamp=manifest.created,
    )
    lower = next_lower(archive.entries, entry)
    baseline = None if lower is None else archive.record(lower)
    candidate = _so_far(run, scorer, inputs, run.manifest.replicates)
    reason = next(_find_obstacles(baseline, candidate, inputs), None)
    if reason is not None or baseline is None:
        print(f"{run.model.id}: --adaptive saves nothing, all replicates are asked: {reason}", file=sys.stderr)
        return None
    return Lookout(
        run=run,
        scorer=scorer,
        inputs=inputs,
        baseline=baseline,
        rules=rules_for(inputs.settings, options.config, candidate),
        models=models,
        shares={look.after: look.share for look in looks_of(run.manifest.replicates)},
    )


def _find_obstacles(baseline: Record | None, candidate: Record, inputs: Inputs) -> Iterator[str]:
    """Yield the reasons why no number of replicates would settle a verdict."""
    if baseline is None:
        yield "there is no complete record of a lower version to compare with"
        return
    if inputs.settings.policy.gate != "fixtures":
        yield "the policy asks what holds beyond the fixtures, which cases tell and replicates do not"
    common = common_part(baseline, candidate)
    yield from common.barriers
    if not common.cases:
        yield "no case is the same in both"


def _so_far(run: Run, scorer: Scorer, inputs: Inputs, replicates: int) -> Record:
    """Return what the record would be if no more than these replicates were asked."""
    recorder = Recorder(component=inputs.component, settings=inputs.settings, kinds=inputs.kinds)
    return recorder.record(run.model, run.manifest, scorer.scorecard(replicates))
