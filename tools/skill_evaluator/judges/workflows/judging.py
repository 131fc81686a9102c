"""The workflow of `judge score`, `pairwise` and `regression`: read items, call the judges, decide, write the files.

A panel calls all judges on all items. A cascade calls a cheap judge on all items, then a strong judge on the doubtful
items; people judge the items that stay in doubt. The second stage is a judge run in the folder of the first, so that
the stages resume independently.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges import judge_run
from skill_evaluator.judges.calibration.agreement import alerts_of
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.judges.judge_run import JudgeCalls, Judged, JudgeRunSize, JudgeSession, JudgeTask
from skill_evaluator.judges.modes import pairwise, panel, regression, scoring
from skill_evaluator.judges.modes.regression import RegressionItem, RegressionResults
from skill_evaluator.judges.modes.results import PEOPLE, CascadeResult, CascadeStage, Decision, ModeResults
from skill_evaluator.judges.modes.run_outputs import NOT_APPLICABLE, PinnedOutputs, read_outputs, read_pairs
from skill_evaluator.judges.modes.ship_rules import ShipRules, blocking_sentence, dimensions_of
from skill_evaluator.judges.prompting.criteria import NamedRubric, choose_criteria, family_warnings, mitigations_of
from skill_evaluator.judges.prompting.questions import OutputItem, load_prompt, read_items
from skill_evaluator.judges.review import queue as review
from skill_evaluator.judges.workflows.requests import JudgedRequest, PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.config import Policy, load_settings
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.runner.journal import settings_digest
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, counted, digest

JudgedResults = scoring.ScoreResults | pairwise.PairwiseResults | RegressionResults
UnitT = TypeVar("UnitT", bound=OutputItem | pairwise.PairMatch | RegressionItem)
JudgeT = TypeVar("JudgeT", bound=scoring.JudgeScores | pairwise.JudgePreferences | regression.JudgeRegressions)
STRONG = "strong"  # folder of a cascade's second stage
_SETTLED: frozenset[review.ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons other than doubt


def judge(request: JudgedRequest, watch: Watch | None = None) -> Judged | JudgeRunSize:
    """Judge the outputs of a request. In a dry run return the size. Raise SkillEvaluatorError for invalid input."""
    session = JudgeSession.of(request, watch, cascade_judges(request))
    if isinstance(request, ScoreRequest):
        judged = _judge_outputs(request, session)
    elif isinstance(request, PairwiseRequest):
        judged = _judge_matches(request, session)
    else:
        judged = _judge_regressions(request, session)
    if request.review and isinstance(judged, Judged) and judged.again:
        print("items are queued for review once the judge run is complete", file=sys.stderr)
    return judged


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the ids of the cheap and the strong judge, or None if there is no cascade. Raise JudgeError if invalid."""
    if request.judges and request.cascade is not None:
        raise JudgeError("--cascade cannot be combined with --judge")
    names: tuple[str, ...] | None = None if request.judges else load_settings(request.config).policy.judge.cascade
    if request.cascade is not None:
        names = tuple(name.strip() for name in request.cascade.split(","))
    if names is not None and (len(set(names)) != 2 or not all(names)):
        option = "policy.judge.cascade in settings.yaml" if request.cascade is None else "--cascade"
        raise JudgeError(f"{option} requires two different judge ids: CHEAP,STRONG")
    return names


