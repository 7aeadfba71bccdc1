"""A round of direct sends: clients that repeat each e-mail under its key, and kills at chosen moments of its way.

The mail server lives in the test, so that its record outlives every kill. What it does with an e-mail is drawn by the
seed, and the address says it.
"""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from email import message_from_bytes
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from tests.channels.email.caller import ready_in_live
from tests.channels.email.conftest import MailServer, Peer
from tests.program import Api, Refused, Service, free_port
from tests.waiting import until

ADMIN_TOKEN = "the administrator of these tests"
CLIENTS = 24
PACE = 60  # e-mails a second: some wait for their turn between their commit and their call at any moment
REQUEST_LIMIT = 25.0  # seconds
PATIENCE = 90.0
BETWEEN = 25  # e-mails that are answered between two kills
REPEATED_SHARE = 0.2  # of the answered e-mails, once more


class Moment(StrEnum):
    """Where the service is killed: on the way of an e-mail."""

    STORED = "its row is committed, and its call has not begun"
    CALLED = "the mail server was told of it, and has no content yet"
    HANDED_OVER = "the mail server has it, and has not answered"
    ANSWERED = "the mail server has answered, and that is not committed"


class Fate(StrEnum):
    """What the mail server does; the beginning of the address."""

    TAKEN = "taken"
    REFUSED = "refused"  # for good
    BUSY = "busy"  # refused for now, once


FATES = (Fate.TAKEN,) * 8 + (Fate.REFUSED, Fate.BUSY)


@dataclass(slots=True)
class Letter:
    """One e-mail as its client means it. `ids`: each row that an answer named, in order; `told`: the last answer."""

    key: str
    to: str
    fate: Fate
    ids: list[str] = field(default_factory=list)
    told: str = ""
    tries: int = 0


@dataclass(slots=True)
class Kill:
    """`under_way`: rows that were claimed and had no outcome then."""

    moment: Moment
    under_way: Sequence[str]


