"""Templates in the form of the hosted API, both ways (C11.2). Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import LONGEST_REASON, Category, Followup, TemplateStatus, Verdict
from recado.channels.core.fields import Fields
from recado.channels.core.provider import ProviderTemplate, TemplateSubmission

LISTED_FIELDS: Final = "id,name,language,status,category,parameter_format,components,rejected_reason"

_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
_STATES: Final[Mapping[str, str]] = {
    "APPROVED": "approved",
    "PENDING": "pending",
    "IN_APPEAL": "pending",
    "REJECTED": "rejected",
    "PAUSED": "paused",
    "ARCHIVED": "paused",
    "LIMIT_EXCEEDED": "paused",
    "DISABLED": "disabled",
}
CATEGORIES_READ: Final[Mapping[str, Category]] = {
    "MARKETING": "marketing",
    "UTILITY": "utility",
    "AUTHENTICATION": "authentication",
}
_SAMPLE = "1"  # shown to the reviewer for a variable without an example


def provider_language(language: str) -> str:
    """`pt-BR` → `pt_BR`."""
    return language.replace("-", "_")


def service_language(language: str) -> str:
    """`pt_BR` → `pt-BR`."""
    return language.replace("_", "-")


def submission(template: TemplateSubmission) -> dict[str, Any]:
    """The JSON that hands a template in for review."""
    authentication = template.category == "authentication"
    return {
        "name": template.name,
        "language": provider_language(template.language),
        "category": template.category.upper(),
        "components": [
            _authentication_component(kind, payload)
            if authentication
            else _component(kind, payload, template.header_example_url)
            for kind, payload in (_parts(component) for component in template.components)
        ],
    }


def edit(template: TemplateSubmission, held_category: object) -> dict[str, Any]:
    """The JSON that hands in what is there already; its category only when it changes, which not every state allows."""
    body = submission(template)
    changed = ("components",) if body["category"] == held_category else ("category", "components")
    return {name: body[name] for name in changed}


def verdict(answer: Mapping[str, Any], provider_template_id: str, at: datetime) -> tuple[Followup, ...]:
    """The end of a review that took no time, as the answer to a submission tells it; nothing for any other answer."""
    status, category = answer.get("status"), answer.get("category")
    decided: Verdict | None = "approved" if status == "APPROVED" else "rejected" if status == "REJECTED" else None
    if decided is None:
        return ()
    known = CATEGORIES_READ.get(category) if isinstance(category, str) else None
    return (Followup(0.0, TemplateStatus(decided, at, provider_template_id, category=known)),)


def _parts(component: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    payload = component.get("payload")
    return str(component.get("type", "")).upper(), payload if isinstance(payload, Mapping) else {}


def _component(kind: str, payload: Mapping[str, Any], header_example_url: str | None) -> dict[str, Any]:
    text = payload.get("text")
    if kind == "HEADER":
        form = str(payload.get("format", "TEXT")).upper()
        if form != "TEXT":
            return {"type": kind, "format": form, "example": {"header_handle": [header_example_url or ""]}}
        header: dict[str, Any] = {"type": kind, "format": form, "text": text}
        if _VARIABLE.search(str(text)):
            header["example"] = {"header_text": _examples(payload)[:1] or [_SAMPLE]}
        return header
    if kind == "BODY":
        examples = _examples(payload)
        return {"type": kind, "text": text, **({"example": {"body_text": [examples]}} if examples else {})}
    if kind == "BUTTONS":
        return {"type": kind, "buttons": [_button(button) for button in _button_list(payload)]}
    return {"type": kind, "text": text}


def _authentication_component(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The provider words these templates itself: it takes no text, and a button that copies the code."""
    if kind == "BUTTONS":
        return {
            "type": kind,
            "buttons": [
                {"type": "OTP", "otp_type": "COPY_CODE", **({"text": button["text"]} if "text" in button else {})}
                for button in _button_list(payload)
            ],
        }
    return {"type": kind}


