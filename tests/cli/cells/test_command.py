"""`recado cells`: an organization is moved under load, the move is killed in the middle, and it sends on (C14.5.6)."""

import asyncio
import base64
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import pytest
from tests import forked
from tests.acceptance.sandbox.customer import Customer, ahead, phone
from tests.program import Api, Refused, running
from tests.two_cells import LIMIT, Cells, fetch, random_key, session_in
from tests.waiting import PATIENCE, until

from recado.engine.clock import SystemClock
from recado.storage.cells.holding import HeldOrganization, Session, connect


@asynccontextmanager
async def locked(cells: Cells, cell: str, table: str) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """A table that lets nobody write; whether somebody waits for it."""
    held = "select exists (select from pg_locks where relation = $1::text::regclass and not granted)"
    async with session_in(cells, cell) as session, session.transaction():
        await session.execute(f"lock table {table} in share mode")

        async def awaited() -> bool:
            return bool(await session.fetchval(held, table))

        yield awaited


async def kill(moving: forked.Forked) -> None:
    moving.kill()
    assert await asyncio.to_thread(moving.wait, PATIENCE) == -signal.SIGKILL


async def interrupt(moving: forked.Forked) -> None:
    moving.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(moving.wait, PATIENCE) == 130


async def killed_while_it_copies(
    cells: Cells,
    organization_id: str,
    go_on: asyncio.Event | None = None,
    *,
    end: Callable[[forked.Forked], Awaitable[None]] = kill,
) -> None:
    """Kill a move whose rows are on their way: the other database lets none of them in."""
    async with locked(cells, "b", "contacts") as awaited:
        moving = cells.spawn("move", organization_id, "--to", "b")

        async def copies() -> bool:
            assert moving.poll() is None, (cells.folder / "spawned").read_text()
            return await awaited()

        await until(copies, "the rows are on their way", every=0.05)
        if go_on is not None:
            await go_on.wait()
        await end(moving)


async def killed_as_it_ends(cells: Cells, organization_id: str) -> None:
    """Kill a move when the other cell has the organization, and the first one does not let go of it."""
    async with AsyncExitStack() as stack:
        async with locked(cells, "b", "contacts") as copies:
            moving = cells.spawn("move", organization_id, "--to", "b")
            await until(copies, "the rows are on their way", every=0.05)
            ends = await stack.enter_async_context(locked(cells, "a", "sessions"))
        await until(ends, "the first cell is to forget it", every=0.05)
        await kill(moving)


async def is_only_ended(cells: Cells, organization_id: str) -> None:
    """The same command copies nothing more, and leaves nothing in the first cell."""
    ended = await asyncio.to_thread(cells.said, "move", organization_id, "--to", "b")
    assert (ended["cell"], ended["rows"]) == ("b", 0)
    assert await fetch(cells, "a", "select 1 from organizations") == []
    assert await fetch(cells, "a", "select 1 from pg_namespace where nspname like 'recado_move%'") == []


async def begin_to_hold(session: Session, organization_id: str) -> None:
    """As a move that is killed while it waits."""
    await HeldOrganization(session, organization_id, clock=SystemClock(), told=lambda what, rows: None).begin("b")


async def shown(cells: Cells, cell: str, organization_id: str) -> list[Any]:
    """What a service would find of it in a database, in one snapshot: numbers, wallets and entries of the audit."""
    rows = await fetch(
        cells,
        cell,
        "select id from numbers where organization_id = $1 union all select id from wallets where organization_id = $1"
        " union all select id from audit where organization_id = $1 order by 1",
        organization_id,
    )
    return [row[0] for row in rows]


async def made(cells: Cells) -> str:
    """An organization in the first cell, made by the command."""
    service = cells.service("a")
    organization = await asyncio.to_thread(service.command, "org", "create", "--name", "Padaria Central", "--json")
    return str(organization["id"])


async def mapped(cells: Cells) -> str:
    """An organization in the first of two cells that the map has."""
    organization_id = await made(cells)
    await asyncio.to_thread(cells.add_both)
    return organization_id