class DirectRound:
    """`run` sends `count` e-mails amid kills; what happened is in the attributes."""

    def __init__(self, folder: Path, *, seed: int, count: int) -> None:
        self._draw = random.Random(seed)
        self._server = MailServer({"enable_SMTPUTF8": True}, port=free_port())
        self._service = Service(
            folder, ADMIN_TOKEN=ADMIN_TOKEN, SSRF_ALLOW_CIDRS="127.0.0.0/8", LOG_LEVEL="debug",
            ADAPTER_EMAIL="smtp", SMTP_URL=f"smtp://127.0.0.1:{self._server.port}", EMAIL_PER_SECOND=str(PACE),
            SMTP_CONNECTIONS=str(CLIENTS),
        )  # fmt: skip
        self.letters = [
            Letter(f"letter {seed} {number}", f"{fate}.{number:05}@example.net", fate)
            for number, fate in enumerate(self._draw.choices(FATES, k=count))
        ]
        self.kills: list[Kill] = []
        self.unexpected: list[str] = []
        self.messages: dict[str, Any] = {}
        self.wallet: tuple[int, int] = (0, 0)
        self._answered = 0
        self._moment: Moment | None = None  # at which the service is to be killed next
        self._reached = asyncio.Event()
        self._dead = asyncio.Event()
        self._put_off: set[str] = set()

    @property
    def log(self) -> str:
        return self._service.log.read_text()

    @property
    def taken(self) -> list[str]:
        """The ids of the messages that the mail server took, in order."""
        return [
            str(message_from_bytes(envelope.original_content or b"")["Message-ID"]).strip("<>").partition("@")[0]
            for envelope in self._server.taken
        ]

    async def run(self, moments: Sequence[Moment]) -> None:
        """Sends all, with a kill at each of these moments; afterwards `messages` and `wallet` are read."""
        self._server.at = {"RCPT": self._at_recipient, "CONTENT": self._at_content}
        await self._server.start()
        try:
            await self._service.start()
            await ready_in_live(self._service, ADMIN_TOKEN)
            await asyncio.to_thread(
                self._service.command, "wallet", "credit", "--env", "live", "--coins", "1000000", "--reference", "more",
                "--json",
            )  # fmt: skip
            self._key = await asyncio.to_thread(self._service.key, "live", org=None)
            left = iter(self.letters)
            async with Api(self._service.url, self._key) as api, asyncio.TaskGroup() as clients:
                for _ in range(CLIENTS):
                    clients.create_task(self._client(api, left))
                clients.create_task(self._killer(moments))
            await self.read()
        except BaseException:
            await self.wipe()
            raise

    async def wipe(self) -> None:
        await self._server.stop()
        await self._service.wipe()

    async def read(self) -> None:
        """What the API says of everything now."""
        async with Api(self._service.url, self._key) as api:
            self.messages = {each["id"]: each async for each in api.pages("/v2/email/messages")}
            wallet = await api.call("GET", "/v2/wallet")
        self.wallet = wallet["balanceCoins"], wallet["heldCoins"]

    async def waiting_of(self, message_id: str) -> Any:
        """What the generic view says of a message."""
        async with Api(self._service.url, self._key) as api:
            return (await api.call("GET", f"/messages/{message_id}")).get("waiting")

    async def repeat(self, letter: Letter) -> Any:
        """One more request with its key."""
        async with Api(self._service.url, self._key) as api:
            return await self._post(api, letter)

    async def a_day_later(self) -> None:
        """What is in doubt has been so for a day; comes back when none of it is `queued` any more."""
        database = await asyncpg.connect(**self._service.cluster().connect_arguments)
        await database.execute(
            "update dispatch set claimed_at = claimed_at - interval '24 hours' where reason = 'uncertain'"
        )
        await database.close()

        async def settled() -> bool:
            await self.read()
            return all(each["status"] != "queued" for each in self.messages.values())

        await until(settled, "what was in doubt is settled", limit=PATIENCE, every=0.5)

    # Clients ----------------------------------------------------------------------------------------------------------

    async def _client(self, api: Api, left: Any) -> None:
        for letter in left:
            await self._sent(api, letter)
            if self._draw.random() < REPEATED_SHARE:
                await self._sent(api, letter)
            self._answered += 1

    async def _sent(self, api: Api, letter: Letter) -> None:
        """Repeated until an answer says what became of it, or that this is in doubt."""
        while True:
            letter.tries += 1
            try:
                answer = await self._post(api, letter)
            except Refused as refused:
                status, code, meta = refused.status, refused.body.get("code"), refused.body.get("meta", {})
                self._note(letter, meta.get("messageId"), str(code))
                if code in ("CONTENT_REJECTED", "PROVIDER_TIMEOUT"):
                    return
                if code not in ("IDEMPOTENCY_IN_PROGRESS", "DEPENDENCY_FAILED") and status != 503:
                    self.unexpected.append(f"{letter.key}: {refused}")
                    return
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                pass  # nobody knows what became of it
            else:
                self._note(letter, answer["id"], answer["status"])
                return
            await asyncio.sleep(self._draw.uniform(0.05, 0.2))  # a client's pause: nothing tells it when to come back

    def _post(self, api: Api, letter: Letter) -> Any:
        body = {"to": letter.to, "subject": "Your order", "text": "It is ready.", "transactional": True}
        return api.call("POST", "/v2/email/messages", body, key=letter.key, timeout=REQUEST_LIMIT)

    def _note(self, letter: Letter, message_id: str | None, told: str) -> None:
        letter.told = told
        if message_id is not None and message_id not in letter.ids:
            letter.ids.append(message_id)

    # The mail server --------------------------------------------------------------------------------------------------

    async def _at_recipient(self, peer: Peer) -> str | None:
        await self._kill_at(Moment.CALLED)
        return None

    async def _at_content(self, peer: Peer) -> str | None:
        assert peer.envelope is not None
        (to,) = peer.envelope.rcpt_tos
        if to.startswith(Fate.REFUSED):
            return "554 5.6.0 no such content here"
        if to.startswith(Fate.BUSY) and to not in self._put_off:
            self._put_off.add(to)
            return "451 4.2.1 later"
        self._server.taken.append(peer.envelope)
        await self._kill_at(Moment.HANDED_OVER)
        self._reach(Moment.ANSWERED)
        return "250 2.0.0 taken"

    async def _kill_at(self, moment: Moment) -> None:
        """Says nothing more to a service that is to die here."""
        if self._reach(moment):
            await self._dead.wait()

    def _reach(self, moment: Moment) -> bool:
        if self._moment is not moment:
            return False
        self._reached.set()
        return True

    # Kills ------------------------------------------------------------------------------------------------------------

    async def _killer(self, moments: Sequence[Moment]) -> None:
        for moment in moments:
            before = self._answered
            await until(
                lambda before=before: self._answered >= before + BETWEEN, "e-mails are answered", limit=PATIENCE
            )
            database = await asyncpg.connect(**self._service.cluster().connect_arguments)
            self._moment = moment
            if moment is Moment.STORED:
                await self._stored(database)
            else:
                await asyncio.wait_for(self._reached.wait(), PATIENCE)
            self._service.end(signal.SIGKILL)
            self._moment = None
            self._dead.set()
            rows = await database.fetch("select id from dispatch where claimed_at is not null")
            await database.close()
            self.kills.append(Kill(moment, [row["id"] for row in rows]))
            self._reached, self._dead = asyncio.Event(), asyncio.Event()
            await self._service.start()

    async def _stored(self, database: Any) -> None:
        """Until a row is there that was not at the last look: its call waits for the pace."""
        known: set[str] | None = None

        async def new() -> bool:
            nonlocal known
            seen = {row["id"] for row in await database.fetch("select id from dispatch")}
            before, known = known, seen
            return before is not None and bool(seen - before)

        await until(new, "a row is committed", limit=PATIENCE, every=0.001)


def violations(done: DirectRound) -> list[str]:
    """What may never be: an e-mail twice, a row that says what did not happen, and a doubt without a kill."""
    taken = Counter(done.taken)
    wrong = [*done.unexpected, *(f"{each} left {times} times" for each, times in taken.items() if times > 1)]
    killed = {message_id for kill in done.kills for message_id in kill.under_way}
    listed = {}
    for message_id, message in done.messages.items():
        listed.setdefault(message["to"], []).append(message_id)
        status = message["status"]
        if status == "sent" and not taken[message_id]:
            wrong.append(f"{message_id} is sent, and was never taken")
        if status == "queued" and message_id not in killed:
            wrong.append(f"{message_id} is in doubt, and no kill met it")
        if status == "failed" and taken[message_id]:
            wrong.append(f"{message_id} is failed, and was taken")
    for letter in done.letters:
        rows = listed.get(letter.to, [])
        states = [done.messages[each]["status"] for each in rows]
        if sum(taken[each] for each in rows) > 1:
            wrong.append(f"{letter.key} left as {rows}")
        if sum(state != "failed" for state in states) > 1:
            wrong.append(f"{letter.key} has rows {states}: a repeat was sent while one may have left")
        if not set(letter.ids) <= set(rows):
            wrong.append(f"{letter.key} was told of rows that are not there")
        if letter.fate is not Fate.REFUSED and "queued" not in states and "sent" not in states:
            wrong.append(f"{letter.key} never left: {states}")
        if letter.fate is Fate.REFUSED and "sent" in states:
            wrong.append(f"{letter.key} was refused, and is sent")
    return wrong
