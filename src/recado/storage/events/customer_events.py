"""Customer events as rows (C21): stored in batches, each attributed and counted in the commit that stores it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.domain.core.retention import EVENTS_MONTHS, months_before
from recado.domain.core.timestamps import to_the_millisecond
from recado.domain.events.customer_event import (
    ATTRIBUTED_CHANNELS,
    ATTRIBUTED_STATES,
    LONGEST_WAY,
    MOST_LOOKED_AT,
    MOST_OF_ADDRESS,
    USUAL_CURRENCY,
    CustomerEvent,
    JourneyTouch,
    NewCustomerEvent,
    Touch,
)
from recado.storage.batches import campaigns
from recado.storage.batches.campaigns import CampaignKey, Gain
from recado.storage.core.statements.rows import Executor, array, columns, in_blocks, pack, pack_some
from recado.storage.core.statements.sql import load

SQL = load("customer_events")

ERASE_BLOCK: Final = 1_000
PURGE_BLOCK: Final = 2_000
_KEYS: Final = ("contact_id", "external_id", "phone", "email")
_IDS_AHEAD: Final = timedelta(days=1)  # that ids may tell of a later time than the clock (ids.py)
_SHOWN_ALIKE: Final = timedelta(microseconds=999)
"""What a moment may be later than another that is shown alike: callers know departures as they are shown."""
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)

EventKey = tuple[str, str, str]
"""Organization, environment, and the caller's id of the event."""


async def store(connection: Executor, batch: Sequence[NewCustomerEvent]) -> dict[str, CustomerEvent]:
    """Store a batch in a transaction, and count it in its campaigns; answers what was stored now, by id.

    What is left out has its `event_id` taken: `known` tells by what, once this is committed.
    """
    contacts = [new.contact for new in batch]
    rows = await connection.fetch(
        _storing(frozenset(key for key in _KEYS if any(getattr(each, key) for each in contacts))),
        pack([new.organization_id for new in batch]),
        pack([new.env for new in batch]),
        pack([new.id for new in batch]),
        [new.event_id for new in batch],
        pack([new.name for new in batch]),
        array([each.contact_id for each in contacts]),
        array([each.external_id for each in contacts]),
        pack_some([each.phone for each in contacts]),
        array([each.email for each in contacts]),
        [new.occurred_at for new in batch],
        [to_the_millisecond(new.occurred_at) - new.window for new in batch],
        [to_the_millisecond(new.occurred_at) + _SHOWN_ALIKE for new in batch],
        pack_some([None if new.value is None else str(new.value) for new in batch]),
        pack([new.currency for new in batch]),
        pack_some([new.properties for new in batch]),
        MOST_LOOKED_AT,
        ATTRIBUTED_CHANNELS,
        [state.value for state in ATTRIBUTED_STATES],
        lowest_id(MESSAGE, min(new.occurred_at - new.window for new in batch) - LONGEST_WAY),
        lowest_id(MESSAGE, max(new.occurred_at for new in batch) + _IDS_AHEAD),
    )
    made = {new.id: new for new in batch}
    gains: defaultdict[CampaignKey, Gain] = defaultdict(Gain)
    for row in rows:
        if row["campaign_id"] is not None:
            new = made[row["id"]]
            gain = gains[new.organization_id, new.env, row["campaign_id"]]
            gain.conversions += 1
            if new.value is not None and new.currency == USUAL_CURRENCY:
                gain.conversion_value += new.value
    await campaigns.add(connection, gains)
    return {row["id"]: _stored(made[row["id"]], row) for row in rows}


async def known(executor: Executor, keys: Sequence[EventKey]) -> dict[EventKey, CustomerEvent]:
    """The events that are stored under these ids of their callers."""
    rows = await executor.fetch(SQL.known, *columns(keys, 3))
    return {(row["organization_id"], row["env"], row["event_id"]): read(row) for row in rows}


async def erase_contact(executor: Executor, organization_id: str, env: str, contact_id: str) -> None:
    """Take the external id of a deleted contact out of its events, in blocks (C12.6)."""
    after: tuple[datetime, str] = (_FIRST, "")
    while last := await executor.fetchrow(SQL.erase, organization_id, env, contact_id, *after, ERASE_BLOCK):
        after = (last["occurred_at"], last["id"])


async def purge(executor: Executor, organization_id: str, env: str, now: datetime, *, block: int = PURGE_BLOCK) -> int:
    """Remove the events of an environment that occurred more than 24 months ago, in blocks (C32)."""
    return await in_blocks(executor, SQL.purge, organization_id, env, months_before(now, EVENTS_MONTHS), block=block)


def read(row: Mapping[str, Any]) -> CustomerEvent:
    """One row."""
    return CustomerEvent(
        id=row["id"],
        event_id=row["event_id"],
        name=row["name"],
        contact_id=row["contact_id"],
        contact_external_id=row["contact_external_id"],
        occurred_at=row["occurred_at"],
        value=row["value"],
        currency=row["currency"],
        properties=row["properties"],
        touch=_touch(row),
    )


@cache
def _storing(keys: frozenset[str]) -> str:
    """The statement for a batch whose contacts are looked for by these keys."""
    parts = [getattr(SQL, f"by_{key}") for key in _KEYS if key in keys]
    return SQL.store.replace("{known}", "\nunion all\n".join(parts)).replace("{most}", str(MOST_OF_ADDRESS))


def _stored(new: NewCustomerEvent, row: Mapping[str, Any]) -> CustomerEvent:
    return CustomerEvent(
        id=new.id,
        event_id=new.event_id,
        name=new.name,
        contact_id=row["contact_id"],
        contact_external_id=row["contact_external_id"],
        occurred_at=new.occurred_at,
        value=new.value,
        currency=new.currency,
        properties=new.properties,
        touch=_touch(row),
    )


def _touch(row: Mapping[str, Any]) -> Touch | None:
    if row["message_id"] is None:
        return None
    journey_id = row["journey_id"]
    journey = None if journey_id is None else JourneyTouch(journey_id, row["journey_step_id"], row["journey_run_id"])
    return Touch(row["message_id"], row["message_channel"], row["message_sent_at"], row["campaign_id"], journey)
