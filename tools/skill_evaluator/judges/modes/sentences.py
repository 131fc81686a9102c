"""Judged checks: a judge decides yes or no on each sentence that should hold for an output, in one call for all.

A yes in the first call is final. Other sentences are judged again, and the first two equal verdicts of at most three
decide. Each run of the judge has its own folder. The id of a question is a digest of its texts, so that no sentence is
judged twice and a run can be scored again without a call.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from skill_evaluator import __version__
from skill_evaluator.identifiers import now
from skill_evaluator.judges.judge_run import JUDGING_VERSION, JudgeRecord, record_of
from skill_evaluator.judges.prompting.questions import Form, digest_of, load_prompt, mark_of
from skill_evaluator.judges.prompting.reading import Unscored, invented_quotations, last_valid_verdict, text_of
from skill_evaluator.library.cases import Case
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import ProviderKind, Request
from skill_evaluator.runner.engine import make_calls
from skill_evaluator.runner.journal import MANIFEST, Manifest, Run, outcomes, read_manifest, run_id_of, settings_digest
from skill_evaluator.runner.prices import CostEstimate, budget_cost, estimate, price_of, size_of
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.runner.session import Session
from skill_evaluator.text import canonical_json, digest

MAX_VOTES = 3  # votes per sentence of an output
_MAJORITY = 2
_ID_DIGITS = 32
_CHARACTERS_PER_TOKEN = 4


class Vote(NamedTuple):
    """A judge's verdict on a sentence, and the evidence. If the verdict is unusable, `ground` is the reason."""

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
    """The votes on an output by check id, and the next question. `unread`: questions with an unreadable vote."""

    votes: Mapping[str, Sequence[Vote]]
    question: Request | None = None
    unread: Sequence[str] = ()

    @property
    def verdicts(self) -> dict[str, Vote]:
        """The vote that settled each sentence, by check id. Its `holds` is None if no vote settled the sentence."""
        return {
            name: settled_by(votes) or Vote(None, votes[-1].ground if votes else "the judge was not called")
            for name, votes in self.votes.items()
        }


def settled_by(votes: Sequence[Vote]) -> Vote | None:
    """If the first vote is yes, return it. Otherwise return the second yes or second no. Return None if undecided."""
    if votes and votes[0].holds:
        return votes[0]
    for verdict in (True, False):
        equal_votes = [vote for vote in votes if vote.holds is verdict]
        if len(equal_votes) >= _MAJORITY:
            return equal_votes[_MAJORITY - 1]
    return None


def votes_on(item: SentencesItem, answered: Mapping[str, Replicate], seed: int) -> SentenceVotes:
    """Read the votes on an output from `answered` (results by question id). Add a question on undecided sentences."""
    votes: dict[str, list[Vote]] = {name: [] for name in item.sentences}
    unread: list[str] = []
    for attempt in range(MAX_VOTES):
        unsettled = [name for name, cast in votes.items() if settled_by(cast) is None]
        if not unsettled:
            break
        question = _question(item, unsettled, attempt, seed)
        replicate = answered.get(question.case_id)
        if replicate is None or not replicate.answered:
            return SentenceVotes(votes=votes, question=question, unread=unread)
        read = _read_votes(replicate, item, unsettled)
        unread += [question.case_id] if any(vote.holds is None for vote in read.values()) else []
        for name, vote in read.items():
            votes[name].append(vote)
    return SentenceVotes(votes=votes, unread=unread)


def _question(item: SentencesItem, names: Sequence[str], attempt: int, seed: int) -> Request:
    sentences = [" ".join(item.sentences[name].split()) for name in names]
    identity = digest(canonical_json([item.input, item.output, sentences, attempt, seed])).removeprefix("sha256:")
    numbered = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
    verdict = Form.object_of({"evidence": Form.text(), "holds": Form.one_of(("yes", "no"))})
    verdicts = Form.object_of({str(number): verdict for number in range(1, len(names) + 1)})
    form = Form.object_of({"sentences": verdicts})
    texts = {"input": item.input, "sentences": numbered, "output": item.output}
    return load_prompt("sentences").question(identity[:_ID_DIGITS], {}, texts, form, mark_of(seed, identity))


def _read_votes(replicate: Replicate, item: SentencesItem, names: Sequence[str]) -> dict[str, Vote]:
    def check(value: Any) -> Mapping[str, Any] | Unscored:
        written = value.get("sentences") if isinstance(value, dict) else None
        return written if isinstance(written, dict) else Unscored(reason="wrong_format")

    written = last_valid_verdict(text_of(replicate), check, (item.input, item.output))
    if isinstance(written, Unscored):
        return dict.fromkeys(names, Vote(None, written.reason))
    return {name: _vote(written.get(str(number)), item, name) for number, name in enumerate(names, 1)}


def _vote(result: Any, item: SentencesItem, name: str) -> Vote:
    members = result if isinstance(result, dict) else {}
    holds = {"yes": True, "no": False}.get(str(members.get("holds")).strip().lower())
    evidence = members.get("evidence")
    if holds is None:
        return Vote(None, "off_scale")
    if not isinstance(evidence, str) or not any(mark.isalnum() for mark in evidence):
        return Vote(None, "no_evidence")
    if invented_quotations(evidence, (item.output, item.input, item.sentences[name])):
        return Vote(None, "evidence_not_in_text")
    return Vote(holds, evidence.strip())


