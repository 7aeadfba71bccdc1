"""What callers ask of an export, and what they receive (C18)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from recado.domain.channels.exported import EXPORTED, MOST_ROWS, USUAL_ROWS
from recado.http.api.models import ApiModel, QueryInt, Timestamp
from recado.http.api.paging import CursorQuery

_CHANNELS = tuple(each.channel for each in EXPORTED)


class ExportQuery(CursorQuery):
    """A period of at most 31 days, both ends included, to the millisecond."""

    from_: Annotated[Timestamp, Field(alias="from", description="The first moment of `createdAt`.")]
    to: Annotated[Timestamp, Field(description="The last one: at most 31 days after `from`.")]
    limit: Annotated[QueryInt, Field(ge=1, le=MOST_ROWS, description="How many rows to answer.")] = USUAL_ROWS


class ExportedRow(ApiModel):
    """One message, as its channel has it when the page is read; fields without value are absent."""

    id: str
    channel: Literal[_CHANNELS]  # type: ignore[valid-type]
    direction: Literal["outbound", "inbound"]
    to: Annotated[str, Field(description="Masked without `pii:full`, and always when its contact was deleted.")]
    status: Annotated[str, Field(description="In the words of the channel.")]
    campaign_id: str | None = None
    contact_id: str | None = None
    contact_external_id: Annotated[str | None, Field(description="Your own id of the contact, as it is now.")] = None
    metadata: Mapping[str, str | float | bool] | None = None
    created_at: datetime
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    reason: Annotated[str | None, Field(description="Why it failed, in the words of the channel.")] = None
    segments: Annotated[int | None, Field(description="Of what left as SMS.")] = None
    delivered_via: Annotated[Literal["rcs", "sms"] | None, Field(description="Of RCS: what carried it.")] = None
    subject: Annotated[str | None, Field(description="Of e-mail.")] = None


class ExportPage(ApiModel):
    """Rows, newest first."""

    items: list[ExportedRow]
    next_cursor: Annotated[str | None, Field(description="Where the next page begins; null behind the last row.")]
