"""Inbound messages: each once, of the contact that wrote it, and what they say of consent, in one transaction (C28)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby

import orjson

from recado.channels.core.events import Inbound, Preference
from recado.domain.channels.address import Address, AddressKind, is_user_id, reported
from recado.domain.channels.policies import POLICIES, heard_as
from recado.domain.channels.source import Source
from recado.domain.contacts.keywords import Keyword, keyword_of, written
from recado.domain.core.clock import Clock
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.links.origin import codes_in
from recado.domain.media.media_types import LONGEST_TYPE, safe_filename
from recado.domain.media.showing import OCTETS
from recado.domain.messages.changes import OnChange
from recado.domain.messages.message import MessageStatus
from recado.services.contacts.consents import Gathered
from recado.services.inbound.account_owners import AccountOwner
from recado.services.inbound.inbound_contacts import BY_PROVIDER, Heard, InboundContacts, KnownContact, consent_of
from recado.services.inbound.mail_returns import MailReturns
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.contacts import inbound_contacts, opt_out_replies, social_identities
from recado.storage.contacts.inbound_contacts import Person
from recado.storage.contacts.inbound_contacts import User as NamedUser
from recado.storage.contacts.opt_out_replies import Owed
from recado.storage.contacts.social_identities import User
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.core.turn import others_run
from recado.storage.links import origin_links
from recado.storage.media import inbound_media
from recado.storage.media.inbound_media import Expected
from recado.storage.messages import receipts
from recado.storage.messages.receipts import InboundRow

_HEARD_AT_ONCE = 20  # texts that are read for keywords, some milliseconds


@dataclass(frozen=True, slots=True)
class Came:
    """A message that came, not stored yet. `event`: as it was told; `also`: with whom its owner shares the sender."""

    source: Source
    event: Inbound = field(repr=False)
    address: Address
    row: InboundRow
    also: Sequence[AccountOwner] = ()

    @property
    def written(self) -> str | None:
        """The words that may be a keyword."""
        return written(self.event.type, self.event.payload)

    @property
    def codes(self) -> list[tuple[str, str, str]]:
        """The codes of origin links that its text holds, each with its organization and sender (C27.4)."""
        text = self.written if self.event.type == "text" else None
        return [] if text is None else [(self.row.organization_id, self.row.sender_id, each) for each in codes_in(text)]

    @property
    def media(self) -> Expected | None:
        """What is to be copied of it (C8.3.1)."""
        row, reference = self.row, self.event.media_ref
        if reference is None or row.type != "media":
            return None
        said = self.event.payload.get("media")
        said = said if isinstance(said, Mapping) else {}
        given = (said.get(name) for name in ("mime_type", "mimeType"))
        mime_type = next((each for each in given if isinstance(each, str) and each), OCTETS)[:LONGEST_TYPE]
        name = said.get("filename")
        filename = safe_filename(name) if isinstance(name, str) else None
        return Expected(
            row.organization_id, row.env, row.channel, row.id, row.sender_id, reference, mime_type, filename or None
        )

    def person_of(self, organization_id: str) -> Person | None:
        """As whose contact it may be known; None: such an address alone makes nobody one, as a contact has a phone."""
        return _person(organization_id, self.row.env, self.address)


class InboundMessages:
    """Takes them in. After the commit `changed` hears of queued deliveries, `owing` that answers are owed (C28.3)."""

    def __init__(
        self,
        *,
        organizations: OrganizationDirectory,
        clock: Clock,
        ids: IdSource,
        keys: KeyRing,
        changed: OnChange,
        owing: AfterCommit,
        simulator_domain: str,
    ) -> None:
        self._organizations = organizations
        self._clock = clock
        self._ids = ids
        self._owing = owing
        self._contacts = InboundContacts(ids=ids, keys=keys, changed=changed)
        self.returns = MailReturns(ids=ids, keys=keys, changed=changed, simulator_domain=simulator_domain)

    def read(self, source: Source, owners: Sequence[AccountOwner], event: Inbound) -> Came | None:
        """What came to these owners' sender; None without any, and when whoever wrote has no address of the channel."""
        address = address_told(source, event.sender)
        if address is None or not owners:
            return None
        owner, *others = owners
        row = InboundRow(
            owner.organization_id,
            source.env,
            heard_as(source.channel),
            self._ids.new(MESSAGE),
            owner.sender_id,
            address.text,
            address.recipient_hash(owner.organization_id),
            event.type,
            None if POLICIES[source.channel].direct else orjson.dumps(event.payload).decode(),
            event.provider_message_id,
            min(event.at, self._clock.now()),
        )
        return Came(source, event, address, row, others)

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
        people = await _people(connection, fresh)
        users = [each for each in fresh if each.address.kind is AddressKind.SCOPED_USER and each.row.id not in people]
        heard: dict[str, Heard] = {}
        for number, each in enumerate(fresh):
            if number % _HEARD_AT_ONCE == _HEARD_AT_ONCE - 1:
                await others_run()
            if each.row.id in people:
                heard[each.row.id] = await self._heard(each, people[each.row.id])
        known = await self._contacts.know(connection, [*heard.values()], now, gathered)
        heard = {message_id: each for message_id, each in heard.items() if each.person in known}
        contacts = {message_id: known[each.person] for message_id, each in heard.items()}
        origins = await _origins(connection, fresh, now)
        rows = [
            replace(
                each.row,
                contact_id=contacts[each.row.id].contact.id if each.row.id in contacts else None,
                link_origin=origins.get(each.row.id),
            )
            for each in fresh
        ]
        await receipts.store_inbound(connection, rows, now)
        if with_media := [expected for each in fresh if (expected := each.media) is not None]:
            await inbound_media.expect(connection, with_media, now)
        gathered.moved += await self._received(connection, fresh, contacts, origins)
        await self._contacts.obey(connection, [*heard.values()], known, now, gathered)
        if users:
            await self._hear_users(connection, users, now, gathered)
        await self._refuse_elsewhere(connection, fresh, now, gathered)
        owed = [
            Owed(row.organization_id, row.env, each.source.channel, row.contact_id, row.sender_id, now)
            for each, row in zip(fresh, rows, strict=True)
            if row.contact_id is not None and heard[row.id].opts_out and await self._answers(each)
        ]
        if owed:
            await opt_out_replies.owe(connection, owed)
            gathered.after.append(self._owing)
        return gathered

    async def _hear_users(self, connection: Executor, wrote: Sequence[Came], now: datetime, gathered: Gathered) -> None:
        """The keywords of people without a phone, who are nobody's contact (C28.6)."""
        heard = [
            await self._heard(each, _user_of(each.row.organization_id, each.source.env, each.address)) for each in wrote
        ]
        spoken = [each for each in heard if each.keyword is not None]
        if spoken:
            await self._contacts.hear_users(connection, spoken, now, gathered)

    async def _refuse_elsewhere(
        self, connection: Executor, fresh: Sequence[Came], now: datetime, gathered: Gathered
    ) -> None:
        """An opt-out to a sender that organizations share is one at each that sent there (C28.1), by its own words."""
        refusals = []
        for each in fresh:
            for owner in each.also:
                keyword = await self._keyword(owner.organization_id, each.written)
                person = each.person_of(owner.organization_id)
                if person is not None and keyword is not None and keyword.opts_out:
                    refusals.append((person, consent_of(each.row.channel, keyword)))
        if refusals:
            await self._contacts.refuse(connection, refusals, now, gathered)

    async def refuse(
        self,
        connection: Executor,
        source: Source,
        refusals: Sequence[tuple[Sequence[AccountOwner], Preference]],
        gathered: Gathered,
    ) -> None:
        """Record who told the provider to stop: each with the owners of the sender that it is about (C28.4).

        Who lets messages through again at the provider has not consented to any.
        """
        stopped = [
            (owner, address)
            for owners, each in refusals
            if each.stopped and (address := address_told(source, each.phone)) is not None
            for owner in owners
        ]
        people = [
            person
            for owner, address in stopped
            if (person := _person(owner.organization_id, source.env, address)) is not None
        ]
        social = [
            (owner.organization_id, source.env, owner.sender_id, address.text)
            for owner, address in stopped
            if address.kind is AddressKind.SOCIAL
        ]
        people += (await social_identities.people(connection, social)).values()
        users = [
            _user_of(owner.organization_id, source.env, address)
            for owner, address in stopped
            if address.kind is AddressKind.SCOPED_USER
        ]
        known = await inbound_contacts.of_users(connection, users)
        people += known.values()
        strangers = [(user, BY_PROVIDER) for user in users if user not in known]
        if people or strangers:
            refused = [(person, BY_PROVIDER) for person in people]
            await self._contacts.refuse(connection, refused, self._clock.now(), gathered, users=strangers)

    async def _heard(self, came: Came, person: Person) -> Heard:
        row = came.row
        keyword = await self._keyword(row.organization_id, came.written)
        kind, told = came.address.kind, came.event.user_id
        by_phone = kind is AddressKind.PHONE
        name = came.event.profile_name if by_phone or kind is AddressKind.SCOPED_USER else None
        user_id = told if by_phone and told is not None and is_user_id(told) else None
        return Heard(person, row.channel, row.at, name, keyword, creates=by_phone, user_id=user_id)

    async def _keyword(self, organization_id: str, words: str | None) -> Keyword | None:
        if words is None:
            return None
        organization = await self._organizations.get(organization_id)
        if organization is None:
            return keyword_of(words)
        return keyword_of(words, organization.opt_out_keywords, organization.opt_in_keywords)

    async def _answers(self, came: Came) -> bool:
        """Whether people who opt out there are answered, and the organization has words for that."""
        if not POLICIES[came.source.channel].answers_opt_outs:
            return False
        organization = await self._organizations.get(came.row.organization_id)
        return organization is not None and organization.opt_out_reply is not None

    async def _received(
        self,
        connection: Executor,
        fresh: Sequence[Came],
        contacts: Mapping[str, KnownContact],
        origins: Mapping[str, str],
    ) -> list[Moved]:
        """The moves of new messages, each with what `message.received` says besides (C23.6).

        That is its contact, the link that brought it, by `origins`, and what it answers.
        """
        quoted = await _quoted(connection, [each for each in fresh if each.event.quoted is not None])
        moved = []
        told_as_new: set[str] = set()
        for each in fresh:
            row, known = each.row, contacts.get(each.row.id)
            told: dict[str, object] = {"contact": None}
            if known is not None:
                contact_id = known.contact.id
                told["contact"] = {"id": contact_id, "created": known.created and contact_id not in told_as_new}
                told_as_new.add(contact_id)
            if row.id in origins:
                told["origemDoLink"] = orjson.Fragment(origins[row.id])
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


