"""Executions of journeys: how fast contacts enter from a list and go their way, and how late those are that wait.

Before, how long a dry run takes for as many contacts.

`BENCH_EXECUTIONS` sets how many contacts enter, instead of 100,000.
"""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.contacts import make_contacts
from bench.harness import Figure, Say, rss, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import LIMIT, Connection

CONTACTS = int(os.environ.get("BENCH_EXECUTIONS", "100000"))
ENTERED = 5_000  # a second, aimed at
DUE = 20_000  # of them that are due at one moment
WOKEN = 10_000  # a second, aimed at
GROWN = 50  # MB, aimed at: those that wait are rows, a million too
POLL = 0.2  # seconds: each look counts rows

TRIED = 10.0  # seconds, at most, for a dry run
_PLAINLY = """
select id, phone, phone_hash, email_key, opt_in_status, name, attributes -> 'plan', attributes -> 'city'
from contacts where organization_id = $1
"""
_MEMBERS = """
insert into static_list_members (organization_id, list_id, contact_id, added_at)
select organization_id, $2, id, now() from contacts where organization_id = $1
"""
_WAKE = """
update executions set wake_at = $1, awaited_until = $1, arrived_at = $1::timestamptz - interval '10000 minutes'
where id in (select id from executions where status = 'ativa' order by id limit $2)
"""

