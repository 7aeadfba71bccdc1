"""Accepting, where consent is asked for in the commit that stores the message (C12.5.5, C12.5.6)."""

import random
from datetime import timedelta
from typing import Any

import pytest

from recado.domain.contacts.consent import CONSENT_REQUIRED, OPTED_OUT
from recado.domain.core.ids import CONTACT, MESSAGE, IdSource
from recado.domain.core.phones import phone_hash, recipient_hash
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import messages
from recado.storage.messages.messages import STORED, STORED_EARLIER, Bound, ConsentCheck, NewMessage, NoConsent

ORGANIZATION = "org_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(5))
NOW = CLOCK.now()
ANA, BIA, CAIO = "+5511987654321", "+5511987654322", "+5511987654323"
KEYED: dict[str, Any] = {"key_hash": b"k" * 32, "fingerprint": b"f" * 32}
REFUSED, UNGRANTED = NoConsent(OPTED_OUT), NoConsent(CONSENT_REQUIRED)


def message(phone: str = ANA, consent: ConsentCheck = ConsentCheck.NOT_REFUSED, **changes: Any) -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": IDS.new(MESSAGE),
        "sender_id": "num_" + "0" * 21, "type": "template", "recipient": phone,
        "recipient_hash": recipient_hash(ORGANIZATION, phone), "klass": 1, "force": False, "template_id": None,
        "payload": None, "template_vars": None, "metadata": None, "campaign_id": None, "scheduled_at": None,
        "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW, "consent": consent,
    }  # fmt: skip
    return NewMessage(**{**fields, **changes})


async def contact(database: Database, phone: str, status: str, *, env: str = "test") -> None:
    await database.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at) "
        "values ($1, $2, $3, $4, $5, 'api', $6, '', $7)",
        ORGANIZATION, env, IDS.new(CONTACT), phone, phone_hash(ORGANIZATION, phone), status, NOW,
    )  # fmt: skip


async def register(database: Database, phone: str, *, kind: str = "phone", env: str = "test") -> None:
    await database.execute(
        "insert into opt_outs values ($1, $2, $3, $4, $5)",
        ORGANIZATION, env, kind, phone_hash(ORGANIZATION, phone), NOW,
    )  # fmt: skip


async def rows(database: Database) -> dict[str, list[str]]:
    """The messages that each table has something of."""
    places = {"messages": "id", "dispatch": "id", "idempotency": "message_id"}
    return {
        table: [row["id"] for row in await database.fetch(f"select {name} as id from {table} order by 1")]
        for table, name in places.items()
    }


NOTHING: dict[str, list[str]] = {"messages": [], "dispatch": [], "idempotency": []}


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("consent", [ConsentCheck.NOT_REFUSED, ConsentCheck.GRANTED])
async def test_of_what_whoever_opted_out_was_to_get_nothing_is_stored(
    database: Database, consent: ConsentCheck, keyed: bool
) -> None:
    await contact(database, ANA, "denied")
    await contact(database, BIA, "granted")
    await register(database, BIA)
    await register(database, CAIO)
    for phone in (ANA, BIA, CAIO):
        new = message(phone, consent, **(KEYED if keyed else {}))
        assert await messages.accept(database.hot, [new]) == [REFUSED]
    assert await rows(database) == NOTHING


async def test_only_whoever_consented_gets_what_needs_a_consent(database: Database) -> None:
    await contact(database, ANA, "granted")
    await contact(database, BIA, "unknown")
    batch = [message(phone, ConsentCheck.GRANTED) for phone in (CAIO, BIA, ANA)]
    assert await messages.accept(database.hot, batch) == [UNGRANTED, UNGRANTED, STORED]
    assert (await rows(database))["messages"] == [batch[2].id]


async def test_whoever_did_not_refuse_gets_what_a_refusal_forbids(database: Database) -> None:
    await contact(database, ANA, "unknown")
    await contact(database, BIA, "granted")
    assert await messages.accept(database.hot, [message(phone) for phone in (ANA, BIA, CAIO)]) == [STORED] * 3