async def _origins(connection: Executor, fresh: Sequence[Came], now: datetime) -> dict[str, str]:
    """Which links brought these messages, by their ids: the first message with a code uses it up (C27.4)."""
    brought = {each.row.id: codes for each in fresh if (codes := each.codes)}
    if not brought:
        return {}
    told = await origin_links.use_up(connection, [code for codes in brought.values() for code in codes], now)
    found = {}
    for message_id, codes in brought.items():
        origins = [told.pop(code) for code in codes if code in told]
        if origins:
            found[message_id] = origins[0]
    return found


async def _quoted(connection: Executor, quoting: Sequence[Came]) -> dict[str, str]:
    """What messages answer, by their ids: one of the organization's own, that it sent or that came before."""
    if not quoting:
        return {}
    keys = {each.row.id: (each.row.organization_id, each.row.sender_id, each.event.quoted or "") for each in quoting}
    came = await receipts.inbound_quoted(connection, sorted(set(keys.values())))
    found = {message_id: came[key] for message_id, key in keys.items() if key in came}
    for source, some in groupby(sorted(quoting, key=_source), key=_source):
        asking = [each for each in some if each.row.id not in found]
        asked: list[tuple[str, str | None]] = [(each.event.quoted or "", each.event.account) for each in asking]
        for each, named in zip(asking, await receipts.messages_named(connection, source, asked), strict=True):
            if named is not None and named.organization_id == each.row.organization_id:
                found[each.row.id] = named.id
    return found


