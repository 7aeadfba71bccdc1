"""Claims whose answer was lost: a batch that runs again knows what its first run committed (C29.2)."""

import random
from datetime import timedelta
from typing import Any

import pytest

from recado.domain.channels.address import Address, AddressKind
from recado.domain.core.ids import CONTACT, MESSAGE, IdSource
from recado.domain.core.phones import phone_hash
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch, epochs, settlements
from recado.storage.dispatch.dispatch import CLAIMED, LOST, OPTED_OUT, OVERTAKEN, WINDOW_CLOSED, Claim
from recado.storage.dispatch.settlements import Returned
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage

ORGANIZATION = "org_" + "0" * 21
NUMBER = "num_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(4))
NOW = CLOCK.now()
LATER = NOW + timedelta(milliseconds=1)
ANOTHER = """
insert into hosts (epoch, backend, taken_at, lease_until, free_at)
values ($1::bigint, 1, now(), now() + interval '5 s', case when $1::bigint = 103 then now() + interval '3 s' end)
returning lease_until
"""


async def stored(db: Database, kind: str = "template") -> str:
    message_id = IDS.new(MESSAGE)
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": message_id, "sender_id": NUMBER,
        "type": kind, "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1, "force": False,
        "template_id": None, "payload": None, "template_vars": None, "metadata": None, "campaign_id": None,
        "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW,
    }  # fmt: skip
    assert await messages.accept(db, [NewMessage(**fields)]) == [messages.STORED]
    return message_id


def of(message_id: str, at: Any = NOW, *, free_form: bool = False) -> Claim:
    return Claim(ORGANIZATION, message_id, 1, free_form, at)


async def attempts(db: Database, message_id: str) -> int:
    count: int = await db.fetchval("select attempts from dispatch where id = $1", message_id)
    return count


