"""The requests of a load test: messages to made-up recipients, spread over the channels and their senders in turn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from recado.loadtest.channels import ChannelLoad

# The sandbox behaves specially for phones that end in 9001 and up (C29.4): these end below.
_ENDINGS = 9_000
_MIDDLES = 10_000


@dataclass(frozen=True, slots=True)
class Sender:
    """What the test sends through: a number, or a channel without numbers.

    `per_second`: its limit, None where it is not known; `body`: what its messages say.
    """

    name: str
    per_second: int | None
    body: Mapping[str, Any]


class Workload:
    """Builds whole HTTP requests of a channel. All of one sender have one length: only digits change between them."""

    def __init__(
        self, base_url: str, token: str, campaign_id: str, senders: Sequence[Sender], channel: ChannelLoad
    ) -> None:
        self.senders = tuple(senders)
        self._recipients = channel.recipients
        parts = urlsplit(base_url)
        path, placeholder = f"{parts.path.rstrip('/')}{channel.path}", recipient(channel.recipients, 0)
        self._templates = [
            _request(path, parts.netloc, token, placeholder, {**sender.body, "campaignId": campaign_id})
            for sender in self.senders
        ]

    def request(self, number: int) -> bytes:
        """Return the `number`-th request."""
        before, after = self._templates[number % len(self._templates)]
        return before + recipient(self._recipients, number) + after


class MixedWorkload:
    """Requests of several channels, evenly mixed: each comes as often as its share of all of them says."""

    def __init__(self, parts: Sequence[tuple[Workload, int]]) -> None:
        """`parts`: the requests of a channel, and its share."""
        divisor = math.gcd(*(share for _, share in parts))
        shares = [share // divisor for _, share in parts]
        issued = [0] * len(parts)
        self._turns: list[tuple[Workload, int, int]] = []
        for part in turns(shares):
            self._turns.append((parts[part][0], shares[part], issued[part]))
            issued[part] += 1

    def request(self, number: int) -> bytes:
        """Return the `number`-th request."""
        rounds, at = divmod(number, len(self._turns))
        workload, share, before = self._turns[at]
        return workload.request(rounds * share + before)


def turns(shares: Sequence[int]) -> list[int]:
    """Whose turn it is in one round, of as many turns as the sum of the shares, spread as evenly as can be."""
    order, owed = [], [0] * len(shares)
    for _ in range(sum(shares)):
        owed = [debt + share for debt, share in zip(owed, shares, strict=True)]
        chosen = max(range(len(shares)), key=owed.__getitem__)
        owed[chosen] -= sum(shares)
        order.append(chosen)
    return order


def recipient(pattern: bytes, number: int) -> bytes:
    """Return the `number`-th recipient: 90 million differ."""
    middle, ending = divmod(number, _ENDINGS)
    return pattern % (middle % _MIDDLES, ending)


def _request(path: str, host: str, token: str, placeholder: bytes, said: Mapping[str, Any]) -> tuple[bytes, bytes]:
    body = orjson.dumps({"to": placeholder.decode(), **said})
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    before, _, after = body.partition(placeholder)
    return head.encode() + before, after
