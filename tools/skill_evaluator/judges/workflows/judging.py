"""The workflow of `judge score`, `pairwise` and `regression`: read items, call the judges, decide, write the files.

A panel calls all judges on all items. A cascade calls a cheap judge on all items, then a strong judge on the doubtful
items; people judge the items that stay in doubt. The second stage is a judge run in the folder of the first, so that
the stages resume independently.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.agreement import alerts_of
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.judges.modes import pairwise, panel, regression, scoring
from skill_evaluator.judges.modes.regression import RegressionResults
from skill_evaluator.judges.modes.results import PEOPLE, CascadeResult, CascadeStage, Decision, PanelResult
from skill_evaluator.judges.modes.run_outputs import NOT_APPLICABLE, read_outputs, read_pairs
from skill_evaluator.judges.modes.ship_rules import ShipRules, blocking_sentence, dimensions_of
from skill_evaluator.judges.prompting import judging
from skill_evaluator.judges.prompting.criteria import NamedRubric, choose_criteria, family_warnings, mitigations_of
from skill_evaluator.judges.prompting.questions import load_prompt, read_items
from skill_evaluator.judges.review import queue as review
from skill_evaluator.judges.workflows.requests import JudgedRequest, PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.runner.journal import settings_digest
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, counted, digest

JudgedResults = scoring.ScoreResults | pairwise.PairwiseResults | RegressionResults
STRONG = "strong"  # folder of a cascade's second stage
_SETTLED: frozenset[review.ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons other than doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeTask(judging.JudgeTask):
    """The task of `judge score`, `pairwise` or `regression`. `units`: the outputs, matches or pairs to judge.

    Five functions differ by command. `reduce` computes one judge's results. `decisions` returns the verdict on each
    unit, with the reasons for human review. `panel` combines the results of several judges. `results` builds the
    content of evaluation_results.json. `review_item` builds an item of the review queue.
    """

    units: Sequence[Any]
    reduce: Callable[..., Any]
    decisions: Callable[[Sequence[Any]], list[Decision]]
    panel: Callable[[Sequence[Any]], PanelResult]
    results: Callable[..., JudgedResults]
    review_item: Callable[..., review.ReviewItem]


def _score_task(request: ScoreRequest, session: judging.JudgeSession) -> ModeTask:
    settings = session.configuration.settings
    rubric = _load_criteria(request, session, ("direct_scoring", "reference_based"))
    outputs, left_out, skill = read_outputs(request, rubric, settings.limits)
    criteria, weights = rubric.criteria, settings.policy.judge.panel.weights
    return ModeTask(
        mode="score",
        rubric=rubric.rubric.digest,
        criteria=[criterion.id for criterion in criteria],
        prompts=scoring.prompts_of(criteria),
        items={item.id: item.digest for item in outputs},
        questions=scoring.score_questions(rubric, outputs, request.seed),
        warnings=_writer_warnings(session, rubric, [item.model for item in outputs]),
        paper=rubric.paper,
        rubric_file=rubric.file,
        skill=skill,
        source=str(request.items or request.run),
        units=outputs,
        reduce=partial(scoring.reduce_scores, criteria=criteria),
        decisions=partial(review.decisions_on_scores, criteria=criteria),
        panel=partial(panel.panel_scores, criteria=criteria, weights=weights),
        results=partial(scoring.ScoreResults, left_out=left_out),
        review_item=partial(review.scored_item, criteria=criteria),
    )


def _pair_task(request: PairwiseRequest, session: judging.JudgeSession) -> ModeTask:
    rubric = _load_criteria(request, session, ("pairwise_comparison",))
    items = read_items(request.items, pairwise.PairItem)
    matches = pairwise.matches_of(items)
    criteria, weights = rubric.criteria, session.configuration.settings.policy.judge.panel.weights
    names = [criterion.id for criterion in criteria]
    return ModeTask(
        mode="pairwise",
        rubric=rubric.rubric.digest,
        criteria=names,
        prompts=[pairwise.PROMPT],
        items={item.id: item.digest for item in items},
        questions=pairwise.match_questions(rubric, matches, request.seed),
        notes=["every pair is judged in both orders"],
        warnings=_writer_warnings(session, rubric, [writer for item in items for writer in item.writers]),
        paper=rubric.paper,
        rubric_file=rubric.file,
        source=str(request.items),
        units=matches,
        reduce=partial(pairwise.reduce_matches, criteria=criteria),
        decisions=partial(review.decisions_on_matches, criteria=criteria),
        panel=partial(panel.panel_preferences, criteria=[*names, pairwise.OVERALL], weights=weights),
        results=pairwise.PairwiseResults,
        review_item=partial(review.paired_item, criteria=criteria),
    )


def _regression_task(request: RegressionRequest, session: judging.JudgeSession) -> ModeTask:
    settings = session.configuration.settings
    policy = settings.policy.judge
    pairs, left_out, runs = read_pairs(request, settings.limits)
    run_ids, skill = {side: run.run_id for side, run in runs.items()}, runs["candidate"].skill if runs else None
    component = settings.policy.components.get(skill or "")
    rules = ShipRules(
        dimensions=dimensions_of(request.dimensions, request.preset, policy.blocking),
        one_low=policy.one_low,
        high_stakes="high" in (request.stakes, component.stakes if component else "normal"),
        blocking=policy.blocking,
    )
    by_pair = [regression.rules_for(pair, rules).dimensions for pair in pairs]
    dimensions = {one.name: {"question": one.question, "blocking": one.blocking} for part in by_pair for one in part}
    paper = {"dimensions": dimensions, "one_low": rules.one_low, "high_stakes": rules.high_stakes}
    notes = ["every pair is judged in both orders, identical outputs need no call"]
    notes += dict.fromkeys(map(blocking_sentence, by_pair))
    notes += [f"{side}: {run.skill_version} by {run.model_id}, {run.run_id}" for side, run in runs.items()]
    warnings = _regression_warnings(pairs, session)
    calibration, earlier = read_calibration(request.config, settings), _read_earlier(request, session)

    def results(
        judging: judging.JudgeRunHead,
        judges: list[regression.JudgeRegressions],
        panel: PanelResult | None = None,
        cascade: CascadeResult | None = None,
    ) -> RegressionResults:
        decisions: Sequence[Decision] = panel.by_item if panel else cascade.decisions if cascade else ()
        verdicts: list[Any] = [decision.verdict for decision in decisions] or [judge.ship_decision for judge in judges]
        if set(left_out.values()) - {NOT_APPLICABLE}:
            verdicts.append(None)  # a skipped case cannot ship without a review
        return RegressionResults(
            judging=judging,
            judges=judges,
            panel=panel,
            cascade=cascade,
            baseline=run_ids.get("baseline"),
            candidate=run_ids.get("candidate"),
            left_out=left_out,
            ship_decision=regression.most_careful(verdicts),
            against=None if earlier is None else earlier.judging.id,
            alerts=[] if cascade else alerts_of(judges, judging.prompts, policy, calibration),
            changes=[] if earlier is None else regression.rate_changes(judges, earlier.judges),
        )

    return ModeTask(
        mode="regression",
        rubric=digest(canonical_json(paper)),
        criteria=list(dimensions),
        prompts=[regression.PROMPT],
        items={pair.id: pair.digest for pair in pairs},
        questions=[one for pair in pairs for one in regression.pair_questions(pair, rules, request.seed)],
        notes=notes,
        warnings=warnings,
        paper=paper,
        skill=skill,
        source=run_ids.get("candidate", str(request.items)),
        units=pairs,
        reduce=partial(regression.reduce_regressions, rules=rules),
        decisions=partial(review.decisions_on_regressions, high_stakes=rules.high_stakes),
        panel=partial(panel.panel_regressions, items=pairs, rules=rules, weights=policy.panel.weights),
        results=results,
        review_item=partial(review.regression_item, rules=rules),
    )


def judge(request: JudgedRequest, watch: Watch | None = None) -> judging.Judged | judging.JudgeRunSize:
    """Judge the outputs of a request. In a dry run return the size. Raise SkillEvaluatorError for invalid input."""
    cascade_ids = cascade_judges(request)
    session = judging.JudgeSession.of(request, watch, cascade_ids)
    if isinstance(request, ScoreRequest):
        task = _score_task(request, session)
    elif isinstance(request, PairwiseRequest):
        task = _pair_task(request, session)
    else:
        task = _regression_task(request, session)
    if request.dry_run:
        notes = [] if cascade_ids is None else ["at most: {1} is called only if {0} is in doubt".format(*cascade_ids)]
        return session.size(replace(task, notes=[*task.notes, *notes]))
    if cascade_ids is None:
        judged = _judge_in_panel(task, request, session)
    else:
        judged = _judge_in_cascade(task, request, session, cascade_ids)
    if request.review and judged.again:
        print("items are queued for review once the judge run is complete", file=sys.stderr)
    return judged


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the ids of the cheap and the strong judge, or None if there is no cascade. Raise JudgeError if invalid."""
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def _judge_in_panel(task: ModeTask, request: JudgedRequest, session: judging.JudgeSession) -> judging.Judged:
    judged = session.ask(task)
    judges: list[Any] = [task.reduce(task.units, calls=calls) for calls in judged.runs]
    joint = task.panel(judges) if len(judges) > 1 else None
    results = task.results(judging=judged.judging, judges=judges, panel=joint)
    _write_results(judged.folder, task, results)
    if request.review and not judged.again:
        _queue(task, request, task.decisions(judges), results.judging.id)
    return replace(judged, results=results)


