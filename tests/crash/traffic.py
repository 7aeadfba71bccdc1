"""A client that never gives up: every message under a key of its own, repeated with it until a 201 has come."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.program import Api, Refused

CLIENTS = 48
REQUEST_LIMIT = 5.0  # seconds without an answer until the request is repeated
REPEATED_SHARE = 0.03  # of the answered requests, once more: the answer must be the same message
CAMPAIGNS = ("spring", None, None, None)
MAILING_EVERY, MAILING = 100, 40  # one batch among so many single messages, to so many recipients
ORDERS = ((), (), ("pause", "resume"), ("cancel",), ("pause", "cancel"))
LARGE_MAILING_AT, LARGE_MAILING = 200, 1_010  # one that is made in two blocks
PRIORITIES = ("critical", "normal", "normal", "normal", "bulk")


@dataclass(frozen=True, slots=True)
class Sender:
    """A number to send through, and an approved template of it."""

    number_id: str
    phone_number_id: str
    template_id: str
    per_second: int


async def send_many(api: Api, sender: Sender, count: int) -> set[str]:
    """So many messages at once, each to a phone of its own, asked for a single time; their ids."""
    wanted = {"numberId": sender.number_id, "type": "template", "templateId": sender.template_id}
    sent = await asyncio.gather(
        *(
            api.call("POST", "/messages", {**wanted, "to": f"+551191{place:07}", "templateVars": ["Ana"]})
            for place in range(count)
        )
    )
    return {message["id"] for message in sent}


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
    campaign: str | None = None
    in_the_dark: bool = False  # a request since the last answer had none


@dataclass(slots=True)
class Mailing:
    """One batch as the client means it. `recipients`: each with its marker."""

    key: str
    recipients: dict[str, str]
    sender: Sender
    campaign: str | None = None
    ids: list[str] = field(default_factory=list)  # every batch id that a 202 named
    tries: int = 0
    orders: tuple[str, ...] = ()  # given once it is accepted
    in_the_dark: bool = False  # as for letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """How a channel is asked to send: `path`, and the bodies of both kinds of mail; batches have one path.

    `marker`: what is to be told, nobody else's by the seed and the number that are given.
    """

    path: str
    letter: Callable[[Letter], dict[str, Any]]
    mailing: Callable[[Mailing], dict[str, Any]]
    marker: Callable[[int, int], str]


class Traffic:
    """A stream of messages, spread over senders by their pace."""

    def __init__(self, api: Api, senders: Sequence[Sender], mail: Mail, *, rate: float, seed: int, large: bool) -> None:
        """`rate`: requests a second while everything answers. `large`: with a batch that is made in several blocks."""
        self._api = api
        self._mail = mail
        self._senders = senders
        self._rate = rate
        self._seed = seed
        self._large_at = LARGE_MAILING_AT if large else -1
        self._random = random.Random(seed)
        self._ending = asyncio.Event()
        self._next_at = 0.0
        self._clients: list[asyncio.Task[None]] = []
        self._written = 0
        self.letters: list[Letter] = []
        self.mailings: list[Mailing] = []
        self.unexpected: list[str] = []  # answers that no client should get

    def start(self) -> None:
        self._next_at = asyncio.get_running_loop().time()
        self._clients = [asyncio.create_task(self._client()) for _ in range(CLIENTS)]

    async def finish(self, limit: float) -> None:
        """Begin nothing new, and come back when every message that was begun has its 201."""
        self._ending.set()
        async with asyncio.timeout(limit):
            await asyncio.gather(*self._clients)

    async def abandon(self) -> list[str]:
        """End at once; answers what had gone wrong until then."""
        for client in self._clients:
            client.cancel()
        ends = await asyncio.gather(*self._clients, return_exceptions=True)
        return [*self.unexpected, *(repr(end) for end in ends if isinstance(end, Exception))]

    async def _client(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            at = max(self._next_at, loop.time() - 0.5)  # what could not be offered during an outage is not made up for
            self._next_at = at + 1 / self._rate
            await asyncio.sleep(at - loop.time())  # the rate that is offered, as a client's
            mail = self._next()
            await self._sent(mail)
            if isinstance(mail, Mailing) and mail.ids:
                for order in mail.orders:
                    await self._ordered(mail, order)
            if self._random.random() < REPEATED_SHARE:
                await self._sent(mail)

    def _next(self) -> Letter | Mailing:
        draw = self._random
        sender = draw.choices(self._senders, [sender.per_second for sender in self._senders])[0]
        campaign = draw.choice(CAMPAIGNS)
        count = len(self.letters) + len(self.mailings)
        if count % MAILING_EVERY == MAILING_EVERY - 1:
            size = LARGE_MAILING if count == self._large_at - 1 else MAILING
            recipients = dict(self._person() for _ in range(size))
            mailing = Mailing(f"mailing-{self._seed}-{count:06}", recipients, sender, campaign)
            mailing.orders = draw.choice(ORDERS)
            self.mailings.append(mailing)
            return mailing
        recipient, marker = self._person()
        letter = Letter(
            f"letter-{self._seed}-{count:06}", recipient, marker, sender, draw.choice(PRIORITIES), campaign=campaign
        )
        self.letters.append(letter)
        return letter

    def _person(self) -> tuple[str, str]:
        """A phone and a marker that are nobody else's."""
        self._written += 1
        return f"+55119{self._seed % 100:02}{self._written:06}", self._mail.marker(self._seed, self._written)

    async def _sent(self, mail: Letter | Mailing) -> None:
        asked = self._mail
        if isinstance(mail, Letter):
            path, body = asked.path, asked.letter(mail)
        else:
            path, body = "/messages/bulk", asked.mailing(mail)
        answer = await self._answer(mail, path, body, mail.key)
        if answer is not None:
            self._note(mail, answer)

    async def _ordered(self, mailing: Mailing, order: str) -> None:
        """Move the batch; where it is over, or a request without an answer has moved it, there is nothing to do."""
        await self._answer(mailing, f"/v2/batches/{mailing.ids[0]}/{order}", None, None, done="INVALID_STATE")

    async def _answer(
        self, mail: Letter | Mailing, path: str, body: Any, key: str | None, done: str | None = None
    ) -> Any:
        """What a request is answered at last; None for a refusal, which is expected with the code `done` only."""
        while True:
            mail.tries += 1
            try:
                return await self._api.call("POST", path, body, key=key, timeout=REQUEST_LIMIT)
            except Refused as refusal:
                if done is not None and refusal.body.get("code") == done:
                    return None
                # Until the first request with its key has an answer, and while the database is away (C6.2, C32).
                if refusal.status != 503 and refusal.body.get("code") != "IDEMPOTENCY_IN_PROGRESS":
                    self.unexpected.append(str(refusal))
                    return None
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                mail.in_the_dark = True  # no answer, or half of one: nobody knows whether it was accepted
            await asyncio.sleep(self._random.uniform(0.05, 0.2))  # a client's pause: nothing tells it when to come back

    def _note(self, mail: Letter | Mailing, answer: Any) -> None:
        if answer["id"] not in mail.ids:
            if mail.ids and answer.get("replayed", True) and not mail.in_the_dark:
                self.unexpected.append(f"{answer['id']} was answered as the replay of {mail.ids[-1]}")
            mail.ids.append(answer["id"])
        mail.in_the_dark = False


def _letter(letter: Letter) -> dict[str, Any]:
    return {
        "numberId": letter.sender.number_id,
        "to": letter.recipient,
        "type": "template",
        "templateId": letter.sender.template_id,
        "templateVars": [letter.marker],
        "priority": letter.priority,
        "metadata": {"marker": letter.marker},
        "campaignId": letter.campaign,
    }


def _mailing(mailing: Mailing) -> dict[str, Any]:
    return {
        "numberId": mailing.sender.number_id,
        "type": "template",
        "templateId": mailing.sender.template_id,
        "recipients": [{"to": to, "templateVars": [marker]} for to, marker in mailing.recipients.items()],
        "campaignId": mailing.campaign,
    }


def said(message: Mapping[str, Any]) -> str:
    """The marker of a message as the API has it."""
    of_template = message.get("templateVars")
    return str(of_template[0] if of_template else message["payload"]["text"]["body"])


def unique(seed: int, number: int) -> str:
    """A marker, as short as may be."""
    return f"marker-{seed % 1_000:03}-{number:06}"


CHAT_APP = Mail(path="/messages", letter=_letter, mailing=_mailing, marker=unique)
