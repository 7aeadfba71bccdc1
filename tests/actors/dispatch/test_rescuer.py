"""What a dead process had in hand: sent again only where a repeat does no harm, uncertain everywhere else (C29.2)."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import until, until_locked_out

from recado.actors.dispatch import rescuer as rescuer_module
from recado.actors.dispatch.own_claims import ABANDONED_AFTER, NOT_CALLED, answer_for_claims
from recado.actors.dispatch.rescuer import Rescuer
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.dispatch.retry import RETRY_DELAYS
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import pack
from recado.storage.dispatch import dispatch, epochs, rescue, settlements
from recado.storage.dispatch.begun_calls import BegunCalls
from recado.storage.dispatch.dispatch import CLAIMED, OVERTAKEN, Claim
from recado.storage.dispatch.epochs import TakenEpoch
from recado.storage.dispatch.ownership import LOCK, Ownership, living_owner, owner_of
from recado.storage.dispatch.settlements import Failed
from recado.storage.messages import messages, receipts
from recado.storage.messages.messages import NewMessage, OwnClaim
from recado.storage.messages.receipts import ReportRow

ORGANIZATION = "org_" + "0" * 21
NUMBER = "num_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(9))
NOW = CLOCK.now()

Rescued = Callable[..., AbstractAsyncContextManager[Rescuer]]


def of(message_id: str, **changes: Any) -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": message_id, "sender_id": NUMBER,
        "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1, "force": False,
        "template_id": None, "payload": None, "template_vars": None, "metadata": None, "campaign_id": None,
        "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW,
    }  # fmt: skip
    return NewMessage(**{**fields, **changes})


async def stored(db: Database, message_id: str, **changes: Any) -> None:
    assert await messages.accept(db, [of(message_id, **changes)]) == [messages.STORED]


async def queued(db: Database, *, env: str = "test", attempts: int = 0) -> str:
    message_id = IDS.new(MESSAGE)
    await stored(db, message_id, env=env)
    await db.execute("update dispatch set attempts = $2 where id = $1", message_id, attempts)
    await db.execute("update messages set attempts = $2 where id = $1", message_id, attempts)
    return message_id


async def claimed_by_a_dead_process(db: Database, *, env: str = "test", attempts: int = 1) -> str:
    message_id = await queued(db, env=env, attempts=attempts - 1)
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [Claim(ORGANIZATION, message_id, 1, False, NOW)], epoch, NOW) == [CLAIMED]
    return message_id


async def state(db: Database, message_id: str) -> tuple[str, str | None, float | None, int]:
    """The message's status; why it waits, for how many seconds, and after how many attempts."""
    row = await db.fetchrow(
        "select m.status, d.reason, d.not_before, d.attempts, m.attempts as counted"
        " from messages m join dispatch d using (organization_id, id) where m.id = $1",
        message_id,
    )
    assert row is not None
    assert row["attempts"] == row["counted"]
    endless = row["not_before"] is None or row["not_before"].year > 9000
    return row["status"], row["reason"], None if endless else (row["not_before"] - NOW).total_seconds(), row["attempts"]


@pytest.fixture
def rescued(database: Database, monkeypatch: pytest.MonkeyPatch) -> Rescued:
    monkeypatch.setattr(rescuer_module, "FENCED_AFTER", 0.0)  # nobody moves the clock

    @asynccontextmanager
    async def take_over(*, idempotent_in: str = "", notes: Path | None = None) -> AsyncIterator[Rescuer]:
        """A new process, with an adapter that declares itself idempotent in one environment only."""
        epoch = await epochs.take_epoch(database, NOW)
        taken = TakenEpoch(epoch, NOW, 0.0, await epochs.opened(database, epoch))
        records: Any = SimpleNamespace(
            db=database,
            clock=CLOCK,
            sender_for=lambda channel, env: SimpleNamespace(name="scripted", idempotent=env == idempotent_in),
        )

        async def settle(failure: Failed) -> None:
            await settlements.failed(database, [failure])

        sending: Any = SimpleNamespace(epoch=epoch, taken=taken, unanswered={}, settle=settle)
        begun = BegunCalls(notes, boot="this boot")
        rescuer = Rescuer(records, sending=sending, begun=begun, lost=lambda error: None)
        await rescuer.start()
        yield rescuer
        await rescuer.stop()

    return take_over


