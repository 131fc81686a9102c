"""The review queue: `reviews/queue.jsonl` has the items, `reviews/labels.jsonl` their labels; lines are only appended.

An item names no model and no judge, so that a review is blind. Repeated lines, which a merge can leave, count once. The
local server of the review page does not show why an item is queued, which would bias the reviewer.
"""

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import parse_qs

from pydantic import BaseModel, Field, model_validator

from skill_evaluator.display import loopback
from skill_evaluator.errors import JudgeError, StorageError
from skill_evaluator.files import LinesWriter, ModelT, StrictModel, locked, read_checked, read_lines, replace_text
from skill_evaluator.identifiers import Label, Timestamp
from skill_evaluator.judges.calibration.labels import LabelledPair, LabelLine, RegressionLabel, ScoredItem, read_labels
from skill_evaluator.judges.judge_run import Order
from skill_evaluator.judges.modes.pairwise import OVERALL, PAIR, JudgePreferences, PairItem, PairMatch, matches_of
from skill_evaluator.judges.modes.regression import JudgeRegressions, RegressionItem, rules_of_item
from skill_evaluator.judges.modes.results import Decision
from skill_evaluator.judges.modes.scoring import JudgeScores
from skill_evaluator.judges.modes.ship_rules import IMPACTS, Impact, ShipRules, dimensions_of
from skill_evaluator.judges.prompting.questions import JudgedItem, OutputItem, read_items
from skill_evaluator.library.rubrics import USUAL_THRESHOLD, Criterion
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, counted, digest, listed, marked_differences, nearest

ReviewKind = Literal["pairwise", "regression", "score"]
ReviewReason = Literal[
    "block", "regression", "disagreement", "unverified", "unrequested", "low_confidence", "unscored", "stakes", "random"
]
ReviewId = Annotated[str, Field(pattern="^[0-9a-f]{20}$")]


class ReviewQuestion(StrictModel):
    """A question about an item: which of two outputs is better or, if there are `levels`, the score of an output."""

    name: Label = Field(min_length=1, description="a criterion, a dimension, or overall")
    text: str = ""
    levels: dict[Annotated[int, Field(ge=1, le=10)], str] = Field(
        default_factory=dict, description="each score of the scale with its meaning; empty for two outputs"
    )


class ReviewItem(StrictModel):
    """A line of queue.jsonl. `id` is a digest of the shown texts and questions, so that equal texts are one item."""

    id: ReviewId
    kind: ReviewKind
    item: Label = Field(min_length=1, description="the id of the judged item in the judge run")
    judging: Label | None = Field(default=None, description="the id of the judge run")
    stratum: Label = Field(default="all", description="the kind of item, for the calibration")
    reasons: tuple[ReviewReason, ...] = Field(min_length=1, description="the reasons for its review")
    document: str = Field(default="", description="the prompt or input of the outputs")
    reference: str = Field(default="", description="a right answer or a source; empty if unknown")
    outputs: tuple[str, ...] = Field(min_length=1, max_length=2)
    questions: tuple[ReviewQuestion, ...] = Field(min_length=1)

    @property
    def is_random(self) -> bool:
        """Whether the labels can measure a judge: the item is random, and not from a `judge regression` run."""
        return "random" in self.reasons and not (self.kind == "regression" and self.judging)

    @model_validator(mode="after")
    def _refuse_edited(self) -> Self:
        if self.id != self.content_id():
            raise ValueError(f"the item was edited: the id {self.id} does not match its texts and questions")
        return self

    def content_id(self) -> str:
        """Return the id: a digest of the texts and questions, 20 hexadecimal digits."""
        shown = self.model_dump(mode="json", include={"kind", "document", "reference", "outputs", "questions"})
        return digest(canonical_json(shown)).removeprefix("sha256:")[:20]


def review_item(
    kind: ReviewKind, item: str, outputs: tuple[str, ...], questions: Iterable[ReviewQuestion], **optional: Any
) -> ReviewItem:
    """Build an item with its id. `optional`: further fields of the item; `reasons` is `random` by default."""
    fields: dict[str, Any] = {"kind": kind, "item": item, "outputs": outputs, "questions": tuple(questions)}
    fields |= {"reasons": ("random",), **optional}
    return ReviewItem.model_validate({"id": ReviewItem.model_construct(id="", **fields).content_id(), **fields})


