"""Faults of a service with fronts that end no process, or end a front where it hurts most (C33)."""

import asyncio
import hashlib
import json
import os
import secrets
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, ahead, moment, phone
from tests.fronts.processes import Press, fronts_of, is_front, owner_of
from tests.media_files import PDF
from tests.program import Api, Service, running
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.alone]  # seconds are measured

PATIENCE = 30.0
FOUND_WITHIN = 1.25  # seconds after it is due: a row whose hint is lost
BUSY = 1.0  # more, on a machine that others use
STILL = 8.0  # seconds
UPLOAD = 50 * 1024 * 1024  # bytes

# Runs in each process of the service before its program: a front that is to tell of rows dies, where it is bidden to.
DIES_BEFORE_IT_TELLS = """
import os, signal, sys
if "recado.fronts.front" in sys.orig_argv:
    from recado.engine.link import Link
    give = Link.give
    def dies(link, kind, said=None):
        if kind == "rows":
            try:
                os.unlink({bidden!r})
            except FileNotFoundError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return give(link, kind, said)
    Link.give = dies
"""


def letter(customer: Customer) -> dict[str, Any]:
    return {
        "numberId": customer.number_id, "to": phone(), "type": "template", "templateId": customer.template_id,
        "templateVars": ["hello"],
    }  # fmt: skip


async def both(service: Service) -> list[int]:
    """The fronts, once both run."""
    await until(lambda: len(fronts_of(service)) == 2, "both run")
    return fronts_of(service)


@asynccontextmanager
async def forgetful(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Service, Path]]:
    """A service of which a front dies between a commit and what it would tell of it, once the file is there."""
    bidden, early = folder / "dies", folder / "early"
    early.mkdir()
    (early / "sitecustomize.py").write_text(DIES_BEFORE_IT_TELLS.format(bidden=str(bidden)))
    monkeypatch.setenv("PYTHONPATH", str(early))
    service = Service(folder, "--workers", "2", SANDBOX_TIME_SCALE="0.1")
    service.starts_with = (sys.executable, "-m", "recado")  # type: ignore[misc]
    async with running(service):
        yield service, bidden


async def takes_requests(service: Service) -> int:
    """The one front, once it listens."""

    async def so() -> bool:
        async with aiohttp.ClientSession() as session, session.get(service.url + "/metrics") as answer:
            return "recado_fronts 1.0" in (await answer.text()).splitlines()

    await until(so, "a front takes requests", every=0.1)
    (front,) = fronts_of(service)
    return front


def has_died(pid: int) -> bool:
    return not is_front(pid)


async def left(api: Api, path: str) -> Any:
    """The message, once it has left."""
    read = await api.call("GET", path)
    return read if read.get("sentAt") else None


async def test_what_a_front_had_no_time_to_tell_of_leaves_a_second_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of each channel is of a sender whose lane is not in memory."""
    async with forgetful(tmp_path, monkeypatch) as (service, bidden):
        token = service.key("test")
        async with Api(service.url, token) as api:
            customer = await Customer.arrive(api)
            sms, rcs = {"to": phone(), "text": "It is here."}, {"to": phone(), "content": {"text": "It is here."}}
            cases: list[tuple[str, dict[str, Any], float]] = [
                ("/messages", letter(customer), 0.0),
                ("/messages", {**letter(customer), "force": True}, 0.0),
                ("/messages", letter(customer), 2.0),
                ("/v2/sms/messages", sms, 0.0),
                ("/v2/sms/messages", sms, 0.0),
                ("/v2/rcs/messages", rcs, 0.0),
                ("/v2/rcs/messages", rcs, 2.0),
            ]
            for path, body, later in cases:
                front = await takes_requests(service)
                bidden.touch()
                key = secrets.token_hex(8)
                asked = {**body, "scheduledAt": ahead(later)} if later else body
                (lost,) = await Press(service.url, token, path, asked).at_once(1, **{"Idempotency-Key": key})
                if later:  # the owner finds what is due by itself, and is told nothing
                    assert lost.status == 201
                    bidden.unlink()
                    os.kill(front, signal.SIGKILL)
                assert lost.status == (201 if later else 0)
                await until(partial(has_died, front), "the front has died")
                await takes_requests(service)
                again = await api.call("POST", path, asked, key=key)
                assert [each["id"] async for each in api.pages(path)].count(again["id"]) == 1

                read: Any = await until(partial(left, api, f"{path}/{again['id']}"), "it has left", every=0.05)
                due = moment(str(asked.get("scheduledAt", read["createdAt"])))
                took = (moment(read["sentAt"]) - due).total_seconds()
                assert 0.0 <= took < FOUND_WITHIN + BUSY


def family_of(pid: int) -> list[int]:
    """The process and all that it began."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for each in (task / "children").read_text().split():
            found += family_of(int(each))
    return found


