"""Bodies in small pieces: the more of them come, the longer they are left to come together (C31)."""

from collections.abc import Callable
from typing import Any

from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.http.wire.connection import Connection
from recado.http.wire.small_pieces import LONGEST, WORTH, SmallPieces

BODY = b'{"name":"' + b"y" * 50 + b'"}'


def test_who_trickles_is_read_twice_a_second_and_nobody_waits_longer_than_he_took() -> None:
    pieces = SmallPieces()
    waits = [pieces.wait(1, 60.0) for _ in range(20)]
    assert waits == sorted(waits)
    assert (waits[:5], waits[-1]) == ([0.0] * 5, LONGEST)
    assert pieces.wait(1, 0.1) == 0.1
    assert pieces.wait(1, 0.0) == 0.0


def test_who_sends_enough_waits_less_until_he_waits_no_more() -> None:
    pieces = SmallPieces()
    for _ in range(20):
        pieces.wait(1, 60.0)
    waits = [pieces.wait(WORTH, 60.0) for _ in range(20)]
    assert waits == sorted(waits, reverse=True)
    assert (waits[0], waits[-1]) == (LONGEST / 2, 0.0)


async def test_what_trickles_is_left_in_the_system_and_comes_at_once(
    serve: Any, thing: Any, wait_until: Callable[..., Any]
) -> None:
    api = await serve(thing("POST", body=Thing))
    reader, writer = await api.connect()
    head = b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % len(BODY))
    await wait_until(lambda: api.server._web is not None and len(api.server._web.connections) == 1)
    (connection,) = api.server._web.connections
    assert isinstance(connection, Connection)

    def came() -> int:
        body = connection._incoming
        return 0 if body is None else body.total_bytes

    for sent in range(1, 7):
        await wait_until(lambda: connection._incoming is not None and connection._incoming._waiter is not None)
        await api.clock.advance(0.1)
        writer.write(BODY[sent - 1 : sent])
        await wait_until(lambda: came() == sent)  # noqa: B023 - it is awaited in its turn
    await wait_until(lambda: connection._buffer_paused)
    writer.write(BODY[sent:-1])
    await api.client.get("/things")  # the loop has read all that it reads
    assert came() == 6
    await api.clock.advance(LONGEST)
    await wait_until(lambda: came() == len(BODY) - 1)
    writer.write(BODY[-1:])
    await api.clock.advance(LONGEST)
    status, _, _ = await answer_of(reader)
    assert status == 200