def _judge_outputs(request: ScoreRequest, session: JudgeSession) -> Judged | JudgeRunSize:
    settings = session.configuration.settings
    rubric = _load_criteria(request, session, ("direct_scoring", "reference_based"))
    outputs, left_out, skill = read_outputs(request, rubric, settings.limits)
    criteria = rubric.criteria
    task = JudgeTask(
        mode="score",
        rubric_digest=rubric.rubric.digest,
        criteria=[criterion.id for criterion in criteria],
        prompts=scoring.prompts_of(criteria),
        items={item.id: item.digest for item in outputs},
        questions=scoring.score_questions(rubric, outputs, request.seed),
        warnings=_writer_warnings(session, rubric, [item.model for item in outputs]),
        rubric=rubric.content,
        rubric_file=rubric.file,
        skill=skill,
        source=str(request.items or request.run),
    )
    if request.dry_run:
        return session.size(task)
    reduce = partial(scoring.reduce_scores, criteria=criteria)
    decide = partial(review.decisions_on_scores, criteria=criteria)
    judged, judges, decisions, cascade = _call_judges(task, request, session, outputs, reduce, decide)
    if not judges:
        return judged
    weights = settings.policy.judge.panel.weights
    joint = panel.panel_scores(judges, criteria, weights) if len(judged.calls) > 1 else None
    results = scoring.ScoreResults.view(judged, left_out=left_out, judges=judges, panel=joint, cascade=cascade)
    judge_run.write_results(judged.folder, task, results)
    judge_run.write_lines(judged.folder / scoring.SCORES, (line for one in judges for line in scoring.scores_of(one)))
    items = (review.scored_item(output, criteria, results.judging.id) for output in outputs)
    return _with_results(judged, results, request, items, decisions)


def _judge_matches(request: PairwiseRequest, session: JudgeSession) -> Judged | JudgeRunSize:
    rubric = _load_criteria(request, session, ("pairwise_comparison",))
    pair_items = read_items(request.items, pairwise.PairItem)
    matches, criteria = pairwise.matches_of(pair_items), rubric.criteria
    names = [criterion.id for criterion in criteria]
    task = JudgeTask(
        mode="pairwise",
        rubric_digest=rubric.rubric.digest,
        criteria=names,
        prompts=[pairwise.PROMPT],
        items={item.id: item.digest for item in pair_items},
        questions=pairwise.match_questions(rubric, matches, request.seed),
        notes=["every pair is judged in both orders"],
        warnings=_writer_warnings(session, rubric, [writer for item in pair_items for writer in item.writers]),
        rubric=rubric.content,
        rubric_file=rubric.file,
        source=str(request.items),
    )
    if request.dry_run:
        return session.size(task)
    reduce = partial(pairwise.reduce_matches, criteria=criteria)
    decide = partial(review.decisions_on_matches, criteria=criteria)
    judged, judges, decisions, cascade = _call_judges(task, request, session, matches, reduce, decide)
    if not judges:
        return judged
    weights = session.configuration.settings.policy.judge.panel.weights
    joint = panel.panel_preferences(judges, [*names, pairwise.OVERALL], weights) if len(judged.calls) > 1 else None
    results = pairwise.PairwiseResults.view(judged, judges=judges, panel=joint, cascade=cascade)
    judge_run.write_results(judged.folder, task, results)
    judge_run.write_lines(
        judged.folder / pairwise.VERDICTS, (line for one in judges for line in pairwise.verdicts_of(one))
    )
    items = (review.paired_item(match, criteria, results.judging.id) for match in matches)
    return _with_results(judged, results, request, items, decisions)


def _judge_regressions(request: RegressionRequest, session: JudgeSession) -> Judged | JudgeRunSize:
    settings = session.configuration.settings
    policy = settings.policy.judge
    pairs, left_out, runs = read_pairs(request, settings.limits)
    rules = _ship_rules(request, settings.policy, runs)
    pair_rules = {pair.id: regression.rules_of_item(pair, rules) for pair in pairs}
    task = _regression_task(request, session, pairs, runs, rules, pair_rules)
    calibration, earlier = read_calibration(request.config, settings), _read_earlier(request, session)
    if request.dry_run:
        return session.size(task)
    reduce = partial(regression.reduce_regressions, rules_by_item=pair_rules)
    decide = partial(review.decisions_on_regressions, high_stakes=rules.high_stakes)
    judged, judges, decisions, cascade = _call_judges(task, request, session, pairs, reduce, decide)
    if not judges:
        return judged
    weights = policy.panel.weights
    joint = panel.panel_regressions(judges, pair_rules, weights) if len(judged.calls) > 1 else None
    verdicts: list[Any] = [decision.verdict for decision in (joint.by_item if joint else decisions)]
    if set(left_out.values()) - {NOT_APPLICABLE}:
        verdicts.append(None)  # a skipped case requires a review before the candidate ships
    prompts = [load_prompt(name).identity for name in task.prompts]
    results = RegressionResults.view(
        judged,
        judges=judges,
        panel=joint,
        cascade=cascade,
        baseline=runs["baseline"].run_id if runs else None,
        candidate=runs["candidate"].run_id if runs else None,
        left_out=left_out,
        ship_decision=regression.most_careful(verdicts),
        against=None if earlier is None else earlier.judging.id,
        alerts=[] if cascade else alerts_of(judges, prompts, policy, calibration),
        changes=[] if earlier is None else regression.rate_changes(judges, earlier.judges),
    )
    judge_run.write_results(judged.folder, task, results)
    items = (review.regression_item(pair, pair_rules[pair.id], results.judging.id) for pair in pairs)
    return _with_results(judged, results, request, items, decisions)