def scored_item(item: OutputItem, criteria: Sequence[Criterion], judge_run: str | None = None) -> ReviewItem:
    """Return the review item for scoring an output by each criterion. It shows the output's reference and source."""
    questions = []
    for criterion in criteria:
        levels = {score: f"{level.label}: {level.description}" for score, level in criterion.rubric.items()}
        scale = {score: levels.get(score, "") for score in range(1, criterion.highest + 1)}
        text = f"{criterion.name}: {criterion.description}"
        questions.append(ReviewQuestion(name=criterion.id, text=text, levels=scale))
    reference = "\n\n".join(text for text in (item.reference, item.source) if text and text != item.input)
    fields = {"reference": reference, **_item_fields(item, judge_run)}
    return review_item("score", item.id, (item.output,), questions, **fields)


def paired_item(match: PairMatch, criteria: Sequence[Criterion] = (), judge_run: str | None = None) -> ReviewItem:
    """Return the review item for comparing two outputs. It hides the names of the outputs, which may be models."""
    item = match.item
    texts = [(criterion.id, f"{criterion.name}: {criterion.description}") for criterion in criteria]
    texts = [(OVERALL, texts[0][1])] if len(texts) == 1 else [*texts, (OVERALL, "Which output is better?")]
    item_id = item.id if tuple(item.texts) == PAIR else match.id
    outputs = (item.texts[match.names[0]], item.texts[match.names[1]])
    questions = (ReviewQuestion(name=name, text=text) for name, text in texts)
    return review_item("pairwise", item_id, outputs, questions, **_item_fields(item, judge_run))


def regression_item(item: RegressionItem, rules: ShipRules, judge_run: str | None = None) -> ReviewItem:
    """Return the review item for comparing a candidate with its baseline in each dimension of the rules."""
    questions = [ReviewQuestion(name=dimension.name, text=dimension.question) for dimension in rules.dimensions]
    outputs = (item.baseline_output, item.candidate_output)
    return review_item("regression", item.id, outputs, questions, **_item_fields(item, judge_run))


def _item_fields(item: JudgedItem, judge_run: str | None) -> dict[str, Any]:
    return {"document": item.input, "stratum": item.stratum, "judging": judge_run}


def items_from(path: Path, dimensions: Sequence[str] = ()) -> list[ReviewItem]:
    """Read review items from the input file of `judge pairwise` or `regression`. Raise JudgeError if it is invalid."""
    if any(isinstance(value, dict) and "baseline_output" in value for _, value in read_lines(path, JudgeError)):
        pairs, rules = read_items(path, RegressionItem), ShipRules(dimensions=dimensions_of(dimensions))
        return [regression_item(pair, rules_of_item(pair, rules)) for pair in pairs]
    return [paired_item(match) for match in matches_of(read_items(path, PairItem))]


def select_for_review(judged: Sequence[tuple[ReviewItem, Sequence[str]]], sample: int, seed: int) -> list[ReviewItem]:
    """Return the items with reasons for review, and up to `sample` random items. Add the reasons to each item.

    The random items of `judge regression` are drawn only from the pairs without reasons.
    """
    candidates = [item for item, reasons in judged if item.kind != "regression" or not reasons]
    sampled_ids = random.Random(seed).sample([item.id for item in candidates], min(sample, len(candidates)))  # noqa: S311
    with_reasons = [(item, (*reasons, *["random"] * (item.id in sampled_ids))) for item, reasons in judged]
    return [item.model_copy(update={"reasons": reasons}) for item, reasons in with_reasons if reasons]


def decisions_on_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion]) -> list[Decision]:
    """Return the last judge's score of each output, with the reasons of all judges for human review."""
    thresholds = {criterion.id: criterion.confidence_threshold for criterion in criteria}
    decisions = []
    for scores in zip(*(judge.items for judge in judges), strict=True):
        judgements = [one for item in scores for one in item.judgements]
        levels = by_key((one.criterion, one.score) for one in judgements if one.score is not None)
        reasons = _reasons(
            low_confidence=any(
                one.confidence is not None and one.confidence < thresholds[one.criterion] for one in judgements
            ),
            disagreement=any(max(level) - min(level) >= 2 for level in levels.values()),
            unscored=any(one.unscored is not None for one in judgements),
        )
        decisions.append(Decision(item=scores[-1].id, verdict=scores[-1].summary, reasons=reasons))
    return decisions


