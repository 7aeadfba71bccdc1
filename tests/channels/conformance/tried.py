"""An adapter as the conformance suite tries it: what to ask of it, what comes in, and what has to come of each."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.channels.behaviours import (
    Behaviour,
    breaks_inside,
    closes_after_reading,
    hangs,
    resets_after_reading,
    resets_before_reading,
    says,
)

from recado.channels.core.events import CallbackEvent
from recado.channels.core.provider import Accepted, Account, Down, Outcome, Refused, SlowDown, Unknown
from recado.engine.clock import VirtualClock

BRIEF = 1.0  # seconds; for cases that end by a time-out, and whose connection must be made before on a busy machine too


@dataclass(frozen=True)
class Outgoing:
    """A provider that does something with a send, and the outcome. `name` goes on from "a provider that …"."""

    name: str
    behaviour: Behaviour
    outcome: Outcome
    timeout: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Sends:
    """`taken`: the body by which the provider takes a message, as `p-1`; `cases`: with those of any HTTP."""

    taken: str
    cases: Sequence[Outgoing]


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """`items`: each with its events; `odd`: of another shape, with the place that is named when one stands first.

    `unread`: bodies of another shape. `signed`: a body's true headers; `forged`: others that are none.
    """

    body_of: Callable[..., bytes]
    items: Sequence[tuple[Any, Sequence[CallbackEvent]]]
    odd: Sequence[tuple[Any, str]]
    unread: Sequence[bytes]
    signed: Callable[[bytes, datetime], Mapping[str, str]]
    forged: Callable[[bytes, datetime], Sequence[Mapping[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Operations:
    """All but sends. `failures`: a behaviour, whether it may be tried again, and the code."""

    calls: Mapping[str, Callable[[Any, Account], Awaitable[Any]]]
    failures: Sequence[tuple[str, Behaviour, str, str]]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """`make`: from the provider's address, a clock and seconds; `secrets`: what it must not tell anybody."""

    name: str
    make: Callable[[str, VirtualClock, float], Any]
    secrets: Sequence[str]
    sends: Sends | None = None
    callbacks: Callbacks | None = None
    operations: Operations | None = None


def http_sends(taken: str, plain: str) -> list[Outgoing]:
    """What holds for every provider over HTTP. `taken`: its body for a message that it takes; `plain`: of a refusal."""
    whole = len(taken)
    half = f"HTTP/1.1 200 OK\r\nContent-Length: {whole}\r\n\r\n{taken[: whole // 2]}"
    endless = json.dumps({**json.loads(taken), "padding": "x" * 2**20})
    return [
        Outgoing("accepts", says(200, taken), Accepted("p-1")),
        Outgoing("accepts with 202", says(202, taken), Accepted("p-1")),
        Outgoing("accepts with a list", says(200, "[]"), Unknown()),
        Outgoing("accepts with garbage", says(200, "<html>"), Unknown()),
        Outgoing("accepts with bytes that are no text", says(200, taken.encode().replace(b"p-1", b"\xff")), Unknown()),
        Outgoing("accepts endlessly", says(200, endless), Unknown()),
        Outgoing("stops inside its acceptance", breaks_inside(half, then_hangs=False), Unknown()),
        Outgoing("trickles its acceptance", breaks_inside(half, then_hangs=True), Unknown(), BRIEF),
        Outgoing("refuses in garbage", says(422, "%%"), Refused("provider_error", f"{plain} 422")),
        Outgoing("refuses the size", says(413), Refused("provider_error", f"{plain} 413")),
        Outgoing("does not know us", says(401), Down("unauthorized")),
        Outgoing("does not let us in", says(403), Down("forbidden")),
        Outgoing("is not at this address", says(404), Down("not_found")),
        Outgoing("has moved", says(307, "", "Location: http://127.0.0.1:9/send\r\n"), Down("redirected")),
        Outgoing("is busy", says(429, "", "Retry-After: 7\r\n"), SlowDown(7.0)),
        Outgoing("is busy at once", says(429, "", "Retry-After: 0\r\n"), SlowDown(1.0)),
        Outgoing("is busy to a date", says(503, "", "Retry-After: Fri, 20 Nov 2026 12:00:30 GMT\r\n"), SlowDown(30.0)),
        Outgoing(
            "was busy to a past date", says(503, "", "Retry-After: Fri, 20 Nov 2020 12:00:30 GMT\r\n"), SlowDown(1)
        ),
        Outgoing("is busy for a century", says(503, "", "Retry-After: 3155760000\r\n"), SlowDown(21_600.0)),
        Outgoing("is busy for a while", says(503, "", "Retry-After: soon\r\n"), SlowDown(None)),
        Outgoing("is busy without a word", says(503), SlowDown(None)),
        Outgoing("fails", says(500, taken), Unknown()),
        Outgoing("has a failing gateway", says(502, "<html>"), Unknown()),
        Outgoing("has a slow gateway", says(504), Unknown()),
        Outgoing("timed out reading us", says(408), Unknown()),
        Outgoing("resets before it reads", resets_before_reading, Unknown()),
        Outgoing("resets after it has read", resets_after_reading, Unknown()),
        Outgoing("closes after it has read", closes_after_reading, Unknown()),
        Outgoing("never answers", hangs, Unknown(), BRIEF),
        Outgoing("speaks another protocol", breaks_inside("220 mail.example ESMTP\r\n", True), Unknown(), BRIEF),
        Outgoing("says too much in its head", breaks_inside("HTTP/1.1 200 OK\r\nX: " + "x" * 99_999, False), Unknown()),
    ]
