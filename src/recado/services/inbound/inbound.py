"""Inbound messages: each once, of the contact that wrote it, and what they say of consent, in one transaction (C28)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import orjson

from recado.channels.core.events import Inbound, Preference
from recado.domain.channels.address import Address, reported
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.source import Source
from recado.domain.contacts.keywords import Keyword, keyword_of, written
from recado.domain.core.clock import Clock
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.messages.changes import OnChange
from recado.domain.messages.message import MessageStatus
from recado.services.contacts.consents import Gathered
from recado.services.inbound.inbound_contacts import Heard, InboundContacts, Known
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.contacts import opt_out_replies
from recado.storage.contacts.inbound_contacts import Person
from recado.storage.contacts.opt_out_replies import Owed
from recado.storage.core.moves import AfterCommit, Moved
from recado.storage.core.rows import Executor
from recado.storage.messages import receipts
from recado.storage.messages.receipts import InboundRow


@dataclass(frozen=True, slots=True)
class Came:
    """A message that came, not stored yet. `quoted`: the provider's id of the message that it answers.

    `account`: at the provider, to which it came.
    """

    source: Source
    account: str
    row: InboundRow
    quoted: str | None
    profile_name: str | None = field(repr=False)
    written: str | None = field(repr=False)

    @property
    def person(self) -> Person:
        return (self.row.organization_id, self.row.env, self.row.sender)


class InboundMessages:
    """Takes them in. After the commit `changed` hears of queued deliveries, `owing` that answers are owed (C28.3)."""

    def __init__(
        self,
        *,
        organizations: OrganizationDirectory,
        clock: Clock,
        ids: IdSource,
        changed: OnChange,
        owing: AfterCommit,
    ) -> None:
        self._organizations = organizations
        self._clock = clock
        self._ids = ids
        self._owing = owing
        self._contacts = InboundContacts(ids=ids, changed=changed)

    def read(self, source: Source, organization_id: str, sender_id: str, event: Inbound) -> Came | None:
        """What came to this sender; None when whoever wrote has no address of the channel."""
        person = _address(source, event.sender)
        if person is None:
            return None
        row = InboundRow(
            organization_id,
            source.env,
            source.channel,
            self._ids.new(MESSAGE),
            sender_id,
            person.text,
            person.recipient_hash(organization_id),
            event.type,
            orjson.dumps(event.payload).decode(),
            event.provider_message_id,
            min(event.at, self._clock.now()),
        )
        return Came(source, event.account, row, event.quoted, event.profile_name, written(event.type, event.payload))

    async def take_in(self, connection: Executor, came: Sequence[Came]) -> Gathered:
        """Store those that did not come before, with what they change; answers the moves to be followed.

        Their order is kept for each person.
        """
        gathered = Gathered()
        new = await receipts.claim_inbound(connection, [each.row for each in came]) if came else set()
        fresh = [each for each in came if each.row.id in new]
        if not fresh:
            return gathered
        now = self._clock.now()
        heard = [Heard(each.person, each.row.at, each.profile_name, await self._keyword(each)) for each in fresh]
        known = await self._contacts.know(connection, heard, now, gathered)
        rows = [replace(each.row, contact_id=known[each.person].contact.id) for each in fresh]
        await receipts.store_inbound(connection, rows, now)
        gathered.moved += await self._received(connection, fresh, known)
        await self._contacts.obey(connection, heard, known, now, gathered)
        owed = [
            Owed(row.organization_id, row.env, row.contact_id or "", row.sender_id, now)
            for row, said in zip(rows, heard, strict=True)
            if said.keyword is not None and said.keyword.opts_out and await self._answers(row.organization_id)
        ]
        if owed:
            await opt_out_replies.owe(connection, owed)
            gathered.after.append(self._owing)
        return gathered

    async def refuse(
        self, connection: Executor, source: Source, refusals: Sequence[tuple[str, Preference]], gathered: Gathered
    ) -> None:
        """Record who told the provider to stop: each with the organization whose number it was (C28.4).

        Who lets messages through again at the provider has not consented to any.
        """
        people = [
            (organization_id, source.env, address.text)
            for organization_id, each in refusals
            if each.stopped and (address := _address(source, each.phone)) is not None
        ]
        if people:
            await self._contacts.refuse(connection, people, self._clock.now(), gathered)

    async def _keyword(self, came: Came) -> Keyword | None:
        if came.written is None:
            return None
        organization = await self._organizations.get(came.row.organization_id)
        if organization is None:
            return keyword_of(came.written)
        return keyword_of(came.written, organization.opt_out_keywords, organization.opt_in_keywords)

    async def _answers(self, organization_id: str) -> bool:
        """Whether the organization has words for people who opt out."""
        organization = await self._organizations.get(organization_id)
        return organization is not None and organization.opt_out_reply is not None

    async def _received(self, connection: Executor, fresh: Sequence[Came], known: dict[Person, Known]) -> list[Moved]:
        """The moves of new messages, each with what `message.received` says of its contact and of what it answers."""
        quoted = await _quoted(connection, [each for each in fresh if each.quoted is not None])
        moved = []
        told_as_new: set[Person] = set()
        for each in fresh:
            row, person = each.row, known[each.person]
            created = person.created and each.person not in told_as_new
            told_as_new.add(each.person)
            told: dict[str, object] = {"contact": {"id": person.contact.id, "created": created}}
            if row.id in quoted:
                told["inReplyTo"] = quoted[row.id]
            moved.append(
                Moved(
                    row.organization_id,
                    row.env,
                    row.channel,
                    row.id,
                    None,
                    MessageStatus.DELIVERED.value,
                    told=orjson.dumps(told).decode(),
                )
            )
        return moved


async def _quoted(connection: Executor, quoting: Sequence[Came]) -> dict[str, str]:
    """What messages answer, by their ids: one of the organization's own, that it sent or that came before."""
    if not quoting:
        return {}
    keys = {each.row.id: (each.row.organization_id, each.row.sender_id, each.quoted or "") for each in quoting}
    came = await receipts.inbound_quoted(connection, sorted(set(keys.values())))
    found = {message_id: came[key] for message_id, key in keys.items() if key in came}
    for source, some in groupby(sorted(quoting, key=_source), key=_source):
        asked = [each for each in some if each.row.id not in found]
        sent = await receipts.messages_named(connection, source, [(each.quoted or "", each.account) for each in asked])
        for each, named in zip(asked, sent, strict=True):
            if named is not None and named[0] == each.row.organization_id:
                found[each.row.id] = named[1]
    return found


def _source(came: Came) -> Source:
    return came.source


def _address(source: Source, told: str) -> Address | None:
    return reported(told, POLICIES[source.channel].addresses)
