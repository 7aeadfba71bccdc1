"""Messages as rows: accepting them in batches, each with its idempotency binding and its place in the queue.

What happens to a message on its way out is in `dispatch.py`; lists and reads for callers are in `message_reads.py`,
what callers may do to a message in `message_moves.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import asyncpg

from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import address_kind, address_of, claimed_as
from recado.domain.contacts.consent import CONSENT_REQUIRED, OPTED_OUT, refusal_to_send
from recado.domain.core.errors import Unavailable
from recado.domain.links.tracked import TrackedLink
from recado.domain.messages.message import Cause
from recado.storage.billing.holds import holding, store
from recado.storage.contacts import opt_outs
from recado.storage.contacts.opt_outs import pack_spellings, texts
from recado.storage.core.audit import AuditEntry
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements import fence
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import Executor, array, columns, pack, pack_moments, pack_numbers, pack_some
from recado.storage.core.statements.sql import load
from recado.storage.links import tracked_links
from recado.storage.links.tracked_links import CodeTaken
from recado.storage.messages.recipients import RecipientKey, find, of_address
from recado.storage.messages.replacements import Replacement

SQL = load("messages", owner=fence.owner("$33"))
ACCEPT = holding(SQL.accept, wanted="$24", at="(select max(accepted_at) from given)")
MORE = 35  # the place of what only some batches have

SINGLE_OWNER = "single"
JOURNEY_SOURCE = "journey"
CLAIMED_AS = claimed_as() or None
"""The states of claimed messages of channels that do not know `sending`."""
MILLISECOND = timedelta(milliseconds=1)


class ConsentCheck(IntEnum):
    """What a message needs of those who have its recipient's address (C12.5.4), and whether it is asked when stored."""

    EXEMPT = 0
    DONE = 1  # asked before; a refusal that comes while it is queued withdraws it, as with those below
    NOT_REFUSED = 2  # not stored for anyone who opted out (C12.5.6)
    GRANTED = 3  # stored only for anyone who consented (C12.5.5)

    @property
    def asks(self) -> bool:
        return self >= ConsentCheck.NOT_REFUSED


class OwnClaim(NamedTuple):
    """A claim in the commit that stores its message, by the owner of the numbers with this epoch."""

    epoch: int
    at: datetime


@dataclass(slots=True, eq=False, repr=False)
class NewMessage:
    """One outbound message to accept. `payload`, `template_vars`, `metadata` and `details` are JSON texts.

    `due_at` is `scheduled_at`, or else `accepted_at`. Not frozen only because a frozen one takes 2 µs more to make, and
    one is made for each request.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    sender_id: str
    type: str
    recipient: str
    recipient_hash: int
    klass: int  # 0 critical, 1 normal, 2 bulk
    force: bool
    template_id: str | None
    payload: str | None
    template_vars: str | None
    metadata: str | None
    campaign_id: str | None
    scheduled_at: datetime | None
    due_at: datetime
    ttl: timedelta
    held_base_ms: int
    accepted_at: datetime
    key_hash: bytes | None = None
    fingerprint: bytes | None = None
    replaces: Replacement | None = None  # the message whose place it takes (C15.4)
    coins: int | None = None  # the price of all its units (C25.2); None: nothing is billed
    price_kind: str | None = None  # what they count for when they are captured
    sent_by: tuple[str, str] | None = None  # the person who sends it: account and name (C15.2.5)
    contact_id: str | None = None  # as the caller named it, or the message that it replaces (C12.5.6)
    consent: ConsentCheck = ConsentCheck.EXEMPT
    asks_grant: bool = True  # subject to consent, it needs one that was granted, where its organization wants that
    forced: AuditEntry | None = None  # written with it: nothing jumps the queue unrecorded (C24.5)
    needs_window: bool = False  # these two as the channel's policy said: nothing decides them again
    obeys_quiet_hours: bool = False
    # Whose row it is in the queue (C14.5.2): a journey's id, or what `inherit` tells of one that replaces another.
    owner: str = SINGLE_OWNER
    units: int = 1  # segments, where its channel has some
    claim: OwnClaim | None = None  # of what is sent directly: it is claimed when it is stored
    content: object | None = None  # of such a message, as its adapter takes it: it is not stored
    contact_hash: int | None = None  # of such a message: by the phone of its contact, where it goes to another address
    refused: Cause | None = None  # of such a message: why it is stored as failed, and nobody called for it
    sent_at: datetime | None = None  # of such a message: when it left, once that is committed
    details: str | None = None  # what its channel alone knows of it
    links: Sequence[TrackedLink] = ()  # in its content, by their short form (C27.1)
    lacks: str | None = None  # the channel of what may take its place, where nobody sends that in its environment


@dataclass(frozen=True, slots=True)
class Stored:
    """The message is committed; `earlier`: by an earlier run of the same batch, whose answer was lost."""

    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The idempotency key belongs to an earlier message already (C6.2); nothing was stored."""

    message_id: str
    fingerprint: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NoConsent:
    """The recipient opted out, or did not consent (C12.5.5); nothing was stored. `code`: of the refusal."""

    code: str