async def test_a_move_that_is_killed_goes_on_or_is_undone_and_is_ended_by_the_same_command(cells: Cells) -> None:
    organization_id = await mapped(cells)
    files = cells.folder / "a" / "data" / "media" / organization_id / "live" / "media"
    files.mkdir(parents=True)
    (files / "one").write_bytes(b"picture")

    await killed_while_it_copies(cells, organization_id, end=interrupt)
    assert "the same command goes on, and --undo takes it back" in (cells.folder / "spawned").read_text()
    assert await fetch(cells, "b", "select 1 from organizations") == []
    listed = await asyncio.to_thread(cells.said, "list")
    assert [(each["cell"], each["movingTo"]) for each in listed["organizations"]] == [("a", "b")]
    undone = await asyncio.to_thread(cells.said, "move", organization_id, "--undo")
    assert undone["cell"] == "a"
    assert len(await fetch(cells, "a", "select 1 from wallets where organization_id = $1", organization_id)) == 2

    await killed_while_it_copies(cells, organization_id)
    moved = await asyncio.to_thread(cells.said, "move", organization_id, "--to", "b")
    assert (moved["cell"], moved["rows"] > 10) == ("b", True)
    assert await fetch(cells, "a", "select 1 from organizations") == []
    assert len(await fetch(cells, "b", "select 1 from wallets where organization_id = $1", organization_id)) == 2
    assert (
        cells.folder / "b" / "data" / "media" / organization_id / "live" / "media" / "one"
    ).read_bytes() == b"picture"
    assert not files.exists()
    again = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "b")
    assert (again.returncode, again.stderr) == (1, "recado: it is in b already\n")
    listed = await asyncio.to_thread(cells.said, "list")
    assert [(each["name"], each["organizations"]) for each in listed["cells"]] == [("a", 0), ("b", 1)]


@pytest.mark.long
async def test_a_move_that_is_killed_when_the_other_cell_has_it_is_only_ended(cells: Cells) -> None:
    organization_id = await mapped(cells)
    await killed_as_it_ends(cells, organization_id)
    assert len(await fetch(cells, "b", "select 1 from organizations where not moving")) == 1
    assert len(await fetch(cells, "a", "select 1 from organizations where moving")) == 1
    refused = await asyncio.to_thread(cells.run, "move", organization_id, "--undo")
    assert refused.returncode == 1
    await is_only_ended(cells, organization_id)


@pytest.mark.long
async def test_a_map_that_was_lost_when_the_other_cell_had_it_learns_what_is_left_in_the_first(cells: Cells) -> None:
    organization_id = await mapped(cells)
    await killed_as_it_ends(cells, organization_id)
    session = await connect(cells.urls["RECADO_CELLS_DATABASE_URL"])
    await session.execute("drop schema recado_cells cascade")
    await session.close()
    for cell in "ba":
        name = f"CELL_{cell.upper()}"
        await asyncio.to_thread(cells.said, "add", cell, "--database-from", name, "--url", f"http://{cell}.example")
    back = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "a")
    assert back.stderr == "recado: a has remains of it: give the move to b again first\n"
    await is_only_ended(cells, organization_id)


@pytest.mark.long
async def test_of_two_operators_who_move_it_at_once_one_does_and_neither_moves_into_another_version(
    cells: Cells,
) -> None:
    organization_id = await mapped(cells)
    later = "insert into schema_migrations select '9999_later', checksum from schema_migrations limit 1"
    await fetch(cells, "b", later)
    refused = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "b")
    assert "the two databases are not of one version" in refused.stderr
    [row] = await fetch(cells, "a", "select status, moving from organizations")
    assert tuple(row) == ("active", False)
    await fetch(cells, "b", "delete from schema_migrations where name = '9999_later'")

    async with locked(cells, "b", "contacts") as awaited:
        first = cells.spawn("move", organization_id, "--to", "b")
        await until(awaited, "the rows are on their way", every=0.05)
        for arguments in (("--to", "b"), ("--undo",)):
            second = await asyncio.to_thread(cells.run, "move", organization_id, *arguments)
            assert second.stderr == ("recado: another command moves it at this moment: wait until that one has ended\n")
    assert await asyncio.to_thread(first.wait, LIMIT) == 0
    assert [len(await fetch(cells, cell, "select 1 from organizations")) for cell in "ab"] == [0, 1]


@pytest.mark.long
async def test_a_move_that_holds_nothing_yet_is_undone_while_the_other_database_is_away(cells: Cells) -> None:
    organization_id = await mapped(cells)
    async with session_in(cells, "a") as session:
        await begin_to_hold(session, organization_id)
    cells.urls["CELL_B"] = "postgresql://nobody@127.0.0.1:1/nowhere"
    refused = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "b")
    assert "the database of CELL_B cannot be reached" in refused.stderr
    undone = await asyncio.to_thread(cells.said, "move", organization_id, "--undo")
    assert undone["cell"] == "a"
    [row] = await fetch(cells, "a", "select status, moving from organizations")
    assert tuple(row) == ("active", False)