@asynccontextmanager
async def standing_still(pids: list[int]) -> AsyncIterator[None]:
    """They do nothing while the block runs."""
    try:
        for each in pids:
            os.kill(each, signal.SIGSTOP)
        yield
    finally:
        for each in pids:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)


@pytest.mark.parametrize("which", ["service", "database"])
async def test_what_stands_still_for_eight_seconds_leaves_no_request_without_an_answer(
    service: Service, api: Api, token: str, which: str
) -> None:
    """All processes of the service, or of PostgreSQL: no front is ended for it, and every message is there once."""
    press, now = Press(service.url, token, "/messages", letter(await Customer.arrive(api, per_second=300))), _now()
    fronts = await both(service)
    postmaster = service.cluster().pid()
    assert postmaster is not None
    pids = [service.pid, owner_of(service), *fronts] if which == "service" else family_of(postmaster)
    async with press.pressing(48):
        await until(lambda: len(press.accepted()) > 100, "messages are accepted")
        stopped = now()
        async with standing_still(pids):
            await until(lambda: now() > stopped + STILL, "the time is over", limit=2 * STILL, every=0.05)
        went_on = now()
        await until(lambda: len(press.accepted(went_on)) > 100, "more is accepted")
    waited = [each for each in press.answers if each.began < went_on < each.ended]
    assert len(waited) >= 40  # of 48 connections; some rest between two requests
    assert max(each.ended for each in waited) - went_on < PATIENCE / 3
    assert set(Counter(each.status for each in press.answers)) <= {201, 503}
    assert all(each.status == 201 for each in press.since(went_on))
    assert fronts_of(service) == fronts
    made = [each.body["id"] for each in press.accepted()]
    found = Counter([each["id"] async for each in api.pages("/messages")])
    assert len(made) == len(set(made))
    assert {found[each] for each in made} == {1}


async def test_an_upload_that_went_over_goes_on_though_its_front_is_killed(
    service: Service, api: Api, token: str
) -> None:
    customer = await Customer.arrive(api)
    content = PDF + secrets.token_bytes(UPLOAD)
    fronts = await both(service)
    head = (
        f"POST /numbers/{customer.number_id}/media/binary HTTP/1.1\r\nHost: recado\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/octet-stream\r\nX-Filename: a.pdf\r\nX-Content-Type: application/pdf\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    try:
        writer.write(head.encode() + content[: UPLOAD // 2])
        await writer.drain()  # what the kernel has not taken is less than a half of it
        for each in fronts:
            os.kill(each, signal.SIGKILL)
        await until(lambda: not any(is_front(each) for each in fronts), "they are gone")
        writer.write(content[UPLOAD // 2 :])
        answer_head, _, answer = (await asyncio.wait_for(reader.read(), 60.0)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    assert answer_head.startswith(b"HTTP/1.1 201 ")
    made = json.loads(answer)
    assert (made["size"], made["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    await both(service)


def _now() -> Callable[[], float]:
    return asyncio.get_running_loop().time
