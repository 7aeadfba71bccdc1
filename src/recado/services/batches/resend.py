"""Sending many failed messages again by one request: a batch whose messages are copies of others (C15.4, C15.5).

Each old message is locked and marked in the commit that makes its copy, so that however many ask at once, each is
replaced once.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta

from recado.domain.batches.batch import MAX_RECIPIENTS
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import POLICIES, address_kind, sender_field
from recado.domain.contacts.consent import refusal_to_send
from recado.domain.core.errors import FieldError, conflict, field_refused, validation_error
from recado.domain.core.ids import BATCH, MESSAGE, IdSource, lowest_id
from recado.domain.core.references import reference_not_found
from recado.domain.core.retention import CONTENT_MONTHS, months_before
from recado.domain.messages.message import CLASS_OF, Priority
from recado.engine.turns import in_pieces
from recado.services.batches.batch_acceptance import AcceptedBatch, BatchAcceptance, ReplayedBatch
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_rules import LeftOut
from recado.services.batches.channel_batches import MANY, ChannelBatches, MessageCopy, Misfit
from recado.services.batches.resend_rules import (
    NOT_FOUND,
    RECIPIENT_MISSING,
    WINDOW_CLOSED,
    common,
    not_again,
    reason_to_skip,
    skip,
)
from recado.services.messages.acceptance_rules import no_channel
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.batches import batches
from recado.storage.batches.batch_making import ALREADY_REPLACED, NewBatch
from recado.storage.batches.batch_rows import Recipients
from recado.storage.core.audit import AuditPrincipal, entry_of
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.messages import recipients, resends
from recado.storage.messages.chat_windows import WINDOW
from recado.storage.messages.recipients import RecipientKey, of_address
from recado.storage.messages.resends import FailedFilter, Old

PLANS_AT_ONCE, PLANS_WAITING = 2, 20
"""Resends that are planned at a time, of an organization one, and that wait of each: a plan holds up to ten thousand
messages."""
MOST_BYTES = 32 * 2**20
"""Of content in a plan: ten thousand messages may have 3 KiB each."""
FEW_BYTES = 2**20
"""Of content in a list that needs no such turn."""
_MILLISECOND = timedelta(milliseconds=1)
FILTER = "/filter"
MIXED = "template"  # the type of a batch whose messages have one each, or that has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Resend:
    """What a caller wants sent again: these messages, or what failed of a batch or a campaign.

    `sender_id`: the number that sends them now, in place of their own.
    """

    organization_id: str
    env: str
    channel: str
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
        channels: Mapping[str, ChannelBatches],
        organizations: OrganizationDirectory,
        acceptance: BatchAcceptance,
        maker: BatchMaker,
        ids: IdSource,
    ) -> None:
        self._db = db
        self._channels = channels
        self._organizations = organizations
        self._acceptance = acceptance
        self._maker = maker
        self._ids = ids
        self._plans = FairPlaces(PLANS_AT_ONCE, most_waiting=PLANS_WAITING)

    @property
    def charges(self) -> bool:
        """Whether a resend costs anything here."""
        return self._maker.charges

    async def send(self, resend: Resend) -> AcceptedBatch | ReplayedBatch:
        """Send again what can be. Raises `Problem` for what forbids it as a whole, as that there is nothing to send.

        `Unavailable` where too many plans of the organization wait already.
        """
        replayed = await self._acceptance.replay(resend)
        if replayed is not None:
            return replayed
        async with await self._turn(resend):
            return await self._acceptance.store(await self._whole(resend))

    async def examine(self, resend: Resend) -> None:
        """Raise what `send` refuses in what is asked for; nothing is stored."""
        async with await self._turn(resend):
            await self._whole(resend)

    async def estimate(self, resend: Resend) -> NewBatch:
        """The batch that `send` would make, with its price; nothing is stored. `Unavailable` as `send`."""
        async with await self._turn(resend):
            new = await self._plan(resend)
            await self._maker.prepare(new)
            return new

    async def _turn(self, resend: Resend) -> AbstractAsyncContextManager[None]:
        """One organization has few messages in hand at a time; what a list names is measured before it is read."""
        if resend.message_ids is not None:
            where = (resend.organization_id, resend.env, resend.channel)
            size = await resends.size(self._db.hot, *where, list(set(resend.message_ids)))
            _check_size(size, "The messages hold", "name fewer of them at a time")
            if size <= FEW_BYTES:
                return nullcontext()
        return self._plans.place(resend.organization_id)

    # The plan -------------------------------------------------------------------------------------------------------

    async def _whole(self, resend: Resend) -> NewBatch:
        """The plan of a batch that has somebody in it."""
        new = await self._plan(resend)
        if not new.requested:
            field = "filter" if resend.message_ids is None else "messageIds"
            message = "No failed message matches: there is nothing to send again."
            raise field_refused("EMPTY_AUDIENCE", f"/{field}", message)
        return new

    async def _plan(self, resend: Resend) -> NewBatch:
        organization = await self._organizations.of_caller(resend.organization_id)
        rules = self._channels.get(resend.channel)
        if rules is None:
            raise no_channel(resend.channel, self._channels)
        if resend.sender_id is not None:
            await self._check_sender(rules, resend, "numberId", resend.sender_id)
        left_out = LeftOut()
        olds, paths = await self._found(rules, resend, left_out)
        batch_id = self._ids.new(BATCH)
        now = self._ids.moment_of(batch_id)
        first_id = lowest_id(MESSAGE, months_before(now, CONTENT_MONTHS))
        found: dict[str, MessageCopy | Misfit] = {}
        async for piece in in_pieces(olds, MANY):  # each may have a payload that is read
            found |= await self._copies(resend, rules, organization, piece, first_id=first_id, now=now)
        chosen: list[tuple[Old, MessageCopy]] = []
        for old in olds:
            copy = found[old.id]
            if isinstance(copy, MessageCopy):
                chosen.append((old, copy))
            else:
                skip(left_out, paths[old.id], copy, old.id)
        return self._batch(resend, chosen, left_out, batch_id=batch_id, now=now)

    async def _copies(
        self,
        resend: Resend,
        rules: ChannelBatches,
        organization: Organization,
        olds: Sequence[Old],
        *,
        first_id: str,
        now: datetime,
    ) -> dict[str, MessageCopy | Misfit]:
        """By id: how each of these is sent again, or why not."""
        found: dict[str, MessageCopy | Misfit] = {}
        fit: list[Old] = []
        for old in olds:
            reason = reason_to_skip(old, first_id=first_id, include_uncertain=resend.include_uncertain)
            if reason is None:
                fit.append(old)
            else:
                found[old.id] = not_again(reason)
        found |= await rules.copies((resend.organization_id, resend.env), fit, resend.sender_id, now)
        left = [(old, copy) for old in fit if isinstance(copy := found[old.id], MessageCopy)]
        found |= await self._refused(resend, organization, left)
        return found | await self._outside(resend, left, now)

    async def _check_sender(self, rules: ChannelBatches, resend: Resend, field: str, sender_id: str) -> None:
        """What `field` names exists; what is to send, can."""
        if sender_field(resend.channel) is None:
            message = f"Channel {resend.channel} does not send from numbers."
            raise validation_error([FieldError(f"/{field.replace('.', '/')}", "NOT_ALLOWED", message)])
        where = (resend.organization_id, resend.env)
        await rules.check_sender(where, sender_id, field=field, sends=field == "numberId")

    async def _found(
        self, rules: ChannelBatches, resend: Resend, left_out: LeftOut
    ) -> tuple[list[Old], Mapping[str, str]]:
        """The messages, and where in the body each stands; what does not exist is skipped."""
        where = (resend.organization_id, resend.env, resend.channel)
        if resend.message_ids is not None:
            paths = {message_id: f"/messageIds/{place}" for place, message_id in enumerate(resend.message_ids)}
            olds = await resends.by_ids(self._db.hot, *where, list(paths))
            known = {old.id for old in olds}
            for message_id, path in paths.items():
                if message_id not in known:
                    skip(left_out, path, Misfit(NOT_FOUND, rules.no_such_message), message_id)
            return olds, paths
        assert resend.wanted is not None  # noqa: S101 - the body has one of the two
        await self._check_filter(rules, resend, resend.wanted)
        before = await resends.replaced(self._db, *where, resend.wanted)
        count, size = await resends.measure(self._db, *where, resend.wanted, MAX_RECIPIENTS + 1)
        if count > MAX_RECIPIENTS:
            raise conflict(
                "LIMIT_REACHED",
                f"More than {MAX_RECIPIENTS:,} messages failed: narrow the filter by a period, a number or a batch.",
                limit=MAX_RECIPIENTS,
            )
        remedy = "narrow the filter by a period, a number or a batch, or name the messages"
        _check_size(size, "The messages that failed hold", remedy)
        olds = await resends.failed(self._db, *where, resend.wanted, MAX_RECIPIENTS)
        if before:
            left_out.add(FILTER, ALREADY_REPLACED, f"Sent again before: {before:,}.", count=before)
        return olds, {old.id: FILTER for old in olds}

    async def _check_filter(self, rules: ChannelBatches, resend: Resend, wanted: FailedFilter) -> None:
        key = (resend.organization_id, resend.env)
        if wanted.batch_id is not None and await batches.get(self._db, (*key, wanted.batch_id)) is None:
            raise reference_not_found("filter.batchId", BATCH, wanted.batch_id, resend.env)
        if wanted.sender_id is not None:
            await self._check_sender(rules, resend, "filter.numberId", wanted.sender_id)

    async def _outside(
        self, resend: Resend, left: Sequence[tuple[Old, MessageCopy]], now: datetime
    ) -> dict[str, Misfit]:
        """Those of the messages that need an open window, and have none (C15.2.2)."""
        asked: dict[str, list[Old]] = {}
        for old, copy in left:
            if copy.kind.obeys.window:
                asked.setdefault(copy.sender_id, []).append(old)
        closed: dict[str, Misfit] = {}
        for sender_id, olds in asked.items():
            hashes = [old.recipient_hash for old in olds if old.recipient_hash is not None]
            inside = await batches.with_open_window(
                self._db.hot, resend.organization_id, sender_id, hashes, now - WINDOW
            )
            closed |= {old.id: not_again(WINDOW_CLOSED) for old in olds if old.recipient_hash not in inside}
        return closed

    async def _refused(
        self, resend: Resend, organization: Organization, left: Sequence[tuple[Old, MessageCopy]]
    ) -> dict[str, Misfit]:
        """Whose contact is gone, or must not be sent what is subject to consent by now (C15.4)."""
        where, kind = (resend.organization_id, resend.env), address_kind(resend.channel)
        granted_only = organization.require_granted_for_marketing
        asking = [(old, copy.kind) for old, copy in left if copy.kind.obeys.consent or old.contact_id is not None]
        asked = [
            of_address(*where, kind, old.recipient)
            if kind is AddressKind.EMAIL
            else RecipientKey(*where, contact_id=old.contact_id, phone=old.recipient)
            for old, _ in asking
        ]
        refused = {}
        for (old, of), key, known in zip(asking, asked, await recipients.find(self._db.hot, asked), strict=True):
            code = None
            if key.contact_id is not None and known.contact_id is None:
                code = RECIPIENT_MISSING
            elif of.obeys.consent:
                wants_grant = granted_only and of.asks_grant
                code = refusal_to_send(known.status, registered=known.registered, granted_only=wants_grant)
            if code is not None:
                refused[old.id] = not_again(code)
        return refused

    def _batch(
        self,
        resend: Resend,
        chosen: Sequence[tuple[Old, MessageCopy]],
        left_out: LeftOut,
        *,
        batch_id: str,
        now: datetime,
    ) -> NewBatch:
        olds, copies = [old for old, _ in chosen], [copy for _, copy in chosen]
        kind, kinds = common([old.type for old in olds])
        sender_id, sender_ids = common([copy.sender_id for copy in copies])
        template_id, template_ids = common([copy.template_id for copy in copies])
        campaign_id, campaign_ids = common([old.campaign_id for old in olds])
        usual_ttl = POLICIES[resend.channel].ttl(None, Priority.BULK)
        return NewBatch(
            organization_id=resend.organization_id,
            env=resend.env,
            id=batch_id,
            channel=resend.channel,
            sender_id=sender_id if chosen else resend.sender_id,
            type=kind or MIXED,
            template_id=template_id,
            klass=CLASS_OF[Priority.BULK],
            campaign_id=campaign_id,
            # Of codes only when there is nothing else among them.
            ttl_ms=max((copy.ttl for copy in copies), default=usual_ttl) // _MILLISECOND,
            held_base_ms=0 if sender_id is None else copies[0].held_ms,
            accepted_at=now,
            requested=len(chosen) + left_out.count,
            recipients=Recipients(
                [old.recipient for old in olds],
                [old.recipient_hash for old in olds if old.recipient_hash is not None],  # of each: see reason_to_skip
                [old.template_vars for old in olds],
                [old.metadata for old in olds],
                kinds,
                template_ids,
                [old.payload if copy.payload is None else copy.payload for old, copy in chosen],
                [old.id for old in olds],
                sender_ids,
                campaign_ids,
                None if sender_ids is None else [copy.held_ms for copy in copies],
                [old.contact_id for old in olds] if any(old.contact_id for old in olds) else None,
                None if all(old.units == 1 for old in olds) else [old.units for old in olds],
                [old.details for old in olds] if any(old.details for old in olds) else None,
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


def _check_size(size: int, whose: str, remedy: str) -> None:
    """Raises `Problem` 409 where a plan would hold too many bytes of content."""
    if size > MOST_BYTES:
        message = f"{whose} more than {MOST_BYTES // 2**20} MiB of content: {remedy}."
        raise conflict("LIMIT_REACHED", message, limit=MOST_BYTES)