JOURNEY: dict[str, Any] = {
    "name": "bench",
    "inicio": "ask",
    "passos": [
        {
            "id": "ask", "tipo": "condicao", "campo": "attributes.none", "operador": "existe", "sim": "end",
            "nao": "wait",
        },
        {"id": "wait", "tipo": "esperar", "minutos": 10_000, "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ],
}  # fmt: skip


_SAYS: dict[str, Any] = {
    "tipo": "enviar", "canal": "sms", "texto": "Hello {{1}}",
    "variaveis": {"1": {"de": "contato", "campo": "name", "padrao": "you"}},
}  # fmt: skip
TRIED_JOURNEY: dict[str, Any] = {
    "name": "bench of a dry run",
    "inicio": "plan",
    "passos": [
        {
            "id": "plan", "tipo": "condicao", "campo": "attributes.plan", "operador": "igual", "valor": "pro",
            "sim": "first", "nao": "city",
        },
        {
            "id": "city", "tipo": "condicao", "campo": "attributes.city", "operador": "contem", "valor": "7",
            "sim": "first", "nao": "split",
        },
        {
            "id": "split", "tipo": "dividir", "ramos": [
                {"nome": "a", "peso": 1, "proximo": "first"}, {"nome": "b", "peso": 2, "proximo": "wait"},
            ],
        },
        {"id": "first", **_SAYS, "proximo": "answered"},
        {"id": "answered", "tipo": "condicao", "sobre": "first", "sinal": "respondeu", "sim": "end", "nao": "wait"},
        {"id": "wait", "tipo": "esperar", "minutos": 600, "proximo": "second"},
        {"id": "second", **_SAYS, "proximo": "clicked"},
        {"id": "clicked", "tipo": "condicao", "sobre": "second", "sinal": "clicou", "sim": "end", "nao": "third"},
        {"id": "third", **_SAYS, "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ],
}  # fmt: skip


async def run(say: Say) -> list[Figure]:
    """A condition and a wait for each; then some of the waits are over at one moment."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        database = await service.database()
        say(f"journeys: making {CONTACTS:,} contacts")
        await make_contacts(database, api.organization_id, CONTACTS)
        made = await api.call("POST", "/v2/lists", {"name": "bench"})
        await database.execute("alter table static_list_members disable trigger user")
        await database.execute(_MEMBERS, api.organization_id, made["id"], timeout=LIMIT)
        await database.execute("alter table static_list_members enable trigger user")
        await database.execute("update static_lists set size = $1", CONTACTS)
        entering = await database.fetchval("select count(*) from contacts where opt_in_status <> 'denied'")
        say(f"journeys: a dry run for {CONTACTS:,} contacts")
        tried, plainly = await _tried(api, database, made["id"])
        say(f"journeys: {CONTACTS:,} contacts enter from a list")
        journey = await api.call(
            "POST", "/v2/journeys", {**JOURNEY, "gatilho": {"tipo": "lista", "listId": made["id"]}}
        )
        before, held = service.cpu(), rss(service.pid)
        began = time.monotonic()
        await api.call("POST", f"/v2/journeys/{journey['id']}/activate")
        await _until(database, "select count(*) from executions where awaited = 'espera'", entering)
        a_second = entering / (time.monotonic() - began)
        of_entry = _each(before, service.cpu(), entering)
        grown = (rss(service.pid) - held) / 1_000_000
        ending = min(DUE, entering)
        say(f"journeys: {ending:,} waits are over at one moment")
        due = datetime.now(UTC) + timedelta(seconds=5)
        await database.execute(_WAKE, due, ending, timeout=LIMIT)
        await asyncio.sleep((due - datetime.now(UTC)).total_seconds())
        before = service.cpu()
        await _until(database, "select count(*) from executions where status = 'concluida'", ending)
        late = (datetime.now(UTC) - due).total_seconds()
        of_end = _each(before, service.cpu(), ending)
        await database.close()
    return [
        Figure(
            f"a dry run for {CONTACTS:,} contacts, against reading what it looks at", f"{tried:.1f} s",
            f"{plainly:.2f} s", tried / plainly, f"< {TRIED:.0f} s", tried < TRIED,
        ),
        Figure(
            f"{CONTACTS:,} contacts enter from a list, and come to a wait", f"{a_second:,.0f}/s", "", None,
            f"≥ {ENTERED:,}/s", a_second >= ENTERED,
        ),
        Figure("processor time of an entry, Recado's and PostgreSQL's", of_entry),
        Figure("memory of the process, grown meanwhile", f"{grown:,.0f} MB", "", None, f"< {GROWN} MB", grown < GROWN),
        Figure(
            f"{ending:,} waits that end at one moment", f"{late:.1f} s", "", None, f"< {2 + ending / WOKEN:.0f} s",
            late < 2 + ending / WOKEN,
        ),
        Figure("processor time of a wait that ends", of_end),
    ]  # fmt: skip


def _each(before: tuple[float, float], after: tuple[float, float], count: int) -> str:
    """Processor time of each of so many, of the process and of its PostgreSQL."""
    own, server = ((now - then) * 1_000_000 / count for then, now in zip(before, after, strict=True))
    return f"{own:,.0f} + {server:,.0f} µs"


async def _tried(api: Api, database: Connection, list_id: str) -> tuple[float, float]:
    """Seconds of a dry run of messages of each contact's own, with conditions; and of reading the same facts."""
    body = {**TRIED_JOURNEY, "gatilho": {"tipo": "lista", "listId": list_id}}
    journey = await api.call("POST", "/v2/journeys", body)
    rates = {"entregue": 0.95, "respondeu": 0.1, "clicou": 0.05, "optOut": 0.01}
    began = time.monotonic()
    found = await api.call("POST", f"/v2/journeys/{journey['id']}/simulate", {"taxas": rates})
    tried = time.monotonic() - began
    if found["parcial"] or found["contatos"]["lidos"] != CONTACTS:
        raise RuntimeError(f"not all were tried: {found['contatos']}")
    began = time.monotonic()
    await database.fetch(_PLAINLY, api.organization_id, timeout=LIMIT)
    return tried, time.monotonic() - began


async def _until(database: Connection, count: str, wanted: int) -> None:
    give_up = time.monotonic() + LIMIT
    while await database.fetchval(count) < wanted:
        if time.monotonic() > give_up:
            raise RuntimeError(f"not {wanted:,} after {LIMIT:.0f} s: {count}")
        await asyncio.sleep(POLL)
