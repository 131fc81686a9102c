"""The workflow of `judge calibrate`: labels → verdicts, read once → figures → decision.

Without --judge the verdicts are stored ones. With it, judges are called about the labelled items, the corrupted outputs
and the probes in one judge run, with one budget and one `--resume`. Judges of sentences are called as for checks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.asking.criteria import NamedRubric, choose_criteria, families_of
from skill_evaluator.judges.asking.items import JudgedItem, OutputItem
from skill_evaluator.judges.asking.judging import RUNS, Asking, taken_up, write_judging, write_papers
from skill_evaluator.judges.asking.questions import JudgePrompt, JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, NoUsableOutput, StoredScore, StoredVerdict, head_of
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgeRun, JudgingSize
from skill_evaluator.judges.calibration.agreement import (
    CalibrationOptions,
    pair_results,
    score_results,
    sentence_agreement,
)
from skill_evaluator.judges.calibration.corruption import CONTROL, CorruptedPair, GoodOutput, corrupt
from skill_evaluator.judges.calibration.detection import batch_results, detection_of
from skill_evaluator.judges.calibration.labels import Labels, SentenceLabel, read_labels, read_verdicts
from skill_evaluator.judges.calibration.probes import probe_biases, probed_items
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, SentenceErrors
from skill_evaluator.judges.modes.pairwise import (
    VERDICTS,
    PairItem,
    PairMatch,
    make_matches,
    reduce_matches,
    verdicts_of,
)
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of, regression_questions
from skill_evaluator.judges.modes.regression_results import PairResult, read_regressions, reduce_regressions
from skill_evaluator.judges.modes.scoring import SCORES, ScoreQuestion, reduce_scores, score_questions, scores_of
from skill_evaluator.judges.modes.sentences import (
    MOST_ASKED,
    SentencesItem,
    SentencesJudge,
    ask_sentences,
    prompt_of_sentences,
    votes_on,
)
from skill_evaluator.judges.modes.ship_rules import ShipRules
from skill_evaluator.judges.stories.judging import Drawn, Judged, again_of
from skill_evaluator.judges.stories.requests import CalibrateRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import Criterion, MethodName, Rubric, load_rubric
from skill_evaluator.runner.session import Watch, with_keys
from skill_evaluator.text import canonical_json, counted, digest

CORRUPTED = "corrupted.jsonl"


def calibrate(request: CalibrateRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    """Measure judges against human labels by stored verdicts or, with --judge, by calling them.

    Return the size of a dry run. Raise JudgeError for options that do not go together.
    """
    if request.labels is None:
        raise JudgeError("name the file of human labels: --labels FILE")
    labels = read_labels(request.labels)
    if request.judges:
        if request.verdicts is not None or request.batch is not None:
            raise JudgeError("--verdicts and --batch read stored results and cannot be combined with --judge")
        bench = Bench.of(request, watch)
        return (_call_about_sentences if labels.sentences else _call)(request, bench, labels, drawn)
    if request.probes or request.corrupt:
        raise JudgeError("--probe and --corrupt require --judge ID")
    calibration = JudgeCalibration(bar=request.bar, judges=_stored_results(request, labels))
    return Judged(results=calibration, folder=request.out, code=_exit_code(calibration))


def _exit_code(calibration: JudgeCalibration) -> int:
    return EXIT_INCOMPLETE if any(judge.unusable for judge in calibration.judges) else EXIT_OK


def _stored_results(request: CalibrateRequest, labels: Labels) -> list[JudgeResult]:
    if request.verdicts is None and request.batch is None:
        raise JudgeError("--labels FILE requires --judge ID, --verdicts FILE or --batch FILE")
    parts: list[JudgeResult] = []
    if request.verdicts is not None:
        verdicts, scores = read_verdicts(request.verdicts, labels)
        rubric = _rubric(request)
        options = CalibrationOptions(bar=request.bar, scales=_scales(rubric.criteria if rubric else ()))
        parts += [*pair_results(labels.pairs, verdicts, options), *score_results(labels.scored, scores, options)]
    if request.batch is not None:
        parts += batch_results(read_regressions(request.batch), labels, request.bar)
    return _merged(parts)


def _merged(parts: Iterable[JudgeResult]) -> list[JudgeResult]:
    """Join the results of each judge."""
    merged: dict[str, JudgeResult] = {}
    for part in parts:
        before = merged.get(part.judge, JudgeResult(judge=part.judge))
        lists = {"agreement": [*before.agreement, *part.agreement], "biases": [*before.biases, *part.biases]}
        known = {
            name: getattr(part, name) for name in ("detection", "batch", "unusable", "record") if getattr(part, name)
        }
        merged[part.judge] = before.model_copy(update={**lists, **known})
    return list(merged.values())


def _rubric(request: CalibrateRequest) -> Rubric | None:
    if request.rubric is None:
        return None
    return load_rubric(request.rubric, follow_links=load_settings(request.config).limits.follow_links)


def _scales(criteria: Iterable[Criterion]) -> dict[str, int]:
    return {criterion.id: criterion.highest for criterion in criteria}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTask:
    """The items that judges are called about, and the questions about them."""

    labels: Labels
    rubric: NamedRubric | None
    probes: Sequence[str]
    corrupted: Sequence[CorruptedPair]
    matches: Sequence[PairMatch]
    scores: Sequence[ScoreQuestion]
    pairs: Sequence[JudgedPair]
    questions: Sequence[JudgeQuestion]
    prompts: Sequence[JudgePrompt]

    @property
    def criteria(self) -> Sequence[Criterion]:
        """The criteria of the rubric."""
        return () if self.rubric is None else self.rubric.criteria

    @property
    def asking(self) -> Asking:
        """The task as a judge run."""
        dimensions = {one.name: one.question for pair in self.pairs for one in pair.dimensions}
        paper = {"rubric": None if self.rubric is None else self.rubric.paper, "dimensions": dimensions}
        items = [match.item for match in self.matches] + [score.item for score in self.scores]
        return Asking(
            mode="calibrate",
            rubric=digest(canonical_json(paper)),
            criteria=[*(one.id for one in self.criteria), *dimensions],
            prompts=self.prompts,
            items={item.id: item.digest for item in (*items, *(pair.item for pair in self.pairs))},
            questions=self.questions,
            notes=[self._note],
            paper=paper,
        )

    @property
    def _note(self) -> str:
        controls = sum(pair.corruption == CONTROL for pair in self.corrupted)
        counts = {
            "labelled pair": len(self.labels.pairs) if self.matches else 0,
            "scored output": len(self.labels.scored),
            "corrupted output": len(self.corrupted) - controls,
            "control": controls,
        }
        parts = [counted(count, noun) for noun, count in counts.items() if count]
        return f"{', '.join([*parts, *self.probes])}; every pair is judged in both orders"


def _task(request: CalibrateRequest, labels: Labels) -> CalibrationTask:
    """Make the questions about labelled items, corrupted outputs and probes. Raise JudgeError for missing texts."""
    if request.rubric is None and not request.corrupt:
        raise JudgeError("--judge requires --rubric FILE for labelled items, or --corrupt N for corrupted outputs")
    rubric = _rubric(request)
    if _has_scores(labels, rubric):
        if request.corrupt or rubric is None:
            raise JudgeError(f"{request.labels} has scores, which require --rubric FILE; --corrupt N requires pairs")
        labels = replace(labels, pairs={})
    else:
        labels = replace(labels, scored={})
    _refuse_omitted_texts(labels)
    good = [
        GoodOutput(id=pair.id, stratum=pair.stratum, input=pair.input, output=pair.preferred)
        for pair in labels.pairs.values()
        if pair.input and pair.preferred
    ]
    corrupted = corrupt(good, request.corrupt, request.seed)
    if request.corrupt and not corrupted:
        raise JudgeError(f"no output of {request.labels} can be corrupted; --corrupt needs items with an input")
    chosen = None if rubric is None else _criteria(rubric, labels, request)
    return _questions(request, labels, chosen, corrupted)


def _questions(
    request: CalibrateRequest, labels: Labels, rubric: NamedRubric | None, corrupted: Sequence[CorruptedPair]
) -> CalibrationTask:
    questions, prompts = list[JudgeQuestion](), list[JudgePrompt]()
    matches, scores = list[PairMatch](), list[ScoreQuestion]()
    items: list[JudgedItem] = []
    if rubric is not None:
        items += [pair.item for pair in labels.pairs.values()]
        items += [scored.item for scored in labels.scored.values()]
        items += probed_items(request.probes, labels)
    elif request.probes:
        raise JudgeError("--probe requires --rubric FILE")
    pairs = [item for item in items if isinstance(item, PairItem)]
    outputs = [item for item in items if isinstance(item, OutputItem)]
    if rubric is not None and pairs:
        matches, prompt = make_matches(rubric, pairs, request.seed)
        prompts.append(prompt)
        questions += [question for match in matches for question in match.questions]
    if rubric is not None and outputs:
        scores, used = score_questions(rubric, outputs, request.seed, reference=False)
        prompts += used
        questions += [score.question for score in scores]
    changed = {pair.id: RegressionItem.model_validate(pair.model_dump()) for pair in corrupted}
    judged = pairs_of(changed, (), "default", ())
    if judged:
        made, prompt = regression_questions(judged, ShipRules(), request.seed)
        prompts.append(prompt)
        questions += made
    return CalibrationTask(
        labels=labels,
        rubric=rubric,
        probes=request.probes,
        corrupted=corrupted,
        matches=matches,
        scores=scores,
        pairs=judged,
        questions=questions,
        prompts=prompts,
    )


def _has_scores(labels: Labels, rubric: Rubric | None) -> bool:
    """Return whether scores are measured: if people gave nothing else, or the rubric compares nothing."""
    if not labels.scored or not labels.pairs:
        return bool(labels.scored)
    methods = {criterion.primary_method for criterion in rubric.criteria} if rubric is not None else set()
    return bool(methods) and "pairwise_comparison" not in methods


def _refuse_omitted_texts(labels: Labels) -> None:
    outputs = [(name, text) for name, pair in labels.pairs.items() for text in (pair.output_1, pair.output_2)]
    outputs += [(name, item.output) for name, item in labels.scored.items()]
    for name, output in outputs:
        if not output:
            raise JudgeError(f"item '{name}' of {labels.path} has no texts, which --judge requires")


def _criteria(rubric: Rubric, labels: Labels, request: CalibrateRequest) -> NamedRubric:
    """Return the criteria of the labels' method; of scored outputs those by which people scored."""
    by_people = dict.fromkeys(name for item in labels.scored.values() for name in item.scores)
    methods: tuple[MethodName, ...] = ("pairwise_comparison",)
    if labels.scored:
        methods = ("direct_scoring", "reference_based")
    suited = [criterion.id for criterion in rubric.criteria if criterion.primary_method in methods]
    wanted = [name for name in suited if not labels.scored or name in by_people]
    if labels.scored and not wanted:
        names = ", ".join(by_people)
        raise JudgeError(f"people scored {request.labels} by {names}, and {request.rubric} scores by none of these")
    return choose_criteria(str(request.rubric), rubric, wanted, methods)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOutputs:
    """All outputs of one judge, read once."""

    record: JudgeRecord
    verdicts: Sequence[StoredVerdict] = ()
    scores: Sequence[StoredScore] = ()
    regressions: Mapping[str, PairResult]
    unusable: NoUsableOutput | None


