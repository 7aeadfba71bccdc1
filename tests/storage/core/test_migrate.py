"""Migrations: applied once, in order, by one process at a time, and never after they were changed."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from tests.captured import capture_logs

from recado.domain.channels.source import Source
from recado.domain.contacts.contact_search import search_mark, search_words
from recado.domain.core.ids import MESSAGE, IdSource, lowest_id
from recado.domain.core.phones import canonical_phone, phone_hash, recipient_hash
from recado.engine.clock import SystemClock
from recado.storage.batches import batches
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep import migrate as migrate_module
from recado.storage.core.upkeep.migrate import Migration, MigrationError, migrate, pending, read_migrations
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.dispatch import epochs, ownership
from recado.storage.dispatch.ownership import owner_of
from recado.storage.messages import receipts

SHIPPED = read_migrations()
MORE = (
    *SHIPPED,
    Migration("9001_table", "create table made_by_migration (a integer); insert into made_by_migration values (1);"),
    Migration("9002_column", "alter table made_by_migration add column b text not null default 'b'"),
)


async def test_the_schema_of_this_program_is_whole_after_migrating(database: Database) -> None:
    assert await pending(database) == []
    assert await migrate(database) == []
    names = [migration.name for migration in SHIPPED]
    assert await database.fetchval("select array_agg(name order by name) from schema_migrations") == names


async def test_an_empty_database_lacks_everything_and_looking_changes_nothing(database: Database) -> None:
    await database.execute("drop schema public cascade; create schema public")
    for _ in range(2):
        assert await pending(database) == [migration.name for migration in SHIPPED]
    assert await migrate(database) == [migration.name for migration in SHIPPED]
    assert await database.fetchval("select count(*) from organizations") == 0


async def test_only_what_is_missing_is_applied(database: Database) -> None:
    assert await migrate(database, MORE[:-1]) == ["9001_table"]
    assert await pending(database, MORE) == ["9002_column"]
    async with database.acquire() as connection:
        assert await migrate(connection, MORE) == ["9002_column"]
    assert dict(await database.fetchrow("select * from made_by_migration") or {}) == {"a": 1, "b": "b"}


async def test_processes_that_start_together_apply_each_migration_once(database: Database) -> None:
    done = await asyncio.gather(*(migrate(database, MORE) for _ in range(4)))
    assert sorted(name for names in done for name in names) == ["9001_table", "9002_column"]


@asynccontextmanager
async def one_that_hangs(database: Database) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A session as of a process that stands still in the middle of a migration."""
    hanging = await asyncpg.connect(**database.server, server_settings={"application_name": "recado serve 0badcafe"})
    try:
        await hanging.execute("begin")
        await hanging.execute(f"select pg_advisory_xact_lock({migrate_module._LOCK})")
        yield hanging
    finally:
        hanging.terminate()


async def test_who_waits_for_a_migration_that_hangs_says_for_whom_and_ends(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "TOLD_AFTER", 0.02)
    async with one_that_hangs(database) as hanging:
        named = rf"another process \(session {hanging.get_server_pid()} of 'recado serve 0badcafe', since 20\S+Z\)"
        with capture_logs() as logs, pytest.raises(MigrationError, match=f"^{named} still migrates this database: "):
            await migrate(database, MORE)
        [told] = logs
        assert (told["event"], told["log_level"]) == ("migration_waits", "error")
        assert re.fullmatch(named, told["holder"])
        assert await pending(database, MORE) == ["9001_table", "9002_column"]


async def test_who_waits_goes_on_once_the_migration_that_hung_has_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "TOLD_AFTER", 0.02)
    async with one_that_hangs(database) as hanging:
        told = asyncio.Event()
        monkeypatch.setattr(migrate_module.log, "error", lambda *_, **__: told.set(), raising=False)
        monkeypatch.setattr(migrate_module, "TRIES", 10_000)
        waiting = asyncio.create_task(migrate(database, MORE))
        await told.wait()
        await database.execute("select pg_terminate_backend($1)", hanging.get_server_pid())
        assert await waiting == ["9001_table", "9002_column"]
    limit = "select current_setting('lock_timeout')"
    assert {await database.fetchval(limit) for _ in range(8)} == {"0"}