async def test_a_batch_of_claims_that_runs_again_gets_what_its_first_run_committed(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    batch = [of(await stored(database)) for _ in range(3)]

    assert await dispatch.claim(database, batch, epoch, NOW) == [CLAIMED] * 3
    assert await dispatch.claim(database, batch, epoch, LATER) == [CLAIMED] * 3
    assert [await attempts(database, claim.id) for claim in batch] == [1, 1, 1]


async def test_another_claim_of_a_claimed_row_is_lost(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    first = of(await stored(database))

    assert await dispatch.claim(database, [first], epoch, NOW) == [CLAIMED]
    assert await dispatch.claim(database, [of(first.id, LATER)], epoch, LATER) == [LOST]


async def test_what_an_earlier_owner_claimed_is_lost_to_the_next_even_at_the_same_moment(database: Database) -> None:
    claim = of(await stored(database))
    before = await epochs.take_epoch(database, NOW)
    assert await dispatch.claim(database, [claim], before, NOW) == [CLAIMED]

    after = await epochs.take_epoch(database, NOW)

    assert await dispatch.claim(database, [claim], after, NOW) == [LOST]


async def test_a_free_form_message_outside_the_window_is_told_apart_from_one_that_is_claimed(
    database: Database,
) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    closed, claimed = await stored(database, "text"), await stored(database, "text")
    assert await dispatch.claim(database, [of(claimed)], epoch, NOW) == [CLAIMED]

    batch = [of(closed, LATER, free_form=True), of(claimed, LATER, free_form=True)]

    assert await dispatch.claim(database, batch, epoch, LATER) == [WINDOW_CLOSED, LOST]


async def test_a_return_that_runs_again_leaves_the_next_claim_of_its_message_alone(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    message_id = await stored(database)
    assert await dispatch.claim(database, [of(message_id)], epoch, NOW) == [CLAIMED]
    back = Returned(ORGANIZATION, "test", "chatapp", message_id, NOW, None, None, None, True, NOW)
    await settlements.returned(database, [back], epoch)
    assert await dispatch.claim(database, [of(message_id, LATER)], epoch, LATER) == [CLAIMED]

    await settlements.returned(database, [back], epoch)

    assert await database.fetchval("select status from messages where id = $1", message_id) == "sending"
    assert await attempts(database, message_id) == 1


PEOPLE = (
    "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at) "
    "values ($1, $2, $3, $4, $5, 'api', 'denied', '', $6)"
)


async def refuse(database: Database, phone: str, *, by: str, env: str = "test") -> None:
    """`by`: the registry's entry or the contact's own consent alone."""
    hashed = phone_hash(ORGANIZATION, phone)
    if by == "registry":
        await database.execute("insert into opt_outs values ($1, $2, 'phone', $3, $4)", ORGANIZATION, env, hashed, NOW)
    else:
        await database.execute(
            PEOPLE, ORGANIZATION, env, IDS.new(CONTACT), phone, hashed, NOW,
        )  # fmt: skip


def asking(message_id: str, phone: str = "+5511987654321", at: Any = NOW) -> Claim:
    return Claim(ORGANIZATION, message_id, 1, False, at, ("test", Address(AddressKind.PHONE, phone)))


@pytest.mark.parametrize("by", ["registry", "contact"])
async def test_whoever_opted_out_is_not_claimed_when_consent_is_asked_for(database: Database, by: str) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    await refuse(database, "+5511987654321", by=by)
    await refuse(database, "+5511987654329", by=by, env="live")
    refused, exempt, elsewhere = [await stored(database) for _ in range(3)]

    batch = [asking(refused), of(exempt), asking(elsewhere, "+5511987654329")]

    assert await dispatch.claim(database, batch, epoch, NOW) == [OPTED_OUT, CLAIMED, CLAIMED]
    assert await attempts(database, refused) == 0
    assert await database.fetchval("select status from messages where id = $1", refused) == "queued"


async def test_a_refusal_under_a_former_spelling_keeps_a_message_from_being_claimed(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    await refuse(database, "+5215512345678", by="registry")
    refused, other, exempt = [await stored(database) for _ in range(3)]

    batch = [asking(refused, "+525512345678"), asking(other, "+525512345679"), of(exempt)]

    assert await dispatch.claim(database, batch, epoch, NOW) == [OPTED_OUT, CLAIMED, CLAIMED]


async def test_a_refusal_is_that_of_its_own_row_whatever_the_order_of_the_batch(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    await refuse(database, "+5511987654321", by="registry")
    others, refused = [await stored(database) for _ in range(4)], await stored(database)

    # A row that comes back to the queue is claimed after younger ones.
    batch = [asking(refused), *(asking(each, f"+551198765430{n}") for n, each in enumerate(others))]

    assert await dispatch.claim(database, batch, epoch, NOW) == [OPTED_OUT, *[CLAIMED] * 4]


async def test_a_process_that_lost_its_numbers_says_of_no_message_why_it_should_end(database: Database) -> None:
    """Such a verdict would end the message, which is another's now."""
    before = await epochs.take_epoch(database, NOW)
    await refuse(database, "+5511987654321", by="registry")
    refused, closed, free = [await stored(database, kind) for kind in ("template", "text", "template")]
    batch = [asking(refused), of(closed, free_form=True), asking(free, "+5511987654322")]
    after = await epochs.take_epoch(database, LATER)

    assert await dispatch.claim(database, batch, before, LATER) == [OVERTAKEN] * 3
    assert await dispatch.claim(database, batch, after, LATER) == [OPTED_OUT, WINDOW_CLOSED, CLAIMED]


async def test_of_a_row_that_is_held_or_claimed_a_refusal_says_nothing(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    held, claimed = await stored(database), await stored(database)
    assert await dispatch.claim(database, [asking(claimed)], epoch, NOW) == [CLAIMED]
    await database.execute("update dispatch set not_before = $2 where id = $1", held, LATER)
    await refuse(database, "+5511987654321", by="registry")

    batch = [asking(held, at=LATER), asking(claimed, at=LATER)]

    assert await dispatch.claim(database, batch, epoch, LATER) == [LOST, LOST]


async def test_an_owner_before_begins_no_call_from_when_it_left_is_dead_or_its_lease_is_over(
    database: Database,
) -> None:
    lasting, dead, left = [await database.fetchval(ANOTHER, number) for number in (101, 102, 103)]
    before = await database.fetchval("select lease_until from hosts where epoch = 102") - timedelta(seconds=1)
    await epochs.take_epoch(database, NOW, dead_at={102: before, 103: before})
    rows = await database.fetch("select free_at from hosts where epoch > 100 and ended_at is not null order by epoch")
    assert [row["free_at"] for row in rows] == [lasting, before, left - timedelta(seconds=2)]
    assert dead > before


async def test_the_next_owner_goes_by_the_one_rule_of_leases(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "closed_at", lambda _, *, free_at, dead_at: NOW)
    epoch = await epochs.take_epoch(database, NOW)
    await epochs.take_epoch(database, NOW)
    assert await database.fetchval("select free_at from hosts where epoch = $1", epoch) == NOW