def _read_outputs(task: CalibrationTask, part: JudgeRun, record: JudgeRecord, replicates: int) -> JudgeOutputs:
    """Read the outputs of a judge; it is unusable if it is in every mode."""
    verdicts, scores = list[StoredVerdict](), list[StoredScore]()
    regressions: dict[str, PairResult] = {}
    unusable: list[NoUsableOutput | None] = []
    if task.matches:
        preferences = reduce_matches(task.matches, task.criteria, part.answers, replicates, record)
        verdicts = list(verdicts_of(preferences))
        unusable.append(preferences.unusable)
    if task.scores:
        methods = {one.id: one.primary_method for one in task.criteria}
        scored = reduce_scores(task.scores, part.answers, replicates, record, methods)
        scores = list(scores_of(scored))
        unusable.append(scored.unusable)
    if task.pairs:
        strong = part.run.model.judge == "strong"
        found = reduce_regressions(task.pairs, part.answers, replicates, ShipRules(), record, declared_strong=strong)
        regressions = {pair.id: pair for pair in found.pairs}
        unusable.append(found.unusable)
    return JudgeOutputs(
        record=record,
        verdicts=verdicts,
        scores=scores,
        regressions=regressions,
        unusable=None if None in unusable else unusable[0],
    )


def _judge_results(task: CalibrationTask, outputs: JudgeOutputs, options: CalibrationOptions) -> Iterator[JudgeResult]:
    """Yield the parts of a judge's result."""
    judge = outputs.record.model_id
    yield JudgeResult(judge=judge, record=outputs.record, unusable=outputs.unusable)
    if outputs.unusable is None:
        yield from pair_results(task.labels.pairs, outputs.verdicts, options)
        yield from score_results(task.labels.scored, outputs.scores, options)
        biases = probe_biases(task.probes, task.labels, outputs.verdicts, outputs.scores, options.scales)
        detection = detection_of(task.corrupted, outputs.regressions) if task.corrupted else None
        yield JudgeResult(judge=judge, biases=biases, detection=detection)