async def test_a_migration_that_fails_leaves_nothing_of_itself_and_all_before_it(database: Database) -> None:
    broken = Migration("9003_broken", "create table half (a integer); select * from no_such_table")
    with pytest.raises(asyncpg.UndefinedTableError):
        await migrate(database, (*MORE, broken))
    assert await pending(database, (*MORE, broken)) == ["9003_broken"]
    assert await database.fetchval("select to_regclass('half')") is None


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(database: Database) -> None:
    changed = (Migration(SHIPPED[0].name, SHIPPED[0].sql + "\n-- later"), *MORE[1:])
    for call in (migrate, pending):
        with pytest.raises(MigrationError, match=f"{SHIPPED[0].name} was changed after the database took it"):
            await call(database, changed)
    assert await database.fetchval("select to_regclass('made_by_migration')") is None


async def test_a_database_of_a_newer_program_is_refused(database: Database) -> None:
    await migrate(database, MORE)
    with pytest.raises(MigrationError, match="9001_table, which this program does not know"):
        await migrate(database)


async def test_another_order_of_migrations_is_refused(database: Database) -> None:
    await migrate(database, MORE[:-1])
    with pytest.raises(MigrationError, match="holds the migration 9001_table where 9002_column is expected"):
        await migrate(database, (*SHIPPED, MORE[-1], MORE[-2]))


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["0001_a.sql", "0003_c.sql"], "0003_c.sql stands where migration 0002 is expected"),
        (["0001_a.sql", "0001_b.sql"], "0001_b.sql stands where migration 0002 is expected"),
        (["1_a.sql"], "1_a.sql is no migration"),
        (["0001_A.sql"], "0001_A.sql is no migration"),
    ],
)
def test_numbers_without_gaps_name_the_files(tmp_path: Path, names: list[str], complaint: str) -> None:
    for name in names:
        (tmp_path / name).write_text("select 1")
    with pytest.raises(MigrationError, match=complaint):
        read_migrations(tmp_path)


def test_migrations_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("0002_b.sql", "0001_a.sql"):
        (tmp_path / name).write_text(f"select '{name}'")
    assert [migration.name for migration in read_migrations(tmp_path)] == ["0001_a", "0002_b"]


async def migrated_until(database: Database, name: str) -> None:
    """The schema as it was before the migration of this name."""
    place = next(place for place, each in enumerate(SHIPPED) if each.name.endswith(name))
    await database.execute("drop schema public cascade; create schema public")
    await migrate(database, SHIPPED[:place])


@pytest.mark.long
async def test_a_business_account_that_two_organizations_have_is_of_the_first(database: Database) -> None:
    await migrated_until(database, "business_accounts")
    await database.execute(
        """
        insert into numbers (organization_id, id, env, phone_number_id, business_account_id, display_phone, status,
            quality_rating, messaging_tier, per_second, per_day, byo, profile, revision, updated_at, deleted_at)
        select organization, id, env, id, account, '+1', 'connected', 'green', 'unlimited', 80, 100, false, '{}', 1,
            now(), case when gone then now() end
        from (values
            ('org_z', 'num_0', 'live', 'ba', true), ('org_b', 'num_1', 'live', 'ba', false),
            ('org_a', 'num_2', 'live', 'ba', false), ('org_b', 'num_3', 'live', 'ba', false),
            ('org_a', 'num_4', 'test', 'ba', false), ('org_c', 'num_5', 'live', 'other', false)
        ) as given (organization, id, env, account, gone)
        """
    )
    await migrate(database)
    owners = await database.fetch("select env, business_account_id, organization_id, numbers from business_accounts")
    assert sorted(map(tuple, owners)) == [
        ("live", "ba", "org_b", 2),
        ("live", "other", "org_c", 1),
        ("test", "ba", "org_a", 1),
    ]


