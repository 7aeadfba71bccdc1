"""Who is behind a recipient: the contact, by its id or its phone, and the opt-out registry."""

import random
from datetime import UTC, datetime

import pytest

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT, IdSource
from recado.domain.core.phones import phone_hash
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import recipients
from recado.storage.messages.recipients import Recipient, RecipientKey, RecipientLookup

ORGANIZATION = "org_" + "0" * 21
NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
IDS = IdSource(SystemClock(), random.Random(7))
ANA, BIA, CAIO = "+5511987654321", "+5511987654322", "+5511987654323"


async def add(database: Database, phone: str, status: str, *, env: str = "test") -> str:
    contact_id = IDS.new(CONTACT)
    await database.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at) "
        "values ($1, $2, $3, $4, $5, 'api', $6, '', $7)",
        ORGANIZATION, env, contact_id, phone, phone_hash(ORGANIZATION, phone), status, NOW,
    )  # fmt: skip
    return contact_id


async def register(database: Database, phone: str, kind: str = "phone") -> None:
    await database.execute(
        "insert into opt_outs values ($1, 'test', $2, $3, $4)", ORGANIZATION, kind, phone_hash(ORGANIZATION, phone), NOW
    )


async def test_a_recipient_is_known_by_contact_or_by_phone_each_in_its_place(database: Database) -> None:
    ana = await add(database, ANA, "granted")
    bia = await add(database, BIA, "denied")
    await register(database, CAIO)
    key = (ORGANIZATION, "test")

    found = await recipients.find(
        database,
        [
            RecipientKey(*key, phone=CAIO),
            RecipientKey(*key, contact_id=bia),
            RecipientKey(*key, phone=ANA),
            RecipientKey(*key, contact_id=ana),
        ],
    )

    assert found == [
        Recipient(None, CAIO, None, True),
        Recipient(bia, BIA, ConsentStatus.DENIED, False),
        Recipient(ana, ANA, ConsentStatus.GRANTED, False),
        Recipient(ana, ANA, ConsentStatus.GRANTED, False),
    ]


async def test_a_contact_that_is_named_is_looked_for_in_the_registry_by_its_phone(database: Database) -> None:
    ana = await add(database, ANA, "unknown")
    await register(database, ANA)
    (found,) = await recipients.find(database, [RecipientKey(ORGANIZATION, "test", contact_id=ana)])
    assert found == Recipient(ana, ANA, ConsentStatus.UNKNOWN, True)


async def test_nobody_is_known_across_environments_or_by_an_entry_for_addresses(database: Database) -> None:
    ana = await add(database, ANA, "denied", env="live")
    await register(database, ANA, kind="email")
    asked = [RecipientKey(ORGANIZATION, "test", contact_id=ana), RecipientKey(ORGANIZATION, "test", phone=ANA)]
    assert await recipients.find(database, asked) == [
        Recipient(None, None, None, False),
        Recipient(None, ANA, None, False),
    ]


async def test_look_ups_at_once_are_one_query_and_none_is_taken_after_the_end(database: Database) -> None:
    await add(database, ANA, "granted")
    service = RecipientLookup(database, clock=SystemClock())
    await service.start()
    asked = [service.find(RecipientKey(ORGANIZATION, "test", phone=phone)) for phone in (ANA, BIA, ANA)]
    assert [(await each).status for each in asked] == [ConsentStatus.GRANTED, None, ConsentStatus.GRANTED]
    assert (service._look_ups.rows, service._look_ups.batches) == (3, 1)
    await service.stop()
    with pytest.raises(Unavailable):
        service.find(RecipientKey(ORGANIZATION, "test", phone=ANA))
