"""The story of `judge calibrate`: what judges are worth, by what was judged before or by what they are asked now.

Labelled pairs or outputs, planted pairs and the questions of the probes are one judging, so that one budget and one
`--resume` are for all of them. The files that it leaves are those of `judge pairwise`, `judge score` and `judge
regression`, so that `judge calibrate` measures them again without a call.

About sentences that people labelled the judge is asked as it is about checks.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.files import json_text, replace_blocks, replace_text
from skill_evaluator.judges.asking.criteria import NamedRubric, choose_criteria, families_of
from skill_evaluator.judges.asking.items import JudgedItem, OutputItem, read_items
from skill_evaluator.judges.asking.judging import RUNS, Asking, taken_up, write_judging, write_papers
from skill_evaluator.judges.asking.questions import JudgePrompt, JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, JudgingHead, head_of
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgingSize
from skill_evaluator.judges.calibration.against_people import against_people, bias_of
from skill_evaluator.judges.calibration.detection import against_labels, is_reported, judged_dimensions, measure
from skill_evaluator.judges.calibration.labels import Labels, SentenceLabel, read_labels, read_verdicts
from skill_evaluator.judges.calibration.planting import GoodOutput, PlantedPair, PlantedSet, plant
from skill_evaluator.judges.calibration.probes import Probed, load_probe, probes_of
from skill_evaluator.judges.calibration.results import (
    ANY,
    BiasResult,
    JudgeCalibration,
    JudgedMode,
    JudgeResult,
    SentenceErrors,
)
from skill_evaluator.judges.modes.asked_sentences import SentencesJudge, ask_sentences
from skill_evaluator.judges.modes.findings import reduce_regressions
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    JudgePreferences,
    PairItem,
    PairMatch,
    PairwiseResults,
    make_matches,
    reduce_matches,
    verdicts_of,
    write_verdicts,
)
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of, regression_questions
from skill_evaluator.judges.modes.regression_results import (
    JudgeRegressions,
    RegressionResults,
    RulesResult,
    most_careful,
    read_regressions,
)
from skill_evaluator.judges.modes.scoring import (
    JudgeScores,
    ScoreQuestion,
    reduce_scores,
    score_questions,
    scores_of,
    write_scores,
)
from skill_evaluator.judges.modes.sentences import MOST_ASKED, SentencesItem, prompt_of_sentences, votes_on
from skill_evaluator.judges.modes.ship_rules import ShipRules, dimensions_of
from skill_evaluator.judges.statistics.bounded import rate
from skill_evaluator.judges.statistics.habits import shift
from skill_evaluator.judges.stories.judging import Drawn, Judged, again_of
from skill_evaluator.judges.stories.requests import CalibrateRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import Criterion, MethodName, Rubric, load_rubric
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Watch, with_keys
from skill_evaluator.text import canonical_json, counted, digest

_CONTROLS_PER_BROKEN = 2  # specificity needs the larger sample: most pairs of a batch hold no regression
PLANTED = "planted.jsonl"
REGRESSIONS = "regressions.json"
Values = Mapping[str, Mapping[str, float]]
"""By item and criterion what a judge says of the output that is changed, from 0 (the worst) to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnswers:
    """What one judge answered, by call."""

    record: JudgeRecord
    answers: Mapping[Call, Replicate]
    declared_strong: bool
    replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPart:
    """Questions of all modes about some items, and the prompts they are put by; any may be empty."""

    rubric: NamedRubric | None
    matches: Sequence[PairMatch]
    scores: Sequence[ScoreQuestion]
    pairs: Sequence[JudgedPair]
    questions: Sequence[JudgeQuestion]
    prompts: Sequence[JudgePrompt]

    @property
    def items(self) -> dict[str, str]:
        """The digest of each item by its id."""
        return {
            **{match.item.id: match.item.digest for match in self.matches},
            **{score.item.id: score.item.digest for score in self.scores},
            **{pair.id: pair.item.digest for pair in self.pairs},
        }

    @property
    def criteria(self) -> Sequence[Criterion]:
        """The criteria that the rubric asks about."""
        return () if self.rubric is None else self.rubric.criteria

    def preferences(self, judge: JudgeAnswers) -> JudgePreferences:
        """Return what a judge prefers in the pairs."""
        return reduce_matches(self.matches, self.criteria, judge.answers, judge.replicates, judge.record)

    def scores_by(self, judge: JudgeAnswers) -> JudgeScores:
        """Return the scores that a judge gives."""
        methods = {one.id: one.primary_method for one in self.criteria}
        return reduce_scores(self.scores, judge.answers, judge.replicates, judge.record, methods)

    def regressions(self, judge: JudgeAnswers) -> JudgeRegressions:
        """Return what a judge finds in the planted pairs."""
        strong = judge.declared_strong
        return reduce_regressions(
            self.pairs, judge.answers, judge.replicates, ShipRules(), judge.record, declared_strong=strong
        )

    def values(self, mode: JudgedMode, judge: JudgeAnswers) -> Values:
        """Return what a judge says of each item: the share of output 1, the scores, or how the candidate stands."""
        if mode == "pairwise":
            shares = {match.item: match.shares[OVERALL] for match in self.preferences(judge).matches}
            return {name: {OVERALL: share} for name, share in shares.items() if share is not None}
        if mode == "score":
            highest = {criterion.id: criterion.highest for criterion in self.criteria}
            return {
                item.id: {
                    name: (score - 1) / (highest[name] - 1) for name, score in item.scores.items() if score is not None
                }
                for item in self.scores_by(judge).items
            }
        standings = {}
        for pair in self.regressions(judge).pairs:
            dimensions = judged_dimensions(pair)
            better = any(one.verdict == "candidate_better" for one in dimensions.values())
            if dimensions:
                standings[pair.id] = {ANY: 0.0 if is_reported(dimensions, ANY) else 1.0 if better else 0.5}
        return standings


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationQuestions:
    """What judges were asked: `plain` about what is labelled or planted, `changed` about what the probes changed.

    `notes` say what the probes add to the calls.
    """

    labels: Labels
    rubric: NamedRubric | None
    planted: PlantedSet
    probed: Sequence[Probed]
    notes: Sequence[str]
    plain: AskedPart
    changed: AskedPart


