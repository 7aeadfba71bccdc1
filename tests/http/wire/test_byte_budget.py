"""The memory of bodies and of unread answers: a share for each caller, room for small ones beside the large (C31)."""

import asyncio
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from ipaddress import ip_network
from typing import Any

import orjson
import pytest
from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.domain.core.errors import Problem
from recado.http.api.call import Call
from recado.http.api.route import Access
from recado.http.wire.byte_budget import ANSWERS, BODIES, SMALL, ByteBudget
from recado.http.wire.reply import Reply

MIB = 1024 * 1024
JSON = b"Content-Type: application/json\r\n"


def refused(budget: ByteBudget, caller: str, size: int, **who: Any) -> int:
    """The status with which `size` bytes are refused, 0 when they are taken."""
    before = budget.held
    try:
        budget.room(caller, **who).take(size)
    except Problem as problem:
        # Nothing is taken, and the caller learns when to come again.
        return problem.status if budget.held == before and int(problem.headers["Retry-After"]) else -1
    return 0


def test_one_caller_has_a_quarter() -> None:
    budget = ByteBudget(256 * MIB, BODIES)
    assert [refused(budget, "org_1", 32 * MIB) for _ in range(3)] == [0, 0, 429]
    assert refused(budget, "org_2", 64 * MIB) == 0


def test_beyond_what_all_have_is_503() -> None:
    budget = ByteBudget(256 * MIB, BODIES)
    assert [refused(budget, f"org_{n}", 60 * MIB) for n in range(4)] == [0, 0, 0, 503]


def test_large_bodies_leave_room_for_small_ones() -> None:
    budget = ByteBudget(256 * MIB, BODIES)
    for n in range(7):
        assert refused(budget, f"org_{n // 2}", 32 * MIB) == 0
    assert refused(budget, "org_0", SMALL) == 0  # the caller's own share is full
    assert refused(budget, "org_0", SMALL + 1) == 429
    assert refused(budget, "org_9", SMALL) == 0
    assert refused(budget, "org_9", SMALL + 1) == 503


def test_those_without_a_credential_leave_half_to_the_others() -> None:
    budget = ByteBudget(256 * MIB, BODIES)
    assert [refused(budget, f"192.0.2.{n}", 40 * MIB, stranger=True) for n in range(4)] == [0, 0, 0, 503]
    assert refused(budget, "org_1", 64 * MIB) == 0


def test_what_is_given_back_is_there_for_the_next() -> None:
    budget = ByteBudget(256 * MIB, BODIES)
    for _ in range(10):
        room = budget.room("192.0.2.1", stranger=True)
        room.take(1)
        room.take(64 * MIB - 1)
        with pytest.raises(Problem):
            room.take(9 * MIB)
        room.give_back()
        room.give_back()
    assert (budget.held, budget._by_caller, budget._held_by_strangers) == (0, {}, 0)


class Unread:
    """Answers of 128 MiB in all. `ended`: the callers whose answers had to make way, in that order."""

    def __init__(self, held: ExitStack) -> None:
        self.budget = ByteBudget(128 * MIB, ANSWERS)
        self.ended: list[str] = []
        self._held = held

    def leave(self, caller: str, size: int = MIB, times: int = 1) -> None:
        """Leave answers unread, whatever has to make way."""
        for _ in range(times):
            self._held.enter_context(self.holding(caller, size))

    def holding(self, caller: str, size: int) -> AbstractContextManager[None]:
        return self.budget.holding(caller, size, lambda: self.ended.append(caller))

    def refused(self, caller: str, size: int = MIB) -> int:
        """The status with which an answer is refused, 0 when it goes."""
        try:
            self.budget.admit(caller, size)
        except Problem as problem:
            return problem.status if int(problem.headers["Retry-After"]) else -1
        return 0


def test_a_read_beyond_the_callers_quarter_is_refused_and_nobody_makes_way() -> None:
    with ExitStack() as held:
        unread = Unread(held)
        unread.leave("a", times=32)
        assert [unread.refused(caller) for caller in "ab"] == [429, 0]
        assert unread.ended == []


def test_one_answer_goes_even_where_it_is_larger_than_a_quarter() -> None:
    with ExitStack() as held:
        unread = Unread(held)
        assert unread.refused("a", 100 * MIB) == 0
        unread.leave("a", 100 * MIB)
        assert [unread.refused("a"), unread.refused("b", 20 * MIB)] == [429, 0]
        unread.leave("b", 20 * MIB)
        assert (unread.ended, unread.budget.held) == (["a"], 20 * MIB)


def test_a_write_beyond_the_callers_quarter_ends_the_callers_oldest() -> None:
    with ExitStack() as held:
        unread = Unread(held)
        unread.leave("b", times=40)
        unread.leave("a", times=31)
        unread.ended.clear()
        unread.leave("a", 3 * MIB)
        assert (unread.ended, unread.budget.held) == (["a", "a"], 64 * MIB)


def test_beside_those_who_fill_everything_everybody_else_is_served() -> None:
    with ExitStack() as held:
        unread = Unread(held)
        for caller in "abcd":
            unread.leave(caller, times=28)
        assert (unread.budget.held, unread.ended) == (112 * MIB, [])  # the rest is kept for small answers
        with unread.holding("a", SMALL):
            assert unread.ended == []
        others = [f"org_{number}" for number in range(20)]
        for other in others:
            assert unread.refused(other) == 0
            unread.leave(other)
        assert Counter(unread.ended) == Counter(dict.fromkeys("abcd", 5))
        assert unread.budget.held == 112 * MIB


