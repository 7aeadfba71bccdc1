"""Stored values written anew with a new key (C30.1): all of them, once, beside whoever writes meanwhile."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from recado.actors.jobs.encrypted_places import PLACES
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.core.upkeep import reencryption
from recado.storage.core.upkeep.reencryption import CipherForm, Place

K1, K2 = bytes(range(32)), bytes(range(32, 64))
OLD, NEW, ROTATED = KeyRing({"k1": K1}), KeyRing({"k2": K2}), KeyRing({"k2": K2, "k1": K1})
START = datetime(2026, 1, 1, tzinfo=UTC)
ORGANIZATION = "org_1"

CONTACTS, NUMBERS, WEBHOOKS = (
    next(place for place in PLACES if place.table == table)
    for table in ("contacts", "numbers", "webhook_subscriptions")
)


def sealed(ring: KeyRing, place: Place, record_id: str, value: str) -> str:
    return ring.encrypt(value, organization_id=ORGANIZATION, record_id=record_id, field=place.field)


def opened(ring: KeyRing, place: Place, record_id: str, stored: str) -> str:
    return ring.decrypt(stored, organization_id=ORGANIZATION, record_id=record_id, field=place.field)


async def put(database: Database, table: str, **given: Any) -> None:
    """A row with these columns, and something in every other one that must not be null."""
    needed = await database.fetch(
        "select column_name, data_type, udt_name from information_schema.columns "
        "where table_name = $1 and is_nullable = 'NO' and column_default is null",
        table,
    )
    fill: Mapping[str, Any] = {
        "text": "x", "boolean": False, "integer": 1, "smallint": 1, "bigint": 1, "ARRAY": [], "bytea": b"x",
        "timestamp with time zone": START, "jsonb": {}, "tsvector": "",
    }  # fmt: skip
    row = {column: fill[kind] for column, kind, _ in needed} | {"organization_id": ORGANIZATION} | given
    names = ", ".join(row)
    values = ", ".join(f"${position}" for position in range(1, len(row) + 1))
    await database.execute(f"insert into {table} ({names}) values ({values})", *row.values())


async def contact(database: Database, contact_id: str, **ciphers: str) -> None:
    await put(database, "contacts", id=contact_id, env="live", phone=contact_id, phone_hash=b"", **ciphers)


async def all_of(database: Database, place: Place, ring: KeyRing = ROTATED) -> tuple[int, list[tuple[str, str]]]:
    """Rewrite a place; how many rows were written, and which are damaged."""
    blocks = [block async for block in reencryption.rewrite(database, place, ring)]
    return sum(block.written for block in blocks), [one for block in blocks for one in block.damaged]


async def test_every_column_with_encrypted_values_is_in_the_list(database: Database) -> None:
    found = await database.fetch(
        "select table_name, column_name from information_schema.columns "
        "where table_schema = 'public' and (column_name like '%\\_cipher' or column_name = 'history') "
        "and table_name !~ '^messages_'"
    )
    by_name = [(place.table, place.column) for place in PLACES if place.form is not CipherForm.MEMBER]
    assert sorted(by_name) == sorted(map(tuple, found))


async def test_values_of_an_old_key_are_written_with_the_new_one_and_then_nothing_is_left(database: Database) -> None:
    ids = [f"cnt_{n:04}" for n in range(reencryption.BLOCK + 3)]
    for contact_id in ids:
        await contact(database, contact_id, cpf_cipher=sealed(OLD, CONTACTS, contact_id, f"value of {contact_id}"))
    await contact(database, "cnt_new", cpf_cipher=sealed(ROTATED, CONTACTS, "cnt_new", "new already"))
    untouched = await database.fetchval("select cpf_cipher from contacts where id = 'cnt_new'")
    assert await reencryption.count(database, CONTACTS, ROTATED) == len(ids)

    assert await all_of(database, CONTACTS) == (len(ids), [])

    assert await reencryption.count(database, CONTACTS, ROTATED) == 0
    assert await all_of(database, CONTACTS) == (0, [])
    for contact_id, stored in await database.fetch("select id, cpf_cipher from contacts where id <> 'cnt_new'"):
        assert opened(NEW, CONTACTS, contact_id, stored) == f"value of {contact_id}"
    assert await database.fetchval("select cpf_cipher from contacts where id = 'cnt_new'") == untouched


@pytest.mark.parametrize(
    "place", [place for place in PLACES if place.form is CipherForm.VALUE], ids=lambda place: place.column
)
async def test_each_place_keeps_its_values(database: Database, place: Place) -> None:
    await put(database, place.table, id="rec_1", **{place.column: sealed(OLD, place, "rec_1", "a value")})

    assert await all_of(database, place) == (1, [])

    stored = await database.fetchval(f"select {place.column} from {place.table} where id = 'rec_1'")
    assert opened(NEW, place, "rec_1", stored) == "a value"


@pytest.mark.parametrize(
    "place", [place for place in PLACES if place.form is CipherForm.HISTORY], ids=lambda place: place.table
)
async def test_what_endpoints_answered_is_written_anew_inside_the_history(database: Database, place: Place) -> None:
    def attempts(ring: KeyRing) -> list[dict[str, Any]]:
        return [
            {"attempt": 1, "error": "the endpoint answered 500", "answer": "in the clear"},
            {"attempt": 2, "answerCipher": sealed(ring, place, "dlv_1", "private"), "durationMs": 5},
            {"attempt": 3},
        ]

    before = attempts(OLD)
    await put(database, place.table, id="dlv_1", subscription_id="wbh_1", history=before)
    await put(database, place.table, id="dlv_2", subscription_id="wbh_1", history=attempts(ROTATED))
    assert await reencryption.count(database, place, ROTATED) == 1

    assert await all_of(database, place) == (1, [])

    after = await database.fetchval(f"select history from {place.table} where id = 'dlv_1'")
    assert opened(NEW, place, "dlv_1", after[1].pop("answerCipher")) == "private"
    before[1].pop("answerCipher")
    assert after == before
    assert await reencryption.count(database, place, ROTATED) == 0


async def test_phones_in_the_data_of_events_are_written_anew_and_the_rest_stays_in_its_order(
    database: Database,
) -> None:
    (place,) = (place for place in PLACES if place.form is CipherForm.MEMBER)
    data = {"phone": "+55*******4321", "id": "cnt_1", "sealed": sealed(OLD, place, "evt_1", "private")}
    await put(database, "events", id="evt_1", data=orjson.dumps(data).decode())
    await put(database, "events", id="evt_2", data='{"id": "key_1"}')
    await put(database, "events", id="evt_3")
    assert await reencryption.count(database, place, ROTATED) == 1

    assert await all_of(database, place) == (1, [])

    after = orjson.loads(await database.fetchval("select data from events where id = 'evt_1'"))
    assert opened(NEW, place, "evt_1", after["sealed"]) == "private"
    assert list({**after, "sealed": data["sealed"]}.items()) == list(data.items())
    assert await reencryption.count(database, place, ROTATED) == 0


async def test_interrupted_it_goes_on_with_the_rest(database: Database) -> None:
    for n in range(2 * reencryption.BLOCK):
        await contact(database, f"cnt_{n:04}", cpf_cipher=sealed(OLD, CONTACTS, f"cnt_{n:04}", "value"))
    run = reencryption.rewrite(database, CONTACTS, ROTATED)
    assert (await anext(run)).written == reencryption.BLOCK
    await run.aclose()

    assert await reencryption.count(database, CONTACTS, ROTATED) == reencryption.BLOCK
    assert await all_of(database, CONTACTS) == (reencryption.BLOCK, [])


async def test_a_value_that_no_key_opens_is_named_left_alone_and_holds_up_nothing(database: Database) -> None:
    moved = sealed(OLD, CONTACTS, "cnt_9", "of somebody else")
    await contact(database, "cnt_1", cpf_cipher=moved)
    await contact(database, "cnt_2", cpf_cipher=sealed(OLD, CONTACTS, "cnt_2", "value"))

    assert await all_of(database, CONTACTS) == (1, [(ORGANIZATION, "cnt_1")])

    assert await database.fetchval("select cpf_cipher from contacts where id = 'cnt_1'") == moved
    assert await reencryption.count(database, CONTACTS, ROTATED) == 1


async def test_a_value_changed_meanwhile_is_not_turned_back(database: Database) -> None:
    await put(database, "numbers", id="num_1", access_token_cipher=sealed(OLD, NUMBERS, "num_1", "former"))
    latest = sealed(OLD, NUMBERS, "num_1", "latest")

    class Meanwhile:
        """The database, where somebody else writes between the reading and the writing of a block."""

        fetch = database.fetch

        async def execute(self, query: str, *arguments: Any) -> Any:
            await database.execute("update numbers set access_token_cipher = $1 where id = 'num_1'", latest)
            return await database.execute(query, *arguments)

    run: Any = reencryption.rewrite(Meanwhile(), NUMBERS, ROTATED)  # type: ignore[arg-type]
    assert [block.written async for block in run] == [0]
    assert await database.fetchval("select access_token_cipher from numbers where id = 'num_1'") == latest
    assert await all_of(database, NUMBERS) == (1, [])


async def test_without_the_old_key_nothing_is_lost(database: Database) -> None:
    stored = sealed(OLD, WEBHOOKS, "wbh_1", "secret")
    await put(database, "webhook_subscriptions", id="wbh_1", secret_cipher=stored)

    assert await all_of(database, WEBHOOKS, NEW) == (0, [(ORGANIZATION, "wbh_1")])

    assert await database.fetchval("select secret_cipher from webhook_subscriptions") == stored
    with pytest.raises(Tampered):
        opened(NEW, WEBHOOKS, "wbh_1", stored)