def calibration_questions(
    rubric: NamedRubric | None, labels: Labels, planted: PlantedSet, probes: Sequence[str], seed: int
) -> CalibrationQuestions:
    """Return all questions: by the rubric about pairs or outputs, about planted pairs, and those of the probes.

    Raise JudgeError for an item without what the rubric needs, and for a probe that nothing here can be tried with.
    """
    probed, notes = probes_of(probes, seed, rubric, labels, planted.pairs)
    items: list[JudgedItem] = [*planted.pairs]
    if rubric is not None:
        items += [one.item for one in labels.pairs.values()]
        items += [one.item for one in labels.scored.values()]
    return CalibrationQuestions(
        labels=labels,
        rubric=rubric,
        planted=planted,
        probed=probed,
        notes=notes,
        plain=_part(rubric, items, seed),
        changed=_part(rubric, [one.changed for one in probed], seed),
    )


def _part(rubric: NamedRubric | None, items: Sequence[JudgedItem], seed: int) -> AskedPart:
    questions: list[JudgeQuestion] = []
    prompts: list[JudgePrompt] = []
    matches, scores = list[PairMatch](), list[ScoreQuestion]()
    pairs = [item for item in items if isinstance(item, PairItem)]
    outputs = [item for item in items if isinstance(item, OutputItem)]
    if rubric is not None and pairs:
        matches, prompt = make_matches(rubric, pairs, seed)
        prompts.append(prompt)
        questions += [question for match in matches for question in match.questions]
    if rubric is not None and outputs:
        scores, used = score_questions(rubric, outputs, seed, reference=False)
        prompts += used
        questions += [score.question for score in scores]
    planted = [RegressionItem.model_validate(item.model_dump()) for item in items if isinstance(item, PlantedPair)]
    judged = pairs_of({item.id: item for item in planted}, (), "default", ())
    if judged:
        asked, prompt = regression_questions(judged, ShipRules(), seed)
        prompts.append(prompt)
        questions += asked
    return AskedPart(rubric=rubric, matches=matches, scores=scores, pairs=judged, questions=questions, prompts=prompts)


