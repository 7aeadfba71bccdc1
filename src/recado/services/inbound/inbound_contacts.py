"""Who writes: the contact of each inbound message, found or created, and what its keywords change (C28.1 to C28.4).

Everything is written in the transaction of the messages, many at a time; what follows of moves of queued messages is
left to the caller, who writes it once, after all rows are locked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from recado.domain.contacts.consent import (
    MOST_REASON,
    ConsentChange,
    ConsentStatus,
    ConsentUpdate,
    OptOutEntry,
    decide,
    readdressed,
)
from recado.domain.contacts.contact import MOST_NAME, Contact, ContactSource, consent_columns
from recado.domain.contacts.keywords import KEYWORD_SOURCE, OWN_SOURCES, PROVIDER_SOURCE, Keyword
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT, IdSource, created_at
from recado.domain.core.phones import phone_hash
from recado.domain.messages.changes import OnChange
from recado.services.contacts import contact_events
from recado.services.contacts.consents import ConsentChanged, Consents, Gathered, address_of
from recado.storage.contacts import contacts, inbound_contacts, opt_outs
from recado.storage.contacts.inbound_contacts import Person, User, person_of
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.audit import SYSTEM
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor

_LATER = timedelta(microseconds=1)
BY_PROVIDER: Final = ConsentChange(ConsentStatus.DENIED, source=PROVIDER_SOURCE)
_TRIES = 3  # a contact that is deleted while we look for it is created by the next try


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a person: where and when, what the person is called there, and the keyword that it is.

    `creates`: who is no contact becomes one; else the person is known by an identity alone, which a deletion takes.
    `user_id`: by which the chat app names the person besides the phone.
    """

    person: Person
    channel: str
    at: datetime
    profile_name: str | None = field(default=None, repr=False)
    keyword: Keyword | None = None
    creates: bool = True
    user_id: str | None = field(default=None, repr=False)

    @property
    def opts_out(self) -> bool:
        return self.keyword is not None and self.keyword.opts_out


@dataclass(slots=True)
class KnownContact:
    """A person's contact in this transaction; `created`: by it."""

    contact: Contact
    created: bool = False


