"""The bridge of any channel: a provider reached through a small HTTP protocol of our own (C29.3).

A channel says how its messages become `content`, and which codes its refusals have. Every answer, and every way in
which none comes, becomes an outcome value; nothing personal enters a text or a log.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

import orjson
from typing_extensions import Unpack

from recado.channels.core.answers import arrived
from recado.channels.core.bridge import bridge_answers
from recado.channels.core.bridge.bridge_callbacks import BRIDGE, SignedCallbacks, channel_events
from recado.channels.core.events import CallbackEvent
from recado.channels.core.http_provider import HttpOptions, HttpProvider, json_headers, texts_of
from recado.channels.core.provider import Account, OutboundMessage, Outcome, Refused
from recado.channels.core.references import NamedBy
from recado.channels.core.refusals import PROVIDER_CODES
from recado.channels.http.outbound_http import MAX_ANSWER

LONGEST_CALL: Final = 15  # seconds (C29.2): so many seconds of a bridge's pace are in flight at most


class ChannelBridge(HttpProvider, SignedCallbacks, ABC):
    """`token`: what we show the bridge; `secret`: what it signs its callbacks with, which come to `callback_url`."""

    noun = bridge_answers.NOUN
    looked_up_by = frozenset(NamedBy)  # a report may name either id, and ours without the account
    paces_pairs = False

    codes: ClassVar[Collection[str]] = PROVIDER_CODES
    """Of refusals and failures; any other counts as `provider_error`."""

    def __init__(
        self,
        *,
        token: str,
        secret: str,
        callback_url: str,
        idempotent: bool = False,
        name: str = BRIDGE,
        **options: Unpack[HttpOptions],
    ) -> None:
        """`name`: where a channel has several, each has its own."""
        HttpProvider.__init__(self, **options)
        SignedCallbacks.__init__(self, secret, name)
        self.idempotent = idempotent
        self._token = token
        self._callback_url = callback_url
        self._headers = json_headers(token)
        self._send_head = self._sends.head((self._base / "send").raw_path, self._headers)

    @abstractmethod
    def content(self, message: OutboundMessage) -> Mapping[str, Any]:
        """What is sent, in the words of the channel."""

    def quotable(self, message: OutboundMessage) -> Sequence[str] | None:
        """What of a message must not come back in the text of a refusal; None: any word of it, so that none is kept."""
        return [self._token, *texts_of(message)]

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        try:
            body = orjson.dumps(
                {
                    "id": message.id,
                    "channel": message.channel,
                    "env": message.env,
                    "organizationId": message.organization_id,
                    "account": account.provider_id,
                    "to": message.to,
                    "content": self.content(message),
                    "callbackUrl": self._callback_url,
                }
            )
        except TypeError:
            return Refused("provider_error", "the message has no JSON form")
        answer = await self._sends.post(b"%sIdempotency-Key: %b\r\n" % (self._send_head, message.id.encode()), body)
        return bridge_answers.outcome(
            answer, self._clock.now(), personal=lambda: self.quotable(message), codes=self.codes
        )

    @classmethod
    def parse_callback(cls, headers: Mapping[str, str], body: bytes) -> Sequence[CallbackEvent]:
        return channel_events(body, cls.codes)

    def of_account(self, account: Account) -> Mapping[str, Any]:
        """What each operation but a send says of its account."""
        return {"env": account.env, "organizationId": account.organization_id, "account": account.provider_id}

    def request_body(self, account: Account, **fields: Any) -> bytes:
        """Of an operation, in JSON; `fields` without value are left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        return orjson.dumps({**self.of_account(account), **given})

    async def call(
        self, operation: str, account: Account, *, longest: int = MAX_ANSWER, **fields: Any
    ) -> Mapping[str, Any]:
        """What an operation other than a send is answered with; `fields`: as of `request_body`.

        At most `longest` bytes are read. Raises `ProviderError`.
        """
        answer = await self._http.post(
            self._base / operation,
            self.request_body(account, **fields),
            self._headers,
            owner=account.owner,
            longest=longest,
        )
        answered = arrived(answer, operation, self.noun)
        return bridge_answers.operation_result(answered, personal=(self._token,), codes=self.codes)
