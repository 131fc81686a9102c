"""The story of judged sentences: a judge is asked about answers until each sentence is settled, or cannot be.

Its calls lie beside what they are about, each pass in a folder of its own. Whoever has the answers finds the judge's
again by their texts, so that no sentence is asked twice, and none to be scored anew.
"""

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.judges.asking.judging import JUDGING_VERSION, RUNS, Asking, taken_up, write_judging, write_papers
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, head_of, record_of
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgingSize
from skill_evaluator.judges.calibration.labels import Labels, SentenceLabel
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, SentenceErrors
from skill_evaluator.judges.modes.sentences import MOST_ASKED, SentencesItem, prompt_of_sentences, votes_on
from skill_evaluator.judges.stories.judging import Drawn, Judged, again_of
from skill_evaluator.judges.stories.requests import CalibrateRequest
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.journal import MANIFEST, Manifest, outcomes, read_manifest
from skill_evaluator.runner.prices import dearest_cost, price_of
from skill_evaluator.runner.runs import Run, run_id_of, settings_digest
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Questions, Session, with_keys
from skill_evaluator.text import canonical_json, digest


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
            created=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}",
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
    """Ask a judge what is still open of these answers, pass by pass, until nothing is left that it could settle."""
    earlier = read_sentence_answers(judge.folder, judge.digests)
    manifest, answered, stopped = earlier.manifest, dict(earlier.answered), None
    price = price_of(judge.model, session.configuration.kinds[judge.model.provider])
    for made in answered.values():
        if made.completion is not None:
            session.budget.count_earlier(dearest_cost(judge.model, price, made.completion) or 0.0)
    tried: set[str] = set()  # what failed is asked again when the command is
    while stopped is None:
        standings = (votes_on(item, answered, judge.seed).question for item in items)
        questions = {one.case_id: one for one in standings if one is not None and one.case_id not in tried}
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


MOST_CALLS = "at most: what the judge says no to is asked up to twice more; usually it is a third of these calls"
_FEWEST_OF_ONE = 30  # labels of a sentence from which on it is corrected by itself


def calibrate_sentences(request: CalibrateRequest, bench: Bench, labels: Labels, drawn: Drawn) -> Judged | JudgingSize:
    """Ask one judge about labelled sentences as it is asked about checks, and return how often it errs."""
    if len(bench.models) > 1 or request.rubric or request.broken or request.probes or request.replicates > 1:
        raise JudgeError("labels of sentences go with one --judge ID, and without --rubric, --broken and --probe")
    if request.split is not None:
        kept = {key: one for key, one in labels.sentences.items() if one.split == request.split}
        labels = replace(labels, sentences=kept)
    items: dict[str, SentencesItem] = {}
    for (output_id, sentence), label in labels.sentences.items():
        before = items.get(output_id, SentencesItem(input=label.input or "", output=label.output, sentences={}))
        if (before.input, before.output) != (label.input or "", label.output):
            raise JudgeError(f"two labels of '{output_id}' in {labels.path} have different texts; give one another id")
        items[output_id] = replace(before, sentences={**before.sentences, sentence: sentence})
    first = [question for item in items.values() if (question := votes_on(item, {}, request.seed).question)]
    sentences = list(dict.fromkeys(sentence for _, sentence in labels.sentences))
    asking = Asking(
        mode="calibrate",
        rubric=digest(canonical_json(sentences)),
        criteria=["sentences"],
        prompts=[prompt_of_sentences()],
        items={output_id: digest(canonical_json(asdict(item))) for output_id, item in items.items()},
        questions=first,
        notes=[MOST_CALLS],
        paper={"sentences": sentences},
    )
    if request.dry_run:
        return replace(bench, request=replace(request, replicates=MOST_ASKED)).size(asking)
    judging = bench.planned(asking)
    folder = request.out / judging.id
    if request.resume is not None:
        judging, folder = taken_up(judging, request.resume, request.out)
    (model,) = with_keys(bench.models, bench.configuration).values()
    session = bench.session(folder, [model])
    write_judging(folder, judging)
    judge = SentencesJudge(model=model, asked_for=judging.id, seed=judging.seed, folder=folder / RUNS)
    asked = ask_sentences(list(items.values()), judge, session)
    verdicts = {
        (output_id, sentence): vote.holds
        for output_id, item in items.items()
        for sentence, vote in votes_on(item, asked.answered, judging.seed).verdicts.items()
    }
    result = JudgeResult(
        judge=model.id,
        sentences=errors_by_sentence(labels.sentences, verdicts),
        record=asked.record(model, session),
    )
    calibration = JudgeCalibration(bar=request.bar, judging=head_of(judging, "sentences"), judges=[result])
    write_papers(folder, asking, calibration, drawn(calibration))
    stopped = [] if asked.stopped is None else [f"{model.id} stopped: {asked.stopped}"]
    whole = AskedJudging(judging=judging, folder=folder, runs=(), session=session)
    code, again = (EXIT_INCOMPLETE, again_of(request, whole)) if stopped else (EXIT_OK, [])
    return Judged(results=calibration, folder=folder, code=code, stopped=stopped, again=again)


def errors_by_sentence(
    labels: Mapping[tuple[str, str], SentenceLabel], verdicts: Mapping[tuple[str, str], bool | None]
) -> dict[str, SentenceErrors]:
    """Return how often a judge errs over all sentences, under the empty key, and in each with enough labels."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for key, label in labels.items():
        verdict, way = verdicts.get(key), "yes" if label.human else "no"
        kinds = ["lost"] if verdict is None else [way, *([f"{way}_right"] if verdict is label.human else [])]
        for sentence in ("", label.sentence):
            counts[sentence].update(kinds)
    errors = {sentence: SentenceErrors(**count) for sentence, count in counts.items()}
    return {sentence: one for sentence, one in errors.items() if not sentence or one.labels >= _FEWEST_OF_ONE}
