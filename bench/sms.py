"""How fast SMS are accepted, and go all the way through one gateway, beside chat-app over 40 numbers, in turns."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from bench.end_to_end import NO_WALLET, SENDERS, sustained
from bench.harness import Figure, Say, against, running, scratch, wrk
from bench.recado_process import READY, Api, recado, write_bodies

ROUNDS = 2
SECONDS = 8
CONNECTIONS = 256
LEAST = 0.95
PACE = {"RECADO_SMS_GATEWAY_A_PER_SECOND": "10000"}


async def run(say: Say) -> list[Figure]:
    """The same load on both channels of one service."""
    chats, texts, chats_sent, texts_sent = [], [], [], []
    async with scratch() as folder, running(recado(folder, **NO_WALLET, **PACE), READY) as service, Api(service) as api:
        senders = await api.senders(SENDERS)
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        chat = write_bodies(folder / "chat", senders)
        sms = write_sms(folder / "sms")
        for number in range(ROUNDS):  # before anything is scheduled: they wait until nothing is queued
            say(f"end to end, chat-app and SMS, round {number + 1} of {ROUNDS}")
            chats_sent.append((await sustained(service, api.token, chat))[1])
            texts_sent.append((await sustained(service, api.token, sms))[1])
        chat = write_bodies(folder / "chat", senders, scheduledAt=tomorrow)
        sms = write_sms(folder / "sms", scheduledAt=tomorrow)

        async def load(bodies: Path) -> float:
            result = await wrk(service.url, api.token, bodies, seconds=SECONDS, connections=CONNECTIONS)
            return result["requests"] / result["seconds"]

        for number in range(ROUNDS):
            say(f"accept, chat-app and SMS, round {number + 1} of {ROUNDS}")
            chats.append(await load(chat))
            texts.append(await load(sms))
    return [
        against("SMS accepted, beside chat-app", texts, chats, "/s", LEAST),
        against("SMS end to end: sent, beside chat-app", texts_sent, chats_sent, "/s", LEAST),
    ]


def write_sms(path: Path, **more: str) -> Path:
    """The body of a load; PHONE stands for its recipient."""
    text = "Hello Ana, here is news."
    body = {"to": "PHONE", "text": text, "transactional": True, "metadata": {"order": "A1"}, **more}
    path.write_text(orjson.dumps(body).decode() + "\n")
    return path
