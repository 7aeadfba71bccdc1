"""Kills while people write to a social account and are answered: nothing is lost, nothing leaves twice (C26, C32).

The bridge lives in the test, so that its record outlives every kill.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import orjson
import pytest
from aiohttp import web
from tests.acceptance.provider_sides import SECRET, BridgeSide
from tests.crash.stoppable import StoppableServer
from tests.program import Api, Service
from tests.waiting import until

pytestmark = pytest.mark.alone

PEOPLE = 160  # each writes, and is answered
ACCOUNTS = 2
AT_ONCE = 6
AFTER = 15  # sends, from one kill to the next
COINS, PRICE = 1_000_000, 100
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "30"))


class Moment(StrEnum):
    """Where the service is killed."""

    HANDED_OVER = "the bridge has a message, and has not answered"
    ANSWERED = "the bridge has answered"


MOMENTS = (*Moment, *Moment)


class Bridge(StoppableServer):
    """Takes messages, and records their ids. A moment comes when it has taken some more of them."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []
        self._stops_at = 0

    def routes(self) -> Sequence[web.RouteDef]:
        return web.post("/connect", self._connect), web.post("/send", self._send)

    def arm(self, moment: StrEnum | None) -> None:
        super().arm(moment)
        self._stops_at = len(self.taken) + AFTER

    def is_due(self, moment: StrEnum) -> bool:
        return super().is_due(moment) and len(self.taken) >= self._stops_at

    async def _connect(self, request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({})

    async def _send(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.taken.append(asked["id"])
        await self.at(Moment.HANDED_OVER)
        return await self.answer(request, {"providerMessageId": f"theirs-{asked['id']}"}, Moment.ANSWERED)


class Round:
    """People write and are answered amid kills. `answers`: by user, the id of what was answered."""

    def __init__(self, folder: Path, bridge: Bridge) -> None:
        self.bridge = bridge
        self.answers: dict[str, str] = {}
        self.service = Service(
            folder, ADAPTER_SOCIAL="bridge", BRIDGE_SOCIAL_URL=bridge.url, BRIDGE_SOCIAL_TOKEN="token",
            BRIDGE_SOCIAL_SECRET=SECRET, LOG_LEVEL="debug",
        )  # fmt: skip
        self._people = iter([(f"17841{n:08}", n % ACCOUNTS) for n in range(PEOPLE)])

    async def run(self, moments: list[Moment]) -> None:
        await self.service.start()
        token = await asyncio.to_thread(self.service.key, "live")
        await asyncio.to_thread(
            self.service.command, "wallet", "credit", "--env", "live", "--coins", str(COINS), "--reference", "1",
            "--json",
        )  # fmt: skip
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        async with Api(self.service.url, token) as api:
            accounts = [await connected(api, f"page-{n}") for n in range(ACCOUNTS)]
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            work = [asyncio.create_task(self._converse(session, headers, accounts)) for _ in range(AT_ONCE)]
            for moment in moments:
                self.bridge.arm(moment)
                await until(self.bridge.reached.is_set, f"{moment}")
                self.service.end(signal.SIGKILL)
                self.bridge.arm(None)
                await self.service.start()
            await asyncio.gather(*work)

    async def _converse(
        self, session: aiohttp.ClientSession, headers: dict[str, str], accounts: list[tuple[str, str]]
    ) -> None:
        """Somebody writes, and is answered: whatever got no answer is said once more."""
        signed = BridgeSide(0).signed
        for user, place in self._people:
            account_id, external = accounts[place]
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            event = {
                "kind": "inbound", "account": external, "from": user, "at": at, "type": "text",
                "payload": {"text": {"body": "Bom dia"}}, "providerMessageId": f"from-{user}",
            }  # fmt: skip
            said = orjson.dumps({"events": [event]})
            await self._comes_through(session, "/v2/callbacks/social/bridge", said, lambda body: signed(body), 200)
            answer = orjson.dumps(
                {"channel": "social", "socialAccountId": account_id, "to": user, "type": "text",
                 "payload": {"text": {"body": "Oi"}}}
            )  # fmt: skip
            keyed = {**headers, "Idempotency-Key": f"answer to {user}"}
            sent = await self._comes_through(session, "/messages", answer, lambda _, keyed=keyed: keyed, 201)
            self.answers[user] = orjson.loads(sent)["id"]

    async def _comes_through(
        self, session: aiohttp.ClientSession, path: str, body: bytes, headers: Any, wanted: int
    ) -> bytes:
        async def answered() -> bytes | None:
            try:
                async with session.post(self.service.url + path, data=body, headers=headers(body)) as answer:
                    text = await answer.read()
            except (aiohttp.ClientError, ConnectionError):
                return None
            # What was written is read from a callback that is stored first.
            assert answer.status in (wanted, 503) or b"WINDOW_CLOSED" in text, text
            return text or b"taken" if answer.status == wanted else None

        return await until(answered, "it comes through", every=0.05)


async def connected(api: Api, external: str) -> tuple[str, str]:
    body = {"platform": "page", "externalAccountId": external, "displayName": "Padaria", "accessToken": "a token"}
    made = await api.call("POST", "/v2/social/accounts", body)
    await api.call("POST", f"/v2/social/accounts/{made['id']}/connect")
    return made["id"], external


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_wherever_the_service_dies_each_is_heard_and_answered_once(seed: int, tmp_path: Path) -> None:
    moments = random.Random(seed).sample(MOMENTS, k=len(MOMENTS))
    async with Bridge().listening() as bridge:
        done = Round(tmp_path, bridge)
        try:
            await done.run(moments)
            database = await asyncpg.connect(**done.service.cluster().connect_arguments)
            try:
                await judge(done, database)
            finally:
                await database.close()
        finally:
            await done.service.wipe()


async def judge(done: Round, database: Any) -> None:
    async def settled() -> bool:
        return not await database.fetchval("select count(*) from dispatch where reason is distinct from 'uncertain'")

    await until(settled, "nothing is queued any more", every=0.2)
    came = await database.fetch("select recipient from messages where direction = 'inbound'")
    assert sorted(row["recipient"] for row in came) == sorted(done.answers)
    rows = await database.fetch(
        "select m.id, m.recipient, m.status, d.reason from messages m left join dispatch d on d.id = m.id"
        " where m.direction = 'outbound'"
    )
    assert {row["recipient"]: row["id"] for row in rows} == done.answers
    assert len(rows) == PEOPLE
    taken = Counter(done.bridge.taken)
    assert max(taken.values()) == 1, "somebody was answered twice"
    statuses = Counter(row["reason"] or row["status"] for row in rows)
    assert set(statuses) <= {"sent", "uncertain"}, statuses
    assert all(taken[row["id"]] == 1 for row in rows if row["status"] == "sent")
    assert statuses["sent"] >= PEOPLE - AT_ONCE * len(MOMENTS)
    balance, held = await database.fetchrow("select balance_coins, held_coins from wallets where env = 'live'")
    assert (balance, held) == (COINS - PRICE * statuses["sent"], PRICE * statuses["uncertain"])