def test_who_would_hold_as_much_as_anybody_is_refused_when_all_is_full() -> None:
    with ExitStack() as held:
        unread = Unread(held)
        for number in range(112):
            unread.leave(f"org_{number}")
        assert [unread.refused("org_0"), unread.refused("other")] == [503, 503]
        assert unread.ended == []


def test_what_made_way_or_was_read_counts_no_more() -> None:
    with ExitStack() as held:
        unread = Unread(held)
        unread.leave("a", times=50)
        unread.leave("b", 20_000)
    budget = unread.budget
    assert (budget.held, budget._by_caller, budget._unread) == (0, {}, {})
    assert len(unread.ended) == 18


def posting(path: bytes, declared: int, extra: bytes = HEAD) -> bytes:
    return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n" % (path, extra, JSON, declared)


async def test_a_declared_body_beyond_the_callers_share_is_refused_unread(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=MIB), body_memory=4 * MIB)
    other = api.as_principal(organization_id="org_2", actor_id="key_2")["Authorization"].encode()
    _, first = await api.connect()
    first.write(posting(b"/things", 700_000))
    await wait_until(lambda: api.server.bodies.held == 700_000)
    reader, second = await api.connect()
    second.write(posting(b"/things", 700_000))
    status, head, _ = await answer_of(reader)
    assert (status, b"Retry-After: " in head) == (429, True)
    reader, third = await api.connect()
    third.write(posting(b"/things", 700_000, b"Host: x\r\nAuthorization: " + other + b"\r\n"))
    await wait_until(lambda: api.server.bodies.held == 1_400_000)
    first.close()
    await wait_until(lambda: api.server.bodies.held == 700_000)
    third.write(b"{}" + b" " * 699_998)
    assert (await answer_of(reader))[0] == 200
    assert api.server.bodies.held == 0


async def test_a_body_of_unknown_length_counts_as_it_comes(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=MIB), body_memory=4 * MIB)
    _, holding = await api.connect()
    holding.write(posting(b"/things", 900_000))
    await wait_until(lambda: api.server.bodies.held == 900_000)
    reader, writer = await api.connect()
    writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + JSON + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(4):
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
    assert (await answer_of(reader))[0] == 429
    assert api.server.bodies.held == 900_000


@pytest.mark.parametrize(("size", "counts"), [(1, False), (20_000, True)])
async def test_a_body_counts_until_its_request_is_answered_unless_it_is_as_small_as_a_head(
    serve: Any, thing: Any, size: int, counts: bool
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {})

    api = await serve(thing("POST", body=Thing, handler=slow))
    body = orjson.dumps({"name": "x" * size})
    headers = {"Content-Type": "application/json"}
    running = asyncio.ensure_future(api.client.post("/things", data=body, headers=headers))
    await entered.wait()
    assert api.server.bodies.held == (len(body) if counts else 0)
    leave.set()
    assert (await running).status == 200
    assert api.server.bodies.held == 0


async def test_callers_without_a_credential_count_by_their_address(serve: Any, thing: Any, wait_until: Any) -> None:
    route = thing("POST", "/calls", raw_body=True, access=Access.CALLBACK, scope=None, rate_class="", body_limit=MIB)
    api = await serve(route, body_memory=8 * MIB, trusted_proxies=(ip_network("127.0.0.1"),))
    held = 0
    for address, refusal in (
        (b"2001:db8::1", 0),
        (b"2001:db8::2", 0),
        (b"2001:db8::3", 429),  # whoever has one address of a network has them all
        (b"192.0.2.1", 0),
        (b"192.0.2.2", 0),
        (b"192.0.2.3", 503),
    ):
        reader, writer = await api.connect()
        writer.write(posting(b"/calls", 1_000_000, b"Host: x\r\nX-Forwarded-For: " + address + b"\r\n"))
        if refusal:
            assert (await answer_of(reader))[0] == refusal
        else:
            held += 1_000_000
            await wait_until(lambda held=held: api.server.bodies.held == held)
    small, writer = await api.connect()
    writer.write(posting(b"/calls", 2, b"Host: x\r\nX-Forwarded-For: 192.0.2.3\r\n") + b"{}")
    assert (await answer_of(small))[0] == 200


async def test_uploads_of_one_organization_leave_places_to_the_others(serve: Any, thing: Any, wait_until: Any) -> None:
    async def take(call: Call) -> Reply:
        assert call.spool is not None
        return Reply(200, {"size": call.spool.size})

    api = await serve(thing("POST", "/file", spooled={"application/json": None}, handler=take))
    spooler = api.server._dispatcher._spooler
    writers = []
    for number in range(1, 5):
        _, writer = await api.connect()
        writer.write(posting(b"/file", 100) + b" ")
        writers.append(writer)
        await wait_until(lambda number=number: spooler.open == number)
    reader, writer = await api.connect()
    writer.write(posting(b"/file", 100) + b" ")
    status, head, _ = await answer_of(reader)
    assert (status, b"Retry-After: " in head) == (429, True)
    other = api.as_principal(organization_id="org_2", actor_id="key_2")
    async with api.client.post("/file", json={}, headers=other) as answer:
        assert answer.status == 200
    writers[0].close()
    await wait_until(lambda: spooler.open == 3)
    async with api.client.post("/file", json={}) as answer:
        assert (answer.status, await answer.json()) == (200, {"size": 2})
