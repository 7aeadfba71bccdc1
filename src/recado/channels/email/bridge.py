"""The bridge of e-mail: the content of its messages, and the codes that it refuses with (C29.3)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from recado.channels.core.bridge.bridge import ChannelBridge
from recado.channels.core.bridge.bridge_callbacks import BRIDGE
from recado.channels.core.errors import ProviderError
from recado.channels.core.fields import text_or_none
from recado.channels.core.provider import Account, OutboundMessage
from recado.channels.core.refusals import codes_of
from recado.channels.email.composing import content_of
from recado.domain.channels.email import EMAIL
from recado.domain.email.sender import DnsRecord, SenderLook

NOT_FOUND: Final = "not_found"  # of an operation that it lacks
MOST_RECORDS: Final = 10
_LONGEST: Final[Mapping[str, int]] = {"type": 10, "name": 255, "value": 4_096}  # characters


class EmailBridge(ChannelBridge):
    """As of any channel. Its `account` is the gateway that the installation has it for."""

    codes: ClassVar[Collection[str]] = codes_of(EMAIL)
    only_looks = False  # what it does when it is asked is its own

    def quotable(self, message: OutboundMessage) -> Sequence[str] | None:
        """A body is stored nowhere, nor is a part of it (C10.2.5)."""
        return None

    def content(self, message: OutboundMessage) -> Mapping[str, Any]:
        content = content_of(message)
        assert content is not None  # noqa: S101 - every message of this channel has it
        told: dict[str, Any] = {"type": "email", "from": {"address": content.from_address}, "subject": content.subject}
        if content.from_name is not None:
            told["from"]["name"] = content.from_name
        told |= {name: text for name, text in (("html", content.html), ("text", content.text)) if text is not None}
        if content.headers:
            told["headers"] = [{"name": name, "value": value} for name, value in content.headers]
        return {**told, "transactional": content.transactional}

    async def identity(self, domain: str, owner: str, *, address: str | None = None) -> SenderLook | None:
        """As `SenderIdentities` has it: a bridge that refuses the operation knows no senders."""
        account = Account(sender_id=BRIDGE, organization_id=owner, env="live", provider_id=BRIDGE, owner=owner)
        try:
            answer = await self.call("sender_status", account, domain=domain)
        except ProviderError as error:
            if error.kind == "refused" or error.code == NOT_FOUND:
                return None
            raise
        verified, wanted = answer.get("verified"), answer.get("dnsRecords") or ()
        if not isinstance(verified, bool) or not isinstance(wanted, list | tuple) or len(wanted) > MOST_RECORDS:
            raise _unread()
        return SenderLook(tuple([_record(each) for each in wanted]), verified)


def _record(told: Any) -> DnsRecord:
    fields = told if isinstance(told, Mapping) else {}
    kind, name, value = (text_or_none(fields.get(each), most) for each, most in _LONGEST.items())
    if kind is None or name is None or value is None:
        raise _unread()
    return DnsRecord(kind, name, value, fields.get("found") is True)


def _unread() -> ProviderError:
    return ProviderError("unreachable", "no_answer", "the bridge did not say how a sender stands")