def judge_estimate(
    judge: Model, kind: ProviderKind, cases: Iterable[Case], model: Model, replicates: int
) -> CostEstimate:
    """Estimate the maximum cost of judging a model's outputs, each of maximum length and judged `MAX_VOTES` times."""
    longest = "x" * (_CHARACTERS_PER_TOKEN * model.params.max_output_tokens)
    shown = [(case.document, case.sentences) for case in cases if case.sentences]
    items = [SentencesItem(input=document, output=longest, sentences=sentences) for document, sentences in shown]
    questions = (question for item in items if (question := votes_on(item, {}, 0).question))
    sizes = {question.case_id: size_of(question) for question in questions}
    return estimate(sizes, judge, kind, replicates * MAX_VOTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencesJudge:
    """A judge, the id of the run that it judges, the seed of its calls, and their folder."""

    model: Model
    judged_run: str
    seed: int
    folder: Path

    @property
    def digests(self) -> dict[str, str]:
        """The digests of settings and prompt; results with other digests belong to another judge."""
        return {"settings": settings_digest(self.model), "sentences": load_prompt("sentences").identity.digest}

    def run(self, questions: Iterable[Request], number: int) -> Run:
        """Build a run of the judge with one call per question. The runs of a judge are numbered from 1."""
        manifest = Manifest(
            run_id=run_id_of(self.judged_run, "judge", self.model.id, mark=str(number)),
            created=now(),
            skill="judge",
            skill_version=str(JUDGING_VERSION),
            model_id=self.model.id,
            provider=self.model.provider,
            replicates=1,
            seed=self.seed,
            judging=self.judged_run,
            cases={question.case_id: digest_of(question) for question in questions},
            digests=self.digests,
            evaluator_version=__version__,
        )
        return Run(model=self.model, manifest=manifest, folder=self.folder / str(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceAnswers:
    """A judge's results by question id, the manifest of its last run, and the reason if calls were stopped early."""

    manifest: Manifest | None = None
    answered: Mapping[str, Replicate] = field(default_factory=dict)
    stopped: str | None = None

    def record(self, model: Model, session: Session) -> JudgeRecord | None:
        """Return the record of the judge, with the totals of all its calls. Return None if no call was made."""
        if self.manifest is None:
            return None
        price, answers = price_of(model, session.configuration.kinds[model.provider]), list(self.answered.values())
        record = record_of(model, self.manifest, answers, price, self.stopped)
        return record.model_copy(update={"planned": len(answers)})


def read_sentence_answers(folder: Path, digests: Mapping[str, str] | None = None) -> SentenceAnswers:
    """Read the results of the judge with these digests, or of the last judge if `digests` is None.

    The results are empty if there is no such judge. Raise RunError if a manifest is invalid.
    """
    passes = [(read_manifest(path), path) for path in _passes(folder)]
    judge_digests = digests or (passes[-1][0].digests if passes else {})
    judge_passes = [(manifest, path) for manifest, path in passes if manifest.digests == judge_digests]
    replicates = [replicates for _, path in judge_passes for replicates in outcomes(path).values()]
    return SentenceAnswers(
        manifest=judge_passes[-1][0] if judge_passes else None,
        answered={one.call.case_id: one for one in replicates if one.answered},
    )


def _passes(folder: Path) -> Sequence[Path]:
    return sorted((path.parent for path in folder.glob(f"*/{MANIFEST}")), key=lambda path: int(path.name))


def ask_sentences(items: Sequence[SentencesItem], judge: SentencesJudge, session: Session) -> SentenceAnswers:
    """Call a judge until each sentence is decided or has `MAX_VOTES` votes. Return new and earlier results."""
    earlier = read_sentence_answers(judge.folder, judge.digests)
    manifest, answered, stopped = earlier.manifest, dict(earlier.answered), None
    price = price_of(judge.model, session.configuration.kinds[judge.model.provider])
    for replicate in earlier.answered.values():
        if replicate.completion is not None:
            session.budget.count_earlier(budget_cost(judge.model, price, replicate.completion) or 0.0)
    for item in items:
        votes = votes_on(item, earlier.answered, judge.seed)
        if votes.question is None and any(vote.holds is None for vote in votes.verdicts.values()):
            for question_id in votes.unread:
                answered.pop(question_id, None)
    called_ids: set[str] = set()  # a failed call is retried by the next command only
    while stopped is None:
        open_questions = (votes_on(item, answered, judge.seed).question for item in items)
        questions = [one for one in open_questions if one is not None and one.case_id not in called_ids]
        if not questions:
            break
        called_ids |= {question.case_id for question in questions}
        run = judge.run(questions, len(_passes(judge.folder)) + 1)
        requests = {question.case_id: question for question in questions}
        (failure,) = make_calls(session, [(run, requests)]).values()
        manifest, stopped = run.manifest, str(failure) if failure else None
        answered |= {call.case_id: replicate for call, replicate in outcomes(run.folder).items()}
    return SentenceAnswers(manifest=manifest, answered=answered, stopped=stopped)
