"""A batch as callers see it (C15.5)."""

from typing import Any

import orjson

from recado.domain.batches.batch import BatchStatus
from recado.domain.channels.policies import sender_field
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.storage.batches.batch_making import NewBatch
from recado.storage.batches.batches import Batch

_OPTIONAL = (
    ("name", "name"),
    ("template_id", "templateId"),
    ("campaign_id", "campaignId"),
    ("pause_reason", "pauseReason"),
    ("created_by_id", "createdById"),
)


def batch_view(batch: Batch) -> dict[str, Any]:
    """The record; fields without value are absent."""
    view: dict[str, Any] = {
        "id": batch.id,
        "organizationId": batch.organization_id,
        "env": batch.env,
        "channel": batch.channel,
        "status": batch.status,
        "totals": {
            # A message that was sent again one by one (C15.4) was requested, too, as in the totals of its campaign.
            "requested": max(batch.requested, batch.accepted + batch.skipped),
            "accepted": batch.accepted,
            "skipped": batch.skipped,
            "queued": batch.queued,
            "sent": batch.sent,
            "delivered": batch.delivered,
            "read": batch.read,
            "failed": batch.failed,
            "archived": batch.archived,
        },
        "skippedReasons": batch.skipped_reasons,
        "errors": batch.errors,
        "heldCoins": batch.held_coins,
        "chargedCoins": batch.charged_coins,
        "createdAt": format_timestamp(batch.created_at),
    }
    view |= _sender(batch)
    for attribute, name in _OPTIONAL:
        value = getattr(batch, attribute)
        if value is not None:
            view[name] = value
    moments = (batch.scheduled_at, "scheduledAt"), (batch.started_at, "startedAt"), (batch.finished_at, "finishedAt")
    for at, name in moments:
        if at is not None:
            view[name] = format_timestamp(at)
    return view


def new_batch_view(new: NewBatch) -> dict[str, Any]:
    """The record of a batch as it was just committed."""
    made = 0 if new.first is None else len(new.first.ids)
    at = format_timestamp(created_at(new.id))
    view: dict[str, Any] = {
        "id": new.id,
        "organizationId": new.organization_id,
        "env": new.env,
        "channel": new.channel,
        "status": new.status,
        "totals": {
            "requested": new.requested,
            "accepted": made,
            "skipped": new.skipped,
            "queued": made,
            "sent": 0,
            "delivered": 0,
            "read": 0,
            "failed": 0,
            "archived": 0,
        },
        "skippedReasons": orjson.Fragment(new.skipped_reasons),
        "errors": orjson.Fragment(new.errors),
        "heldCoins": 0 if new.first is None else new.first.held,
        "chargedCoins": 0,
        "createdAt": at,
    }
    view |= _sender(new)
    for attribute, name in _OPTIONAL:
        value = getattr(new, attribute, None)
        if value is not None:
            view[name] = value
    if new.scheduled_at is not None:
        view["scheduledAt"] = format_timestamp(new.scheduled_at)
    view["finishedAt" if new.status is BatchStatus.FAILED else "startedAt"] = at
    return view


def _sender(batch: Batch | NewBatch) -> dict[str, str]:
    """What its messages leave from, where one sender has all of them and callers name it."""
    field = sender_field(batch.channel)
    return {} if field is None or batch.sender_id is None else {field: batch.sender_id}
