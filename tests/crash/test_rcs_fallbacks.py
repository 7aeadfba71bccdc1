"""The service is killed while RCS messages are taken back and their SMS leave (C17.2).

Nobody gets an SMS before the provider took the RCS message back, nor two; and every coin is accounted for.
"""

import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import web
from tests.program import Api, Service, running
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

MESSAGES, KILLS = 120, 6
SHORT, SMS = 1_100, 1_000
COINS = 10_000_000


class Peer:
    """Plays the bridges of RCS and SMS. `record`: what it was asked, of which message, in that order."""

    def __init__(self) -> None:
        self.record: list[tuple[str, str]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        what = request.path.strip("/")
        if what == "rcs/capable":
            return web.json_response({"capable": True})
        self.record.append((what, asked["id"]))
        if what == "rcs/revoke":
            return web.json_response({"revoked": True})
        return web.json_response({"providerMessageId": f"{what}-{asked['id']}"})

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Peer"]:
        application = web.Application()
        application.router.add_post("/{what:.*}", self.answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def comes_to(self, asked: int) -> None:
        """Until so much was asked for."""
        await until(lambda: len(self.record) >= asked, f"{asked} requests came", every=0.005)

    def of(self, message_id: str) -> list[str]:
        return [what for what, each in self.record if each == message_id]


def bridges(url: str) -> dict[str, str]:
    settings = {}
    for name in ("rcs", "sms"):
        upper = name.upper()
        settings |= {
            f"ADAPTER_{upper}": "bridge", f"BRIDGE_{upper}_URL": f"{url}/{name}", f"BRIDGE_{upper}_TOKEN": "token",
            f"BRIDGE_{upper}_SECRET": "a secret of this test",
        }  # fmt: skip
    return {**settings, "SMS_GATEWAY_A_PER_SECOND": "40"}


@pytest.mark.long
async def test_no_sms_leaves_before_its_message_was_taken_back_nor_twice(tmp_path: Path) -> None:
    draws = random.Random(17)
    async with Peer().listening() as peer:
        service = Service(tmp_path, **bridges(peer.url))
        async with running(service):
            token = service.key("live")
            service.command("wallet", "credit", "--env", "live", "--coins", str(COINS), "--reference", "1", "--json")
            async with Api(service.url, token) as api:
                ids = await accepted(api)
                await peer.comes_to(MESSAGES)
                await until(lambda: all_in(api, "sent"), "all are sent")
            server = EmbeddedPostgres(service.data_dir, clock=SystemClock())
            connection = await asyncpg.connect(**await server.start())
            try:
                await connection.execute(
                    "update message_deadlines set due_at = now() + random() * interval '6 seconds'"
                )
                for _ in range(KILLS):
                    goes_on = len(peer.record) + draws.randrange(5, 25)
                    await peer.comes_to(goes_on)
                    service.end(signal.SIGKILL)
                    await service.start()

                async def settled() -> bool:
                    left: int = await connection.fetchval(
                        "select (select count(*) from message_deadlines)"
                        " + (select count(*) from dispatch where reason is distinct from 'uncertain')"
                    )
                    return left == 0

                await until(settled, "nothing is due or queued any more", limit=90, every=0.2)
                rows = await connection.fetch(
                    "select m.id, m.status, m.details ->> 'deliveredVia' as via, d.reason, d.coins,"
                    " (select array_agg(kind || ' ' || coins order by position) from ledger where message_id = m.id)"
                    " as paid"
                    " from messages m left join dispatch d on d.id = m.id where m.channel = 'rcs'"
                )
                balance, held = await connection.fetchrow(
                    "select balance_coins, held_coins from wallets where env = 'live'"
                )
            finally:
                await connection.close()
                await server.stop()
    assert sorted(row["id"] for row in rows) == sorted(ids)
    assert_once(peer, rows)
    assert held == sum(row["coins"] or 0 for row in rows)
    assert balance == COINS - sum(2 * SMS if row["reason"] is None else SHORT for row in rows)


def assert_once(peer: Peer, rows: list[Any]) -> None:
    """Of each message: by RCS once, taken back before its SMS, and that at most once."""
    found: Counter[str] = Counter()
    for row in rows:
        asked = peer.of(row["id"])
        assert asked[0] == "rcs/send", asked
        assert asked.count("rcs/send") == 1, asked
        assert asked.count("sms/send") <= 1, asked
        if "sms/send" in asked:
            assert asked.index("rcs/revoke") < asked.index("sms/send"), asked
            assert asked[-1] == "sms/send", asked
        assert row["via"] == "sms"
        if row["reason"] is None:
            assert (row["status"], asked.count("sms/send")) == ("sent", 1)
            assert row["paid"] == [f"charge -{SHORT}", f"adjustment -{2 * SMS - SHORT}"]
        else:  # its call was under way when the service died
            assert row["paid"] == [f"charge -{SHORT}"]
        found[row["reason"] or row["status"]] += 1
    assert found["sent"] > MESSAGES // 2, found


async def accepted(api: Api) -> list[str]:
    fallback = {"text": "x" * 161, "afterSeconds": 86_400}
    return [
        (
            await api.call(
                "POST", "/v2/rcs/messages",
                {"to": f"+551198765{number:04d}", "content": {"text": "Hello"}, "fallback": fallback,
                 "transactional": True},
            )
        )["id"]
        for number in range(MESSAGES)
    ]  # fmt: skip


async def all_in(api: Api, status: str) -> bool:
    return len((await api.call("GET", "/v2/rcs/messages", status=status, limit=200))["items"]) == MESSAGES
