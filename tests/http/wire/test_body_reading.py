"""Which bodies are read apart from the event loop: by their size, or by how much they hold."""

import os
from io import BytesIO
from typing import Any

import pytest
from tests.http.wire.harm import Body

from recado.http.api.call import Call
from recado.http.api.route import MIB
from recado.http.bodies.body_reading import LARGE, MOST_AT_ONCE, MOST_IN_LISTS, NEVER_LARGE, is_large
from recado.http.wire.body import UNCOUNTED
from recado.http.wire.reply import Reply

ROOM = LARGE - 200  # bytes of the items of a body that has nearly the size of a large one


def array(item: bytes, size: int = ROOM) -> bytes:
    """An object of one array, of about `size` bytes."""
    return b'{"how":"process","names":["a"],"unknown":[' + b",".join([item] * (size // (len(item) + 1))) + b"]}"


HEAVY = {
    "objects": array(b"{}"),
    "arrays": array(b"[0]"),
    "objects of one member": array(b'{"a":0}'),
    "arrays in arrays": array(b"[" * 60 + b"]" * 60),
    "numbers": array(b"0"),
    "U+0000": array(b"0", 100)[:-1] + b',"texts":"' + b"x" * NEVER_LARGE + b'\\u0000"}',
}
USUAL = {
    "phones": array(b'{"to":"+5511999990000"}'),
    "phones with a variable": array(b'{"to":"+5511999990000","templateVars":["Ana"]}'),
    "phones with variables and metadata": array(
        b'{"to":"+5511999990000","templateVars":["Ana","12/12","R$ 5,00"],"metadata":{"order":"1234567"}}'
    ),
    "ids": array(b'"msg_0Vbnw2xDTcyf76arCZrJt"'),
    "a text": b'{"name":"' + b"x" * ROOM + b'"}',
}


@pytest.mark.parametrize("body", HEAVY.values(), ids=HEAVY)
def test_a_body_that_holds_very_much_is_large_below_its_size(body: bytes) -> None:
    assert len(body) < LARGE
    assert is_large(body, MOST_IN_LISTS)


def test_thousands_of_members_count_twice() -> None:
    body = b"{" + b",".join(b'"%d":0' % number for number in range(4_000)) + b"}"
    assert is_large(body, MOST_AT_ONCE)


@pytest.mark.parametrize("body", USUAL.values(), ids=USUAL)
def test_a_usual_body_is_large_by_its_size_only(body: bytes) -> None:
    assert len(body) < LARGE
    assert not is_large(body, MOST_IN_LISTS)
    assert is_large(body.ljust(LARGE + 1), MOST_IN_LISTS)


@pytest.mark.parametrize("item", [b"{}", b"[]", b"0", b'"\\u0000"'])
def test_a_small_body_is_read_at_once_whatever_it_holds(item: bytes) -> None:
    assert not is_large(array(item, NEVER_LARGE - 200), MOST_AT_ONCE)


async def test_a_body_that_holds_very_much_is_read_by_a_worker_however_it_arrives(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, {"process": call.body.how})

    api = await serve(thing("POST", handler=handle, body=Body, body_limit=2 * MIB))
    with_its_head = array(b"[[]]", UNCOUNTED - 500)
    assert NEVER_LARGE < len(with_its_head) < UNCOUNTED

    async def process(body: Any) -> int:
        async with api.client.post("/things", data=body, headers={"Content-Type": "application/json"}) as answer:
            assert answer.status == 200
            return int((await answer.json())["process"])

    for heavy in (HEAVY["arrays in arrays"], BytesIO(HEAVY["objects"]), with_its_head):
        assert await process(heavy) != os.getpid()
    assert await process(USUAL["phones"]) == os.getpid()


async def test_only_operations_on_long_lists_read_as_much_at_once_as_those_need(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, {"process": call.body.how})

    api = await serve(thing("POST", handler=handle, body=Body, body_limit=MIB))
    headers = {"Content-Type": "application/json"}
    async with api.client.post("/things", data=USUAL["phones"], headers=headers) as answer:
        assert (await answer.json())["process"] != os.getpid()
