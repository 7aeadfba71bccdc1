"""A round of push: one send to many devices, and kills while notifications are on their way to Firebase.

Firebase lives in the test, so that its record outlives every kill. The token of a device says what it answers.
"""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import asyncpg
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.program import Api, Service
from tests.waiting import until

TAKEN_BETWEEN = 120  # notifications, from one kill to the next
COINS = 1_000_000
REGISTERED_AT_ONCE = 50


class Moment(StrEnum):
    """Where the service is killed."""

    HANDED_OVER = "Firebase has a notification, and has not answered"
    ANSWERED = "Firebase has answered, and that is not committed"


class Fate(StrEnum):
    """What Firebase does; the beginning of the token."""

    TAKEN = "taken"
    GONE = "gone"  # the device is not registered there any more
    BUSY = "busy"  # refused for now, once


FATES = (Fate.TAKEN,) * 8 + (Fate.GONE, Fate.BUSY)


@dataclass(frozen=True, slots=True)
class Kill:
    """`in_flight`: devices whose call had come to Firebase, and which had no outcome then."""

    moment: Moment
    in_flight: int


class Firebase:
    """Takes notifications, and records the token of each."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.called: list[str] = []
        self.at: dict[Moment, Callable[[], Awaitable[None]]] = {}
        self.url = ""
        self._busy: set[str] = set()
        self.runner = web.AppRunner(self._application())

    def _application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/token", self._token)
        application.router.add_post("/v1/projects/shop-1/messages:send", self._send)
        return application

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Firebase"]:
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await self.runner.cleanup()

    async def _token(self, request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"access_token": "token-1", "expires_in": 3_599, "token_type": "Bearer"})

    async def _send(self, request: web.Request) -> web.StreamResponse:
        token = (await request.json())["message"]["token"]
        self.called.append(token)
        if token.startswith(Fate.BUSY) and token not in self._busy:
            self._busy.add(token)
            return web.json_response({}, status=503, headers={"Retry-After": "1"})
        if token.startswith(Fate.GONE):
            return web.json_response({"error": {"details": [{"errorCode": "UNREGISTERED"}]}}, status=404)
        self.taken.append(token)
        await self.at[Moment.HANDED_OVER]()
        answer = web.json_response({"name": "projects/shop-1/messages/1"})
        await answer.prepare(request)
        await answer.write_eof()
        await self.at[Moment.ANSWERED]()
        return answer


class PushRound:
    """`run` sends to `count` devices amid kills; what happened is in the attributes."""

    def __init__(self, folder: Path, firebase: Firebase, *, seed: int, count: int) -> None:
        self.firebase = firebase
        self.tokens = [f"{fate}.{n:05}" for n, fate in enumerate(random.Random(seed).choices(FATES, k=count))]
        self.kills: list[Kill] = []
        self.rows: list[Any] = []
        self.message: dict[str, Any] = {}
        self.price = 0
        self.wallet: tuple[int, int] = (0, 0)
        self._service = Service(
            folder,
            LOG_LEVEL="debug",
            ADAPTER_PUSH="direct",
            FCM_URL=firebase.url,
            FCM_TOKEN_URL=f"{firebase.url}/token",
        )
        self._armed: tuple[Moment, int] | None = None  # and when so many were taken
        self._reached, self._dead = asyncio.Event(), asyncio.Event()
        firebase.at = {moment: lambda moment=moment: self._at(moment) for moment in Moment}

    @property
    def log(self) -> str:
        return self._service.log.read_text()

    async def run(self, moments: Sequence[Moment]) -> None:
        """Sends to all, with a kill at each of these moments; afterwards what became of each device is read."""
        try:
            await self._service.start()
            self._key = await asyncio.to_thread(self._service.key, "live")
            await asyncio.to_thread(
                self._service.command, "wallet", "credit", "--env", "live", "--coins", str(COINS), "--reference", "1",
                "--json",
            )  # fmt: skip
            self._database = await asyncpg.connect(**self._service.cluster().connect_arguments)
            async with Api(self._service.url, self._key) as api:
                await self._register(api)
                self._arm(moments, 0)
                body = {"title": "Hello", "body": "News", "platforms": ["android"], "segment": "all_opt_in"}
                self.message = await api.call("POST", "/v2/push/messages", body, key="the one")
                self.price = self.message["unitCoins"]
            for place in range(len(moments)):
                await until(self._reached.is_set, f"kill {place + 1} is due")
                self._service.end(signal.SIGKILL)
                await self._count(moments[place])
                dead, self._reached, self._dead = self._dead, asyncio.Event(), asyncio.Event()
                self._arm(moments, place + 1)
                dead.set()
                await self._service.start()
            await until(self._settled, "every device is settled or in doubt", every=0.2)
            await self.read()
        except BaseException:
            await self.wipe()
            raise

    async def wipe(self) -> None:
        self._dead.set()
        await self._service.wipe()

    async def read(self) -> None:
        """What is stored of the devices, and what the API says of the message and the wallet, now."""
        self.rows = await self._database.fetch(
            "select v.token, d.status, d.code, v.status as device from push_dispatches d "
            "join push_devices v on v.id = d.device_id and v.organization_id = d.organization_id and v.env = d.env"
        )
        async with Api(self._service.url, self._key) as api:
            self.message = await api.call("GET", f"/v2/push/messages/{self.message['id']}")
            wallet = await api.call("GET", "/v2/wallet")
        self.wallet = wallet["balanceCoins"], wallet["heldCoins"]

    async def a_day_later(self) -> None:
        """The message has been due for a day; comes back when it is over."""
        await self._database.execute("update push_messages set due_at = due_at - interval '24 hours'")

        async def over() -> bool:
            await self.read()
            return self.message["status"] in ("completed", "failed")

        await until(over, "the message is over", every=0.5)
        await self._database.close()

    async def charged(self) -> int:
        """Coins of the ledger."""
        return int(await self._database.fetchval("select coalesce(-sum(coins), 0) from ledger where kind = 'charge'"))

    async def _register(self, api: Api) -> None:
        made = await api.call(
            "POST",
            "/v2/push/apps",
            {"name": "Shop", "platforms": ["android"], "credentials": {"serviceAccount": account()}},
        )
        left = iter(self.tokens)

        async def one() -> None:
            for token in left:
                body = {"appId": made["id"], "token": token, "platform": "android"}
                await api.call("POST", "/v2/push/tokens", body)

        await asyncio.gather(*(one() for _ in range(REGISTERED_AT_ONCE)))

    def _arm(self, moments: Sequence[Moment], place: int) -> None:
        left = place < len(moments)
        self._armed = (moments[place], len(self.firebase.taken) + TAKEN_BETWEEN) if left else None

    async def _at(self, moment: Moment) -> None:
        """From the moment on, Firebase says nothing more to a service that is to die."""
        if self._armed is None or moment is not self._armed[0] or len(self.firebase.taken) < self._armed[1]:
            return
        self._reached.set()
        await self._dead.wait()

    async def _count(self, moment: Moment) -> None:
        rows = await self._database.fetch(
            "select v.token from push_dispatches d join push_devices v on v.id = d.device_id where d.claimed_at is null"
        )
        in_flight = len(set(self.firebase.called) - {row["token"] for row in rows})
        self.kills.append(Kill(moment, in_flight))

    async def _settled(self) -> bool:
        left: int = await self._database.fetchval(
            "select (select reach from push_messages) - count(*) from push_dispatches "
            "where status <> 'queued' or due_at is null and claimed_at is null"
        )
        return left == 0


def account() -> dict[str, str]:
    """A service account that nobody else has."""
    pem = rsa.generate_private_key(65_537, 2_048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {"project_id": "shop-1", "client_email": "push@shop-1.example.com", "private_key": pem.decode()}


def violations(done: PushRound) -> list[str]:
    """What may never be: a device notified twice or lost, and an outcome that says what did not happen."""
    taken, calls = Counter(done.firebase.taken), Counter(done.firebase.called)
    wrong = [f"{token} was notified {times} times" for token, times in taken.items() if times > 1]
    most = {token: 2 if token.startswith(Fate.BUSY) else 1 for token in calls}
    wrong += [f"{token} was called {times} times" for token, times in calls.items() if times > most[token]]
    stored = {row["token"]: row for row in done.rows}
    wrong += [f"{token} is lost" for token in done.tokens if token not in stored]
    for token, row in stored.items():
        match row["status"]:
            case "delivered":
                if not taken[token]:
                    wrong.append(f"{token} is delivered, and was never taken")
            case "unregistered":
                if not token.startswith(Fate.GONE) or row["device"] != "invalid":
                    wrong.append(f"{token} is unregistered, and its device {row['device']}")
            case "queued":
                if row["code"] != "outcome_unknown":
                    wrong.append(f"{token} waits for nothing")
            case "failed":
                if row["code"] not in ("outcome_unknown", "expired"):
                    wrong.append(f"{token} failed: {row['code']}")
    return wrong
