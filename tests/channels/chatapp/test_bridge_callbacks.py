"""What comes in from a bridge, besides what holds for every adapter."""

import orjson
from tests.channels.chatapp.bridge_events import INCOMING

from recado.channels.core.bridge.bridge_callbacks import channel_events


def test_events_keep_their_order_and_those_of_other_channels_are_passed_over() -> None:
    body = orjson.dumps({"events": [INCOMING[1][0], INCOMING[0][0], {"kind": "payment"}, INCOMING[1][0]]})

    assert channel_events(body) == [INCOMING[1][1], INCOMING[0][1], INCOMING[1][1]]


def test_no_events_are_no_error() -> None:
    assert channel_events(b'{"events": []}') == []