def _measure_and_write(
    asked: CalibrationQuestions,
    judges: Sequence[JudgeAnswers],
    head: JudgingHead,
    bar: float,
    families: Mapping[str, str],
    folder: Path,
) -> JudgeCalibration:
    """Measure every judge by its answers; write them as the other modes have them, and the planted pairs."""
    plain, planted, held_out = asked.plain, asked.planted, asked.labels.held_out
    preferences = [plain.preferences(judge) for judge in judges if plain.matches]
    scores = [plain.scores_by(judge) for judge in judges if plain.scores]
    judged, rules = [plain.regressions(judge) for judge in judges], ShipRules()
    blocking = [dimension.name for dimension in dimensions_of() if dimension.blocking]
    regressions = RegressionResults(
        judging=head,
        rules=RulesResult(one_low=rules.one_low, high_stakes=rules.high_stakes, blocking=blocking),
        ship_decision=most_careful([judge.ship_decision for judge in judged]),
        judges=judged,
    )
    verdicts = [verdict for mine in preferences for verdict in verdicts_of(mine)]
    scored = [score for mine in scores for score in scores_of(mine)]
    scales = {one.id: one.highest for one in plain.criteria}
    parts = [
        *against_people(asked.labels, verdicts, scored, bar, scales, families),
        *(measure(planted.pairs, regressions, bar, planted.without_place) if planted.pairs else []),
    ]
    results = []
    for judge in judges:
        name = judge.record.model_id
        merged = JudgeResult(judge=name, record=judge.record)
        for part in (part for part in parts if part.judge == name):
            merged = merged.model_copy(update={key: getattr(part, key) for key in part.model_fields_set - {"judge"}})
        results.append(merged.model_copy(update={"biases": [*merged.biases, *_measure_probes(asked, judge)]}))
    if preferences:
        write_verdicts(folder, PairwiseResults(judging=head, judges=preferences))
    if scores:
        write_scores(folder, scores)
    if planted.pairs:
        replace_blocks(folder / PLANTED, (f"{pair.model_dump_json()}\n" for pair in planted.pairs))
        replace_text(folder / REGRESSIONS, json_text(regressions.model_dump(mode="json")))
    return JudgeCalibration(
        bar=bar,
        judging=head,
        judges=results,
        held_out=against_people(held_out, verdicts, scored, bar, scales, families),
    )


def _measure_probes(asked: CalibrationQuestions, judge: JudgeAnswers) -> list[BiasResult]:
    """Return a row for each probe, mode and criterion, and one for each of its ways."""
    rows = []
    for bias, mode in dict.fromkeys((one.bias, one.mode) for one in asked.probed):
        mine = [one for one in asked.probed if (one.bias, one.mode) == (bias, mode)]
        plain, changed = asked.plain.values(mode, judge), asked.changed.values(mode, judge)
        for criterion in dict.fromkeys(name for said in plain.values() for name in said):
            rows += _rows(mine, bias, mode, criterion, plain, changed)
    return rows


def _rows(
    mine: Sequence[Probed], bias: str, mode: JudgedMode, criterion: str, plain: Values, changed: Values
) -> list[BiasResult]:
    both: dict[str, list[tuple[float, float]]] = {way: [] for way in load_probe(bias).ways}
    lost = 0
    for one in mine:
        before, after = plain.get(one.plain, {}).get(criterion), changed.get(one.changed.id, {}).get(criterion)
        if before is not None and after is not None:
            both[one.way].append((before, after) if one.side == 1 else (1.0 - before, 1.0 - after))
        lost += before is not None and after is None
    everything = [said for given in both.values() for said in given]
    ways = both.items() if sum(map(bool, both.values())) > 1 else ()
    return [
        bias_of(
            bias,
            mode,
            criterion,
            shift([before for before, _ in given], [after for _, after in given]),
            rate(sum(before != after for before, after in given), len(given)),
            way=way,
            lost=0 if way else lost,
        )
        for way, given in (("", everything), *ways)
        if given
    ]


