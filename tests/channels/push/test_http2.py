"""The HTTP/2 connection against a peer in memory that does what no service should."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from tests.channels.push.http2_peer import Peer, turns

from recado.channels.http.answer import Answer, Lost, NotSent


async def test_a_status_that_is_no_number_is_no_answer() -> None:
    peer = Peer()
    asking = peer.ask()
    await turns()
    peer.answer(1, (":status", "two hundred"))
    assert await asking == Lost()


async def test_a_connection_that_was_told_to_go_is_closed_when_it_has_carried_all() -> None:
    peer = Peer()
    asking = peer.ask()
    await turns()
    peer.h2.close_connection(last_stream_id=1)
    goaway = peer.h2.data_to_send()
    peer.connection.data_received(goaway)
    await turns()
    assert not peer.closed
    peer.connection.data_received(bytes.fromhex("00000101050000000188"))  # HEADERS: status 200, end of the stream
    answer = await asking
    assert isinstance(answer, Answer)
    assert answer.status == 200
    assert peer.closed


async def test_one_without_a_request_is_closed_when_it_is_told_to_go() -> None:
    peer = Peer()
    peer.h2.close_connection()
    peer.say()
    assert peer.closed


async def test_a_connection_on_which_nothing_came_during_a_whole_call_takes_no_other() -> None:
    """What stands between may have forgotten it: each request that is written to it would be in doubt."""
    peer = Peer()
    asking = peer.ask()
    await turns()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert not peer.connection.usable
    assert peer.closed


async def test_a_call_that_is_given_up_while_others_are_answered_costs_its_stream_alone() -> None:
    peer = Peer({SettingCodes.MAX_CONCURRENT_STREAMS: 10})
    asking, other = peer.ask(), peer.ask()
    await turns()
    peer.answer(3, (":status", "200"))
    assert isinstance(await other, Answer)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert peer.connection.usable
    assert not peer.closed


async def test_a_refusal_is_believed_while_the_body_waits_for_its_window() -> None:
    peer = Peer({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    asking = peer.ask()
    await turns()
    peer.h2.reset_stream(1, ErrorCodes.REFUSED_STREAM)
    peer.say()
    assert await asking == NotSent()


async def test_an_answer_is_believed_while_the_body_waits_for_its_window() -> None:
    peer = Peer({SettingCodes.INITIAL_WINDOW_SIZE: 0, SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    for stream in (1, 3):  # what was answered early leaves no stream open
        asking = peer.ask()
        await turns()
        peer.answer(stream, (":status", "429"), ("retry-after", "3"))
        answer = await asking
        assert isinstance(answer, Answer)
        assert (answer.status, answer.retry_after) == (429, "3")


async def test_a_status_stands_where_its_body_breaks_off() -> None:
    peer = Peer()
    asking = peer.ask()
    await turns()
    peer.answer(1, (":status", "410"), ends=False)
    peer.close()
    answer = await asking
    assert isinstance(answer, Answer)
    assert (answer.status, answer.complete) == (410, False)


async def test_a_status_stands_where_its_body_does_not_end_in_time() -> None:
    peer = Peer()
    asking = peer.ask(seconds=0.1)
    await turns()
    peer.answer(1, (":status", "200"), ends=False)
    answer = await asking
    assert isinstance(answer, Answer)
    assert (answer.status, answer.complete, peer.connection.usable) == (200, False, True)


async def test_no_answer_in_time_is_none() -> None:
    peer = Peer()
    assert await peer.ask(seconds=0.05) == Lost()
    assert peer.closed


async def test_nothing_is_read_from_a_peer_that_takes_nothing() -> None:
    """Each ping is answered: who reads no answers could fill our memory with them."""
    peer = Peer()
    peer.connection.pause_writing()
    peer.connection.resume_writing()
    assert peer.told == ["pause", "resume"]
    peer.connection.pause_writing()
    peer.connection.close()
    assert peer.aborted


async def test_what_nobody_asked_for_may_not_be_sent() -> None:
    peer = Peer()
    asking = peer.ask()
    await turns()
    peer.say()  # it agrees
    assert peer.h2.remote_settings.enable_push == 0
    peer.connection.data_received(bytes.fromhex("0000050504000000010000000282"))  # PUSH_PROMISE
    assert peer.closed
    assert await asking == Lost()


def _mutated(chance: Random, data: bytes) -> bytes:
    octets = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        octets[chance.randrange(len(octets))] = chance.randrange(256)
    return bytes(octets)


@pytest.mark.parametrize("seed", range(40))
async def test_no_octets_raise_past_the_connection(seed: int) -> None:
    chance = Random(seed)
    answers: list[Callable[[Peer], Any]] = [
        lambda peer: peer.h2.send_headers(1, [(":status", "200"), ("retry-after", "1")]),
        lambda peer: peer.h2.send_data(1, b"x" * 100, end_stream=True),
        lambda peer: peer.h2.ping(b"12345678"),
        lambda peer: peer.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 3}),
        lambda peer: peer.h2.close_connection(),
    ]
    for _ in range(25):
        peer = Peer()
        asking = peer.ask()
        await turns(2)
        for answer in answers:
            answer(peer)
        peer.connection.data_received(_mutated(chance, peer.h2.data_to_send()))
        peer.close()
        assert isinstance(await asking, Answer | NotSent | Lost)
