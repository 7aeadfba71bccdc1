"""The window of ready messages: bounded, fair among owners and classes, and nothing is ever lost by forgetting."""

from datetime import UTC, datetime, time, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from recado.actors.dispatch.ready_rows import ReadyRows
from recado.domain.channels.chatapp import GATES
from recado.domain.dispatch.gates import Hold, SenderState
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.messages.message import BULK, CRITICAL, NORMAL
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.services.dispatch.row import WINDOW, Row
from recado.storage.dispatch.dispatch import Head

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def view(quiet: QuietHours | None = None) -> Any:
    """What the lane knows of a connected number, as far as its rows ask."""
    state = SenderState(NumberStatus.CONNECTED, QualityRating.GREEN, None, False, None, 0, quiet, ZoneInfo("UTC"))
    return SimpleNamespace(gates=GATES, state=state)


FREE, QUIET = view(), view(QuietHours(time(11), time(13)))


def row(number: int, klass: int = NORMAL, owner: str = "single", *, force: bool = False) -> Row:
    due = NOW + timedelta(milliseconds=number)
    return Row(
        organization_id="org",
        env="test",
        channel="chatapp",
        id=f"msg_{number}",
        sender_id="num",
        klass=klass,
        owner=owner,
        due_at=due,
        ttl_ms=60_000,
        expires_at=due + timedelta(minutes=1),
        held_base_ms=0,
        attempts=0,
        force=force,
        recipient="+15555550123",
        recipient_hash=number,
        type="template",
        template_id="tpl",
        payload=None,
        template_vars=None,
    )


def read(rows: ReadyRows, klass: int, found: list[Row]) -> None:
    """What a refill of one class brings."""
    for wanted in rows.wanted(FREE, NOW)[0]:
        if wanted.klass == klass:
            rows.fill(klass, found, wanted.limit)
        else:
            rows.fill(wanted.klass, [], wanted.limit)


def read_forced(rows: ReadyRows, table: list[Row]) -> None:
    """What a look at the forced rows of such a table brings."""
    known, limit = rows.forced_to_read()
    rows.fill_forced(table[:limit], known, limit)


def fresh() -> ReadyRows:
    """After a first look at an empty table."""
    rows = ReadyRows()
    read(rows, NORMAL, [])
    read_forced(rows, [])
    return rows


def taken(rows: ReadyRows, count: int, of: Any = FREE) -> list[str]:
    ids = []
    for _ in range(count):
        found = rows.take(of, NOW)
        assert isinstance(found, Row)
        ids.append(found.id)
    return ids


def test_a_lane_whose_class_is_held_is_read_when_the_hold_ends() -> None:
    wanted, ask_at = ReadyRows().wanted(QUIET, NOW)
    assert [each.klass for each in wanted] == [CRITICAL, NORMAL]
    assert ask_at == NOW + timedelta(hours=1)


def test_before_the_first_look_an_arrival_waits_in_the_table() -> None:
    rows = ReadyRows()
    rows.arrive((row(1),))
    assert len(rows) == 0
    assert [wanted.klass for wanted in rows.wanted(FREE, NOW)[0]] == [CRITICAL, NORMAL, BULK]


def test_arrivals_leave_in_their_order_without_another_look() -> None:
    rows = fresh()
    rows.arrive((row(1), row(2), row(3)))
    assert taken(rows, 3) == ["msg_1", "msg_2", "msg_3"]
    assert rows.wanted(FREE, NOW)[0] == []


def test_a_message_told_twice_is_held_once() -> None:
    rows = fresh()
    rows.arrive((row(1),))
    rows.arrive((row(1),))
    assert len(rows) == 1


def test_memory_holds_a_window_however_many_arrive() -> None:
    rows = fresh()
    rows.arrive(tuple(row(number) for number in range(100_000)))
    assert len(rows) == WINDOW
    taken(rows, WINDOW)
    assert [wanted.klass for wanted in rows.wanted(FREE, NOW)[0]] == [NORMAL]


def test_a_lane_of_a_fast_gateway_holds_more_and_reads_on_before_it_is_out_of_them() -> None:
    rows = fresh()
    rows.reach(4 * WINDOW)
    rows.arrive(tuple(row(number) for number in range(100_000)))
    assert len(rows) == 4 * WINDOW
    taken(rows, 3 * WINDOW + 1)
    assert [(wanted.klass, wanted.limit) for wanted in rows.wanted(FREE, NOW)[0]] == [(NORMAL, 4 * WINDOW)]


def test_a_lane_that_may_hold_less_from_now_on_lets_what_is_beyond_it_leave_first() -> None:
    rows = fresh()
    rows.reach(2 * WINDOW)
    rows.arrive(tuple(row(number) for number in range(2 * WINDOW)))
    rows.reach(WINDOW)
    assert len(rows) == 2 * WINDOW
    taken(rows, WINDOW)
    rows.arrive((row(5_000),))
    assert len(rows) == WINDOW  # it is in the table
    assert taken(rows, WINDOW) == [f"msg_{number}" for number in range(WINDOW, 2 * WINDOW)]
    assert [wanted.klass for wanted in rows.wanted(FREE, NOW)[0]] == [NORMAL]