class InboundContacts:
    """Finds, creates and changes them. `changed` hears of queued deliveries; `keys`: of the phones in events."""

    def __init__(self, *, ids: IdSource, keys: KeyRing, changed: OnChange) -> None:
        self._ids = ids
        self._keys = keys
        self._changed = changed

    async def know(
        self, connection: Executor, heard: Sequence[Heard], now: datetime, gathered: Gathered
    ) -> dict[Person, KnownContact]:
        """The contacts of everybody who wrote, locked, with last interaction and profile name as of now.

        Who is not there, and is not to be created, is missing in the answer.
        """
        last: dict[Person, Heard] = {}
        for each in heard:
            before = last.get(each.person)
            if before is not None:
                each = replace(
                    each,
                    at=max(before.at, each.at),
                    profile_name=each.profile_name or before.profile_name,
                    creates=each.creates or before.creates,
                    user_id=each.user_id or before.user_id,
                )
            last[each.person] = each
        known = {
            person: KnownContact(each) for person, each in (await inbound_contacts.locked(connection, [*last])).items()
        }
        for _ in range(_TRIES):
            missing = [each for person, each in last.items() if person not in known and each.creates]
            if not missing:
                break
            known |= await self._create(connection, missing, now, gathered)
        else:
            raise Unavailable("The contact is being changed by others: try again shortly.")
        heard = [each for each in heard if each.person in known]
        last = {person: each for person, each in last.items() if person in known}
        for channel, wrote in _by_channel(heard).items():
            await inbound_contacts.touch(
                connection, channel, [(known[person].contact, at) for person, at in wrote.items()]
            )
        await self._identify(connection, last, known, now, gathered)
        renamed = [
            (known[person].contact, name)
            for person, each in last.items()
            if (name := _name(each)) is not None and name != known[person].contact.chatapp_profile_name
        ]
        for contact in await inbound_contacts.rename(connection, renamed, now):
            known[person_of(contact)].contact = contact
        return known

    async def obey(
        self,
        connection: Executor,
        heard: Sequence[Heard],
        known: dict[Person, KnownContact],
        now: datetime,
        gathered: Gathered,
    ) -> None:
        """Opt out and in as the keywords say, each person's in their order."""
        consents = Consents(self._ids, gathered, self._changed, self._keys)
        spoken = _in_time([each for each in heard if each.keyword is not None], known)
        # A statement for each turn: what a person says later is decided on what was written of the earlier.
        for turn, each_turn in enumerate(_turns(spoken)):
            await self._turn(connection, each_turn, known, now + turn * _LATER, consents, gathered)

    async def _identify(
        self,
        connection: Executor,
        last: Mapping[Person, Heard],
        known: Mapping[Person, KnownContact],
        now: datetime,
        gathered: Gathered,
    ) -> None:
        """Note by which user ids people are known whom the provider named by another one, or none, until now (C28.6).

        A refusal of one name is one of both.
        """
        told = [
            (known[person].contact, each.user_id)
            for person, each in last.items()
            if each.user_id is not None and each.user_id != known[person].contact.chatapp_user_id
        ]
        if not told:
            return
        named = await inbound_contacts.identify(connection, told, now)
        entries = await opt_outs.entries(connection, [_as_user(*_user_of(each)) for each in named])
        refused, changes = [], []
        for contact, entry in zip(named, entries, strict=True):
            if contact.consent.revoked_at is not None:
                refusal = OptOutEntry(contact.consent.revoked_at, contact.consent.source)
                refused.append((_as_user(*_user_of(contact)), refusal))
            decided = readdressed(contact.consent, entry)
            if isinstance(decided, ConsentUpdate):
                after = replace(contact, **consent_columns(decided.after))
                contact = await contacts.save(connection, contact, after, now)
                changes.append(ConsentChanged(contact, decided, SYSTEM))
            known[person_of(contact)].contact = contact
        consents = Consents(self._ids, gathered, self._changed, self._keys)
        gathered.after.append((await consents.record(connection, changes, now, repeated=refused)).committed)

    async def hear_users(
        self, connection: Executor, spoken: Sequence[Heard], now: datetime, gathered: Gathered
    ) -> None:
        """Opt people out and in, in the registry alone, whose `person` is a user id that is no contact's (C28.6).

        What each wrote last counts; opting in takes back nothing but an earlier refusal of their own (C28.3).
        """
        latest = {each.person: each for each in sorted(spoken, key=lambda each: (each.at, each.opts_out))}
        back = sorted(user for user, each in latest.items() if not each.opts_out)
        entries = await opt_outs.entries(connection, [_as_user(*user) for user in back])
        for user, entry in zip(back, entries, strict=True):
            if entry is not None and entry.own and entry.at <= latest[user].at:
                await opt_outs.leave(connection, _as_user(*user), "")
        out = [
            (user, replace(consent_of(each.channel, each.keyword), revoked_at=each.at))
            for user, each in latest.items()
            if each.keyword is not None and each.opts_out
        ]
        if out:
            await self.refuse(connection, (), now, gathered, users=out)

    async def refuse(
        self,
        connection: Executor,
        refused: Sequence[tuple[Person, ConsentChange]],
        now: datetime,
        gathered: Gathered,
        users: Sequence[tuple[User, ConsentChange]] = (),
    ) -> None:
        """Record refusals; of anyone who is no contact, in the registry alone (C28.4). Of several, the first counts.

        `users`: those by user ids that are no contact's.
        """
        consents = Consents(self._ids, gathered, self._changed, self._keys)
        how = dict(reversed(refused))
        known = await inbound_contacts.locked(connection, [*how])
        changes = []
        for person, before in known.items():
            decided = decide(before.consent, how[person], now=now)
            if isinstance(decided, ConsentUpdate):
                after = await contacts.save(connection, before, replace(before, **consent_columns(decided.after)), now)
                changes.append(ConsentChanged(after, decided, SYSTEM))
        strangers = {person: Registrant(*person) for person in sorted(how.keys() - known.keys())}
        strangers |= {user: _as_user(*user) for user, _ in sorted(users)}
        how |= dict(reversed(users))
        entries = await opt_outs.entries(connection, [*strangers.values()])
        new = [person for person, entry in zip(strangers, entries, strict=True) if entry is None]
        fresh = [strangers[person] for person in new]
        entered = [(strangers[each], OptOutEntry(how[each].revoked_at or now, how[each].source)) for each in new]
        await opt_outs.enter(connection, entered)
        events = [
            contact_events.opted_out(
                registrant.organization_id,
                registrant.env,
                None,
                phone=registrant.phone,
                user_id=registrant.user_id,
                source=entry.source,
                at=entry.at,
                reason=how[each].revoked_reason,
            )
            for each, (registrant, entry) in zip(new, entered, strict=True)
        ]
        outcome = await consents.record(connection, changes, now, events=events)
        await consents.withdraw(connection, [found for each in fresh for found in each.recipients()], now, outcome)
        gathered.after.append(outcome.committed)

    async def _turn(
        self,
        connection: Executor,
        heard: Sequence[Heard],
        known: dict[Person, KnownContact],
        now: datetime,
        consents: Consents,
        gathered: Gathered,
    ) -> None:
        people = [known[each.person] for each in heard]
        registered = await opt_outs.entries(connection, [address_of(each.contact) for each in people])
        changes = []
        for each, person, entry in zip(heard, people, registered, strict=True):
            assert each.keyword is not None  # noqa: S101 - those without were left out
            before = person.contact
            sources = [entry.source] if entry is not None else []
            if before.opt_in_status is ConsentStatus.DENIED:
                sources.append(before.opt_in_source)
            if not each.keyword.opts_out and any(source not in OWN_SOURCES for source in sources):
                continue  # an operator or a complaint refused: the person alone does not undo it
            decided = decide(before.consent, consent_of(each.channel, each.keyword), now=now, registered=entry)
            if isinstance(decided, ConsentUpdate):
                after = replace(before, **consent_columns(decided.after))
                person.contact = await contacts.save(connection, before, after, now)
                changes.append(ConsentChanged(person.contact, decided, SYSTEM, registered=entry is not None))
        if changes:
            gathered.after.append((await consents.record(connection, changes, now)).committed)

    async def _create(
        self, connection: Executor, missing: Sequence[Heard], now: datetime, gathered: Gathered
    ) -> dict[Person, KnownContact]:
        """Store who is not known yet; a person whom somebody else stores at the same moment is theirs."""
        new = [self._new(each) for each in missing]
        registered = await opt_outs.entries(connection, [address_of(contact) for contact in new])
        born: dict[str, ConsentUpdate] = {}
        for place, entry in enumerate(registered):
            decided = decide(None, None, now=now, registered=entry)
            if isinstance(decided, ConsentUpdate):
                new[place] = replace(new[place], **consent_columns(decided.after))
                born[new[place].id] = decided
        stored = await contacts.insert(connection, new, unless_opted_out=False)
        created = [contact for contact in new if contact.id in stored]
        consents = Consents(self._ids, gathered, self._changed, self._keys)
        changes = [ConsentChanged(each, born[each.id], SYSTEM) for each in created if each.id in born]
        events = [contact_events.created(each) for each in created]
        gathered.after.append((await consents.record(connection, changes, now, events=events)).committed)
        found = await inbound_contacts.locked(connection, [each.person for each in missing])
        return {person: KnownContact(contact, contact.id in stored) for person, contact in found.items()}

    def _new(self, heard: Heard) -> Contact:
        organization_id, env, phone = heard.person
        contact_id = self._ids.new(CONTACT)
        return Contact(
            organization_id=organization_id,
            env=env,
            id=contact_id,
            phone=phone,
            phone_hash=phone_hash(organization_id, phone),
            chatapp_profile_name=_name(heard),
            chatapp_user_id=heard.user_id,
            source=ContactSource.WEBHOOK.value,
            updated_at=created_at(contact_id),
        )


