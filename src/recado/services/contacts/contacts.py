"""Changes of contacts: edits, refusals, deletion; each one transaction with all that follows (C12.3, C12.5, C12.6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import asyncpg

from recado.domain.contacts.consent import (
    ConsentChange,
    ConsentRefusal,
    ConsentStatus,
    ConsentUpdate,
    OptOutEntry,
    decide,
    readdressed,
    repeated_refusal,
)
from recado.domain.contacts.contact import Contact, consent_columns
from recado.domain.core.errors import not_found
from recado.domain.core.ids import IdSource
from recado.domain.core.refusal_order import body_first
from recado.services.contacts import contact_events
from recado.services.contacts.consents import ConsentChanged, Consents, ContactKey, Outcome, address_of, new_address
from recado.services.contacts.contact_rules import (
    Values,
    changed_contact,
    future_refusal,
    no_such_company,
    refusal_of,
    taken,
)
from recado.storage.audience import lists
from recado.storage.contacts import (
    companies,
    contact_consents,
    contact_erasures,
    contacts,
    debtor_groups,
    opt_outs,
    social_identities,
)
from recado.storage.contacts.debtor_groups import Groups
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.contacts.opt_outs import Refusal, Registrant
from recado.storage.core import audit, idempotency
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.dispatch import withdrawals
from recado.storage.email import suppressions
from recado.storage.journeys import executions
from recado.storage.push import devices as push_devices

Check = Callable[[Contact], None]
"""Raises when the caller does not accept the contact's version."""


_PIECE = 1_000  # contacts in a statement


@dataclass(frozen=True, slots=True)
class OptedOut:
    """What an opt-out did (C12.5.7). `contact_id`: the first that was found; None: the registry alone knows of it.

    `executions`: of journeys, under way in its commit, and ended by it; `withdrawn`: messages.
    """

    contact_id: str | None
    already: bool
    executions: int
    withdrawn: int


