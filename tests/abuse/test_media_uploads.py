"""Uploads of media without a pause, some of which never come whole, and files that nobody reads on (C8, C31)."""

import asyncio
import base64
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, keep_on, status_of
from tests.abuse.conftest import Resident
from tests.abuse.neighbour import Neighbour
from tests.acceptance.sandbox.customer import Customer, phone
from tests.media_files import PDF
from tests.program import Api
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

LARGE = PDF + bytes(4_000_000)
ANNOUNCED = 50_000_000
DRIPPING = 32
UNREAD = PDF + bytes(600_000)
READERS = 40
AT_ONCE = 8
HEADERS = {
    "Content-Type": "application/octet-stream", "x-filename": "report.pdf", "x-content-type": "application/pdf",
}  # fmt: skip


async def small_upload(resident: Resident) -> Any:
    async with Api(resident.url, resident.token) as other:
        body = {"filename": "a.pdf", "mimeType": "application/pdf", "dataBase64": base64.b64encode(PDF).decode()}
        return await other.call("POST", f"/numbers/{resident.number_id}/media", body)


async def test_uploads_at_once_and_uploads_that_drip_leave_places_to_another_organization(
    attacker: Attacker, api: Api, resident: Resident, neighbour: Neighbour, seconds: float
) -> None:
    path = f"/numbers/{(await Customer.arrive(api)).number_id}/media/binary"
    async with AsyncExitStack() as streams:
        for _ in range(DRIPPING):
            _, writer = await attacker.connect()
            streams.callback(writer.transport.abort)
            writer.write(attacker.head("POST", path, ANNOUNCED, HEADERS) + PDF)
            await writer.drain()
        async with neighbour.held():
            answers, made = await asyncio.gather(
                keep_on(seconds, AT_ONCE, lambda: attacker.ask("POST", path, LARGE, HEADERS)), small_upload(resident)
            )
        assert made["kind"] == "document"
        assert set(answers) <= {0, 201, 429, 503}
    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, lambda: attacker.ask("POST", path, LARGE, HEADERS))
    assert answers[201]


@pytest.mark.long
async def test_files_that_nobody_reads_on_keep_nobody_waiting(
    attacker: Attacker, api: Api, resident: Resident, neighbour: Neighbour, seconds: float
) -> None:
    number_id = (await Customer.arrive(api)).number_id
    sent = {"mimeType": "application/pdf", "dataBase64": base64.b64encode(UNREAD).decode()}
    came = await api.call("POST", "/v2/sandbox/inbound", {"numberId": number_id, "from": phone(), "media": sent})

    async def copied() -> bool:
        return "mediaStorage" in await api.call("GET", f"/messages/{came['messageId']}")

    await until(copied, "the media is copied", every=0.1)
    head = attacker.head("GET", f"/messages/{came['messageId']}/media", None)
    async with AsyncExitStack() as streams:
        for _ in range(READERS):
            reader, writer = await attacker.connect()
            streams.callback(writer.transport.abort)
            writer.write(head)
            assert b" 200 " in await reader.readline()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with neighbour.held():
            await keep_on(seconds, 2, lambda: whole(attacker, head))
            assert (await small_upload(resident))["kind"] == "document"


async def whole(attacker: Attacker, head: bytes) -> int:
    """Take all of the file."""
    reader, writer = await attacker.connect()
    try:
        writer.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return await status_of(reader)
    finally:
        writer.transport.abort()
