"""What failed in a run, where, and what a person can do about it: a sentence for each reason."""

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

from skill_evaluator.library.config import IGNORABLE
from skill_evaluator.parsing import NotJson
from skill_evaluator.records.record import Record
from skill_evaluator.text import listed

_LATER = "--resume asks again"
_PRESSED = f"{_LATER}; limits: {{{{max_concurrency, requests_per_minute}}}} of '{{model}}' in models.yaml press less"
_SLOW = f"{_LATER}; timeout_s in settings.yaml is the time that a call may take"
_UNREAD = "`explain` shows the answer as it came"
REMEDIES: Mapping[str, str] = {
    "unreachable": "start the server, then --resume; or correct base_url of '{model}' in models.yaml and begin anew",
    "wrong_key": "give '{model}' another key (api_key_env in models.yaml names its variable); then --resume",
    "permission_denied": "let the key of '{model}' use this model; then --resume",
    "no_login": "log in to the cloud that '{model}' names as its place, in this shell or job; then --resume",
    "identity_refused": "mend that rule or the rights it gives, by the token's subject and audience; then --resume",
    "unknown_model": "correct api_id or base_url of '{model}' in models.yaml",
    "model_retired": "the model is retired: `skill-evaluator switch {model} NEW` says whether another will do",
    "out_of_credit": "top up the account; then --resume",
    "context_exceeded": "raise the context of the server, or shorten document or prompt",
    "request_too_large": "let the server take more, or shorten document or prompt",
    "bad_request": "correct params or structured_output of '{model}' in models.yaml, by what the server says",
    **{f"{name}_refused": f"add `ignores: [{name}]` to '{{model}}' in models.yaml" for name in IGNORABLE},
    "malformed_body": "see that base_url of '{model}' in models.yaml is that of the API itself, not of a page or proxy",
    **dict.fromkeys(("rate_limited", "overloaded", "unavailable"), _PRESSED),
    **dict.fromkeys(("connection_lost", "conflict", "server_error", "bad_gateway"), _LATER),
    **dict.fromkeys(("read_timeout", "request_timeout", "gateway_timeout"), _SLOW),
    "output_limit": "raise max_output_tokens of '{model}' (params in models.yaml)",
    "answer_too_large": "limits.answer_bytes in settings.yaml is the most that is taken of an answer",
    "too_costly_to_score": "limits.score_seconds and score_megabytes in settings.yaml are the most an answer may "
    "take, collect_seconds the most that all of a `collect` may",
    "provider_bug": "tell whoever wrote the provider of '{model}'",
    "in_reasoning": "raise params: {{max_output_tokens}} of '{model}' in models.yaml, or turn its reasoning off",
    "tool_call": "let the prompt ask for the output as content; take tools out of params of '{model}' in models.yaml",
    **dict.fromkeys(("refusal", "empty", *get_args(NotJson), "ambiguous", "no_option"), _UNREAD),
}


def remedy(reason: str, model_id: str) -> str | None:
    """Return what to do about a failure with this reason; None for a reason that is not known."""
    words = REMEDIES.get(reason)
    if words and model_id == "program" and ".yaml" in words:
        words = "correct program: in prompt.md (its url, headers, body or timeout_s), or what it asks"
    return None if words is None else words.format(model=model_id)


def unusable_words(record: Record) -> str | None:
    """Return how many outputs could be read, why the others could not, and a remedy for the most frequent reason.

    Return None if enough outputs could be read, or if the run is incomplete for another reason.
    """
    if record.usable is None:
        return None
    state = "could be read" if record.contract is None else "are JSON"
    words = f"{record.scored} of {record.planned} outputs {state}"
    faults = [fault for fault in record.faults if fault.kind != "scored"]
    if not faults:
        return words
    what = remedy(faults[0].reason, record.model_id)
    words += f": {listed([f'{fault.count} × {fault.reason}' for fault in faults])}"
    return words if what is None else f"{words}; {what}"


def fault_lines(record: Record, quote: Callable[[str], str]) -> Iterator[str]:
    """Yield a sentence for each reason why calls of a run were not scored; `quote` writes text from outside."""
    address = None if record.settings is None else record.settings.base_url
    for fault in record.faults:
        more = f" and {fault.n_cases - len(fault.cases)} more" if fault.n_cases > len(fault.cases) else ""
        words = f"{fault.count} × {quote(fault.reason)} in {', '.join(map(quote, fault.cases))}{more}"
        if fault.message:
            words += f": {quote(fault.message)}"
        if address is not None and fault.kind in ("provider_error", "timeout", "no_credentials"):
            words += f" ({quote(address)})"
        what = remedy(fault.reason, record.model_id)
        yield words if what is None else f"{words} → {quote(what)}"
