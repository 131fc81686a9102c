"""The workflow of `judge calibrate`: read labels, read stored verdicts or call judges, and compute the figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration import agreement
from skill_evaluator.judges.calibration.corruption import CorruptedPair, corrupt
from skill_evaluator.judges.calibration.labels import (
    LabelledPair,
    Labels,
    ScoredItem,
    SentenceLabel,
    Unit,
    read_labels,
    read_verdicts,
)
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult, SentenceErrors
from skill_evaluator.judges.modes import pairwise, regression, scoring
from skill_evaluator.judges.modes import sentences as judged_sentences
from skill_evaluator.judges.modes.sentences import SentencesItem, SentencesJudge, Vote, votes_on
from skill_evaluator.judges.modes.ship_rules import ShipRules, dimensions_of
from skill_evaluator.judges.prompting import judging
from skill_evaluator.judges.prompting.criteria import NamedRubric, choose_criteria, families_of
from skill_evaluator.judges.prompting.questions import OutputItem
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.judges.workflows.requests import CalibrateRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import Rubric, load_rubric
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, counted, digest

CORRUPTED = "corrupted.jsonl"
_CALLS_NOTE = "at most: a sentence that the judge denies is judged up to twice more; usually a third of these calls"
_MIN_SENTENCE_LABELS = 30  # fewer labels give no useful error rate of one sentence


def calibrate(request: CalibrateRequest, watch: Watch | None) -> judging.Judged | judging.JudgeRunSize:
    """Measure judges against human labels, or return the size in a dry run. Raise JudgeError or ConfigError."""
    if request.labels is None:
        raise JudgeError("--labels FILE is required: the file of human labels")
    labels = read_labels(request.labels)
    stored = request.verdicts is not None or request.batch is not None
    if request.judges:
        if stored:
            raise JudgeError("--verdicts and --batch read stored results and cannot be combined with --judge")
        judge_session = judging.JudgeSession.of(request, watch)
        if labels.of(SentenceLabel):
            return _calibrate_sentences(request, judge_session, labels)
        return _calibrate_by_rubric(request, judge_session, labels)
    if request.probes or request.corrupt:
        raise JudgeError("--probe and --corrupt require --judge ID")
    if not stored:
        raise JudgeError("--labels FILE requires --judge ID, --verdicts FILE or --batch FILE")
    results = list[JudgeResult]()
    if request.verdicts is not None:
        verdicts = read_verdicts(request.verdicts, labels)
        results += agreement.label_results(labels, verdicts, request.bar, _scale_ends(_rubric(request)))
    if request.batch is not None:
        batch = regression.read_regressions(request.batch)
        results += [agreement.batch_result(judge, labels, request.bar) for judge in batch.judges]
    calibration = JudgeCalibration(bar=request.bar, judges=results)
    return judging.Judged(results=calibration, folder=request.out)


def _rubric(request: CalibrateRequest) -> Rubric | None:
    if request.rubric is None:
        return None
    return load_rubric(request.rubric, load_settings(request.config).limits)


def _scale_ends(rubric: Rubric | NamedRubric | None) -> dict[str, int]:
    return {} if rubric is None else {criterion.id: criterion.highest for criterion in rubric.criteria}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTask(judging.JudgeTask):
    """The questions of `judge calibrate`, on labelled items and on corrupted pairs."""

    labels: Labels
    named_rubric: NamedRubric | None  # None: only `corrupted` are judged
    matches: Sequence[pairwise.PairMatch] = ()  # labelled pairs, and their copies for probes
    outputs: Sequence[OutputItem] = ()  # labelled outputs, and their copies for probes
    corrupted: Sequence[CorruptedPair] = ()  # corrupted pairs and controls


def _make_task(request: CalibrateRequest, labels: Labels) -> CalibrationTask:
    rubric, judged = _judged_labels(request, labels)
    parts = [judged, *(agreement.with_probe(name, judged) for name in dict.fromkeys(request.probes))]
    pairs = [pair.as_item(pairwise.PairItem) for part in parts for pair in part.of(LabelledPair)]
    outputs = [output.as_item(OutputItem) for part in parts for output in part.of(ScoredItem)]
    matches, questions, prompts = pairwise.matches_of(pairs), list[Request](), list[str]()
    if rubric is not None and pairs:
        questions, prompts = pairwise.match_questions(rubric, matches, request.seed), [pairwise.PROMPT]
    elif rubric is not None and outputs:
        questions, prompts = scoring.score_questions(rubric, outputs, request.seed), scoring.prompts_of(rubric.criteria)
    corrupted, dimensions = _corrupted_pairs(request, labels), dimensions_of() if request.corrupt else ()
    questions += [one for pair in corrupted for one in regression.pair_questions(pair, ShipRules(), request.seed)]
    paper: dict[str, Any] = {
        "rubric": None if rubric is None else rubric.paper,
        "dimensions": {one.name: one.question for one in dimensions},
    }
    size = f"{counted(len(judged.lines), 'labelled item')}, {len(corrupted)} corrupted outputs and controls"
    return CalibrationTask(
        mode="calibrate",
        rubric=digest(canonical_json(paper)),
        criteria=[*_scale_ends(rubric), *paper["dimensions"]],
        prompts=[*prompts, *([regression.PROMPT] if corrupted else [])],
        items={item.id: item.digest for item in (*pairs, *outputs, *corrupted)},
        questions=questions,
        notes=[f"{size}; every pair is judged in both orders"],
        paper=paper,
        rubric_file="dimensions" if rubric is None else rubric.file,
        labels=judged,
        named_rubric=rubric,
        matches=matches,
        outputs=outputs,
        corrupted=corrupted,
    )


def _judged_labels(request: CalibrateRequest, labels: Labels) -> tuple[NamedRubric | None, Labels]:
    """Select the criteria and labelled items to judge: pairs if the rubric compares outputs, else scored outputs."""
    rubric, name = _rubric(request), str(request.rubric)
    if rubric is None:
        return None, replace(labels, lines=[])
    pairs, outputs = labels.of(LabelledPair), labels.of(ScoredItem)
    pairwise_criteria = [one.id for one in rubric.criteria if one.primary_method == "pairwise_comparison"]
    if pairs and (pairwise_criteria or not outputs):
        return choose_criteria(name, rubric, pairwise_criteria, ("pairwise_comparison",)), replace(labels, lines=pairs)
    scored_criteria = dict.fromkeys(criterion for output in outputs for criterion in output.scores)
    scoring = [one for one in rubric.criteria if one.id in scored_criteria and one.id not in pairwise_criteria]
    if not scoring:
        raise JudgeError(f"{name} has no criterion for the scores in {labels.path} ({', '.join(scored_criteria)})")
    return NamedRubric(file=name, rubric=rubric, criteria=scoring), replace(labels, lines=outputs)


def _corrupted_pairs(request: CalibrateRequest, labels: Labels) -> list[CorruptedPair]:
    """Return up to `request.corrupt` pairs of a preferred and a corrupted output, then harmless controls."""
    good = [
        OutputItem(id=pair.id, stratum=pair.stratum, input=pair.input, output=text)
        for pair in labels.of(LabelledPair)
        if pair.human and pair.input and (text := pair.output_2 if pair.human == 2 else pair.output_1)
    ]
    corrupted = corrupt(good, request.corrupt, request.seed)
    if request.corrupt and not corrupted:
        raise JudgeError(
            f"no output of {labels.path} can be corrupted; --corrupt requires pairs with `human` and `input`"
        )
    return corrupted


def _calibrate_by_rubric(
    request: CalibrateRequest, judge_session: judging.JudgeSession, labels: Labels
) -> judging.Judged | judging.JudgeRunSize:
    if request.rubric is None and (request.probes or not request.corrupt):
        option, alternative = ("--probe", "") if request.probes else ("--judge", " or --corrupt N")
        raise JudgeError(f"{option} requires --rubric FILE{alternative}")
    task = _make_task(request, labels)
    if request.dry_run:
        return judge_session.size(task)
    judged = judge_session.ask(task)
    families, scales = families_of(judge_session.configuration.models), _scale_ends(task.named_rubric)
    results, lines = list[JudgeResult](), list[judging.StoredLine]()
    for calls in judged.runs:
        verdicts, fields = _read_outputs(task, calls)
        measured = agreement.label_results(task.labels, verdicts, request.bar, scales, families)
        result = measured[0] if measured else JudgeResult(judge=calls.record.model_id)
        biases = [*result.biases, *agreement.probe_biases(request.probes, task.labels, verdicts, scales)]
        results.append(result.model_copy(update={**fields, "biases": biases}))
        lines += verdicts
    ids = {line.id for line in task.labels.lines}  # verdicts on probed items are not stored
    file_names = {judging.StoredScore: scoring.SCORES, judging.StoredVerdict: pairwise.VERDICTS}
    by_file = by_key((file_names[type(line)], line) for line in lines if line.id in ids)
    for name, file_lines in {**by_file, **({CORRUPTED: task.corrupted} if task.corrupted else {})}.items():
        judging.write_lines(judged.folder / name, file_lines)
    calibration = JudgeCalibration(bar=request.bar, judging=judged.judging, judges=results)
    judging.write_papers(judged.folder, task, calibration)
    return replace(judged, results=calibration)


def _read_outputs(task: CalibrationTask, calls: judging.JudgeCalls) -> tuple[list[judging.StoredLine], dict[str, Any]]:
    """Return a judge's verdicts on items, and the fields `record`, `detection` and `unusable` of its `JudgeResult`."""
    verdicts, detection, unusable = list[judging.StoredLine](), None, []
    if task.named_rubric is not None and task.matches:
        preferences = pairwise.reduce_matches(task.matches, task.named_rubric.criteria, calls)
        verdicts += pairwise.verdicts_of(preferences)
        unusable.append(preferences.unusable)
    if task.named_rubric is not None and task.outputs:
        scored = scoring.reduce_scores(task.outputs, task.named_rubric.criteria, calls)
        verdicts += scoring.scores_of(scored)
        unusable.append(scored.unusable)
    if task.corrupted:
        regressions = regression.reduce_regressions(task.corrupted, calls, ShipRules())
        detection = None if regressions.unusable else agreement.detection_of(task.corrupted, regressions.pairs)
        unusable.append(regressions.unusable)
    return verdicts, {"record": calls.record, "detection": detection, "unusable": next(filter(None, unusable), None)}