@pytest.mark.long
async def test_a_disk_that_is_full_is_told_and_the_same_command_goes_on_when_there_is_room(cells: Cells) -> None:
    organization_id = await mapped(cells)
    for cell, table in (("a", "cell_move"), ("b", "audit")):
        async with session_in(cells, cell) as session:
            if table == "cell_move":  # what it holds is written there
                table = f'"recado_move_{organization_id}".audit'
                await begin_to_hold(session, organization_id)
                await session.execute(f"create table {table} as select * from audit limit 0")
            await session.execute(
                "create function full_disk() returns trigger language plpgsql as"
                " $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;"
                f" create trigger full_disk before insert on {table} for each row execute function full_disk()"
            )
            refused = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "b")
            assert refused.stderr.startswith("recado: a database does not write, as its disk is full: ")
            await session.execute("drop function full_disk cascade")
    moved = await asyncio.to_thread(cells.said, "move", organization_id, "--to", "b")
    assert (moved["cell"], moved["rows"] > 10) == ("b", True)


async def test_cells_that_are_away_hold_up_neither_the_list_nor_the_undoing_of_a_move_between_others(
    cells: Cells,
) -> None:
    organization_id = await mapped(cells)
    cells.urls["CELL_C"] = cells.urls["CELL_B"]
    await asyncio.to_thread(cells.said, "add", "c", "--database-from", "CELL_C", "--url", "http://c.example")
    cells.urls["CELL_C"] = "postgresql://nobody@127.0.0.1:1/nowhere"
    async with session_in(cells, "a") as session:
        await begin_to_hold(session, organization_id)
    session = await connect(cells.urls["RECADO_CELLS_DATABASE_URL"])
    await session.execute("delete from recado_cells.organizations")  # as one that was made since
    await session.close()
    assert "no cell that answers has an organization 'org_x', and c is away" in await asyncio.to_thread(
        cells.refused, "move", "org_x", "--undo"
    )
    undone = await asyncio.to_thread(cells.said, "move", organization_id, "--undo")
    assert undone["cell"] == "a"

    cells.urls["CELL_A"], there = cells.urls["CELL_C"], cells.urls["CELL_A"]
    listed = await asyncio.to_thread(cells.said, "list")
    assert [(each["name"], each["organizations"], each["away"]) for each in listed["cells"]] == [
        ("a", 1, True),
        ("b", 0, False),
        ("c", 0, True),
    ]
    assert [(each["id"], each["cell"]) for each in listed["organizations"]] == [(organization_id, "a")]
    cells.urls["CELL_A"] = there
    shown = await asyncio.to_thread(cells.run, "list")
    assert "the database of CELL_C cannot be reached" in shown.stderr
    assert [line.split()[-1] for line in shown.stdout.splitlines()[1:4]] == ["1", "0", "away"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", "A", "--database-from", "CELL_A", "--url", "http://a"), "a cell's name begins with a letter"),
        (("add", "a", "--database-from", "postgresql://x", "--url", "http://a"), "the name of an environment variable"),
        (("add", "a", "--database-from", "NOWHERE", "--url", "http://a"), "NOWHERE is not set"),
        (
            ("add", "a", "--database-from", "RECADO_CELLS_DATABASE_URL", "--url", "http://a"),
            "has no tables of this version",
        ),
        (("move", "org_x"), "say --to NAME, or --undo"),
        (("serve",), "the database of RECADO_CELLS_DATABASE_URL has no map yet: 'recado cells add' makes it"),
        (("move", "org_x", "--to", "b"), "no cell has an organization 'org_x'"),
    ],
)
def test_a_mistake_is_one_line(cells: Cells, arguments: tuple[str, ...], told: str) -> None:
    done = cells.run(*arguments)
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_entry_whose_map_is_away_does_not_begin_and_says_so_in_one_line(cells: Cells) -> None:
    for url, told in (
        ("", "RECADO_CELLS_DATABASE_URL is not set"),
        ("postgresql://x@127.0.0.1:1/x", "of RECADO_CELLS_DATABASE_URL cannot be reached"),
        ("nonsense", "of RECADO_CELLS_DATABASE_URL cannot be reached"),
    ):
        cells.urls["RECADO_CELLS_DATABASE_URL"] = url
        done = cells.run("serve", "--listen", "127.0.0.1:0")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert told in done.stderr


