"""OpenAI's batches of chat completions, through the client of its SDK; openai.py maps requests and answers."""

import json
from collections.abc import Mapping
from typing import Any

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import ProviderError, Request, fields_of
from skill_evaluator.providers.batch import (
    CLOCKS_APART_S,
    Batches,
    BatchLimits,
    BatchStatus,
    Results,
    SdkClient,
    Sought,
    answer_from,
    batch_failed,
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
from skill_evaluator.providers.openai import COMPLETIONS_PATH, open_provider
from skill_evaluator.providers.wire import HttpAnswer

_BATCHES = "/batches"
_ENDED = {  # and what became of the requests without a result
    "completed": lost,
    "cancelled": canceled,
    "expired": expired,
    "failed": lost,
}
_UNRUN = {"batch_expired": expired, "batch_cancelled": canceled}


class OpenAIBatches:
    """Batches of chat completions: a file goes up, and one with results and one with errors come down.

    The name is in the metadata: `{"id": "batch_1", "status": "completed", "metadata": {"name": …}}`.
    """

    limits = BatchLimits(requests=50_000, request_bytes=200_000_000, hours=24)

    def __init__(self, provider: HttpProvider) -> None:
        self._provider = provider
        self._client = SdkClient(provider)

    def _line(self, custom_id: str, request: Request) -> bytes:
        body = self._provider.sent_body(request)
        line = {"custom_id": custom_id, "method": "POST", "url": f"/v1{COMPLETIONS_PATH}", "body": body}
        return json.dumps(line).encode() + b"\n"

    def size(self, custom_id: str, request: Request) -> int:
        """Return the bytes of a line."""
        return len(self._line(custom_id, request))

    async def create(self, name: str, requests: Mapping[str, Request]) -> str:
        """Send the file, then create the batch; a file without a batch costs nothing."""
        lines = b"".join(self._line(custom_id, request) for custom_id, request in requests.items())
        file = await self._client.post(
            "/files",
            {"purpose": "batch"},
            files=[("file", ("requests.jsonl", lines, "application/jsonl"))],
            options={"headers": {"content-type": "multipart/form-data"}},
        )
        batch = {"input_file_id": required_id(file), "endpoint": f"/v1{COMPLETIONS_PATH}", "completion_window": "24h"}
        return required_id(await self._client.post(_BATCHES, {**batch, "metadata": {"name": name}}))

    async def find(self, sought: Sought) -> str | None:
        """Look for the name in the metadata of the batches since then."""
        after: dict[str, str] = {}
        while True:
            page = await self._client.get_json(_BATCHES, limit=100, **after)
            bodies = [fields_of(body) for body in page.get("data") or ()]
            for body in bodies:
                if fields_of(body.get("metadata")).get("name") == sought.name:
                    return required_id(body)
            created = count_of(bodies[-1].get("created_at")) if bodies else None
            if created is None or created < sought.since - CLOCKS_APART_S or not page.get("has_more"):
                return None
            after = {"after": required_id(bodies[-1])}

    async def status(self, batch_id: str) -> BatchStatus:
        """Ask how far a batch is; of one that failed, say what for."""
        body = await self._client.get_json(f"{_BATCHES}/{batch_id}")
        state, counts = str(body.get("status")), fields_of(body.get("request_counts"))
        unanswered, line = _ENDED.get(state, lost)(), None
        if state == "failed":
            errors = fields_of(body.get("errors")).get("data") or [{}]
            first = fields_of(errors[0])
            line = count_of(first.get("line"))
            unanswered = batch_failed(state, first.get("code"), first.get("message"))
        return BatchStatus(
            batch_id=required_id(body),
            state=state,
            ended=state in _ENDED,
            done=count_of(counts.get("completed"), counts.get("failed")),
            unanswered=unanswered,
            failed_line=line,
            body=body,
        )

    async def results(self, status: BatchStatus) -> Results:
        """Read both files; an HTTP error lies in the second, and its `error` is null."""
        answers: list[tuple[Any, HttpAnswer | ProviderError]] = []
        for key in ("output_file_id", "error_file_id"):
            if file_id := status.body.get(key):
                lines = result_lines(await self._client.get(f"/files/{file_id}/content"))
                answers += [(line.get("custom_id"), _result(line)) for line in lines]
        return read_results(self._provider, answers)

    async def cancel(self, batch_id: str) -> None:
        """Have a batch stopped."""
        await self._client.post(f"{_BATCHES}/{batch_id}/cancel")

    async def delete(self, status: BatchStatus) -> None:
        """Delete the files; the batch itself stays in the list."""
        for key in ("input_file_id", "output_file_id", "error_file_id"):
            if file_id := status.body.get(key):
                await self._client.delete(f"/files/{file_id}")

    async def close(self) -> None:
        """Close all connections."""
        await self._provider.close()


def open_batches(model: Model, key: str | None, settings: Settings) -> Batches:
    """Open the batches of one model; import the SDK."""
    return OpenAIBatches(open_provider(model.model_copy(update={"transport": "sdk"}), key, roomy(settings)))


def _result(line: Mapping[str, Any]) -> HttpAnswer | ProviderError:
    error, response = fields_of(line.get("error")), fields_of(line.get("response"))
    status = response.get("status_code")
    if isinstance(status, int) and 100 <= status <= 599:
        return answer_from(status, response.get("body"), response.get("request_id"))
    code = str(error.get("code"))
    if code in _UNRUN:
        return _UNRUN[code]()
    return ProviderError("server_error", f"{code}: {error.get('message')}", retryable=True)  # status 0 among them
