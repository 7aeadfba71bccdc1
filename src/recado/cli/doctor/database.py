"""The checks of the database and of what waits in it. They read, and read a bounded number of rows."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from recado.cli.doctor.finding import Finding, failure, ok, warning
from recado.cli.doctor.running import Looked, is_ours
from recado.cli.errors import explain
from recado.config.settings import Settings, database_host
from recado.domain.dispatch.leases import MOST_OFFSET, offset_of
from recado.engine.clock import SystemClock
from recado.storage.access.organizations import all_organizations
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import pending
from recado.storage.dispatch import troubles
from recado.storage.dispatch.ownership import last_taken_at, living_owner
from recado.storage.embedded.backup import unfinished
from recado.storage.embedded.cluster import DATABASE, PORT, ROLE, server_pid, socket_folder_of
from recado.storage.embedded.service_folder import INSIDE, service_folder

_SET_BACK_LIMIT: Final = 2.0  # seconds
_PATIENCE: Final = 5.0  # seconds
_OLD: Final = timedelta(minutes=15)
_DURABLE: Final = ("fsync", "full_page_writes", "synchronous_commit")


async def database(settings: Settings, *, answers: bool) -> Looked:
    """Everything about a database that runs; of one that does not, only that.

    `answers`: a service does, at the address of the settings.
    """
    server = _server(settings)
    if isinstance(server, Finding):
        return Looked([server], asked=True)
    clock = SystemClock()
    opened = Database(server, clock=clock, pool_size=2, hot_size=1, deadline=_PATIENCE, statement_limit=_PATIENCE)
    looked = Looked()
    try:
        await opened.start()
        async for finding in _look(opened, clock, settings, looked, answers=answers):
            looked.findings.append(finding)
    except Exception as error:
        lines = explain(error)
        if lines is None:
            raise
        looked.findings += [failure("database", line) for line in lines]
    finally:
        await opened.stop()
    return looked


def _server(settings: Settings) -> str | Mapping[str, Any] | Finding:
    """How to connect; a finding when there is nothing to connect to. An embedded server is never started for this."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    data_dir = settings.data_dir
    if (text := unfinished(data_dir)) is not None:
        return failure("database", text)
    folder = service_folder(data_dir) or Path(data_dir) / INSIDE
    if not (folder / "cluster").is_dir():
        return ok("database", f"none yet: 'recado serve' makes it in {data_dir}")
    if server_pid(folder / "cluster") is None:
        text = f"the embedded PostgreSQL of {data_dir} does not run: start the service, and ask again"
        return warning("database", text)
    return {"host": str(socket_folder_of(folder)), "port": PORT, "user": ROLE, "database": DATABASE}


async def _look(
    opened: Database, clock: SystemClock, settings: Settings, looked: Looked, *, answers: bool
) -> AsyncIterator[Finding]:
    version = await opened.fetchval("show server_version")
    place = database_host(settings)
    if missing := await pending(opened):
        text = f"PostgreSQL {version} ({place}) lacks {', '.join(missing)}: apply with 'recado migrate'"
        yield (ok if settings.embedded else failure)("database", text)
        return
    yield ok("database", f"PostgreSQL {version} ({place}), every migration applied")
    looked.owner, looked.asked = await living_owner(opened), True
    if (owner := looked.owner) is not None:
        listen = settings.listen
        here = answers and is_ours(looked, listen.port) is not False
        elsewhere = "" if here else f", and not on {listen.host}:{listen.port}"
        yield ok("owner", f"{owner} serves this database{elsewhere}")
    if not await all_organizations(opened):
        yield warning("database", "there is no organization: make one with 'recado org create --name NAME'")
    off = [name for name in _DURABLE if await opened.fetchval("select current_setting($1)", name) == "off"]
    if off:
        text = f"{', '.join(off)} is off: what was accepted can be lost with the power; switch it on"
        yield failure("durability", text)
    else:
        yield ok("durability", f"{', '.join(_DURABLE)} are on")
    async for finding in _clock(opened, clock):
        yield finding
    yield await _queue(opened, clock.now())
    yield await _webhooks(opened, clock.now())


async def _clock(opened: Database, clock: SystemClock) -> AsyncIterator[Finding]:
    """The database's clock beside ours, and the last start of the service, which cannot lie ahead."""
    before = clock.now()
    theirs: datetime = await opened.fetchval("select clock_timestamp()")
    after = clock.now()
    offset = offset_of([(before.timestamp(), theirs.timestamp(), after.timestamp())])
    if offset > MOST_OFFSET:
        text = f"{offset:.3g} s apart from the database's, where {MOST_OFFSET:g} keep a service from starting: let both"
        yield failure("clock", f"{text} machines follow a time server")
        return
    taken_at = await last_taken_at(opened)
    if taken_at is not None and (ahead := (taken_at - after).total_seconds()) > _SET_BACK_LIMIT:
        yield failure("clock", f"set back by {ahead:.0f} s since the service last started: set it right")
        return
    yield ok("clock", f"{after.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, as the database's")


async def _queue(opened: Database, now: datetime) -> Finding:
    waiting = await troubles.ready_messages(opened, now)
    if waiting.oldest is None:
        return ok("queue", "no message that could leave is waiting")
    age = now - waiting.oldest
    text = f"{waiting.told('message is', 'messages are')} ready; the oldest has waited for {_told(age)}"
    if age < _OLD:
        return ok("queue", text)
    return warning("queue", f"{text}, at {waiting.where}: GET /numbers/{waiting.where}/health says why")


async def _webhooks(opened: Database, now: datetime) -> Finding:
    failing = await troubles.failing_subscriptions(opened)
    due = await troubles.due_deliveries(opened, now)
    backlog = f"{due.told('delivery is', 'deliveries are')} due"
    if failing:
        shown = ", ".join(failing[:3]) + (" and others" if len(failing) > 3 else "")
        return warning("webhooks", f"{shown} failing: look at the last error of each; {backlog}")
    if due.oldest is not None and now - due.oldest >= _OLD:
        text = f"{backlog}; the oldest for {_told(now - due.oldest)}, of {due.where}"
        return warning("webhooks", text)
    return ok("webhooks", f"none is failing; {backlog}")


def _told(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600} h"
