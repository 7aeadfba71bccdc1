"""A message in the form of the hosted API: the body of a send (C15.3). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from recado.channels.chatapp.cloud_templates import VARIABLE, kind_of, provider_language
from recado.channels.core.provider import OutboundMessage, TemplateContent
from recado.domain.channels.address import is_user_id

PRODUCT: Final = "whatsapp"
"""What the API calls itself, in every request."""

_BUTTON_FORMS: Final[Mapping[str, tuple[str, str, str]]] = {  # our type → sub_type, type of parameter, its field
    "QUICK_REPLY": ("quick_reply", "payload", "payload"),
    "URL": ("url", "text", "text"),
    "OTP": ("url", "text", "text"),
    "COPY_CODE": ("copy_code", "coupon_code", "coupon_code"),
    "FLOW": ("flow", "action", "action"),
}
_NO_TOKEN = "unused"  # noqa: S105 - the API's own word for a flow without a token


class Unsendable(ValueError):
    """The message has no form in this API; the text names no content."""


def body(message: OutboundMessage) -> dict[str, Any]:
    """The JSON of `POST /{number}/messages`; raises `Unsendable`.

    Our message id travels in `biz_opaque_callback_data` and comes back in every report (C29.2).
    """
    try:
        kind, content = _content(message)
    except (KeyError, TypeError, AttributeError, IndexError):
        raise Unsendable(f"the payload is not one of type {message.type}") from None
    return {
        "messaging_product": PRODUCT,
        "recipient_type": "individual",
        # A person without a visible phone is named by an id that only holds within the business.
        ("recipient" if is_user_id(message.to) else "to"): message.to,
        "type": kind,
        kind: content,
        "biz_opaque_callback_data": message.id,
    }


def _content(message: OutboundMessage) -> tuple[str, dict[str, Any]]:
    payload: Any = message.payload
    match message.type:
        case "text":
            text = payload["text"]
            return "text", {"body": text["body"], "preview_url": bool(text.get("previewUrl", False))}
        case "media":
            return payload["kind"], _media(payload["kind"], payload["media"])
        case "interactive":
            return "interactive", _interactive(payload["interactive"])
        case "template":
            if message.template is None:
                raise Unsendable("the message names no template")
            return "template", _template(message.template, payload or {})
    raise Unsendable(f"messages of type {message.type} are not sent here")


def _media(kind: str, media: Mapping[str, Any]) -> dict[str, Any]:
    content = {"id": media["id"]}
    if kind in ("image", "video", "document") and media.get("caption"):
        content["caption"] = media["caption"]
    if kind == "document" and media.get("filename"):
        content["filename"] = media["filename"]
    if kind == "audio" and media.get("voice"):
        content["voice"] = True
    return content


def _interactive(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = given["type"]
    content: dict[str, Any] = {"type": kind, "body": {"text": given["body"]}, "action": _action(kind, given["action"])}
    if "header" in given:
        content["header"] = _header(given["header"], given["header"].get("media", {}).get("kind", "image"))
    if given.get("footer"):
        content["footer"] = {"text": given["footer"]}
    return content


def _header(header: Mapping[str, Any], kind: str) -> dict[str, Any]:
    if "text" in header:
        return {"type": "text", "text": header["text"]}
    return {"type": kind, kind: {"id": header["media"]["id"]}}


def _action(kind: str, action: Mapping[str, Any]) -> dict[str, Any]:
    match kind:
        case "button":
            replies = [{"id": button["id"], "title": button["title"]} for button in action["buttons"]]
            return {"buttons": [{"type": "reply", "reply": reply} for reply in replies]}
        case "list":
            return {"button": action["button"], "sections": [_section(section) for section in action["sections"]]}
        case "cta_url":
            return {"name": kind, "parameters": {"display_text": action["displayText"], "url": action["url"]}}
        case "flow":
            return {"name": kind, "parameters": _flow(action)}
    raise KeyError(kind)


def _flow(action: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "flow_message_version": "3",
        "flow_id": action["providerFlowId"],
        "flow_cta": action["cta"],
        "flow_action": "navigate",
        "flow_action_payload": {"screen": action["screen"], **({"data": action["data"]} if action.get("data") else {})},
    }


def _section(section: Mapping[str, Any]) -> dict[str, Any]:
    named = {"title": section["title"]} if "title" in section else {}
    shown = ("id", "title", "description")
    return {**named, "rows": [{name: row[name] for name in shown if row.get(name)} for row in section["rows"]]}


def _template(template: TemplateContent, payload: Mapping[str, Any]) -> dict[str, Any]:
    known = {kind_of(component): component.get("payload", {}) for component in template.components}
    components = []
    if "header" in payload:
        form = str(known.get("HEADER", {}).get("format", "IMAGE")).lower()
        header = _header(payload["header"], form if form in ("image", "video", "document") else "image")
        components.append({"type": "header", "parameters": [header]})
    if template.variables:
        parameters = [{"type": "text", "text": text} for text in template.variables]
        components.append({"type": "body", "parameters": parameters})
    components += _buttons(template, payload.get("buttons", ()), known.get("BUTTONS", {}).get("buttons", ()))
    content = {"name": template.name, "language": {"code": provider_language(template.language)}}
    return {**content, "components": components} if components else content


def _buttons(
    template: TemplateContent, given: Sequence[Mapping[str, Any]], declared: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    authentication = template.category == "authentication"
    parameters: dict[int, Any] = {button["index"]: button["parameter"] for button in given}
    if authentication and template.variables:  # its button copies the code, which the API wants said twice
        for index, button in enumerate(declared):
            url = str(button.get("url", ""))
            if kind_of(button) in ("COPY_CODE", "OTP") or (kind_of(button) == "URL" and VARIABLE.search(url)):
                parameters.setdefault(index, template.variables[0])
    for index, button in enumerate(declared):
        if kind_of(button) == "FLOW":  # it is named in each message, with a token or without
            parameters[index] = {"flow_token": parameters.get(index, _NO_TOKEN)}
    components = []
    for index, parameter in sorted(parameters.items()):
        kind = kind_of(declared[index]) if index < len(declared) else "URL"
        sub_type, type_, name = _BUTTON_FORMS["OTP" if kind == "COPY_CODE" and authentication else kind]
        said = [{"type": type_, name: parameter}]
        components.append({"type": "button", "sub_type": sub_type, "index": str(index), "parameters": said})
    return components