def _source(came: Came) -> Source:
    return came.source


def address_told(source: Source, told: str) -> Address | None:
    """The address that a source tells of a person; None when it is none of its channel."""
    return reported(told, POLICIES[source.channel].addresses)


def _person(organization_id: str, env: str, address: Address) -> Person | None:
    return (organization_id, env, address.text) if address.kind is AddressKind.PHONE else None


def _user_of(organization_id: str, env: str, address: Address) -> NamedUser:
    return (organization_id, env, address.text)


async def _people(connection: Executor, came: Sequence[Came]) -> dict[str, Person]:
    """As whose contact the writers of messages may be known, by the ids of these; the others are nobody's."""
    found: dict[str, Person] = {}
    users: dict[str, User] = {}
    for each in came:
        row = each.row
        if each.address.kind is AddressKind.SOCIAL:
            users[row.id] = (row.organization_id, row.env, row.sender_id, each.address.text)
        elif (person := each.person_of(row.organization_id)) is not None:
            found[row.id] = person
    known = await social_identities.people(connection, [*users.values()])
    found |= {message_id: known[user] for message_id, user in users.items() if user in known}
    named = {
        each.row.id: _user_of(each.row.organization_id, each.row.env, each.address)
        for each in came
        if each.address.kind is AddressKind.SCOPED_USER
    }
    contacts = await inbound_contacts.of_users(connection, [*named.values()])
    return found | {message_id: contacts[user] for message_id, user in named.items() if user in contacts}