async def test_a_refusal_counts_in_its_organization_and_environment_and_for_its_own_phone_alone(
    database: Database,
) -> None:
    await contact(database, ANA, "denied", env="live")
    await register(database, ANA, env="live")
    await register(database, ANA, kind="email")
    await contact(database, ANA + "0", "denied")  # the next phone of the index
    new = message(ANA, organization_id="org_" + "1" * 21)
    await contact(database, BIA, "denied")
    assert await messages.accept(database.hot, [message(ANA), new]) == [STORED] * 2
    other = message(BIA, organization_id="org_" + "1" * 21)
    assert await messages.accept(database.hot, [other, message(BIA)]) == [STORED, REFUSED]


async def test_each_of_a_batch_is_judged_by_its_own_recipient_and_its_own_need(database: Database) -> None:
    await contact(database, ANA, "denied")
    await contact(database, BIA, "unknown")
    exempt, asked = message(ANA, ConsentCheck.EXEMPT), message(ANA, ConsentCheck.DONE)
    free, bound = message(CAIO), message(BIA, **KEYED)
    batch = [message(ANA), exempt, message(BIA, ConsentCheck.GRANTED), asked, free, message(ANA), bound]

    results = await messages.accept(database.hot, batch)

    assert results == [REFUSED, STORED, UNGRANTED, STORED, STORED, REFUSED, STORED]
    stored = sorted(new.id for new in (exempt, asked, free, bound))
    assert await rows(database) == {"messages": stored, "dispatch": stored, "idempotency": [bound.id]}
    withdrawn_by_refusals = await database.fetch("select id from dispatch where consent_hash is not null order by id")
    assert [row["id"] for row in withdrawn_by_refusals] == sorted(new.id for new in (asked, free, bound))


@pytest.mark.parametrize("changes", [{}, KEYED], ids=["without a key", "with a key"])
async def test_what_an_earlier_run_stored_stays_stored_though_its_recipient_opted_out_since(
    database: Database, changes: dict[str, Any]
) -> None:
    batch = [message(ANA, **changes), message(BIA)]
    assert await messages.accept(database.hot, batch) == [STORED, STORED]
    await contact(database, ANA, "denied")
    later = message(ANA)
    assert await messages.accept(database.hot, [*batch, later]) == [STORED_EARLIER, STORED_EARLIER, REFUSED]
    assert await messages.decided(database.hot, [*batch, later]) == {
        batch[0].id: STORED_EARLIER, batch[1].id: STORED_EARLIER, later.id: REFUSED,
    }  # fmt: skip


async def test_a_key_that_is_bound_is_told_before_a_refusal(database: Database) -> None:
    first = message(ANA, **KEYED)
    assert await messages.accept(database.hot, [first]) == [STORED]
    await register(database, ANA)
    repeat = message(ANA, **KEYED)
    bound = Bound(first.id, b"f" * 32, NOW)
    assert await messages.accept(database.hot, [repeat, message(ANA, key_hash=b"o" * 32, fingerprint=b"f" * 32)]) == [
        bound, REFUSED,
    ]  # fmt: skip
    assert await messages.decided(database.hot, [repeat]) == {repeat.id: bound}


async def test_a_key_of_what_was_refused_is_free_for_the_next_try(database: Database) -> None:
    await contact(database, ANA, "denied")
    assert await messages.accept(database.hot, [message(ANA, **KEYED)]) == [REFUSED]
    await database.execute("update contacts set opt_in_status = 'granted'")
    again = message(ANA, **KEYED)
    assert await messages.accept(database.hot, [again]) == [STORED]
    assert (await rows(database))["idempotency"] == [again.id]


async def test_before_prices_are_looked_at_consent_is_asked_as_by_the_statement(database: Database) -> None:
    await contact(database, ANA, "denied")
    await register(database, BIA)
    batch = [
        message(ANA),
        message(BIA),
        message(CAIO),
        message(CAIO, ConsentCheck.GRANTED),
        message(ANA, ConsentCheck.EXEMPT),
        message(ANA, ConsentCheck.DONE),
    ]
    expected = [REFUSED, REFUSED, None, UNGRANTED, None, None]
    assert [(await messages.decided(database.hot, batch)).get(new.id) for new in batch] == expected
    stored = [STORED if result is None else result for result in expected]
    assert await messages.accept(database.hot, batch) == stored
