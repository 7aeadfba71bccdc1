"""A message in the form of the hosted API: the body of a send (C15.3). Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from recado.channels.chatapp.cloud_templates import provider_language
from recado.channels.core.provider import OutboundMessage

PRODUCT: Final = "whatsapp"
"""What the API calls itself, in every request."""

_USER_ID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[0-9A-Za-z]{1,128}").fullmatch
_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
_BUTTON_FORMS: Final[Mapping[str, tuple[str, str, str]]] = {  # our type → sub_type, type of parameter, its field
    "QUICK_REPLY": ("quick_reply", "payload", "payload"),
    "URL": ("url", "text", "text"),
    "OTP": ("url", "text", "text"),
    "COPY_CODE": ("copy_code", "coupon_code", "coupon_code"),
}


class Unsendable(ValueError):
    """The message has no form in this API; the text names no content."""


def body(message: OutboundMessage) -> dict[str, Any]:
    """The JSON of `POST /{number}/messages`; raises `Unsendable`.

    Our message id travels in `biz_opaque_callback_data` and comes back in every report (C29.2).
    """
    write = _WRITERS.get(message.type)
    if write is None:
        raise Unsendable(f"messages of type {message.type} are not sent here")
    try:
        kind, content = write(message)
    except (KeyError, TypeError, AttributeError, IndexError):
        raise Unsendable(f"the payload is not one of type {message.type}") from None
    return {
        "messaging_product": PRODUCT,
        "recipient_type": "individual",
        # A person without a visible phone is named by an id that only holds within the business.
        ("recipient" if _USER_ID(message.to) else "to"): message.to,
        "type": kind,
        kind: content,
        "biz_opaque_callback_data": message.id,
    }


def _text(message: OutboundMessage) -> tuple[str, Any]:
    text = _payload(message)["text"]
    return "text", {"body": text["body"], "preview_url": bool(text.get("previewUrl", False))}


def _media(message: OutboundMessage) -> tuple[str, Any]:
    payload = _payload(message)
    kind, media = payload["kind"], payload["media"]
    content = {"id": media["id"]}
    if kind in ("image", "video", "document") and media.get("caption"):
        content["caption"] = media["caption"]
    if kind == "document" and media.get("filename"):
        content["filename"] = media["filename"]
    if kind == "audio" and media.get("voice"):
        content["voice"] = True
    return kind, content


def _interactive(message: OutboundMessage) -> tuple[str, Any]:
    given = _payload(message)["interactive"]
    kind = given["type"]
    content: dict[str, Any] = {"type": kind, "body": {"text": given["body"]}, "action": _ACTIONS[kind](given["action"])}
    if "header" in given:
        content["header"] = _header(given["header"])
    if given.get("footer"):
        content["footer"] = {"text": given["footer"]}
    return "interactive", content


def _header(header: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in header:
        return {"type": "text", "text": header["text"]}
    media = header["media"]
    kind = media.get("kind", "image")
    return {"type": kind, kind: {"id": media["id"]}}


def _buttons(action: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "buttons": [
            {"type": "reply", "reply": {"id": button["id"], "title": button["title"]}} for button in action["buttons"]
        ]
    }


def _list(action: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "button": action["button"],
        "sections": [
            {
                **({"title": section["title"]} if "title" in section else {}),
                "rows": [
                    {name: row[name] for name in ("id", "title", "description") if row.get(name)}
                    for row in section["rows"]
                ],
            }
            for section in action["sections"]
        ],
    }


def _link(action: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "cta_url", "parameters": {"display_text": action["displayText"], "url": action["url"]}}


_ACTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "button": _buttons,
    "list": _list,
    "cta_url": _link,
}


def _template(message: OutboundMessage) -> tuple[str, Any]:
    if message.template_name is None or message.template_language is None:
        raise Unsendable("the message names no template")
    payload, variables = message.payload or {}, list(message.template_vars or ())
    known = {str(component.get("type", "")).upper(): component for component in message.template_components or ()}
    components = []
    if "header" in payload:
        components.append({"type": "header", "parameters": [_header_parameter(payload["header"], known)]})
    if variables:
        components.append({"type": "body", "parameters": [{"type": "text", "text": text} for text in variables]})
    components += _template_buttons(message, payload.get("buttons", ()), known, variables)
    content: dict[str, Any] = {
        "name": message.template_name,
        "language": {"code": provider_language(message.template_language)},
    }
    if components:
        content["components"] = components
    return "template", content


def _header_parameter(header: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in header:
        return {"type": "text", "text": header["text"]}
    declared = str(known.get("HEADER", {}).get("payload", {}).get("format", "IMAGE")).lower()
    kind = declared if declared in ("image", "video", "document") else "image"
    return {"type": kind, kind: {"id": header["media"]["id"]}}


def _template_buttons(
    message: OutboundMessage, given: Sequence[Mapping[str, Any]], known: Mapping[str, Any], variables: Sequence[str]
) -> list[dict[str, Any]]:
    declared = known.get("BUTTONS", {}).get("payload", {}).get("buttons", ())
    authentication = message.template_category == "authentication"
    parameters = {button["index"]: button["parameter"] for button in given}
    if authentication and variables:  # its button copies the code, which the API wants said twice
        for index, button in enumerate(declared):
            if _kind(button) in ("COPY_CODE", "OTP") or (_kind(button) == "URL" and _VARIABLE.search(_url(button))):
                parameters.setdefault(index, variables[0])
    components = []
    for index, parameter in sorted(parameters.items()):
        kind = _kind(declared[index]) if index < len(declared) else "URL"
        if kind == "COPY_CODE" and authentication:
            kind = "OTP"
        sub_type, type_, name = _BUTTON_FORMS[kind]
        components.append(
            {
                "type": "button",
                "sub_type": sub_type,
                "index": str(index),
                "parameters": [{"type": type_, name: parameter}],
            }
        )
    return components


def _kind(button: Mapping[str, Any]) -> str:
    return str(button.get("type", "")).upper()


def _url(button: Mapping[str, Any]) -> str:
    return str(button.get("url", ""))


def _payload(message: OutboundMessage) -> Mapping[str, Any]:
    if message.payload is None:
        raise Unsendable("the message has no payload")
    return message.payload


_WRITERS: Mapping[str, Callable[[OutboundMessage], tuple[str, Any]]] = {
    "text": _text,
    "media": _media,
    "interactive": _interactive,
    "template": _template,
}