def decisions_on_matches(judges: Sequence[JudgePreferences], criteria: Sequence[Criterion]) -> list[Decision]:
    """Return the last judge's verdict on each match, with the reasons of all judges for human review."""
    thresholds = {criterion.id: criterion.confidence_threshold for criterion in criteria}
    decisions = []
    for results in zip(*(judge.matches for judge in judges), strict=True):
        match = results[-1]
        judgements = [one for result in results for one in result.judgements if one.criterion in thresholds]
        winners = by_key((one.criterion, one.winner) for one in judgements if one.winner is not None)
        agreed = [(one.confidence, thresholds[one.criterion]) for one in judgements if one.agreed]
        reasons = _reasons(
            low_confidence=any(confidence is not None and confidence < threshold for confidence, threshold in agreed),
            disagreement=any(one.agreed is False for one in judgements)
            or any(len(set(each)) > 1 for each in winners.values()),
            unscored=any(one.winner is None for one in judgements),
        )
        decisions.append(Decision(item=match.item, names=match.names, verdict=match.shares[OVERALL], reasons=reasons))
    return decisions


def decisions_on_regressions(judges: Sequence[JudgeRegressions], *, high_stakes: bool) -> list[Decision]:
    """Return the last judge's ship decision on each pair, and all reasons for review. High stakes are a reason, too."""
    decisions = []
    for results in zip(*(judge.pairs for judge in judges), strict=True):
        ship_decisions = {result.ship_decision for result in results}
        dimensions = [dimension for result in results for dimension in result.dimensions]
        answers = [answer for result in results for answer in result.answers]
        reasons = _reasons(
            block="block" in ship_decisions,
            regression=any(one.ship_decision == "review_required" and one.regression_detected for one in results),
            disagreement=len(ship_decisions) > 1 or any(result.flipped for result in dimensions),
            unverified=any(result.verified is False for result in dimensions),
            unrequested=any(answer.unrequested for answer in answers),
            low_confidence=any(result.confidence < USUAL_THRESHOLD for result in results),
            unscored=any(answer.unscored is not None for answer in answers),
            stakes=high_stakes,
        )
        decisions.append(Decision(item=results[-1].id, verdict=results[-1].ship_decision, reasons=reasons))
    return decisions


def _reasons(**holds: bool) -> list[ReviewReason]:
    return [reason for reason in get_args(ReviewReason) if holds.get(reason)]


QUEUE = "queue.jsonl"
LABELS = "labels.jsonl"
_FINDING_IF_BETTER = {1: "candidate_worse", 2: "candidate_better"}  # output 1 is the baseline


class ReviewAnswer(StrictModel):
    """A reviewer's answer to one question: 1, 2 or tie, a finding of a regression, or a score."""

    question: Label = Field(min_length=1)
    answer: Label = Field(min_length=1)
    impact: Impact | None = Field(default=None, description="the impact of a regression")

    def __str__(self) -> str:
        return self.answer if self.impact is None else f"{self.answer} ({self.impact})"


class ReviewLabel(StrictModel):
    """A line of labels.jsonl. The latest label of a reviewer for an item counts. Labels are never deleted."""

    item: ReviewId = Field(description="the id of the item in the queue")
    reviewer: Label = Field(min_length=1)
    at: Timestamp
    first: Order | None = Field(default=None, description="the output that the reviewer saw first")
    answers: tuple[ReviewAnswer, ...] = Field(min_length=1)
    note: str = Field(default="", max_length=10_000, description="the difficulty; it may become an edge case")


def first_shown(item: ReviewItem, reviewer: str) -> Order:
    """Return the output that a reviewer sees as A: 1 if there is only one, else 1 or 2 by hash of item and reviewer."""
    is_swapped = hashlib.sha256(f"{reviewer}/{item.id}".encode("utf-8", "surrogatepass")).digest()[0] % 2
    return 2 if is_swapped and item.kind != "score" else 1


