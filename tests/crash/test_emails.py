"""Kills while e-mails of a batch and of a journey leave to a mail server: none leaves twice, none is lost (C10.2, C32).

A mail server tells nothing of what it took: what was under way at a kill stays in doubt, and nothing else does.
"""

import asyncio
import signal
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.channels.email.conftest import MailServer, Peer
from tests.crash.crashes import noted_kill
from tests.program import Api, Refused, Service
from tests.waiting import until

pytestmark = pytest.mark.alone

OF_BATCH, OF_JOURNEY = 1_400, 60  # the batch is made in two blocks
KILLS, BETWEEN = 4, 250  # kills, and e-mails that the server is given between two of them
CONNECTIONS, LATENCY = 20, 0.1
PRICE = 30
PATIENCE = 90.0  # what is put off comes again after 5 s
HTML = '<p>Hello {{name}}, <a href="https://example.com/go">go</a></p>'


@dataclass
class Post:
    """The mail server, which puts off, refuses, or takes by the address, and how often it was given each."""

    given: Counter[str] = field(default_factory=Counter)
    server: MailServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = MailServer({"enable_SMTPUTF8": True}, at={"CONTENT": self._content})

    async def _content(self, peer: Peer) -> str | None:
        to = peer.envelope.rcpt_tos[0]
        self.given[to] += 1
        await asyncio.sleep(LATENCY)  # the server's, so that calls are under way at each kill
        if to.startswith("never"):
            return "550 5.7.1 not this"
        return "451 4.3.0 not now" if to.startswith("later") and self.given[to] == 1 else None

    @property
    def taken(self) -> Counter[str]:
        return Counter(envelope.rcpt_tos[0] for envelope in self.server.taken)


def address(place: int) -> str:
    kind = {7: "never", 3: "later"}.get(place % 10, "person")
    return f"{kind}{place}@people.example"


async def answered(api: Api, path: str, body: Any, key: str) -> Any:
    """What a request is answered at last, repeated under its key while there is no answer."""
    while True:
        try:
            return await api.call("POST", path, body, key=key, timeout=5.0)
        except Refused as refusal:
            if refusal.status != 503 and refusal.body.get("code") != "IDEMPOTENCY_IN_PROGRESS":
                raise
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            pass  # no answer, or half of one
        await asyncio.sleep(0.2)  # a client's pause: nothing tells it when to come back


async def set_up(service: Service, api: Api) -> tuple[str, str]:
    """Coins, a sender, a template and a journey that sends it; answers the ids of both."""
    await asyncio.to_thread(
        service.command, "wallet", "credit", "--env", "live", "--coins", "1000000", "--reference", "begin", "--json"
    )
    await api.call("POST", "/v2/email/senders", {"domain": "example.com"})
    database = await asyncpg.connect(**service.cluster().connect_arguments)
    await database.execute("update email_senders set status = 'verified', is_default = true where env = 'live'")
    await database.close()
    variables = [{"name": "name"}]
    template = await api.call(
        "POST", "/v2/email/templates", {"name": "hello", "subject": "Hi", "html": HTML, "variables": variables}
    )
    body = {
        "name": "hello", "gatilho": {"tipo": "api"}, "inicio": "ola",
        "passos": [
            {
                "id": "ola", "tipo": "enviar", "canal": "email", "templateId": template["id"], "proximo": "fim",
                "variaveis": {"name": {"de": "contato", "campo": "name"}},
            },
            {"id": "fim", "tipo": "fim"},
        ],
    }  # fmt: skip
    journey = await api.call("POST", "/v2/journeys", body)
    assert journey["problemas"] == []
    await api.call("POST", f"/v2/journeys/{journey['id']}/activate")
    return template["id"], journey["id"]


async def enter(api: Api, journey_id: str, place: int) -> None:
    contact = {"phone": f"+551198{place:07}", "name": "Ana", "email": address(place)}
    made = await answered(api, "/contacts", contact, f"contact {place}")
    entry = {"contato": {"contactId": made["id"]}}
    await answered(api, f"/v2/journeys/{journey_id}/entries", entry, f"entry {place}")


