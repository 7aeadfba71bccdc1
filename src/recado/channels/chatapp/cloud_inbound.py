"""Messages from people, in the form of the hosted API, to the shapes of our payloads (C15.3, C28). Pure."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import LONGEST_NAME, Inbound, MessageType
from recado.channels.core.fields import Seconds, Text128, Text256, Text1024, Tree, object_in, objects_in, text_or_none
from recado.channels.core.reading import Shape, field, record, word

_MEDIA: Final = frozenset({"image", "video", "audio", "document", "sticker"})
_MEDIA_TEXTS = ("caption", "filename", "mime_type")
_REPLY_TEXTS = ("id", "title", "description")

Payload = dict[str, Any]

_MESSAGE = record({"id": Text256, "timestamp": Seconds}, {"from": Text128 | None})
_SENDER, _MEDIA_ID = Shape[str](Text128), record({"id": Text1024})
_TREE, _TREES = (
    Shape[Mapping[str, Any]](Tree),
    Shape[list[Mapping[str, Any]]](Annotated[list[Tree], Field(max_length=1_000)]),
)


def profile_names(value: Mapping[str, Any]) -> dict[str, str]:
    """What senders call themselves there, by phone and by user id. An odd name is no name, and loses no words."""
    names: dict[str, str] = {}
    for item in objects_in(value.get("contacts")):
        name = object_in(item.get("profile")).get("name")
        if isinstance(name, str) and (shown := name.replace("\0", "\ufffd").strip()[:LONGEST_NAME]):
            names |= {key: shown for key in (item.get("wa_id"), item.get("user_id")) if isinstance(key, str)}
    return names


def inbound(account: str, names: Mapping[str, str], item: Any) -> tuple[Inbound, ...]:
    """One message; none of what the provider says of its own system. `sender`: a phone, or a user id without one."""
    kind = word(item, "type")
    if kind == "system":
        return ()
    read = _MESSAGE.read(item)
    sender = read.get("from") or field(_SENDER, item, "from_user_id")
    type_, payload, media_ref = _content(item, kind)
    return (
        Inbound(
            account=account,
            sender=sender,
            at=read["timestamp"],
            type=type_,
            payload=payload,
            provider_message_id=read["id"],
            quoted=text_or_none(object_in(item.get("context")).get("id"), 256),
            media_ref=media_ref,
            profile_name=names.get(sender) or names.get(str(item.get("from_user_id"))),
            user_id=text_or_none(item.get("from_user_id"), 128) if read.get("from") else None,
        ),
    )


def _content(item: Mapping[str, Any], kind: str) -> tuple[MessageType, Payload, str | None]:
    if kind == "text":
        body = field(_TREE, item, "text").get("body")
        if not isinstance(body, str):
            raise MalformedCallback("text.body")
        return "text", _text(body), None
    if kind in _MEDIA:
        return _media(item, kind)
    if kind == "interactive" and (reply := _reply(field(_TREE, item, "interactive"))) is not None:
        return "interactive", {"interactive": reply}, None
    if kind == "button":
        reply = {"type": "button", **_texts(field(_TREE, item, "button"), ("payload", "text"))}
        return "interactive", {"interactive": reply}, None
    return "text", {**_text(_shown(item, kind)), "raw": _raw(item, kind)}, None


def _media(item: Mapping[str, Any], kind: str) -> tuple[MessageType, Payload, str]:
    given, reference = field(_TREE, item, kind), field(_MEDIA_ID, item, kind)["id"]
    media = _texts(given, _MEDIA_TEXTS)
    if "mime_type" in media:
        media["mimeType"] = media["mime_type"].partition(";")[0].strip().lower()
    if given.get("voice") is True:
        media["voice"] = True
    return "media", {"kind": kind, "media": media}, reference


def _reply(given: Mapping[str, Any]) -> Payload | None:
    """What was chosen from the buttons or the list of an interactive message of ours."""
    kind = given.get("type")
    chosen = given.get(kind) if kind in ("button_reply", "list_reply") else None
    return {"type": kind, **_texts(chosen, _REPLY_TEXTS)} if isinstance(chosen, dict) else None


def _raw(item: Mapping[str, Any], kind: str) -> Payload:
    """What the interface has no shape for, as it came."""
    raw: Payload = {"kind": kind}
    if isinstance(item.get(kind), dict):
        raw[kind] = field(_TREE, item, kind)
    for name in (kind, "errors"):
        if isinstance(item.get(name), list):
            raw[name] = field(_TREES, item, name)
    return raw


def _shown(item: Mapping[str, Any], kind: str) -> str:
    """What a person reading along sees of it."""
    match kind:
        case "location":
            place = field(_TREE, item, kind)
            named = _texts(place, ("name", "address")).values()
            return ", ".join(named) or f"{place.get('latitude')}, {place.get('longitude')}"
        case "contacts":
            names = [object_in(each.get("name")) for each in (field(_TREES, item, kind) if kind in item else ())]
            return ", ".join(text for name in names for text in _texts(name, ("formatted_name",)).values())
        case "reaction":
            emoji = field(_TREE, item, kind).get("emoji")  # absent: the reaction was taken back
            return emoji if isinstance(emoji, str) else ""
    return ""


def _text(body: str) -> Payload:
    return {"text": {"body": body}}


def _texts(values: Mapping[str, Any], names: Iterable[str]) -> Payload:
    return {name: value for name in names if isinstance(value := values.get(name), str) and value}
