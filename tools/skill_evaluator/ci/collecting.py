"""The artifacts of a plan's jobs → one record per component and model, and the outcome of every call.

It makes no call and touches no leaderboard. It scores the answers itself, so that shards become one run.
"""

import shlex
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from skill_evaluator.ci.arrivals import Arrivals, GatheredRun, find_arrivals, gather, parts_of_runs, take_arrived
from skill_evaluator.ci.matrix import Checkout
from skill_evaluator.ci.outcome import OUTCOME, RECORDS, Figures, Outcome, RunOutcome, Status
from skill_evaluator.ci.plan import Plan, expected_runs, read_plan, sha256_of
from skill_evaluator.display import FEWEST_CASES
from skill_evaluator.display.options import argument, options, rare, words_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import InternalError, PlanError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.judged import JudgedRun, judged_by, judged_items
from skill_evaluator.evaluation.repeats import drift_of, drifts_in
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.judges.modes.sentences import SentenceAnswers, SentencesJudge
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.providers import asking
from skill_evaluator.providers.redaction import attempted
from skill_evaluator.records.archive import why_refused
from skill_evaluator.records.faults import fault_lines
from skill_evaluator.records.record import PARTIAL, Record, write_record
from skill_evaluator.runner.journal import JUDGE, Manifest, read_answers
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.runner.schedule import Replicate, schedule_calls
from skill_evaluator.scoring.answers import TOO_COSTLY
from skill_evaluator.scoring.checked import takes_programs
from skill_evaluator.scoring.recording import Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.results import ComparisonResult

_NAMED = 3  # of what changed


@options
class CollectRequest(Checkout):
    """What is to be collected, and where it goes."""

    artifacts: Path | None = argument("Folder that holds the run folders of a plan's jobs, at any depth.", None)
    plan: Path = rare("The plan.", Path("plan.json"), metavar="FILE")
    plan_sha256: str | None = rare("The SHA-256 of the plan's file; refuse any other file.", metavar="HEX")
    out: Path = rare("Where records and outcome.json go.", Path("collected"), metavar="DIR")


def collect(request: CollectRequest) -> Outcome:
    """Score what the jobs of a plan brought; write its records and outcome.json, and return the outcome.

    Each run may take an equal share of the time that is left of `limits.collect_seconds`. As the small ones come first,
    none is cut short while all together take less.
    """
    plan = read_plan(request.plan)
    if request.plan_sha256 not in (None, sha256_of(request.plan)):
        raise PlanError(f"{request.plan} is not the file that `plan` wrote: its SHA-256 is not {request.plan_sha256}")
    if request.artifacts is None or not request.artifacts.is_dir():
        named = "no folder is named" if request.artifacts is None else f"{request.artifacts} is not a folder"
        raise PlanError(f"{named}; name the folder with the jobs' artifacts")
    arrivals = find_arrivals(request.artifacts, (job.id for job in plan.jobs))
    places = {key: place for place, key in enumerate(parts_of_runs(plan))}
    ends = time.monotonic() + request.configuration.settings.limits.collect_seconds
    scored: list[tuple[RunOutcome, Record | None]] = []
    problems: list[SkillEvaluatorError] = []
    for number, gathered in enumerate(gather(plan, arrivals)):
        now = time.monotonic()
        until = now + (ends - now) / (len(places) - number)
        done = attempted(gathered.skill, partial(_score_run, gathered, arrivals, request, until))
        if isinstance(done, SkillEvaluatorError):  # the other runs' records land all the same
            problems.append(done)
            done = _run_outcome(gathered, "missing", *gathered.remarks, f"not collected: {visible(str(done))}"), None
        scored.append(done)
    scored.sort(key=lambda pair: places[pair[0].skill, pair[0].model_id, pair[0].is_baseline])
    records = {record.run_id: record for _, record in scored if record is not None}
    again = plan.trigger == "drift"
    verdicts, undecided = _verdicts(records.values(), request, again=again)
    drifts = {run_id: drift for verdict in verdicts if again for run_id, drift in drifts_in(verdict).items()}
    for run_id, drift in drifts.items():
        marked = records[run_id].model_copy(update={"drift": drift})
        write_record(request.out / RECORDS / marked.skill / f"{marked.run_id}.json", marked)
    runs = []
    for run, record in scored:
        problem = None if record is None else undecided.get(run.skill)
        reasons = [run.reason, *([] if problem is None else [f"no verdict: {visible(str(problem))}"])]
        runs.append(run.model_copy(update={"reason": "; ".join(filter(None, reasons))}))
    outcome = Outcome.view(
        plan,
        runs=runs,
        verdicts=[] if again else verdicts,
        drift=verdicts if again else [],
        has_bug=any(isinstance(problem, InternalError) for problem in (*problems, *undecided.values())),
    )
    replace_text(request.out / OUTCOME, json_text(outcome.model_dump(mode="json")))
    return outcome


