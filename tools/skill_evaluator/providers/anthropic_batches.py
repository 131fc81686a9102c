"""Anthropic's message batches, through the client of its SDK; requests and answers are mapped by anthropic.py."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.anthropic import open_provider
from skill_evaluator.providers.base import ProviderError, Request, fields_of
from skill_evaluator.providers.batch import (
    CLOCKS_APART_S,
    Batches,
    BatchLimits,
    BatchStatus,
    Results,
    SdkClient,
    Sought,
    UndecidedError,
    answer_from,
    canceled,
    count_of,
    expired,
    lost,
    read_results,
    required_id,
    result_lines,
    roomy,
)
from skill_evaluator.providers.http import HttpProvider
from skill_evaluator.providers.wire import HttpAnswer, malformed

_BATCHES = "/v1/messages/batches"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_STATUS_OF = {  # an error of a batch has no status, only the type that goes with one
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches:
    """Message batches. They have no name: one is told by its size, and for certain by its custom ids once it is over.

    An entry of the list looks like `{"id": "msgbatch_1", "processing_status": "ended", "request_counts": {…}}`.
    """

    limits = BatchLimits(requests=100_000, request_bytes=256_000_000, hours=24)

    def __init__(self, provider: HttpProvider) -> None:
        self._provider = provider
        self._client = SdkClient(provider)

    def _entry(self, custom_id: str, request: Request) -> dict[str, Any]:
        return {"custom_id": custom_id, "params": self._provider.sent_body(request)}

    def size(self, custom_id: str, request: Request) -> int:
        """Return the bytes of an entry."""
        return len(json.dumps(self._entry(custom_id, request)))

    async def create(self, name: str, requests: Mapping[str, Request]) -> str:
        """Create a batch."""
        entries = [self._entry(custom_id, request) for custom_id, request in requests.items()]
        return required_id(await self._client.post(_BATCHES, {"requests": entries}))

    async def find(self, sought: Sought) -> str | None:
        """Look at the batches since then that have as many requests; one that is not over may be it."""
        undecided = None
        after: dict[str, str] = {}
        while True:
            page = await self._client.get_json(_BATCHES, limit=100, **after)
            for body in map(fields_of, page.get("data") or ()):
                if _seconds(body.get("created_at")) < sought.since - CLOCKS_APART_S:
                    page = {}
                    break
                counts = fields_of(body.get("request_counts"))
                total = count_of(*(counts.get(name, 0) for name in _COUNTS))
                if body.get("id") in sought.others or total != len(sought.custom_ids):
                    continue
                status = _status(body)
                if not status.ended:
                    undecided = status.batch_id
                elif body.get("results_url") and (await self.results(status)).keys() & sought.custom_ids:
                    return status.batch_id
            if not page.get("has_more") or not page.get("last_id"):
                break
            after = {"after_id": str(page["last_id"])}
        if undecided is not None:
            raise UndecidedError(f"{undecided} has as many requests and is not over")
        return None

    async def status(self, batch_id: str) -> BatchStatus:
        """Ask how far a batch is."""
        return _status(await self._client.get_json(f"{_BATCHES}/{batch_id}"))

    async def results(self, status: BatchStatus) -> Results:
        """Read the file of results."""
        content = await self._client.get(f"{_BATCHES}/{status.batch_id}/results")
        lines = [(line.get("custom_id"), fields_of(line.get("result"))) for line in result_lines(content)]
        return read_results(self._provider, [(custom_id, _result(result)) for custom_id, result in lines])

    async def cancel(self, batch_id: str) -> None:
        """Have a batch stopped."""
        await self._client.post(f"{_BATCHES}/{batch_id}/cancel")

    async def delete(self, status: BatchStatus) -> None:
        """Delete a batch with its requests and results."""
        await self._client.delete(f"{_BATCHES}/{status.batch_id}")

    async def close(self) -> None:
        """Close all connections."""
        await self._provider.close()


def open_batches(model: Model, key: str | None, settings: Settings) -> Batches:
    """Open the message batches of one model; import the SDK."""
    return AnthropicBatches(open_provider(model, key, roomy(settings)))


def _status(body: Mapping[str, Any]) -> BatchStatus:
    state, counts = str(body.get("processing_status")), fields_of(body.get("request_counts"))
    return BatchStatus(
        batch_id=required_id(body),
        state=state,
        ended=state == "ended",
        done=count_of(*(counts.get(name, 0) for name in _COUNTS[1:])),
        unanswered=lost(),
        body=body,
    )


def _result(result: Mapping[str, Any]) -> HttpAnswer | ProviderError:
    match result.get("type"):
        case "succeeded":
            return answer_from(200, result.get("message"))
        case "expired":
            return expired()
        case "canceled":
            return canceled()
    error = fields_of(result.get("error"))
    kind = fields_of(error.get("error")).get("type")
    return answer_from(_STATUS_OF.get(str(kind), 500), error, error.get("request_id"))


def _seconds(moment: Any) -> float:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        raise malformed(f"created_at is {moment!r}") from None