def _ship_rules(request: RegressionRequest, policy: Policy, runs: Mapping[str, PinnedOutputs]) -> ShipRules:
    component = policy.components.get(runs["candidate"].skill) if runs else None
    return ShipRules(
        dimensions=dimensions_of(request.dimensions, request.preset, policy.judge.blocking),
        one_low=policy.judge.one_low,
        high_stakes="high" in (request.stakes, component.stakes if component else "normal"),
        blocking=policy.judge.blocking,
    )


def _regression_task(
    request: RegressionRequest,
    session: JudgeSession,
    pairs: Sequence[RegressionItem],
    runs: Mapping[str, PinnedOutputs],
    rules: ShipRules,
    pair_rules: Mapping[str, ShipRules],
) -> JudgeTask:
    by_pair = [one.dimensions for one in pair_rules.values()]
    dimensions = {one.name: {"question": one.question, "blocking": one.blocking} for part in by_pair for one in part}
    rubric = {"dimensions": dimensions, "one_low": rules.one_low, "high_stakes": rules.high_stakes}
    notes = ["every pair is judged in both orders, identical outputs need no call"]
    notes += dict.fromkeys(map(blocking_sentence, by_pair))
    notes += [f"{side}: {run.skill_version} by {run.model_id}, {run.run_id}" for side, run in runs.items()]
    return JudgeTask(
        mode="regression",
        rubric_digest=digest(canonical_json(rubric)),
        criteria=list(dimensions),
        prompts=[regression.PROMPT],
        items={pair.id: pair.digest for pair in pairs},
        questions=[one for pair in pairs for one in regression.pair_questions(pair, pair_rules[pair.id], request.seed)],
        notes=notes,
        warnings=_regression_warnings(pairs, session),
        rubric=rubric,
        skill=runs["candidate"].skill if runs else None,
        source=runs["candidate"].run_id if runs else str(request.items),
    )


