"""The requests of a load test: messages to made-up recipients, spread over the senders in turn."""

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
    """Builds whole HTTP requests. All of one sender have one length, so that only digits change between them."""

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