def _call(request: CalibrateRequest, bench: Bench, labels: Labels, drawn: Drawn) -> Judged | JudgingSize:
    """Call judges about labelled items, corrupted outputs and probes, and measure their outputs."""
    task = _task(request, labels)
    asking = task.asking
    if request.dry_run:
        return bench.size(asking)
    asked = bench.ask(asking)
    head = head_of(asked.judging, "dimensions" if task.rubric is None else task.rubric.file)
    outputs = [_read_outputs(task, part, asked.record_of(part), head.replicates) for part in asked.runs]
    families = families_of(bench.configuration.models)
    options = CalibrationOptions(bar=request.bar, scales=_scales(task.criteria), families=families)
    parts = [part for one in outputs for part in _judge_results(task, one, options)]
    calibration = JudgeCalibration(bar=request.bar, judging=head, judges=_merged(parts))
    _write_lines(asked.folder / VERDICTS, (verdict for one in outputs for verdict in one.verdicts), task.labels.pairs)
    _write_lines(asked.folder / SCORES, (score for one in outputs for score in one.scores), task.labels.scored)
    _write_lines(asked.folder / CORRUPTED, task.corrupted, {pair.id for pair in task.corrupted})
    write_papers(asked.folder, asking, calibration, drawn(calibration))
    return Judged(
        results=calibration,
        folder=asked.folder,
        code=_exit_code(calibration) if asked.complete else EXIT_INCOMPLETE,
        stopped=asked.stopped,
        again=[] if asked.complete else again_of(request, asked, asked.stopped),
    )