def refilling() -> tuple[ReadyRows, int]:
    """While the first refill reads; and its limit."""
    rows = ReadyRows()
    first = {wanted.klass: wanted for wanted in rows.wanted(FREE, NOW)[0]}
    read_forced(rows, [])
    return rows, first[NORMAL].limit


def wanted_classes(rows: ReadyRows) -> list[int]:
    return [wanted.klass for wanted in rows.wanted(FREE, NOW)[0]]


def test_what_arrives_during_a_refill_follows_what_it_read_and_needs_no_other_one() -> None:
    rows, limit = refilling()
    rows.arrive((row(2), row(3)))
    assert rows.take(FREE, NOW) is None
    rows.arrive((row(3), row(4)))
    rows.fill(NORMAL, [row(1), row(2)], limit)  # the second was committed before it read, the others after
    assert taken(rows, 4) == ["msg_1", "msg_2", "msg_3", "msg_4"]
    assert (len(rows), wanted_classes(rows)) == (0, [])


def test_what_arrives_during_a_refill_is_in_the_table_behind_what_that_leaves() -> None:
    rows, limit = refilling()
    rows.arrive((row(limit + 2),))
    table = [row(number) for number in range(limit + 3)]
    rows.fill(NORMAL, table[:limit], limit)
    assert len(rows) == min(limit, WINDOW)
    taken(rows, len(rows))
    assert wanted_classes(rows) == [NORMAL]
    rows.fill(NORMAL, table[limit:], limit)
    assert taken(rows, 3) == [f"msg_{number}" for number in range(limit, limit + 3)]


def test_more_than_a_window_that_arrives_during_a_refill_is_read_by_the_next_one() -> None:
    rows, limit = refilling()
    rows.arrive(tuple(row(number) for number in range(WINDOW + 1)))
    rows.fill(NORMAL, [], limit)
    assert len(rows) == 0
    assert wanted_classes(rows) == [NORMAL]


def test_what_arrives_during_a_refill_that_fails_is_read_by_the_next_one() -> None:
    rows, limit = refilling()
    rows.arrive((row(1),))
    rows.refill_failed(NORMAL)
    assert wanted_classes(rows) == [NORMAL]
    rows.fill(NORMAL, [row(1)], limit)
    assert taken(rows, 1) == ["msg_1"]


def test_starting_over_forgets_what_arrived_during_a_refill() -> None:
    rows, limit = refilling()
    rows.arrive((row(1),))
    rows.start_over(set())
    rows.fill(NORMAL, [], limit)
    assert wanted_classes(rows) == [NORMAL]
    rows.fill(NORMAL, [row(1)], limit)
    assert taken(rows, 1) == ["msg_1"]


def test_a_refill_does_not_bring_what_is_under_way_a_second_time() -> None:
    rows = fresh()
    rows.arrive((row(1),))
    assert taken(rows, 1) == ["msg_1"]  # being claimed: its row is in the table still
    rows.look()
    read(rows, NORMAL, [row(1), row(2)])
    assert taken(rows, 1) == ["msg_2"]
    assert len(rows) == 0


def test_what_is_forgotten_is_read_again() -> None:
    rows = fresh()
    rows.arrive((row(1),))
    found = rows.take(FREE, NOW)
    assert isinstance(found, Row)
    rows.forget(found)
    read(rows, NORMAL, [row(1)])
    assert taken(rows, 1) == ["msg_1"]


def test_owners_take_turns() -> None:
    rows = fresh()
    rows.arrive(tuple(row(number, BULK, "btc_a") for number in range(4)))
    rows.arrive((row(10, BULK, "btc_b"), row(11, BULK, "btc_b")))
    assert taken(rows, 6) == ["msg_0", "msg_10", "msg_1", "msg_11", "msg_2", "msg_3"]