@pytest.mark.long
async def test_whenever_it_dies_each_email_leaves_once_is_refused_or_is_in_doubt(tmp_path: Path) -> None:
    post = Post()
    await post.server.start()
    service = Service(
        tmp_path, durable=True, SSRF_ALLOW_CIDRS="127.0.0.0/8", ADAPTER_EMAIL="smtp", EMAIL_PER_SECOND="200",
        SMTP_URL=f"smtp://127.0.0.1:{post.server.port}", SMTP_CONNECTIONS=str(CONNECTIONS),
    )  # fmt: skip
    kills = []
    try:
        await service.start()
        async with Api(service.url, await asyncio.to_thread(service.key, "live")) as api:
            template_id, journey_id = await set_up(service, api)
            recipients = [{"to": address(place), "variables": {"name": str(place)}} for place in range(OF_BATCH)]
            body = {"channel": "email", "templateId": template_id, "recipients": recipients}
            asking = asyncio.gather(
                answered(api, "/messages/bulk", body, "the batch"),
                *(enter(api, journey_id, OF_BATCH + place) for place in range(OF_JOURNEY)),
            )
            for _ in range(KILLS):
                begun = post.given.total()
                await until(lambda begun=begun: post.given.total() >= begun + BETWEEN, "e-mails leave", limit=PATIENCE)
                assert service.end(signal.SIGKILL) == -signal.SIGKILL, "the service had ended by itself"
                at = datetime.now(UTC)
                kills.append((await noted_kill(at, service.cluster().connect_arguments, service.data_dir))[1])
                await service.start()
            batch, *_ = await asking
            database = await asyncpg.connect(**service.cluster().connect_arguments)

            async def settled() -> bool:
                """All are made, and nothing waits but what is in doubt."""
                made, waiting = await database.fetchrow(
                    "select (select count(*) from messages), "
                    "(select count(*) from dispatch where reason is distinct from 'uncertain')"
                )
                return bool(made == OF_BATCH + OF_JOURNEY and not waiting)

            await until(settled, "everything has left", limit=PATIENCE, every=0.2)
            messages = await database.fetch("select id, recipient, status, failure_code, batch_id from messages")
            uncertain = {row["id"] for row in await database.fetch("select id from dispatch")}
            await database.close()
            batch = await api.call("GET", f"/v2/batches/{batch['id']}")
            wallet = await api.call("GET", "/v2/wallet")
    finally:
        await service.wipe()
        await post.server.stop()

    taken = post.taken
    assert {row["recipient"] for row in messages} == {address(place) for place in range(OF_BATCH + OF_JOURNEY)}
    assert [to for to, times in taken.items() if times > 1] == []
    begun = {message_id for kill in kills for message_id in kill.claimed}
    print(f"{len(taken)} taken, {len(uncertain)} in doubt of {len(begun)} calls at {KILLS} kills")
    assert uncertain <= begun
    assert 0 < len(uncertain) <= KILLS * CONNECTIONS
    wrong = [
        (row["recipient"], row["status"], row["failure_code"], taken[row["recipient"]])
        for row in messages
        if row["id"] not in uncertain
        and (row["status"], taken[row["recipient"]])
        != (("failed", 0) if row["recipient"].startswith("never") else ("sent", 1))
    ]
    assert wrong == []
    # Nobody is asked again who said no, and nobody twice who had not been put off, but where the answer was cut off.
    again = {to for to, times in post.given.items() if times > (2 if to.startswith("later") else 1)}
    assert again == set()
    sent = [row for row in messages if row["status"] == "sent"]
    assert batch["chargedCoins"] == PRICE * sum(row["batch_id"] is not None for row in sent)
    assert wallet["heldCoins"] == PRICE * len(uncertain)