@pytest.mark.long
async def test_the_entries_of_each_wallet_are_counted_in_the_order_of_their_ids(database: Database) -> None:
    await migrated_until(database, "ledger_positions")
    await database.execute(
        """
        insert into wallets (organization_id, env, id, status, balance_coins, held_coins, low_balance_threshold_coins,
            verified_id, verified_coins, updated_at)
        values ('org_a', 'live', 'wal_1', 'ok', 7, 0, 0, 'led_2', 3, now()),
            ('org_a', 'test', 'wal_2', 'ok', 8, 0, 0, null, 0, now()),
            ('org_b', 'live', 'wal_3', 'ok', 0, 0, 0, null, 0, now());
        insert into ledger (organization_id, env, id, kind, coins, balance_after)
        values ('org_a', 'live', 'led_4', 'topup', 4, 7), ('org_a', 'test', 'led_3', 'topup', 8, 8),
            ('org_a', 'live', 'led_1', 'topup', 1, 1), ('org_a', 'live', 'led_2', 'topup', 2, 3)
        """
    )
    await migrate(database)
    entries = await database.fetch("select env, id, position from ledger order by env, position")
    assert [*map(tuple, entries)] == [
        ("live", "led_1", 1),
        ("live", "led_2", 2),
        ("live", "led_4", 3),
        ("test", "led_3", 1),
    ]
    wallets = await database.fetch("select id, ledger_position, verified_position from wallets order by id")
    assert [*map(tuple, wallets)] == [("wal_1", 3, 2), ("wal_2", 1, 0), ("wal_3", 0, 0)]


SPELLED = {  # former → canonical
    "+5215512345678": "+525512345678",
    "+541123456789": "+5491123456789",
    "+5501187651234": "+5511987651234",
    "+55011987650002": "+5511987650002",
    "+5501133334444": "+551133334444",
    "+5511987654321": "+5511987654321",
    "+548005551234": "+548005551234",
}


async def test_what_was_stored_under_other_spellings_is_found_by_the_canonical_one(database: Database) -> None:
    assert {former: canonical_phone(former) for former in SPELLED} == SPELLED
    await migrated_until(database, "spellings_of_phones")
    for serial, former in enumerate([*SPELLED, "+5215500000000", "+525500000000"]):
        await database.execute(
            """
            insert into contacts (organization_id, env, source, opt_in_status, updated_at, id, phone, phone_hash,
                search)
            values ('org_1', 'test', 'api', 'unknown', now(), $1, $2, $3, array_to_tsvector($4))
            """,
            f"cnt_{serial}", former, phone_hash("org_1", former),
            search_words(search_mark("org_1", "test"), former, ["Ana"]),
        )  # fmt: skip
    await database.execute(
        "insert into opt_outs values ('org_1', 'test', 'phone', $1, now(), 'site')",
        phone_hash("org_1", "+5215512345678"),
    )
    await database.execute(
        "insert into chat_windows values ('org_1', 'num_1', $1, now())", recipient_hash("org_1", "+541123456789")
    )

    await migrate(database)

    rows = await database.fetch(
        "select phone, phone_hash, tsvector_to_array(search) as words from contacts order by id"
    )
    # Who was a contact under both spellings stays two.
    assert [row["phone"] for row in rows] == [*SPELLED.values(), "+5215500000000", "+525500000000"]
    for phone, hashed, words in rows:
        assert hashed == phone_hash("org_1", phone)
        assert set(words) == set(search_words(search_mark("org_1", "test"), phone, ["Ana"]))
    registered = await database.fetch("select hash from opt_outs")
    assert {row["hash"] for row in registered} == {
        phone_hash("org_1", "+5215512345678"),
        phone_hash("org_1", "+525512345678"),
    }
    windows = await database.fetch("select recipient_hash from chat_windows")
    assert recipient_hash("org_1", "+5491123456789") in {row["recipient_hash"] for row in windows}


async def test_a_queued_row_is_counted_in_its_batch_and_owned_by_it_unless_it_was_canceled_before(
    database: Database,
) -> None:
    await migrated_until(database, "batches_of_queued_rows")
    await database.execute(
        """
        insert into dispatch (organization_id, id, env, channel, number_id, class, owner, due_at, ttl_ms, expires_at,
            held_base_ms, force)
        select 'org_1', id, 'test', 'chatapp', 'num_1', 1, owner, now(), 1, now(), 0, false
        from (values ('msg_1', 'single'), ('msg_2', 'btc_1'), ('msg_3', 'btc_1+')) as given (id, owner)
        """
    )
    await migrate(database)
    rows = await database.fetch("select id, owner, batch_id from dispatch order by id")
    assert [*map(tuple, rows)] == [
        ("msg_1", "single", None),
        ("msg_2", "btc_1", "btc_1"),
        ("msg_3", "single", "btc_1"),
    ]