def _calibrate_sentences(
    request: CalibrateRequest, judge_session: judging.JudgeSession, labels: Labels
) -> judging.Judged | judging.JudgeRunSize:
    if len(judge_session.models) > 1 or request.rubric or request.corrupt or request.probes or request.replicates > 1:
        raise JudgeError("labels with a `sentence` require one --judge ID; omit --rubric, --corrupt, --probe and -n")
    items = _sentence_items(labels)
    task = _sentence_task(items, request.seed)
    if request.dry_run:
        return replace(judge_session, request=replace(request, replicates=judged_sentences.MAX_VOTES)).size(task)
    judge_run, folder, (model,) = judge_session.begin(task)
    judge = SentencesJudge(model=model, judged_run=judge_run.id, seed=judge_run.seed, folder=folder / judging.RUNS)
    calls = judged_sentences.ask_sentences(list(items.values()), judge, judge_session)
    votes = {
        (output_id, sentence): vote
        for output_id, item in items.items()
        for sentence, vote in votes_on(item, calls.answered, judge_run.seed).verdicts.items()
    }
    result = sentence_result(model.id, labels, votes, judging.texts_of(calls.answered.values()), request.bar)
    result = result.model_copy(update={"record": calls.record(model, judge_session)})
    head = judge_run.head(task.rubric_file)
    calibration = JudgeCalibration(bar=request.bar, judging=head, judges=[result])
    judging.write_papers(folder, task, calibration)
    stopped = [] if calls.stopped is None else [f"{model.id} stopped: {calls.stopped}"]
    again = judging.resume_command(request, judge_run.mode, folder, stopped) if stopped else []
    return judging.Judged(folder=folder, judging=head, results=calibration, stopped=stopped, again=again)


