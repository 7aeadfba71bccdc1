"""A move of an organization between two databases: everything is there once, at each moment in one of them."""

import asyncio
from datetime import datetime, timedelta

import pytest
from tests.storage.cells.conftest import ROWS, TwoDatabases
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.cells.holding import HeldOrganization, MoveRefused, Session, connect, is_here
from recado.storage.cells.moved_tables import CLAIMS, MADE_BY_TRIGGERS, STAY_UNTIL_THE_END, STAYS, moved_tables
from recado.storage.messages import receipts
from recado.storage.senders import numbers


def holding_of(two: TwoDatabases) -> HeldOrganization:
    return HeldOrganization(two.source, two.organization_id, clock=SystemClock(), told=lambda what, rows: None)


async def standing(session: Session, organization_id: str) -> tuple[str, datetime | None, int]:
    """Its status, since when it is held, and for how long it was."""
    [row] = await session.fetch("select status, held_since, held_ms from organizations where id = $1", organization_id)
    return row["status"], row["held_since"], row["held_ms"]


async def held(two: TwoDatabases) -> HeldOrganization:
    holding = holding_of(two)
    await holding.begin("b")
    await holding.rest(cached=0.0)
    await holding.take()
    return holding


async def put(two: TwoDatabases, holding: HeldOrganization) -> None:
    begun = await holding.begun()
    assert begun is not None
    await holding.put(two.target, begun)


async def test_each_row_of_each_table_is_in_the_other_database_once_and_no_neighbours(two: TwoDatabases) -> None:
    before = await two.rows(two.source, two.organization_id)
    neighbour = await two.rows(two.source, two.neighbour_id)
    assert all(before.values())

    holding = await held(two)
    await put(two, holding)
    assert await holding.end(two.target) == 0

    assert await two.rows(two.target, two.organization_id) == before
    assert not any((await two.rows(two.source, two.organization_id)).values())
    assert await two.rows(two.source, two.neighbour_id) == neighbour
    assert not any((await two.rows(two.target, two.neighbour_id)).values())
    assert [await is_here(each, two.organization_id) for each in (two.source, two.target)] == [False, True]
    assert await holding.begun() is None


@pytest.mark.long
async def test_what_is_held_is_seen_in_neither_database_and_its_callers_are_known_still(two: TwoDatabases) -> None:
    await held(two)

    left = {name for name, rows in (await two.rows(two.source, two.organization_id)).items() if rows}
    assert left == STAY_UNTIL_THE_END - {"organizations"}
    assert await two.source.fetchval("select moving from organizations where id = $1", two.organization_id)
    assert not any((await two.rows(two.target, two.organization_id)).values())


async def test_nobody_else_gets_an_account_at_a_provider_of_who_is_on_the_way_nor_learns_that_it_is(
    two: TwoDatabases,
) -> None:
    accounts = await two.source.fetch(
        "select env, channel, account from sender_owners where organization_id = $1", two.organization_id
    )
    business = await two.source.fetch(
        "select env, business_account_id from business_accounts where organization_id = $1", two.organization_id
    )
    await held(two)

    for each in accounts:
        assert await two.source.fetchval(numbers.SQL.take_ownership, *each, two.neighbour_id, "num_other") is None
    for each in business:
        assert await two.source.fetchval(numbers.SQL.join_business_account, *each, two.neighbour_id) is None
    assert len(accounts) == len(business) == ROWS


async def test_what_a_provider_says_to_an_account_of_who_is_on_the_way_is_nobodys(two: TwoDatabases) -> None:
    await two.source.execute(
        "insert into sender_owners (env, account, channel, organization_id, sender_id)"
        " select 'live', 'its account', 'chatapp', organization_id, id from numbers where organization_id = $1 limit 1",
        two.organization_id,
    )
    said = receipts.SQL.owners_of_accounts, "live", "chatapp", ["its account"]
    holding = holding_of(two)
    await holding.begin("b")
    assert await two.source.fetch(*said)  # of what has left the provider tells still
    await holding.take()
    assert not await two.source.fetch(*said)


