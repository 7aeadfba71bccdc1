"""What every test of the walk works with: the table, the callers, the samples, and an eye on the database."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any

import asyncpg
import pytest
from tests.acceptance import (  # noqa: F401 - register their samples
    samples_audience,
    samples_contacts,
    samples_email,
    samples_events,
    samples_exports,
    samples_flows,
    samples_journeys,
    samples_links,
    samples_media,
    samples_messages,
    samples_numbers,
    samples_people,
    samples_push,
    samples_social,
    samples_wallet,
    samples_webhooks,
)
from tests.acceptance.caller import Answer, Caller, Request
from tests.acceptance.samples import SAMPLES
from tests.acceptance.served import ADMIN_TOKEN
from tests.acceptance.tenants import Tenant
from tests.program import Api
from tests.waiting import until

from recado.http.api.route import Access, Route

# Columns that the service writes by itself, whatever callers do.
_RESTLESS = {
    "api_keys": ["last_used_at"],
    "hosts": ["lease_until"],
    "numbers": ["verify_at", "last_provider_sync_at"],
    "sessions": ["last_used_at"],
    "tracked_links": ["clicks", "first_clicked_at", "last_clicked_at"],  # a moment after the answer
}
# Tables whose rows callers add, and the service takes away when it is done with them: of an archived journey a minute
# later. No row may be added, or be another.
_OF_NO_ROWS = md5(b"", usedforsecurity=False).hexdigest()
_WORKED_OFF = ("withdrawals",)

KEY = "Idempotency-Key"

IN_PARTS = pytest.mark.parametrize(
    "walk", [4, pytest.param(1, marks=pytest.mark.long)], indirect=True, ids=["a quarter", "all"]
)
"""For what asks much of each operation: every fourth one is asked in each run, all of them in the long one."""


@dataclass(frozen=True, slots=True, repr=False)
class Walk:
    """`tenants`: two organizations. The first one calls; everything of the second is foreign to it."""

    table: tuple[Route, ...]
    document: Any
    caller: Caller
    api: Api
    tenants: tuple[Tenant, Tenant]
    connection: asyncpg.Connection
    prepared: dict[str, Request] = field(default_factory=dict)
    every: int = 1
    """Of the operations, each so many-th is walked."""
    _looks: dict[str, Any] = field(default_factory=dict)
    """What the last look at the database found, and how far its log was then."""

    @property
    def mine(self) -> Tenant:
        return self.tenants[0]

    @property
    def foreign(self) -> Tenant:
        return self.tenants[1]

    def routes(self, wanted: Callable[[Route], Any] = lambda _: True, *access: Access) -> list[Route]:
        """The operations that are `wanted`, those of `access` only when given."""
        found = [route for route in self.table if wanted(route) and (not access or route.access in access)]
        return found[:: self.every]

    def open_routes(self, wanted: Callable[[Route], Any] = lambda _: True) -> list[Route]:
        """Those `wanted` ones that a key, a session or the administrator gets past the credential with."""
        return self.routes(wanted, Access.KEY, Access.ADMIN)

    def described(self, route: Route) -> Any:
        """The operation in the OpenAPI document."""
        return self.document["paths"][route.path][route.method.lower()]

    def parameters(self, route: Route) -> dict[str, Any]:
        """The schemas of its query parameters by name."""
        found = self.described(route).get("parameters", ()) if route.documented else ()
        return {
            parameter["name"]: self.resolved(parameter["schema"])
            for parameter in map(self.resolved, found)
            if parameter["in"] == "query"
        }

    def resolved(self, schema: Any) -> Any:
        """The schema behind a reference, or whatever else it is."""
        while "$ref" in schema:
            _, _, kind, name = schema["$ref"].split("/")
            schema = self.document["components"][kind][name]
        return schema

    def token(self, route: Route) -> str | None:
        """The credential with which the first organization succeeds."""
        return {Access.KEY: self.mine.credential(route), Access.ADMIN: ADMIN_TOKEN}.get(route.access)

    async def fresh(self, route: Route) -> Request:
        """A request that succeeds, once."""
        make = SAMPLES.get(route.operation_id)
        assert make is not None, f"{route.operation_id} has no sample in tests/acceptance/samples*.py"
        return await make(self.api, self.mine)

    async def some(self, route: Route) -> Request:
        """A request that would succeed: refused for the one thing that a test changes in it, it stays good."""
        if route.operation_id not in self.prepared:
            self.prepared[route.operation_id] = await self.fresh(route)
        return self.prepared[route.operation_id]

    def required(self, route: Route) -> set[str]:
        """Its query parameters that may not be left out."""
        found = self.described(route).get("parameters", ()) if route.documented else ()
        return {
            each["name"] for each in map(self.resolved, found) if each["in"] == "query" and each.get("required", False)
        }

    async def call(self, route: Route, request: Request, token: str | None = None, **changed: Any) -> Answer:
        """Send the request with other parts `changed` in it; of query and headers, what is required stays.

        No headers at all are none.
        """
        if changed.get("headers"):  # those of a raw body say what it is
            kept = {name: value for name, value in request.headers.items() if name == KEY or request.raw is not None}
            changed["headers"] = {**kept, **changed["headers"]}
        if "query" in changed:
            kept = {name: request.query[name] for name in self.required(route) & request.query.keys()}
            changed["query"] = {**kept, **changed["query"]}
        return await self.caller.call(route, replace(request, **changed), token or request.token or self.token(route))

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Nothing in the database is another after the block."""
        await self._rest()
        written = await self._written()
        if self._looks.get("written") != written:
            self._looks.update(written=written, rows=await self.rows(), waiting=await self._waiting())
        before, waiting = self._looks["rows"], self._looks["waiting"]
        yield
        if await self._written() == written:
            return
        after = await self.rows()
        assert after == before, f"changed: {sorted(table for table in after if after[table] != before.get(table))}"
        added = {table: rows - waiting[table] for table, rows in (await self._waiting()).items()}
        assert not any(added.values()), f"added: {added}"

    async def _written(self) -> str:
        """How far the log of the server is: where it stands still, no transaction has changed a row."""
        end: str = await self.connection.fetchval("select pg_current_wal_insert_lsn()::text")
        return end

    async def rows(self) -> Mapping[str, str]:
        """A digest of each table's rows, once nothing is under way."""
        await self._rest()
        tables = await self.connection.fetch(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace "
            "and pg_relation_size(oid) > 0 "  # a table without pages was never written to
            "and relname <> 'claims' "  # what a dispatcher notes for itself, and clears away later
            "and relname <> all($1) order by 1",
            _WORKED_OFF,
        )
        digests = " union all ".join(
            f"select '{table}', md5(coalesce(string_agg(row, ' ' order by row), '')) from "
            f"(select (to_jsonb(r) - '{{{','.join(_RESTLESS.get(table, ()))}}}'::text[])::text as row from {table} r) t"
            for (table,) in tables
        )
        # A table that vacuum gives back its last page is not among them any more: it was empty.
        return {table: digest for table, digest in await self.connection.fetch(digests) if digest != _OF_NO_ROWS}

    async def _waiting(self) -> dict[str, set[str]]:
        """The rows of the tables that the service works off."""
        return {
            table: {row for (row,) in await self.connection.fetch(f"select to_jsonb(r)::text from {table} r")}
            for table in _WORKED_OFF
        }

    async def _rest(self) -> None:
        await until(self._at_rest, "everything has come to rest")

    async def _at_rest(self) -> bool:
        """Whether nothing is under way: what the service does by itself would look like a caller's change."""
        return not await self.connection.fetchval(
            "select exists (select from messages m where direction = 'outbound' and "
            "(status in ('sending', 'sent') or status = 'delivered' and channel = 'chatapp' "
            "or status = 'queued' and (force or scheduled_at is null)) "
            "and not exists (select from dispatch d where d.id = m.id and d.reason = 'number_state')) "
            "or exists (select from callbacks where processed_at is null) "
            "or exists (select from withdrawals where kind <> 'archived') "  # that of a journey stays a minute
            "or exists (select from execution_signals) "
            "or exists (select from journey_count_changes) or exists (select from step_count_changes) "
            "or exists (select from executions where wake_at < now() + interval '3 seconds') "
            "or exists (select from numbers where deleted_at is null and status = 'pending') "
            "or exists (select from templates where deleted_at is null and (status in ('submitted', 'pending') "
            "or next_step_at < now() + interval '3 seconds'))"
        )
