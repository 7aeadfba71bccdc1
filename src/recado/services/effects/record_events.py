"""Events of records: what a change of a key, a template or a number means to webhooks, in the change's transaction."""

from collections.abc import Iterable
from typing import Any

from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import DeliveriesQueued, OnChange
from recado.domain.senders.number import NumberStatus
from recado.domain.templates.template import TemplateStatus
from recado.storage.access.api_keys import ApiKey
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template
from recado.storage.webhooks.events import RecordEvent, emit, emit_records


def announce(changed: OnChange, queued: DeliveriesQueued) -> None:
    """After the commit: hint at what was queued, if anything was."""
    if queued.subscriptions:
        changed(queued)


async def key_created(connection: Executor, ids: IdSource, key: ApiKey) -> DeliveriesQueued:
    """`apikey.created`; answers whom to hint after the commit."""
    return await _emit(connection, ids, key, "apikey.created", _key_data(key))


async def key_rotated(connection: Executor, ids: IdSource, key: ApiKey) -> DeliveriesQueued:
    """`apikey.rotated`."""
    data = _key_data(key)
    if key.previous_valid_until is not None:
        data["previousValidUntil"] = key.previous_valid_until
    return await _emit(connection, ids, key, "apikey.rotated", data)


async def template_moved(
    connection: Executor, ids: IdSource, before: Template | None, after: Template
) -> DeliveriesQueued:
    """`template.approved`, once in a version, and `template.rejected`; nothing for any other change (C11.3)."""
    return await templates_moved(connection, ids, [(before, after)])


async def templates_moved(
    connection: Executor, ids: IdSource, moved: Iterable[tuple[Template | None, Template]]
) -> DeliveriesQueued:
    """The same of many, in their order, written at once."""
    happened = [event for before, after in moved if (event := _template_event(before, after)) is not None]
    return DeliveriesQueued(tuple(await emit_records(connection, ids, happened)) if happened else ())


def _template_event(before: Template | None, after: Template) -> RecordEvent | None:
    event = template_event(before, after)
    if event is None:
        return None
    data: dict[str, Any] = {
        "id": after.id,
        "numberId": after.number_id,
        "name": after.name,
        "language": after.language.value,
        "category": after.category.value,
        "version": after.version,
        "status": after.status.value,
    }
    if event == "template.rejected":
        data["rejectionReason"] = after.rejection_reason
    return RecordEvent(after.organization_id, after.env, event, data)


def template_event(before: Template | None, after: Template) -> str | None:
    """The event that a change of a template is, if any."""
    if before is None or before.status is after.status:
        return None
    if after.status is TemplateStatus.APPROVED:
        return None if before.approved_version == after.version else "template.approved"
    return "template.rejected" if after.status is TemplateStatus.REJECTED else None


async def number_moved(
    connection: Executor, ids: IdSource, before: Number, after: Number, keys: KeyRing
) -> DeliveriesQueued:
    """`number.quality_changed`: another quality or tier, or a status to or from `flagged` (C14.2)."""
    if not quality_changed(before, after):
        return DeliveriesQueued(())
    data = {
        "numberId": after.id,
        "displayPhone": after.display_phone,
        "previous": _state(before),
        "current": _state(after),
    }
    return await _emit(connection, ids, after, "number.quality_changed", data, keys)


def quality_changed(before: Number, after: Number) -> bool:
    """Whether a change of a number is one of its quality."""
    if NumberStatus.FLAGGED in (before.status, after.status) and before.status is not after.status:
        return True
    return before.quality_rating is not after.quality_rating or before.messaging_tier is not after.messaging_tier


def _state(number: Number) -> dict[str, str]:
    return {
        "qualityRating": number.quality_rating.value,
        "messagingTier": number.messaging_tier.value,
        "status": number.status.value,
    }


def _key_data(key: ApiKey) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": key.id,
        "name": key.name,
        "env": key.env,
        "scopes": sorted(key.scopes),
        "prefix": key.prefix,
    }
    if key.created_by_id is not None:
        data["createdById"] = key.created_by_id
    if key.expires_at is not None:
        data["expiresAt"] = key.expires_at
    return data


async def _emit(
    connection: Executor,
    ids: IdSource,
    record: ApiKey | Number,
    event: str,
    data: dict[str, Any],
    keys: KeyRing | None = None,
) -> DeliveriesQueued:
    told = await emit(
        connection, ids, organization_id=record.organization_id, env=record.env, type=event, data=data, keys=keys
    )
    return DeliveriesQueued(tuple(told))