@pytest.mark.long
async def test_a_claim_that_comes_while_it_is_taken_is_in_the_other_database(two: TwoDatabases) -> None:
    holding = await held(two)
    await two.source.execute(
        "insert into sender_owners (env, account, channel, organization_id, sender_id)"
        " values ('live', 'came late', 'chatapp', $1, 'num_x')",
        two.organization_id,
    )
    await holding.take()
    before = {name: (await two.rows(two.source, two.organization_id))[name] for name in CLAIMS}
    await put(two, holding)
    there = await two.rows(two.target, two.organization_id)
    assert {name: there[name] for name in CLAIMS} == before
    assert len(before["sender_owners"]) == ROWS + 1


@pytest.mark.parametrize("taken", [False, True])
async def test_a_move_that_is_undone_leaves_all_as_it_was(two: TwoDatabases, taken: bool) -> None:
    before = await two.rows(two.source, two.organization_id)
    holding = holding_of(two)
    await holding.begin("b")
    if taken:
        await holding.take()
    begun = await holding.begun()
    assert begun is not None

    await holding.put_back(two.target, begun)

    assert await two.rows(two.source, two.organization_id) == before
    row = await standing(two.source, two.organization_id)
    assert row[:2] == ("active", None)
    assert await holding.begun() is None


@pytest.mark.long
async def test_the_time_that_it_stood_still_is_not_counted_and_a_suspended_one_stays_suspended(
    two: TwoDatabases,
) -> None:
    since = await two.source.fetchval(
        "update organizations set status = 'suspended', held_since = now() - interval '1 hour' where id = $1"
        " returning held_since",
        two.organization_id,
    )
    await put(two, await held(two))
    row = await standing(two.target, two.organization_id)
    assert row == ("suspended", since, 0)


@pytest.mark.long
async def test_an_active_one_is_active_with_the_time_that_it_was_held(two: TwoDatabases) -> None:
    [push] = await two.source.fetch(
        "update push_messages set due_at = now() - interval '1 hour'"
        " where id = (select min(id) from push_messages where organization_id = $1) returning id, due_at",
        two.organization_id,
    )
    await put(two, await held(two))
    row = await standing(two.target, two.organization_id)
    assert row[:2] == ("active", None)
    assert row[2] >= 1_000  # the second after the last call
    due_at = await two.target.fetchval("select due_at from push_messages where id = $1", push["id"])
    assert due_at - push["due_at"] >= timedelta(seconds=1)  # of its day neither (C22.3)


@pytest.mark.parametrize("undone", [False, True])
async def test_push_that_was_due_on_the_way_obeys_quiet_hours_where_it_goes_on(two: TwoDatabases, undone: bool) -> None:
    """C22.3: what has not begun, and would show something, waits for their end."""
    await two.source.execute(
        "update organizations set quiet_start = (now() at time zone 'UTC' - interval '2 hours')::time,"
        " quiet_end = (now() at time zone 'UTC' + interval '2 hours')::time where id = $1",
        two.organization_id,
    )
    shown, silent, begun = await two.source.fetch(
        "update push_messages set status = 'queued', rate_kind = 'simple', due_at = now() - interval '1 second'"
        " where organization_id = $1 returning id",
        two.organization_id,
    )
    await two.source.execute("update push_messages set rate_kind = 'silent' where id = $1", silent["id"])
    await two.source.execute("update push_messages set status = 'sending' where id = $1", begun["id"])
    await two.source.execute(
        "update push_blocks set message_id = $1, ready = true where organization_id = $2 and number ="
        " (select min(number) from push_blocks where organization_id = $2)",
        shown["id"],
        two.organization_id,
    )
    holding, cell = await held(two), two.target
    if undone:
        move = await holding.begun()
        assert move is not None
        await holding.put_back(two.target, move)
        cell = two.source
    else:
        await put(two, holding)
    told = "select status, due_at > now() + interval '1 hour' and due_at = quiet_deferred_to as waits, due_at > now()"
    rows = {row["id"]: row for row in await cell.fetch(f"{told} as later, id from push_messages")}
    assert (rows[shown["id"]]["status"], rows[shown["id"]]["waits"]) == ("scheduled", True)
    assert [(rows[each["id"]]["status"], rows[each["id"]]["later"]) for each in (silent, begun)] == [
        ("queued", False),
        ("sending", False),
    ]
    assert not await cell.fetchval("select bool_or(ready) from push_blocks where message_id = $1", shown["id"])