def _judge_in_cascade(
    task: ModeTask, request: JudgedRequest, session: judging.JudgeSession, ids: tuple[str, ...]
) -> judging.Judged:
    first = replace(session, models=session.models[:1]).ask(task)
    last = first
    if first.again:
        print("{1} is called once {0} has judged all items".format(*ids), file=sys.stderr)
        return first
    judges: list[Any] = [task.reduce(task.units, calls=calls) for calls in first.runs]
    cheap, strong = task.decisions(judges), list[Decision]()
    questions = by_key((question.case_id.rpartition("/")[0], question) for question in task.questions)
    open_units = [
        (unit, decision.item)
        for unit, decision in zip(task.units, cheap, strict=True)
        if unit.id in questions and not _is_settled(decision)
    ]
    if open_units:
        items = {item for _, item in open_units}
        open_task = replace(
            task,
            items={item: digest for item, digest in task.items.items() if item in items},
            questions=[question for unit, _ in open_units for question in questions[unit.id]],
            warnings=(),
        )
        # The sessions share a budget. A resumed judge run keeps its transport even without --batch.
        strong_request = replace(request, batch=first.runs[0].run.manifest.transport == "batch")
        strong_session = replace(session, models=session.models[1:], request=strong_request)
        last = strong_session.ask(open_task, first.folder / STRONG)
        judges += [task.reduce([unit for unit, _ in open_units], calls=calls) for calls in last.runs]
        strong = task.decisions(judges[1:])
    cascade = _cascade_result(ids, cheap, strong)
    results = task.results(judging=first.judging, judges=judges, cascade=cascade)
    _write_results(first.folder, task, results)
    again = []
    if last.again:
        again = judging.resume_command(request, task.mode, first.folder, last.stopped)
    else:
        _queue(task, request, cascade.decisions, results.judging.id)
    return replace(first, results=results, stopped=last.stopped, again=again)


