"""Sending many failed messages again by one request: a batch whose messages are copies of others (C15.4, C15.5).

Each old message is locked and marked in the commit that makes its copy, so that however many ask at once, each is
replaced once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.batches.batch import MAX_RECIPIENTS
from recado.domain.channels.chatapp import POLICY as _POLICY
from recado.domain.channels.chatapp import TEMPLATE
from recado.domain.contacts.consent import refusal_to_send
from recado.domain.core.errors import Unavailable, conflict, field_refused
from recado.domain.core.ids import BATCH, MESSAGE, NUMBER, IdSource, lowest_id
from recado.domain.core.references import reference_not_found
from recado.domain.core.retention import CONTENT_MONTHS, months_before
from recado.domain.messages.message import CLASS_OF, Priority
from recado.domain.templates.template import TemplateCategory
from recado.services.batches.batch_acceptance import AcceptedBatch, BatchAcceptance, ReplayedBatch
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_rules import LeftOut
from recado.services.batches.resend_rules import NOT_FOUND, Surroundings, common, reason_to_skip, skip
from recado.services.messages.chatapp_rules import check_state, held_ms
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.batches import batches
from recado.storage.batches.batch_making import ALREADY_REPLACED, NewBatch
from recado.storage.batches.batch_rows import Recipients
from recado.storage.core.audit import AuditPrincipal, entry_of
from recado.storage.core.postgres import Database
from recado.storage.messages import recipients, resends
from recado.storage.messages.chat_windows import WINDOW
from recado.storage.messages.recipients import RecipientKey
from recado.storage.messages.resends import FailedFilter, Old
from recado.storage.senders.numbers import Number, NumberDirectory
from recado.storage.templates.templates import Template, TemplateDirectory

FILTER = "/filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resend:
    """What a caller wants sent again: these messages, or what failed of a batch or a campaign.

    `sender_id`: the number that sends them now, in place of their own.
    """

    organization_id: str
    env: str
    by: AuditPrincipal
    message_ids: Sequence[str] | None = None
    wanted: FailedFilter | None = None
    sender_id: str | None = None
    include_uncertain: bool = False
    key_hash: bytes | None = None
    fingerprint: bytes | None = None


class Resends:
    """Makes batches of copies."""

    def __init__(
        self,
        db: Database,
        *,
        numbers: NumberDirectory,
        organizations: OrganizationDirectory,
        templates: TemplateDirectory,
        acceptance: BatchAcceptance,
        maker: BatchMaker,
        ids: IdSource,
    ) -> None:
        self._db = db
        self._numbers = numbers
        self._organizations = organizations
        self._templates = templates
        self._acceptance = acceptance
        self._maker = maker
        self._ids = ids

    @property
    def charges(self) -> bool:
        """Whether a resend costs anything here."""
        return self._maker.charges

    async def send(self, resend: Resend) -> AcceptedBatch | ReplayedBatch:
        """Send again what can be. Raises `Problem` for what forbids it as a whole, as that there is nothing to send."""
        replayed = await self._acceptance.replay(resend)
        if replayed is not None:
            return replayed
        new = await self._plan(resend)
        if not new.requested:
            field = "filter" if resend.message_ids is None else "messageIds"
            raise field_refused(
                "EMPTY_AUDIENCE", f"/{field}", "No failed message matches: there is nothing to send again."
            )
        return await self._acceptance.store(new)

    async def estimate(self, resend: Resend) -> NewBatch:
        """The batch that `send` would make, with its price; nothing is stored."""
        new = await self._plan(resend)
        await self._maker.prepare(new)
        return new

    # The plan -------------------------------------------------------------------------------------------------------

    async def _plan(self, resend: Resend) -> NewBatch:
        organization = await self._organizations.get(resend.organization_id)
        if organization is None:
            raise Unavailable  # its key was valid a moment ago
        target = await self._target(resend)
        left_out = LeftOut()
        olds, paths = await self._found(resend, left_out)
        batch_id = self._ids.new(BATCH)
        now = self._ids.moment_of(batch_id)
        first_id = lowest_id(MESSAGE, months_before(now, CONTENT_MONTHS))
        around = await self._surroundings(resend, target, olds, first_id)
        chosen: list[Old] = []
        windows = await self._windows(resend, olds, around, now)
        refused = await self._refused(resend, organization, olds, around)
        for old in olds:
            reason = reason_to_skip(old, around)
            if reason is None and _POLICY.needs_window(old.type) and not _in_window(old, around, windows):
                reason = "WINDOW_CLOSED"
            if reason is None:
                reason = refused.get(old.id)
            if reason is None:
                chosen.append(old)
            else:
                skip(left_out, paths[old.id], reason, old.id, around.number_of(old))
        return self._batch(resend, organization, around, chosen, left_out, batch_id=batch_id, now=now)

    async def _target(self, resend: Resend) -> Number | None:
        if resend.sender_id is None:
            return None
        number = await self._numbers.get((resend.organization_id, resend.env, resend.sender_id))
        if number is None:
            raise reference_not_found("numberId", NUMBER, resend.sender_id, resend.env)
        check_state(number, None)
        return number

    async def _found(self, resend: Resend, left_out: LeftOut) -> tuple[list[Old], Mapping[str, str]]:
        """The messages, and where in the body each stands; what does not exist is skipped."""
        where = (resend.organization_id, resend.env)
        if resend.message_ids is not None:
            paths = {message_id: f"/messageIds/{place}" for place, message_id in enumerate(resend.message_ids)}
            olds = await resends.by_ids(self._db.hot, *where, list(paths))
            known = {old.id for old in olds}
            for message_id, path in paths.items():
                if message_id not in known:
                    skip(left_out, path, NOT_FOUND, message_id)
            return olds, paths
        assert resend.wanted is not None  # noqa: S101 - the body has one of the two
        await self._check_filter(resend, resend.wanted)
        before = await resends.replaced(self._db, *where, resend.wanted)
        olds = await resends.failed(self._db, *where, resend.wanted, MAX_RECIPIENTS + 1)
        if len(olds) > MAX_RECIPIENTS:
            raise conflict(
                "LIMIT_REACHED",
                f"More than {MAX_RECIPIENTS:,} messages failed: narrow the filter by a period, a number or a batch.",
                limit=MAX_RECIPIENTS,
            )
        if before:
            left_out.add(FILTER, ALREADY_REPLACED, f"Sent again before: {before:,}.", count=before)
        return olds, {old.id: FILTER for old in olds}

    async def _check_filter(self, resend: Resend, wanted: FailedFilter) -> None:
        key = (resend.organization_id, resend.env)
        if wanted.batch_id is not None and await batches.get(self._db, (*key, wanted.batch_id)) is None:
            raise reference_not_found("filter.batchId", BATCH, wanted.batch_id, resend.env)
        if wanted.sender_id is not None and await self._numbers.get((*key, wanted.sender_id)) is None:
            raise reference_not_found("filter.numberId", NUMBER, wanted.sender_id, resend.env)

    async def _surroundings(
        self, resend: Resend, target: Number | None, olds: Sequence[Old], first_id: str
    ) -> Surroundings:
        key = (resend.organization_id, resend.env)
        numbers: dict[str, Number] = {}
        if target is None:
            for sender_id in {old.sender_id for old in olds if old.sender_id is not None}:
                number = await self._numbers.get((*key, sender_id))
                if number is not None:
                    numbers[sender_id] = number
        named = {old.template_id for old in olds if old.template_id is not None}
        by: Mapping[str, str] = {template_id: template_id for template_id in named}
        if target is not None and named:
            by = await resends.counterparts(self._db, *key, named, target.id)
        templates: dict[str, Template] = {}
        for template_id, sent_as in by.items():
            template = await self._templates.get((*key, sent_as))
            if template is not None:
                templates[template_id] = template
        return Surroundings(numbers, templates, target, resend.include_uncertain, first_id)

    async def _windows(
        self, resend: Resend, olds: Sequence[Old], around: Surroundings, now: datetime
    ) -> dict[str, set[int]]:
        """By number: whose window is open."""
        asked: dict[str, list[int]] = {}
        for old in olds:
            number = around.number_of(old)
            if old.recipient_hash is not None and number is not None and _POLICY.needs_window(old.type):
                asked.setdefault(number.id, []).append(old.recipient_hash)
        return {
            sender_id: await batches.with_open_window(
                self._db.hot, resend.organization_id, sender_id, hashes, now - WINDOW
            )
            for sender_id, hashes in asked.items()
        }

    async def _refused(
        self, resend: Resend, organization: Organization, olds: Sequence[Old], around: Surroundings
    ) -> dict[str, str]:
        """Whose contact is gone, or must not be sent what is subject to consent by now, and the code for it (C15.4)."""
        asks = {old.id: _subject_to_consent(around.template_of(old)) for old in olds}
        asking = [old for old in olds if asks[old.id] or old.contact_id is not None]
        where, granted_only = (resend.organization_id, resend.env), organization.require_granted_for_marketing
        asked = [RecipientKey(*where, contact_id=old.contact_id, phone=old.recipient) for old in asking]
        refused = {}
        for old, known in zip(asking, await recipients.find(self._db.hot, asked), strict=True):
            code = None
            if old.contact_id is not None and known.contact_id is None:
                code = "RECIPIENT_MISSING"
            elif asks[old.id]:
                code = refusal_to_send(known.status, registered=known.registered, granted_only=granted_only)
            if code is not None:
                refused[old.id] = code
        return refused

    def _batch(
        self,
        resend: Resend,
        organization: Organization,
        around: Surroundings,
        chosen: Sequence[Old],
        left_out: LeftOut,
        *,
        batch_id: str,
        now: datetime,
    ) -> NewBatch:
        senders = [number for old in chosen if (number := around.number_of(old)) is not None]
        templates = [around.template_of(old) for old in chosen]
        kind, kinds = common([old.type for old in chosen])
        sender_id, sender_ids = common([number.id for number in senders])
        template_id, template_ids = common([template and template.id for template in templates])
        campaign_id, campaign_ids = common([old.campaign_id for old in chosen])
        held = {number.id: held_ms(number, organization, now) for number in senders}
        category = common([template and template.category for template in templates])[0]
        return NewBatch(
            organization_id=resend.organization_id,
            env=resend.env,
            id=batch_id,
            channel=_POLICY.channel,
            sender_id=sender_id if chosen else resend.sender_id,
            type=kind or TEMPLATE,
            template_id=template_id,
            klass=CLASS_OF[Priority.BULK],
            campaign_id=campaign_id,
            ttl_ms=_ttl_ms(category),
            held_base_ms=0 if sender_id is None else held[sender_id],
            accepted_at=now,
            requested=len(chosen) + left_out.count,
            recipients=Recipients(
                [old.recipient for old in chosen],
                [old.recipient_hash for old in chosen if old.recipient_hash is not None],  # of each: see reason_to_skip
                [old.template_vars for old in chosen],
                [old.metadata for old in chosen],
                kinds,
                template_ids,
                [old.payload for old in chosen],
                [old.id for old in chosen],
                sender_ids,
                campaign_ids,
                None if sender_ids is None else [held[number.id] for number in senders],
                [old.contact_id for old in chosen] if any(old.contact_id for old in chosen) else None,
            ),
            **left_out.columns(),
            created_by_id=resend.by.id,
            key_hash=resend.key_hash,
            fingerprint=resend.fingerprint,
            entry=entry_of(
                self._ids,
                resend.by,
                "message.resend",
                organization_id=resend.organization_id,
                env=resend.env,
                target_id=batch_id,
                details={"requested": len(chosen) + left_out.count, "includeUncertain": resend.include_uncertain},
            ),
        )


def _in_window(old: Old, around: Surroundings, windows: Mapping[str, set[int]]) -> bool:
    number = around.number_of(old)
    return number is not None and old.recipient_hash in windows.get(number.id, ())


def _subject_to_consent(template: Template | None) -> bool:
    return _POLICY.subject_to_consent(None if template is None else template.category)


def _ttl_ms(category: TemplateCategory | None) -> int:
    """Of bulk messages; of codes only when there is nothing else among them."""
    return int(_POLICY.ttl(category, Priority.BULK).total_seconds() * 1000)
