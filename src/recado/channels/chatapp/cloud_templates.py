"""Templates in the form of the hosted API, both ways (C11.2). Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, Field

from recado.channels.chatapp.cloud_answers import read
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import Category, Followup, TemplateVerdict, Verdict
from recado.channels.core.fields import Text16, Text256, Text512, Text2048, Tree, known, object_in, objects_in
from recado.channels.core.provider import ProviderTemplate, TemplateSubmission
from recado.channels.core.reading import record

LISTED_FIELDS: Final = "id,name,language,status,category,parameter_format,components,rejected_reason"

VARIABLE: Final = re.compile(r"\{\{[^{}]*\}\}")
_STATES: Final[Mapping[str, Literal["pending"] | Verdict]] = {
    **{verdict.upper(): verdict for verdict in get_args(Verdict)},
    "PENDING": "pending",
    "IN_APPEAL": "pending",
    "ARCHIVED": "paused",
    "LIMIT_EXCEEDED": "paused",
}
CATEGORIES_READ: Final[Mapping[str, Category]] = {category.upper(): category for category in get_args(Category)}
_SAMPLE = "1"  # shown to the reviewer for a variable without an example


def provider_language(language: str) -> str:
    """`pt-BR` → `pt_BR`."""
    return language.replace("-", "_")


def service_language(language: str) -> str:
    """`pt_BR` → `pt-BR`."""
    return language.replace("_", "-")


Language = Annotated[Text16, AfterValidator(service_language)]
Reason = Annotated[Text512 | None, AfterValidator(lambda reason: None if reason == "NONE" else reason)]

_KIND = record(
    {"status": Annotated[str, known(_STATES)], "category": Annotated[str, known(CATEGORIES_READ)]},
    {"components": Annotated[list[Tree], Field(max_length=20)], "parameter_format": Any},
)
_TEMPLATE = record({"id": Text256, "name": Text512, "language": Language}, {"rejected_reason": Reason})
_PAGE = record({}, {"data": Annotated[list[Any], Field(max_length=1_000)]})
_PAGING = record({"cursors": record({"after": Text2048}).of})


def submission(template: TemplateSubmission) -> dict[str, Any]:
    """The JSON that hands a template in for review."""
    write = _worded_there if template.category == "authentication" else partial(_written, template.header_example_url)
    return {
        "name": template.name,
        "language": provider_language(template.language),
        "category": template.category.upper(),
        "components": [
            {"type": kind, **write(kind, object_in(component.get("payload")))}
            for component in template.components
            for kind in [kind_of(component)]
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
    return (Followup(0.0, TemplateVerdict(decided, at, provider_template_id, category=known)),)


def kind_of(part: Mapping[str, Any]) -> str:
    """Of a component or a button."""
    return str(part.get("type", "")).upper()


def _written(header_example_url: str | None, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    text, examples = payload.get("text"), _examples(payload)
    match kind:
        case "HEADER":
            form = str(payload.get("format", "TEXT")).upper()
            if form != "TEXT":
                return {"format": form, "example": {"header_handle": [header_example_url or ""]}}
            shown = {"header_text": examples[:1] or [_SAMPLE]} if VARIABLE.search(str(text)) else None
            return {"format": form, "text": text, **({"example": shown} if shown else {})}
        case "BODY" if examples:
            return {"text": text, "example": {"body_text": [examples]}}
        case "BUTTONS":
            return {"buttons": [_button(button) for button in objects_in(payload.get("buttons"))]}
    return {"text": text}


def _worded_there(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The provider words these templates itself: it takes no text, and a button that copies the code."""
    if kind != "BUTTONS":
        return {}
    code = {"type": "OTP", "otp_type": "COPY_CODE"}
    buttons = objects_in(payload.get("buttons"))
    return {"buttons": [{**code, **{name: button[name] for name in ("text",) if name in button}} for button in buttons]}


def _button(button: Mapping[str, Any]) -> dict[str, Any]:
    kind, text, examples = kind_of(button), button.get("text"), _examples(button)
    match kind:
        case "URL":
            url = str(button.get("url", ""))
            example = {"example": examples[:1] or [VARIABLE.sub(_SAMPLE, url)]} if VARIABLE.search(url) else {}
            return {"type": kind, "text": text, "url": url, **example}
        case "PHONE_NUMBER":
            return {"type": kind, "text": text, "phone_number": button.get("phoneNumber")}
        case "COPY_CODE":
            return {"type": kind, "example": (examples or [_SAMPLE])[0]}
        case "FLOW":
            return {"type": kind, "text": text, "flow_id": button.get("flowId")}
    return {"type": kind, "text": text}


def _examples(payload: Mapping[str, Any]) -> list[str]:
    given = payload.get("example")
    if isinstance(given, str):  # a button has but one
        return [given]
    return [str(example) for example in given] if isinstance(given, Sequence) else []


# What the provider lists ---------------------------------------------------------------------------------------------


def listed(page: Mapping[str, Any]) -> Iterator[ProviderTemplate | MalformedCallback | None]:
    """The templates of one page, read one by one as they are asked for. Raises `ProviderError`.

    None for one that this service could not send: other kinds of components, named variables, states and categories of
    another time. For one that cannot be read, where it cannot.
    """
    for index, item in enumerate(read(_PAGE, page, "list").get("data", ())):
        try:
            yield _listed(item)
        except MalformedCallback as error:
            yield error.within(f"data[{index}]")


def _listed(item: object) -> ProviderTemplate | None:
    kind = _KIND.read(item)
    components = [_read_component(component) for component in kind.get("components", ())]
    named = kind.get("parameter_format") == "NAMED"
    if kind["status"] is None or kind["category"] is None or named or None in components:
        return None
    template = _TEMPLATE.read(item)
    return ProviderTemplate(
        provider_template_id=template["id"],
        name=template["name"],
        language=template["language"],
        category=kind["category"],
        status=kind["status"],
        components=[component for component in components if component is not None],
        rejection_reason=template.get("rejected_reason"),
    )


def next_page(page: Mapping[str, Any]) -> str | None:
    """The cursor of the next page; None at the end. Raises `ProviderError`."""
    paging = page.get("paging")
    if not isinstance(paging, dict) or not paging.get("next"):
        return None
    after: str = read(_PAGING, paging, "paging")["cursors"]["after"]
    return after


def _read_component(component: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, examples = kind_of(component), object_in(component.get("example"))
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
            payload = {"buttons": [_read_button(each) for each in buttons] if isinstance(buttons, list) else [None]}
            if None in payload["buttons"]:
                return None
        case _:
            return None
    return {"type": kind, "payload": payload}


def _read_button(button: object) -> dict[str, Any] | None:
    given = object_in(button)
    kind = kind_of(given)
    if kind not in ("QUICK_REPLY", "URL", "PHONE_NUMBER", "COPY_CODE", "FLOW", "OTP"):
        return None
    read = {"type": kind, "text": given.get("text") or ""}
    for theirs, ours in (("url", "url"), ("phone_number", "phoneNumber"), ("example", "example")):
        if given.get(theirs) is not None:
            read[ours] = given[theirs]
    if given.get("flow_id") is not None:
        read["flowId"] = str(given["flow_id"])
    return read
