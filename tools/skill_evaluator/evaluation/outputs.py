"""The outputs of a run: judged by `expect` checks, scored again by `score`, or shown by `explain`."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill_evaluator.display import visible
from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.runs import Finished
from skill_evaluator.judges.calibration.results import SentenceErrors, read_calibration
from skill_evaluator.judges.modes.sentences import (
    SentenceAnswers,
    SentencesItem,
    SentencesJudge,
    ask_sentences,
    read_sentence_answers,
    votes_on,
)
from skill_evaluator.judges.prompting.reading import commonest_failure
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, load_settings
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import Configuration, missing_key, read_configuration, with_program
from skill_evaluator.records.record import write_record
from skill_evaluator.records.summaries import MIN_LABELS, CorrectedShare, JudgedChecks
from skill_evaluator.runner import journal
from skill_evaluator.runner.journal import Manifest, Run
from skill_evaluator.runner.prices import call_cost, price_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Session
from skill_evaluator.scoring.answer_views import CaseView, case_view, only_field, read_answers
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import CheckScore, CheckScores, RunScorer, open_scorer, score_outcomes
from skill_evaluator.stats import by_key, rounded, total_or_none
from skill_evaluator.text import listed, nearest

_NOT_JUDGED = "not judged"
Text = tuple[str, str]  # the id of a case, and the text of an output


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """The scores of judged checks by (case id, text), and their summary. `stopped`: the reason for missing scores."""

    scores: Mapping[Text, CheckScores] = field(default_factory=dict)
    summary: JudgedChecks | None = None
    stopped: str | None = None


def judged_items(cases: Iterable[Case], outcomes: Iterable[Replicate]) -> dict[Text, SentencesItem]:
    """Return the distinct outputs to judge by (case id, text). Omit unusable outputs, such as truncated ones."""
    by_id = {case.id: (case, sentences) for case in cases if (sentences := case.sentences)}
    items: dict[Text, SentencesItem] = {}
    for replicate in outcomes:
        case_id = replicate.call.case_id
        if case_id in by_id and replicate.completion is not None and replicate.failure is None:
            case, sentences = by_id[case_id]
            item = SentencesItem(input=case.document, output=replicate.output, sentences=sentences)
            items[case_id, replicate.completion.text] = item
    return items


def judge_run(run: Run, cases: Sequence[Case], model: Model, session: Session, config: Path) -> JudgedRun:
    """Have the judge `model` decide the judged checks of a run's outputs, unless they are decided already.

    Return all scores, and the reason if some are missing. Without the judge's key, return only the reason.
    """
    configuration, manifest = session.configuration, run.manifest
    if lack := missing_key(model, configuration.kinds[model.provider], configuration.keys):
        return JudgedRun(stopped=f"{_NOT_JUDGED}: {model.id}: {lack}")
    items = judged_items(cases, journal.outcomes(run.folder).values())
    folder = run.folder / journal.JUDGE
    judge = SentencesJudge(model=model, judged_run=manifest.run_id, seed=manifest.seed, folder=folder)
    results = ask_sentences(list(items.values()), judge, session)
    return judged_by(items, results, manifest.seed, configuration, config, model)


def _read_judged_run(
    run: Run, items: Mapping[Text, SentencesItem], configuration: Configuration, config: Path
) -> JudgedRun:
    if not items:
        return JudgedRun()
    answers = read_sentence_answers(run.folder / journal.JUDGE)
    judge_id = answers.manifest and answers.manifest.model_id
    model = next((model for model in configuration.models if model.id == judge_id), None)
    return judged_by(items, answers, run.manifest.seed, configuration, config, model)


def judged_by(
    items: Mapping[Text, SentencesItem],
    answers: SentenceAnswers,
    seed: int,
    configuration: Configuration,
    config: Path,
    model: Model | None,
) -> JudgedRun:
    """Build the judged run from the judge's `answers`. `model` is None if the judge is not in models.yaml."""
    scores = scores_of(items, answers, seed)
    stopped = answers.stopped or _unjudged_reason(items, answers, seed, configuration.settings.required_coverage)
    return JudgedRun(
        scores=scores,
        summary=_summary(items, scores, answers, configuration, config, model),
        stopped=stopped and f"{_NOT_JUDGED}: {stopped}",
    )


