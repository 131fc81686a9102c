"""The `expect` checks of a run: call a judge for them, or read its stored outputs from the run's folder."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
from skill_evaluator.library.cases import Case
from skill_evaluator.library.config import Model
from skill_evaluator.providers import Configuration, missing_key
from skill_evaluator.records.summaries import MIN_LABELS, CorrectedShare, JudgedChecks
from skill_evaluator.runner.journal import JUDGE, Run, outcomes
from skill_evaluator.runner.prices import call_cost, price_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Session
from skill_evaluator.scoring.answers import CheckScore, CheckScores
from skill_evaluator.stats import by_key, rounded, total_or_none
from skill_evaluator.text import listed

_NOT_JUDGED = "not judged"
Text = tuple[str, str]  # the id of a case, and the text of an output


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """The scores of a run's judged checks by output, their summary, and the reason why some outputs have none."""

    scores: Mapping[Text, CheckScores] = field(default_factory=dict)
    summary: JudgedChecks | None = None
    stopped: str | None = None


def judged_items(cases: Iterable[Case], answers: Mapping[Call, Replicate]) -> dict[Text, SentencesItem]:
    """Return the distinct outputs to judge, without refused and truncated outputs, which fail without a judge."""
    by_id = {case.id: (case, sentences) for case in cases if (sentences := case.sentences)}
    items: dict[Text, SentencesItem] = {}
    for call, replicate in answers.items():
        if call.case_id in by_id and replicate.completion is not None and replicate.failure is None:
            case, sentences = by_id[call.case_id]
            item = SentencesItem(input=case.document, output=replicate.output, sentences=sentences)
            items[case.id, replicate.completion.text] = item
    return items


def judge_run(run: Run, cases: Sequence[Case], model: Model, session: Session, config: Path) -> JudgedRun:
    """Call a judge for the outputs of a run that it has not judged yet, and return all scores."""
    configuration, manifest = session.configuration, run.manifest
    if lack := missing_key(model, configuration.kinds[model.provider], configuration.keys):
        return JudgedRun(stopped=f"{_NOT_JUDGED}: {model.id}: {lack}")
    items = judged_items(cases, outcomes(run.folder))
    judge = SentencesJudge(model=model, judged_run=manifest.run_id, seed=manifest.seed, folder=run.folder / JUDGE)
    results = ask_sentences(list(items.values()), judge, session)
    return judged_by(items, results, manifest.seed, configuration, config, model)


def read_judged_run(run: Run, cases: Sequence[Case], configuration: Configuration, config: Path) -> JudgedRun:
    """Read the stored outputs of a run's judge without a call. The result is empty if no check requires a judge."""
    items = judged_items(cases, outcomes(run.folder))
    if not items:
        return JudgedRun()
    answers = read_sentence_answers(run.folder / JUDGE)
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
    """Build the judged run from the outputs of a judge. `model` is None if the judge is not in models.yaml."""
    scores = scores_of(items, answers, seed)
    stopped = answers.stopped or _unjudged_reason(items, answers, seed, configuration.settings.required_coverage)
    return JudgedRun(
        scores=scores,
        summary=_summary(items, scores, answers, configuration, config, model),
        stopped=stopped and f"{_NOT_JUDGED}: {stopped}",
    )


def scores_of(items: Mapping[Text, SentencesItem], answers: SentenceAnswers, seed: int) -> dict[Text, CheckScores]:
    """Return the scores of the judged checks by output. A score is None if the judge's outputs do not decide it."""
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
    """Return the reason why too many outputs are not judged. Return None if enough are."""
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
    """Return the judge's errors by sentence. Return {} if it is not calibrated with this prompt and these settings."""
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
