"""How many devices reach a contact: counted with each change of a device, whatever happens in which order (C13.2)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.people import insert_people
from tests.plans import indexes, plan_of
from tests.waiting import locked_out, until

from recado.domain.audience.segment import Field, Leaf, Operator
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.services.push.registrations import DeviceRegistrations, Registration
from recado.storage.audience import segments
from recado.storage.audience.segment_query import query
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import read_migrations
from recado.storage.push import apps, devices
from recado.storage.push.apps import SQL as APPS
from recado.storage.push.devices import hash_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ONE = ("org_1", "test")
APP = "app_1"
TOKENS = ("a", "b", "c", "d")
COUNTED = """
select c.id, c.push_devices as noted, count(d.id) as devices
from contacts c
left join push_devices d
    on d.organization_id = c.organization_id and d.env = c.env and d.contact_id = c.id and d.status = 'registered'
group by c.organization_id, c.env, c.id, c.push_devices
"""
ADD_APP = """
insert into push_apps (organization_id, env, id, name, platforms, vapid_cipher, vapid_public_key, updated_at)
values ('org_1', 'test', 'app_1', 'Shop', '{android}', '', '', now())
"""


@pytest.fixture
async def registrations(database: Database) -> AsyncIterator[DeviceRegistrations]:
    clock = SystemClock()
    service = DeviceRegistrations(database, ids=IdSource(clock, random.Random(3)), clock=clock)
    await service.start()
    yield service
    await service.stop()


def registration(token: str, contact: str | None = None, opted_in: bool | None = None) -> Registration:
    return Registration(
        organization_id="org_1", env="test", app_id=APP, token=token, platform="android", contact_id=contact,
        opted_in=opted_in,
    )  # fmt: skip


async def noted(database: Database) -> list[int]:
    """Of each contact, by id; each as its devices are."""
    rows = sorted(await database.fetch(COUNTED), key=lambda row: str(row["id"]))
    assert [row["noted"] for row in rows] == [row["devices"] for row in rows]
    return [row["noted"] for row in rows]


Step = tuple[str, str, int | None, bool | None]
STEPS = st.tuples(
    st.sampled_from(["register", "opt out", "invalidate", "delete app"]),
    st.sampled_from(TOKENS),
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, True, False]),
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=st.lists(st.lists(STEPS, min_size=1, max_size=5), min_size=1, max_size=4))
async def test_whatever_becomes_of_devices_their_contacts_have_their_number(
    database: Database,
    registrations: DeviceRegistrations,
    commits: list[list[tuple[str, str, int | None, bool | None]]],
) -> None:
    await database.execute("truncate contacts, push_devices, push_apps")
    await database.execute(ADD_APP)
    contacts = await insert_people(database, *ONE, [{}, {}, {}])
    for steps in commits:
        await asyncio.gather(
            *(
                registrations.register(registration(token, None if at is None else contacts[at], opted_in))
                for kind, token, at, opted_in in steps
                if kind == "register"
            )
        )
        await noted(database)
        for kind, token, _, _ in steps:
            async with database.transaction() as connection:
                if kind == "opt out":
                    await devices.opt_out(connection, (*ONE, APP, hash_of(token)), NOW)
                elif kind == "invalidate":
                    ids = await connection.fetch("select id from push_devices where token <= $1", token)
                    await devices.invalidate(connection, [(*ONE, row["id"]) for row in ids], NOW)
                elif kind == "delete app":
                    await connection.execute(APPS.delete_devices, *ONE, APP, "", 2_000)
            await noted(database)


async def test_a_device_that_was_invalid_and_opts_out_was_counted_no_more(
    database: Database, registrations: DeviceRegistrations
) -> None:
    await database.execute(ADD_APP)
    (contact,) = await insert_people(database, *ONE, [{}])
    made = await registrations.register(registration("a", contact))
    await registrations.register(registration("b", contact))
    async with database.transaction() as connection:
        await devices.invalidate(connection, [(*ONE, made.device.id)], NOW)
    async with database.transaction() as connection:
        await devices.opt_out(connection, (*ONE, APP, hash_of("a")), NOW)
    assert await noted(database) == [1]


@pytest.fixture
async def held_write(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """A registration has looked, and stops before it writes, for as long as the second event is not set."""
    looked, goes_on = asyncio.Event(), asyncio.Event()
    write = devices.write

    async def waiting(*given: Any) -> None:
        looked.set()
        await goes_on.wait()
        await write(*given)

    monkeypatch.setattr(devices, "write", waiting)
    return looked, goes_on


async def done_or_locked_out(database: Database, task: "asyncio.Task[Any]") -> None:
    async def either() -> bool:
        return task.done() or await locked_out(database) > 0

    await until(either, "it is done, or waits")


async def test_an_app_that_is_deleted_while_a_device_registers_leaves_none_behind(
    database: Database, registrations: DeviceRegistrations, held_write: tuple[asyncio.Event, asyncio.Event]
) -> None:
    looked, goes_on = held_write
    await database.execute(ADD_APP)
    (contact,) = await insert_people(database, *ONE, [{}])

    async def delete_app() -> None:
        async with database.transaction() as connection:
            app = await apps.PUSH_APPS.get_locked(connection, *ONE, APP)
            assert app is not None
            await apps.delete(connection, app)

    registering = asyncio.create_task(registrations.register(registration("a", contact)))
    await looked.wait()
    deleting = asyncio.create_task(delete_app())
    await done_or_locked_out(database, deleting)
    goes_on.set()
    await asyncio.gather(registering, deleting)
    assert await database.fetchval("select count(*) from push_devices") == 0
    assert await noted(database) == [0]
    with pytest.raises(Problem) as refused:
        await registrations.register(registration("b"))
    assert refused.value.code == "NOT_FOUND"


async def test_a_device_is_linked_to_no_contact_that_is_deleted_meanwhile(
    database: Database, registrations: DeviceRegistrations, held_write: tuple[asyncio.Event, asyncio.Event]
) -> None:
    """Who erases it looks for its devices once: one that came later would keep what is personal."""
    looked, goes_on = held_write
    await database.execute(ADD_APP)
    contacts = await insert_people(database, *ONE, [{}, {}])
    registering = [
        asyncio.create_task(registrations.register(registration(token, contact)))
        for token, contact in zip("ab", contacts, strict=True)
    ]
    await looked.wait()
    await database.execute("delete from contacts where id = $1", contacts[0])
    goes_on.set()
    refused, _ = await asyncio.gather(*registering, return_exceptions=True)
    assert isinstance(refused, Problem)
    assert refused.code == "NOT_FOUND"
    assert [row["token"] for row in await database.fetch("select token from push_devices")] == ["b"]
    assert await noted(database) == [1]


async def test_devices_that_many_change_at_once_are_counted_for_their_contacts(database: Database) -> None:
    """On connections of their own: several who register, opt out, invalidate, delete contacts, and remove devices."""
    clock = SystemClock()
    drawn = random.Random(7)
    await database.execute(ADD_APP)
    contacts = await insert_people(database, *ONE, [{"external_id": f"x{n}"} for n in range(8)])
    service = DeviceRegistrations(database, ids=IdSource(clock, random.Random(3)), clock=clock)
    await service.start()
    tokens = [f"t{n}" for n in range(12)]

    async def register() -> None:
        with suppress(Problem):  # the contact was deleted
            await service.register(
                registration(drawn.choice(tokens), drawn.choice(contacts), drawn.choice([None, True, False]))
            )

    async def opt_out() -> None:
        async with database.transaction() as connection:
            await devices.opt_out(connection, (*ONE, APP, hash_of(drawn.choice(tokens))), NOW)

    async def invalidate() -> None:
        async with database.transaction() as connection:
            ids = await connection.fetch("select id from push_devices where token <= $1", drawn.choice(tokens))
            await devices.invalidate(connection, [(*ONE, row["id"]) for row in ids], NOW)

    async def remove() -> None:
        async with database.transaction() as connection:
            await connection.execute(APPS.delete_devices, *ONE, APP, "", drawn.randint(1, 4))

    async def erase() -> None:
        contact = contacts[drawn.randint(4, 7)]
        async with database.transaction() as connection:
            await devices.unlink(connection, *ONE, contact, NOW)
            await connection.execute("delete from contacts where id = $1", contact)
        await devices.unlink(database, *ONE, contact, NOW)

    async def some(what: Callable[[], Awaitable[None]], times: int) -> None:
        for _ in range(times):
            await what()

    doing = ((register, 150), (register, 150), (register, 150), (opt_out, 60), (invalidate, 40), (remove, 20))
    await asyncio.gather(*(some(what, times) for what, times in doing), some(erase, 8))
    await service.stop()
    await noted(database)
    linked = await database.fetchval(
        "select count(*) from push_devices d where contact_id is not null and not exists "
        "(select from contacts c where c.organization_id = d.organization_id and c.env = d.env and c.id = d.contact_id)"
    )
    assert linked == 0


async def test_devices_that_were_there_are_counted_by_the_migration(database: Database) -> None:
    contacts = await insert_people(database, *ONE, [{}, {}])
    for number, (contact, status) in enumerate(
        [(contacts[0], "registered"), (contacts[0], "registered"), (contacts[1], "opted_out"), (None, "registered")]
    ):
        await database.execute(
            "insert into push_devices (organization_id, env, id, app_id, token, token_hash, platform, status, "
            "contact_id, topics, updated_at) values ($1, $2, $3, 'app_1', '', $4, 'android', $5, $6, '{}', now())",
            *ONE, f"dev_{number}", hash_of(f"dev_{number}"), status, contact,
        )  # fmt: skip
    await database.execute("alter table contacts drop column push_devices, drop column if exists chatapp_user_id")
    (migration,) = [each for each in read_migrations() if each.name.endswith("reach_of_contacts")]
    await database.execute(migration.sql)
    assert await noted(database) == [2, 0]


async def test_contacts_that_are_counted_are_found_along_their_key(database: Database) -> None:
    await insert_people(database, *ONE, [{}] * 2_000)
    rows = (["org_1"], ["test"], ["cnt_1"], [1])
    async with database.hot.transaction() as connection:
        assert "contacts_pkey" in indexes(await plan_of(connection, devices.SQL.count, rows))


async def test_a_look_at_who_is_reached_needs_no_other_table(database: Database) -> None:
    tree = Leaf(Field.CHANNEL, Operator.IS, "push")
    sql, arguments = query(segments.SQL.count, *ONE, tree, NOW)
    relations = {node.get("Relation Name") for node in await plan_of(database, sql, arguments)}
    assert relations - {None} == {"contacts"}
