"""Lists of messages: what they hold, in which order, and through which index they find it (C5, C15.1)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import orjson
import pytest
from tests.post import LETTERS, POST

from recado.domain.channels.policies import POLICIES
from recado.domain.core.ids import MESSAGE, lowest_id
from recado.http.routes.messages.message_view import message_view
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import partition
from recado.storage.messages import message_reads
from recado.storage.messages.message_reads import Message, MessageFilter, count_query, list_page, page_query

Connection = Any  # asyncpg's: generic to the type checker only

ORGANIZATION = "org_" + "0" * 21
OTHER = "org_" + "1" * 21
BATCH = "btc_" + "1".zfill(21)
CONTACT = "cnt_" + "1".zfill(21)
ACCOUNT = "acc_" + "1".zfill(21)
SPRING = "spring"
ROWS = 60_000
NOW = datetime.now(UTC)
THIS_MONTH = NOW.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
LAST_MONTH = (THIS_MONTH - timedelta(days=1)).replace(day=1)

# Two thirds were made this month. Of 500 rows one failed, one was archived, two are queued; few are sending.
_FILL = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
    campaign_id, batch_id, contact_id, sent_by_account_id, failed_at, archived_at, updated_at
)
select
    $1, 'test', 'chatapp', ($2::text[])[1 + n / 1000 % 3] || lpad(n::text, 10, '0'),
    case when n % 10 = 0 then 'inbound' else 'outbound' end,
    case
        when n % 500 = 1 then 'failed' when n % 500 = 2 then 'archived' when n % 250 = 3 then 'queued'
        when n % 2500 = 4 then 'sending' when n % 3 = 0 then 'read' else 'delivered'
    end,
    'text', 'num_' || lpad((n % 7)::text, 21, '0'), '+5511987654321', 1, 1, false,
    case when n % 400 = 5 then 'spring' end,
    case when n % 400 = 6 then $3 end,
    case when n % 1000 = 7 then $4 end,
    case when n % 30 = 3 then $5 end,
    case when n % 500 in (1, 2) then now() end,
    case when n % 500 = 2 then now() end,
    now()
from generate_series(1, $6::int) n
"""
_QUEUE = """
insert into dispatch (
    organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at, held_base_ms, force,
    claimed_epoch
)
select
    organization_id, id, env, channel, sender_id, class, 'single', now(), 1000, now(), 0, false,
    case when status = 'sending' then 1 end
from messages
where status in ('queued', 'sending')
"""


