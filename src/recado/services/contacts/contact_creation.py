"""Creates contacts, many of them in one commit, each answered after it (C12.1, C12.5).

Most are one row of one statement. Those that come with a consent, with debt groups or a company, that the opt-out
registry knows, or that somebody is told of, are looked at closely, in a transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recado.domain.contacts.consent import (
    ConsentChange,
    ConsentRefusal,
    ConsentStatus,
    ConsentUpdate,
    OptOutEntry,
    decide,
)
from recado.domain.contacts.contact import Contact, consent_columns
from recado.domain.contacts.debts import DebtGroup
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.services.contacts import contact_events
from recado.services.contacts.consents import ConsentChanged, Consents, Outcome, address_of
from recado.services.contacts.contact_rules import no_such_company, refusal_of, taken
from recado.storage.contacts import companies, contacts, debtor_groups, opt_outs
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.rows import Executor
from recado.storage.webhooks.webhooks import SubscriptionDirectory, Takers

IN_A_COMMIT = 100  # so that the next ones are being read while these are written
COMMITS_IN_FLIGHT = 3


@dataclass(frozen=True, slots=True)
class NewContact:
    """A contact to create. `contact`: its consent is unknown yet; `change`: what was given of it; each group has an id.

    `told`: `contact.created` is an event of it.
    """

    contact: Contact
    by: AuditPrincipal
    change: ConsentChange | None = None
    groups: tuple[DebtGroup, ...] = ()
    told: bool = True

    @property
    def plain(self) -> bool:
        """Whether it is one row and nothing else, as far as is known of it alone."""
        undecided = self.change is None or self.change.status is ConsentStatus.UNKNOWN
        return undecided and not self.groups and self.contact.company_id is None


@dataclass(slots=True)
class _Candidate:
    """One that is looked at closely: what is to be stored, or why not."""

    new: NewContact
    contact: Contact
    changed: ConsentUpdate | None = None
    registered: OptOutEntry | None = None
    problem: Problem | None = None


class ContactCreation:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, *, subscriptions: SubscriptionDirectory, consents: Consents, clock: Clock) -> None:
        self._db = db
        self._subscriptions = subscriptions
        self._consents = consents
        self._clock = clock
        self._batcher: Batcher[NewContact, Contact] = Batcher(
            "contacts", self._run, clock=clock, max_rows=IN_A_COMMIT, concurrency=COMMITS_IN_FLIGHT
        )

    async def start(self) -> None:
        await self._batcher.start()

    async def stop(self) -> None:
        await self._batcher.stop()

    async def create(self, new: NewContact) -> Contact:
        """The contact as it is stored, after the commit.

        Raises `Problem`: 409 PHONE_TAKEN, EXTERNAL_ID_TAKEN; 422 REFERENCE_NOT_FOUND; the refusals of C12.5.
        """
        return await self._batcher.put(new)

    async def examine(self, new: NewContact) -> None:
        """Raise what `create` would refuse in the contact itself; nothing is stored."""
        (candidate,) = await self._candidates(self._db, [new])
        if candidate.problem is not None:
            raise candidate.problem

    async def _run(self, batch: Sequence[NewContact]) -> Sequence[Contact | Exception]:
        done: dict[str, Contact | Exception] = {}
        telling = await self._telling(batch)
        quiet = [new for new in batch if new.plain and not (new.told and _environment(new) in telling)]
        if quiet:
            stored = await contacts.insert(self._db.hot, [new.contact for new in quiet], unless_opted_out=True)
            done = {new.contact.id: new.contact for new in quiet if new.contact.id in stored}
        rest = [new for new in batch if new.contact.id not in done]
        if rest:
            done |= await self._closely(rest)
        return [done[new.contact.id] for new in batch]

    async def _closely(self, batch: Sequence[NewContact]) -> dict[str, Contact | Exception]:
        async with self._db.hot.transaction() as connection:
            results, outcome = await self.within(connection, batch)
        outcome.committed()
        return results

    async def within(
        self, connection: Connection, batch: Sequence[NewContact]
    ) -> tuple[dict[str, Contact | Exception], Outcome]:
        """Create contacts in a transaction, with all that follows; answers each, or why not, by its id.

        The outcome's `committed` is to be called after the commit.
        """
        candidates = await self._candidates(connection, batch)
        fit = [each for each in candidates if each.problem is None]
        if fit:
            await self._store(connection, fit)
        outcome = await self._follow(connection, [each for each in fit if each.problem is None])
        return {each.contact.id: each.problem or each.contact for each in candidates}, outcome

    async def _candidates(self, connection: Executor, batch: Sequence[NewContact]) -> list[_Candidate]:
        """Everyone with the consent that it is born with."""
        now = self._clock.now()
        registered = await opt_outs.entries(connection, [address_of(new.contact) for new in batch])
        unknown = await _without_company(connection, batch)
        found = []
        for new, entry in zip(batch, registered, strict=True):
            candidate = _Candidate(new, new.contact, registered=entry)
            if new.contact.id in unknown:
                candidate.problem = no_such_company(new.contact.company_id or "", new.contact.env)
            else:
                _decide(candidate, now)
            found.append(candidate)
        return found

    async def _store(self, connection: Connection, fit: Sequence[_Candidate]) -> None:
        """Insert; anyone who is not stored learns why, unless an earlier run of this batch has stored it."""
        stored = await contacts.insert(connection, [each.contact for each in fit], unless_opted_out=False)
        left_out = [each for each in fit if each.contact.id not in stored]
        if not left_out:
            return
        holders = await contacts.holders(connection, [each.contact for each in left_out])
        for each in left_out:
            holder, by_phone = holders.get(each.contact.id, (None, True))
            if holder == each.contact.id:
                each.changed = None
                each.new = replace(each.new, groups=(), told=False)
            else:
                each.problem = taken(by_phone, holder)

    async def _follow(self, connection: Connection, stored: Sequence[_Candidate]) -> Outcome:
        for each in stored:
            if each.new.groups:
                owned = [(each.contact.id, each.new.groups)]
                await debtor_groups.insert(connection, each.contact.organization_id, each.contact.env, owned)
        changes = [
            ConsentChanged(each.contact, each.changed, each.new.by, registered=each.registered is not None)
            for each in stored
            if each.changed is not None
        ]
        events = [contact_events.created(each.contact) for each in stored if each.new.told]
        return await self._consents.record(connection, changes, self._clock.now(), events=events)

    async def _telling(self, batch: Sequence[NewContact]) -> set[tuple[str, str]]:
        """The environments in which somebody is told of new contacts."""
        found = set()
        for key in {_environment(new) for new in batch}:
            takers = self._subscriptions.peek(key) or await self._subscriptions.get(key) or Takers({})
            if contact_events.CREATED in takers.by_event:
                found.add(key)
        return found


def _environment(new: NewContact) -> tuple[str, str]:
    return (new.contact.organization_id, new.contact.env)


def _decide(candidate: _Candidate, now: datetime) -> None:
    decided = decide(None, candidate.new.change, now=now, registered=candidate.registered)
    if isinstance(decided, ConsentRefusal):
        candidate.problem = refusal_of(decided)
    elif decided is not None:
        candidate.changed = decided
        candidate.contact = replace(candidate.contact, **consent_columns(decided.after))


async def _without_company(connection: Executor, batch: Sequence[NewContact]) -> set[str]:
    """The ids of those that name a company which does not exist."""
    named: dict[tuple[str, str], list[Contact]] = {}
    for new in batch:
        if new.contact.company_id is not None:
            named.setdefault((new.contact.organization_id, new.contact.env), []).append(new.contact)
    missing: set[str] = set()
    for environment, members in named.items():
        ids = sorted({contact.company_id for contact in members if contact.company_id is not None})
        known = await companies.existing(connection, *environment, ids)
        missing |= {contact.id for contact in members if contact.company_id not in known}
    return missing
