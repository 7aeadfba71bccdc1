"""The bridge of e-mail: the content of its messages, and the codes that it refuses with (C29.3)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from recado.channels.core.bridge.bridge import ChannelBridge
from recado.channels.core.provider import OutboundMessage
from recado.channels.core.refusals import codes_of
from recado.channels.email.composing import content_of
from recado.domain.channels.email import EMAIL


class EmailBridge(ChannelBridge):
    """As of any channel. Its `account` is the gateway that the installation has it for."""

    codes: ClassVar[Collection[str]] = codes_of(EMAIL)

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
