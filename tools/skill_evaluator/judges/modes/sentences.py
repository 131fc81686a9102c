"""Judged checks: sentences that should hold for an output → the yes or no of a judge on each, in one call for all.

A first yes holds. Every other sentence is put again, and the first two equal verdicts of at most three decide: the same
rule for every output of every version, so that asking again favours none.

The calls of a judge are kept beside the run that they are about, each pass in a folder of its own. The id of a question
is a digest of its texts, so that no sentence is put to the judge twice and a run can be scored again without a call.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from skill_evaluator import __version__
from skill_evaluator.identifiers import now
from skill_evaluator.judges.prompting.judging import JUDGING_VERSION
from skill_evaluator.judges.prompting.questions import (
    TEXT,
    JudgePrompt,
    JudgeQuestion,
    form_of,
    load_prompt,
    make_question,
    mark_of,
    one_of,
    question_sizes,
)
from skill_evaluator.judges.prompting.reading import Unscored, invented_quotations, last_whole, text_of
from skill_evaluator.judges.prompting.results import JudgeRecord, record_of
from skill_evaluator.library.cases import Case
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import ProviderKind, Request
from skill_evaluator.runner.journal import MANIFEST, Manifest, Run, outcomes, read_manifest, run_id_of, settings_digest
from skill_evaluator.runner.prices import Estimate, budget_cost, estimate, price_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Questions, Session
from skill_evaluator.text import canonical_json, digest

MAX_VOTES = 3  # how often a judge is asked about one sentence of an output
_MAJORITY = 2
_ID_DIGITS = 32
_CHARACTERS_PER_TOKEN = 4


class Vote(NamedTuple):
    """A judge's verdict on a sentence and its ground; `holds` is None if the judge's output does not count."""

    holds: bool | None
    ground: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencesItem:
    """An output, its input, and the sentences that should hold for it, by the ids of their checks."""

    input: str
    output: str
    sentences: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceVotes:
    """The votes of a judge on an output so far, its next question if any, and the ids of unreadable results."""

    votes: Mapping[str, Sequence[Vote]]
    question: JudgeQuestion | None = None
    unread: Sequence[str] = ()

    @property
    def verdicts(self) -> dict[str, Vote]:
        """The vote that settled each sentence, or a vote without a verdict."""
        return {
            name: settled_by(votes) or Vote(None, votes[-1].ground if votes else "the judge was not asked")
            for name, votes in self.votes.items()
        }


def settled_by(votes: Sequence[Vote]) -> Vote | None:
    """Return the vote that settled a sentence: a first yes, or the second of two equal votes; None before it."""
    if votes and votes[0].holds:
        return votes[0]
    for verdict in (True, False):
        alike = [vote for vote in votes if vote.holds is verdict]
        if len(alike) >= _MAJORITY:
            return alike[_MAJORITY - 1]
    return None


def votes_on(item: SentencesItem, answered: Mapping[str, Replicate], seed: int) -> SentenceVotes:
    """Read the votes on an output from the judge's results by question id; a failed call is put again."""
    votes: dict[str, list[Vote]] = {name: [] for name in item.sentences}
    unread: list[str] = []
    for time in range(MAX_VOTES):
        unsettled = [name for name, cast in votes.items() if settled_by(cast) is None]
        if not unsettled:
            break
        question = _question(item, unsettled, time, seed)
        made = answered.get(question.case_id)
        if made is None or not made.answered:
            return SentenceVotes(votes=votes, question=question, unread=unread)
        read = _read(made, item, unsettled)
        unread += [question.case_id] if any(vote.holds is None for vote in read.values()) else []
        for name, vote in read.items():
            votes[name].append(vote)
    return SentenceVotes(votes=votes, unread=unread)


def prompt_of_sentences() -> JudgePrompt:
    """Return the prompt by which judges are asked."""
    return load_prompt("sentences")


def _question(item: SentencesItem, names: Sequence[str], time: int, seed: int) -> JudgeQuestion:
    """Return the question about these sentences, each on one line, so that none can look like two."""
    sentences = [" ".join(item.sentences[name].split()) for name in names]
    identity = digest(canonical_json([item.input, item.output, sentences, time, seed])).removeprefix("sha256:")
    numbered = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
    verdict = form_of({"evidence": TEXT, "holds": one_of(("yes", "no"))})
    form = form_of({"sentences": form_of({str(number): verdict for number in range(1, len(names) + 1)})})
    return make_question(
        identity[:_ID_DIGITS],
        prompt_of_sentences(),
        {},
        {"input": item.input, "sentences": numbered, "output": item.output},
        form,
        mark_of(seed, identity),
    )


def _read(made: Replicate, item: SentencesItem, names: Sequence[str]) -> dict[str, Vote]:
    """Read the votes on these sentences from one result of the judge."""

    def check(value: Any) -> Mapping[str, Any] | Unscored:
        written = value.get("sentences") if isinstance(value, dict) else None
        return written if isinstance(written, dict) else Unscored(reason="wrong_format")

    text = text_of(made)
    written = text if isinstance(text, Unscored) else last_whole(text, check, (item.input, item.output))
    if isinstance(written, Unscored):
        return dict.fromkeys(names, Vote(None, written.reason))
    return {name: _vote(written.get(str(number)), item, name) for number, name in enumerate(names, 1)}