def _call_judges(
    task: JudgeTask,
    request: JudgedRequest,
    session: JudgeSession,
    units: Sequence[UnitT],
    reduce: Callable[[Sequence[UnitT], JudgeCalls], JudgeT],
    decide: Callable[[Sequence[JudgeT]], list[Decision]],
) -> tuple[Judged, list[JudgeT], list[Decision], CascadeResult | None]:
    """Call the judges. Return the judge run, each judge's results, the decisions, and the cascade (None: no cascade).

    `units` are the outputs, matches or pairs to judge. `reduce` computes the results of one judge, and `decide` the
    decision on each unit, with the reasons for human review. The judge run of a cascade has the calls of the first
    judge. The second judge has results only for items in doubt. Until the first has judged all, there are no results.
    """
    if not session.cascade:
        judged = session.ask(task)
        judges = [reduce(units, calls) for calls in judged.calls]
        return judged, judges, decide(judges), None
    cheap_id, strong_id = session.models[0].id, session.models[-1].id
    first = replace(session, models=session.models[:1]).ask(task)
    if first.again:
        print(f"{strong_id} is called once {cheap_id} has judged all items", file=sys.stderr)
        return first, [], [], None
    judges = [reduce(units, calls) for calls in first.calls]
    cheap, strong = decide(judges), list[Decision]()
    questions = by_key((question.case_id.rpartition("/")[0], question) for question in task.questions)
    open_units = [
        (unit, decision.item)
        for unit, decision in zip(units, cheap, strict=True)
        if unit.id in questions and not _SETTLED.issuperset(decision.reasons)
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
        is_batch = first.judging is not None and first.judging.transport == "batch"
        strong_session = replace(session, models=session.models[1:], request=replace(request, batch=is_batch))
        last = strong_session.ask(open_task, first.folder / STRONG)
        judges += [reduce([unit for unit, _ in open_units], calls) for calls in last.calls]
        strong = decide(judges[1:])
        again = judge_run.resume_command(request, task.mode, first.folder, last.reasons) if last.again else []
        first = replace(first, reasons=last.reasons, again=again)
    cascade = _cascade_result((cheap_id, strong_id), cheap, strong)
    return first, judges, cascade.decisions, cascade


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
        if not _SETTLED.issuperset(decision.reasons):
            verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
            by = PEOPLE
        decisions.append(decision.model_copy(update={"by": by, "verdict": verdict}))
    deciders = [decision.by for decision in decisions]
    stages = (
        CascadeStage(judge=ids[0], asked=len(cheap), decided=deciders.count(ids[0])),
        CascadeStage(judge=ids[1], asked=len(strong), decided=deciders.count(ids[1])),
    )
    return CascadeResult(stages=stages, people=deciders.count(PEOPLE), decisions=decisions)


def _with_results(
    judged: Judged,
    results: ModeResults,
    request: JudgedRequest,
    items: Iterable[review.ReviewItem],
    decisions: Sequence[Decision],
) -> Judged:
    """Return the judge run with its results. Queue the items with a reason for human review.

    With --review, also queue a random sample. Without it, queue items only after a cascade. If the judge run is
    incomplete, queue nothing.
    """
    if not judged.again and (request.review or results.cascade):
        reasons = [(item, decision.reasons) for item, decision in zip(items, decisions, strict=True)]
        queued = review.select_for_review(reasons, request.review_sample if request.review else 0, request.seed)
        if queued or request.review:
            queue = review.queue_in(request.config)
            print(f"{counted(len(queue.add(queued)), 'item')} queued for review in {queue.folder}", file=sys.stderr)
    return replace(judged, results=results)


def _load_criteria(
    request: ScoreRequest | PairwiseRequest, session: JudgeSession, methods: Sequence[MethodName]
) -> NamedRubric:
    rubric = load_rubric(request.rubric, session.configuration.settings.limits)
    return choose_criteria(str(request.rubric), rubric, request.criteria, methods)


def _writer_warnings(session: JudgeSession, rubric: NamedRubric, writers: Sequence[str | None]) -> list[str]:
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


def _regression_warnings(pairs: Sequence[RegressionItem], session: JudgeSession) -> list[str]:
    same_family = session.configuration.settings.policy.judge.panel.same_family
    writers = [model for pair in pairs for model in (pair.baseline_model, pair.candidate_model)]
    refuse = len(session.request.judges) > 1 and same_family == "refuse"
    demand = f"policy.judge.panel has same_family: {same_family}, so that a panel requires another family"
    undeclared = [
        f"{model.id} is not declared strong enough to judge regressions; measure it with `judge calibrate`, then "
        "declare `judge: strong` in models.yaml"
        for model in session.models
        if model.judge is None
    ]
    return family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse) + undeclared


def _read_earlier(request: RegressionRequest, session: JudgeSession) -> RegressionResults | None:
    """Return the results of the judge run that --against names, if any. Raise JudgeError if they are not comparable."""
    if request.against is None:
        return None
    if not request.judges:
        raise JudgeError("--against cannot be combined with a cascade; use --judge")
    path = Path(request.against)
    if not path.is_file():
        path = judge_run.find_judge_run(request.against, request.out, "regression") / judge_run.RESULTS
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
