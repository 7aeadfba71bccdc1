"""A row of an export as callers see it: hand-made dicts, because a page has up to a thousand (C18)."""

from collections.abc import Callable
from typing import Any

import orjson

from recado.domain.channels.exported import Exported
from recado.domain.channels.policies import masked_recipient
from recado.domain.core.ids import milliseconds_in
from recado.domain.core.timestamps import format_milliseconds, format_timestamp
from recado.storage.messages.message_exports import ExportedMessage

OUTBOUND = "outbound"


def export_view(export: Exported, *, unmasked: bool) -> Callable[[ExportedMessage], dict[str, Any]]:
    """How the rows of a channel show; fields without value are absent. `unmasked`: recipients too (C2.5)."""
    channel, reason_of, segmented, own = export.channel, export.reason, export.segmented, export.details
    reasons, status_of = export.reasons, export.status

    def view(row: ExportedMessage) -> dict[str, Any]:
        (
            message_id, direction, recipient, known, status, campaign_id, contact_id, external_id, metadata, sent_at,
            delivered_at, read_at, failed_at, failure_code, last_error, units, details,
        ) = row  # fmt: skip
        shown: dict[str, Any] = {
            "id": message_id,
            "channel": channel,
            "direction": direction,
            "to": recipient if unmasked and known else masked_recipient(channel, recipient),
            "status": status_of(status, sent_at),
        }
        if campaign_id is not None:
            shown["campaignId"] = campaign_id
        if contact_id is not None:
            shown["contactId"] = contact_id
        if external_id is not None:
            shown["contactExternalId"] = external_id
        if metadata is not None:
            shown["metadata"] = orjson.Fragment(metadata)
        shown["createdAt"] = format_milliseconds(milliseconds_in(message_id))
        if sent_at is not None:
            shown["sentAt"] = format_timestamp(sent_at)
        if delivered_at is not None:
            shown["deliveredAt"] = format_timestamp(delivered_at)
        if read_at is not None:
            shown["readAt"] = format_timestamp(read_at)
        if failed_at is not None:
            shown["failedAt"] = format_timestamp(failed_at)
        if (failure_code or last_error) and (reason := reason_of(failure_code, last_error)) is not None:
            shown["reason"] = reason
        elif status in reasons:
            shown["reason"] = reasons[status]
        if direction == OUTBOUND and segmented(details or {}):
            shown["segments"] = units
        if own and details:
            shown |= {name: details[name] for name in own if details.get(name) is not None}
        return shown

    return view
