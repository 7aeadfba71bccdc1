"""What a message leaves from, of any channel: a number, a social account, a route."""

from typing import NamedTuple


class SenderKey(NamedTuple):
    """Names a sender, and the lane of its messages.

    `sender_id` is unique within the organization, across its environments and channels: the id of a number or an
    account, or of what has no record, as a route, its channel, environment and name (`route_sender`).
    """

    organization_id: str
    env: str
    channel: str
    sender_id: str


def route_sender(channel: str, env: str, route: str) -> str:
    """The sender id of a route of a channel, which has no record of its own."""
    return f"{channel}:{env}:{route}"