async def test_a_callback_that_was_stored_without_headers_is_read_without(database: Database) -> None:
    await migrated_until(database, "headers_of_callbacks")
    await database.execute(
        """
        insert into callbacks (channel, adapter, sha256, body, received_at)
        values ('chatapp', 'cloud', 'a', 'b', now())
        """
    )
    await migrate(database)
    (row,) = await receipts.open_callbacks(database, 10, 1_000)
    assert (row["body"], row["headers"]) == (b"b", {})


@pytest.mark.long
async def test_what_a_queued_message_obeys_is_told_from_what_it_was_when_it_was_made(database: Database) -> None:
    await migrated_until(database, "flags_of_queued_rows")
    await ensure_partitions(database, SystemClock().now())
    ids = IdSource(SystemClock(), random.Random(3))
    reply, offer, bulk, single = (ids.new(MESSAGE) for _ in range(4))
    queued = (
        (reply, "text", 1, None), (offer, "template", 1, 7), (bulk, "template", 2, None), (single, "template", 1, None)
    )  # fmt: skip
    for row in queued:
        await database.execute(
            """
            with stored as (
                insert into messages (organization_id, env, channel, id, direction, status, type, number_id, recipient,
                    recipient_hash, class, force, updated_at)
                values ('org_1', 'test', 'chatapp', $1, 'outbound', 'queued', $2, 'num_1', '+5511987654321', 7, $3,
                    false, now())
            )
            insert into dispatch (organization_id, id, env, channel, number_id, class, owner, due_at, ttl_ms,
                expires_at, held_base_ms, force, consent_hash)
            values ('org_1', $1, 'test', 'chatapp', 'num_1', $3, 'single', now(), 1, now(), 0, false, $4)
            """,
            *row,
        )
    await migrate(database)
    rows = await database.fetch("select id, needs_window, obeys_quiet_hours from dispatch order by id")
    assert [*map(tuple, rows)] == [
        (reply, True, False),
        (offer, False, True),
        (bulk, False, True),
        (single, False, False),
    ]


async def test_why_a_message_failed_is_told_from_what_callers_read_once_and_kept_beside_it(database: Database) -> None:
    await migrated_until(database, "causes_of_failures")
    await ensure_partitions(database, SystemClock().now())
    ids = IdSource(SystemClock(), random.Random(4))
    told = [  # status, lastError, originalError; code and certainty afterwards
        ("failed", "expired: its time to live ran out", None, "expired", True),
        ("failed", "outcome_unknown: no report came", None, "outcome_unknown", False),
        ("failed", "replaced by msg_1", "outcome_unknown: no report came", "outcome_unknown", False),
        ("archived", "replaced by msg_1", "recipient_unreachable: nobody: there", "recipient_unreachable", True),
        ("archived", "withdrawn: archived before it was sent", None, "withdrawn", True),
        ("failed", "provider_error: no", "outcome_unknown: no report came", "provider_error", True),
        ("delivered", None, "outcome_unknown: no report came", None, None),
        ("queued", "provider_error: refused for now", None, None, None),
    ]
    for status, last_error, original_error, *_ in told:
        await database.execute(
            """
            insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient,
                recipient_hash, class, force, last_error, original_error, failed_at, archived_at, updated_at)
            values ('org_1', 'test', 'chatapp', $1, 'outbound', $2, 'text', 'num_1', '+5511987654321', 7, 1, false, $3,
                $4, case when $2 = 'failed' then now() end, case when $2 = 'archived' then now() end, now())
            """,
            ids.new(MESSAGE), status, last_error, original_error,
        )  # fmt: skip
    await migrate(database)
    rows = await database.fetch(
        "select status, last_error, original_error, failure_code, outcome_certain from messages order by id"
    )
    assert [*map(tuple, rows)] == told