def calibrate(request: CalibrateRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    """Measure judges by what was judged before or, where some are named, ask them first.

    Of a dry run return what that would take. Raise JudgeError for what does not go together.
    """
    if request.judges:
        return _ask(request, watch, drawn)
    if request.probes:
        raise JudgeError("--probe asks: name a judge with --judge ID")
    labels = None if request.labels is None else read_labels(request.labels)
    calibration = JudgeCalibration(bar=request.bar, judges=_measured(request, labels))
    if request.verdicts is not None:
        if labels is None:
            raise JudgeError("--verdicts FILE needs the labels that it is held against: --labels FILE")
        said, rubric = read_verdicts(request.verdicts, labels), _rubric(request)
        scales = {} if rubric is None else {criterion.id: criterion.highest for criterion in rubric.criteria}
        labels = labels.of_split(request.split)
        people = against_people(labels, *said, request.bar, scales)
        held_out = against_people(labels.held_out, *said, request.bar, scales)
        calibration = JudgeCalibration(bar=request.bar, judges=[*people, *calibration.judges], held_out=held_out)
    if not calibration.judges:
        raise JudgeError(
            "say what is measured: --labels FILE, with --judge ID, --verdicts FILE or --batch FILE; or --planted and "
            "--regressions"
        )
    return Judged(results=calibration, folder=request.out, code=EXIT_OK)


def _rubric(request: CalibrateRequest) -> Rubric | None:
    if request.rubric is None:
        return None
    return load_rubric(request.rubric, follow_links=load_settings(request.config).limits.follow_links)


def _measured(request: CalibrateRequest, labels: Labels | None) -> list[JudgeResult]:
    """Measure the verdicts on planted pairs and on a batch."""
    if (request.planted is None) != (request.regressions is None):
        raise JudgeError("--planted FILE and --regressions FILE go together")
    if request.planted is not None and request.regressions is not None:
        planted = list(read_items(request.planted, PlantedPair).values())
        batch = None if request.batch is None else read_regressions(request.batch)
        return measure(planted, read_regressions(request.regressions), request.bar, {}, batch, labels)
    if request.batch is None:
        return []
    if labels is None or not labels.regressions:
        raise JudgeError("--batch FILE needs --planted and --regressions, or --labels FILE with labels of regressions")
    return against_labels(read_regressions(request.batch), labels, request.bar)


def _ask(request: CalibrateRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    for name in ("verdicts", "planted", "regressions", "batch"):
        if getattr(request, name) is not None:
            raise JudgeError(f"--{name} is for what was judged before, and cannot be combined with --judge")
    bench = Bench.of(request, watch)
    if request.labels is not None and (labels := read_labels(request.labels)).sentences:
        return calibrate_sentences(request, bench, labels, drawn)
    questions = _questions(request)
    dimensions = {one.name: one.question for pair in questions.plain.pairs for one in pair.dimensions}
    paper = {"rubric": None if questions.rubric is None else questions.rubric.paper, "dimensions": dimensions}
    parts = (questions.plain, questions.changed)
    prompts = {prompt.identity.name: prompt for part in parts for prompt in part.prompts}
    asking = Asking(
        mode="calibrate",
        rubric=digest(canonical_json(paper)),
        criteria=[*(one.id for one in questions.plain.criteria), *dimensions],
        prompts=list(prompts.values()),
        items={**questions.plain.items, **questions.changed.items},
        questions=[question for part in parts for question in part.questions],
        notes=_notes(questions),
        paper=paper,
    )
    if request.dry_run:
        return bench.size(asking)
    asked = bench.ask(asking)
    head = head_of(asked.judging, "dimensions" if questions.rubric is None else questions.rubric.file)
    judges = [
        JudgeAnswers(
            record=asked.record_of(part),
            answers=part.answers,
            declared_strong=part.run.model.judge == "strong",
            replicates=head.replicates,
        )
        for part in asked.runs
    ]
    families = families_of(bench.configuration.models)
    calibration = _measure_and_write(questions, judges, head, request.bar, families, asked.folder)
    write_papers(asked.folder, asking, calibration, drawn(calibration))
    return Judged(
        results=calibration,
        folder=asked.folder,
        code=EXIT_OK if asked.complete else EXIT_INCOMPLETE,
        stopped=asked.stopped,
        again=[] if asked.complete else again_of(request, asked, asked.stopped),
    )


def _notes(asked: CalibrationQuestions) -> list[str]:
    """Return how the calls come about, in sentences."""
    planted = asked.planted
    controls = sum(pair.is_control for pair in planted.pairs)
    how = (
        f"{counted(len(asked.plain.matches), 'labelled pair')}, "
        f"{counted(len(planted.pairs) - controls, 'broken output')}, {counted(controls, 'control')}: each is asked in "
        "both orders"
    )
    if asked.plain.scores:
        how = f"{counted(len(asked.labels.scored), 'scored output')}: each is asked about by itself"
    return [
        how,
        *(
            f"{name}: no place in {counted(sum(reasons.values()), 'output')}"
            for name, reasons in planted.without_place.items()
        ),
        *asked.notes,
    ]


def _questions(request: CalibrateRequest) -> CalibrationQuestions:
    if request.labels is None:
        raise JudgeError("say which items people labelled: --labels FILE")
    if request.rubric is None and not request.broken:
        raise JudgeError("say what is asked: --rubric FILE about the labelled items, --broken N about planted ones")
    for name in request.probes:
        load_probe(name)
    labels = read_labels(request.labels).of_split(request.split)
    rubric = _rubric(request)
    if _is_about_scores(labels, rubric):
        labels = replace(labels, pairs={})
        if request.broken or rubric is None:
            raise JudgeError(
                f"{request.labels} has scores of people: they go with --rubric FILE, and --broken N with pairs"
            )
        _refuse_bare([(name, item.output) for name, item in labels.scored.items()], request.labels)
    else:
        labels = replace(labels, scored={})
        outputs = [(name, text) for name, pair in labels.pairs.items() for text in (pair.output_1, pair.output_2)]
        _refuse_bare(outputs, request.labels)
    good = [
        GoodOutput(id=pair.id, stratum=pair.stratum, input=pair.input, output=pair.preferred)
        for pair in labels.pairs.values()
        if pair.input and pair.preferred
    ]
    planted = plant(good, request.broken, _CONTROLS_PER_BROKEN * request.broken, request.seed)
    if request.broken and not planted.pairs:
        raise JudgeError(f"no output of {request.labels} can be broken: give its items the input that they answer")
    chosen = None if rubric is None else _criteria(rubric, labels, request)
    return calibration_questions(chosen, labels, planted, request.probes, request.seed)


def _is_about_scores(labels: Labels, rubric: Rubric | None) -> bool:
    """Return whether outputs are scored: where people did nothing else, or the rubric compares nothing."""
    if not labels.scored or not labels.pairs:
        return bool(labels.scored)
    methods = {criterion.primary_method for criterion in rubric.criteria} if rubric is not None else set()
    return bool(methods) and "pairwise_comparison" not in methods


def _refuse_bare(outputs: list[tuple[str, str | None]], file: Path) -> None:
    for name, output in outputs:
        if not output:
            raise JudgeError(f"item '{name}' of {file} has no texts, and a judge must read its outputs")


def _criteria(rubric: Rubric, labels: Labels, request: CalibrateRequest) -> NamedRubric:
    """Return the criteria of the labels' method: of scored outputs those by which people scored."""
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
    session = bench.session()
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
    code, again = (EXIT_INCOMPLETE, again_of(request, whole, stopped)) if stopped else (EXIT_OK, [])
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