@pytest.mark.parametrize("knows", [True, False])
async def test_a_send_that_began_is_waited_for_also_by_who_did_not_know_yet(two: TwoDatabases, knows: bool) -> None:
    other = await connect(two.urls[0])
    waits = asyncio.Event()
    holding = HeldOrganization(
        two.source,
        two.organization_id,
        clock=SystemClock(),
        told=lambda what, rows: what.startswith("wait") and waits.set(),
    )
    await holding.begin("b")
    if not knows:
        await holding.rest(cached=0.0)
        waits.clear()
    begins = "update dispatch set claimed_epoch = 1, claimed_at = now(), reason = null where organization_id = $1"
    await other.execute(begins, two.organization_id)

    working = asyncio.create_task(holding.rest(cached=0.0) if knows else holding.take())
    await waits.wait()
    assert not working.done()
    assert await other.fetchval("select count(*) from dispatch where organization_id = $1", two.organization_id) == ROWS
    await other.execute("update dispatch set claimed_epoch = null where organization_id = $1", two.organization_id)
    await working
    await other.close()


async def test_what_another_transaction_adds_at_the_last_moment_is_taken_as_well(two: TwoDatabases) -> None:
    holding = holding_of(two)
    other = await connect(two.urls[0])
    late = other.transaction()
    await late.start()
    await other.execute(
        "insert into opt_outs (organization_id, env, kind, hash, at) values ($1, 'test', 'phone', '\\x01', now())",
        two.organization_id,
    )
    await holding.begin("b")
    taking = asyncio.create_task(holding.take())
    await until(lambda: _is_held(two), "all but that is taken")
    await late.commit()
    await taking
    await put(two, holding)
    assert len((await two.rows(two.target, two.organization_id))["opt_outs"]) == ROWS + 1
    await other.close()


async def _is_held(two: TwoDatabases) -> bool:
    other = await connect(two.urls[0])
    try:
        rows = await other.fetch("select 1 from opt_outs where organization_id = $1", two.organization_id)
        return not rows
    finally:
        await other.close()


@pytest.mark.long
async def test_an_uncertain_send_keeps_its_state_and_no_epoch_of_the_other_database(two: TwoDatabases) -> None:
    await two.source.execute(
        "update dispatch set claimed_epoch = 7, claimed_at = now(), reason = 'uncertain' where organization_id = $1",
        two.organization_id,
    )
    await put(two, await held(two))
    rows = await two.target.fetch(
        "select claimed_epoch, reason from dispatch where organization_id = $1", two.organization_id
    )
    assert [tuple(row) for row in rows] == [(0, "uncertain")] * ROWS


@pytest.mark.long
async def test_what_is_there_already_refuses_the_move_and_it_can_be_undone(two: TwoDatabases) -> None:
    before = await two.rows(two.source, two.organization_id)
    [owner] = await two.source.fetch(
        "select env, account, channel from sender_owners where organization_id = $1 limit 1", two.organization_id
    )
    await two.target.execute(
        "insert into sender_owners (env, account, channel, organization_id, sender_id)"
        " values ($1, $2, $3, 'org_x', 'num_x')",
        *owner,
    )
    holding = await held(two)
    with pytest.raises(MoveRefused, match="of sender_owners"):
        await put(two, holding)
    assert not await is_here(two.target, two.organization_id)
    begun = await holding.begun()
    assert begun is not None
    await holding.put_back(two.target, begun)
    assert await two.rows(two.source, two.organization_id) == before


@pytest.mark.long
async def test_a_row_that_differs_or_a_wallet_that_does_not_add_up_is_not_put(two: TwoDatabases) -> None:
    assert await holding_of(two).unequal_wallets() == 0
    await two.source.execute("update wallets set balance_coins = 301 where organization_id = $1", two.organization_id)
    assert await holding_of(two).unequal_wallets() == 1
    holding = await held(two)
    with pytest.raises(MoveRefused, match="a wallet is not the sum"):
        await put(two, holding)
    await two.source.execute(f'update "recado_move_{two.organization_id}".wallets set balance_coins = 300')
    await two.target.execute(
        "create function cut() returns trigger language plpgsql as $$ begin new.name = 'cut'; return new; end $$;"
        " create trigger cut before insert on contacts for each row execute function cut()"
    )
    with pytest.raises(MoveRefused, match="contacts differs"):
        await put(two, holding)
    assert not await is_here(two.target, two.organization_id)


