"""Callbacks of 3 MiB of nonsense: signed ones of a provider gone wrong, and a stranger's, which nobody signed."""

import asyncio
from collections import Counter
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.conftest import memory_of
from tests.abuse.neighbour import Neighbour
from tests.acceptance.provider_sides import BridgeSide
from tests.program import Service
from tests.waiting import until

from recado.http.routes.inbound.callbacks import LARGEST

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

PATH = "/v2/callbacks/email/bridge"
SIGNER = BridgeSide(0)
MOST_MEMORY = 300 * 2**20  # bytes, above what the service had before
_REPORT = b'{"kind":"status","status":"bounced","at":1767225600,"reference":["a"],"account":{}}'
_PAYLOAD = (
    b'{"kind":"inbound","account":"a","from":"b","at":"2026-01-01T00:00:00Z","type":"text","providerMessageId":"p"'
)


def filled(head: bytes, item: bytes, tail: bytes) -> bytes:
    """A body of items, as large as one may be."""
    return head + b",".join([item] * ((LARGEST - len(head) - len(tail)) // (len(item) + 1))) + tail


BODIES = {
    "reports of wrong types": filled(b'{"events":[', _REPORT, b"]}"),
    "a tree": filled(b'{"events":[' + _PAYLOAD + b',"payload":{"x":[', b"[[[]]]", b"]}}]}"),
    "escapes": filled(b'{"events":["\\ud800', b"\\\\" * 1_000, b'"]}'),
    "deep lists": filled(b'{"events":[', b"[" * 1_000 + b"]" * 1_000, b"]}"),
}


@pytest.mark.long
async def test_signed_nonsense_of_a_provider_keeps_nobody_waiting(
    service: Service, database: Any, neighbour: Neighbour
) -> None:
    before = highest = memory_of(service)
    answers: Counter[int] = Counter()

    async with neighbour.held(), aiohttp.ClientSession() as session:

        async def tell(body: bytes) -> None:
            async with session.post(f"{service.url}{PATH}", data=BytesIO(body), headers=SIGNER.signed(body)) as answer:
                answers[answer.status] += 1

        await asyncio.gather(*map(tell, BODIES.values()))

        async def worked_off() -> bool:
            nonlocal highest
            highest = max(highest, memory_of(service))
            return not await database.fetchval("select exists (select from callbacks where processed_at is null)")

        await until(worked_off, "the callbacks are worked off", every=0.1)
    assert answers == {200: len(BODIES)}
    assert highest <= before + MOST_MEMORY, f"{(highest - before) >> 20} MiB more"


async def test_unsigned_bodies_of_a_stranger_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger = attacker.without_credential("127.0.8.1")
    body = BODIES["a tree"]
    signature = SIGNER.signed(b"another")
    async with neighbour.held():
        answers = await keep_on(seconds, 4, lambda: stranger.ask("POST", PATH, body, signature))
    assert answers[401]
    assert set(answers) <= {401, 429, 503}
