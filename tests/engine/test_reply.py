"""Replies: awaited, never blocked on, and combined without pykka's blocking hooks."""

import asyncio

import pykka
import pytest

from recado.engine.errors import ActorDeadError
from recado.engine.reply import ReplyFuture


async def test_a_reply_is_awaited_by_many():
    reply = ReplyFuture()
    waiting = [asyncio.ensure_future(reply) for _ in range(3)]
    await asyncio.sleep(0)
    reply.set(7)
    assert await asyncio.gather(*waiting) == [7, 7, 7]


async def test_only_the_first_value_counts():
    reply = ReplyFuture()
    reply.set(1)
    reply.set(2)
    reply.fail(ValueError())
    assert await reply == 1


async def test_get_gives_what_is_there_and_never_blocks():
    reply = ReplyFuture()
    with pytest.raises(RuntimeError, match="await"):
        reply.get()
    reply.set(1)
    assert reply.get() == 1


async def test_pykkas_triple_and_the_error_in_hand_are_accepted():
    given, current = ReplyFuture(), ReplyFuture()
    given.set_exception((ValueError, ValueError("given"), None))
    try:
        raise KeyError("current")
    except KeyError:
        current.set_exception()
    with pytest.raises(ValueError, match="given"):
        await given
    with pytest.raises(KeyError, match="current"):
        await current


async def test_map_filter_and_reduce_resolve_on_asyncio():
    reply = ReplyFuture()
    doubled = reply.map(lambda items: [2 * item for item in items])
    odd = reply.filter(lambda item: item % 2)
    total = reply.reduce(lambda left, right: left + right, 10)
    reply.set([1, 2, 3])
    assert (await doubled, await odd, await total) == ([2, 4, 6], [1, 3], 16)


async def test_errors_and_cancellation_pass_through_map():
    failed, left, wrong = ReplyFuture(), ReplyFuture(), ReplyFuture()
    mapped = [failed.map(str), left.map(str), wrong.map(lambda value: 1 // value)]
    failed.fail(ValueError("passed on"))
    left._future.cancel()
    wrong.set(0)
    with pytest.raises(ValueError, match="passed on"):
        await mapped[0]
    with pytest.raises(asyncio.CancelledError):
        await mapped[1]
    with pytest.raises(ZeroDivisionError):
        await mapped[2]


async def test_what_would_block_says_what_to_do_instead():
    with pytest.raises(NotImplementedError, match="gather"):
        ReplyFuture().join(pykka.ThreadingFuture())
    with pytest.raises(NotImplementedError, match="map"):
        ReplyFuture().set_get_hook(lambda timeout: None)


async def test_a_time_out_that_is_not_needed_leaves_no_timer(clock):
    reply = ReplyFuture()
    reply.expire_after(5, clock)
    reply.set(1)
    await clock.advance(10)
    assert await reply == 1


@pytest.mark.parametrize(("outcome", "answer"), [(None, True), (ActorDeadError(), False)])
async def test_a_stop_says_whether_it_was_the_one(outcome, answer):
    reply = ReplyFuture()
    stopped = reply.stopped_by_us()
    if outcome is None:
        reply.set(None)
    else:
        reply.fail(outcome)
    assert await stopped is answer