@pytest.mark.long
async def test_what_waits_is_of_one_unit_and_belongs_to_its_batch_or_to_nothing(database: Database) -> None:
    await migrated_until(database, "units_and_sources")
    await database.execute(
        """
        insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, batch_id, due_at, ttl_ms,
            expires_at, held_base_ms, force)
        select 'org_1', id, 'test', 'chatapp', 'num_1', 1, owner, batch_id, now(), 1, now(), 0, false
        from (values ('msg_1', 'single', null), ('msg_2', 'btc_1', 'btc_1'), ('msg_3', 'single', 'btc_1'))
            as given (id, owner, batch_id)
        """
    )
    await migrate(database)
    rows = await database.fetch("select id, units, source_kind from dispatch order by id")
    assert [*map(tuple, rows)] == [("msg_1", 1, "single"), ("msg_2", 1, "batch"), ("msg_3", 1, "single")]


@pytest.mark.long
async def test_a_charged_message_can_be_adjusted_more_than_once_and_has_one_charge(database: Database) -> None:
    await migrated_until(database, "adjustments")
    entry = """
        insert into ledger (organization_id, env, id, position, kind, coins, balance_after, message_id)
        values ('org_1', 'live', 'led_' || $1::integer, $1, $2, -1, 0, 'msg_1')
        """
    await database.execute(entry, 1, "charge")
    await database.execute(entry, 2, "adjustment")
    with pytest.raises(asyncpg.UniqueViolationError):
        await database.execute(entry, 3, "adjustment")
    await migrate(database)
    await database.execute(entry, 3, "adjustment")
    with pytest.raises(asyncpg.UniqueViolationError):
        await database.execute(entry, 4, "charge")


async def test_a_report_that_waited_is_one_of_its_number_s_environment_and_of_the_last_adapter(
    database: Database,
) -> None:
    await migrated_until(database, "sources_of_reports")
    await database.execute(
        """
        insert into numbers (organization_id, id, env, phone_number_id, business_account_id, display_phone, status,
            quality_rating, messaging_tier, per_second, per_day, byo, profile, revision, updated_at)
        values ('org_1', 'num_1', 'test', 'p', 'b', '+1', 'connected', 'green', 'unlimited', 80, 100, false, '{}', 1,
            now());
        insert into callbacks (channel, adapter, sha256, body, received_at)
        values ('chatapp', 'bridge', 'a', 'b', now()), ('chatapp', 'cloud', 'b', 'b', now());
        insert into parked_reports (organization_id, sender_id, event, retry_at, give_up_at)
        values ('org_1', 'num_1', '{}', now(), now()), ('org_1', 'num_2', '{}', now(), now()),
            (null, null, '{}', now(), now());
        """
    )
    await migrate(database)
    rows = await database.fetch("select channel, adapter, env from parked_reports order by id")
    assert [*map(tuple, rows)] == [
        ("chatapp", "sandbox", "test"),
        ("chatapp", "cloud", "live"),
        ("chatapp", "cloud", "live"),
    ]


async def test_what_a_provider_named_messages_by_before_still_finds_them(database: Database) -> None:
    await migrated_until(database, "references_of_messages")
    clock = SystemClock()
    await ensure_partitions(database, clock.now())
    old = lowest_id(MESSAGE, clock.now() - timedelta(days=31))
    ids = IdSource(clock, random.Random(4))
    new, unknown, refused = (ids.new(MESSAGE) for _ in range(3))
    await database.execute(
        """
        insert into numbers (organization_id, id, env, phone_number_id, business_account_id, display_phone, status,
            quality_rating, messaging_tier, per_second, per_day, byo, profile, revision, updated_at, deleted_at)
        values ('org_1', 'num_1', 'live', 'pn-1', 'b', '+1', 'connected', 'green', 'unlimited', 80, 100, false, '{}', 1,
            now(), now());
        insert into callbacks (channel, adapter, sha256, body, received_at)
        values ('chatapp', 'bridge', 'a', 'b', now())
        """
    )
    for message_id, provider_id in ((old, "p-1"), (new, "p-2")):
        await database.execute(
            "insert into provider_messages values ('org_1', 'num_1', $1, $2)", provider_id, message_id
        )
    for message_id, error in ((unknown, "outcome_unknown: no report"), (refused, "provider_error: no")):
        await database.execute(
            """
            insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient,
                recipient_hash, class, force, updated_at, failed_at, last_error)
            values ('org_1', 'live', 'chatapp', $1, 'outbound', 'failed', 'text', 'num_1', '+5511987654321', 7, 1,
                false, now(), now(), $2)
            """,
            message_id, error,
        )  # fmt: skip
    await migrate(database)
    asked: list[tuple[str, str | None]] = [
        ("p-1", "pn-1"), ("p-2", "pn-1"), ("p-2", "pn-2"), (old, None), (new, None), (unknown, None), (refused, None)
    ]  # fmt: skip
    found = await receipts.messages_named(database, Source("chatapp", "bridge", "live"), asked)
    assert [None if each is None else each[1] for each in found] == [old, new, None, None, new, unknown, None]