def commands_again(request: CollectRequest, plan: Plan, lost: Container[tuple[str, str]]) -> list[str]:
    """Return the commands that make the missing calls of the runs of the components and models in `lost`."""
    root = request.artifacts or Path()
    arrivals = find_arrivals(root, (job.id for job in plan.jobs))
    folders: dict[str, Path] = {}
    for part in expected_runs(plan):
        taken = take_arrived(part, arrivals)
        answered = {each.call for answers in taken.answers for each in answers if each.answered}
        if (part.manifest.skill, part.manifest.model_id) in lost and len(answered) < part.calls:
            run_id = str(part.manifest.beside) if part.is_baseline else part.manifest.run_id
            begun = [folder.parent for folder in taken.folders]
            folders.setdefault(run_id, begun[0] if begun else root / part.job)
    planned = {run.run_id(plan.invocation): run for run in plan.runs}
    return [
        shlex.join(
            [
                *("skill-evaluator", "evaluate", f"--plan={request.plan}", f"--planned={planned[run_id].id}"),
                *(f"--results={folder}", *words_of(request)),
            ]
        )
        for run_id, folder in folders.items()
    ]


def _judged(gathered: GatheredRun, arrivals: Arrivals, cases: Sequence[Case], request: CollectRequest) -> JudgedRun:
    """Return the verdicts of the planned judge on a run's outputs; verdicts on other texts are ignored."""
    name, configuration, manifest = gathered.parts[0].judge, request.configuration, gathered.manifest
    if manifest is None or not any(case.sentences for case in cases):
        return JudgedRun()
    model = next((model for model in configuration.models if model.id == name), None)
    if model is None:
        raise PlanError(f"the judge '{name}' is no longer in models.yaml; check out the plan's commit")
    judge = SentencesJudge(model=model, asked_for=manifest.run_id, seed=manifest.seed, folder=Path())
    answered: dict[str, Replicate] = {}
    passes: list[Manifest] = []
    for run in arrivals.runs:
        is_of_run = run.folder.parent.name == JUDGE and run.folder.parent.parent in gathered.folders
        if run.manifest is None or not is_of_run or run.manifest.digests != judge.digests:
            continue
        passes.append(run.manifest)
        with suppress(RunError):  # an output whose verdict cannot be read counts as not judged
            made = read_answers(run.folder, lambda _: None)
            answered |= {one.call.case_id: one for one in made if one.answered}
    asked = SentenceAnswers(manifest=passes[0] if passes else None, answered=answered)
    return judged_by(judged_items(cases, gathered.answers), asked, manifest.seed, configuration, request.config, model)


def _verdicts(
    records: Iterable[Record], checkout: Checkout, *, again: bool
) -> tuple[list[ComparisonResult], dict[str, SkillEvaluatorError]]:
    """Judge final runs against what is recorded, here or on a branch; by component, also why that was not possible.

    A leaderboard that cannot be read keeps no record from being published.
    """
    verdicts, undecided = [], {}
    for skill, final in by_key((record.skill, record) for record in records if record.is_final).items():
        verdict = attempted(skill, partial(_verdict, skill, final, checkout, again=again))
        if isinstance(verdict, SkillEvaluatorError):
            undecided[skill] = verdict
        elif verdict is not None:
            verdicts.append(verdict)
    return verdicts, undecided


def _verdict(skill: str, final: Sequence[Record], checkout: Checkout, *, again: bool) -> ComparisonResult | None:
    recorded = checkout.recorded_component(skill)
    return drift_of(final, recorded) if again else recorded.verdict_on(final)


