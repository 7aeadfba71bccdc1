"""The requests of a load test: template messages to made-up recipients, spread over the numbers in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

# The sandbox behaves specially for recipients that end in 9001 and up (C29.4): these end below.
_ENDINGS = 9_000
_MIDDLES = 10_000


@dataclass(frozen=True, slots=True)
class Sender:
    """A number that the test sends through: its limit a second, and a template of it with so many variables."""

    number_id: str
    per_second: int
    template_id: str
    variables: int


class Workload:
    """Builds whole HTTP requests. All of one sender have one length, so that only digits change between them."""

    def __init__(self, base_url: str, token: str, campaign_id: str, senders: Sequence[Sender]) -> None:
        self.senders = tuple(senders)
        parts = urlsplit(base_url)
        self._templates = [
            _request(f"{parts.path.rstrip('/')}/messages", parts.netloc, token, campaign_id, sender)
            for sender in self.senders
        ]

    def request(self, number: int) -> bytes:
        """Return the `number`-th request."""
        before, after = self._templates[number % len(self._templates)]
        return before + recipient(number) + after


def recipient(number: int) -> bytes:
    """Return the `number`-th recipient: 90 million differ."""
    middle, ending = divmod(number, _ENDINGS)
    return b"+55119%04d%04d" % (middle % _MIDDLES, ending)


def _request(path: str, host: str, token: str, campaign_id: str, sender: Sender) -> tuple[bytes, bytes]:
    placeholder = recipient(0)
    body = orjson.dumps(
        {
            "numberId": sender.number_id,
            "to": placeholder.decode(),
            "type": "template",
            "templateId": sender.template_id,
            "templateVars": [f"variable {position + 1}" for position in range(sender.variables)],
            "campaignId": campaign_id,
        }
    )
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    before, _, after = body.partition(placeholder)
    return head.encode() + before, after