def _write_lines(path: Path, lines: Iterable[StoredVerdict | StoredScore | CorruptedPair], ids: Iterable[str]) -> None:
    """Write the lines about these items; no file without a line."""
    known = set(ids)
    written: list[BaseModel] = [line for line in lines if line.id in known]
    if written:
        replace_blocks(path, (f"{line.model_dump_json()}\n" for line in written))


MOST_CALLS = "at most: a sentence that the judge denies is judged up to twice more; usually a third of these calls"
_MIN_SENTENCE_LABELS = 30  # from which on a sentence is corrected by its own errors


def _call_about_sentences(
    request: CalibrateRequest, bench: Bench, labels: Labels, drawn: Drawn
) -> Judged | JudgingSize:
    """Call one judge about labelled sentences as for checks, and measure how often it errs."""
    if len(bench.models) > 1 or request.rubric or request.corrupt or request.probes or request.replicates > 1:
        raise JudgeError("labels of sentences require one --judge ID, without --rubric, --corrupt, --probe and -n")
    items = _sentence_items(labels)
    asking = _sentence_asking(items, labels, request.seed)
    if request.dry_run:
        return replace(bench, request=replace(request, replicates=MOST_ASKED)).size(asking)
    judging = bench.planned(asking)
    folder = request.out / judging.id
    if request.resume is not None:
        judging, folder = taken_up(judging, request.resume, request.out)
    (model,) = with_keys(bench.models, bench.configuration).values()
    session = bench.session()
    write_judging(folder, judging)
    judge = SentencesJudge(model=model, asked_for=judging.id, seed=judging.seed, folder=folder / RUNS)
    asked = ask_sentences(list(items.values()), judge, session)
    verdicts = {
        (output_id, sentence): vote.holds
        for output_id, item in items.items()
        for sentence, vote in votes_on(item, asked.answered, judging.seed).verdicts.items()
    }
    errors = errors_by_sentence(labels.sentences, verdicts)
    texts = (made.completion.text for made in asked.answered.values() if made.completion is not None)
    unusable = None if errors[""].labels else NoUsableOutput(unscored={}, example=next(texts, ""))
    result = JudgeResult(
        judge=model.id,
        agreement=[] if unusable else [sentence_agreement(errors[""], request.bar)],
        sentences=errors,
        unusable=unusable,
        record=asked.record(model, session),
    )
    calibration = JudgeCalibration(bar=request.bar, judging=head_of(judging, "sentences"), judges=[result])
    write_papers(folder, asking, calibration, drawn(calibration))
    stopped = [] if asked.stopped is None else [f"{model.id} stopped: {asked.stopped}"]
    whole = AskedJudging(judging=judging, folder=folder, runs=(), session=session)
    again = again_of(request, whole, stopped) if stopped else []
    code = EXIT_INCOMPLETE if stopped else _exit_code(calibration)
    return Judged(results=calibration, folder=folder, code=code, stopped=stopped, again=again)


