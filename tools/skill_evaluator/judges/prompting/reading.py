"""Read the verdict and its evidence from a judge's output, or the reason why the output does not count."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, TypeGuard, TypeVar

from skill_evaluator.judges.prompting.criteria import mitigations_of
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.parsing import embedded_values, parse_output, split_reasoning
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.text import normalise

_MAX_QUOTATIONS = 12  # limit in each piece of evidence
_MIN_LETTERS = 4  # shorter words without a digit occur in almost any text
_QUOTED = re.compile(r'"([^"]+)"|(?<!\w)\'([^\']+)\'(?!\w)')
_OUTER_QUOTATION_MARK = re.compile(r"(?<!\w)[\"']|[\"'](?!\w)")  # a quotation mark, not an apostrophe inside a word
_GAP = re.compile(r"\[?(?:\.\.\.|…)\]?")
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
_IGNORED_CHARACTERS = re.compile(r"\\+[bfnrt]|[\\\s]")  # white space, also escaped
_MAX_DETAIL = 200  # characters
_MAX_EVIDENCE_SEARCHED = 20  # bounds the time of searching long texts

VerdictT = TypeVar("VerdictT")
UnscoredReason = Literal[
    "empty",
    "not_json",
    "wrong_format",
    "off_scale",
    "copied",
    "missing_criterion",
    "no_evidence",
    "no_justification",
    "evidence_not_in_text",
    "score_before_justification",
    "missing_dimension",
    "repeated_dimension",
    "refused",
    "truncated",
    "not_answered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """The reason why an output does not count, with its detail."""

    reason: UnscoredReason
    detail: str = ""


def text_of(replicate: Replicate | None) -> str | Unscored:
    """Return the text of a judge's output, or the reason why it is missing."""
    if replicate is None:
        return Unscored(reason="not_answered", detail="the call was not made")
    failure = replicate.failure
    if failure is None and replicate.completion is not None:
        return replicate.completion.text
    kind = failure.kind if failure else "not_run"
    reason: UnscoredReason = kind if kind in ("refused", "truncated") else "not_answered"
    return Unscored(reason=reason, detail=str(failure) if failure else "")


def commonest_failure(answers: Iterable[Replicate]) -> str:
    """Format the most frequent failure of the calls with its count; empty if no call failed."""
    failures = Counter(str(call.failure) for call in answers if call.failure is not None)
    return "".join(f"{count} × {words}" for words, count in failures.most_common(1))


def last_valid_verdict(
    output: str | Unscored, check: Callable[[Any], VerdictT | Unscored], judged: Sequence[str] = ()
) -> VerdictT | Unscored:
    """Return the last verdict in an output that `check` accepts, or the reason why there is none.

    A verdict that is copied from a `judged` text does not count.
    """
    if isinstance(output, Unscored):
        return output
    text = split_reasoning(output)[1]
    first = parse_output(text, "json")
    if first.problem is not None:
        return Unscored(reason="empty" if first.problem == "empty" else "not_json")
    quoted = [value for source in judged for _, value in embedded_values(source)]
    sources = [_without_escapes(source) for source in judged]
    refusals: list[Unscored] = []
    for source_text, value in reversed(list(embedded_values(text)) or [(text, first.value)]):
        checked = check(value)
        if isinstance(checked, Unscored):
            refusals.append(checked)
        elif value in quoted or any(_without_escapes(source_text) in source for source in sources):
            refusals.append(Unscored(reason="copied", detail="the judged text contains this verdict"))
        else:
            return checked
    return refusals[0]


def _without_escapes(text: str) -> str:
    """Remove white space and escapes, so that a search finds JSON that is escaped inside a string."""
    plain = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text)
    return _IGNORED_CHARACTERS.sub("", plain).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_criteria(
    answer: str | Unscored, criteria: Sequence[str], judged: Sequence[str]
) -> dict[str, Mapping[str, Any] | Unscored]:
    """Return the JSON object of each criterion, or the reason if it is missing.

    The objects are those of the last verdict in `answer` that is not copied from a text in `judged`.
    """

    def check(value: Any) -> Mapping[str, Any] | Unscored:
        written = value.get("criteria") if isinstance(value, dict) else None
        if not isinstance(written, dict):
            return Unscored(reason="wrong_format", detail="no object under 'criteria'")
        if not written.keys() & set(criteria):
            return Unscored(reason="missing_criterion", detail=", ".join(criteria))
        return written

    verdict = last_valid_verdict(answer, check, judged)
    if isinstance(verdict, Unscored):
        return dict.fromkeys(criteria, verdict)
    return {
        name: verdict[name]
        if isinstance(verdict.get(name), dict)
        else Unscored(reason="missing_criterion", detail=name)
        for name in criteria
    }


