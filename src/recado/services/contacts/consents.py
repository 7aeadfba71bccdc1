"""What follows from changes of consent, in their transaction: history, registry, events, queued messages (C12.5).

Anyone who changes a contact's consent (callers, imports, keywords, providers, public pages) ends here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recado.domain.contacts.consent import ConsentUpdate, OptOutEntry
from recado.domain.contacts.contact import Contact, email_key
from recado.domain.core.ids import MESSAGE, IdSource, created_at, lowest_id
from recado.domain.messages.changes import Change, ConsentRefused, DeliveriesQueued, OnChange, WithdrawalsLeft
from recado.domain.messages.withdrawal import Withdrawal, WithdrawalKind
from recado.services.contacts import contact_events
from recado.storage.contacts import contact_consents, opt_outs
from recado.storage.contacts.opt_outs import Refusal, Registrant
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.moves import AfterCommit, Effects, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch import withdrawals
from recado.storage.webhooks.events import RecordEvent, emit_records

ContactKey = tuple[str, str, str]
"""Organization, environment, contact."""

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class ConsentChanged:
    """A change that is stored already: the contact as it is now, what changed, and who changed it.

    `registered`: its phone or address may be in the opt-out registry.
    """

    contact: Contact
    changed: ConsentUpdate
    by: AuditPrincipal
    registered: bool = True


@dataclass(slots=True)
class Outcome:
    """What followed. `committed` tells, after the commit, anyone who must hear of it."""

    withdrawn: int = 0  # messages, with those that follow the commit
    after: list[AfterCommit] = field(default_factory=list)

    def committed(self) -> None:
        for each in self.after:
            each()


@dataclass(slots=True)
class Gathered:
    """Moves of withdrawn messages, of which the caller writes what follows; and what is to be done after the commit."""

    moved: list[Moved] = field(default_factory=list)
    after: list[AfterCommit] = field(default_factory=list)

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit:
        """Take what `Consents` would have written."""
        self.moved += moved
        return _nothing


class Consents:
    """Writes what follows. `effects`: of the messages that are withdrawn; `changed` hears of queued deliveries.

    `keys`: with which the phones in events are encrypted.
    """

    def __init__(self, ids: IdSource, effects: Effects, changed: OnChange, keys: KeyRing) -> None:
        self._ids = ids
        self._effects = effects
        self._changed = changed
        self._keys = keys

    def gathering(self, gathered: Gathered) -> "Consents":
        """The same, but of what is withdrawn the consequences are left to the caller: `write` them."""
        return Consents(self._ids, gathered, self._changed, self._keys)

    async def write(self, connection: Executor, gathered: Gathered) -> AfterCommit:
        """Write what follows from all that was withdrawn: after everything else that the transaction locks."""
        return await self._effects.write(connection, gathered.moved)

    async def record(
        self,
        connection: Executor,
        changes: Sequence[ConsentChanged],
        now: datetime,
        *,
        events: Sequence[RecordEvent] = (),
        repeated: Sequence[Refusal] = (),
    ) -> Outcome:
        """Write what follows from `changes`, with `events` told before theirs. Run it in their transaction.

        `repeated`: refusals that changed nothing, for the registry alone; their contacts are locked.
        """
        outcome = Outcome()
        refused = await self.note(connection, changes, outcome, events=events, repeated=repeated)
        await self.withdraw(connection, refused, now, outcome)
        return outcome

    async def note(
        self,
        connection: Executor,
        changes: Sequence[ConsentChanged],
        outcome: Outcome,
        *,
        events: Sequence[RecordEvent] = (),
        repeated: Sequence[Refusal] = (),
    ) -> list[withdrawals.Recipient]:
        """Write history, registry and events of some of a transaction's changes; answers who refused.

        For all who do, `withdraw` comes once and last: messages are locked in one order by anyone who wants several.
        """
        await contact_consents.append(connection, [(each.contact, each.changed, each.by) for each in changes])
        denied = [each for each in changes if each.changed.denies]
        await opt_outs.enter(
            connection,
            [*repeated, *((address_of(e.contact), OptOutEntry(e.changed.at, e.changed.after.source)) for e in denied)],
        )
        for each in changes:
            if each.changed.grants and each.registered:
                await opt_outs.leave(connection, address_of(each.contact), each.contact.id)
        told = [event for each in changes for event in contact_events.consent_changed(each.contact, each.changed)]
        await self.tell(connection, [*events, *told], outcome)
        return [recipient for each in denied for recipient in address_of(each.contact).recipients()]

    async def tell(self, connection: Executor, events: Sequence[RecordEvent], outcome: Outcome) -> None:
        """Write events, and hint at their deliveries after the commit."""
        queued = await emit_records(connection, self._ids, events, self._keys)
        if queued:
            outcome.after.append(_hint(self._changed, DeliveriesQueued(tuple(queued))))

    async def withdraw(
        self, connection: Executor, recipients: Sequence[withdrawals.Recipient], now: datetime, outcome: Outcome
    ) -> None:
        """Fail what is queued for these recipients and subject to consent, and release what it held (C12.5.3).

        A block of it, that is; the rest is noted, and follows. What is claimed already is stopped after the commit,
        before anybody is answered.
        """
        if not recipients:
            return
        outcome.after.append(_hint(self._changed, ConsentRefused(tuple(recipients))))
        refused = withdrawals.refusals(recipients, self._later_id())
        moved = await withdrawals.opted_out(connection, refused, now, limit=withdrawals.BLOCK)
        left = await withdrawals.left_of(connection, refused)
        outcome.withdrawn += len(moved) + sum(left.values())
        await self._leave(connection, [*left], outcome)
        if moved:
            outcome.after.append(await self._effects.write(connection, moved))

    async def withdraw_deleted(self, connection: Executor, key: ContactKey, now: datetime, outcome: Outcome) -> None:
        """Archive what is queued for a contact that this transaction deletes, as `withdraw` does (C12.6)."""
        organization_id, env, contact_id = key
        moved, after_id = await withdrawals.of_contact(connection, *key, now, limit=withdrawals.BLOCK)
        if after_id is not None:
            left = Withdrawal(organization_id, env, WithdrawalKind.DELETED, contact_id, self._later_id())
            await self._leave(connection, [left], outcome)
        outcome.after.append(await self._effects.write(connection, moved))

    def _later_id(self) -> str:
        """The first id of messages that come after all that are there: after this millisecond."""
        return lowest_id(MESSAGE, created_at(self._ids.new(MESSAGE)) + _MILLISECOND)

    async def _leave(self, connection: Executor, left: Sequence[Withdrawal], outcome: Outcome) -> None:
        """Note the rest; once that is committed, nothing of it leaves."""
        if left:
            await withdrawals.note(connection, left)
            outcome.after.append(_hint(self._changed, WithdrawalsLeft(tuple(left))))


def address_of(contact: Contact) -> Registrant:
    """Under which names the registry knows a contact."""
    return Registrant(
        contact.organization_id, contact.env, contact.phone, contact.email, user_id=contact.chatapp_user_id
    )


def new_address(before: Contact, after: Contact) -> Registrant | None:
    """The e-mail address that a change gave to a contact; None when it has none, or has had it."""
    if after.email is None or (before.email is not None and email_key(before.email) == email_key(after.email)):
        return None
    return Registrant(after.organization_id, after.env, email=after.email)


def _hint(changed: OnChange, change: Change) -> Callable[[], None]:
    return lambda: changed(change)


def _nothing() -> None:
    """The caller does it."""