AcceptResult = Stored | Bound | NoConsent
STORED = Stored()
STORED_EARLIER = Stored(earlier=True)


async def accept(
    executor: Executor, batch: Sequence[NewMessage], *, hold: bool = True, months: Months = ALL_MONTHS
) -> list[AcceptResult | Exception]:
    """Store a batch, each row with its idempotency binding and its place in the queue; one commit.

    What consent forbids is not stored. With `hold` the prices of what is stored are held in the same statement, or
    HoldsRefused is raised; without it the caller holds them in the same transaction. Raises CodeTaken when another
    message has the code of a link.
    """
    consents, phones, emails = _consents(batch)
    arguments = [
        *_columns(batch),
        hold,
        *_senders(batch),
        _contacts(batch),
        consents,
        pack_spellings(phones),
        *_units(batch),
        *_claims(batch),
        CLAIMED_AS,
    ]
    links = {new.id: new.links for new in batch if new.links}
    owned = any(new.owner != SINGLE_OWNER for new in batch)
    statement = _accepting(owned=owned, by_email=any(emails), with_links=bool(links))
    if owned:
        arguments.append(pack([new.owner for new in batch]))
    if any(emails):
        arguments.append(emails)
    if links:
        arguments += tracked_links.stored_columns(links)
    try:
        answered = await store(months.fetch(executor, statement, [new.id for new in batch], *arguments))
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name == tracked_links.UNIQUE:
            raise CodeTaken from None
        raise
    left_out = {row["id"]: row["opted_out"] for row in answered}
    if not left_out:
        return [STORED] * len(batch)
    found = await _earlier(executor, [new for new in batch if new.id in left_out])
    return [STORED if new.id not in left_out else found.get(new.id) or _not_stored(left_out[new.id]) for new in batch]


@cache
def _accepting(*, owned: bool = False, by_email: bool, with_links: bool) -> str:
    """The statement, with what only some batches need."""
    statement, place = ACCEPT, MORE
    if owned:
        statement, place = with_owners(statement, place=place), place + 1
    if by_email:
        statement, place = opt_outs.by_email(statement, place=place), place + 1
    return tracked_links.with_links(statement, place) if with_links else statement


def with_owners(statement: str, place: int) -> str:
    """The statement for messages of which some belong to journeys; `place`: of the owners, packed."""
    source = f"case g.owner when '{SINGLE_OWNER}' then '{SINGLE_OWNER}' else '{JOURNEY_SOURCE}' end"
    return (
        statement.replace("/*+column*/", ", owner /*+column*/")
        .replace("/*+values*/", f", unpack(${place}) /*+values*/")
        .replace(f"'{SINGLE_OWNER}' /*owner*/", "g.owner")
        .replace(f"'{SINGLE_OWNER}' /*source*/", source)
        .replace(
            "null::text /*journey*/", f"case when owner <> '{SINGLE_OWNER}' then metadata::json ->> 'journeyId' end"
        )
    )


def _not_stored(opted_out: bool | None) -> AcceptResult | Exception:
    if opted_out is not None:
        return NoConsent(OPTED_OUT if opted_out else CONSENT_REQUIRED)
    # Its key was bound when we stored, and gone when we looked: it was freed in between, and the caller may try again.
    return Unavailable("The request could not be stored: send it again.")


async def bindings_of(executor: Executor, batch: Sequence[NewMessage]) -> dict[tuple[str, str, bytes], Bound]:
    """What the idempotency keys of these messages are bound to."""
    rows = await executor.fetch(
        SQL.bindings,
        [new.organization_id for new in batch],
        [new.env for new in batch],
        [new.key_hash for new in batch],
    )
    return {
        (row["organization_id"], row["env"], row["key_hash"]): Bound(
            row["message_id"], row["fingerprint"], row["created_at"]
        )
        for row in rows
    }


async def binding(db: Database, organization_id: str, env: str, key_hash: bytes) -> Bound | None:
    """What one idempotency key is bound to."""
    row = await db.fetchrow(SQL.bindings, [organization_id], [env], [key_hash])
    return None if row is None else Bound(row["message_id"], row["fingerprint"], row["created_at"])


async def unbind(db: Database, new: NewMessage, message_id: str) -> None:
    """Free the key of `new` from an earlier message, if it is still bound to that one."""
    await db.execute(SQL.unbind, new.organization_id, new.env, new.key_hash, message_id)