async def test_what_a_dead_process_had_in_hand_is_uncertain_and_not_sent_again(
    database: Database, rescued: Rescued
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    async with rescued(idempotent_in="live"):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)


@pytest.mark.parametrize("attempts", [1, 2, 3, 4])
async def test_an_idempotent_adapter_is_given_it_again_after_the_delay_of_its_attempt(
    database: Database, rescued: Rescued, attempts: int
) -> None:
    message_id = await claimed_by_a_dead_process(database, attempts=attempts)
    async with rescued(idempotent_in="test"):
        assert await state(database, message_id) == ("sending", "retry", RETRY_DELAYS[attempts - 1], attempts)
    assert await dispatch.release_due(database, NOW + timedelta(seconds=600)) == [
        (ORGANIZATION, "test", "chatapp", NUMBER)
    ]


async def test_after_the_last_attempt_it_is_uncertain_with_an_idempotent_adapter_too(
    database: Database, rescued: Rescued
) -> None:
    message_id = await claimed_by_a_dead_process(database, attempts=5)
    async with rescued(idempotent_in="test"):
        assert await state(database, message_id) == ("sending", "uncertain", None, 5)


async def test_what_is_uncertain_already_stays_so_whatever_adapter_comes_next(
    database: Database, rescued: Rescued
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    async with rescued(idempotent_in="live"):
        pass
    async with rescued(idempotent_in="test"):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)


async def test_the_queue_is_not_read_for_claims(database: Database, rescued: Rescued) -> None:
    message_id, unnoted = [await claimed_by_a_dead_process(database) for _ in range(2)]
    await database.execute("delete from claims where ids = $1", unnoted)
    async with rescued(idempotent_in="live"):
        assert (await state(database, message_id))[1] == "uncertain"
        assert (await state(database, unnoted))[1] is None
    assert await database.fetchval("select count(*) from claims") == 0


@pytest.mark.parametrize("idempotent_in", ["live", "test"])
async def test_what_a_living_peer_has_in_hand_is_its_own(
    database: Database, rescued: Rescued, idempotent_in: str
) -> None:
    """However old its epoch is, and its claim."""
    message_id = await claimed_by_a_dead_process(database)
    peer = await epochs.current_epoch(database)
    async with rescued(idempotent_in=idempotent_in) as rescuer:
        await database.execute("update dispatch set reason = null, not_before = null, claimed_epoch = $1", peer)
        await database.execute("update dispatch set claimed_at = claimed_at - interval '1 hour'")
        await database.execute("update hosts set ended_at = null where epoch = $1", peer)
        await rescuer.settle()
        assert (await state(database, message_id))[1] is None
        await database.execute("update hosts set ended_at = now() where epoch = $1", peer)
        await database.execute(
            "insert into claims values ($1, $2, $3, $4)", peer, NOW, pack([ORGANIZATION]), pack([message_id])
        )
        await rescuer.settle()
        assert (await state(database, message_id))[1] in ("uncertain", "retry")


async def test_a_note_stays_as_long_as_anything_that_it_names_is_under_way(database: Database) -> None:
    message_id = await claimed_by_a_dead_process(database)
    epoch = await epochs.current_epoch(database)
    later = NOW + timedelta(seconds=1)
    assert await rescue.forget_settled(database, epoch, NOW) == 0  # too young
    assert await rescue.forget_settled(database, epoch, later) == 0
    await database.execute("update dispatch set reason = 'uncertain' where id = $1", message_id)
    assert await rescue.forget_settled(database, epoch, later) == 1


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_process_beside_the_owner_answers_for_what_it_forgot_and_for_nobody_else(
    database: Database, idempotent: bool
) -> None:
    """What a dead one had in hand may never have left: the owner knows by its file."""
    of_dead, forgotten = await claimed_by_a_dead_process(database), await claimed_by_a_dead_process(database)
    (epoch,) = await database.fetchrow("select max(epoch) from hosts")
    records: Any = SimpleNamespace(
        db=database, sender_for=lambda channel, env: SimpleNamespace(name="scripted", idempotent=idempotent)
    )
    await answer_for_claims(records, epoch, NOW + ABANDONED_AFTER, of_dead=False)
    assert await state(database, forgotten) == ("sending", None, None, 1)
    await answer_for_claims(records, epoch, NOW + ABANDONED_AFTER + timedelta(seconds=1), of_dead=False)
    assert (await state(database, forgotten))[1] == ("retry" if idempotent else "uncertain")
    assert await state(database, of_dead) == ("sending", None, None, 1)


