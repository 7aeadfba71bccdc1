"""The tier gate: distinct recipients of business-initiated messages in a rolling day (C14.5.5)."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from recado.actors.dispatch.lane_messages import Look
from recado.domain.core.errors import Unavailable
from recado.domain.senders import number as number_domain
from recado.domain.senders.number import MessagingTier
from recado.storage.dispatch import addressed, dispatch

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


@pytest.fixture
async def full_at_five(line: "Line", monkeypatch: pytest.MonkeyPatch) -> "Line":
    """A number whose tier lets five recipients a day be addressed first."""
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    return line


@pytest.fixture
def claims_commit(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Until it is set, claims are under way."""
    claim, commits = dispatch.claim, asyncio.Event()

    async def late(db: Any, rows: Any, *rest: Any) -> list[str]:
        await commits.wait()
        return await claim(db, rows, *rest)

    monkeypatch.setattr(dispatch, "claim", late)
    return commits


async def opens_window(line: "Line", recipient_hash: int) -> None:
    await line.db.execute(
        "insert into chat_windows (organization_id, sender_id, recipient_hash, last_inbound_at)"
        " values ($1, $2, $3, $4)",
        line.organization.id, line.number.id, recipient_hash, line.clock.now(),
    )  # fmt: skip


async def counted(line: "Line") -> int:
    return int(await line.db.fetchval("select count(*) from tier_recipients where sender_id = $1", line.number.id))


async def test_at_a_full_tier_others_wait_and_whoever_is_counted_passes(full_at_five: "Line") -> None:
    line = full_at_five
    ids = await line.queue(8)
    await line.goes_on(2.0)
    assert line.provider.sent == ids[:5]
    assert await line.reasons() == {"tier_limit"}
    again = await line.queue(5)  # to the same recipients
    await line.goes_on(1.0)
    assert line.provider.sent == [*ids[:5], *again]
    assert await counted(line) == 5


async def test_a_template_into_an_open_window_takes_no_place_and_needs_none(full_at_five: "Line") -> None:
    line = full_at_five
    await opens_window(line, 0)
    await opens_window(line, 7)
    ids = await line.queue(8)  # of 0 and 7, and of six others
    await line.goes_on(2.0)
    assert set(line.provider.sent) == {*ids[:6], ids[7]}
    assert await counted(line) == 5
    assert await line.reasons() == {"tier_limit"}


async def test_a_lost_claim_gives_its_place_back(full_at_five: "Line", monkeypatch: pytest.MonkeyPatch) -> None:
    line, claim = full_at_five, dispatch.claim
    withdrawn = await line.queue(3, tell=False)

    async def late(db: Any, rows: Any, *rest: Any) -> list[str]:
        await db.execute("delete from dispatch where id = any($1::text[])", withdrawn)
        return await claim(db, rows, *rest)

    monkeypatch.setattr(dispatch, "claim", late)
    line.tell(Look())
    await line.goes_on(2.0)
    monkeypatch.undo()
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    assert line.provider.sent == []
    await line.db.execute("update messages set recipient_hash = recipient_hash + 100")
    ids = await line.queue(8, tell=False)
    await line.db.execute("update messages set recipient_hash = recipient_hash + 100 where id = any($1)", ids)
    line.tell(Look())
    await line.goes_on(2.0)
    assert len(line.provider.sent) == 5
    assert await counted(line) == 5


