"""Numbers move between processes by their shards: nothing of them leaves meanwhile, and their pace holds."""

import asyncio
from typing import TYPE_CHECKING

from recado.actors.dispatch.places import Places, nowhere
from recado.domain.dispatch.leases import WINDOW
from recado.domain.dispatch.placement import SHARDS, shard_of
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.hints import Queued

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


async def given_up(line: "Line", shard: int) -> None:
    line.places.put([shard], nowhere)
    giving_up = asyncio.ensure_future(line.lanes.give_up({shard}))
    while not giving_up.done():
        await line.goes_on(0.01)
    await giving_up


async def test_a_number_that_is_given_up_and_had_again_sends_each_message_once_at_its_pace(line: "Line") -> None:
    await line.goes_on(1.0)
    queued = await line.queue(200)
    await line.goes_on(0.5)
    shard = shard_of(line.key)
    await given_up(line, shard)
    before = line.provider.sent
    assert 0 < len(before) < len(queued)
    assert not line.in_memory
    assert await line.db.fetchval("select count(*) from dispatch where claimed_epoch is not null") == 0
    line.lanes.tell(line.key, Queued())
    await line.goes_on(1.0)
    assert line.provider.sent == before
    line.context.opens[shard] = line.clock.monotonic() + WINDOW
    line.places.put([shard], None)
    line.lanes.tell(line.key, Queued())
    await line.goes_on(WINDOW - 0.1)
    assert line.provider.sent == before
    await line.goes_on(5.0)
    assert sorted(line.provider.sent) == sorted(queued)
    moments = line.provider.moments
    assert all(later - sooner >= 1.0 for sooner, later in zip(moments, moments[80:], strict=False))


async def test_numbers_of_other_shards_go_on(line: "Line") -> None:
    await line.goes_on(1.0)
    queued = await line.queue(40)
    await line.goes_on(0.1)
    await given_up(line, (shard_of(line.key) + 1) % SHARDS)
    await line.goes_on(1.0)
    assert sorted(line.provider.sent) == sorted(queued)


def test_numbers_alone_are_elsewhere_by_their_shards() -> None:
    told: list[object] = []
    places, number = Places(), SenderKey("org_1", "test", "chatapp", "num_1")
    places.put([shard_of(number)], lambda sender, message: told.append(sender))
    away = places.away(number)
    assert away is not None
    away(number, Queued())
    assert told == [number]
    assert places.away(number._replace(channel="sms")) is None
    assert places.away(number._replace(sender_id="num_2")) is None
    places.put([shard_of(number)], None)
    assert places.away(number) is None