def _sentence_items(labels: Labels) -> dict[str, SentencesItem]:
    """Return the labelled outputs with their sentences. Raise JudgeError if one id has different texts."""
    items: dict[str, SentencesItem] = {}
    for (output_id, sentence), label in labels.sentences.items():
        before = items.get(output_id, SentencesItem(input=label.input or "", output=label.output, sentences={}))
        if (before.input, before.output) != (label.input or "", label.output):
            raise JudgeError(f"two labels of '{output_id}' in {labels.path} have different texts; rename one")
        items[output_id] = replace(before, sentences={**before.sentences, sentence: sentence})
    return items


def _sentence_asking(items: Mapping[str, SentencesItem], labels: Labels, seed: int) -> Asking:
    sentences = list(dict.fromkeys(sentence for _, sentence in labels.sentences))
    return Asking(
        mode="calibrate",
        rubric=digest(canonical_json(sentences)),
        criteria=["sentences"],
        prompts=[prompt_of_sentences()],
        items={output_id: digest(canonical_json(asdict(item))) for output_id, item in items.items()},
        questions=[question for item in items.values() if (question := votes_on(item, {}, seed).question)],
        notes=[MOST_CALLS],
        paper={"sentences": sentences},
    )


def errors_by_sentence(
    labels: Mapping[tuple[str, str], SentenceLabel], verdicts: Mapping[tuple[str, str], bool | None]
) -> dict[str, SentenceErrors]:
    """Return the errors over all sentences, under the empty key, and of each sentence with enough labels."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for key, label in labels.items():
        verdict, kind = verdicts.get(key), "yes" if label.human else "no"
        kinds = ["lost"] if verdict is None else [kind, *([f"{kind}_right"] if verdict is label.human else [])]
        for sentence in ("", label.sentence):
            counts[sentence].update(kinds)
    errors = {sentence: SentenceErrors(**count) for sentence, count in counts.items()}
    return {name: one for name, one in errors.items() if not name or one.labels >= _MIN_SENTENCE_LABELS}