async def test_claims_under_way_when_a_limit_first_comes_take_their_places(
    line: "Line", claims_commit: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    first = await line.queue(4)
    await line.goes_on(1.5)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    await line.goes_on(0.1)
    claims_commit.set()
    await line.goes_on(2.0)
    assert line.provider.sent == first
    others = await line.queue(8, tell=False)
    await line.db.execute("update messages set recipient_hash = recipient_hash + 100 where id = any($1)", others)
    line.tell(Look())
    await line.goes_on(3.0)
    assert line.provider.sent == [*first, others[0]]
    assert await counted(line) == 5
    assert await line.reasons() == {"tier_limit"}


async def test_a_claim_under_way_when_a_limit_first_comes_that_is_lost_takes_no_place(
    line: "Line", claims_commit: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    withdrawn = await line.queue(4)
    await line.goes_on(1.5)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    await line.goes_on(0.1)
    await line.db.execute("delete from dispatch where id = any($1::text[])", withdrawn)
    claims_commit.set()
    await line.goes_on(2.0)
    assert line.provider.sent == []
    others = await line.queue(8, tell=False)
    await line.db.execute("update messages set recipient_hash = recipient_hash + 100 where id = any($1)", others)
    line.tell(Look())
    await line.goes_on(3.0)
    assert line.provider.sent == others[:5]
    assert await counted(line) == 5


async def test_without_a_limit_nobody_is_kept_and_who_was_sent_to_counts_when_one_comes(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    first = await line.queue(4)
    await line.goes_on(2.0)
    assert line.provider.sent == first
    assert await counted(line) == 0
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    await line.goes_on(1.0)
    assert await counted(line) == 4
    ids = await line.queue(8)
    await line.goes_on(2.0)
    assert line.provider.sent == [*first, *ids[:5]]  # to the four, and to one more
    assert await line.reasons() == {"tier_limit"}
    assert line.number.limited_at is not None
    assert await line.db.fetchval("select limited_at from numbers where id = $1", line.number.id) is None


async def test_while_it_is_counted_templates_wait_and_those_into_an_open_window_leave(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    count, ends = addressed.count, asyncio.Event()

    async def long(*arguments: Any) -> None:
        await ends.wait()
        await count(*arguments)

    monkeypatch.setattr(addressed, "count", long)
    first = await line.queue(3)
    await line.goes_on(2.0)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    await opens_window(line, 7)
    ids = await line.queue(8)
    await line.goes_on(5.0)
    assert line.provider.sent == [*first, ids[7]]
    assert await line.reasons() == {"tier_limit"}
    await line.set_number(per_second=line.number.per_second + 1)  # a change of something else counts nobody twice
    await line.goes_on(2.0)
    assert line.provider.sent == [*first, ids[7]]
    ends.set()
    await line.goes_on(2.0)
    assert line.provider.sent == [*first, ids[7], *ids[:5]]
    assert await counted(line) == 5


async def test_a_limit_that_came_while_nobody_looked_is_counted_before_the_first_template(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    await line.queue(4)
    await line.goes_on(2.0)
    await line.goes_on(130.0, step=5.0)
    assert not line.in_memory
    await line.set_number(messaging_tier=MessagingTier.TIER_250)  # as before the process ended
    ids = await line.queue(8)
    await line.goes_on(3.0)
    sent = line.provider.sent[4:]
    assert set(ids[:4]) < set(sent)  # to the four, and to one more
    assert len(sent) == await counted(line) == 5


async def test_a_count_that_the_database_breaks_off_begins_anew(line: "Line", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    count, tries = addressed.count, 0

    async def broken(*arguments: Any) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Unavailable("The database is not available.")
        await count(*arguments)

    monkeypatch.setattr(addressed, "count", broken)
    first = await line.queue(4)
    await line.goes_on(2.0)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    ids = await line.queue(8)
    await line.goes_on(1.0)
    assert line.provider.sent == first
    await line.goes_on(4.0)
    assert tries == 3
    assert line.provider.sent == [*first, *ids[:5]]


async def test_a_limit_that_goes_and_comes_again_counts_what_left_between(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(number_domain.TIER_LIMITS, MessagingTier.TIER_250, 5)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    first = await line.queue(2)
    await line.goes_on(2.0)
    await line.set_number(messaging_tier=MessagingTier.UNLIMITED)
    await line.goes_on(1.0)
    between = await line.queue(4)
    await line.goes_on(2.0)
    assert await counted(line) == 2
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    ids = await line.queue(8)
    await line.goes_on(3.0)
    assert line.provider.sent[:6] == [*first, *between]
    sent = line.provider.sent[6:]
    assert set(ids[:4]) < set(sent)
    assert len(sent) == await counted(line) == 5


async def test_who_waits_for_its_claims_takes_no_read_of_others(line: "Line", claims_commit: asyncio.Event) -> None:
    line.context.turn = asyncio.Semaphore(1)
    ids = await line.queue(4)
    await line.goes_on(1.5)
    await line.set_number(messaging_tier=MessagingTier.TIER_250)
    await line.goes_on(0.1)
    reading = asyncio.ensure_future(line.context.sender(line.key))
    await line.goes_on(0.1)
    read_meanwhile = reading.done()
    claims_commit.set()
    await line.goes_on(2.0)
    await reading
    assert read_meanwhile
    assert line.provider.sent == ids


async def test_after_a_restart_the_tier_is_as_full_as_before(full_at_five: "Line") -> None:
    line = full_at_five
    await opens_window(line, 0)
    await line.queue(4)  # three of them count
    await line.goes_on(2.0)
    await line.goes_on(130.0, step=5.0)
    assert not line.in_memory
    ids = await line.queue(8)
    await line.goes_on(3.0)
    assert line.in_memory
    assert line.provider.sent[4:] == ids[:6]  # of 0, whose window is open, of the three, and of two more
    assert await counted(line) == 5
