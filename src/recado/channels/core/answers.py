"""What the answers of a provider over HTTP mean, whatever its protocol: to outcomes and failures (C29.2). Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import orjson

from recado.channels.core.errors import MalformedCallback, ProviderError
from recado.channels.core.provider import Accepted, Down, Outcome, SlowDown, Unknown
from recado.channels.core.reading import Shape
from recado.channels.http.answer import Answer, Lost, NotSent, retry_after

T = TypeVar("T")

# The provider is not where its address says, or not for us: the request was certainly not taken (C29.2, `Down`).
_NOT_THERE = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "not_found"}
# Refusals in name, but a first request under the same key may be the one being processed, or none was read to its end.
_IN_DOUBT = frozenset({408, 409, 425})
_TRY_LATER = frozenset({408, 425, 429})


def outcome(
    answer: Answer | NotSent | Lost,
    now: datetime,
    *,
    message_id: Callable[[Mapping[str, Any]], str | None],
    refused: Callable[[Answer, float | None], Outcome],
) -> Outcome:
    """The outcome of a send by its status.

    `message_id`: reads the provider's id in the body of a 2xx; `refused`: what a refusal says, and when it may be tried
    again (seconds).
    """
    if isinstance(answer, NotSent):
        return Down("connect_failed")
    if isinstance(answer, Lost):
        return Unknown()
    status = answer.status
    if 200 <= status < 300:
        taken = message_id(said(answer))
        # Processed without a readable id: saying "failed" could make somebody send it again.
        return Unknown() if taken is None else Accepted(taken)
    after = retry_after(answer.retry_after, now)
    if status in (429, 503):
        return SlowDown(after)
    if status in _NOT_THERE:
        return Down(_NOT_THERE[status])
    if 300 <= status < 400:
        return Down("redirected")
    if status >= 500 or status < 200 or status in _IN_DOUBT:
        return Unknown()
    return refused(answer, after)


def arrived(answer: Answer | NotSent | Lost, asked: str, provider: str) -> Answer:
    """The answer, of whatever status, to an operation other than a send; raises `ProviderError` when none came."""
    if isinstance(answer, Answer):
        return answer
    code = "connect_failed" if isinstance(answer, NotSent) else "no_answer"
    raise ProviderError("unreachable", code, f"the {provider} did not answer {asked}")


def failure(status: int, code: str, text: str, *, later: str | None = None) -> ProviderError:
    """An operation that was answered with no 2xx. `code`: of a refusal; `later`: of what was refused for now only."""
    if later is None and 400 <= status < 500 and status not in _NOT_THERE and status not in _TRY_LATER:
        return ProviderError("refused", code, text)
    return ProviderError("unreachable", _NOT_THERE.get(status, later or "no_answer"), text)


def json_of(answer: Answer) -> dict[str, Any] | None:
    """The JSON object that it holds; None for what is none, and for one that did not come whole."""
    try:
        value = orjson.loads(answer.body) if answer.complete else None
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def said(answer: Answer) -> Mapping[str, Any]:
    """What the body of an answer says, where it says anything."""
    return json_of(answer) or {}


def body_of(answer: Answer, provider: str) -> dict[str, Any]:
    """What a successful operation was answered with; raises `ProviderError` when it is no object."""
    body = json_of(answer)
    if body is None:
        raise _malformed("the body", provider)
    return body


def read(shape: Shape[T], value: object, where: str, provider: str) -> T:
    """A part of such an answer; raises `ProviderError` when it has another shape."""
    try:
        return shape.read(value)
    except MalformedCallback as error:
        raise _malformed(error.within(where).where, provider) from None


def _malformed(where: str, provider: str) -> ProviderError:
    return ProviderError("unreachable", "malformed_answer", f"the {provider}'s answer is malformed at {where}")
