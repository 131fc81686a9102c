"""Which recorded version a design asks once more, with the prompt of then and a seed of its own.

`evaluate` and `plan` both ask here, so that a workflow measures what a person at a terminal would.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, Policy
from skill_evaluator.library.versions import PastPrompt, component_with
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.records.record import SCORER_VERSION, Record, short_digests
from skill_evaluator.records.selection import runs_alike
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.verdicts.history.baselines import usual_baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """A recorded version to ask again: the component with its prompt (no scenario), and the commit that holds it."""

    component: Component
    commit: str | None


def find_baseline(component: Component, model: Model, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a new run of the component would be compared with."""
    return usual_baseline(_planned(component, model), archive, policy)


def find_recorded(component: Component, model: Model, archive: Archive) -> RecordedRun | None:
    """Return the newest complete run of the highest version recorded of a model."""
    alike = runs_alike(archive.entries, _planned(component, model))
    return max(alike, key=lambda entry: entry.standing, default=None)


def ask_again(entry: RecordedRun, archive: Archive, component: Component) -> AskedAgain:
    """Return the version of a recorded run; raise ComponentError or GitError where its prompt is not to be had.

    `component` is today's, without a scenario.
    """
    again, commit = component_with(component, past_prompt_of(archive.record(entry)))
    return AskedAgain(component=again, commit=commit)


def past_prompt_of(record: Record) -> PastPrompt:
    """Return what a record says of the prompt that it measured."""
    return PastPrompt(
        version=record.skill_version,
        digest=record.digests["prompt"],
        schema=record.digests.get("schema"),
        commit=record.prompt_commit,
    )


def fresh_seed(archive: Archive, model_id: str, versions: Iterable[str], first: int) -> int:
    """Return the first seed from `first` on that no recorded run of these versions of a model had.

    With the same seed a provider that keeps to it would give the same answers again, which say nothing of chance.
    """
    wanted = set(versions)
    runs: list[Record] = [
        archive.record(entry) for entry in archive.runs_of(model_id) if entry.complete and entry.version in wanted
    ]
    used = {run.seed for run in runs}
    return next(seed for seed in count(first) if seed not in used)


def _planned(component: Component, model: Model) -> RecordedRun:
    """Return what a leaderboard would say of a run of the component that is about to be made."""
    return RecordedRun(
        run_id="planned",
        skill_version=component.version,
        model_id=model.id,
        scenario=component.scenario,
        complete=False,
        timestamp="",
        digests=short_digests({**input_digests(component, model), "datasets": component.digests["datasets"]}),
        scorer_version=SCORER_VERSION,
    )
