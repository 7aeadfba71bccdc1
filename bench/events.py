"""How fast customer events are stored and credited, of contacts with 200 messages each, beside a plain service."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from bench.accept import CONNECTIONS, plain
from bench.contacts import make_contacts
from bench.harness import Figure, Say, against, running, scratch, wrk
from bench.recado_process import READY, Api, Sender, recado, write_bodies
from bench.rows import LIMIT, Connection
from recado.domain.core.ids import MESSAGE, lowest_id

SECONDS = 4
ROUNDS = 2
CONTACTS, EACH = 1_000, 200  # messages
LEAST = 0.5
# In the order of their departure, so that those of one contact lie far apart.
_MESSAGES = """
with sent as (
    insert into messages (
        organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
        template_id, contact_id, sent_at, updated_at
    )
    select
        $1, 'test', 'chatapp', $2 || lpad(g::text, 13, '0'), 'outbound', 'read', 'template', $3, '+551190009003', g, 1,
        false, $4, ($5::text[])[1 + g % cardinality($5::text[])], $6::timestamptz + g * interval '1 millisecond', $6
    from generate_series(1, $7::int) g
    returning organization_id, env, contact_id, sent_at, id, channel
)
insert into contact_touches (organization_id, env, contact_id, sent_at, message_id, channel) select * from sent
"""


async def run(say: Say) -> list[Figure]:
    """In turns; the bound stores messages, one a request, as in `accept`."""
    bound, ours = [], []
    async with (
        scratch() as folder,
        running(plain(folder), "/ready") as beside,
        running(recado(folder, RECADO_BILLING_ENABLED="false"), READY) as service,
        Api(service) as api,
    ):
        say(f"events: making {CONTACTS * EACH:,} messages")
        sender = await api.sender("events")
        database = await service.database()
        contact_ids = await make_contacts(database, api.organization_id, CONTACTS)
        await make_messages(database, sender, contact_ids)
        await database.close()
        messages, events = write_bodies(folder / "messages", [sender]), write_events(folder / "events", contact_ids)

        async def load(url: str, bodies: Path, suffix: str) -> float:
            result = await wrk(url, api.token, bodies, seconds=SECONDS, connections=CONNECTIONS, suffix=suffix)
            return result["requests"] / result["seconds"]

        for number in range(ROUNDS):
            say(f"events, round {number + 1} of {ROUNDS}")
            bound.append(await load(beside.url, messages, "9003"))
            ours.append(await load(service.url, events, f"{number:04}"))  # none comes twice
    return [against(f"customer events, of contacts with {EACH} messages each", ours, bound, "/s", LEAST)]


async def make_messages(database: Connection, sender: Sender, contact_ids: list[str]) -> None:
    """So many of each contact, sent within the last hours."""
    began = datetime.now(UTC) - timedelta(hours=2)
    prefix = lowest_id(MESSAGE, began)[:-13]
    arguments = (prefix, sender.number_id, sender.template_id, contact_ids, began, len(contact_ids) * EACH)
    await database.execute(_MESSAGES, sender.organization_id, *arguments, timeout=LIMIT)
    await database.execute("vacuum analyze messages", timeout=LIMIT)
    await database.execute("vacuum analyze contact_touches", timeout=LIMIT)


def write_events(path: Path, contact_ids: list[str]) -> Path:
    """The bodies of a load, one of each contact; PHONE stands for what no other request has."""
    bodies = [
        {
            "name": "order.paid",
            "eventId": "PHONE",
            "contact": {"contactId": each},
            "value": 99.9,
            "properties": {"sku": "A1"},
        }
        for each in contact_ids
    ]
    path.write_bytes(b"".join(orjson.dumps(body) + b"\n" for body in bodies))
    return path
