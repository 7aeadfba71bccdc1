"""Messages as callers read them: one by id, and lists by filters, newest first, by skip or by cursor (C5, C15.1).

Every filter finds its way through an index that serves it: what waits through `dispatch`, failures, archive, campaigns,
batches and contacts through their partial indexes, everything else along the key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

from recado.domain.billing.prices import BR
from recado.domain.channels.policies import GENERIC_CHANNELS, claimed_state, states_shown_as
from recado.domain.contacts.contact import email_key
from recado.domain.core.ids import MESSAGE, Identified, lowest_id
from recado.domain.core.phones import recipient_hash
from recado.domain.messages.message import FAILURES, GenericStatus, MessageStatus
from recado.storage.core.connections.read_limit import in_time
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import Executor, Page, page, reader
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.wide_rows import bounded, rows_of

SQL = fragments("message_reads")

AFTER_ALL_IDS = MESSAGE + "~"  # greater than every id


@dataclass(frozen=True, slots=True)
class Message(Identified):
    """One message. `payload`, `template_vars` and `metadata` are JSON texts; `klass` is the priority's class.

    `details`: what its channel alone knows of it. `gateway`: what it left through, of those that senders share;
    `receipt`: the last report as its provider gave it; `link_origin`: the JSON text of `origemDoLink` (C27.4);
    `media_storage`: that of `mediaStorage` (C8.3.1).
    `opened_at`, `clicked_at`: when its person first did so, of an e-mail (C10.2.9).
    `waits`: milliseconds by reason of what it waited for until it left (C34.4).
    """

    organization_id: str
    env: str
    channel: str
    id: str
    direction: str
    status: str
    type: str
    sender_id: str | None
    recipient: str
    klass: int
    force: bool
    template_id: str | None
    payload: str | None
    template_vars: str | None
    metadata: str | None
    campaign_id: str | None
    batch_id: str | None
    contact_id: str | None
    attempts: int
    last_error: str | None
    original_error: str | None
    reprocessed: bool
    replaced_by: str | None
    provider_message_id: str | None
    sent_by_account_id: str | None
    sent_by_name: str | None
    scheduled_at: datetime | None
    sent_at: datetime | None
    delivered_at: datetime | None
    read_at: datetime | None
    failed_at: datetime | None
    archived_at: datetime | None
    updated_at: datetime
    price_coins: int | None
    outcome_certain: bool | None
    units: int
    details: Mapping[str, Any] | None
    failure_code: str | None = None
    gateway: str | None = None
    receipt: Mapping[str, Any] | None = None
    link_origin: str | None = None
    opened_at: datetime | None = None
    clicked_at: datetime | None = None
    waits: Mapping[str, int] | None = None
    media_storage: str | None = None

    @property
    def uncertain(self) -> bool:
        """Whether it failed by unknown outcome: it may have left."""
        return self.outcome_certain is False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """What a list shows. A period holds the messages created in [start, end).

    `status`: as it shows (C15.1), or, not `as_shown`, as the channel has it. `stays_sent`: what left, and is queued to
    leave by another way, is still sent (C17.2).
    """

    organization_id: str
    env: str
    channels: Sequence[str] = GENERIC_CHANNELS
    status: str | None = None
    as_shown: bool = True
    stays_sent: bool = False
    direction: str | None = None
    region: str | None = None  # of the phone; without an index as well
    recipient: str | None = None  # a canonical phone; without an index, so along the history
    email: str | None = None  # an address in any case, of channels that have them; likewise
    carrier: str | None = None  # of channels whose messages another one may carry; likewise
    sender_id: str | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    batch_id: str | None = None
    sent_by_account_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None


MessagePage = Page[Message]

read = reader(Message)

PAGE: Final = bounded(SQL.page, ("payload", "template_vars", "metadata"), "p.id desc")

_WAITING = frozenset({MessageStatus.QUEUED.value, MessageStatus.SENDING.value})
_ENDED = {
    **{state.value: SQL.if_failed for state in FAILURES},
    GenericStatus.ARCHIVED.value: SQL.if_archived,
}


async def get(
    executor: Executor,
    organization_id: str,
    env: str,
    message_id: str,
    channels: Sequence[str] = GENERIC_CHANNELS,
    *,
    months: Months = ALL_MONTHS,
) -> Message | None:
    """The message, when it exists in this environment on one of these channels."""
    arguments = (organization_id, env, list(channels), message_id)
    rows = await months.fetch(executor, SQL.by_id, [message_id], *arguments)
    return read(rows[0]) if rows else None


async def list_page(
    executor: Executor,
    wanted: MessageFilter,
    *,
    limit: int,
    skip: int = 0,
    before_id: str | None = None,
    counted: bool = True,
) -> MessagePage:
    """One page, or what is read of it at once, newest first; `before_id`: only what is older than this message.

    The total is that of the whole list, if `counted`. Raises `Unavailable` when the database does not find it in five
    seconds.
    """
    page_sql, page_arguments = page_query(wanted, limit=limit + 1, skip=skip, before_id=before_id)
    count_sql, count_arguments = count_query(wanted)
    async with in_time("narrow it with a period or another filter"):
        rows = await executor.fetch(page_sql, *page_arguments)
        total = 0
        if before_id is None and 0 < rows_of(rows) <= limit:
            total = skip + rows_of(rows)
        elif counted:
            total = await executor.fetchval(count_sql, *count_arguments)
    items = [read(row) for row in rows[:limit]]
    return page(items, total, more=rows_of(rows) > len(items))


def page_query(
    wanted: MessageFilter, *, limit: int, skip: int = 0, before_id: str | None = None
) -> tuple[str, list[Any]]:
    """The query of one page and its arguments."""
    values = _values(wanted, before_id)
    values |= {"limit": limit, "skip": skip, "reach": skip + limit}
    return compose(PAGE.replace("{found}", _source(wanted)), values)


def count_query(wanted: MessageFilter) -> tuple[str, list[Any]]:
    """The query that counts the whole list up to 10,001, and its arguments."""
    values = _values(wanted, None) | {"reach": 10_001}
    return compose(SQL.count.replace("{found}", _source(wanted)), values)


def _values(wanted: MessageFilter, before_id: str | None) -> dict[str, Any]:
    last = AFTER_ALL_IDS if wanted.end is None else lowest_id(MESSAGE, wanted.end)
    return {
        "organization_id": wanted.organization_id,
        "env": wanted.env,
        "channels": list(wanted.channels),
        "first_id": MESSAGE if wanted.start is None else lowest_id(MESSAGE, wanted.start),
        "before_id": last if before_id is None else min(last, before_id),
        **_states(wanted),
        "direction": wanted.direction,
        "recipient": wanted.recipient,
        "recipient_hash": _hash(wanted),
        "brazilian": wanted.region == BR,
        "carrier": wanted.carrier,
        "sender_id": wanted.sender_id,
        "contact_id": wanted.contact_id,
        "campaign_id": wanted.campaign_id,
        "batch_id": wanted.batch_id,
        "sent_by_account_id": wanted.sent_by_account_id,
    }


def _hash(wanted: MessageFilter) -> int | None:
    """Of the one recipient that is looked for, as its row has it."""
    recipient = wanted.recipient if wanted.email is None else email_key(wanted.email)
    return None if recipient is None else recipient_hash(wanted.organization_id, recipient)


def _source(wanted: MessageFilter) -> str:
    """The fragment that finds the ids of the list, with its conditions; the values stay parameters."""
    tagged = [
        (wanted.campaign_id, SQL.if_campaign),
        (wanted.batch_id, SQL.if_batch),
        (wanted.contact_id, SQL.if_contact),
    ]
    others = [
        (wanted.sender_id, SQL.if_number, SQL.if_waiting_number),
        (wanted.sent_by_account_id, SQL.if_account, SQL.if_waiting_account),
        (wanted.direction, SQL.if_direction, SQL.if_waiting_direction),
        (wanted.recipient, SQL.if_recipient, SQL.if_waiting_recipient),
        (wanted.email, SQL.if_email, SQL.if_waiting_email),
        (wanted.region, SQL.if_region, SQL.if_waiting_region),
        (wanted.carrier, SQL.if_carrier, SQL.if_waiting_carrier),
    ]
    status = wanted.status
    if wanted.stays_sent and status == MessageStatus.QUEUED:
        others.append((status, SQL.if_unsent, SQL.if_waiting_unsent))
    tags = [condition for value, condition in tagged if value is not None]
    of_channels = [_states_of(wanted, channel) for channel in wanted.channels] if status is not None else []
    if of_channels and not tags and _WAITING.issuperset(chain(*of_channels)):
        given = [condition for value, _, condition in others if value is not None]
        return _with(SQL.waiting, [SQL.if_waiting, *given])
    given = [*tags, *(condition for value, condition, _ in others if value is not None)]
    if status is not None:
        given += [_if_status(wanted), _ENDED.get(status, "")]
        if any(states != of_channels[0] for states in of_channels):
            given.append(SQL.if_state_of_channel)
    return _with(SQL.narrow if tags or status in _ENDED else SQL.walk, given)


def _if_status(wanted: MessageFilter) -> str:
    return SQL.if_sent if wanted.stays_sent and wanted.status == MessageStatus.SENT else SQL.if_status


def _states(wanted: MessageFilter) -> dict[str, list[str]]:
    """The states that show as the wanted status, for the conditions that ask for them."""
    if wanted.status is None:
        return {}
    of = {channel: _states_of(wanted, channel) for channel in wanted.channels}
    return {
        "states": sorted(set(chain(*of.values()))),
        "states_of_channels": [f"{channel} {state}" for channel, states in of.items() for state in states],
        "queued_of": [channel for channel, states in of.items() if MessageStatus.QUEUED in states],
        "sending_of": [channel for channel, states in of.items() if claimed_state(channel) in states],
    }


def _states_of(wanted: MessageFilter, channel: str) -> list[str]:
    """The states of a channel's messages that have the wanted status."""
    status = wanted.status or ""
    return states_shown_as(channel, status) if wanted.as_shown else [status]


def _with(source: str, conditions: Sequence[str]) -> str:
    return source.replace("{conditions}", "\n".join(conditions))
