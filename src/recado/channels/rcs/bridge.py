"""The RCS bridge: the content of its messages, which phones have RCS, and what is taken back (C29.2, C29.3)."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, ClassVar

from recado.channels.core.bridge.bridge import ChannelBridge
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account, OutboundMessage, Outcome, Refused
from recado.channels.core.refusals import codes_of
from recado.channels.rcs.capability import Capabilities
from recado.domain.channels.rcs import RCS, RcsReason
from recado.domain.dispatch.breaker import Breaker

_TOLD = ("route", "transactional")
_SAID = ("card", "suggestions")


class RcsBridge(ChannelBridge):
    """As of any channel, and it asks first whether the phone has RCS, at most once a day (C29.2)."""

    codes: ClassVar[Collection[str]] = codes_of(RCS)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.capabilities = Capabilities()
        self._breaker = Breaker()  # of these questions alone: who does not answer them may send all the same
        self._asked = 0  # and not answered

    def content(self, message: OutboundMessage) -> Mapping[str, Any]:
        payload, details = message.payload or {}, message.details or {}
        text = (payload.get("text") or {}).get("body")
        said = {"text": text, **{name: payload.get(name) for name in _SAID}}
        told = {name: details[name] for name in _TOLD if name in details}
        return {"type": message.type, **{name: value for name, value in said.items() if value is not None}, **told}

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        if attempt == 1 and not await self._capable(message.to, account):
            return Refused(RcsReason.NOT_CAPABLE, "this phone has no RCS")
        outcome = await super().send(message, account, attempt)
        if isinstance(outcome, Refused) and outcome.code == RcsReason.NOT_CAPABLE:
            self.capabilities.note(message.to, False, self._clock.now())
        return outcome

    async def _capable(self, phone: str, account: Account) -> bool:
        """Where the bridge does not say, the message itself shows it."""
        now: datetime = self._clock.now()
        known = self.capabilities.known(phone, now)
        if known is not None:
            return known
        if self._breaker.calls_allowed(self._clock.monotonic(), self._asked) == 0:
            return True
        self._breaker.began()
        self._asked += 1
        answered = False
        try:
            told = (await self.call("capable", account, to=phone)).get("capable")
            answered = True
        except ProviderError as error:
            answered = error.kind == "refused"  # of this phone
            return True
        finally:
            self._asked -= 1
            if answered:
                self._breaker.answered(self._breaker.pauses)
            else:
                self._breaker.down(self._clock.monotonic())
        if not isinstance(told, bool):
            return True
        self.capabilities.note(phone, told, now)
        return told

    async def revoke(self, message_id: str, provider_message_id: str, to: str, account: Account) -> bool:
        answer = await self.call("revoke", account, id=message_id, providerMessageId=provider_message_id, to=to)
        return answer.get("revoked") is True