def _sentence_items(labels: Labels) -> dict[str, SentencesItem]:
    items: dict[str, SentencesItem] = {}
    for label in labels.of(SentenceLabel):
        new = SentencesItem(input=label.input or "", output=label.output, sentences={label.sentence: label.sentence})
        item = items.get(label.id, new)
        if (item.input, item.output) != (new.input, new.output):
            raise JudgeError(f"two labels with id '{label.id}' in {labels.path} have different texts; rename one id")
        items[label.id] = replace(item, sentences={**item.sentences, **new.sentences})
    return items


def _sentence_task(items: Mapping[str, SentencesItem], seed: int) -> judging.JudgeTask:
    sentences = list(dict.fromkeys(sentence for item in items.values() for sentence in item.sentences))
    return judging.JudgeTask(
        mode="calibrate",
        rubric=digest(canonical_json(sentences)),
        criteria=["sentences"],
        prompts=["sentences"],
        items={output_id: digest(canonical_json(asdict(item))) for output_id, item in items.items()},
        questions=[question for item in items.values() if (question := votes_on(item, {}, seed).question)],
        notes=[_CALLS_NOTE],
        paper={"sentences": sentences},
        rubric_file="sentences",
    )


def sentence_result(
    judge: str, labels: Labels, votes: Mapping[tuple[str, str], Vote], texts: Iterable[str], bar: float
) -> JudgeResult:
    """Measure a judge of sentences against labels; `votes` has its vote by output id and sentence."""
    labelled = [(label, votes[label.id, label.sentence]) for label in labels.of(SentenceLabel)]
    verdicts = by_key((key, (label.human, vote.holds)) for label, vote in labelled for key in ("", label.sentence))
    errors = {sentence: _sentence_errors(part) for sentence, part in verdicts.items()}
    reasons: Mapping[str, UnscoredReason] = {reason: reason for reason in get_args(UnscoredReason)}
    unscored = [None if vote.holds is not None else reasons.get(vote.ground, "not_answered") for _, vote in labelled]
    unusable = judging.no_usable_output(unscored, texts)
    units = [Unit(people=[label.human], requests=[[vote.holds]], verdict=vote.holds) for label, vote in labelled]
    return JudgeResult(
        judge=judge,
        agreement=[] if unusable else [agreement.measure("sentences", "all", units, bar)],
        sentences={name: one for name, one in errors.items() if not name or one.labels >= _MIN_SENTENCE_LABELS},
        unusable=unusable,
    )


def _sentence_errors(verdicts: Sequence[tuple[bool, bool | None]]) -> SentenceErrors:
    """Count a judge's verdicts. Each pair is (human label, judge's verdict); a missing verdict is None."""
    settled = [(human, holds) for human, holds in verdicts if holds is not None]
    return SentenceErrors(
        yes=sum(human for human, _ in settled),
        yes_right=settled.count((True, True)),
        no=sum(not human for human, _ in settled),
        no_right=settled.count((False, False)),
        lost=len(verdicts) - len(settled),
    )