def choices(item: ReviewItem, question: ReviewQuestion, first: Order = 1) -> list[tuple[str, ReviewAnswer]]:
    """Return a (text, answer) pair for each choice of a question, for a reviewer who sees output `first` as A."""
    sides = (("A", first), ("B", 3 - first))  # the outputs by their letters
    rows: list[tuple[str, str, Impact | None]] = []  # text, answer, impact
    if item.kind == "score":
        rows = [(f"{score} {text}".rstrip(), str(score), None) for score, text in sorted(question.levels.items())]
    elif item.kind == "pairwise":
        rows = [*((f"{name} is better", str(output), None) for name, output in sides), ("neither", "tie", None)]
    else:
        for (name, output), impact in product(sides, IMPACTS):
            rows.append((f"{name} is better, {impact} impact", _FINDING_IF_BETTER[output], impact))
        rows.append(("the same", "same", None))
    return [(text, ReviewAnswer(question=question.name, answer=answer, impact=impact)) for text, answer, impact in rows]


def refuse_misfit(label: ReviewLabel, items: Mapping[str, ReviewItem], where: str = "") -> None:
    """Raise JudgeError unless a label has one valid answer to each question of its item. `where`: prefix of errors."""
    item = item_of(items, label.item, where)
    allowed = {question.name: [answer for _, answer in choices(item, question)] for question in item.questions}
    name = f"{where}the label of {item.id} by {label.reviewer}"
    if sorted(answer.question for answer in label.answers) != sorted(allowed):
        raise JudgeError(f"{name} must have one answer to each question: {listed(list(allowed), 10)}")
    for answer in label.answers:
        if answer not in allowed[answer.question]:
            choices_text = listed(list(map(str, allowed[answer.question])), 10)
            raise JudgeError(
                f"{name}: '{answer}' is not an answer to question '{answer.question}' (one of {choices_text})"
            )


def latest(labels: Iterable[ReviewLabel]) -> dict[str, dict[str, ReviewLabel]]:
    """Return the latest labels by item id, then by reviewer; at equal times the later line counts."""
    labels_by_item: dict[str, dict[str, ReviewLabel]] = {}
    for label in sorted(labels, key=lambda label: label.at):
        labels_by_item.setdefault(label.item, {})[label.reviewer] = label
    return labels_by_item


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQueue:
    """The queue in a folder, such as `.evaluator/reviews`. Nothing is cached between two calls."""

    folder: Path

    def items(self) -> dict[str, ReviewItem]:
        """Return the items by id, in file order. Raise JudgeError with file and line for an invalid item."""
        items: dict[str, ReviewItem] = {}
        for _, item in _lines(self.folder / QUEUE, ReviewItem):
            items.setdefault(item.id, item)
        return items

    def labels(self, items: Mapping[str, ReviewItem]) -> list[ReviewLabel]:
        """Return all different labels, in file order. Raise JudgeError with file and line for an invalid label."""
        labels = []
        for number, label in _lines(self.folder / LABELS, ReviewLabel):
            refuse_misfit(label, items, f"{self.folder / LABELS}:{number}: ")
            labels.append(label)
        return list(dict.fromkeys(labels))

    def add(self, items: Iterable[ReviewItem]) -> list[ReviewItem]:
        """Append the items that are not queued yet and return them.

        Raise JudgeError if the queue has an invalid item, and StorageError if it cannot be written.
        """
        with locked(self.folder / ".reviews.lock"):
            queued = self.items()
            fresh = {item.id: item for item in items if item.id not in queued}
            _append(self.folder / QUEUE, list(fresh.values()))
        return list(fresh.values())

    def label(self, label: ReviewLabel) -> None:
        """Append a label. Raise JudgeError if it does not fit its item, and StorageError if writing fails."""
        refuse_misfit(label, self.items())
        with locked(self.folder / ".reviews.lock"):
            _append(self.folder / LABELS, [label])


def queue_in(config: Path, *, must_exist: bool = False) -> ReviewQueue:
    """Return the queue of a configuration folder. If it must exist and does not, raise JudgeError."""
    queue = ReviewQueue(folder=config / "reviews")
    if must_exist and not (queue.folder / QUEUE).exists():
        raise JudgeError(f"{queue.folder / QUEUE} does not exist; add items with `skill-evaluator review add FILE`")
    return queue


