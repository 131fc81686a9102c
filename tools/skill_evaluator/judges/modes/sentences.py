"""Sentences that are to hold of an answer → what a judge says of each: yes or no, by one call for all of them.

What the judge says yes to at once holds. The rest is put again, and two equal verdicts of three at most decide: by the
same rule for every answer of every version, so that asking again favours none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skill_evaluator.judges.asking.evidence import invented_quotations
from skill_evaluator.judges.asking.questions import (
    TEXT,
    JudgePrompt,
    JudgeQuestion,
    form_of,
    form_text,
    load_prompt,
    make_question,
    mark_of,
    one_of,
    question_sizes,
)
from skill_evaluator.judges.asking.reading import Unscored, last_whole, text_of
from skill_evaluator.library.cases import Case
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.runner.prices import Estimate, estimate
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.text import canonical_json, digest

MOST_ASKED = 3  # how often a judge is asked about one sentence of an answer
_MAJORITY = 2
_ID_DIGITS = 32
_CHARACTERS = 4  # of a token


class Vote(NamedTuple):
    """What a judge says of a sentence once, and on what ground; `holds` is None where its answer counts for nothing."""

    holds: bool | None
    ground: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencesItem:
    """One answer, the text that it answers, and the sentences that are to hold of it, by the ids of their checks."""

    input: str
    output: str
    sentences: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceVotes:
    """The votes of a judge on an answer so far, its next question if any, and the ids of unreadable results."""

    votes: Mapping[str, Sequence[Vote]]
    question: JudgeQuestion | None = None
    unread: Sequence[str] = ()

    @property
    def verdicts(self) -> dict[str, Vote]:
        """Return what holds by the rule, with the ground of the vote that settled it; None while nothing does."""
        last = {name: [Vote(None, "the judge was not asked"), *votes][-1] for name, votes in self.votes.items()}
        return {name: settled_by(votes) or last[name]._replace(holds=None) for name, votes in self.votes.items()}


def settled_by(votes: Sequence[Vote]) -> Vote | None:
    """Return the vote that settled a sentence: a yes at once, or the second of two equal ones; None before it."""
    if votes and votes[0].holds:
        return votes[0]
    for verdict in (True, False):
        alike = [vote for vote in votes if vote.holds is verdict]
        if len(alike) >= _MAJORITY:
            return alike[_MAJORITY - 1]
    return None


def votes_on(item: SentencesItem, answered: Mapping[str, Replicate], seed: int) -> SentenceVotes:
    """Return where an answer stands by what the judge answered, by the ids of questions; what failed is to be asked.

    An id is made of the texts of a question alone, so that whoever has these finds the answer again.
    """
    votes: dict[str, list[Vote]] = {name: [] for name in item.sentences}
    unread: list[str] = []
    for time in range(MOST_ASKED):
        unsettled = [name for name, cast in votes.items() if settled_by(cast) is None]
        if not unsettled:
            break
        question = _question(item, unsettled, time, seed)
        made = answered.get(question.case_id)
        if made is None or not made.answered:
            return SentenceVotes(votes=votes, question=question, unread=unread)
        said = _read(made, item, unsettled)
        unread += [question.case_id] if any(vote.holds is None for vote in said.values()) else []
        for name, vote in said.items():
            votes[name].append(vote)
    return SentenceVotes(votes=votes, unread=unread)


def prompt_of_sentences() -> JudgePrompt:
    """Return the prompt by which judges are asked."""
    return load_prompt("sentences")


def _question(item: SentencesItem, names: Sequence[str], time: int, seed: int) -> JudgeQuestion:
    """Return the question about these sentences; a white space in one is a blank, so that none can look like two."""
    sentences = [" ".join(item.sentences[name].split()) for name in names]
    identity = digest(canonical_json([item.input, item.output, sentences, time, seed])).removeprefix("sha256:")
    numbered = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
    verdict = form_of({"evidence": TEXT, "holds": one_of(("yes", "no"))})
    form = form_of({"sentences": form_of({str(number): verdict for number in range(1, len(names) + 1)})})
    return make_question(
        identity[:_ID_DIGITS],
        prompt_of_sentences(),
        {"form": form_text(form)},
        {"input": item.input, "sentences": numbered, "output": item.output},
        form[0],
        mark_of(seed, identity),
    )


def _read(made: Replicate, item: SentencesItem, names: Sequence[str]) -> dict[str, Vote]:
    """Return what an answer of the judge says of each sentence that it was asked about."""

    def check(value: Any) -> Mapping[str, Any] | Unscored:
        written = value.get("sentences") if isinstance(value, dict) else None
        return written if isinstance(written, dict) else Unscored(reason="wrong_format")

    text = text_of(made)
    written = text if isinstance(text, Unscored) else last_whole(text, check, (item.input, item.output))
    if isinstance(written, Unscored):
        return dict.fromkeys(names, Vote(None, written.reason))
    return {name: _vote(written.get(str(number)), item, name) for number, name in enumerate(names, 1)}


def _vote(written: Any, item: SentencesItem, name: str) -> Vote:
    """Return the vote on one sentence; it counts for nothing without evidence, or on an invented quotation."""
    members = written if isinstance(written, dict) else {}
    holds = {"yes": True, "no": False}.get(str(members.get("holds")).strip().lower())
    evidence = members.get("evidence")
    if holds is None:
        return Vote(None, "off_scale")
    if not isinstance(evidence, str) or not any(mark.isalnum() for mark in evidence):
        return Vote(None, "no_evidence")
    texts = (item.output, item.input, item.sentences[name])
    if invented_quotations(evidence, texts):
        return Vote(None, "evidence_not_in_text")
    return Vote(holds, evidence.strip())


def judge_estimate(judge: Model, kind: ProviderKind, cases: Iterable[Case], model: Model, replicates: int) -> Estimate:
    """Return what judging the answers of a model takes at most: each as long as it can be, asked about each time."""
    longest = "x" * (_CHARACTERS * model.params.max_output_tokens)
    items = [
        SentencesItem(input=case.document, output=longest, sentences=sentences)
        for case in cases
        if (sentences := case.sentences)
    ]
    sizes = question_sizes(question for item in items if (question := votes_on(item, {}, 0).question))
    return estimate(sizes, judge, kind, replicates * MOST_ASKED)
