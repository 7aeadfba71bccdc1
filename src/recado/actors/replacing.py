"""Sending again what failed or was withdrawn: what may be replaced, and the draft that takes its place (C15.4).

The new message passes every rule of acceptance; content, recipient, campaign and metadata are those of the old one.
"""

import orjson

from recado.actors.acceptance_rules import MessageDraft
from recado.domain.errors import Problem, conflict
from recado.domain.message import CLASSES, is_uncertain
from recado.storage.message_reads import Message
from recado.storage.replacements import REPLACEABLE, Replacement


def draft_again(
    old: Message, *, include_uncertain: bool, key_hash: bytes | None, fingerprint: bytes | None
) -> MessageDraft:
    """The draft of a message like `old`, to leave at once: without its schedule and without force."""
    return MessageDraft(
        organization_id=old.organization_id,
        env=old.env,
        channel=old.channel,
        number_id=old.number_id or "",
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
        replaces=old,
        include_uncertain=include_uncertain,
    )


def replacement(old: Message, new_id: str, *, include_uncertain: bool) -> Replacement:
    """The row of `new_id` takes the place of `old`."""
    return Replacement(
        old.organization_id, old.env, old.channel, old.id, new_id, include_uncertain=include_uncertain, reprocessed=True
    )


def check_replaceable(old: Message, *, include_uncertain: bool) -> None:
    """Raise 409 unless `old` is an outbound message that failed or was archived and has no replacement.

    One that may have left is replaced only when the caller takes the risk.
    """
    if old.replaced_by is not None:
        raise already_replaced(old.replaced_by)
    if old.direction != "outbound" or old.status not in REPLACEABLE:
        raise conflict("INVALID_STATE", "Only a failed or archived message is sent again.", status=old.status)
    if not include_uncertain and is_uncertain(old.last_error, old.original_error):
        raise conflict(
            "INVALID_STATE",
            "The message may have left: its outcome is unknown. With includeUncertain it is sent again all the same.",
            status=old.status,
            uncertain=True,
        )


def already_replaced(replaced_by: str | None = None) -> Problem:
    """409; `replaced_by` where it is known."""
    known = {} if replaced_by is None else {"replacedBy": replaced_by}
    return conflict("ALREADY_REPLACED", "The message has been replaced by another.", **known)