def read_judgement(
    members: Mapping[str, Any] | Unscored,
    decision: str,
    allowed: Sequence[int | str],
    evidence: Sequence[str],
    criterion: Criterion,
    texts: Sequence[str],
) -> dict[str, Any]:
    """Return the fields of a `Judgement` on one criterion from `members`, the judge's JSON object.

    `decision` is the key of the score or winner, `allowed` has its values, and `evidence` has the keys of the evidence.
    The field `quotes` counts the pieces of evidence that quote one of the `texts`. If the judgement is unusable, return
    only the reason (`unscored`) and a `detail`.
    """
    if isinstance(members, Unscored):
        return {"unscored": members.reason, "detail": members.detail}
    value, confidence, justification = (members.get(key) for key in (decision, "confidence", "justification"))
    mitigations, keys = mitigations_of(criterion), list(members)
    pieces = {key: _evidence_pieces(members.get(key)) for key in evidence}
    all_pieces = [piece for some in pieces.values() for piece in some]
    quotes = sum(any(has_quotation(piece, text) for text in texts) for piece in all_pieces[:_MAX_EVIDENCE_SEARCHED])
    unscored: UnscoredReason | None = None
    detail = ""
    if isinstance(value, bool) or value not in allowed:
        unscored, detail = "off_scale", f"{decision} {value!r} is not one of {', '.join(map(str, allowed))}"
    elif isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        unscored, detail = "off_scale", f"confidence {confidence!r} is not from 0 to 1"
    elif not all(pieces.values()):
        unscored, detail = "no_evidence", ", ".join(key for key, some in pieces.items() if not some)
    elif not _has_content(justification):
        unscored = "no_justification"
    elif "require_justification_first" in mitigations and keys.index(decision) < keys.index("justification"):
        unscored = "score_before_justification"
    elif "evidence_required" in mitigations and not quotes:
        unscored, detail = "evidence_not_in_text", all_pieces[0]
    if unscored is not None:
        return {"unscored": unscored, "detail": detail[:_MAX_DETAIL]}
    fields = {key: members.get(key) for key in ("justification", "suggestion")}
    prose = {key: text.strip() for key, text in fields.items() if isinstance(text, str)}
    return {**prose, decision: value, "evidence": all_pieces, "confidence": confidence, "quotes": quotes}


def _evidence_pieces(value: Any) -> list[str]:
    return [piece.strip() for piece in (value if isinstance(value, list) else [value]) if _has_content(piece)]


def _has_content(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and any(character.isalnum() for character in value)


def contains_quotation(text: str, quotation: str) -> bool:
    """Return whether a text contains a quotation, apart from case, white space, quotation marks and gaps (`…`).

    The parts between gaps must be in the same order. Return False for a quotation that has no digit and no part of at
    least four characters.
    """
    plain = _plain_text(text)
    parts = [part for part in (_plain_text(part).strip(" .,;:!?-") for part in _GAP.split(quotation)) if part]
    is_evidence = any(len(part) >= _MIN_LETTERS or any(character.isdigit() for character in part) for part in parts)
    in_order = "".join(rf"(?>.*?(?<!\w){re.escape(part)}(?!\w))" for part in parts)  # atomic: bounds backtracking
    return is_evidence and re.match(in_order, plain) is not None


def has_quotation(evidence: str, text: str) -> bool:
    """Return whether a piece of evidence is a quotation from a text, or contains one between quotation marks."""
    return any(contains_quotation(text, quotation) for quotation in (evidence, *_quoted_passages(evidence)))


def invented_quotations(evidence: str, texts: Sequence[str]) -> list[str]:
    """Return the quotations in `evidence` that no text contains. Return [] if a text contains `evidence` as a whole."""
    if any(contains_quotation(text, evidence) for text in texts):
        return []
    return [
        passage
        for passage in _quoted_passages(evidence)
        if not any(contains_quotation(text, passage) for text in texts)
    ]


def shows_difference(evidence: Sequence[str], baseline: str, candidate: str) -> bool:
    """Return whether the evidence quotes a passage that occurs in only one of the two texts.

    >>> shows_difference(["opened in 1999"], "It opened in 1999.", "It opened in 1998.")
    True
    >>> shows_difference(["It opened"], "It opened in 1999.", "It opened in 1998.")
    False
    """
    quotations = (quotation for text in evidence for quotation in (text, *_quoted_passages(text)))
    return any(contains_quotation(baseline, one) != contains_quotation(candidate, one) for one in quotations)


def _quoted_passages(evidence: str) -> list[str]:
    marks = islice(_QUOTED.finditer(evidence.translate(_STRAIGHT)), _MAX_QUOTATIONS)
    return [mark[1] or mark[2] for mark in marks]


@lru_cache(maxsize=8)  # the same few outputs are searched for each piece of evidence
def _plain_text(text: str) -> str:
    straight = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return normalise(_OUTER_QUOTATION_MARK.sub("", straight)).casefold()