def _is_settled(decision: Decision) -> bool:
    return set(decision.reasons) <= _SETTLED


def _cascade_result(ids: Sequence[str], cheap: Sequence[Decision], strong: Sequence[Decision]) -> CascadeResult:
    """Build a cascade's result from the last decision on each item. People decide on the items still in doubt."""
    last = {
        (decision.item, decision.names): (judge, decision)
        for judge, judge_decisions in zip(ids, (cheap, strong), strict=True)
        for decision in judge_decisions
    }
    decisions = []
    for by, decision in last.values():
        verdict = decision.verdict
        if not _is_settled(decision):
            verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
            by = PEOPLE
        decisions.append(decision.model_copy(update={"by": by, "verdict": verdict}))
    deciders = [decision.by for decision in decisions]
    stages = (
        CascadeStage(judge=ids[0], asked=len(cheap), decided=deciders.count(ids[0])),
        CascadeStage(judge=ids[1], asked=len(strong), decided=deciders.count(ids[1])),
    )
    return CascadeResult(stages=stages, people=deciders.count(PEOPLE), decisions=decisions)


def _write_results(folder: Path, task: judging.JudgeTask, results: JudgedResults) -> None:
    judging.write_papers(folder, task, results)
    if isinstance(results, scoring.ScoreResults):
        scores = (line for judge in results.judges for line in scoring.scores_of(judge))
        judging.write_lines(folder / scoring.SCORES, scores)
    elif isinstance(results, pairwise.PairwiseResults):
        verdicts = (line for judge in results.judges for line in pairwise.verdicts_of(judge))
        judging.write_lines(folder / pairwise.VERDICTS, verdicts)


