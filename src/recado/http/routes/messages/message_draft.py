"""From the body of POST /messages to a draft: what concerns several fields at once, each refusal with its place."""

from typing import Final

from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import FieldError, Problem
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope
from recado.http.routes.core.phones import recipient_at
from recado.http.routes.messages.message_models import (
    NO_RECIPIENT,
    CreateMessage,
    misfits,
    refuse_metadata,
    refuse_misfits,
)
from recado.services.messages.draft import MessageDraft

FORCE: Final = "messages:force"

# What every way to send can be refused for.
SENDING_CODES: Final = (
    "ROUTE_NOT_AVAILABLE",
    "REFERENCE_NOT_FOUND",
    "MEDIA_NOT_FOUND",
    "NUMBER_UNAVAILABLE",
    "TEMPLATE_NOT_APPROVED",
    "TEMPLATE_VARS_MISMATCH",
    "PRIORITY_NOT_ALLOWED",
    "PAYMENT_REQUIRED",
    "DEPENDENCY_FAILED",
)


def draft_of(call: Call) -> MessageDraft:
    """The draft in the body of `call`, its recipient canonical (C2.4); raises `Problem` 403 or 422."""
    body: CreateMessage = call.body
    if body.force and not call.can(FORCE):
        raise missing_scope(FORCE)
    if body.to is None and body.contact_id is None:
        nobody = FieldError("/to", "RECIPIENT_MISSING", NO_RECIPIENT)
        raise Problem("RECIPIENT_MISSING", NO_RECIPIENT, errors=[nobody, *misfits(body)])
    refuse_misfits(body)
    refuse_metadata(body.metadata)
    principal, key = call.principal, call.idempotency
    return MessageDraft(
        organization_id=principal.organization_id,
        env=principal.env,
        channel=body.channel,
        sender_id=body.sender_id or "",
        to="" if body.to is None else _recipient(body.channel, body.to),
        type=body.type,
        priority=body.priority,
        template_id=body.template_id,
        template_vars=body.template_vars,
        payload=body.payload,
        contact_id=body.contact_id,
        campaign_id=body.campaign_id,
        metadata=body.metadata,
        scheduled_at=body.scheduled_at,
        ttl_seconds=body.ttl_seconds,
        forced_by=actor_of(call) if body.force else None,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
        sent_by=principal.person,
    )


def _recipient(channel: str, to: str) -> str:
    policy = POLICIES.get(channel)
    by_phone = policy is not None and AddressKind.PHONE in policy.addresses
    return recipient_at("/to", channel, to) if by_phone else to