def test_classes_share_turns_16_to_4_to_1() -> None:
    rows = fresh()
    for klass in (CRITICAL, NORMAL, BULK):
        rows.arrive(tuple(row(klass * 1000 + number, klass) for number in range(64)))
    turns = taken(rows, 42)
    by_class = [sum(1 for each in turns if int(each[4:]) // 1000 == klass) for klass in (CRITICAL, NORMAL, BULK)]
    assert by_class == [32, 8, 2]


def test_forced_messages_go_first() -> None:
    rows = fresh()
    rows.arrive((row(1, CRITICAL), row(2, BULK, force=True)))
    assert taken(rows, 2) == ["msg_2", "msg_1"]


def test_memory_holds_a_window_of_forced_messages_however_many_arrive() -> None:
    rows = fresh()
    for number in range(2 * WINDOW):
        rows.arrive((row(number, force=True),))
    assert len(rows) == WINDOW
    assert rows.forced_to_read()[1] <= 2 * WINDOW


def test_forced_messages_that_memory_had_no_place_for_are_read_in_the_order_of_their_due_times() -> None:
    table = [row(number, force=True) for number in range(3 * WINDOW)]
    rows, ids = fresh(), []
    for each in table:
        rows.arrive((each,))
    while len(rows):
        ids += taken(rows, 1)
        if rows.wants_forced:
            read_forced(rows, table)  # as while none of the claims is answered: what was taken comes back
    assert ids == [each.id for each in table]


def test_a_look_that_finds_only_what_is_under_way_ends_the_looking() -> None:
    rows = fresh()
    table = [row(number, force=True) for number in range(WINDOW)]
    rows.arrive(tuple(table))
    taken(rows, WINDOW)
    rows.look_for_forced = True
    read_forced(rows, table)
    assert len(rows) == 0
    assert not rows.wants_forced


def test_a_forced_message_that_left_while_it_was_being_read_is_not_taken_again() -> None:
    rows = fresh()
    first = row(1, force=True)
    rows.arrive((first,))
    taken(rows, 1)
    rows.look_for_forced = True
    known, limit = rows.forced_to_read()
    rows.gone(first.id)  # between the snapshot of the read and its answer
    rows.fill_forced([first, row(2, force=True)], known, limit)
    assert taken(rows, 1) == ["msg_2"]
    assert len(rows) == 0


def test_a_full_look_at_forced_messages_is_followed_by_another() -> None:
    rows = ReadyRows()
    read_forced(rows, [row(number, force=True) for number in range(WINDOW)])
    assert not rows.wants_forced  # its window is full
    taken(rows, WINDOW)
    assert rows.wants_forced


def test_a_number_with_forced_messages_in_the_table_is_not_idle() -> None:
    rows = fresh()
    for klass in (CRITICAL, BULK):
        rows.fill(klass, [], WINDOW)
    assert rows.idle
    rows.start_over(set())
    for klass in (CRITICAL, NORMAL, BULK):
        rows.fill(klass, [], WINDOW)
    assert not rows.idle


def test_a_held_class_lets_the_others_pass_and_tells_until_when_it_waits() -> None:
    rows = fresh()
    rows.arrive((row(1, BULK), row(2, NORMAL)))
    assert taken(rows, 1, QUIET) == ["msg_2"]
    held = rows.take(QUIET, NOW)
    assert isinstance(held, Hold)
    assert held.until == NOW.replace(hour=13)


def test_starting_over_keeps_only_what_is_under_way() -> None:
    rows = fresh()
    rows.arrive((row(1), row(2)))
    assert taken(rows, 1) == ["msg_1"]
    rows.start_over({"msg_1"})
    assert len(rows) == 0
    assert rows.wants_forced
    read_forced(rows, [row(2, force=True)])
    read(rows, NORMAL, [row(1), row(2)])
    assert taken(rows, 1) == ["msg_2"]
    assert len(rows) == 0


def test_more_owners_than_fit_are_read_in_turn() -> None:
    rows = ReadyRows()
    wanted = {each.klass: each for each in rows.wanted(FREE, NOW)[0]}[BULK]
    owners = [f"btc_{number:02}" for number in range(40)]
    rows.fill(BULK, [row(number, BULK, owner) for number, owner in enumerate(owners[:16])], wanted.limit)
    taken(rows, 16)
    after = {each.klass: each for each in rows.wanted(FREE, NOW)[0]}[BULK]
    assert after.after_owner == owners[15]
    rows.fill(BULK, [], after.limit)  # the rotation begins anew
    assert {each.klass: each for each in rows.wanted(FREE, NOW)[0]}[BULK].after_owner == ""


def head(of: Row) -> Head:
    return Head(of.klass, of.owner, of.id, of.force)


def test_rows_that_are_known_or_left_a_moment_ago_are_not_missed() -> None:
    rows = fresh()
    rows.arrive((row(1), row(2)))
    taken(rows, 1)
    rows.gone("msg_1")
    assert not rows.missed([head(row(1)), head(row(2))])
    assert rows.wanted(FREE, NOW)[0] == []


def test_where_an_earlier_row_of_its_owner_was_missed_all_are_read_again_in_their_order() -> None:
    rows = fresh()
    rows.arrive((row(2), row(3), row(4, owner="btc_1")))
    under_way = taken(rows, 1)
    assert rows.missed([head(row(1))])
    assert [wanted.klass for wanted in rows.wanted(FREE, NOW)[0]] == [NORMAL]
    rows.fill(NORMAL, [row(1), row(2), row(3), row(4, owner="btc_1")], 20)
    assert under_way == ["msg_2"]
    assert taken(rows, 3) == ["msg_1", "msg_4", "msg_3"]


def test_a_row_of_an_owner_that_is_not_in_memory_is_read_beside_what_is() -> None:
    rows = fresh()
    rows.arrive((row(2), row(3)))
    assert rows.missed([head(row(1, owner="btc_1"))])
    read(rows, NORMAL, [row(1, owner="btc_1"), row(2), row(3)])
    assert taken(rows, 3) == ["msg_2", "msg_1", "msg_3"]


def test_a_forced_row_that_was_missed_is_looked_for() -> None:
    rows = fresh()
    assert not rows.look_for_forced
    assert rows.missed([head(row(1, force=True))])
    assert rows.look_for_forced
