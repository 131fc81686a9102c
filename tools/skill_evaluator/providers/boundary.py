"""Calls to a provider, whoever wrote it and whatever it does: a completion within the limits, or a ProviderError.

Its own module because the providers of other packages pass here, too: what is wrong in one costs nobody else's call.
"""

import asyncio
from dataclasses import replace

from pydantic import ValidationError

from skill_evaluator.errors import ConfigError, SkillEvaluatorError, StorageError
from skill_evaluator.files import first_problem
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import Completion, Provider, ProviderError, ProviderKind, Request
from skill_evaluator.providers.wire import malformed, timed_out


def opened(kind: ProviderKind, model: Model, key: str | None, settings: Settings) -> Provider:
    """Open a provider; raise ConfigError, also for what goes wrong in one of another package."""
    try:
        return kind.open(model, key, settings)
    except SkillEvaluatorError:
        raise
    except Exception as problem:
        raise ConfigError(f"provider '{model.provider}' of model '{model.id}' cannot be opened: {problem!r}") from None


async def ask_once(provider: Provider, request: Request, settings: Settings) -> Completion:
    """Return the answer to one request; raise ProviderError for everything else, StorageError as it is.

    An answer over `limits.answer_bytes` keeps no text.
    """
    try:
        async with asyncio.timeout(settings.timeout_s):
            completion = await provider.complete(request)
    except (ProviderError, StorageError):
        raise
    except TimeoutError:
        raise timed_out(f"no answer within {settings.timeout_s:g} s") from None
    except ValidationError as problem:
        raise malformed(f"unexpected answer: {first_problem(problem)}") from None
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _bug(repr(problem)) from None
    except Exception as problem:
        raise _bug(repr(problem)) from None
    if not isinstance(completion, Completion):
        raise _bug(f"a Completion is expected, not {type(completion).__name__}")
    return within_limits(completion, settings)


def within_limits(completion: Completion, settings: Settings) -> Completion:
    """Return a completion; without its text where that is over `limits.answer_bytes`."""
    if _is_longer(completion.text, settings.limits.answer_bytes):
        return replace(completion, text="", stop_reason="too_large")
    return completion


def _is_longer(text: str, most_bytes: int) -> bool:
    """Check the length in UTF-8, which most texts need not be written in for that."""
    return len(text) * 4 > most_bytes and len(text.encode("utf-8", "surrogatepass")) > most_bytes


def _bug(message: str) -> ProviderError:
    return ProviderError("provider_bug", f"the provider failed by itself: {message}", perhaps_billed=True)