async def test_an_answer_that_is_owed_is_one_on_the_only_channel_there_was(database: Database) -> None:
    await migrated_until(database, "channels_of_answers")
    await database.execute(
        "insert into opt_out_replies (organization_id, env, contact_id, sender_id, asked_at) "
        "values ('org_1', 'live', 'cnt_1', 'num_1', now())"
    )
    await migrate(database)
    assert await database.fetchval("select channel from opt_out_replies") == "chatapp"


@pytest.mark.long
@pytest.mark.parametrize(
    ("owner", "followed"),
    [("'web-1', 4711", True), ("null, null", False)],
    ids=["an owner that was killed", "one that stopped in order"],
)
async def test_the_owner_of_an_earlier_version_is_over_and_epochs_and_its_file_go_on(
    database: Database, owner: str, followed: bool
) -> None:
    await migrated_until(database, "_hosts")
    await database.execute(
        "update dispatchers set epoch = 7, taken_at = now(), opened_epoch = 6, opened_at = '2026-01-01 00:00Z', "
        f"(owner_host, owner_pid) = ({owner})"
    )
    await migrate(database)
    # What one that runs still claims with: another has taken the numbers.
    assert await database.fetchval("select epoch from dispatchers where shard = 0") == 8
    before = await owner_of(database)
    assert (before.pid == 4711) is followed
    epoch = await epochs.take_epoch(database, datetime.now(UTC))
    assert epoch == 8
    assert await epochs.opened(database, epoch) == (6, datetime(2026, 1, 1, tzinfo=UTC))
    busy_for = await database.fetchval(ownership.SQL.busy_for, epoch)
    assert (busy_for > 4.0) is followed  # it may live on
    assert await database.fetchval("select array_agg(distinct epoch) from shards having count(*) = 256") == [8]


@pytest.mark.long
async def test_a_new_database_had_no_owner(database: Database) -> None:
    await migrated_until(database, "_hosts")
    await migrate(database)
    assert await epochs.take_epoch(database, datetime.now(UTC)) == 1
    assert await epochs.opened(database, 1) is None
    assert await database.fetchval(ownership.SQL.busy_for, 1) is None


@pytest.mark.long
async def test_who_was_erased_has_no_hash(database: Database) -> None:
    await migrated_until(database, "hashes_of_nobody")
    await ensure_partitions(database, SystemClock().now())
    ids = IdSource(SystemClock(), random.Random(5))
    erased, known = ids.new(MESSAGE), ids.new(MESSAGE)
    for message_id, recipient, number in ((erased, "+55*******4321", 0), (known, "+5511987654321", 7)):
        await database.execute(
            """
            insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient,
                recipient_hash, class, force, updated_at, contact_id)
            values ('org_1', 'live', 'chatapp', $1, 'outbound', 'read', 'text', 'num_1', $2, $3, 1, false, now(),
                'cnt_1')
            """,
            message_id, recipient, number,
        )  # fmt: skip
        await database.execute("insert into tier_recipients values ('org_1', 'num_1', $1, now())", number)
    await migrate(database)
    rows = await database.fetch("select id, recipient_hash from messages")
    assert dict(map(tuple, rows)) == {erased: None, known: 7}
    assert await database.fetch("select recipient_hash from tier_recipients") == [(7,)]