def item_of(items: Mapping[str, ReviewItem], item_id: str, where: str = "") -> ReviewItem:
    """Return the item with this id. Raise JudgeError if the id is unknown. `where`: prefix of the error."""
    if item_id not in items:
        raise JudgeError(f"{where}the queue has no item '{item_id}' {nearest(item_id, items)}")
    return items[item_id]


def _append(path: Path, lines: Sequence[BaseModel]) -> None:
    if lines:
        with closing(LinesWriter(path)) as writer:
            for line in lines:
                writer.append(line.model_dump(mode="json", exclude_defaults=True))


def _lines(path: Path, model: type[ModelT]) -> Iterator[tuple[int, ModelT]]:
    return read_checked(path, model.model_validate, JudgeError) if path.exists() else iter(())


def export_labels(queue: ReviewQueue, path: Path) -> tuple[int, int, int]:
    """Write the reviewers' labels to a file of labels. They replace earlier labels of the same items.

    For a pair, write the answer of the majority. For an output, write the scores of all reviewers. Return the number of
    exported labels, of questions without a majority, and of items that were skipped because they are not random. Raise
    JudgeError for an invalid line. Raise StorageError if writing fails.
    """
    items = queue.items()
    labels = latest(queue.labels(items))
    random_items = [items[item_id] for item_id in labels if items[item_id].is_random]
    fresh: dict[object, LabelLine] = {}
    disputed = 0
    for item in random_items:
        lines, differing = _label_lines(item, labels[item.id])
        disputed += differing
        for line in lines:
            fresh[_key(line)] = _merge_scores(fresh.get(_key(line)), line)
    if fresh:
        existing = read_labels(path).lines if path.exists() else ()
        merged = {_key(line): line for line in (*existing, *fresh.values())}
        replace_text(path, "".join(f"{line.model_dump_json(exclude_none=True)}\n" for line in merged.values()))
    return len(fresh), disputed, len(labels) - len(random_items)


def _answers_by_question(labels: Mapping[str, ReviewLabel]) -> dict[str, dict[str, ReviewAnswer]]:
    answers: dict[str, dict[str, ReviewAnswer]] = defaultdict(dict)  # keys: question, reviewer
    for reviewer, label in sorted(labels.items()):
        for answer in label.answers:
            answers[answer.question][reviewer] = answer
    return answers


def _label_lines(item: ReviewItem, labels: Mapping[str, ReviewLabel]) -> tuple[list[LabelLine], int]:
    """Return the lines for a file of labels, and the number of questions without a majority."""
    answers = _answers_by_question(labels)
    line: dict[str, Any] = {"id": item.item, "stratum": item.stratum, "input": item.document or None}
    if item.kind == "score":
        line["scores"] = {name: [int(answer.answer) for answer in group.values()] for name, group in answers.items()}
        return [ScoredItem(**line, output=item.outputs[0], reference=item.reference or None)], 0
    agreed = {}
    for name, group in answers.items():
        finding, count = Counter(answer.answer for answer in group.values()).most_common(1)[0]
        impacts = [answer.impact for answer in group.values() if answer.answer == finding and answer.impact]
        if 2 * count > len(group):
            agreed[name] = finding, max(impacts, key=IMPACTS.index, default=None)
    disputed = len(answers) - len(agreed)
    if item.kind == "regression":
        findings = [{"dimension": name, "human": human, "impact": impact} for name, (human, impact) in agreed.items()]
        return [RegressionLabel.model_validate({"id": item.item, **finding}) for finding in findings], disputed
    winners = {name: int(winner) if winner.isdigit() else "tie" for name, (winner, _) in agreed.items()}
    line |= {"human": winners.pop(OVERALL, None), "criteria": winners}
    return [LabelledPair(**line, output_1=item.outputs[0], output_2=item.outputs[1])] if agreed else [], disputed


def _key(line: LabelLine) -> object:
    return type(line), line.id, getattr(line, "dimension", None), getattr(line, "sentence", None)


def _merge_scores(earlier: LabelLine | None, line: LabelLine) -> LabelLine:
    if isinstance(earlier, ScoredItem) and isinstance(line, ScoredItem):
        line = line.model_copy(update={"scores": {**earlier.scores, **line.scores}})
        earlier = earlier.model_copy(update={"scores": line.scores})
    if earlier not in (None, line):
        raise JudgeError(f"two different items of the queue have the id '{line.id}'; rename one")
    return line


