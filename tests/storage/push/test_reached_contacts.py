"""How many devices reach a contact: counted with each change of a device, whatever happens in which order (C13.2)."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.people import insert_people
from tests.plans import indexes, plan_of

from recado.domain.audience.segment import Field, Leaf, Operator
from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.services.push.registrations import DeviceRegistrations, Registration
from recado.storage.audience import segments
from recado.storage.audience.segment_query import query
from recado.storage.core.migrate import read_migrations
from recado.storage.core.postgres import Database
from recado.storage.push import devices
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
                    await connection.execute(APPS.delete_devices, *ONE, APP, "", 1_000)
            await noted(database)


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
