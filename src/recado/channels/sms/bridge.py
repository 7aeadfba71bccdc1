"""The SMS bridge: the content of its messages, and the codes that it refuses with (C29.3)."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from recado.channels.core.bridge.bridge import ChannelBridge
from recado.channels.core.provider import OutboundMessage
from recado.channels.core.refusals import codes_of
from recado.domain.channels.sms import SMS

_TOLD = ("route", "transactional", "encoding", "segments", "from")


class SmsBridge(ChannelBridge):
    """As of any channel. Its `account` is the gateway that the installation has it for."""

    codes: ClassVar[Collection[str]] = codes_of(SMS)

    def content(self, message: OutboundMessage) -> Mapping[str, Any]:
        details, text = message.details or {}, (message.payload or {}).get("text") or {}
        told = {name: details[name] for name in _TOLD if name in details}
        return {"type": message.type, "text": text.get("body"), **told}
