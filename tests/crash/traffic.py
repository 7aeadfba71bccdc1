"""A client that never gives up: every message under a key of its own, repeated with it until a 201 has come."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.program import Api, Refused

CLIENTS = 48
REQUEST_LIMIT = 5.0  # seconds without an answer until the request is repeated
REPEATED_SHARE = 0.03  # of the answered requests, once more: the answer must be the same message
PRIORITIES = ("critical", "normal", "normal", "normal", "bulk")


@dataclass(frozen=True, slots=True)
class Sender:
    """A number to send through, and an approved template of it."""

    number_id: str
    phone_number_id: str
    template_id: str
    per_second: int


@dataclass(slots=True)
class Letter:
    """One message as the client means it: its recipient and its marker are nobody else's."""

    key: str
    recipient: str
    marker: str
    sender: Sender
    priority: str
    ids: list[str] = field(default_factory=list)  # every message id that a 201 named, in order, each once
    tries: int = 0


class Traffic:
    """A stream of messages, spread over senders by their pace."""

    def __init__(self, api: Api, senders: Sequence[Sender], *, rate: float, seed: int) -> None:
        """`rate`: requests a second while everything answers."""
        self._api = api
        self._senders = senders
        self._rate = rate
        self._seed = seed
        self._random = random.Random(seed)
        self._ending = asyncio.Event()
        self._next_at = 0.0
        self._clients: list[asyncio.Task[None]] = []
        self.letters: list[Letter] = []
        self.unexpected: list[str] = []  # answers that no client should get

    def start(self) -> None:
        self._next_at = asyncio.get_running_loop().time()
        self._clients = [asyncio.create_task(self._client()) for _ in range(CLIENTS)]

    async def finish(self, limit: float) -> None:
        """Begin nothing new, and come back when every message that was begun has its 201."""
        self._ending.set()
        async with asyncio.timeout(limit):
            await asyncio.gather(*self._clients)

    async def abandon(self) -> None:
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _client(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            at = max(self._next_at, loop.time() - 0.5)  # what could not be offered during an outage is not made up for
            self._next_at = at + 1 / self._rate
            await asyncio.sleep(at - loop.time())
            letter = self._written()
            await self._sent(letter)
            if self._random.random() < REPEATED_SHARE:
                await self._sent(letter)

    def _written(self) -> Letter:
        draw = self._random
        sender = draw.choices(self._senders, [sender.per_second for sender in self._senders])[0]
        index = len(self.letters)
        name = f"{self._seed % 1_000:03}-{index:06}"
        letter = Letter(
            f"letter-{name}",
            f"+55119{self._seed % 100:02}{index:06}",
            f"marker-{name}",
            sender,
            draw.choice(PRIORITIES),
        )
        self.letters.append(letter)
        return letter

    async def _sent(self, letter: Letter) -> None:
        body = {
            "numberId": letter.sender.number_id,
            "to": letter.recipient,
            "type": "template",
            "templateId": letter.sender.template_id,
            "templateVars": [letter.marker],
            "priority": letter.priority,
            "metadata": {"marker": letter.marker},
        }
        while True:
            letter.tries += 1
            try:
                answer = await self._api.call("POST", "/messages", body, key=letter.key, timeout=REQUEST_LIMIT)
            except Refused as refusal:
                if refusal.status not in (409, 503):
                    self.unexpected.append(str(refusal))
                    return
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                pass  # no answer, or half of one: nobody knows whether the message was accepted
            else:
                self._note(letter, answer)
                return
            await asyncio.sleep(self._random.uniform(0.05, 0.2))

    def _note(self, letter: Letter, answer: Any) -> None:
        if answer["id"] not in letter.ids:
            if letter.ids and answer["replayed"]:
                self.unexpected.append(f"{answer['id']} was answered as the replay of {letter.ids[-1]}")
            letter.ids.append(answer["id"])