def _queue(task: ModeTask, request: JudgedRequest, decisions: Sequence[Decision], judge_run: str) -> None:
    """Queue the items with reasons for review and, with --review, a random sample."""
    judged = [
        (task.review_item(unit, judge_run=judge_run), decision.reasons)
        for unit, decision in zip(task.units, decisions, strict=True)
    ]
    queued = review.select_for_review(judged, request.review_sample if request.review else 0, request.seed)
    if queued or request.review:
        queue = review.queue_in(request.config)
        print(f"{counted(len(queue.add(queued)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def _load_criteria(
    request: ScoreRequest | PairwiseRequest, session: judging.JudgeSession, methods: Sequence[MethodName]
) -> NamedRubric:
    rubric = load_rubric(request.rubric, session.configuration.settings.limits)
    return choose_criteria(str(request.rubric), rubric, request.criteria, methods)


def _writer_warnings(session: judging.JudgeSession, rubric: NamedRubric, writers: Sequence[str | None]) -> list[str]:
    demanding = [one.id for one in rubric.criteria if "different_model_family" in mitigations_of(one)]
    if not demanding:
        return []
    demand = f"criterion '{demanding[0]}' requires a judge of another family (different_model_family)"
    refuse = session.configuration.settings.policy.judge.panel.same_family == "refuse"
    warnings = family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse)
    if None in writers:
        unknown = f"{writers.count(None)} of {len(writers)} outputs"
        warnings.append(f"the model of {unknown} is not known; a judge may be of its family")
    return warnings


def _regression_warnings(pairs: Sequence[regression.RegressionItem], session: judging.JudgeSession) -> list[str]:
    same_family = session.configuration.settings.policy.judge.panel.same_family
    writers = [writer for pair in pairs for writer in pair.writers]
    refuse = len(session.request.judges) > 1 and same_family == "refuse"
    demand = f"policy.judge.panel has same_family: {same_family}, so that a panel requires another family"
    undeclared = [
        f"{model.id} is not declared strong enough to judge regressions; measure it with `judge calibrate`, then "
        "declare `judge: strong` in models.yaml"
        for model in session.models
        if model.judge is None
    ]
    return family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse) + undeclared


def _read_earlier(request: RegressionRequest, session: judging.JudgeSession) -> RegressionResults | None:
    """Return the results of the judge run that --against names, if any. Raise JudgeError if they are not comparable."""
    if request.against is None:
        return None
    if not request.judges:
        raise JudgeError("--against cannot be combined with a cascade; use --judge")
    path = Path(request.against)
    if not path.is_file():
        path = judging.find_judge_run(request.against, request.out, "regression") / judging.RESULTS
        if not path.exists():
            raise JudgeError(f"--against {request.against}: {path} does not exist; complete that judge run first")
    earlier = regression.read_regressions(path)
    name = f"--against {earlier.judging.id}"
    earlier_settings = {judge.judge.model_id: judge.judge.settings for judge in earlier.judges}
    for model in session.models:
        if model.id not in earlier_settings:
            raise JudgeError(f"{name}: that run has no judge {model.id}, only {', '.join(earlier_settings)}")
        if earlier_settings[model.id] != settings_digest(model):
            raise JudgeError(
                f"{name}: the settings of the judge {model.id} changed since that judge run; judge its pairs again"
            )
    if load_prompt(regression.PROMPT).identity not in earlier.judging.prompts:
        raise JudgeError(f"{name}: the judge's prompt changed since that judge run; judge its pairs again")
    return earlier
