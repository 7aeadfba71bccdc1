"""Messages from people, in the form of the hosted API, to the shapes of our payloads (C15.3, C28). Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import LONGEST_NAME, Inbound
from recado.channels.core.fields import Fields

_MAX_ID = 128
_MAX_MESSAGE_ID = 256
_MAX_MEDIA_REF = 1_024
_MOST_CONTACTS = 50_000
_MEDIA: Final = frozenset({"image", "video", "audio", "document", "sticker"})
_MEDIA_TEXTS = ("caption", "filename", "mime_type")
_REPLY_TEXTS = ("id", "title", "description")

Payload = dict[str, Any]


def profile_names(value: Fields) -> dict[str, str]:
    """What senders call themselves there, by phone and by user id. An odd name is no name, and loses no words."""
    names: dict[str, str] = {}
    given = value.get("contacts")
    for item in given[:_MOST_CONTACTS] if isinstance(given, list) else ():
        profile = item.get("profile") if isinstance(item, dict) else None
        name = profile.get("name") if isinstance(profile, dict) else None
        if not isinstance(name, str) or not (shown := name.replace("\0", "\ufffd").strip()[:LONGEST_NAME]):
            continue
        for key in (item.get("wa_id"), item.get("user_id")):
            if isinstance(key, str):
                names[key] = shown
    return names


def inbound(item: Fields, account: str, names: Mapping[str, str]) -> Inbound | None:
    """One message; None for what the provider says of its own system. `sender`: a phone, or a user id without one."""
    kind = item.text("type", 64)
    if kind == "system":
        return None
    sender = item.optional_text("from", _MAX_ID) or item.text("from_user_id", _MAX_ID)
    type_, payload, media_ref = _content(item, kind)
    context = item.get("context")
    quoted = context.get("id") if isinstance(context, dict) else None
    return Inbound(
        account=account,
        sender=sender,
        at=item.moment("timestamp"),
        type=type_,
        payload=payload,
        provider_message_id=item.text("id", _MAX_MESSAGE_ID),
        quoted=quoted
        if isinstance(quoted, str) and 0 < len(quoted) <= _MAX_MESSAGE_ID and "\0" not in quoted
        else None,
        media_ref=media_ref,
        profile_name=names.get(sender) or names.get(str(item.get("from_user_id"))),
    )


def _content(item: Fields, kind: str) -> tuple[str, Payload, str | None]:
    if kind == "text":
        return "text", _text(_string(item, item.tree("text"), "text.body", "body")), None
    if kind in _MEDIA:
        return _media(item, kind)
    if kind == "interactive" and (reply := _reply(item.tree("interactive"))) is not None:
        return "interactive", {"interactive": reply}, None
    if kind == "button":
        button = item.tree("button")
        reply = {"type": "button", **{name: button[name] for name in ("payload", "text") if _is_text(button.get(name))}}
        return "interactive", {"interactive": reply}, None
    return "text", {**_text(_SHOWN.get(kind, _nothing)(item)), "raw": _raw(item, kind)}, None


def _media(item: Fields, kind: str) -> tuple[str, Payload, str]:
    given = item.tree(kind)
    reference = item.inner(kind).text("id", _MAX_MEDIA_REF)
    media: Payload = {name: given[name] for name in _MEDIA_TEXTS if _is_text(given.get(name))}
    if isinstance(media.get("mime_type"), str):
        media["mimeType"] = media["mime_type"].partition(";")[0].strip().lower()
    if given.get("voice") is True:
        media["voice"] = True
    return "media", {"kind": kind, "media": media}, reference


def _reply(given: Mapping[str, Any]) -> Payload | None:
    """What was chosen from the buttons or the list of an interactive message of ours."""
    kind = given.get("type")
    chosen = given.get(kind) if kind in ("button_reply", "list_reply") else None
    if not isinstance(chosen, dict):
        return None
    return {"type": kind, **{name: chosen[name] for name in _REPLY_TEXTS if _is_text(chosen.get(name))}}


def _raw(item: Fields, kind: str) -> Payload:
    """What the interface has no shape for, as it came."""
    raw: Payload = {"kind": kind}
    content = item.get(kind)
    if isinstance(content, dict):
        raw[kind] = item.tree(kind)
    elif isinstance(content, list):
        raw[kind] = item.trees(kind, 1_000)
    errors = item.get("errors")
    if isinstance(errors, list):
        raw["errors"] = item.trees("errors", 100)
    return raw


# What a person reading along sees of it.


def _location(item: Fields) -> str:
    place = item.tree("location")
    named = [place[name] for name in ("name", "address") if _is_text(place.get(name))]
    return ", ".join(named) or f"{place.get('latitude')}, {place.get('longitude')}"


def _contacts(item: Fields) -> str:
    names = [person.get("name") for person in item.trees("contacts", 1_000)]
    return ", ".join(
        str(name["formatted_name"]) for name in names if isinstance(name, dict) and _is_text(name.get("formatted_name"))
    )


def _reaction(item: Fields) -> str:
    emoji = item.tree("reaction").get("emoji")  # absent: the reaction was taken back
    return emoji if isinstance(emoji, str) else ""


def _nothing(item: Fields) -> str:
    return ""


_SHOWN: Mapping[str, Callable[[Fields], str]] = {
    "location": _location,
    "contacts": _contacts,
    "reaction": _reaction,
}


def _text(body: str) -> Payload:
    return {"text": {"body": body}}


def _string(item: Fields, values: Mapping[str, Any], where: str, name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise MalformedCallback(f"{item.where}.{where}")
    return value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""
