"""The story of `evaluate`: N replicates × cases × models → scores, a record per model, the leaderboard."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import FOLDERS, words_of
from skill_evaluator.errors import LeaderboardError, SkillEvaluatorError
from skill_evaluator.evaluation.inputs import Inputs, as_asked, read_inputs
from skill_evaluator.evaluation.judged import JudgedRun, judge_run
from skill_evaluator.evaluation.repeats import RunSpread, drift_of, drifts_in, spreads_of
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.runs import PlannedRuns, costs_left, is_measurement, plan_runs, record_path
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.providers.base import Request
from skill_evaluator.records.archive import Archive, entry_of, read_entries
from skill_evaluator.records.leaderboard import add_records
from skill_evaluator.records.record import Record, short_digest, write_record
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.runner.journal import ANSWERS, RECORD, REPORT, outcomes, read_manifest
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.runs import Run, check_writable
from skill_evaluator.runner.schedule import Call, build_request, replicate_seed
from skill_evaluator.runner.session import Questions, Session, Watch, print_how_to_go_on, with_keys
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.scoring.answers import AnswerScorer
from skill_evaluator.scoring.recording import Finished, Origin, Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import load_quantiles
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.history.component import RecordedComponent
from skill_evaluator.verdicts.planning.advice import ModelRanking

RequestT = TypeVar("RequestT", bound=EvaluationRequest)
OnKept = Callable[[Finished, None, Site], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """A run whose calls are made, and the record of it."""

    run: Run
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What came of an evaluation: its runs, and the verdict on complete new versions.

    `request` is as it was understood. `problems`: why some runs could not be kept. `judged` are the records that may
    get a verdict; `archive` holds what they were held against.
    """

    request: EvaluationRequest
    inputs: Inputs
    planned: PlannedRuns
    problems: Sequence[SkillEvaluatorError]
    archive: Archive
    judged: Sequence[Record]
    verdict: ComparisonResult | None
    ranking: ModelRanking | None
    spreads: Sequence[RunSpread]
    changes: Sequence[ChangedAnswers]

    @property
    def finished(self) -> list[Finished]:
        """The runs whose calls are made, and those that were recorded before."""
        return self.planned.finished

    def is_recorded(self, record: Record) -> bool:
        """Return whether a run's record is among the component's."""
        folder = self.inputs.component.records_dir
        return any(run.record is record and run.record_path.parent == folder for run in self.finished)

    def incomplete_below(self, record: Record) -> str:
        """Name the newest incomplete run of a lower version and its date, or return an empty string."""
        return _recorded(self.inputs, self.request).incomplete_below(entry_of(record))

    def take_from(self, request: RequestT) -> RequestT:
        """Return a request with what is left of its ceiling after this; the judge's calls count, too."""
        judged = [run.record.judged for run in self.finished if run.record.judged]
        calls = sum(len(outcomes(run.folder)) for run in self.finished) + sum(judge.calls for judge in judged)
        costs = [*(run.record.cost_usd for run in self.finished), *(judge.cost_usd for judge in judged)]
        if request.max_calls is not None:
            request = replace(request, max_calls=max(0, request.max_calls - calls))
        if request.max_cost is not None:
            request = replace(request, max_cost=max(0.0, request.max_cost - sum(cost or 0.0 for cost in costs)))
        return request


def evaluate(
    request: EvaluationRequest,
    *,
    watch: Watch,
    on_kept: OnKept,
    show_changes: bool = False,
) -> Evaluation:
    """Read, plan, ask, score, record, keep and compare; the caller shows what came of it.

    `watch` shows how the calls go, and `on_kept` learns of each run that is kept. `show_changes` also tells which
    answers changed.
    """
    request = as_asked(request)
    inputs = read_inputs(request)
    planned = plan_runs(inputs, request)
    scored = ask_and_score(planned, inputs, request, watch)  # every answer is scored as it comes
    recorded = _with_drift(scored, inputs, request)
    problems = keep(planned, recorded, inputs, request, on_kept)
    return _compare(request, inputs, planned, problems, show_changes=show_changes)


def keep(
    planned: PlannedRuns, scored: Sequence[ScoredRun], inputs: Inputs, request: EvaluationRequest, on_kept: OnKept
) -> list[SkillEvaluatorError]:
    """Keep the records of runs, and add the runs to the finished ones; return why some could not be kept.

    Of runs that were recorded before, what is missing in their folders is made again.
    """
    site = Site(inputs.settings.site.address)
    for finished in planned.finished:  # the disk may have been full after the record was kept
        if not (finished.folder / RECORD).exists():
            write_record(finished.folder / RECORD, finished.record)
        if not (finished.folder / REPORT).exists():
            on_kept(finished, None, site)
    records = [*(run.record for run in planned.finished), *(run.record for run in scored)]
    final = {record.run_id for record in records if record.is_final}
    problems: list[SkillEvaluatorError] = []
    for run in scored:
        counts = run.record.is_final and (not entry_of(run.record).is_baseline or run.record.beside in final)
        kept = counts and is_measurement(run.run, request)  # a baseline only beside a final run of a new version
        try:
            finished = _write_run(run, inputs.component, kept=kept)
            on_kept(finished, None, site)
        except SkillEvaluatorError as problem:  # a run that cannot be kept does not take the others with it
            problems.append(problem)
            continue
        planned.finished.append(finished)
    return problems