def test_an_address_that_an_entry_cannot_have_is_told_in_one_line(cells: Cells) -> None:
    (cells.folder / "a").mkdir()
    (cells.folder / "b").mkdir()
    cells.add_both()
    done = cells.run("serve", "--listen", "192.0.2.1:8080")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "192.0.2.1:8080 is not an address of this machine" in done.stderr


async def test_a_cell_whose_organizations_are_in_another_one_is_refused_and_not_in_the_map(cells: Cells) -> None:
    organization_id = await mapped(cells)
    same = ("add", "c", "--database-from", "CELL_A", "--url", "http://c.example")
    done = await asyncio.to_thread(cells.run, *same)
    assert (done.returncode, done.stderr) == (
        1, f"recado: {organization_id} is in another cell of the map, too: one organization has one cell\n"
    )  # fmt: skip
    listed = await asyncio.to_thread(cells.said, "list")
    assert [each["name"] for each in listed["cells"]] == ["a", "b"]


@pytest.mark.long
async def test_other_keys_and_a_media_folder_that_nobody_named_are_refused_before_anything_stands_still(
    cells: Cells,
) -> None:
    organization_id = await made(cells)
    noted = "insert into blobs (organization_id, env, key, delete_at) values ($1, 'live', 'x', now())"
    await fetch(cells, "a", noted, organization_id)
    for named in ("", "a"):  # of no cell, and then of one
        for cell in "ab":
            name = f"CELL_{cell.upper()}"
            media = ["--media", "s3:one"] if cell in named else []
            await asyncio.to_thread(cells.said, "add", cell, "--database-from", name, "--url", f"http://{cell}", *media)
        refused = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "b")
        assert "it has media" in refused.stderr
    cells.keys["ENCRYPTION_KEYS"] = f"k1:{random_key()}"
    refused = await asyncio.to_thread(cells.run, "move", organization_id, "--to", "b")
    assert "all cells need the same keys" in refused.stderr
    [row] = await fetch(cells, "a", "select status from organizations where id = $1", organization_id)
    assert row["status"] == "active"


@pytest.mark.long
async def test_whenever_a_move_is_killed_no_two_databases_show_the_organization_and_it_arrives_whole(
    cells: Cells,
) -> None:
    organization_id = await mapped(cells)
    before = await shown(cells, "a", organization_id)
    chance, kills, ended = random.Random(17), 0, False
    while not ended:
        moving = cells.spawn("move", organization_id, "--to", "b")
        try:
            status = await asyncio.to_thread(moving.wait, 0.4 + chance.random() * 0.2 * (1 + kills))
        except subprocess.TimeoutExpired:
            await kill(moving)
            kills += 1
        else:
            said = (cells.folder / "spawned").read_text().splitlines()
            # One that was killed as it ended has done everything; and of a killed one the server may not know yet.
            assert status == 0 or said[-1].endswith(("it is in b already", "wait until that one has ended")), said
            ended = status == 0 or said[-1].endswith("already")
        seen = [await shown(cells, cell, organization_id) for cell in "ab"]
        assert not (seen[0] and seen[1])
        assert all(each in ([], before) for each in seen)
    assert kills > 3
    assert await shown(cells, "b", organization_id) == before
    assert await fetch(cells, "a", "select 1 from organizations") == []


