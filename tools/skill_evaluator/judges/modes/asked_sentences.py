"""Sentences about answers → a judge's answers to them: it is asked until each is settled, or cannot be.

Its calls lie beside what they are about, each pass in a folder of its own. Whoever has the texts finds the judge's
answers again by them, so that no sentence is asked twice, and none to be scored anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.identifiers import now
from skill_evaluator.judges.asking.judging import JUDGING_VERSION
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, record_of
from skill_evaluator.judges.modes.sentences import SentencesItem, prompt_of_sentences, votes_on
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.journal import MANIFEST, Manifest, outcomes, read_manifest
from skill_evaluator.runner.prices import dearest_cost, price_of
from skill_evaluator.runner.runs import Run, run_id_of, settings_digest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Questions, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencesJudge:
    """Who is asked, for which run or judging, and where the answers are kept."""

    model: Model
    asked_for: str
    seed: int
    folder: Path

    @property
    def digests(self) -> dict[str, str]:
        """What shapes the answers of the judge: answers that others shaped are not its own."""
        return {"settings": settings_digest(self.model), "sentences": prompt_of_sentences().identity.digest}

    def run(self, questions: Iterable[JudgeQuestion], number: int) -> Run:
        """Return a pass of these questions, not yet on disk."""
        manifest = Manifest(
            run_id=run_id_of(self.asked_for, "judge", self.model.id, mark=str(number)),
            created=now(),
            skill="judge",
            skill_version=str(JUDGING_VERSION),
            model_id=self.model.id,
            provider=self.model.provider,
            replicates=1,
            seed=self.seed,
            judging=self.asked_for,
            cases={question.case_id: question.digest for question in questions},
            digests=self.digests,
            evaluator_version=__version__,
        )
        return Run(model=self.model, manifest=manifest, folder=self.folder / str(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceAnswers:
    """What a judge answered, by the ids of the questions; `manifest` is of its last pass, None before the first."""

    manifest: Manifest | None = None
    answered: Mapping[str, Replicate] = field(default_factory=dict)
    stopped: str | None = None

    def record(self, model: Model, session: Session) -> JudgeRecord | None:
        """Return what results say of the judge and all its calls; None where there was none."""
        if self.manifest is None:
            return None
        run = Run(model=model, manifest=self.manifest, folder=Path())
        answers = {made.call: made for made in self.answered.values()}
        price = price_of(model, session.configuration.kinds[model.provider])
        return record_of(run, answers, price, self.stopped).model_copy(update={"planned": len(answers)})


def read_sentence_answers(folder: Path, digests: Mapping[str, str] | None = None) -> SentenceAnswers:
    """Read what the judge of these digests answered, by default the last judge that was asked; raise RunError."""
    passes = [(manifest, path) for path in _passes(folder) if (manifest := read_manifest(path))]
    wanted = digests or (passes[-1][0].digests if passes else {})
    own = [(manifest, path) for manifest, path in passes if manifest.digests == wanted]
    made = [made for _, path in own for made in outcomes(path).values()]
    return SentenceAnswers(
        manifest=own[-1][0] if own else None, answered={one.call.case_id: one for one in made if one.answered}
    )


def _passes(folder: Path) -> Sequence[Path]:
    return sorted((path.parent for path in folder.glob(f"*/{MANIFEST}")), key=lambda path: int(path.name))


def ask_sentences(items: Sequence[SentencesItem], judge: SentencesJudge, session: Session) -> SentenceAnswers:
    """Ask a judge what is still open of these answers, pass by pass, until nothing is left that it could settle.

    Earlier results that could not be read are called again: the judge may have been fixed since.
    """
    earlier = read_sentence_answers(judge.folder, judge.digests)
    manifest, answered, stopped = earlier.manifest, dict(earlier.answered), None
    price = price_of(judge.model, session.configuration.kinds[judge.model.provider])
    for made in answered.values():
        if made.completion is not None:
            session.budget.count_earlier(dearest_cost(judge.model, price, made.completion) or 0.0)
    for votes in [votes_on(item, answered, judge.seed) for item in items]:
        if votes.question is None and any(vote.holds is None for vote in votes.verdicts.values()):
            answered = {question: made for question, made in answered.items() if question not in votes.unread}
    tried: set[str] = set()  # what failed is asked again when the command is
    while stopped is None:
        open_questions = (votes_on(item, answered, judge.seed).question for item in items)
        questions = {one.case_id: one for one in open_questions if one is not None and one.case_id not in tried}
        if not questions:
            break
        tried |= questions.keys()
        run = judge.run(questions.values(), len(_passes(judge.folder)) + 1)
        asked = session.ask([run], _asking(questions))
        manifest, stopped = run.manifest, asked.why_stopped(run)
        answered |= {call.case_id: made for call, made in outcomes(run.folder).items()}
    return SentenceAnswers(manifest=manifest, answered=answered, stopped=stopped)


def _asking(questions: Mapping[str, JudgeQuestion]) -> Questions:
    def request_for(run: Run, call: Call) -> Request:
        return questions[call.case_id].request(call.replicate, run.manifest.seed, run.model.params.max_output_tokens)

    return Questions(request_for=request_for)
