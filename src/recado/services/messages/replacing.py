"""Sending again what failed or was withdrawn: what may be replaced, and the draft that takes its place (C15.4).

The new message passes every rule of acceptance; content, recipient, campaign and metadata are those of the old one.
"""

from datetime import datetime

import orjson

from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import IdSource, created_at
from recado.domain.core.masking import is_masked
from recado.domain.core.retention import CONTENT_MONTHS, months_before
from recado.domain.messages.message import CLASSES
from recado.services.messages.draft import Again, MessageDraft
from recado.storage.core.audit import entry_of
from recado.storage.messages.replacements import REPLACEABLE, Replacement


def draft_again(
    again: Again, *, sent_by: tuple[str, str] | None = None, key_hash: bytes | None, fingerprint: bytes | None
) -> MessageDraft:
    """The draft of a message like the old one, to leave at once: without its schedule and without force.

    `sent_by`: account and name of the person who sends it now.
    """
    old = again.old
    return MessageDraft(
        organization_id=old.organization_id,
        env=old.env,
        channel=old.channel,
        sender_id=old.sender_id or "",
        to=old.recipient,
        type=old.type,
        priority=CLASSES[old.klass],
        template_id=old.template_id,
        template_vars=None if old.template_vars is None else orjson.loads(old.template_vars),
        payload=None if old.payload is None else orjson.loads(old.payload),
        contact_id=old.contact_id,
        campaign_id=old.campaign_id,
        metadata=None if old.metadata is None else orjson.loads(old.metadata),
        key_hash=key_hash,
        fingerprint=fingerprint,
        again=again,
        sent_by=sent_by,
        units=old.units,
        details=old.details,
    )


def replacement(again: Again, new_id: str, ids: IdSource) -> Replacement:
    """The row of `new_id` takes the place of the old one, and the audit says so."""
    old = again.old
    entry = entry_of(
        ids,
        again.by,
        "message.reprocess",
        organization_id=old.organization_id,
        env=old.env,
        target_id=old.id,
        details={"status": old.status, "replacedBy": new_id},
    )
    return Replacement(
        old.organization_id,
        old.env,
        old.channel,
        old.id,
        new_id,
        again.include_uncertain,
        entry,
        old.batch_id,
        old.contact_id,
    )


def check_replaceable(again: Again, now: datetime) -> None:
    """Raise 409 unless the old one is an outbound message that failed or was archived and has no replacement.

    One that may have left is replaced only when the caller takes the risk; one of more than 12 months has lost its
    content (C32), one that was sent directly never had it stored (C10.2), and one whose contact was deleted has lost
    its recipient (422).
    """
    old = again.old
    if old.replaced_by is not None:
        raise already_replaced(old.replaced_by)
    if old.direction != "outbound" or old.status not in REPLACEABLE:
        raise conflict("INVALID_STATE", "Only a failed or archived message can be sent again.", status=old.status)
    if created_at(old.id) < months_before(now, CONTENT_MONTHS):
        raise conflict(
            "INVALID_STATE",
            "The content of a message is kept for 12 months: this one has none any more.",
            status=old.status,
        )
    if POLICIES[old.channel].direct:
        raise conflict(
            "INVALID_STATE",
            "The content of a message on this channel is not kept: send it as a new message.",
            status=old.status,
        )
    if not again.include_uncertain and old.uncertain:
        raise conflict(
            "INVALID_STATE",
            "The message may have left: its outcome is unknown. Set `includeUncertain` to send it again anyway.",
            status=old.status,
            uncertain=True,
        )
    if is_masked(old.recipient):
        raise Problem("RECIPIENT_MISSING", "The recipient of the message was deleted with its contact.")


def already_replaced(replaced_by: str | None = None) -> Problem:
    """409; `replaced_by` where it is known."""
    known = {} if replaced_by is None else {"replacedBy": replaced_by}
    return conflict("ALREADY_REPLACED", "The message was sent again before: `meta` names the new one.", **known)
