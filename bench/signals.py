"""How soon a read moves the execution that waits for it, while other messages leave beside it (C9.6).

A journey sends to each contact, and waits until its message is read; its number sends 100 a second. Beside it a load
test sends through other numbers. The delay is from the moment of the read, as its provider names it, to the end of the
execution.
"""

import asyncio
import statistics
from typing import Any

from bench.contacts import make_contacts
from bench.harness import Figure, Say, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import LIMIT, Connection

CONTACTS = 2_000
PACE = 100  # of the journey's number, a second
BESIDE = 2_000  # messages a second
NUMBERS = 10  # that they leave through
SECONDS = CONTACTS // PACE + 10  # the load lasts as long as the journey
SOON = 1.0  # seconds, aimed at
POLL = 0.5  # seconds

_MEMBERS = """
insert into static_list_members (organization_id, list_id, contact_id, added_at)
select organization_id, $2, id, now() from contacts where organization_id = $1 and opt_in_status <> 'denied'
"""
_OVER = "select count(*) from executions where status <> 'ativa'"
_DELAYS = """
select extract(epoch from e.ended_at - m.read_at)::float8
from executions e
join messages m
    on m.organization_id = e.organization_id and m.env = e.env and m.journey_id = e.journey_id
    and m.contact_id = e.contact_id
where m.read_at is not null
"""


async def run(say: Say) -> list[Figure]:
    """Each execution is heard of by the signal of its read: nothing else ends it within the time of the run."""
    settings = {"RECADO_SANDBOX_TIME_SCALE": "1", "RECADO_BILLING_ENABLED": "false"}
    async with scratch() as folder, running(recado(folder, **settings), READY) as service, Api(service) as api:
        database = await service.database()
        say(f"signals: making {CONTACTS:,} contacts")
        await make_contacts(database, api.organization_id, CONTACTS)
        made = await api.call("POST", "/v2/lists", {"name": "bench"})
        await database.execute(_MEMBERS, api.organization_id, made["id"], timeout=LIMIT)
        sender = await api.sender("signals", per_second=PACE)
        journey = await api.call("POST", "/v2/journeys", journey_of(sender.number_id, sender.template_id, made["id"]))
        entering = await database.fetchval("select count(*) from static_list_members")
        load = asyncio.create_task(
            service.command(
                "loadtest", service.url, "--token", api.token, "--numbers", str(NUMBERS), "--per-second", "1000",
                "--rate", str(BESIDE), "--duration", str(SECONDS), "--json",
            )
        )  # fmt: skip
        try:
            say(f"signals: {entering:,} executions wait for reads, beside {BESIDE:,} messages a second")
            await api.call("POST", f"/v2/journeys/{journey['id']}/activate")
            await _until_over(database, entering)
            beside = await load
        finally:
            load.cancel()
        delays = sorted(row[0] for row in await database.fetch(_DELAYS))
        await database.close()
    if len(delays) < entering * 0.9:
        raise RuntimeError(f"only {len(delays):,} of {entering:,} were read")
    late = statistics.quantiles(delays, n=100)[98]
    return [
        Figure(
            f"from a read to the end of the execution that waits for it, p99 (p50 {statistics.median(delays):.2f} s)",
            f"{late:.2f} s", f"beside {_sent(beside):,.0f} messages/s", None, f"< {SOON:g} s", late < SOON,
        )
    ]  # fmt: skip


def journey_of(number_id: str, template_id: str, list_id: str) -> dict[str, Any]:
    """A message, and a condition on its read."""
    return {
        "name": "bench of signals",
        "gatilho": {"tipo": "lista", "listId": list_id},
        "inicio": "ask",
        "passos": [
            {
                "id": "ask", "tipo": "enviar", "canal": "chatapp", "numberId": number_id, "templateId": template_id,
                "variaveis": {"1": {"de": "fixo", "valor": "you"}}, "proximo": "read",
            },
            {
                "id": "read", "tipo": "condicao", "sobre": "ask", "sinal": "lido", "janelaMinutos": 60, "sim": "end",
                "nao": "end",
            },
            {"id": "end", "tipo": "fim"},
        ],
    }  # fmt: skip


async def _until_over(database: Connection, wanted: int) -> None:
    async with asyncio.timeout(LIMIT):
        while await database.fetchval(_OVER) < wanted:
            await asyncio.sleep(POLL)


def _sent(beside: dict[str, Any]) -> float:
    """Messages a second that the load test sent."""
    return float(beside["accepted"] / SECONDS)
