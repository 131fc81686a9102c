"""Gemini's batches, through the SDK of google.py, which maps requests and answers."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import ProviderError, Request, fields_of
from skill_evaluator.providers.batch import (
    Batches,
    BatchLimits,
    BatchStatus,
    Results,
    Sought,
    answer_from,
    batch_failed,
    canceled,
    content_of,
    expired,
    json_object,
    lost,
    read_results,
    required_id,
    roomy,
)
from skill_evaluator.providers.google import open_provider
from skill_evaluator.providers.http import HttpProvider
from skill_evaluator.providers.wire import HttpAnswer

_STATUS_OF = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}  # of gRPC codes
_ENDED = {"SUCCEEDED": lost, "PARTIALLY_SUCCEEDED": lost, "CANCELLED": canceled, "EXPIRED": expired, "FAILED": lost}


class GoogleBatches:
    """Batches of Gemini, the requests inline. The name is the display name, and `metadata` has the custom id.

    The SDK maps the requests. What comes back is read as JSON: its typed job leaves out why one failed, and has no word
    for some states, of which `done` then says whether they are final.
    """

    limits = BatchLimits(requests=50_000, request_bytes=20_000_000, hours=48)

    def __init__(self, provider: HttpProvider, api_name: str) -> None:
        self._provider = provider
        self._api_name = api_name

    def size(self, custom_id: str, request: Request) -> int:
        """Return about the bytes of an entry, whose names the SDK maps."""
        entry = {**self._provider.sent_body(request), "contents": [request.user], "metadata": {"key": custom_id}}
        return len(json.dumps(entry)) + 200

    async def create(self, name: str, requests: Mapping[str, Request]) -> str:
        """Create a batch."""
        from google.genai import types

        entries = [
            types.InlinedRequest(
                contents=request.user,
                metadata={"key": custom_id},
                config=types.GenerateContentConfig(**self._provider.sent_body(request)),
            )
            for custom_id, request in requests.items()
        ]
        created: list[str | None] = []

        async def send() -> HttpAnswer:
            job = await self._provider.client.aio.batches.create(
                model=self._api_name, src=entries, config={"display_name": name}
            )
            created.append(job.name)
            return HttpAnswer(status=200, headers={}, content=b"{}")

        await content_of(self._provider, send())
        return required_id({"name": created[0]}, "name")

    async def find(self, sought: Sought) -> str | None:
        """Look for the display name in the list of batches."""
        token = ""
        while True:
            page = await self._asked("get", f"batches?pageSize=100{token and f'&pageToken={token}'}")
            for body in map(fields_of, page.get("operations") or ()):
                if fields_of(body.get("metadata")).get("displayName") == sought.name:
                    return required_id(body, "name")
            if not page.get("nextPageToken"):
                return None
            token = quote(str(page["nextPageToken"]), safe="")

    async def status(self, batch_id: str) -> BatchStatus:
        """Ask how far a batch is; of one that failed, say what for."""
        body = await self._asked("get", batch_id)
        job, error = fields_of(body.get("metadata")), fields_of(body.get("error"))
        state = str(job.get("state"))
        word = state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        stats = fields_of(job.get("batchStats"))
        unanswered = _ENDED.get(word, lost)()
        if word == "FAILED" or (error and word not in _ENDED):
            unanswered = batch_failed(word, error.get("code"), error.get("message"))
        return BatchStatus(
            batch_id=required_id(body, "name"),
            state=word,
            ended=word in _ENDED or body.get("done") is True,
            done=sum(_count(stats.get(name)) for name in ("successfulRequestCount", "failedRequestCount")),
            unanswered=unanswered,
            body=body,
        )

    async def results(self, status: BatchStatus) -> Results:
        """Read the inline results."""
        job = fields_of(status.body.get("metadata"))
        output = fields_of(status.body.get("response")) or fields_of(job.get("output"))
        entries = fields_of(output.get("inlinedResponses")).get("inlinedResponses") or ()
        answers = [(fields_of(entry.get("metadata")).get("key"), _result(entry)) for entry in map(fields_of, entries)]
        return read_results(self._provider, answers)

    async def cancel(self, batch_id: str) -> None:
        """Have a batch stopped."""
        await self._asked("post", f"{batch_id}:cancel")

    async def delete(self, status: BatchStatus) -> None:
        """Delete a batch with its requests and results."""
        await self._asked("delete", status.batch_id)

    async def close(self) -> None:
        """Close all connections."""
        await self._provider.close()

    async def _asked(self, method: str, path: str) -> Mapping[str, Any]:
        async def send() -> HttpAnswer:
            # what its methods call: they drop the fields that are read here
            answer = await self._provider.client._api_client.async_request(method, path, {})
            return HttpAnswer(status=200, headers={}, content=answer.body.encode("utf-8", "surrogatepass"))

        return json_object(await content_of(self._provider, send()))


def open_batches(model: Model, key: str | None, settings: Settings) -> Batches:
    """Open the batches of one model; import the SDK."""
    return GoogleBatches(open_provider(model, key, roomy(settings)), model.api_name)


def _result(entry: Mapping[str, Any]) -> HttpAnswer | ProviderError:
    error = fields_of(entry.get("error"))
    if not error and "response" in entry:
        return answer_from(200, entry["response"])
    return answer_from(_STATUS_OF.get(error.get("code"), 500), {"error": error})  # type: ignore[arg-type]


def _count(number: Any) -> int:
    """Return a count, which Google's JSON has as text."""
    return int(number) if str(number).isdecimal() else 0