def _compare(
    request: EvaluationRequest,
    inputs: Inputs,
    planned: PlannedRuns,
    problems: Sequence[SkillEvaluatorError],
    *,
    show_changes: bool,
) -> Evaluation:
    """Judge the final runs of new versions against a lower version, if there is one, and rank the complete ones."""
    finished, component = planned.finished, inputs.component
    final = {run.record.run_id: run.record for run in finished if run.record.is_final}
    anew = any(run.manifest.asked_again for run in planned.runs)  # both versions, or there is no verdict
    whole = [one for one in final.values() if one.shard is None and planned.roles[one.run_id] is None]
    judged = [one for one in whole if not anew or one.beside in final]
    verdict, ranking, recorded = None, None, _recorded(inputs, request)
    archive = recorded.archive
    archive.add(run.record for run in finished if planned.roles[run.record.run_id] == "baseline")
    if judged:
        partial = {run.manifest.run_id for run in planned.runs if not run.manifest.whole}
        verdict = recorded.verdict_on(judged, partial, asked_again=anew)
    ranked = [record for record in judged if record.complete]
    if not (request.cases or anew) and len({record.model_id for record in ranked}) == len(ranked) > 1:
        ranking = recorded.ranking_of(ranked, verdict)
        if runs_of_versions(archive.entries) and not any(record.draft for record in ranked):
            ranking = recorded.advised(archive.entries, ranking)[1]
    again = [
        run.record
        for run in finished
        if run.record_path.parent == component.records_dir and planned.roles[run.record.run_id] == "again"
    ]
    return Evaluation(
        request=request,
        inputs=inputs,
        planned=planned,
        problems=problems,
        archive=archive,
        judged=judged,
        verdict=verdict,
        ranking=ranking,
        spreads=spreads_of(again, archive),
        changes=list(_changed_answers(verdict, finished, archive, inputs)) if show_changes and verdict else [],
    )


def _recorded(inputs: Inputs, request: EvaluationRequest) -> RecordedComponent:
    component = inputs.component
    archive = Archive(component)
    return RecordedComponent(component=component, archive=archive, settings=inputs.settings)


def _with_drift(scored: Sequence[ScoredRun], inputs: Inputs, request: EvaluationRequest) -> list[ScoredRun]:
    """Return the runs, those that asked a recorded version again with whether the model moved; warn where it did."""
    again = [run.record for run in scored if run.run.manifest.role == "again" and run.record.complete]
    drifts = drifts_in(drift_of(again, _recorded(inputs, request))) if again else {}
    for record in again:
        if record.run_id in drifts and (moved := drifts[record.run_id].moved):
            told = f"{record.model_id} moved though the prompt did not: {listed(moved)}"
            print(f"warning: {told}; this run begins a series of its own", file=sys.stderr)
    return [
        replace(run, record=run.record.model_copy(update={"drift": drifts.get(run.record.run_id)})) for run in scored
    ]


def ask_and_score(planned: PlannedRuns, inputs: Inputs, request: EvaluationRequest, watch: Watch) -> list[ScoredRun]:
    """Make the calls of all runs whose model has a key, and score every answer as it comes.

    Return the runs with their records.
    """
    if not planned.runs:
        return []
    session = Session(
        configuration=inputs,
        watch=watch,
        budget=Budget(request.max_cost, request.max_calls),
        concurrency=request.concurrency,
        limits=request.limits,
    )
    usable = with_keys([run.model for run in planned.runs], inputs)
    runs = [run for run in planned.runs if run.model.id in usable]
    component = inputs.component
    check_writable(inputs.results_dir)
    if any(is_measurement(run, request) for run in runs):
        check_writable(component.records_dir)
    calls = sum(run.manifest.calls for run in runs)
    cases = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    known = {(entry.model_id, entry.digests.get("settings")) for entry in read_entries(component.leaderboard_path)}
    origins: list[Origin] = []
    with open_scores(component, cases, calls) as scores:
        scorers = {
            run.manifest.run_id: Scorer(
                component, [case for case in cases if case.id in run.manifest.cases], run.manifest.replicates, scores
            )
            for run in runs
        }

        def prepare_records() -> None:
            origins.append(origin_of(component, request.fixtures))
            load_quantiles()

        questions = replace(
            questions_of(planned.components, cases, scorers, scores, prepare_records),
            recorded={
                run.manifest.run_id
                for run in runs
                if (run.model.id, short_digest(run.manifest.digests["settings"])) in known
            },
        )
        asked = session.ask(runs, questions)
        recorder = Recorder(component=component, settings=inputs.settings, kinds=inputs.kinds, origin=origins[0])
        scored = []
        for run in runs:
            manifest = read_manifest(run.folder)  # with what the server said
            stopped, judged = asked.why_stopped(run), JudgedRun()
            if inputs.judge is not None and stopped is None:
                judged = judge_run(run, cases, inputs.judge, session, request.config)
                scorers[run.manifest.run_id].take(judged.scores)
            scorecard = scorers.pop(run.manifest.run_id).scorecard()  # frees the outputs before the record is built
            record = recorder.record(run.model, manifest, scorecard, stopped=stopped or judged.stopped)
            scored.append(ScoredRun(run=run, record=record.model_copy(update={"judged": judged.summary})))
    return scored