@pytest.mark.long
async def test_an_organization_is_moved_while_both_services_run_and_each_message_leaves_once_at_its_pace(
    cells: Cells,
) -> None:
    async with running(cells.service("a")) as first, running(cells.service("b")) as second:
        made = await asyncio.to_thread(first.command, "org", "create", "--name", "Padaria Central", "--json")
        other = await asyncio.to_thread(first.command, "org", "create", "--name", "Neighbour", "--json")
        organization_id, token = made["id"], first.key("test", org=made["id"])
        neighbour_token = first.key("test", org=other["id"])
        await asyncio.to_thread(cells.add_both)
        async with (
            Api(first.url, token) as api,
            Api(second.url, token) as there,
            Api(first.url, neighbour_token) as near,
        ):
            customer, neighbour = await Customer.arrive(api, per_second=4), await Customer.arrive(near, per_second=4)
            contact = await api.call("POST", "/contacts", {"phone": phone(), "name": "Ana Souza"})
            hook = await api.call("POST", "/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["message.sent"]})
            journey = await api.call("POST", "/v2/journeys", waiting_journey())
            await api.call("POST", f"/v2/journeys/{journey['id']}/activate")
            entered = await api.call(
                "POST", f"/v2/journeys/{journey['id']}/entries", {"contato": {"contactId": contact["id"]}}
            )
            picture = {
                "filename": "note.pdf",
                "mimeType": "application/pdf",
                "dataBase64": base64.b64encode(b"%PDF-1.4 a note").decode(),
            }
            media = await api.call("POST", f"/numbers/{customer.number_id}/media", picture)
            batch = await api.call("POST", "/messages/bulk", a_batch(customer))
            scheduled = await customer.send(phone(), scheduledAt=ahead(3600))
            sent = [await customer.send(phone()) for _ in range(60)]
            await customer.reaches(sent[0], "read")

            answered = asyncio.Event()
            killing = asyncio.create_task(killed_while_it_copies(cells, organization_id, answered))
            await until(lambda: refused_with(api, 503), "its callers are told", every=0.1)
            status, headers = await raw(first.url, token)
            assert (status, headers.get("Retry-After")) == (503, "5")
            await neighbour.reaches(await neighbour.send(phone()), "read")  # whoever is not moved notices nothing
            answered.set()
            await killing
            await asyncio.to_thread(cells.said, "move", organization_id, "--to", "b")

            moved = Customer(there, customer.number_id, customer.template_id)
            for message in sent:
                await moved.reaches(message, "read", 60)
            assert (await raw(first.url, token))[0] == 401
            assert (await there.call("GET", f"/contacts/{contact['id']}"))["name"] == "Ana Souza"
            assert (await there.call("GET", f"/webhooks/{hook['id']}"))["id"] == hook["id"]
            assert (await there.call("GET", f"/media/{media['mediaId']}"))["size"] == 15
            assert (await moved.read(scheduled))["status"] == "queued"

            async def done() -> bool:
                return bool((await there.call("GET", f"/v2/batches/{batch['id']}"))["status"] == "completed")

            await until(done, "the batch has left", every=0.2)
            path = f"/v2/journeys/{journey['id']}/executions/{entered['executionId']}"
            assert (await there.call("GET", path))["status"] == "ativa"
            a_day_later = "update executions set wake_at = now(), arrived_at = arrived_at - interval '1 day'"
            await fetch(cells, "b", f"{a_day_later} where organization_id = $1", organization_id)
            now_due = "update dispatch set due_at = now(), not_before = now()"
            at = (organization_id, scheduled["id"])
            await fetch(cells, "b", f"{now_due} where organization_id = $1 and id = $2", *at)

            async def over() -> bool:
                return bool((await there.call("GET", path))["status"] == "concluida")

            await until(over, "the execution goes on", every=0.2)
            await moved.reaches(scheduled, "read", 30)
            left = "select sent_at from messages where organization_id = $1 and channel = 'chatapp' order by 1"
            sent_at = [row[0] for row in await fetch(cells, "b", left, organization_id)]
            assert len(sent_at) == 60 + 20 + 1
            assert most_in_a_second(sent_at) <= 4
            assert await fetch(cells, "a", "select id from messages where organization_id = $1", organization_id) == []


def waiting_journey() -> dict[str, Any]:
    return {
        "name": "a day later",
        "gatilho": {"tipo": "api"},
        "inicio": "wait",
        "passos": [
            {"id": "wait", "tipo": "esperar", "minutos": 1440, "proximo": "end"},
            {"id": "end", "tipo": "fim"},
        ],
    }


def a_batch(customer: Customer) -> dict[str, Any]:
    return {
        "numberId": customer.number_id,
        "type": "template",
        "templateId": customer.template_id,
        "name": "News",
        "templateVars": ["you"],
        "recipients": [{"to": phone()} for _ in range(20)],
    }


async def refused_with(api: Api, status: int) -> bool:
    try:
        await api.call("GET", "/numbers")
    except Refused as refused:
        return refused.status == status
    return False


async def raw(url: str, token: str) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        session.get(f"{url}/numbers") as answer,
    ):
        return answer.status, answer.headers


def most_in_a_second(moments: list[datetime]) -> int:
    """Of moments in order, how many lie in a sliding second at most."""
    return max(sum(1 for other in moments if timedelta() <= other - each < timedelta(seconds=1)) for each in moments)