async def test_the_queued_rows_of_each_batch_that_is_open_lie_in_a_range(database: Database) -> None:
    await migrated_until(database, "ranges_of_batches")
    await database.execute(
        """
        insert into batches (organization_id, env, id, channel, sender_id, type, class, status, requested, skipped,
            skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at)
        select organization, 'test', id, 'chatapp', 'num_1', 'text', 2, status, 1, 0, '{}', '[]', 1, 0, 0,
            status <> 'completed', now()
        from (values
            ('org_1', 'btc_1', 'paused'), ('org_1', 'btc_2', 'canceled'), ('org_1', 'btc_3', 'completed'),
            ('org_1', 'btc_4', 'running'), ('org_2', 'btc_5', 'building')
        ) as given (organization, id, status);
        insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, source_kind, batch_id,
            due_at, not_before, reason, ttl_ms, expires_at, held_base_ms, force)
        select organization, id, 'test', 'chatapp', 'num_1', 2, owner,
            case owner when 'single' then owner else 'batch' end, nullif(owner, 'single'), now(),
            case when held then timestamptz 'infinity' end, case when held then 'owner_paused' end, 1, now(), 0, false
        from (values
            ('org_1', 'msg_3', 'btc_1', true), ('org_1', 'msg_1', 'btc_1', true), ('org_1', 'msg_7', 'btc_1', false),
            ('org_1', 'msg_2', 'btc_2', false), ('org_1', 'msg_4', 'single', false), ('org_1', 'msg_5', 'btc_3', false),
            ('org_2', 'msg_6', 'btc_5', false)
        ) as given (organization, id, owner, held)
        """
    )
    await migrate(database)
    rows = await database.fetch("select organization_id, batch_id, first_id, last_id from batch_ranges order by 1, 2")
    assert [*map(tuple, rows)] == [
        ("org_1", "btc_1", "msg_1", "msg_7"),
        ("org_1", "btc_2", "msg_2", "msg_2"),
        ("org_2", "btc_5", "msg_6", "msg_6"),
    ]
    moved = await batches.withdraw(database, ("org_1", "test", "btc_2"), SystemClock().now(), 10)
    assert [each.id for each in moved] == ["msg_2"]
    assert await batches.hold(database, ("org_1", "test", "btc_1"), 10) == ["msg_7"]


async def test_when_messages_left_that_name_a_contact_is_known_also_of_those_from_before(database: Database) -> None:
    await migrated_until(database, "customer_events")
    await database.execute(
        """
        create table messages_all partition of messages default;
        insert into messages (organization_id, env, channel, id, direction, status, type, recipient, recipient_hash,
            class, force, contact_id, sent_at, updated_at)
        select 'org_1', 'test', 'sms', id, direction, 'sent', 'text', '+1', 1, 1, false, contact_id, now() - past, now()
        from (values
            ('msg_1', 'outbound', 'cnt_1', interval '399 days'), ('msg_2', 'outbound', 'cnt_1', interval '401 days'),
            ('msg_3', 'outbound', 'cnt_1', null), ('msg_4', 'outbound', null, interval '1 day'),
            ('msg_5', 'inbound', 'cnt_1', interval '1 day'), ('msg_6', 'outbound', 'cnt_2', interval '1 day')
        ) as given (id, direction, contact_id, past);
        insert into campaigns (organization_id, env, campaign_id, status, channels, first_message_at)
        values ('org_1', 'test', 'spring', 'running', '{sms}', now());
        """
    )
    await migrate(database)
    found = await database.fetch("select contact_id, message_id, channel from contact_touches order by 2")
    assert [*map(tuple, found)] == [("cnt_1", "msg_1", "sms"), ("cnt_2", "msg_6", "sms")]
    assert await database.fetchval("select (conversions, conversion_value) = (0, 0) from campaigns")


async def test_the_migrations_know_where_the_ids_of_a_moment_begin(database: Database) -> None:
    sql = next(each.sql for each in SHIPPED if each.name.endswith("references_of_messages"))
    function = re.search(r"create function pg_temp\.lowest_id.*?\$\$;", sql, re.DOTALL)
    assert function is not None
    moments = [datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(milliseconds=7**place) for place in range(14)]
    async with database.acquire() as connection:
        await connection.execute(function[0])
        for at in moments:
            assert lowest_id(MESSAGE, at).startswith(await connection.fetchval("select pg_temp.lowest_id($1)", at))
