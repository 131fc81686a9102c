"""What a judge decides of a run: the sentences among its checks, once its calls are made, or read again without a call.

A judge is no part of scoring: what it says is handed on as values, and its answers lie in the run's folder.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill_evaluator.judges.asking.reading import commonest_failure
from skill_evaluator.judges.calibration.results import SentenceErrors, read_calibration
from skill_evaluator.judges.modes.sentences import (
    SentenceAnswers,
    SentencesItem,
    SentencesJudge,
    ask_sentences,
    read_sentence_answers,
    votes_on,
)
from skill_evaluator.library.cases import Case
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers import Configuration, lack_of
from skill_evaluator.records.summaries import FEWEST_LABELS, CorrectedShare, JudgedChecks
from skill_evaluator.runner.journal import JUDGE, outcomes
from skill_evaluator.runner.prices import call_cost, price_of
from skill_evaluator.runner.runs import Run
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Session
from skill_evaluator.scoring.checked import CheckScore, CheckScores
from skill_evaluator.stats import rounded, total_or_none
from skill_evaluator.text import listed

_NOT_JUDGED = "not judged"
Text = tuple[str, str]
"""The id of a case, and an answer to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """The scores of the checks that a judge decides, by answer; what the record says of it; why some are not there."""

    scores: Mapping[Text, CheckScores] = field(default_factory=dict)
    summary: JudgedChecks | None = None
    stopped: str | None = None


def judged_items(cases: Iterable[Case], answers: Mapping[Call, Replicate]) -> dict[Text, SentencesItem]:
    """Return what a judge is asked, each different answer once; a refused or truncated one fails without it."""
    by_id = {case.id: (case, sentences) for case in cases if (sentences := case.sentences)}
    items: dict[Text, SentencesItem] = {}
    for call, made in answers.items():
        if call.case_id in by_id and made.completion is not None and made.failure is None:
            case, sentences = by_id[call.case_id]
            text = made.completion.text
            items[case.id, text] = SentencesItem(input=case.document, output=made.output, sentences=sentences)
    return items


def judge_run(run: Run, cases: Sequence[Case], model: Model, session: Session, config: Path) -> JudgedRun:
    """Ask a judge what is still open of a run whose calls are made, and return what it says."""
    configuration = session.configuration
    if lack := lack_of(model, configuration.kinds[model.provider], configuration.keys):
        return JudgedRun(stopped=f"{_NOT_JUDGED}: {model.id}: {lack}")
    items = judged_items(cases, outcomes(run.folder))
    manifest = run.manifest
    judge = SentencesJudge(model=model, asked_for=manifest.run_id, seed=manifest.seed, folder=run.folder / JUDGE)
    asked = ask_sentences(list(items.values()), judge, session)
    return judged_by(items, asked, manifest.seed, configuration, config, model)


def read_judged_run(run: Run, cases: Sequence[Case], configuration: Configuration, config: Path) -> JudgedRun:
    """Read the verdicts of a judge on the answers of a run, without a call; empty where no check needs one."""
    items = judged_items(cases, outcomes(run.folder))
    if not items:
        return JudgedRun()
    asked = read_sentence_answers(run.folder / JUDGE)
    model = next((one for one in configuration.models if asked.manifest and one.id == asked.manifest.model_id), None)
    return judged_by(items, asked, run.manifest.seed, configuration, config, model)


def judged_by(
    items: Mapping[Text, SentencesItem],
    asked: SentenceAnswers,
    seed: int,
    configuration: Configuration,
    config: Path,
    model: Model | None,
) -> JudgedRun:
    """Return what answers of a judge come to; `model` is the judge, None where it has left models.yaml."""
    scores = scores_of(items, asked, seed)
    open_still = sum(votes_on(item, asked.answered, seed).question is not None for item in items.values())
    unread = [next((one.reason for one in votes.values() if one.score is None), "") for votes in scores.values()]
    grounds = Counter(filter(None, unread))
    failed = commonest_failure(asked.answered.values())
    why = f" ({failed})" if failed else ""
    stopped = asked.stopped or (f"{open_still} of {len(items)} answers{why}" if open_still else None)
    if not stopped and grounds.total() > len(items) * (1.0 - configuration.settings.required_coverage):
        why = listed([f"{ground} {count}" for ground, count in grounds.most_common()])
        lost = f"{grounds.total()} of {len(items)} answers"
        stopped = f"{lost}: the judge's own cannot be read ({why}); fix the judge or name another one, then --resume"
    return JudgedRun(
        scores=scores,
        summary=_summary(items, scores, asked, configuration, config, model),
        stopped=stopped and f"{_NOT_JUDGED}: {stopped}",
    )


def scores_of(items: Mapping[Text, SentencesItem], asked: SentenceAnswers, seed: int) -> dict[Text, CheckScores]:
    """Return what a judge's answers make of the checks, each with its ground."""
    return {
        text: {
            name: CheckScore(None if vote.holds is None else float(vote.holds), vote.ground)
            for name, vote in votes_on(item, asked.answered, seed).verdicts.items()
        }
        for text, item in items.items()
    }


def _summary(
    items: Mapping[Text, SentencesItem],
    scores: Mapping[Text, CheckScores],
    asked: SentenceAnswers,
    configuration: Configuration,
    config: Path,
    model: Model | None,
) -> JudgedChecks | None:
    """Return what the record says of the judge: by labels of people, also the shares without its errors."""
    manifest = asked.manifest
    if manifest is None:
        return None
    errors = _errors_of(manifest.model_id, manifest.digests, configuration.settings, config)
    verdicts: dict[str, list[float]] = {}
    for text, item in items.items():
        for name, sentence in item.sentences.items():
            if (score := scores[text][name].score) is not None:
                verdicts.setdefault("", []).append(score)
                verdicts.setdefault(sentence, []).append(score)
    whole = errors.get("", SentenceErrors())
    shares = {
        sentence: CorrectedShare(judged=round(sum(given) / len(given), 6), value=figure.value, ci95=figure.ci95)
        for sentence, given in verdicts.items()
        if whole.labels >= FEWEST_LABELS
        and sentence in errors
        and (figure := errors[sentence].corrected(int(sum(given)), len(given))) is not None
    }
    price = None if model is None else price_of(model, configuration.kinds[model.provider])
    costs = [None if model is None else call_cost(model, price, made) for made in asked.answered.values()]
    return JudgedChecks(
        model_id=manifest.model_id,
        digests=manifest.digests,
        calls=len(asked.answered),
        cost_usd=rounded(total_or_none(costs)),
        labels=whole.labels,
        shares=shares,
    )


def _errors_of(
    model_id: str, digests: Mapping[str, str], settings: Settings, config: Path
) -> Mapping[str, SentenceErrors]:
    """Return by sentence how often the judge errs, if the calibration in the settings asked it in this way."""
    calibration = read_calibration(config, settings)
    if calibration is None or calibration.judging is None:
        return {}
    if digests["sentences"] not in {prompt.digest for prompt in calibration.judging.prompts}:
        return {}
    return next(
        (
            one.sentences
            for one in calibration.judges
            if one.judge == model_id and one.record is not None and one.record.settings == digests["settings"]
        ),
        {},
    )