def _in_time(heard: Sequence[Heard], known: dict[Person, KnownContact]) -> list[Heard]:
    """Without consents that were written before the refusal which they would undo: providers keep to no order.

    A refusal counts whenever it was written. When it was, is known within the block; of an earlier one, only when it
    was recorded: a consent that is older than that, and than what the person wrote since, leaves it as it is.
    """
    refused: dict[Person, datetime] = {}
    kept = []
    for each in heard:
        contact = known[each.person].contact
        before = [at for at in (contact.last_interaction_at, contact.opt_in_revoked_at) if at is not None]
        if each.keyword is not None and each.keyword.opts_out:
            refused[each.person] = max(each.at, refused.get(each.person, each.at))
        elif each.at < refused.get(each.person, each.at) or (len(before) == 2 and each.at < min(before)):
            continue
        kept.append(each)
    return kept


def consent_of(channel: str, keyword: Keyword) -> ConsentChange:
    """What a keyword asks for that was written there."""
    if keyword.opts_out:
        reason = f"{channel}: {keyword.word}"[:MOST_REASON]
        return ConsentChange(ConsentStatus.DENIED, source=KEYWORD_SOURCE, revoked_reason=reason)
    return ConsentChange(ConsentStatus.GRANTED, source=KEYWORD_SOURCE)


def _as_user(organization_id: str, env: str, user_id: str) -> Registrant:
    return Registrant(organization_id, env, user_id=user_id)


def _user_of(contact: Contact) -> User:
    return contact.organization_id, contact.env, contact.chatapp_user_id or ""


def _by_channel(heard: Sequence[Heard]) -> dict[str, dict[Person, datetime]]:
    """When each person wrote last, by channel."""
    found: dict[str, dict[Person, datetime]] = {}
    for each in heard:
        wrote = found.setdefault(each.channel, {})
        wrote[each.person] = max(each.at, wrote.get(each.person, each.at))
    return found


def _name(heard: Heard) -> str | None:
    return (heard.profile_name or "").strip()[:MOST_NAME] or None


def _turns(heard: Sequence[Heard]) -> list[list[Heard]]:
    """In turns in which each person stands once."""
    turns: list[list[Heard]] = []
    spoken: dict[Person, int] = {}
    for each in heard:
        turn = spoken[each.person] = spoken.get(each.person, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(each)
    return turns