class Contacts:
    """The changes. `deleted` is called after a contact's deletion: its messages have something to lose."""

    def __init__(
        self,
        db: Database,
        *,
        ids: IdSource,
        documents: DocumentCipher,
        consents: Consents,
        deleted: Callable[[], None],
    ) -> None:
        self._db = db
        self._ids = ids
        self._documents = documents
        self._consents = consents
        self._deleted = deleted

    async def change(
        self,
        key: ContactKey,
        given: Values,
        change: ConsentChange | None,
        *,
        by: audit.AuditPrincipal,
        now: datetime,
        check: Check,
    ) -> tuple[Contact, Groups]:
        """Apply a PATCH (C12.3); answers the contact and its debt groups as they are now.

        Raises `Problem`: 404; 409 EXTERNAL_ID_TAKEN, SOCIAL_IDENTITY_TAKEN; 412 of `check`; 422 PHONE_IMMUTABLE,
        REFERENCE_NOT_FOUND; the refusals of C12.5.
        """
        async with self._db.transaction() as connection:
            known = await _hold_company(connection, key, given)
            before = await self._locked(connection, key)
            with body_first(lambda: check(before)):
                after = changed_contact(before, given, self._documents)
                if after.company_id != before.company_id and not known:
                    raise no_such_company(after.company_id or "", key[1])
                decided, registered = await self._decide(connection, before, after, change, now)
                if decided is not None:
                    after = replace(after, **consent_columns(decided.after))
                groups = await self._groups(connection, before, given)
                await social_identities.replace(connection, key, before.social_identities, after.social_identities)
            stored = await _save(connection, before, _touched(before, after, given), now)
            changes = [] if decided is None else [ConsentChanged(stored, decided, by, registered=registered)]
            repeat = repeated_refusal(before.consent, change, now=now)
            repeated = [] if repeat is None else [(address_of(stored), repeat)]
            outcome = await self._consents.record(connection, changes, now, repeated=repeated)
        outcome.committed()
        return stored, groups

    async def opt_out(
        self,
        found: Sequence[str],
        address: Registrant,
        change: ConsentChange,
        *,
        by: audit.AuditPrincipal,
        now: datetime,
    ) -> OptedOut:
        """Record a refusal of the contacts with these ids, or of `address` alone when there is none (C12.5.7).

        However many share the address, they refuse in one transaction, by statements for many.
        Raises `Problem` 422 DATA_DO_CONSENTIMENTO_NO_FUTURO; 404 when nobody is left whose refusal it could be.
        """
        refusal = decide(None, change, now=now)
        if not isinstance(refusal, ConsentUpdate):
            raise future_refusal()
        environment = (address.organization_id, address.env)
        async with self._db.transaction() as connection:
            outcome = Outcome()
            known = await contacts.lock(connection, *environment, found)
            if not known and not address.names():
                raise not_found()  # deleted since it was found: nothing would keep the refusal
            registered = not known and await self._is_registered(connection, address)
            if address.names():
                unheard = not known and not registered
                await self._register(connection, address, refusal, now, outcome, unheard=unheard)
            refused: list[withdrawals.Recipient] = []
            under_way = 0
            for start in range(0, len(known), _PIECE):
                piece = known[start : start + _PIECE]
                changes, repeated = await self._refuse(connection, environment, piece, change, by, now)
                under_way += await executions.of_contacts(
                    connection, *environment, [changed.contact.id for changed in changes]
                )
                refused += await self._consents.note(connection, changes, outcome, repeated=repeated)
            written = address.recipients() if known else []  # an address that a contact had when it was written to
            await self._consents.withdraw(connection, [*refused, *written], now, outcome)
        outcome.committed()
        already = not refused if known else registered
        return OptedOut(known[0] if known else None, already, under_way, outcome.withdrawn)

    async def delete(self, key: ContactKey, *, by: audit.AuditPrincipal, now: datetime, check: Check) -> None:
        """Remove a contact and everything that is its alone (C12.6); its messages lose their content soon after."""
        organization_id, env, contact_id = key
        async with self._db.transaction() as connection:
            # Before the contact is locked: who changes devices has locked them when it counts them for their contacts.
            await push_devices.unlink(connection, organization_id, env, contact_id, now)
            before = await self._locked(connection, key)
            check(before)
            if before.consent.revoked_at is not None:  # the registry may not know its present address yet
                refusal = OptOutEntry(before.consent.revoked_at, before.consent.source)
                await opt_outs.enter(connection, [(address_of(before), refusal)])
            await debtor_groups.remove(connection, organization_id, env, [contact_id])
            await social_identities.forget(connection, key)
            await contact_consents.forget(connection, before)
            await contacts.delete(connection, before)
            await lists.leave(connection, organization_id, env, [contact_id])
            if before.email is not None:
                await suppressions.forget_address(connection, organization_id, env, before.email)
            await contact_erasures.begin(connection, key, now, refused=before.consent.status is ConsentStatus.DENIED)
            await idempotency.erase(connection, *key)
            await audit.write(
                connection, self._ids, by, "contact.delete",
                organization_id=organization_id, env=env, target_id=contact_id,
            )  # fmt: skip
            outcome = Outcome()
            await self._consents.withdraw_deleted(connection, key, now, outcome)
        outcome.committed()
        self._deleted()

    async def _locked(self, connection: Connection, key: ContactKey) -> Contact:
        contact = await contacts.get_locked(connection, *key)
        if contact is None:
            raise not_found()
        return contact

    async def _refuse(
        self,
        connection: Connection,
        environment: tuple[str, str],
        contact_ids: Sequence[str],
        change: ConsentChange,
        by: audit.AuditPrincipal,
        now: datetime,
    ) -> tuple[list[ConsentChanged], list[Refusal]]:
        """Store the refusal of contacts that are locked by this transaction; answers those that did not refuse yet.

        And what the registry is told of the others, which refuse once more.
        """
        refusing, repeated = [], []
        for before in await contacts.by_ids(connection, *environment, contact_ids):
            decided = decide(before.consent, change, now=now)
            if isinstance(decided, ConsentUpdate):
                refusing.append((replace(before, **consent_columns(decided.after)), decided))
            elif (repeat := repeated_refusal(before.consent, change, now=now)) is not None:
                repeated.append((address_of(before), repeat))
        if refusing:
            await contacts.save_many(connection, *environment, [after for after, _ in refusing], now)
        changes = [
            ConsentChanged(replace(after, revision=after.revision + 1, updated_at=now), decided, by)
            for after, decided in refusing
        ]
        return changes, repeated

    async def _decide(
        self, connection: Connection, before: Contact, after: Contact, change: ConsentChange | None, now: datetime
    ) -> tuple[ConsentUpdate | None, bool]:
        """What becomes of the consent, and whether the registry knew the contact, by either address."""
        decided, known = None, False
        if change is not None:
            registered = await opt_outs.entries(connection, [address_of(before), address_of(after)])
            latest = max((entry for entry in registered if entry), key=lambda entry: entry.at, default=None)
            answer = decide(before.consent, change, now=now, registered=latest)
            if isinstance(answer, ConsentRefusal):
                raise refusal_of(answer)
            decided, known = answer, latest is not None
        if decided is None and (address := new_address(before, after)) is not None:
            (entry,) = await opt_outs.entries(connection, [address])
            decided, known = readdressed(before.consent, entry), entry is not None
        return decided, known

    async def _groups(self, connection: Connection, contact: Contact, given: Values) -> Groups:
        key = (contact.organization_id, contact.env, contact.id)
        if "debtor_groups" not in given:
            return (await debtor_groups.of_contacts(connection, key[0], key[1], [contact.id])).get(contact.id, ())
        groups = debtor_groups.with_ids(given["debtor_groups"] or (), self._ids)
        await debtor_groups.remove(connection, key[0], key[1], [contact.id])
        await debtor_groups.insert(connection, key[0], key[1], [(contact.id, groups)])
        return groups

    async def _is_registered(self, connection: Connection, address: Registrant) -> bool:
        (entry,) = await opt_outs.entries(connection, [address])
        return entry is not None

    async def _register(
        self,
        connection: Connection,
        address: Registrant,
        refusal: ConsentUpdate,
        now: datetime,
        outcome: Outcome,
        *,
        unheard: bool,
    ) -> None:
        """Write the registry's entry; `unheard`: nobody was told of it yet, and no contact has the address."""
        source, reason = refusal.after.source, refusal.after.revoked_reason
        await opt_outs.enter(connection, [(address, OptOutEntry(refusal.at, source))])
        if not unheard:
            return
        event = contact_events.opted_out(
            address.organization_id, address.env, None,
            phone=address.phone, user_id=address.user_id, source=source, at=refusal.at, reason=reason,
        )  # fmt: skip
        await self._consents.tell(connection, [event], outcome)
        await self._consents.withdraw(connection, address.recipients(), now, outcome)


async def _hold_company(connection: Connection, key: ContactKey, given: Values) -> bool:
    """Whether the company that the contact shall have is there; none always is.

    Before the contact is locked: anyone who deletes a company locks it, and then its contacts.
    """
    company_id = given.get("company_id")
    return company_id is None or bool(await companies.existing(connection, key[0], key[1], [company_id]))


def _touched(before: Contact, after: Contact, given: Values) -> Contact:
    """The same contact as another value when only its debt groups change: that, too, is a new revision."""
    return replace(after, revision=before.revision + 1) if "debtor_groups" in given else after


async def _save(connection: Connection, before: Contact, after: Contact, now: datetime) -> Contact:
    if after.external_id is None or after.external_id == before.external_id:
        return await contacts.save(connection, before, after, now)
    try:
        async with connection.transaction():  # so that the holder can be looked for
            return await contacts.save(connection, before, after, now)
    except asyncpg.UniqueViolationError:
        key = (before.organization_id, before.env)
        holders = await contacts.by_external_ids(connection, *key, [after.external_id])
        raise taken(by_phone=False, holder=holders[0].id if holders else None) from None