@pytest.mark.long
async def test_it_is_not_ended_while_the_other_database_may_not_have_it_nor_put_back_once_it_has(
    two: TwoDatabases,
) -> None:
    holding = await held(two)
    begun = await holding.begun()
    assert begun is not None
    await put(two, holding)
    with pytest.raises(MoveRefused, match="already"):
        await holding.put_back(two.target, begun)
    with pytest.raises(MoveRefused, match="already"):
        await holding.put(two.target, begun)


async def test_rows_that_come_after_it_has_left_follow_it(two: TwoDatabases) -> None:
    holding = await held(two)
    await put(two, holding)
    late = (
        "insert into opt_outs (organization_id, env, kind, hash, at) values ($1, 'test', 'phone', '\\x01', now());",
        """insert into parked_reports (organization_id, sender_id, event, retry_at, give_up_at, channel, adapter, env)
        values ($1, 'num_x', '{}', now(), now(), 'chatapp', 'sandbox', 'test')""",
    )
    for statement in late:
        await two.source.execute(statement, two.organization_id)

    assert await holding.end(two.target) == 2

    there = await two.rows(two.target, two.organization_id)
    assert (len(there["opt_outs"]), len(there["parked_reports"])) == (ROWS + 1, ROWS + 1)
    assert not any((await two.rows(two.source, two.organization_id)).values())


async def test_a_key_that_is_revoked_while_a_move_waits_is_revoked_in_the_other_database(two: TwoDatabases) -> None:
    revoke = "update api_keys set revoked_at = '2026-11-27T12:00:00Z' where organization_id = $1"
    await two.source.execute("update api_keys set revoked_at = null where organization_id = $1", two.organization_id)
    holding = await held(two)
    await two.source.execute(revoke, two.organization_id)

    await holding.take()  # the same command once more
    await put(two, holding)

    valid = "select count(*) from api_keys where organization_id = $1 and revoked_at is null"
    assert await two.target.fetchval(valid, two.organization_id) == 0


async def test_what_is_committed_while_the_rest_is_forgotten_follows_too(two: TwoDatabases) -> None:
    holding = await held(two)
    await put(two, holding)
    other, locking = await connect(two.urls[0]), await connect(two.urls[0])
    held_back = locking.transaction()
    await held_back.start()
    await locking.execute("lock table accounts in share mode")  # of the first tables to be forgotten, after all counts
    ending = asyncio.create_task(holding.end(two.target))
    waits = "select exists (select from pg_locks where relation = 'accounts'::regclass and not granted)"
    await until(lambda: other.fetchval(waits), "it forgets", every=0.01)
    await other.execute(
        "insert into opt_outs (organization_id, env, kind, hash, at) values ($1, 'test', 'phone', '\\x01', now())",
        two.organization_id,
    )
    await held_back.rollback()
    assert await ending == 1
    assert len((await two.rows(two.target, two.organization_id))["opt_outs"]) == ROWS + 1
    assert not any((await two.rows(two.source, two.organization_id)).values())
    assert await holding.begun() is None
    await other.close()
    await locking.close()


async def test_every_table_is_moved_or_says_why_it_stays(two: TwoDatabases) -> None:
    there = {
        row[0]
        for row in await two.source.fetch(
            "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')"
            " and not relispartition"
        )
    }
    assert {table.name for table in await moved_tables(two.source)} | set(STAYS) == there


async def test_what_triggers_add_to_other_tables_is_known(two: TwoDatabases) -> None:
    bodies = await two.source.fetch(
        "select distinct p.prosrc from pg_trigger t join pg_proc p on p.oid = t.tgfoid where not t.tgisinternal"
    )
    words = [row[0].split() for row in bodies]
    made = {body[n + 2] for body in words for n in range(len(body) - 2) if body[n : n + 2] == ["insert", "into"]}
    changed = {body[n + 1] for body in words for n in range(len(body) - 1) if body[n] in {"update", "delete"}}
    assert (made, changed) == (MADE_BY_TRIGGERS, set())