def scores_of(items: Mapping[Text, SentencesItem], answers: SentenceAnswers, seed: int) -> dict[Text, CheckScores]:
    """Return the scores of judged checks by (case id, text), then by check id. Undecided checks have the score None."""
    return {
        text: {
            name: CheckScore(None if vote.holds is None else float(vote.holds), vote.ground)
            for name, vote in votes_on(item, answers.answered, seed).verdicts.items()
        }
        for text, item in items.items()
    }


def _unjudged_reason(
    items: Mapping[Text, SentencesItem], answers: SentenceAnswers, seed: int, required_coverage: float
) -> str | None:
    """Return the reason why the judgements of a run are incomplete. Return None if enough outputs are judged."""
    votes = [votes_on(item, answers.answered, seed) for item in items.values()]
    open_outputs = sum(vote.question is not None for vote in votes)
    unsettled = [[vote.ground for vote in item.verdicts.values() if vote.holds is None] for item in votes]
    grounds = Counter(item[0] for item in unsettled if item and item[0])
    if grounds.total() > len(items) * (1.0 - required_coverage) and not open_outputs:
        reasons = listed([f"{ground} {count}" for ground, count in grounds.most_common()])
        share = f"{grounds.total()} of {len(items)} outputs"
        return f"{share}: the judge's outputs are unreadable ({reasons}); fix or replace the judge, then --resume"
    failed = commonest_failure(answers.answered.values())
    return f"{open_outputs} of {len(items)} outputs" + (f" ({failed})" if failed else "") if open_outputs else None


def _summary(
    items: Mapping[Text, SentencesItem],
    scores: Mapping[Text, CheckScores],
    answers: SentenceAnswers,
    configuration: Configuration,
    config: Path,
    model: Model | None,
) -> JudgedChecks | None:
    manifest = answers.manifest
    if manifest is None:
        return None
    errors = _errors_of(answers, configuration, config)
    labels = errors.get("", SentenceErrors()).labels
    verdicts = by_key(
        (key, score)
        for text, item in items.items()
        for name, sentence in item.sentences.items()
        if (score := scores[text][name].score) is not None
        for key in ("", sentence)
    )
    shares = {
        sentence: CorrectedShare(judged=round(sum(values) / len(values), 6), value=estimate.value, ci95=estimate.ci95)
        for sentence, values in verdicts.items()
        if labels >= MIN_LABELS
        and sentence in errors
        and (estimate := errors[sentence].corrected(int(sum(values)), len(values))) is not None
    }
    price = None if model is None else price_of(model, configuration.kinds[model.provider])
    costs = [None if model is None else call_cost(model, price, replicate) for replicate in answers.answered.values()]
    return JudgedChecks(
        model_id=manifest.model_id,
        digests=manifest.digests,
        calls=len(answers.answered),
        cost_usd=rounded(total_or_none(costs)),
        labels=labels,
        shares=shares,
    )


def _errors_of(answers: SentenceAnswers, configuration: Configuration, config: Path) -> Mapping[str, SentenceErrors]:
    """Return the judge's calibrated errors by `expect` sentence. The key "" has the errors on all sentences together.

    Return {} if there is no calibration of this judge with the same prompt and settings.
    """
    calibration, manifest = read_calibration(config, configuration.settings), answers.manifest
    if manifest is None or calibration is None or calibration.judging is None:
        return {}
    if manifest.digests["sentences"] not in {prompt.digest for prompt in calibration.judging.prompts}:
        return {}
    for judge in calibration.judges:
        settings = judge.record and judge.record.settings
        if (judge.judge, settings) == (manifest.model_id, manifest.digests["settings"]):
            return judge.sentences
    return {}


_INDEX = re.compile(r"\[[^\]]*\]")


