"""A storm of bounces and complaints about e-mails that left: 2,500 for each second that an attack lasts (C10.2.8)."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson
import pytest
from tests.abuse.conftest import ADMIN_TOKEN, memory_of
from tests.abuse.neighbour import Neighbour
from tests.acceptance.provider_sides import BridgeSide
from tests.channels.email.caller import Mail, ready_in_live
from tests.program import Api, Service
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

EACH_SECOND = 2_500
A_BODY, AT_ONCE = 100, 8
COMPLAINED = 10  # of so many reports one is a complaint, all others are permanent bounces
MOST_MEMORY = 200 * 2**20  # bytes, above what the service had before
SIGNER = BridgeSide(0)

# Rows as they are after a departure, made of one that has left. Of every hundredth the person was deleted.
CLONED = """
insert into messages
select (jsonb_populate_record(m, jsonb_build_object(
    'id', left(m.id, -6) || lpad(i::text, 6, '0'), 'status', 'sent', 'delivered_at', null,
    'recipient', case when i % 100 = 0 then 's***@example.net' else 'storm' || i || '@example.net' end,
    'recipient_hash', case when i % 100 = 0 then null else m.recipient_hash end
))).*
from messages m, generate_series(1, $2) as i
where m.id = $1
"""
NAMED = """
insert into provider_messages
select (jsonb_populate_record(p, jsonb_build_object('reference', c.id, 'message_id', c.id))).*
from provider_messages p,
    lateral (select left($1, -6) || lpad(i::text, 6, '0') as id from generate_series(1, $2) as i) c
where p.message_id = $1 and p.reference = (select min(reference) from provider_messages where message_id = $1)
"""
STATES = "select status, count(*) from messages where id like left($1, -6) || '%' and id <> $1 group by status"


async def test_a_storm_of_bounces_is_taken_and_keeps_nobody_waiting(
    service: Service, neighbour: Neighbour, database: Any, seconds: float
) -> None:
    count = int(EACH_SECOND * seconds)
    if not await database.fetchval("select exists (select from email_senders where env = 'live')"):
        await ready_in_live(service, ADMIN_TOKEN)
    key = await asyncio.to_thread(service.key, "live", org=None)
    async with Api(service.url, key) as api:
        mail = Mail(api)
        first = (await mail.send("success@simulator.test", key=f"storm {seconds} {time.time()}"))["id"]
        await mail.comes_to(first, "delivered")
    suppressed = "select count(*) from email_suppressions where env = 'live' and email like $1"
    await database.execute("delete from email_suppressions where env = 'live'")
    await database.execute(CLONED, first, count)
    assert await database.execute(NAMED, first, count) == f"INSERT 0 {count}"
    ids = [f"{first[:-6]}{number:06}" for number in range(1, count + 1)]
    unknown = [f"{each[:-1]}Z" for each in ids[: count // 50]]
    before = highest = memory_of(service)

    async with neighbour.held():
        began = time.monotonic()
        async with aiohttp.ClientSession() as session:
            bodies = iter([*_bodies(ids), *_bodies(unknown)])

            async def report() -> None:
                nonlocal highest
                for body in bodies:
                    await _told(session, service, body)
                    highest = max(highest, memory_of(service))

            await asyncio.gather(*(report() for _ in range(AT_ONCE)))
        taken_in = time.monotonic() - began
        states: dict[str, int] = {}

        async def settled() -> bool:
            nonlocal highest
            states.update({row["status"]: row["count"] for row in await database.fetch(STATES, first)})
            highest = max(highest, memory_of(service))
            return not states.pop("sent", 0)

        await until(settled, "every report has moved its message", every=0.2)
        settled_in = time.monotonic() - began
    complained = len(range(0, count, COMPLAINED))
    print(
        f"{count} reports taken in {taken_in:.1f} s, settled in {settled_in:.1f} s, {(highest - before) >> 20} MiB more"
    )
    assert states == {"bounced": count - complained, "complained": complained}
    assert await database.fetchval(suppressed, "storm%") == count - count // 100
    assert await database.fetchval(suppressed, "s***%") == 0  # who was deleted is not known any more
    assert highest <= before + MOST_MEMORY


def _bodies(ids: Sequence[str]) -> list[bytes]:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = {"kind": "status", "at": at}
    bounced, complained = {"status": "bounced", "bounceType": "permanent"}, {"status": "complained"}
    events = [
        {**told, **(bounced if place % COMPLAINED else complained), "reference": each, "providerMessageId": each}
        for place, each in enumerate(ids)
    ]
    return [orjson.dumps({"events": events[place : place + A_BODY]}) for place in range(0, len(events), A_BODY)]


async def _told(session: aiohttp.ClientSession, service: Service, body: bytes) -> None:
    """Sent again, as a provider does, while the service has no room."""
    headers = {"Content-Type": "application/json", **SIGNER.signed(body)}
    while True:
        async with session.post(f"{service.url}/v2/callbacks/email/bridge", data=body, headers=headers) as answer:
            if answer.status == 200:
                return
            assert answer.status in (429, 503), await answer.text()
            await asyncio.sleep(float(answer.headers["Retry-After"]))