def _button(button: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(button.get("type", "")).upper()
    examples = _examples(button)
    match kind:
        case "URL":
            url = str(button.get("url", ""))
            example = {"example": examples[:1] or [_VARIABLE.sub(_SAMPLE, url)]} if _VARIABLE.search(url) else {}
            return {"type": kind, "text": button.get("text"), "url": url, **example}
        case "PHONE_NUMBER":
            return {"type": kind, "text": button.get("text"), "phone_number": button.get("phoneNumber")}
        case "COPY_CODE":
            return {"type": kind, "example": (examples or [_SAMPLE])[0]}
        case "FLOW":
            return {"type": kind, "text": button.get("text"), "flow_id": button.get("flowId")}
    return {"type": kind, "text": button.get("text")}


def _examples(payload: Mapping[str, Any]) -> list[str]:
    given = payload.get("example")
    if isinstance(given, str):  # a button has but one
        return [given]
    return [str(example) for example in given] if isinstance(given, Sequence) else []


def _button_list(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    buttons = payload.get("buttons")
    return [each for each in buttons if isinstance(each, Mapping)] if isinstance(buttons, Sequence) else []


# What the provider lists ---------------------------------------------------------------------------------------------


def listed(items: Sequence[object], where: str) -> list[ProviderTemplate]:
    """The templates of one page. Those that this service could not send are left out: other kinds of components,
    named variables, states and categories of another time. Raises `MalformedCallback` for what is no template at all.
    """
    found = (_listed(Fields(item, f"{where}[{index}]"), item) for index, item in enumerate(items))
    return [template for template in found if template is not None]


def _listed(fields: Fields, item: Any) -> ProviderTemplate | None:
    status = _STATES.get(fields.text("status", 64))
    category = CATEGORIES_READ.get(fields.text("category", 64))
    components = [_read_component(component) for component in fields.trees("components", 20)]
    named = item.get("parameter_format") == "NAMED"
    if status is None or category is None or named or None in components:
        return None
    reason = fields.optional_text("rejected_reason", LONGEST_REASON)
    return ProviderTemplate(
        provider_template_id=fields.text("id", 256),
        name=fields.text("name", 512),
        language=service_language(fields.text("language", 16)),
        category=category,
        status=status,
        components=[component for component in components if component is not None],
        rejection_reason=None if reason == "NONE" else reason,
    )


def _read_component(component: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = str(component.get("type", "")).upper()
    example = component.get("example")
    examples = example if isinstance(example, dict) else {}
    payload: dict[str, Any] = {"text": component.get("text") or ""}
    match kind:
        case "HEADER":
            payload["format"] = str(component.get("format", "TEXT")).upper()
            if payload["format"] == "TEXT":
                if isinstance(given := examples.get("header_text"), list) and given:
                    payload["example"] = given
            elif payload["format"] in ("IMAGE", "VIDEO", "DOCUMENT"):
                del payload["text"]
            else:
                return None
        case "BODY":
            given = examples.get("body_text")
            if isinstance(given, list) and given and isinstance(given[0], list):
                payload["example"] = given[0]
        case "FOOTER":
            pass
        case "BUTTONS":
            buttons = component.get("buttons")
            read = [_read_button(each) for each in buttons] if isinstance(buttons, list) else [None]
            if None in read:
                return None
            payload = {"buttons": read}
        case _:
            return None
    return {"type": kind, "payload": payload}


def _read_button(button: object) -> dict[str, Any] | None:
    if not isinstance(button, dict):
        return None
    kind = str(button.get("type", "")).upper()
    if kind not in ("QUICK_REPLY", "URL", "PHONE_NUMBER", "COPY_CODE", "FLOW", "OTP"):
        return None
    read = {"type": kind, "text": button.get("text") or ""}
    for theirs, ours in (
        ("url", "url"),
        ("phone_number", "phoneNumber"),
        ("flow_id", "flowId"),
        ("example", "example"),
    ):
        if button.get(theirs) is not None:
            read[ours] = str(button[theirs]) if theirs == "flow_id" else button[theirs]
    return read


def page_end(result: Mapping[str, Any]) -> str | None:
    """The cursor of the next page; None at the end."""
    paging = result.get("paging")
    if not isinstance(paging, dict) or not paging.get("next"):
        return None
    cursors = paging.get("cursors")
    after = cursors.get("after") if isinstance(cursors, dict) else None
    if not isinstance(after, str) or not 0 < len(after) <= 2_048:
        raise MalformedCallback("paging.cursors.after")
    return after