def _score_run(
    gathered: GatheredRun, arrivals: Arrivals, request: CollectRequest, until: float
) -> tuple[RunOutcome, Record | None]:
    """Score what arrived of one run and write its record, unless nothing was scored or the run cannot be taken."""
    if gathered.manifest is None:
        return _run_outcome(gathered, "skipped" if gathered.skipped else "missing", *gathered.remarks), None
    record = _record(gathered, gathered.manifest, arrivals, request, until)
    is_written = record.scored or record.is_final
    status: Status = "complete" if record.complete else "incomplete" if is_written else "missing"
    outcome = _run_outcome(gathered, status, *gathered.remarks, *fault_lines(record, visible))
    failed = {kind: count for kind, count in record.failures.items() if kind != "not_run"}
    if status == "missing":
        return outcome.model_copy(update={"failed": failed}), None
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    figures = Figures(
        skill_version=record.skill_version,
        accuracy=accuracy.strict_mean,
        ci95=accuracy.ci95 if accuracy.n_cases >= FEWEST_CASES else None,
        reproducibility=agreement.strict_mean if agreement else None,
    )
    measured = {
        "planned": record.planned,
        "scored": record.scored,
        "failed": failed,
        "primary_metric": record.primary_metric,
        "cost_usd": record.cost_usd,
        "hit_rate": record.tokens.hit_rate,
    }
    refusal = _why_refused(record, request)
    if refusal is not None:  # publishing it would be refused, too; its answers stay in the artifacts
        return outcome.model_copy(update={**measured, "status": "refused", "reason": refusal}), None
    write_record(request.out / RECORDS / record.skill / f"{record.run_id}.json", record)
    return outcome.model_copy(update={**measured, "run_id": record.run_id, "figures": figures}), record


def _why_refused(record: Record, checkout: Checkout) -> str | None:
    """Return why a complete run cannot be recorded: meanwhile its version was, with a different prompt."""
    if not record.complete:
        return None
    try:
        archive = checkout.archive(checkout.component(record.skill))
    except SkillEvaluatorError:  # what cannot be read is said where verdicts are drawn
        return None
    return why_refused(archive.entries, record.skill_version, record.digests.get("prompt"))


def _run_outcome(gathered: GatheredRun, status: Status, *reasons: str) -> RunOutcome:
    """Return the outcome of a run as long as nothing of it is scored."""
    return RunOutcome.view(gathered, status=status, reason="; ".join(reasons), scored=0, failed={})


def _record(
    gathered: GatheredRun, manifest: Manifest, arrivals: Arrivals, checkout: CollectRequest, until: float
) -> Record:
    """Score the answers of a run, until then; raise PlanError if this checkout is not what was planned."""
    component = checkout.component(gathered.skill)
    read = asking(checkout.configuration, component)
    model = next((model for model in read.models if model.id == gathered.model_id), None)
    if model is None:
        raise PlanError(f"model '{gathered.model_id}' is no longer in models.yaml; check out the plan's commit")
    cases = {case.id: case for case in load_cases(component, checkout.fixtures)}
    present = {case_id: case.digest for case_id, case in cases.items() if case_id in manifest.cases}
    digests = manifest.digests if gathered.is_baseline else input_digests(component, model)
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        raise PlanError(
            f"{listed(changed, _NAMED)} of '{component.name}' changed since the plan; check out the plan's commit"
        )
    mine = [cases[case_id] for case_id in manifest.cases]
    planned = schedule_calls(tuple(manifest.cases), manifest.replicates)
    with open_scores(component, mine, len(planned), until) as scores:
        scorer = Scorer(component, mine, manifest.replicates, scores)
        scorer.add_all(gathered.answers[call] for call in planned if call in gathered.answers)
        judged = _judged(gathered, arrivals, mine, checkout)
        scorer.take(judged.scores)
        scorecard = scorer.scorecard()
    whole = all(call in gathered.answers for call in planned)
    origin = origin_of(component, checkout.fixtures)
    recorder = Recorder(component=component, settings=read.settings, kinds=read.kinds, origin=origin)
    stopped = judged.stopped if whole else "; ".join(gathered.remarks) or "calls are missing"
    record = recorder.record(model, manifest, scorecard, stopped=stopped)
    record = record.model_copy(update={"judged": judged.summary})
    takes_time = TOO_COSTLY in record.reasons or any(map(takes_programs, mine))
    if record.is_final and takes_time and time.monotonic() > until:  # time ran out: no model's fault
        stopped = "collect_seconds were too few to score it"
        record = record.model_copy(update={"complete": False, "usable": None, "stopped": stopped})
    if record.is_final:
        return record
    # an id of its own: the run may yet be completed, and recorded under the first
    return record.model_copy(update={"run_id": f"{record.run_id}{PARTIAL}{record.scored}"})
