"""The story of `judge calibrate` on sentences that people labelled: the judge is asked as it is about checks."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, replace

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.judges.asking.judging import RUNS, Asking, taken_up, write_judging, write_papers
from skill_evaluator.judges.asking.results import head_of
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgingSize
from skill_evaluator.judges.calibration.labels import Labels, SentenceLabel
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, SentenceErrors
from skill_evaluator.judges.modes.asked_sentences import SentencesJudge, ask_sentences
from skill_evaluator.judges.modes.sentences import MOST_ASKED, SentencesItem, prompt_of_sentences, votes_on
from skill_evaluator.judges.stories.judging import Drawn, Judged, again_of
from skill_evaluator.judges.stories.requests import CalibrateRequest
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import canonical_json, digest

MOST_CALLS = "at most: what the judge says no to is asked up to twice more; mostly it is a third of these calls"
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
        judge=model.id, sentences=errors_by_sentence(labels.sentences, verdicts), record=asked.record(model, session)
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
