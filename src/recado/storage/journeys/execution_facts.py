"""What executions ask of other records: their contacts, their earlier sends and the signals of those, and counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import Contact
from recado.domain.core.ids import MESSAGE, lowest_id
from recado.domain.core.phones import other_spellings
from recado.domain.core.timestamps import to_the_millisecond
from recado.domain.journeys.decide import ContactConsent
from recado.domain.journeys.execution import TrailResult
from recado.domain.journeys.field_values import OF_CONTACT
from recado.domain.journeys.signal_conditions import SendState
from recado.domain.messages.message import WaitReason
from recado.storage.contacts import opt_outs
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.statements.rows import Executor, columns, pack
from recado.storage.core.statements.sql import load

SQL: Final = load("execution_facts")

MOST_EVENTS: Final = 1_000  # of a contact, the last ones, among which an event is looked for
MOST_COUNTED: Final = 100  # messages of a contact: no cap is higher


_CONSENT: Final = {status.value: ContactConsent(status) for status in ConsentStatus}


class ContactKey(NamedTuple):
    """A contact of an environment."""

    organization_id: str
    env: str
    contact_id: str


_READ: Final = tuple(
    name
    for name in (each.name for each in fields(Contact))
    if name
    in {*OF_CONTACT.values(), "organization_id", "env", "id", "phone_hash", "attributes", "opt_in_status", "updated_at"}
)
"""What a journey may look at of a contact, and what a contact must have."""

_pick: Final = itemgetter(*_READ)


def _contact(row: Mapping[str, Any]) -> Contact:
    """What else there is to know of it keeps its default."""
    known = dict(zip(_READ, _pick(row), strict=True))
    known["opt_in_status"], known["tags"] = ConsentStatus(known["opt_in_status"]), tuple(known["tags"])
    return Contact(**known)


def _asked_contacts(read: Sequence[str], *, held: bool) -> str:
    text = SQL.contacts.replace("{columns}", ", ".join(read))
    return text.replace("/*lock*/", "for share skip locked") if held else text


CONTACTS: Final = {held: _asked_contacts((*_READ, "email_key"), held=held) for held in (False, True)}
CONSENTS: Final = {
    held: _asked_contacts(("opt_in_status", "phone", "phone_hash", "email_key"), held=held) for held in (False, True)
}
"""`held`: nobody changes them, or deletes them, until the commit; those are missing whom somebody is changing."""


async def contacts_of(
    executor: Executor, keys: Sequence[ContactKey], *, held: bool = False
) -> dict[ContactKey, tuple[Contact, bool]]:
    """Those of them that exist, and whether the opt-out registry holds the phone or the address of each."""
    rows = await _rows(executor, CONTACTS[held], keys)
    return {keys[row["n"] - 1]: (_contact(row), registered) for row, registered in rows}


async def consents_of(
    executor: Executor, keys: Sequence[ContactKey], *, held: bool = False
) -> dict[ContactKey, tuple[ContactConsent, bool]]:
    """As `contacts_of`: what they consented to, and nothing else of them."""
    rows = await _rows(executor, CONSENTS[held], keys)
    return {keys[row["n"] - 1]: (_CONSENT[row["opt_in_status"]], registered) for row, registered in rows}


async def _rows(executor: Executor, statement: str, keys: Sequence[ContactKey]) -> list[tuple[Mapping[str, Any], bool]]:
    """Each row, and whether the registry holds it under whichever spelling of its phone (C12.5.8)."""
    if not keys:
        return []
    rows = await executor.fetch(statement, *[pack(column) for column in zip(*keys, strict=True)])
    found = [(row, row["registered"]) for row in rows]
    spelled = [  # few phones have other spellings than their own
        place for place, (row, registered) in enumerate(found)
        if not registered and row["phone"] and other_spellings(row["phone"])
    ]  # fmt: skip
    asked = []
    for place in spelled:
        organization_id, env, _ = keys[rows[place]["n"] - 1]
        asked.append(Registrant(organization_id, env, rows[place]["phone"]))
    for place, entry in zip(spelled, await opt_outs.entries(executor, asked) if asked else [], strict=True):
        found[place] = (rows[place], entry is not None)
    return found


@dataclass(frozen=True, slots=True)
class PassedSend:
    """A send that an execution passed. `since`: from when its window counts; None: it is queued.

    `message_id` None: there is no message. `sender_id`, `channel`: of that.
    """

    state: SendState
    since: datetime | None
    message_id: str | None = None
    channel: str | None = None
    sender_id: str | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None


async def passed_sends(
    executor: Executor, asked: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], PassedSend]:
    """By organization, execution and step; those that were never passed are missing."""
    if not asked:
        return {}
    rows = await executor.fetch(SQL.earlier, *columns([(n, *key) for n, key in enumerate(asked)], 4))
    return {asked[row["n"]]: passed_send(row) for row in rows}


def passed_send(row: Mapping[str, Any]) -> PassedSend:
    """What a row of `earlier` tells (C9.6)."""
    if row["message_id"] is None:
        skipped = row["resultado"] == TrailResult.SKIPPED
        return PassedSend(SendState.SKIPPED if skipped else SendState.FAILED, row["at"])
    state, since = _state(row)
    return PassedSend(
        state, since, row["message_id"], row["channel"], row["sender_id"], row["delivered_at"], row["read_at"]
    )


def _state(row: Mapping[str, Any]) -> tuple[SendState, datetime | None]:
    unknown = row["outcome_certain"] is False
    if row["in_queue"]:
        if row["called_for_at"] is None:
            return SendState.QUEUED, None
        uncertain = row["reason"] == WaitReason.UNCERTAIN
        return SendState.UNKNOWN if uncertain else SendState.SENDING, row["called_for_at"]
    failed = row["failed_at"] is not None or row["archived_at"] is not None
    if row["sent_at"] is not None and not failed:
        return SendState.ACCEPTED, row["sent_at"]
    moments = (row["sent_at"], row["called_at"], row["failed_at"], row["archived_at"], row["at"])
    since = next(moment for moment in moments if moment is not None)
    return SendState.UNKNOWN if unknown else SendState.FAILED, since


async def first_clicks(executor: Executor, message_ids: Sequence[str]) -> dict[str, datetime]:
    """By message, when somebody opened a link of it first."""
    if not message_ids:
        return {}
    return {row["message_id"]: row["at"] for row in await executor.fetch(SQL.first_clicks, list(message_ids))}


class ReplyQuestion(NamedTuple):
    """Whether the contact wrote on one of these channels since then. `sender_id` None: to any sender."""

    contact: ContactKey
    since: datetime
    sender_id: str | None
    channels: tuple[str, ...]


async def first_replies(executor: Executor, asked: Sequence[ReplyQuestion]) -> dict[int, datetime]:
    """By place, when it did first."""
    if not asked:
        return {}
    rows = [
        (n, *each.contact, lowest_id(MESSAGE, each.since), each.sender_id, " ".join(each.channels), each.since)
        for n, each in enumerate(asked)
    ]
    return {row["n"]: row["at"] for row in await executor.fetch(SQL.first_replies, *columns(rows, 8))}


class EventQuestion(NamedTuple):
    """Whether the contact did since then, as that moment is shown, what an event of this name tells."""

    contact: ContactKey
    name: str
    since: datetime


async def first_events(executor: Executor, asked: Sequence[EventQuestion]) -> dict[int, datetime]:
    """By place, when it did first."""
    if not asked:
        return {}
    rows = [(n, *each.contact, each.name, to_the_millisecond(each.since)) for n, each in enumerate(asked)]
    return {row["n"]: row["at"] for row in await executor.fetch(SQL.first_events, *columns(rows, 6), MOST_EVENTS)}


async def capped(executor: Executor, asked: Sequence[tuple[ContactKey, datetime]]) -> list[int]:
    """How many messages of journeys each contact got after a moment, in order; up to `MOST_COUNTED`."""
    if not asked:
        return []
    rows = [(n, *contact, after) for n, (contact, after) in enumerate(asked)]
    counts = {row["n"]: row["count"] for row in await executor.fetch(SQL.capped, *columns(rows, 5), MOST_COUNTED)}
    return [counts.get(n, 0) for n in range(len(asked))]