def status_lines(items: Mapping[str, ReviewItem], labels: Sequence[ReviewLabel]) -> list[str]:
    """Return the lines of the queue's status: counts of items, labels by reviewer, agreement, disputed questions."""
    labelled = latest(labels)
    by_reviewer = Counter(reviewer for item_labels in labelled.values() for reviewer in item_labels)
    shared, disputed = 0, []
    for item_id, item_labels in labelled.items():
        notes = {name: f" ({label.note})" if label.note else "" for name, label in item_labels.items()}
        for question, answers in _answers_by_question(item_labels).items():
            shared += len(answers) > 1
            if len({answer.answer for answer in answers.values()}) > 1:
                texts = [f"{name} says {answer.answer}{notes[name]}" for name, answer in answers.items()]
                disputed.append(f"differ on {items[item_id].item}, {question}: {', '.join(texts)}")
    return [
        f"{counted(len(items), 'item')}: {len(labelled)} labelled, {len(items) - len(labelled)} without a label",
        *(f"{name}: {counted(count, 'label')}" for name, count in sorted(by_reviewer.items())),
        *([f"reviewers agree on {shared - len(disputed)} of {counted(shared, 'question')}"] if shared else []),
        *disputed,
    ]


_FILES = {"": ("index.html", "html"), "review.css": ("review.css", "css"), "review.js": ("review.js", "javascript")}


def item_screen(item: ReviewItem, reviewer: str, label: ReviewLabel | None = None) -> dict[str, Any]:
    """Return the JSON of an item's page: the outputs in the reviewer's order, and the answers of an earlier `label`."""
    first = first_shown(item, reviewer)
    outputs = item.outputs if first == 1 else item.outputs[::-1]
    return {
        **item.model_dump(include={"id", "document", "reference"}),
        "first": first,
        "outputs": marked_differences(outputs[0], outputs[-1])[: len(outputs)],
        "questions": [
            {"name": question.name, "text": question.text, "choices": choices(item, question, first)}
            for question in item.questions
        ],
        "answers": label.answers if label else [],
        "note": label.note if label else "",
    }


class ReviewServer(loopback.LoopbackServer):
    """The server for one queue. Port 0 selects a free port. Raise ConfigError if the port is in use."""

    def __init__(self, queue: ReviewQueue, port: int = 0) -> None:
        self.queue = queue
        super().__init__(port, _ReviewHandler)


class _ReviewHandler(loopback.PageHandler):
    server: ReviewServer
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )

    def do_GET(self) -> None:  # noqa: N802 (http.server calls this name)
        """Answer a request: send a file of the page, the queue or an item, or store a label."""
        status, kind = HTTPStatus.OK, "application/json"
        try:
            path, _, query = self.server.path_inside(self).partition("?")
            loopback.refuse_other_sites(self)
            if self.command == "GET" and path in _FILES:
                name, kind = _FILES[path][0], f"text/{_FILES[path][1]}; charset=utf-8"
                content = (Path(__file__).parent / "page" / name).read_bytes()
            else:
                value = self._value(path, parse_qs(query).get("reviewer", [""])[-1])
                content = json.dumps(value, default=ReviewAnswer.model_dump).encode()
        except (loopback.RefusedError, JudgeError, StorageError) as problem:
            status = getattr(problem, "status", HTTPStatus.BAD_REQUEST)
            content = json.dumps({"problem": str(problem)}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815

    def _value(self, path: str, reviewer: str) -> dict[str, Any]:
        queue = self.server.queue
        if (self.command, path) == ("POST", "labels"):
            queue.label(loopback.read_body(self, ReviewLabel, "label"))
            return {}
        if self.command != "GET" or not (path == "queue" or path.startswith("items/")):
            raise loopback.RefusedError(HTTPStatus.NOT_FOUND, "page not found")
        items = queue.items()
        labels = queue.labels(items)
        reviewer_labels = {item_id: group[reviewer] for item_id, group in latest(labels).items() if reviewer in group}
        if path == "queue":
            rows = [{"id": item_id, "labelled": item_id in reviewer_labels} for item_id in items]
            return {"items": rows, "status": status_lines(items, labels)}
        item = item_of(items, path.removeprefix("items/"))
        return item_screen(item, reviewer, reviewer_labels.get(item.id))
