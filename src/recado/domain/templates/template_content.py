"""What a chat-app template holds: its variables, and what its submission for review requires (C11.2)."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from recado.domain.core.errors import FieldError
from recado.domain.core.web_addresses import is_web_address
from recado.domain.senders.number import IN_SERVICE, NumberStatus, what_to_do
from recado.domain.templates.template import TemplateCategory

Component = Mapping[str, Any]

_NAME = re.compile(r"[a-z0-9_]{1,512}").fullmatch
_LINK = re.compile(r"https?://|\bwww\.", re.IGNORECASE)
_ANY_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
_WEB_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE).match
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934-\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff]"
)
_TYPES = ("HEADER", "BODY", "FOOTER", "BUTTONS")
_FORMATS = ("TEXT", "IMAGE", "VIDEO", "DOCUMENT")
_BUTTON_TYPES = ("QUICK_REPLY", "URL", "PHONE_NUMBER", "COPY_CODE", "FLOW")
_MAX_BODY, _MAX_LINE, _MAX_BUTTON_TEXT = 1024, 60, 25
_MAX_BUTTONS, _MAX_URL_BUTTONS, _MAX_PHONE_BUTTONS = 10, 2, 1
_READ = 4 * _MAX_BODY  # characters of a text, and one button beyond the limit: of what is far too much no more is told


def variable_count(components: Sequence[Component]) -> int:
    """How many `templateVars` a message of the template needs: the distinct variables of its BODY."""
    return len(set(_variables(body_text(components))))


def body_text(components: Sequence[Component]) -> str:
    """The text of its BODY, with its placeholders; empty where it has none."""
    bodies = (component for component in components if _kind(component) == "BODY")
    return next((_text_of(_payload(body)) for body in bodies), "")


def header_takes_text(components: Sequence[Component]) -> bool:
    """Whether the HEADER holds a variable, so that a message of the template gives its text."""
    headers = (component for component in components if _kind(component) == "HEADER")
    return any(_variables(_text_of(_payload(header))) for header in headers)


def header_media(components: Sequence[Component]) -> str | None:
    """The kind of media that the HEADER takes; None: none."""
    formats = (str(_payload(each).get("format", "")).lower() for each in components if _kind(each) == "HEADER")
    return next((each for each in formats if each in ("image", "video", "document")), None)


def submission_errors(
    name: str,
    category: TemplateCategory,
    components: Sequence[Component],
    header_example_url: str | None,
    *,
    env: str,
    number_id: str,
    number_status: NumberStatus,
) -> list[FieldError]:
    """What the provider would refuse, one entry for each fault; empty: the template may be submitted (C11.2)."""
    found: list[FieldError] = []
    if _NAME(name) is None:
        found.append(FieldError("/name", "FORMAT", "Use 1 to 512 lower-case letters, digits and underscores."))
    if number_status not in IN_SERVICE:
        sentence = f"The number {number_id} is {number_status}: {what_to_do(number_status, env, number_id)}."
        found.append(FieldError("/numberId", "NUMBER_UNAVAILABLE", sentence))
    counts = dict.fromkeys(_TYPES, 0)
    for index, component in enumerate(components):
        kind, payload, path = _kind(component), _payload(component), f"/components/{index}"
        if kind not in counts:
            found.append(FieldError(f"{path}/type", "NOT_ALLOWED", f"The type must be one of {', '.join(_TYPES)}."))
            continue
        counts[kind] += 1
        if counts[kind] == 2:
            found.append(FieldError(f"{path}/type", "TOO_MANY", f"A template has at most one {kind}."))
        if kind == "HEADER":
            found += _header_errors(payload, f"{path}/payload", header_example_url)
        elif kind == "BODY":
            found += _body_errors(payload, f"{path}/payload")
        elif kind == "FOOTER":
            found += _footer_errors(payload, f"{path}/payload")
        else:
            found += _button_errors(payload, f"{path}/payload")
        if category is TemplateCategory.AUTHENTICATION:
            found += _authentication_errors(kind, payload, f"{path}/payload")
    if counts["BODY"] == 0:
        found.append(FieldError("/components", "REQUIRED", "A template needs a BODY."))
    return found


def _header_errors(payload: Component, path: str, header_example_url: str | None) -> list[FieldError]:
    kind = _word(payload.get("format", "TEXT"))
    if kind not in _FORMATS:
        return [FieldError(f"{path}/format", "NOT_ALLOWED", f"The format must be one of {', '.join(_FORMATS)}.")]
    if kind != "TEXT":
        if header_example_url:
            return []
        return [FieldError("/headerExampleUrl", "REQUIRED", "A header with media needs an example of it.")]
    text = _text_of(payload)
    found = _length_errors(text, f"{path}/text", "The header", _MAX_LINE)
    variables = _variables(text)
    if len(variables) > 1:
        found.append(FieldError(f"{path}/text", "TOO_MANY", "The header takes at most one variable."))
    return found + _numbering_errors(variables, f"{path}/text")


def _body_errors(payload: Component, path: str) -> list[FieldError]:
    text = _text_of(payload)
    found = _length_errors(text, f"{path}/text", "The body", _MAX_BODY)
    variables = _variables(text)
    found += _numbering_errors(variables, f"{path}/text")
    stripped = text.strip()
    if variables and (stripped.startswith("{{") or stripped.endswith("}}")):
        found.append(FieldError(f"{path}/text", "NOT_ALLOWED", "The body may not begin or end with a variable."))
    given = payload.get("example", ())
    examples = given if isinstance(given, list | tuple) else ()
    needed = len(set(variables))
    if len(examples) != needed or not all(isinstance(text, str) and text.strip() for text in examples):
        found.append(FieldError(f"{path}/example", "REQUIRED", f"Give one example for each variable: {needed}."))
    return found


def _footer_errors(payload: Component, path: str) -> list[FieldError]:
    text = _text_of(payload)
    found = _length_errors(text, f"{path}/text", "The footer", _MAX_LINE)
    if _variables(text):
        found.append(FieldError(f"{path}/text", "NOT_ALLOWED", "The footer takes no variable."))
    return found


def _button_errors(payload: Component, path: str) -> list[FieldError]:
    buttons = _buttons(payload)
    if not buttons:
        return [FieldError(f"{path}/buttons", "REQUIRED", "Give at least one button.")]
    found = []
    kinds = [_word(button.get("type")) for button in buttons]
    for limit, count, what in (
        (_MAX_BUTTONS, len(kinds), "buttons"),
        (_MAX_URL_BUTTONS, kinds.count("URL"), "URL buttons"),
        (_MAX_PHONE_BUTTONS, kinds.count("PHONE_NUMBER"), "PHONE_NUMBER buttons"),
    ):
        if count > limit:
            found.append(FieldError(f"{path}/buttons", "TOO_MANY", f"A template has at most {limit} {what}."))
    for index, (kind, button) in enumerate(zip(kinds, buttons, strict=True)):
        at = f"{path}/buttons/{index}"
        if kind not in _BUTTON_TYPES:
            found.append(
                FieldError(f"{at}/type", "NOT_ALLOWED", f"The type must be one of {', '.join(_BUTTON_TYPES)}.")
            )
            continue
        if kind != "COPY_CODE" or "text" in button:
            found += _length_errors(_text_of(button), f"{at}/text", "A button's text", _MAX_BUTTON_TEXT)
        if kind == "URL":
            url = _text(button.get("url"))
            if _WEB_ADDRESS(url) is None:
                found.append(FieldError(f"{at}/url", "FORMAT", "The URL must begin with http:// or https://."))
            elif not is_web_address(_ANY_VARIABLE.sub("1", url)):
                found.append(FieldError(f"{at}/url", "FORMAT", "The URL must name a host, and a port that exists."))
        if kind == "PHONE_NUMBER" and not button.get("phoneNumber"):
            found.append(FieldError(f"{at}/phoneNumber", "REQUIRED", "A PHONE_NUMBER button needs its phone."))
        if kind == "FLOW" and not button.get("flowId"):
            found.append(FieldError(f"{at}/flowId", "REQUIRED", "A FLOW button needs its flow."))
    return found


def _authentication_errors(kind: str, payload: Component, path: str) -> list[FieldError]:
    """No URL, media or emoji in a template that carries a code."""
    found = []
    texts = [_text_of(payload)]
    if kind == "HEADER" and _word(payload.get("format", "TEXT")) != "TEXT":
        found.append(FieldError(f"{path}/format", "NOT_ALLOWED", "An authentication template takes no media."))
    if kind == "BUTTONS":
        buttons = _buttons(payload)
        texts = [_text_of(button) for button in buttons]
        if any(_word(button.get("type")) == "URL" for button in buttons):
            found.append(FieldError(f"{path}/buttons", "NOT_ALLOWED", "An authentication template takes no URL."))
    if any(_LINK.search(text) for text in texts):
        found.append(FieldError(f"{path}", "NOT_ALLOWED", "An authentication template takes no URL."))
    if any(_EMOJI.search(text) for text in texts):
        found.append(FieldError(f"{path}", "NOT_ALLOWED", "An authentication template takes no emoji."))
    return found


def _length_errors(text: str, path: str, what: str, limit: int) -> list[FieldError]:
    if not text.strip():
        return [FieldError(path, "REQUIRED", f"{what} needs a text.")]
    if len(text) > limit:
        return [FieldError(path, "TOO_LONG", f"{what} has at most {limit} characters.")]
    return []


def _numbering_errors(variables: Sequence[str], path: str) -> list[FieldError]:
    distinct = set(variables)
    if distinct == {str(number) for number in range(1, len(distinct) + 1)}:
        return []
    return [FieldError(path, "VARIABLES", "Number the variables {{1}}, {{2}} and so on, without gaps.")]


def _variables(text: str) -> list[str]:
    """What stands in pairs of braces. Each character is looked at once: a pattern would begin anew at each brace."""
    found = []
    start = text.find("{{")
    while start >= 0 and (end := text.find("}}", start + 2)) >= 0:
        found.append(text[start + 2 : end])
        start = text.find("{{", end + 2)
    return found


def _kind(component: Component) -> str:
    return _word(component.get("type"))


def _payload(component: Component) -> Component:
    payload = component.get("payload")
    return payload if isinstance(payload, Mapping) else {}


def _text_of(payload: Component) -> str:
    return _text(payload.get("text"))


def _text(value: Any) -> str:
    return value[:_READ] if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return _text(value).upper()


def _buttons(payload: Component) -> list[Component]:
    given = payload.get("buttons")
    buttons = (button for button in given if isinstance(button, dict)) if isinstance(given, list | tuple) else ()
    return list(islice(buttons, _MAX_BUTTONS + 1))
