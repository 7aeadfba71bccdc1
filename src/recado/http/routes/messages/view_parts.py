"""What the views of all channels show alike of a message. They are dicts made by hand, which these functions fill.

Members without value are absent.
"""

from typing import Any

import orjson
from pydantic.alias_generators import to_camel

from recado.domain.core.timestamps import format_timestamp
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

Members = tuple[tuple[str, str], ...]
"""Attributes, each with the name that callers see."""


def members(*attributes: str) -> Members:
    """Each under its own name, written as callers see names."""
    return tuple((name, to_camel(name)) for name in attributes)


_NAMED = members("contact_id", "campaign_id")


def show_texts(view: dict[str, Any], message: Message | NewMessage, texts: Members) -> None:
    """Those that it has."""
    for attribute, name in texts:
        if (value := getattr(message, attribute)) is not None:
            view[name] = value


def show_named(view: dict[str, Any], message: Message | NewMessage) -> None:
    """What its caller said of it: contact, campaign, metadata."""
    show_texts(view, message, _NAMED)
    if message.metadata is not None:
        view["metadata"] = orjson.Fragment(message.metadata)


def show_moments(view: dict[str, Any], message: Message, moments: Members) -> None:
    """Those that have come."""
    for attribute, name in moments:
        if (at := getattr(message, attribute)) is not None:
            view[name] = format_timestamp(at)


def show_made(view: dict[str, Any], coins: int | None, *, replayed: bool) -> dict[str, Any]:
    """What only the answer to its request tells: its price (C25.2), and whether the message was there already."""
    if coins is not None:
        view["billing"] = {"coins": coins}
    view["replayed"] = replayed
    return view