@pytest.fixture(scope="module")
def filled(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The connect arguments of a database with 60,000 messages of one organization and 3,000 of another."""
    arguments = {**postgres, "database": "recado_message_reads"}

    async def begin() -> None:
        await _execute(postgres, "create database recado_message_reads template recado_template strategy file_copy")
        connection = await asyncpg.connect(**arguments)
        starts = [LAST_MONTH, THIS_MONTH, THIS_MONTH + timedelta(hours=1)]
        for organization_id, rows, apart in ((ORGANIZATION, ROWS, timedelta()), (OTHER, 3_000, timedelta(hours=3))):
            prefixes = [lowest_id(MESSAGE, start + apart)[:-10] for start in starts]
            await connection.execute(_FILL, organization_id, prefixes, BATCH, CONTACT, ACCOUNT, rows)
        await connection.execute(_QUEUE)
        await connection.execute("vacuum analyze")
        await connection.close()

    asyncio.run(begin())
    yield arguments
    asyncio.run(_execute(postgres, "drop database recado_message_reads with (force)"))


@pytest.fixture
async def connection(filled: dict[str, Any]) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(**filled)
    try:
        yield connection
    finally:
        await connection.close()


def wanted(**filters: Any) -> MessageFilter:
    return MessageFilter(organization_id=ORGANIZATION, env="test", **filters)


FILTERS: dict[str, tuple[MessageFilter, str]] = {
    "everything": (wanted(), "true"),
    "one channel": (wanted(channels=("chatapp",)), "channel = 'chatapp'"),
    "a channel without messages": (wanted(channels=("sms",)), "channel = 'sms'"),
    "read": (wanted(status="read"), "status = 'read'"),
    "queued": (wanted(status="queued"), "status = 'queued'"),
    "sending": (wanted(status="sending"), "status = 'sending'"),
    "failed": (wanted(status="failed"), "status = 'failed'"),
    "archived": (wanted(status="archived"), "status = 'archived'"),
    "campaign": (wanted(campaign_id=SPRING), "campaign_id = 'spring'"),
    "batch": (wanted(batch_id=BATCH), f"batch_id = '{BATCH}'"),
    "contact": (wanted(contact_id=CONTACT), f"contact_id = '{CONTACT}'"),
    "a number": (wanted(sender_id="num_" + "3".zfill(21)), f"sender_id = 'num_{'3'.zfill(21)}'"),
    "an account": (wanted(sent_by_account_id=ACCOUNT), f"sent_by_account_id = '{ACCOUNT}'"),
    "inbound": (wanted(direction="inbound"), "direction = 'inbound'"),
    "queued inbound": (wanted(status="queued", direction="inbound"), "status = 'queued' and direction = 'inbound'"),
    "queued of a number": (
        wanted(status="queued", sender_id="num_" + "3".zfill(21), direction="outbound"),
        f"status = 'queued' and sender_id = 'num_{'3'.zfill(21)}' and direction = 'outbound'",
    ),
    "queued by an account": (
        wanted(status="queued", sent_by_account_id=ACCOUNT),
        f"status = 'queued' and sent_by_account_id = '{ACCOUNT}'",
    ),
    "queued of a campaign": (
        wanted(status="queued", campaign_id=SPRING),
        "status = 'queued' and campaign_id = 'spring'",
    ),
    "failed this month": (wanted(status="failed", start=THIS_MONTH), "status = 'failed' and id >= :this_month"),
    "last month": (wanted(start=LAST_MONTH, end=THIS_MONTH), "id < :this_month"),
    "campaign of a contact": (
        wanted(campaign_id=SPRING, contact_id=CONTACT, batch_id=BATCH),
        f"campaign_id = 'spring' and contact_id = '{CONTACT}' and batch_id = '{BATCH}'",
    ),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_a_list_holds_what_its_filters_say_newest_first(connection: Connection, name: str) -> None:
    filters, condition = FILTERS[name]
    condition = condition.replace(":this_month", f"'{lowest_id(MESSAGE, THIS_MONTH)}'")
    rows = await connection.fetch(
        f"select id from messages where organization_id = $1 and env = 'test' and {condition} order by id desc",
        ORGANIZATION,
    )
    expected = [row["id"] for row in rows]

    page = await list_page(connection, filters, limit=50, skip=20)

    assert [message.id for message in page.items] == expected[20:70]
    assert page.more == (len(expected) > 70)
    assert page.estimated == (len(expected) > 10_000)
    assert page.total == min(len(expected), 10_001)
    assert {message.organization_id for message in page.items} <= {ORGANIZATION}


@pytest.mark.parametrize("name", ["everything", "queued", "failed", "campaign", "last month"])
async def test_a_cursor_walks_on_without_a_gap(connection: Connection, name: str) -> None:
    filters, _ = FILTERS[name]
    whole = await list_page(connection, filters, limit=120)
    walked: list[Message] = []
    before = None
    while len(walked) < len(whole.items):
        page = await list_page(connection, filters, limit=40, before_id=before)
        assert page.total == whole.total
        walked += page.items
        before = page.items[-1].id
    assert walked == whole.items


async def test_a_period_includes_its_start_and_not_its_end(connection: Connection) -> None:
    first = THIS_MONTH + timedelta(hours=1)
    at_start = await list_page(connection, wanted(start=first), limit=1)
    at_end = await list_page(connection, wanted(start=THIS_MONTH, end=first), limit=1)
    assert at_start.items[0].created_at == first
    assert at_end.items[0].created_at == THIS_MONTH
    assert not (await list_page(connection, wanted(start=first + timedelta(microseconds=1)), limit=1)).items


async def test_no_other_organization_or_environment_is_seen(connection: Connection) -> None:
    theirs = await list_page(connection, MessageFilter(organization_id=OTHER, env="test"), limit=200)
    assert theirs.total == 3_000
    for message in theirs.items[:3]:
        assert await message_reads.get(connection, OTHER, "test", message.id) == message
        assert await message_reads.get(connection, ORGANIZATION, "test", message.id) is None
        assert await message_reads.get(connection, OTHER, "live", message.id) is None
    assert (await list_page(connection, MessageFilter(organization_id=OTHER, env="live"), limit=1)).total == 0


STATES = [
    ("chatapp", "queued"), ("chatapp", "sending"), ("chatapp", "failed"), ("chatapp", "delivered"), (POST, "queued"),
    (POST, "sending"), (POST, "failed"), (POST, "undelivered"), (POST, "delivered"), (POST, "complained"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("queued", [("chatapp", "queued"), (POST, "queued"), (POST, "sending")]),
        ("sending", [("chatapp", "sending")]),
        ("failed", [("chatapp", "failed"), (POST, "failed"), (POST, "undelivered")]),
        ("delivered", [("chatapp", "delivered"), (POST, "delivered"), (POST, "complained")]),
    ],
)
@pytest.mark.parametrize("tagged", [False, True])
async def test_a_status_finds_what_shows_so_of_each_channel(
    database: Database, monkeypatch: pytest.MonkeyPatch, status: str, found: list[tuple[str, str]], tagged: bool
) -> None:
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    for place, (channel, state) in enumerate(STATES):
        await database.execute(
            """
            insert into messages (organization_id, env, channel, id, direction, status, type, recipient,
                recipient_hash, class, force, campaign_id, failed_at, updated_at)
            values ($1, 'test', $2, $3, 'outbound', $4, 'text', '+1', 1, 1, false, 'spring',
                case when $4 in ('failed', 'undelivered') then now() end, now())
            """,
            ORGANIZATION, channel, lowest_id(MESSAGE, THIS_MONTH + timedelta(seconds=place)), state,
        )  # fmt: skip
    await database.execute(_QUEUE.replace("sender_id", "'num_1'", 2).replace("'num_1'", "sender_id", 1))
    filters = wanted(status=status, channels=("chatapp", POST), campaign_id="spring" if tagged else None)

    page = await list_page(database, filters, limit=20)

    assert sorted((message.channel, message.status) for message in page.items) == sorted(found)
    assert {message_view(message, unmasked=True)["status"] for message in page.items} == {status}
    assert page.total == len(found)


async def test_rcs_is_not_part_of_the_generic_view(connection: Connection) -> None:
    message_id = lowest_id(MESSAGE, THIS_MONTH + timedelta(hours=2))
    live = MessageFilter(organization_id=OTHER, env="live")
    undone = connection.transaction()
    await undone.start()
    await connection.execute(
        """
        insert into messages (organization_id, env, channel, id, direction, status, type, recipient, recipient_hash,
            class, force, updated_at)
        values ($1, 'live', 'rcs', $2, 'outbound', 'sent', 'text', '+5511987654321', 1, 1, false, now())
        """,
        OTHER,
        message_id,
    )
    assert (await list_page(connection, live, limit=1)).total == 0
    assert await message_reads.get(connection, OTHER, "live", message_id) is None
    assert await message_reads.get(connection, OTHER, "live", message_id, channels=["rcs"]) is not None
    await undone.rollback()


# Which index serves which filter, and how many rows a page of 50 may look at on its way.
PLANS: dict[str, tuple[set[str], int]] = {
    "everything": ({"messages_pkey"}, 300),
    "read": ({"messages_pkey"}, 1_000),
    "queued": ({"messages_pkey", "dispatch_pkey"}, 1_000),
    "sending": ({"messages_pkey"}, 1_000),
    "failed": ({"messages_pkey", "messages_failed"}, 1_000),
    "archived": ({"messages_pkey", "messages_archived"}, 1_000),
    "campaign": ({"messages_pkey", "messages_campaign"}, 1_000),
    "batch": ({"messages_pkey", "messages_batch"}, 1_000),
    "contact": ({"messages_pkey", "messages_contact"}, 1_000),
    "failed this month": ({"messages_pkey", "messages_failed"}, 1_000),
}


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", PLANS)
async def test_a_list_is_found_through_the_index_of_its_filter(connection: Connection, name: str, mode: str) -> None:
    await connection.execute(f"set plan_cache_mode = {mode}")
    filters, _ = FILTERS[name]
    allowed, examined = PLANS[name]
    scans = await _scans(connection, *page_query(filters, limit=51))
    used = {index for index, _ in scans if index is not None}
    if name not in {"queued", "sending"}:  # a small table may be read whole
        assert used == allowed
    assert sum(rows for _, rows in scans) <= examined


async def test_a_count_looks_at_no_more_than_it_counts(connection: Connection) -> None:
    for name, most in {"everything": 10_001, "failed": 400, "campaign": 450, "queued": 600}.items():
        scans = await _scans(connection, *count_query(FILTERS[name][0]))
        assert sum(rows for _, rows in scans) <= most


async def test_a_period_reads_its_own_months_only(connection: Connection) -> None:
    sql, arguments = page_query(FILTERS["last month"][0], limit=51)
    plan = "\n".join(row[0] for row in await connection.fetch(f"explain {sql}", *arguments))
    assert partition(NOW, -1)[0] in plan.replace(_probe(plan), "")
    assert partition(NOW, 0)[0] not in plan.replace(_probe(plan), "")


def _probe(plan: str) -> str:
    """The part of a plan that fetches the found rows one by one: it may look into any month."""
    return plan[plan.rindex("Append") :]


async def _scans(connection: Connection, sql: str, arguments: list[Any]) -> list[tuple[str | None, int]]:
    """The scans of a run: the index as the schema names it (None: the whole table), and the rows looked at."""
    explained = await connection.fetchval(f"explain (analyze, timing off, format json) {sql}", *arguments)
    parents = {
        row["child"]: row["parent"]
        for row in await connection.fetch(
            "select inhrelid::regclass::text as child, inhparent::regclass::text as parent from pg_inherits"
        )
    }
    scans: list[tuple[str | None, int]] = []

    def walk(node: dict[str, Any]) -> None:
        loops = node["Actual Loops"]
        if "Scan" in node["Node Type"] and node["Node Type"] not in {"CTE Scan", "Function Scan", "Subquery Scan"}:
            index = node.get("Index Name")
            looked_at = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * loops
            if loops and node["Node Type"] != "Bitmap Heap Scan" and (index is not None or looked_at):
                scans.append((parents.get(index, index), int(looked_at)))
        for child in node.get("Plans", ()):
            walk(child)

    walk(orjson.loads(explained)[0]["Plan"])
    return scans


async def _execute(arguments: dict[str, Any], sql: str) -> None:
    connection = await asyncpg.connect(**arguments)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