async def test_a_note_stays_while_a_row_that_it_names_could_not_be_marked(database: Database) -> None:
    marked, changed = [await claimed_by_a_dead_process(database) for _ in range(2)]
    await database.execute("delete from claims")
    both = (pack([ORGANIZATION] * 2), pack([marked, changed]))
    await database.execute("insert into claims values (1, $1, $2, $3)", NOW, *both)
    epoch = await epochs.take_epoch(database, NOW)

    async with database.transaction() as another:
        await another.execute("update dispatch set expires_at = expires_at + interval '1 s' where id = $1", changed)
        rescuing = asyncio.create_task(rescue.rescue(database, epoch, NOW, of_dead=True))
        await until_locked_out(database)
    assert await rescuing == 1
    assert [(await state(database, each))[1] for each in (marked, changed)] == ["uncertain", None]
    assert await rescue.rescue(database, epoch, NOW, of_dead=True) == 1
    assert (await state(database, changed))[1] == "uncertain"
    assert await database.fetchval("select count(*) from claims") == 0


# What the process before had noted (C32) ----------------------------------------------------------------------------


async def noted(db: Database, folder: Path, *departures: tuple[str, float], claimed: float = 0.0) -> BegunCalls:
    """The notes of the process that claimed last: of calls for messages, so many seconds after now. `claimed`: when."""
    calls = BegunCalls(folder, boot="this boot", notes=16)
    row = await db.fetchrow("select epoch, taken_at from hosts order by epoch desc limit 1")
    await epochs.note_opened(db, row["epoch"])
    calls.open(*row)
    for message_id, seconds in departures:
        claimed_at, departed_at = NOW + timedelta(seconds=claimed), NOW + timedelta(seconds=seconds)
        assert calls.began(ORGANIZATION, message_id, claimed_at, departed_at)
    return calls


