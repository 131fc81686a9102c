"""What a vendor's error says of a request that it rejects: a content filter, or a parameter that it does not take."""

import re

from skill_evaluator.library.config import IGNORABLE
from skill_evaluator.providers.wire import ErrorAnswer

# the codes of OpenAI, Azure and gateways; the sentences of Azure, Anthropic, Google, OpenAI and DeepSeek
_FILTER_CODES = re.compile(
    r"(?i)content_filter|content_policy_violation|ResponsibleAIPolicyViolation|data_?inspection_?failed|invalid_prompt"
)
_FILTER_WORDS = re.compile(
    r"(?i)blocked by content filter|content management policy|responsible AI (?:practices|policy)|content exists risk"
    r"|flagged as potentially violating"
)
_REPLACED = re.compile(r"""(?is)['"`](\w+)['"`].*\buse ['"`]([a-z_]\w{0,60})['"`]""")
_REFUSED = re.compile(
    r"(?i)not support|unsupported|not permitted|extra_forbidden|unrecognized|unknown|unexpected|deprecated"
)
_PARAMETER = re.compile(rf"\b({'|'.join(IGNORABLE)})\b")
_MAX_TEXT = 600  # characters; a longer text may repeat the request


def is_content_filter(error: ErrorAnswer) -> bool:
    """Check whether a content filter refused the prompt or the output."""
    inner = error.details.get("innererror")
    codes = [error.details.get(key) for key in ("code", "type")] + [inner.get("code") if isinstance(inner, dict) else 0]
    has_code = any(_FILTER_CODES.fullmatch(str(code)) for code in codes)
    return error.status != 429 and (has_code or _FILTER_WORDS.search(error.message) is not None)


def replaced_parameter(error: ErrorAnswer) -> tuple[str, str] | None:
    """Return the parameter that a server refuses and the name that it asks for instead; None if it names none."""
    found = _REPLACED.search(error.message[:_MAX_TEXT])
    return (str(error.details.get("param") or found[1]), found[2]) if found else None


def refused_parameter(error: ErrorAnswer) -> str | None:
    """Return the parameter of `ignores` that a server does not take; None if the error is about something else."""
    text = f"{error.message} {error.details}"[:_MAX_TEXT]
    found = _PARAMETER.search(str(error.details.get("param") or text)) if _REFUSED.search(text) else None
    return found[1] if found else None
