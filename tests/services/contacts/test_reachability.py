"""Who fails for good to be reached is marked, and who is reached is not (C13.2), on the real database."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.people import insert_people, phone
from tests.post import LETTERS, POST

from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import POLICIES
from recado.domain.core.ids import MESSAGE, IdSource
from recado.engine.clock import SystemClock
from recado.services.contacts.reachability import Reachability
from recado.storage.contacts import reachability
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved

ORGANIZATION, ENV = "org_1", "live"
GONE = "recipient_unreachable"
_INSERT = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
    failure_code, updated_at, details
) values ($1, $2, $3, $4, 'outbound', $5, 'text', 'num_1', $6, 1, 1, false, $7, $8, $9::text::jsonb)
"""


class Told:
    """Messages that move, and what is known of two contacts afterwards."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._clock = SystemClock()
        self._ids = IdSource(self._clock, random.Random(5))
        self.reachability = Reachability(db, clock=self._clock)

    async def message(
        self, to_status: str, number: int = 1, *, error: str | None = None, carrier: str | None = None, **fields: Any
    ) -> Moved:
        """A message to the contact of that number, stored as it is after its move."""
        where = {"channel": "chatapp", "from_status": "sending", **fields}
        move = Moved(ORGANIZATION, ENV, id=self._ids.new(MESSAGE), to_status=to_status, **where)
        row = (ORGANIZATION, ENV, move.channel, move.id, to_status, phone(number), error, datetime.now(UTC))
        details = None if carrier is None else f'{{"deliveredVia": "{carrier}"}}'
        await self.db.execute(_INSERT, *row, details)
        return move

    async def moves(self, *moved: Moved) -> dict[int, list[str]]:
        """One commit with these moves; the marks once everything is written."""
        async with self.db.transaction() as connection:
            after = await self.reachability.write(connection, moved)
        if after is not None:
            after()
        await self.reachability.stop()
        await self.reachability.start()
        rows = await self.db.fetch("select phone, unreachable from contacts")
        return {number: row["unreachable"] for row in rows for number in (1, 2) if row["phone"] == phone(number)}


@pytest.fixture
async def told(database: Database) -> AsyncIterator[Told]:
    await insert_people(database, ORGANIZATION, ENV, [{}, {}])
    told = Told(database)
    await told.reachability.start()
    yield told
    await told.reachability.stop()


async def test_a_final_word_of_the_provider_marks_the_contact_and_a_delivery_clears_it(told: Told) -> None:
    assert await told.moves(await told.message("failed", error=GONE)) == {1: ["chatapp"], 2: []}
    assert await told.moves(await told.message("failed", error=GONE)) == {1: ["chatapp"], 2: []}
    assert await told.moves(await told.message("sent")) == {1: ["chatapp"], 2: []}
    assert await told.moves(await told.message("delivered", 2), await told.message("read")) == {1: [], 2: []}


async def test_the_mark_is_in_the_commit_of_the_move(told: Told) -> None:
    async def marks() -> list[list[str]]:
        return [row[0] for row in await told.db.fetch("select unreachable from contacts order by phone")]

    async with told.db.transaction() as connection:
        after = await told.reachability.write(connection, [await told.message("failed", error=GONE)])
        assert after is None
        assert await marks() == [[], []]
    assert await marks() == [["chatapp"], []]
    async with told.db.transaction() as connection:
        assert await told.reachability.write(connection, [await told.message("delivered")]) is None
    assert await marks() == [[], []]


@pytest.mark.parametrize(("to_status", "error", "marked"), [("failed", GONE, ["chatapp"]), ("delivered", None, [])])
async def test_a_contact_that_is_being_changed_holds_no_move_up_and_is_marked_after_it(
    told: Told, to_status: str, error: str | None, marked: list[str]
) -> None:
    await told.db.execute("update contacts set unreachable = $1", [] if marked else ["chatapp"])
    move = await told.message(to_status, error=error)
    async with told.db.transaction() as changing:
        await changing.execute("select from contacts where phone = $1 for update", phone(1))
        async with told.db.transaction() as connection:
            after = await told.reachability.write(connection, [move])
        assert after is not None
    after()
    await told.reachability.stop()
    assert await told.db.fetchval("select unreachable from contacts where phone = $1", phone(1)) == marked


@pytest.mark.parametrize("error", ["policy_blocked", "outcome_unknown", "expired", None])
async def test_other_failures_say_nothing_of_the_recipient(told: Told, error: str | None) -> None:
    assert await told.moves(await told.message("failed", error=error)) == {1: [], 2: []}


NO_SUCH_NUMBER = "invalid_number"
CODES = frozenset({GONE, NO_SUCH_NUMBER})


@pytest.mark.parametrize(
    ("from_status", "to_status", "error", "before", "after"),
    [
        ("sending", "failed", NO_SUCH_NUMBER, [], [POST]),  # the provider refused it
        ("sending", "failed", GONE, [], [POST]),
        ("sent", "undelivered", NO_SUCH_NUMBER, [], [POST]),  # it took it, and reported so
        ("sent", "undelivered", NO_SUCH_NUMBER, ["chatapp"], ["chatapp", POST]),  # each channel has its mark
        ("sent", "undelivered", "carrier_rejected", [], []),
        ("sent", "undelivered", "indeterminate", [], []),
        ("queued", "failed", "expired", [POST], [POST]),
        ("sent", "delivered", None, [POST, "chatapp"], ["chatapp"]),
        ("undelivered", "delivered", None, [POST], []),  # a late report
        ("delivered", "complained", None, [POST], [POST]),  # it had arrived before, and told so
    ],
)
async def test_a_channel_marks_by_its_own_codes_and_clears_its_own_mark(
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    from_status: str,
    to_status: str,
    error: str | None,
    before: list[str],
    after: list[str],
) -> None:
    monkeypatch.setitem(POLICIES, POST, replace(LETTERS, nobody_there=CODES))
    await told.db.execute("update contacts set unreachable = $2 where phone = $1", phone(1), before)
    move = await told.message(to_status, error=error, channel=POST, from_status=from_status)
    assert await told.moves(move) == {1: after, 2: []}


async def test_an_rcs_message_tells_of_what_carried_it(told: Told) -> None:
    """C17.2: of the SMS that took its place, or of RCS itself; of both in one commit."""
    rcs = {"channel": "rcs", "error": NO_SUCH_NUMBER}
    assert await told.moves(await told.message("failed", carrier="sms", **rcs)) == {1: ["sms"], 2: []}
    both = [await told.message("failed", 2, carrier=each, **rcs) for each in ("sms", "rcs", "rcs")]
    marked = await told.moves(*both)
    assert (marked[1], sorted(marked[2])) == (["sms"], ["rcs", "sms"])
    arrived = {"channel": "rcs", "from_status": "sent"}
    left = await told.moves(
        await told.message("delivered", carrier="rcs", **arrived),
        await told.message("delivered", 2, carrier="sms", **arrived),
    )
    assert left == {1: ["sms"], 2: ["rcs"]}
    both = [await told.message("read", n, carrier=each, **arrived) for n in (1, 2) for each in ("rcs", "sms")]
    assert await told.moves(*both) == {1: [], 2: []}


async def test_what_goes_to_e_mail_addresses_says_nothing_of_a_phone(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_addresses = replace(LETTERS, nobody_there=CODES, addresses=(AddressKind.EMAIL,))
    monkeypatch.setitem(POLICIES, POST, to_addresses)
    assert await told.moves(await told.message("failed", error=GONE, channel=POST)) == {1: [], 2: []}


async def test_a_mark_of_another_process_is_cleared_too(told: Told) -> None:
    await told.db.execute("update contacts set unreachable = '{sms,chatapp}' where phone = $1", phone(1))
    assert await told.moves(await told.message("delivered")) == {1: ["sms"], 2: []}


async def test_who_was_reached_in_the_same_moment_is_not_marked(told: Told) -> None:
    moved = [await told.message("delivered"), await told.message("failed", error=GONE)]
    assert await told.moves(*moved) == {1: [], 2: []}


async def test_whoever_is_no_contact_is_nobody_to_mark(told: Told) -> None:
    assert await told.moves(await told.message("failed", 77, error=GONE)) == {1: [], 2: []}


async def test_a_mark_of_another_process_is_cleared_by_the_next_delivery(told: Told) -> None:
    """This one had looked before, and found nobody who was marked."""
    other = Told(told.db)
    await told.moves(await told.message("delivered", 2))
    assert await other.moves(await other.message("failed", error=GONE)) == {1: ["chatapp"], 2: []}
    assert await told.moves(await told.message("delivered")) == {1: [], 2: []}


async def test_of_deliveries_where_nobody_is_marked_no_contact_is_looked_for(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def looked_for(*arguments: Any, **named: Any) -> Any:
        raise AssertionError(arguments)

    monkeypatch.setattr(reachability, "clear", looked_for)
    async with told.db.transaction() as connection:
        assert await told.reachability.write(connection, [await told.message("delivered")]) is None


async def test_a_mark_raises_no_revision(told: Told) -> None:
    before = await told.db.fetchrow("select revision, updated_at from contacts where phone = $1", phone(1))
    await told.moves(await told.message("failed", error=GONE))
    assert await told.db.fetchrow("select revision, updated_at from contacts where phone = $1", phone(1)) == before
