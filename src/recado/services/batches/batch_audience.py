"""Lists and segments as audiences: found when a batch is accepted, read block by block while it is made (C15.5).

Who may be sent to is asked when a block becomes messages, not when it is read: a batch may rest in between for days.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from recado.domain.batches.batch import BLOCK
from recado.domain.billing.prices import region_of
from recado.domain.channels.policies import address_kind
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable, field_refused
from recado.domain.core.ids import CONTACT, LIST, SEGMENT, lowest_id
from recado.domain.core.json_text import json_or_none
from recado.domain.core.references import reference_not_found
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.batch_rules import ELSEWHERE
from recado.services.batches.channel_batches import BatchTerms, Misfit, RenderedContent
from recado.storage.audience import lists, segments
from recado.storage.audience.segment_evaluation import ADDRESSES, Evaluation
from recado.storage.batches import audiences, batches
from recado.storage.batches.audiences import Audience
from recado.storage.batches.batch_making import PendingBlock
from recado.storage.batches.batch_rows import MessageKind
from recado.storage.batches.batches import BatchKey
from recado.storage.core.connections.postgres import Database
from recado.storage.messages.chat_windows import WINDOW

log = structlog.get_logger()

READ_AT_ONCE = 5 * BLOCK  # contacts: a filter costs as much for one block as for a few
_WINDOW_CLOSED = "WINDOW_CLOSED"


@dataclass(frozen=True, slots=True)
class Addressed:
    """Who gets a batch. `count`: how many were asked for; `regions`: how many of them can be reached where."""

    audience: Audience
    count: int
    regions: Mapping[str, int]


class Audiences:
    """Finds and reads them; `evaluation` keeps that from taking the server."""

    def __init__(self, db: Database, evaluation: Evaluation, *, clock: Clock) -> None:
        self._db = db
        self._evaluation = evaluation
        self._clock = clock

    async def of(self, draft: BatchDraft, terms: BatchTerms) -> Addressed:
        """Whom a draft names by list or segment.

        Raises `Problem` for one that does not exist, has nobody, or lacks what every message needs, and on a channel
        whose addresses no contact has.
        """
        kind = address_kind(draft.channel)
        if kind not in ADDRESSES:
            paths = [name for name, given in (("/listId", draft.list_id), ("/segmentId", draft.segment_id)) if given]
            raise field_refused("AUDIENCE_INVALID", paths[0], f"Channel {draft.channel} takes `recipients` only.")
        now = self._clock.now()
        key = (draft.organization_id, draft.env)
        list_id, tree, members = draft.list_id, None, 0
        if list_id is not None:
            found = await lists.get(self._db, *key, list_id)
            if found is None:
                raise reference_not_found("listId", LIST, list_id, draft.env)
            members = found.size
        else:
            segment = await segments.get(self._db, *key, draft.segment_id or "")
            if segment is None:
                raise reference_not_found("segmentId", SEGMENT, draft.segment_id or "", draft.env)
            tree = segment.tree
        usual = terms.usual
        if isinstance(usual, Misfit):
            raise field_refused(usual.code, f"/{terms.member}", usual.message)
        audience = Audience(
            before_id=lowest_id(CONTACT, now),
            list_id=list_id,
            tree=tree,
            template_vars=usual if isinstance(usual, str) else None,
            metadata=json_or_none(draft.metadata),
            units=usual.units if isinstance(usual, RenderedContent) else 1,
            details=usual.details if isinstance(usual, RenderedContent) else None,
        )
        addressed = Addressed(audience, *await self._evaluation.reach(*key, audience, now, members=members, kind=kind))
        if not addressed.count:
            field = "segmentId" if list_id is None else "listId"
            raise field_refused("EMPTY_AUDIENCE", f"/{field}", "The audience is empty: no contact is in it.")
        return addressed

    async def read(self, key: BatchKey) -> int | None:
        """Keep the next contacts of a batch's audience as blocks; answers the blocks left, None when none were read."""
        unread = await audiences.of_batch(self._db.hot, key)
        if unread is None:
            return None
        organization_id, env, batch_id = key
        now = self._clock.now()
        try:
            reached = await self._evaluation.next_of(
                organization_id,
                env,
                unread.audience,
                now,
                after_id=unread.after_id,
                limit=READ_AT_ONCE,
                kind=address_kind(unread.channel),
            )
        except Unavailable:
            log.warning("audience_not_read", batch_id=batch_id)
            return None
        try:
            async with self._db.hot.transaction() as connection:
                blocks_left = await audiences.keep(connection, key, unread, reached, now)
                if blocks_left is None:
                    raise BatchMoved
        except BatchMoved:
            return None
        return blocks_left

    async def allowed(self, pending: PendingBlock, kinds: Sequence[MessageKind]) -> tuple[PendingBlock, dict[str, int]]:
        """The block without contacts that must not be sent to now, and how many were left out for which reason.

        `kinds`: as what the message of each recipient leaves.
        """
        recipients = pending.recipients
        if recipients.contact_ids is None:
            return pending, {}
        named = {place: each for place, each in enumerate(recipients.contact_ids) if each is not None}
        refused = await self._refused(pending, named, kinds)
        if not refused:
            return pending, {}
        places = [place for place in range(len(recipients)) if place not in refused]
        return replace(pending, recipients=recipients.only(places)), dict(Counter(refused.values()))

    async def _refused(
        self, pending: PendingBlock, named: Mapping[int, str], kinds: Sequence[MessageKind]
    ) -> dict[int, str]:
        """Those of the contacts that must not be sent to, by place."""
        recipients, count = pending.recipients, len(pending.recipients)
        asked = [
            (contact_id, _consent_asked(kinds[place]), recipients.phones[place]) for place, contact_id in named.items()
        ]
        kind = address_kind(pending.channel)
        async with self._db.hot.transaction() as connection:
            found = await audiences.refusals(connection, pending.organization_id, pending.env, kind, asked)
        places = list(named)
        refused = {places[index]: reason for index, reason in found.items()}
        for place in named:
            region = kinds[place].region
            if region is not None and region_of(recipients.phones[place]) != region:
                refused.setdefault(place, ELSEWHERE)
        numbers = recipients.sender_ids or [pending.sender_id or ""] * count
        free_form: dict[str, list[int]] = {}
        for place in named:
            if kinds[place].obeys.window:
                free_form.setdefault(numbers[place], []).append(place)
        since = self._clock.now() - WINDOW
        for sender_id, those in free_form.items():
            hashes = [recipients.hashes[place] for place in those]
            inside = await batches.with_open_window(self._db.hot, pending.organization_id, sender_id, hashes, since)
            for place in those:
                if recipients.hashes[place] not in inside:
                    refused.setdefault(place, _WINDOW_CLOSED)
        return refused


def _consent_asked(kind: MessageKind) -> int:
    """As the statement takes it: not for consent, whether one refused, or also for a grant where that is wanted."""
    return 0 if not kind.obeys.consent else 1 + kind.asks_grant


class BatchMoved(Exception):
    """The batch was paused or canceled while a part of it was read or made: that part is undone."""