def _vote(written: Any, item: SentencesItem, name: str) -> Vote:
    """Return the vote on one sentence; it does not count without evidence, or with an invented quotation."""
    members = written if isinstance(written, dict) else {}
    holds = {"yes": True, "no": False}.get(str(members.get("holds")).strip().lower())
    evidence = members.get("evidence")
    if holds is None:
        return Vote(None, "off_scale")
    if not isinstance(evidence, str) or not any(mark.isalnum() for mark in evidence):
        return Vote(None, "no_evidence")
    if invented_quotations(evidence, (item.output, item.input, item.sentences[name])):
        return Vote(None, "evidence_not_in_text")
    return Vote(holds, evidence.strip())


def judge_estimate(judge: Model, kind: ProviderKind, cases: Iterable[Case], model: Model, replicates: int) -> Estimate:
    """Estimate the most that judging a model's outputs takes: each of the greatest length, put as often as allowed."""
    longest = "x" * (_CHARACTERS_PER_TOKEN * model.params.max_output_tokens)
    items = [
        SentencesItem(input=case.document, output=longest, sentences=sentences)
        for case in cases
        if (sentences := case.sentences)
    ]
    sizes = question_sizes(question for item in items if (question := votes_on(item, {}, 0).question))
    return estimate(sizes, judge, kind, replicates * MAX_VOTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencesJudge:
    """A judge, the id of the run that it judges, and the folder of its calls."""

    model: Model
    asked_for: str
    seed: int
    folder: Path

    @property
    def digests(self) -> dict[str, str]:
        """The digests of the settings and the prompt; results with other digests are not those of this judge."""
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
    """The results of a judge by question id; `manifest` is that of its last pass, None before the first."""

    manifest: Manifest | None = None
    answered: Mapping[str, Replicate] = field(default_factory=dict)
    stopped: str | None = None

    def record(self, model: Model, session: Session) -> JudgeRecord | None:
        """Return the record of the judge and all its calls. Return None if no call was made."""
        if self.manifest is None:
            return None
        run = Run(model=model, manifest=self.manifest, folder=Path())
        answers = {made.call: made for made in self.answered.values()}
        price = price_of(model, session.configuration.kinds[model.provider])
        return record_of(run, answers, price, self.stopped).model_copy(update={"planned": len(answers)})


def read_sentence_answers(folder: Path, digests: Mapping[str, str] | None = None) -> SentenceAnswers:
    """Read the results of the judge with these digests, by default of the last judge; raise RunError."""
    passes = [(read_manifest(path), path) for path in _passes(folder)]
    wanted = digests or (passes[-1][0].digests if passes else {})
    own = [(manifest, path) for manifest, path in passes if manifest.digests == wanted]
    made = [made for _, path in own for made in outcomes(path).values()]
    return SentenceAnswers(
        manifest=own[-1][0] if own else None, answered={one.call.case_id: one for one in made if one.answered}
    )


def _passes(folder: Path) -> Sequence[Path]:
    return sorted((path.parent for path in folder.glob(f"*/{MANIFEST}")), key=lambda path: int(path.name))


def ask_sentences(items: Sequence[SentencesItem], judge: SentencesJudge, session: Session) -> SentenceAnswers:
    """Call a judge about the open sentences and those it could not be read on, until each is settled."""
    earlier = read_sentence_answers(judge.folder, judge.digests)
    manifest, answered, stopped = earlier.manifest, dict(earlier.answered), None
    price = price_of(judge.model, session.configuration.kinds[judge.model.provider])
    for made in earlier.answered.values():
        if made.completion is not None:
            session.budget.count_earlier(budget_cost(judge.model, price, made.completion) or 0.0)
    for item in items:
        votes = votes_on(item, earlier.answered, judge.seed)
        if votes.question is None and any(vote.holds is None for vote in votes.verdicts.values()):
            for question_id in votes.unread:
                answered.pop(question_id, None)
    tried: set[str] = set()  # a failed call is made again by the next command
    while stopped is None:
        open_questions = (votes_on(item, answered, judge.seed).question for item in items)
        questions = {one.case_id: one for one in open_questions if one is not None and one.case_id not in tried}
        if not questions:
            break
        tried |= questions.keys()
        run = judge.run(questions.values(), len(_passes(judge.folder)) + 1)
        results = session.ask([run], Questions(request_for=partial(_request, questions)))
        manifest, stopped = run.manifest, results.why_stopped(run)
        answered |= {call.case_id: made for call, made in outcomes(run.folder).items()}
    return SentenceAnswers(manifest=manifest, answered=answered, stopped=stopped)


def _request(questions: Mapping[str, JudgeQuestion], run: Run, call: Call) -> Request:
    return questions[call.case_id].request(call.replicate, run.manifest.seed, run.model.params.max_output_tokens)