async def test_a_claim_whose_call_had_not_begun_goes_back_with_its_attempt_uncounted(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    message_id = await claimed_by_a_dead_process(database, attempts=2)
    await noted(database, tmp_path)
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("queued", None, None, 1)


@pytest.mark.parametrize("kept", [True, False])
async def test_what_a_dead_process_beside_the_owner_had_in_hand_is_sorted_out_by_its_own_file(
    database: Database, rescued: Rescued, tmp_path: Path, kept: bool
) -> None:
    waiting, called = await claimed_by_a_dead_process(database), await claimed_by_a_dead_process(database)
    for each in (waiting, called):  # by two processes: both are of the last epoch here
        await database.execute("update dispatch set claimed_epoch = (select max(epoch) from hosts) where id = $1", each)
    await database.execute("update claims set epoch = (select max(epoch) from hosts)")
    await database.execute("update hosts set beside = 1, opened = true where epoch = (select max(epoch) from hosts)")
    epoch, taken_at = await database.fetchrow("select epoch, taken_at from hosts order by epoch desc limit 1")
    calls = BegunCalls(tmp_path, boot="this boot", notes=16).beside(epoch)
    if kept:
        calls.open(epoch, taken_at)
        assert calls.began(ORGANIZATION, called, NOW, NOW)
    async with rescued(notes=tmp_path):
        assert (await state(database, waiting))[0] == ("queued" if kept else "sending")
        assert (await state(database, called))[:2] == ("sending", "uncertain")
        assert await epochs.opened_beside(database) == []
    assert [each.name for each in tmp_path.iterdir()] == ["begun-calls"]


@pytest.mark.parametrize("called", [False, True])
async def test_what_a_dead_process_sent_directly_is_given_to_nobody_else(
    database: Database, rescued: Rescued, tmp_path: Path, called: bool
) -> None:
    """Its content is gone with the process: it fails where no call of it began, and is uncertain where one did."""
    message_id = IDS.new(MESSAGE)
    epoch = await epochs.take_epoch(database, NOW)
    await stored(database, message_id, claim=OwnClaim(epoch, NOW))
    await noted(database, tmp_path, *([(message_id, 0.04)] if called else []))
    async with rescued(notes=tmp_path, idempotent_in="test"):
        row = await database.fetchrow("select status, last_error from messages where id = $1", message_id)
        assert row is not None
        if called:
            assert (await state(database, message_id))[1] == "uncertain"
        else:
            assert tuple(row) == ("failed", f"provider_error: {NOT_CALLED.text}")
            assert await database.fetchval("select count(*) from dispatch") == 0


async def test_a_process_that_lost_the_numbers_stores_nothing_that_it_would_send_directly(database: Database) -> None:
    message_id = IDS.new(MESSAGE)
    epoch = await epochs.take_epoch(database, NOW)
    await epochs.take_epoch(database, NOW)
    (result,) = await messages.accept(
        database, [of(message_id, claim=OwnClaim(epoch, NOW), key_hash=b"k" * 32, fingerprint=b"f" * 32)]
    )
    assert isinstance(result, Unavailable)
    for table in ("messages", "dispatch", "idempotency", "claims"):
        assert await database.fetchval(f"select count(*) from {table}") == 0


async def test_a_call_that_had_begun_is_uncertain_from_the_moment_at_which_it_began(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    await noted(database, tmp_path, (message_id, 0.04))
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)
        moment = await database.fetchval("select claimed_at from dispatch where id = $1", message_id)
        assert moment == NOW + timedelta(seconds=0.04)


async def test_what_nobody_reported_within_a_day_fails_and_a_later_report_still_knows_when_its_call_began(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    await noted(database, tmp_path, (message_id, 0.04))
    async with rescued(notes=tmp_path) as rescuer:
        await database.execute("update dispatch set claimed_at = claimed_at - interval '25 hours'")
        await rescuer.settle()
        row = await database.fetchrow("select status, sent_at from messages where id = $1", message_id)
        assert row is not None
        assert tuple(row) == ("failed", None)
    late = ReportRow(ORGANIZATION, "test", "chatapp", message_id, "delivered", NOW, None, None)
    await receipts.apply(database, [late], NOW)
    row = await database.fetchrow("select status, sent_at from messages where id = $1", message_id)
    assert row is not None
    assert tuple(row) == ("delivered", NOW + timedelta(seconds=0.04) - timedelta(hours=25))


@pytest.mark.parametrize("idempotent_in", ["live", "test"])
async def test_a_claim_goes_back_though_an_earlier_one_of_the_message_was_called_for(
    database: Database, rescued: Rescued, tmp_path: Path, idempotent_in: str
) -> None:
    """That call was refused for now, and the process killed before the next one."""
    message_id = await claimed_by_a_dead_process(database, attempts=2)
    (await noted(database, tmp_path, (message_id, -29.96), claimed=-30.0)).ended(message_id)
    async with rescued(notes=tmp_path, idempotent_in=idempotent_in):
        assert await state(database, message_id) == ("queued", None, None, 1)


async def test_a_call_that_had_begun_stays_known_when_the_process_that_sorts_out_ends(
    database: Database, rescued: Rescued, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    await noted(database, tmp_path, (message_id, 0.04))

    async def killed(*_: object, **given: object) -> int:
        raise ConnectionResetError

    with monkeypatch.context() as patch:
        patch.setattr(rescue, "rescue", killed)
        with pytest.raises(ConnectionResetError):
            await rescued(notes=tmp_path).__aenter__()
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)


async def test_an_idempotent_adapter_is_given_only_the_calls_that_had_begun_after_a_delay(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    await noted(database, tmp_path, (message_id, 0.04))
    async with rescued(notes=tmp_path, idempotent_in="test"):
        assert await state(database, message_id) == ("sending", "retry", RETRY_DELAYS[0], 1)


async def test_a_call_that_had_ended_though_the_table_knows_nothing_of_it_is_uncertain(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    """As after a failover that lost the last commits."""
    message_id = await claimed_by_a_dead_process(database)
    (await noted(database, tmp_path, (message_id, 0.0))).ended(message_id)
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)


async def test_an_owner_that_ended_while_it_started_hides_no_notes(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    await noted(database, tmp_path)
    await epochs.take_epoch(database, NOW + timedelta(seconds=5))  # and then it was killed
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("queued", None, None, 0)


async def test_notes_of_another_ownership_of_the_numbers_prove_nothing(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    await epochs.take_epoch(database, NOW)
    await noted(database, tmp_path)
    message_id = await claimed_by_a_dead_process(database)
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)


async def test_the_owner_before_begins_no_more_calls_though_it_is_alive(
    database: Database, rescued: Rescued, tmp_path: Path
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    alive = await noted(database, tmp_path)
    async with rescued(notes=tmp_path):
        assert await state(database, message_id) == ("queued", None, None, 0)
        assert not alive.began(ORGANIZATION, message_id, NOW, NOW)


@pytest.mark.parametrize("folder", ["the same", "another"])
async def test_an_owner_whose_lock_was_lost_and_whose_place_was_taken_begins_no_call_once_it_looks(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """It lives, and cannot get its lock back; what it claimed before is the other one's to decide."""
    monkeypatch.setattr(rescuer_module, "FENCED_AFTER", 0.0)
    first_lock, second_lock = (
        Ownership(database.server, clock=SystemClock(), elapsed=SystemClock.elapsed, host=host, pid=4711)
        for host in ("web-1", "web-2")
    )
    lost: list[BaseException] = []
    first = await owning(database, await first_lock.take(), tmp_path, lost)
    claimed, waiting = [await queued(database) for _ in range(2)]
    claims = [Claim(ORGANIZATION, each, 1, False, NOW) for each in (claimed, waiting)]
    assert await dispatch.claim(database, claims[:1], first.epoch, NOW) == [CLAIMED]

    await database.execute(
        "select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database"
        " where d.datname = current_database() and l.locktype = 'advisory' and l.objid = $1",
        LOCK[1],
    )
    await until(lambda: nobody_holds_the_lock(database), "the lock is free")
    await first.rescuer.watch()  # the epoch decides, and not the lock: nobody else has taken it
    assert lost == []
    assert first.begun.began(ORGANIZATION, claimed, NOW, NOW)

    taken = await second_lock.take(take_over=True)
    second = await owning(database, taken, tmp_path if folder == "the same" else tmp_path / "another", [])
    await first_lock.keep()
    await first_lock.keep()
    assert (await owner_of(database)).host == "web-2"

    assert second.fenced == ([first.epoch] if folder == "the same" else [])
    if folder == "the same":
        assert not first.begun.began(ORGANIZATION, claimed, NOW, NOW)  # by the fence, before it looks
    assert await dispatch.claim(database, claims[1:], first.epoch, NOW) == [OVERTAKEN]
    await first.rescuer.watch()
    assert [str(error) for error in lost] == [f"{await owner_of(database)} has taken the numbers over"]
    assert not first.begun.began(ORGANIZATION, claimed, NOW, NOW)
    assert await dispatch.claim(database, claims[1:], second.epoch, NOW) == [CLAIMED]
    assert second.begun.began(ORGANIZATION, waiting, NOW, NOW)
    for each in (first.rescuer, second.rescuer, first_lock, second_lock):
        await each.stop()


async def nobody_holds_the_lock(database: Database) -> bool:
    return await living_owner(database) is None


@dataclass
class Owning:
    """A process that owns the numbers: its epoch, and what follows of it."""

    epoch: int
    begun: BegunCalls
    rescuer: Rescuer
    fenced: list[int]  # the epochs of owners before that begin no more calls


async def owning(database: Database, taken: TakenEpoch, folder: Path, lost: list[BaseException]) -> Owning:
    records: Any = SimpleNamespace(db=database, clock=CLOCK, sender_for=lambda channel, env: None)
    sending: Any = SimpleNamespace(epoch=taken.epoch, taken=taken, unanswered={})
    begun = BegunCalls(folder, boot="this boot")
    fenced: list[int] = []

    def note_fenced() -> None:
        assert taken.opened_before is not None
        fenced.append(taken.opened_before[0])

    rescuer = Rescuer(records, sending=sending, begun=begun, lost=lost.append, fenced=note_fenced)
    await rescuer.start()
    return Owning(taken.epoch, begun, rescuer, fenced)