def questions_of(
    components: Mapping[str, Component],
    cases: Sequence[Case],
    scorers: Mapping[str, Scorer],
    scores: AnswerScorer,
    meanwhile: Callable[[], None],
) -> Questions:
    """Return what runs ask some cases, by run id of which component; every answer is scored as it comes."""
    by_id = {case.id: case for case in cases}

    @cache
    def first(run_id: str, case_id: str, most: int) -> Request:
        return build_request(components[run_id], by_id[case_id], replicate=0, seed=0, max_output_tokens=most)

    def request_for(run: Run, call: Call) -> Request:
        request = first(run.manifest.run_id, call.case_id, run.model.params.max_output_tokens)
        seed = replicate_seed(run.manifest.seed, call.case_id, call.replicate)
        return replace(request, replicate=call.replicate, seed=seed)

    def check_truths() -> None:
        for case_id in by_id:
            scores.undefined(case_id)  # raises where a truth is too costly to score

    return Questions(
        request_for=request_for,
        on_outcome=lambda run, replicate: scorers[run.manifest.run_id].add(replicate),
        check=check_truths,
        meanwhile=meanwhile,  # it takes a while, and the calls need not wait for it
    )


def _write_run(scored: ScoredRun, component: Component, *, kept: bool) -> Finished:
    """Write the record of one run: into the component if it is `kept`, into the run's own folder always."""
    run, record = scored.run, scored.record
    path = run.folder / RECORD
    if kept:
        path = record_path(run, component)
        try:
            if not record.has_row:
                write_record(path, record)
            else:
                add_records(component.leaderboard_path, {path: record})
        except LeaderboardError:  # another prompt came first; what was paid for stays in the run's folder
            write_record(run.folder / RECORD, record)
            raise
    write_record(run.folder / RECORD, record)
    return Finished(record=record, record_path=path, folder=run.folder)


def _changed_answers(
    verdict: ComparisonResult, finished: Sequence[Finished], archive: Archive, inputs: Inputs
) -> Iterator[ChangedAnswers]:
    """Yield, per model, the answers that changed since its baseline. The baseline's run folder may be missing."""
    runs = {run.record.run_id: run for run in finished}
    for model in verdict.models:
        run = runs.get(model.candidate.run_id)
        if run is None or model.baseline is None:
            continue
        run_id = model.baseline.run_id
        folders = [results / run_id for results in (inputs.results_dir, inputs.component.results_dir)]
        folder = next((folder for folder in folders if (folder / ANSWERS).exists()), None)
        if folder is None:
            again = f"`evaluate {inputs.component.name} --model {model.model_id} --aa` asks it again here"
            absent = f"its run folder, which is not committed, is not on this machine; {again}"
            yield ChangedAnswers(model_id=model.model_id, baseline=run_id, absent=absent)
            continue
        baseline, answers = archive.record_of(run_id), (outcomes(folder), outcomes(run.folder))
        yield ChangedAnswers(
            model_id=model.model_id,
            baseline=run_id,
            compared=len(common_part(baseline, run.record).cases),
            changes=tuple(answer_changes(inputs.component, inputs.cases, baseline, run.record, answers)),
        )


def print_how_to_resume(planned: PlannedRuns, inputs: Inputs, request: EvaluationRequest) -> None:
    """Print on stderr the command that resumes the unfinished runs, if any; after a limit with one that suffices."""
    run_ids = planned.left()
    if not run_ids:
        return
    stops = " ".join(run.record.stopped or "" for run in planned.finished)
    if "max_calls" in stops:
        unfinished = [run for run in planned.runs if run.manifest.run_id in run_ids]
        answered = sum(each.answered for run in unfinished for each in outcomes(run.folder).values())
        request = replace(request, max_calls=sum(run.manifest.calls for run in unfinished) - answered)
    if "max_cost" in stops:
        costs = (*costs_left(planned, inputs).values(), *(run.record.cost_usd for run in planned.finished))
        request = replace(request, max_cost=round(sum(cost or 0.0 for cost in costs) + 0.01, 2))
    program = sys.argv[0]
    words = ["python", program] if program.endswith("evaluate_skill.py") else ["skill-evaluator", "evaluate"]
    folders = words_of(request, *FOLDERS, "results")
    words += [request.skill, *folders, *words_of(request, "scenario", "concurrency", "max_cost", "max_calls")]
    if not request.leaderboard:
        words.append("--no-leaderboard")
    target = run_ids[0] if len(run_ids) == 1 else invocation_of(run_ids[0])
    print_how_to_go_on([*words, "--run", target])
