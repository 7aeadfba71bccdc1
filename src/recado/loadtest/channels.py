"""How a load test sends on each channel: a channel more is an entry more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

CHATAPP: Final = "chatapp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLoad:
    """`path`: where one message is sent. `priced_as`: what the table of prices calls the channel.

    `body`: what each message says beside its recipient and its campaign; None: it is a template of a number, as the
    preparation finds it. `recipients`: made of two numbers of four digits, of which the second is below 9,000.
    """

    path: str
    priced_as: str
    body: Mapping[str, Any] | None = None
    recipients: bytes = b"+55119%04d%04d"


CHANNELS: Final[dict[str, ChannelLoad]] = {
    CHATAPP: ChannelLoad(path="/messages", priced_as=CHATAPP),
    "sms": ChannelLoad(path="/v2/sms/messages", priced_as="sms", body={"text": "This is a message of a load test."}),
}
