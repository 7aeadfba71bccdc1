"""A batch as callers see it (C15.5)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from recado.domain.batches.batch import BatchStatus
from recado.domain.channels.policies import sender_field
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.storage.batches.batch_making import NewBatch
from recado.storage.batches.batches import Batch

_COUNTS = ("accepted", "skipped", "queued", "sent", "delivered", "read", "failed", "archived")
_OPTIONAL = (
    ("name", "name"),
    ("template_id", "templateId"),
    ("campaign_id", "campaignId"),
    ("pause_reason", "pauseReason"),
    ("created_by_id", "createdById"),
)


def batch_view(batch: Batch) -> dict[str, Any]:
    """The record; fields without value are absent."""
    return _view(
        batch,
        # A message that was sent again one by one (C15.4) was requested, too, as in the totals of its campaign.
        requested=max(batch.requested, batch.accepted + batch.skipped),
        counts={name: getattr(batch, name) for name in _COUNTS},
        skipped=(batch.skipped_reasons, batch.errors),
        coins=(batch.held_coins, batch.charged_coins),
        moments={"scheduledAt": batch.scheduled_at, "startedAt": batch.started_at, "finishedAt": batch.finished_at},
    )


def new_batch_view(new: NewBatch) -> dict[str, Any]:
    """The record of a batch as it was just committed."""
    made = 0 if new.first is None else len(new.first.ids)
    began = "finishedAt" if new.status is BatchStatus.FAILED else "startedAt"
    return _view(
        new,
        requested=new.requested,
        counts={**dict.fromkeys(_COUNTS, 0), "accepted": made, "skipped": new.skipped, "queued": made},
        skipped=(orjson.Fragment(new.skipped_reasons), orjson.Fragment(new.errors)),
        coins=(0 if new.first is None else new.first.held, 0),
        moments={"scheduledAt": new.scheduled_at, began: created_at(new.id)},
    )


def _view(
    batch: Batch | NewBatch,
    *,
    requested: int,
    counts: Mapping[str, int],
    skipped: tuple[Any, Any],
    coins: tuple[int, int],
    moments: Mapping[str, datetime | None],
) -> dict[str, Any]:
    """`skipped`: how many for which reason, and the first of them; `coins`: held and charged."""
    view: dict[str, Any] = {
        "id": batch.id,
        "organizationId": batch.organization_id,
        "env": batch.env,
        "channel": batch.channel,
        "status": batch.status,
        "totals": {"requested": requested, **counts},
        "skippedReasons": skipped[0],
        "errors": skipped[1],
        "heldCoins": coins[0],
        "chargedCoins": coins[1],
        "createdAt": format_timestamp(created_at(batch.id)),
    }
    # What its messages leave from, where one sender has all of them and callers name it.
    field = sender_field(batch.channel)
    if field is not None and batch.sender_id is not None:
        view[field] = batch.sender_id
    for attribute, name in _OPTIONAL:
        value = getattr(batch, attribute, None)
        if value is not None:
            view[name] = value
    return view | {name: format_timestamp(at) for name, at in moments.items() if at is not None}
