"""Events as JSON: in the callbacks of bridges (C29.3), and the rows of those that wait. What was read can be stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic.alias_generators import to_camel

from recado.channels.core.events import (
    Event,
    FlowNews,
    Inbound,
    LinkOpened,
    NotTaken,
    NumberNews,
    Preference,
    Status,
    TemplateVerdict,
)
from recado.channels.core.fields import needed, text_or_none, unread
from recado.channels.core.reading import Shape
from recado.channels.core.refusals import PROVIDER_CODES, refusal_code
from recado.domain.channels.email import bounce_code
from recado.domain.core.timestamps import format_timestamp


def _report(read: Status, info: ValidationInfo) -> Status:
    """A failure, and a bounce, has one of the codes that the channel knows (the context), or `provider_error`.

    No other has any. The code of a bounce agrees with its type.
    """
    if read.provider_message_id is None and read.reference is None:
        raise unread("providerMessageId")
    code = None
    if read.status in ("failed", "bounced"):
        if read.code is not None and text_or_none(read.code, 128) is None:
            raise unread("code")
        code = refusal_code(read.code, info.context or PROVIDER_CODES)
    if read.status == "bounced":  # only e-mail has bounces
        code = bounce_code(code, read.bounce_type)
    return read if code == read.code else replace(read, code=code)


_Event = Annotated[
    Annotated[Status, AfterValidator(_report)]
    | Inbound
    | Annotated[TemplateVerdict, needed("status", lambda read: read.status or read.category)]
    | Annotated[NumberNews, needed("account", lambda read: read.account or read.business_account)]
    | FlowNews
    | Preference,
    Field(discriminator="kind"),
]
EVENT = Shape[Event](_Event, tag="kind")
_NAMES: Mapping[type[Event | LinkOpened | NotTaken], Sequence[tuple[str, str]]] = {
    event: [(each.name, "from" if each.name == "sender" else to_camel(each.name)) for each in fields(event)]
    for event in (*get_args(Event), LinkOpened, NotTaken)
}


def event_to_json(event: Event | LinkOpened | NotTaken) -> dict[str, Any]:
    """The JSON form; fields without value are left out. Times have milliseconds."""
    form: dict[str, Any] = {}
    for name, called in _NAMES[type(event)]:  # by hand: pydantic takes up to twice as long
        value = getattr(event, name)
        if value is not None:
            form[called] = format_timestamp(value) if isinstance(value, datetime) else value
    return form


def event_from_json(item: object, codes: Collection[str] = PROVIDER_CODES) -> Event:
    """The event of a JSON form; raises `MalformedCallback` naming the field. `codes`: those of failures there."""
    return EVENT.read(item, context=codes)
