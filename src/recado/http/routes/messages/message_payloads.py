"""What a message may contain, by type (C15.3): the shapes of `payload`, read into plain dicts and stored as they are.

Typed dicts and no models: a payload is checked, trimmed and freed of unknown fields in one pass, then dumped as it is.
"""

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, TypeAdapter
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from recado.domain.core.json_size import stored_size
from recado.http.routes.core.web_addresses import CAN_BE_OPENED

_CONFIG = ConfigDict(strict=True, str_strip_whitespace=True, extra="ignore", hide_input_in_errors=True)
_MEDIA_ID_LENGTH = 64
_MOST_ROWS = 10
MOST_FLOW_DATA: Final = 64 * 1024  # bytes: they are stored with each message of a batch


class TextContent(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    body: Annotated[str, Field(min_length=1, max_length=4096)]
    previewUrl: NotRequired[bool]


class TextPayload(TypedDict):
    """`type: text`."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    text: TextContent


class MediaReference(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    id: Annotated[str, Field(min_length=1, max_length=_MEDIA_ID_LENGTH)]


class _MessageHeader(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    text: NotRequired[Annotated[str, Field(min_length=1, max_length=60)]]
    media: NotRequired[MediaReference]


def _one_kind(header: _MessageHeader) -> _MessageHeader:
    if ("text" in header) == ("media" in header):
        raise ValueError("takes exactly one of text and media")
    return header


Header = Annotated[_MessageHeader, AfterValidator(_one_kind)]


class ButtonParameter(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    index: Annotated[int, Field(ge=0, le=9)]
    parameter: Annotated[str, Field(min_length=1, max_length=2000)]


def _distinct(member: str, items: list[Any]) -> list[Any]:
    if len({item[member] for item in items}) < len(items):
        raise PydanticCustomError("repeated", "{member} must be different in each entry", {"member": member})
    return items


class TemplatePayload(TypedDict):
    """`type: template`: the parameters of header and buttons; those of the body are in `templateVars`."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    header: NotRequired[Header]
    buttons: NotRequired[
        Annotated[list[ButtonParameter], Field(max_length=10), AfterValidator(lambda items: _distinct("index", items))]
    ]


class MediaContent(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    id: Annotated[str, Field(min_length=1, max_length=_MEDIA_ID_LENGTH)]
    voice: NotRequired[bool]
    caption: NotRequired[Annotated[str, Field(max_length=1024)]]
    filename: NotRequired[Annotated[str, Field(max_length=255)]]


class MediaPayload(TypedDict):
    """`type: media`."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    kind: Literal["image", "audio", "video", "document", "sticker"]
    media: MediaContent


class ReplyButton(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    id: Annotated[str, Field(min_length=1, max_length=256)]
    title: Annotated[str, Field(min_length=1, max_length=20)]


class ButtonAction(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    buttons: Annotated[
        list[ReplyButton],
        Field(min_length=1, max_length=3),
        AfterValidator(lambda items: _distinct("id", items)),
        AfterValidator(lambda items: _distinct("title", items)),
    ]


class ListRow(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    id: Annotated[str, Field(min_length=1, max_length=200)]
    title: Annotated[str, Field(min_length=1, max_length=24)]
    description: NotRequired[Annotated[str, Field(max_length=72)]]


class ListSection(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    title: NotRequired[Annotated[str, Field(min_length=1, max_length=24)]]
    rows: Annotated[list[ListRow], Field(min_length=1, max_length=_MOST_ROWS)]


def _fits_a_list(sections: list[ListSection]) -> list[ListSection]:
    rows = [row for section in sections for row in section["rows"]]
    if len(rows) > _MOST_ROWS:
        raise PydanticCustomError("too_long", "a list has at most 10 rows in all its sections")
    if len(sections) > 1 and any("title" not in section for section in sections):
        raise ValueError("each of several sections needs a title")
    _distinct("id", rows)
    return sections


class ListAction(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    button: Annotated[str, Field(min_length=1, max_length=20)]  # the label that opens the list
    sections: Annotated[list[ListSection], Field(min_length=1, max_length=10), AfterValidator(_fits_a_list)]


class LinkAction(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    displayText: Annotated[str, Field(min_length=1, max_length=20)]
    url: Annotated[str, Field(max_length=2048, pattern=r"^https?://[^\s/]\S*$"), CAN_BE_OPENED]


def _storable(data: dict[str, Any]) -> dict[str, Any]:
    if stored_size(data) > MOST_FLOW_DATA:
        raise ValueError("must have at most 64 KiB")
    return data


class FlowAction(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    flowId: Annotated[str, Field(min_length=1, max_length=64)]
    cta: Annotated[str, Field(min_length=1, max_length=20)]
    screen: NotRequired[Annotated[str, Field(max_length=128)]]
    data: NotRequired[Annotated[dict[str, Any], AfterValidator(_storable)]]


class _Interactive(TypedDict):
    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    header: NotRequired[Header]
    body: Annotated[str, Field(min_length=1, max_length=1024)]
    footer: NotRequired[Annotated[str, Field(max_length=60)]]


class ButtonInteractive(_Interactive):
    type: Literal["button"]
    action: ButtonAction


class ListInteractive(_Interactive):
    type: Literal["list"]
    action: ListAction


class LinkInteractive(_Interactive):
    type: Literal["cta_url"]
    action: LinkAction


class FlowInteractive(_Interactive):
    type: Literal["flow"]
    action: FlowAction


Interactive = Annotated[ButtonInteractive | ListInteractive | LinkInteractive | FlowInteractive, Discriminator("type")]


class InteractivePayload(TypedDict):
    """`type: interactive`."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    interactive: Interactive


AnyPayload = TextPayload | TemplatePayload | MediaPayload | InteractivePayload

# What a refusal shows to callers who do not know the shape: one that is taken, by free-form type.
EXAMPLES: Final[dict[str, Any]] = {
    "text": {"text": {"body": "Hello"}},
    "media": {"kind": "image", "media": {"id": "med_1"}},
    "interactive": {
        "interactive": {"type": "button", "body": "Now?", "action": {"buttons": [{"id": "y", "title": "Yes"}]}}
    },
}

SHAPES: Final[dict[str, TypeAdapter[Any]]] = {
    "text": TypeAdapter(TextPayload),
    "template": TypeAdapter(TemplatePayload),
    "media": TypeAdapter(MediaPayload),
    "interactive": TypeAdapter(InteractivePayload),
}
