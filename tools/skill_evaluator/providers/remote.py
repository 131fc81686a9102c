"""A model behind HTTP. The vendor's module builds the requests and reads the bodies; this module sends them."""

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from skill_evaluator.files import first_problem
from skill_evaluator.providers.base import Completion, ProviderError, Request, Usage, malformed
from skill_evaluator.providers.keyless import Identity
from skill_evaluator.providers.wire import (
    HttpAnswer,
    TooLargeError,
    error_from_status,
    is_content_filter,
    parsed_answer,
    refused_parameter,
    replaced_parameter,
)

if TYPE_CHECKING:
    from skill_evaluator.providers.sdk import SdkConnection
    from skill_evaluator.providers.transport import PlainConnection

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_NO_BILL = Usage(input_tokens=0, output_tokens=0)  # error statuses are not billed
Body = Callable[[Request], Mapping[str, Any]]
Read = Callable[[Any, Mapping[str, str]], Completion]
VendorError = Callable[[HttpAnswer], ProviderError | None]


class RemoteProvider:
    """One model whose calls are posted as JSON to a path of its `connection`.

    `body` builds the JSON of a request. `read` reads the body and headers of a success. `vendor_error` returns the
    error of a response that only this vendor sends, or None. `renamed` has the replacements of parameters that the
    server rejected.
    """

    def __init__(
        self,
        connection: "SdkConnection | PlainConnection",
        path: str,
        body: Body,
        read: Read,
        *,
        vendor_error: VendorError | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.path = path
        self.renamed: dict[str, str] = {}
        self._connection = connection
        self._body = body
        self._read = read
        self._vendor_error = vendor_error
        self._identity = identity
        self.limits_time = identity is None  # the transport does not time an exchange of tokens

    async def complete(self, request: Request) -> Completion:
        """Make one call. Raise ProviderError. A body over the limit is an output without text."""
        body = self.body(request)
        try:
            answer = await self._send("POST", self.path, body=body)
        except TooLargeError:
            return Completion(text="", stop_reason="too_large")
        return replace(self.completion(answer, sent=body), latency_s=answer.latency_s)

    def body(self, request: Request) -> Mapping[str, Any]:
        """Return the JSON body of a request. Raise ProviderError for a text that is not valid Unicode."""
        try:
            for message in request.messages:
                message.text.encode()
        except UnicodeEncodeError as problem:
            raise _unsendable(problem) from None
        return {self.renamed.get(name, name): value for name, value in self._body(request).items()}

    async def fetch(self, method: str, path: str, **content: Any) -> HttpAnswer:
        """Send any request (see `SdkConnection.send`). Raise ProviderError, or TooLargeError for its body."""
        answer = await self._send(method, path, **content)
        if not answer.is_success:
            raise self._status_error(answer)
        return answer

    async def _send(self, method: str, path: str, **content: Any) -> HttpAnswer:
        try:
            return await self._connection.send(method, path, **content)
        except (ValueError, TypeError) as problem:  # the key cannot be sent in a header
            raise _unsendable(problem) from None

    def completion(self, answer: HttpAnswer, sent: Container[str] | None = None) -> Completion:
        """Read a response. Raise ProviderError for an error or an invalid body.

        An error of a content filter is a refusal with the error's message as its text. `sent` has the parameters of the
        request, None if they are not known, as in a batch.
        """
        if answer.is_success:
            try:
                return self._read(parsed_answer(answer.content), answer.headers)
            except TooLargeError:
                return Completion(text="", stop_reason="too_large")
            except UNREADABLE as problem:
                if not answer.details.get("message"):
                    what = first_problem(problem) if isinstance(problem, ValidationError) else repr(problem)
                    what = "it has an empty array" if isinstance(problem, IndexError) else what
                    kind, begin = answer.headers.get("content-type", "no type"), answer.content[:1_000]
                    raise malformed(f"unexpected body: {what}; it is {kind} and begins with {begin!r}") from None
        if is_content_filter(answer):
            return Completion(text=answer.message, stop_reason="refusal", usage=_NO_BILL)
        if answer.is_success:
            raise ProviderError("server_error", answer.message, retryable=True, perhaps_billed=True)
        raise self._rejection(answer, sent)

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    def _rejection(self, error: HttpAnswer, sent: Container[str] | None) -> ProviderError:
        """Return the error of a call. It is retryable if the server names a replacement for a parameter."""
        problem = self._status_error(error)
        if not problem.rejected:
            return problem
        refused, name = replaced_parameter(error) or ("", "")
        is_sent = sent is None or (refused in sent and name not in sent)
        if name and is_sent and refused not in self.renamed.values():
            self.renamed[refused] = name
            problem.retryable, problem.retry_after_s = True, 0.0
        elif refused := refused_parameter(error) or "":
            problem.reason = f"{refused}_refused"
        return problem

    def _status_error(self, error: HttpAnswer) -> ProviderError:
        if self._identity is not None and error.status in (401, 403):
            return self._identity.refused(error.message, error.status)
        vendor_error = self._vendor_error(error) if self._vendor_error else None
        return vendor_error or error_from_status(error.status, error.headers, error.message)


def _unsendable(problem: Exception) -> ProviderError:
    return ProviderError("bad_request", f"the request cannot be sent: {problem}")