async def decided(executor: Executor, batch: Sequence[NewMessage]) -> dict[str, AcceptResult]:
    """What needs no row, by its id: its key is bound, an earlier run of the batch stored it, or consent forbids it."""
    found = await _earlier(executor, batch)
    asking = [new for new in batch if new.consent.asks and new.id not in found]
    known = await find(executor, [asked_of(new) for new in asking])
    for new, who in zip(asking, known, strict=True):
        granted_only = new.consent is ConsentCheck.GRANTED
        code = refusal_to_send(who.status, registered=who.registered, granted_only=granted_only)
        if code is not None:
            found[new.id] = NoConsent(code)
    return found


def asked_of(new: NewMessage) -> RecipientKey:
    """Whose consent a message needs, by the address that it goes to."""
    return of_address(new.organization_id, new.env, address_kind(new.channel), new.recipient)


async def _earlier(executor: Executor, batch: Sequence[NewMessage]) -> dict[str, AcceptResult]:
    """What came before these messages, by their ids: whose keys are bound, and what an earlier run stored."""
    keyed = [(new, (new.organization_id, new.env, new.key_hash)) for new in batch if new.key_hash is not None]
    bindings = await bindings_of(executor, [new for new, _ in keyed]) if keyed else {}
    found: dict[str, AcceptResult] = {}
    for new, key in keyed:
        bound = bindings.get(key)
        if bound is not None:
            found[new.id] = STORED_EARLIER if bound.message_id == new.id else bound
    rows = [(new.organization_id, new.env, new.channel, new.id) for new in batch if new.key_hash is None]
    if rows:
        found.update((row["id"], STORED_EARLIER) for row in await executor.fetch(SQL.known, *columns(rows, 4)))
    return found


def _columns(batch: Sequence[NewMessage]) -> list[Any]:
    keys = [new.key_hash for new in batch]
    keyed = any(keys)
    coins = [new.coins for new in batch]
    billed = coins.count(None) < len(coins)
    return [
        pack([new.organization_id for new in batch]),
        pack([new.env for new in batch]),
        pack([new.channel for new in batch]),
        pack([new.id for new in batch]),
        pack([new.sender_id for new in batch]),
        pack([new.type for new in batch]),
        pack([new.recipient for new in batch]),
        pack_numbers([new.recipient_hash for new in batch]),
        pack_numbers([new.klass for new in batch]),
        pack_numbers([new.force + 2 * new.needs_window + 4 * new.obeys_quiet_hours for new in batch]),
        pack_some([new.template_id for new in batch]),
        pack_some([new.payload for new in batch]),
        pack_some([new.template_vars for new in batch]),
        pack_some([new.metadata for new in batch]),
        array([new.campaign_id for new in batch]),
        pack_moments([new.scheduled_at for new in batch]),
        pack_numbers([new.ttl // MILLISECOND for new in batch]),
        pack_numbers([new.held_base_ms for new in batch]),
        pack_moments([new.accepted_at for new in batch]),
        pack(list(map(_hex, keys))) if keyed else None,
        pack([_hex(new.fingerprint) for new in batch]) if keyed else None,
        pack([None if each is None else str(each) for each in coins]) if billed else None,
        pack([new.price_kind for new in batch]) if billed else None,
    ]


def _senders(batch: Sequence[NewMessage]) -> list[Any]:
    """Accounts and names: as arrays, because a name may hold any character, and none at all where only keys send."""
    senders: list[Any] = [new.sent_by for new in batch]
    if not any(senders):
        return [None, None]
    senders = [sender or (None, None) for sender in senders]
    return [[account_id for account_id, _ in senders], [name for _, name in senders]]


def _contacts(batch: Sequence[NewMessage]) -> list[str | None] | None:
    """None where nobody names one."""
    return array([new.contact_id for new in batch])


def _consents(batch: Sequence[NewMessage]) -> tuple[str | None, list[str | None], list[str | None]]:
    """What is needed of whom, and by which phones and e-mail addresses it is asked; nothing where all are exempt."""
    consents = [new.consent for new in batch]
    if not any(consents):
        return None, [], []
    needed = pack_numbers(map(int, consents))
    if all(address_kind(channel) is AddressKind.PHONE for channel in {new.channel for new in batch}):
        return needed, [new.recipient if new.consent.asks else None for new in batch], []
    asked = [address_of(new.channel, new.recipient) if new.consent.asks else None for new in batch]
    return needed, texts(asked, AddressKind.PHONE), texts(asked, AddressKind.EMAIL)


def _units(batch: Sequence[NewMessage]) -> tuple[str | None, str | None]:
    """Units and details; nothing where each has one unit, and none has details."""
    units = [new.units for new in batch]
    return (
        None if units.count(1) == len(units) else pack_numbers(units),
        pack_some([new.details for new in batch]),
    )


def _claims(batch: Sequence[NewMessage]) -> tuple[str | None, int | None]:
    """When those were claimed that are sent directly, and by whom; nothing where none is."""
    claims = [new.claim for new in batch]
    epochs = [claim.epoch for claim in claims if claim is not None]
    if not epochs:
        return None, None
    return pack_moments([None if claim is None else claim.at for claim in claims]), max(epochs)


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