def score_again(folder: Path, components: Path, config: Path, fixtures: Path | None) -> tuple[Finished, Component]:
    """Score a saved run again; rewrite its record.json. Return (run, component). Raise RunError if it has no output."""
    configuration = read_configuration(config)
    manifest = journal.read_component_manifest(folder)
    component = load_component(components, manifest.skill, configuration.settings.limits, fixtures)
    component = apply_scenario(component, config, manifest.scenario)
    configuration = with_program(configuration, component)
    run = journal.saved_run(folder, component, {model.id: model for model in configuration.models})
    cases = {case.id: case.as_used(run.manifest.inputs) for case in load_cases(component)}
    run_cases = _cases_of(folder, run.manifest.cases, cases, "scored")
    changed = journal.changes_since(run, component, cases)
    if run.manifest.role is not None:  # a rerun or baseline has an earlier prompt by design
        changed = [name for name in changed if name != "prompt"]
    _warn_of_changes(changed)
    outcomes = list(journal.made_calls(manifest, journal.read_outcomes(folder)))
    if not outcomes:
        raise RunError(f"{folder} has no outputs yet; finish the run with `skill-evaluator evaluate`")
    judged = _read_judged_run(run, judged_items(run_cases, outcomes), configuration, config)
    with open_scorer(component, run_cases, len(outcomes)) as scorer:
        scorecard = score_outcomes(scorer, manifest, outcomes, judged.scores)
    stopped = judged.stopped if len(outcomes) == manifest.calls else "unfinished: calls are missing"
    recorder = Recorder.of(component, configuration)
    record = recorder.record(run.model, run.manifest, scorecard, stopped=stopped, judge=judged.summary)
    write_record(folder / journal.RECORD, record)
    return Finished(run=run, record=record, record_path=folder / journal.RECORD), component


def explain(
    run: str, components: Path, config: Path, fixtures: Path | None, *, case: str | None, field: str | None
) -> tuple[Manifest, list[CaseView]]:
    """Return (manifest, case views) of a saved run, for one case or for all, with all fields or only one.

    Raise RunError if neither a case nor a field is passed, or if one of them is unknown.
    """
    folder = journal.find_run(run, components)
    manifest = journal.read_component_manifest(folder)
    _refuse_unknown(manifest, case, field)
    settings = load_settings(config)
    component = load_component(components, manifest.skill, settings.limits, fixtures)
    cases = {case.id: case.as_used(manifest.inputs) for case in load_cases(component)}
    current_digests = {name: digest for name, digest in component.digests.items() if name != "datasets"}
    digests = {**manifest.digests, **current_digests}
    if manifest.skill_version != component.version and "prompt" in manifest.digests:  # another version, another prompt
        digests["prompt"] = manifest.digests["prompt"]
    present = {case_id: cases[case_id].digest for case_id in manifest.cases if case_id in cases}
    _warn_of_changes(manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests})))
    record = journal.edited_since(folder, manifest, component.records_dir)
    if record is not None:
        print(f"warning: {record} was made from other outputs than {folder / journal.ANSWERS} has", file=sys.stderr)
    run_cases = _cases_of(folder, manifest.cases if case is None else [case], cases, "explained")
    shown = {each.id for each in run_cases}
    made_calls = journal.made_calls(manifest, journal.read_outcomes(folder))
    outcomes = [made for made in made_calls if made.call.case_id in shown]
    answered = {made.call: made for made in outcomes}
    with open_scorer(component, run_cases, len(outcomes)) as scorer:
        run_scorer = RunScorer(scorer, scorer.cases, manifest.replicates)
        for made in outcomes:
            run_scorer.add(made)
        judged = read_sentence_answers(folder / journal.JUDGE)
        run_scorer.take(scores_of(judged_items(run_cases, outcomes), judged, manifest.seed))
        views = []
        for each in run_cases:
            replicates = [answered.get(Call(each.id, index)) for index in range(manifest.replicates)]
            answers = read_answers(component, each, replicates, run_scorer.by_replicate(each.id))
            views.append(case_view(component, each, answers))
    return manifest, views if field is None else only_field(views, component, _INDEX.sub("[]", field))


def _cases_of(folder: Path, case_ids: Iterable[str], cases: Mapping[str, Case], purpose: str) -> list[Case]:
    missing = [case_id for case_id in case_ids if case_id not in cases]
    if missing:
        raise RunError(f"{folder} cannot be {purpose}: case '{missing[0]}' is no longer among the fixtures; restore it")
    return [cases[case_id] for case_id in case_ids]


def _warn_of_changes(changed: Sequence[str]) -> None:
    if changed:
        print(f"warning: changed since this run: {visible(', '.join(changed))}", file=sys.stderr)


def _refuse_unknown(manifest: Manifest, case: str | None, field: str | None) -> None:
    if case in manifest.not_applicable:
        reason = manifest.not_applicable[case]
        raise RunError(f"case '{case}' is not applicable to {manifest.model_id} and was not called: {reason}")
    if case is not None and case not in manifest.cases:
        raise RunError(f"unknown case '{case}' in {manifest.run_id} {nearest(case, manifest.cases)}")
    if field is None and case is None:
        cases = ", ".join(manifest.cases)
        raise RunError(f"--case ID or --field PATH is required (the cases of the run: {cases})")
