"""A resource: a plain record with the operations that any record has. It says only what is its own.

All of them are done in one way: what the path names is found before the body is looked at; a change locks the record
and checks the version that the caller knows; what was done is in the audit; who holds a copy is told after the commit.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from recado.domain.core.ids import created_at
from recado.domain.core.refusal_order import body_first
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems
from recado.http.api.route import Handler, Route, RouteOptions
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.lists import shown
from recado.http.routes.core.views import View
from recado.http.wire.reply import Reply
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.rows import Executor, Page
from recado.storage.core.statements.tables import Table

R = TypeVar("R")

Views = Callable[[Call, Executor, list[R]], Awaitable[Iterable[dict[str, Any]]]]
"""What a caller sees of these records; reads what more it takes."""


def each(view: View[R]) -> Views[R]:
    """The views of records that need nothing but themselves."""

    async def views(_: Call, __: Executor, records: list[R]) -> Iterable[dict[str, Any]]:
        return map(view, records)

    return views


class Born(TypedDict):
    """What any new record of an environment has."""

    organization_id: str
    env: str
    id: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[R]):
    """The records of a `table`: the handlers of their operations, and the routes.

    `path`: of a single one, with the parameter of its id, unless there is only one; `prefix`: of the id; `name`: in the
    audit. `out`, `page`: the models of `views`, for one and for many. `tell`: says to those who hold a copy that a
    record is another one now.
    """

    dependencies: Dependencies
    table: Table[R]
    path: str
    prefix: str
    name: str
    group: Group
    out: type[BaseModel]
    page: type[BaseModel] | None = None
    views: Views[R]
    tell: Callable[[R], None] = lambda _: None

    # What handlers are made of -------------------------------------------------------------------------------------

    @property
    def database(self) -> Database:
        return self.dependencies.database

    def born(self, call: Call) -> Born:
        """What a new record of the caller begins with."""
        principal, new_id = call.principal, self.dependencies.ids.new(self.prefix)
        return {
            "organization_id": principal.organization_id,
            "env": principal.env,
            "id": new_id,
            "updated_at": created_at(new_id),
        }

    async def find(self, call: Call) -> R:
        """The record that the path names; 404."""
        key = (*self._owner(call), call.path[self._parameter]) if self._parameter else self._owner(call)
        return found(await self.table.get(self.database, *key))

    async def hold(self, connection: Connection, call: Call, record: R) -> R:
        """The record as it is now, locked until the transaction ends; 404, or 412 for another version (C6.3)."""
        locked = found(await self.table.get_locked(connection, *self.table.key_of(record)))
        self._check_revision(call, locked)
        return locked

    @asynccontextmanager
    async def locked(self, call: Call) -> AsyncIterator[tuple[Connection, R]]:
        """A transaction, and the record of the path held in it. Also when its answer is lost, a change is told."""
        async with changing(self.database, self.tell, call.resource) as connection:
            yield connection, await self.hold(connection, call, call.resource)

    @asynccontextmanager
    async def editing(self, call: Call) -> AsyncIterator[tuple[Connection, R, AbstractContextManager[None]]]:
        """As `locked`, for a change whose body is looked at with the record: that is done in the context given here.

        What it refuses in the body comes before the version, what it refuses in the record after that (C2.6).
        """
        async with changing(self.database, self.tell, call.resource) as connection:
            before = found(await self.table.get_locked(connection, *self.table.key_of(call.resource)))
            yield connection, before, body_first(lambda: self._check_revision(call, before))

    async def add(self, new: R, insert: Callable[[Connection, R], Awaitable[R]] | None = None) -> R:
        """Store a new record, and tell. `insert`: stores the row, where that is more than to insert it."""
        async with self.database.transaction() as connection:
            made = await (insert or self.table.insert)(connection, new)
        self.tell(made)
        return made

    async def change(self, call: Call, edit: Callable[[R], R]) -> R:
        """Change the record of the path, and tell if that made a difference."""
        async with self.editing(call) as (connection, before, body):
            with body:
                edited = edit(before)
            after = await self.table.save(connection, before, edited, call.now)
        if after is not before:
            self.tell(after)
        return after

    async def note(
        self,
        connection: Executor,
        call: Call,
        action: str,
        record: R,
        details: Mapping[str, Any] | None = None,
        actor: AuditPrincipal | None = None,
    ) -> None:
        """Note in the audit what is done to a record: by the caller, unless it is another `actor`."""
        organization_id, env, target_id = self.table.place_of(record)
        await audit.write(
            connection, self.dependencies.ids, actor or actor_of(call), action,
            organization_id=organization_id, env=env, target_id=target_id, details=details,
        )  # fmt: skip

    async def reply(
        self,
        call: Call,
        record: R,
        status: int = 200,
        *,
        once: Mapping[str, Any] | None = None,
        by: Executor | None = None,
    ) -> Reply:
        """The record as this caller sees it. `once`: what no other answer shows, not even that of a repeat (C6.2).

        `by`: whom the views are read by, inside of a transaction.
        """
        (view,) = await self.views(call, by or self.database, [record])
        body, stored = (view, None) if once is None else ({**view, **once}, view)
        return Reply(status, body, revision=self.table.revision_of(record), stored=stored)

    def _check_revision(self, call: Call, record: R) -> None:
        revision = self.table.revision_of(record)
        if revision is not None:
            call.check_revision(revision)

    def _owner(self, call: Call) -> tuple[str, ...]:
        principal = call.principal
        return (principal.organization_id, principal.env) if self.table.of_environment else (principal.organization_id,)

    # Handlers ------------------------------------------------------------------------------------------------------

    def listing(self, matching: Callable[[Any], tuple[Any, ...]] = lambda _: ()) -> Handler:
        """Newest first. `matching`: from the query to what the table's `matches` takes beside the owner."""

        async def listed(call: Call) -> Reply:
            query = call.query
            read = partial(self.table.list_page, self.database.page(query.skip), *self._owner(call), *matching(query))

            def rest(last: R, left: int) -> Awaitable[Page[R]]:
                return read(limit=left, before_id=self.table.place_of(last)[2])

            first = await read(limit=query.limit, skip=query.skip)
            return await shown(PageItems(first, partial(self.views, call, self.database), rest, query.limit))

        return listed

    def adding(self, make: Callable[[Born, Call], R]) -> Handler:
        """`make`: the record, of what any has and what the caller says."""

        async def added(call: Call) -> Reply:
            return await self.reply(call, await self.add(make(self.born(call), call)), 201)

        return added

    async def read(self, call: Call) -> Reply:
        return await self.reply(call, call.resource)

    def changing(self, edit: Callable[[R, dict[str, Any]], R]) -> Handler:
        """`edit`: from a record and what the caller sent, by column, to the record as it is to be."""

        async def changed(call: Call) -> Reply:
            changes = call.body.changes()
            return await self.reply(call, await self.change(call, lambda before: edit(before, changes)))

        return changed

    async def delete(
        self, call: Call, remove: Callable[[Connection, R, datetime], Awaitable[object]] | None = None
    ) -> Reply:
        """`remove`: takes the row out of sight, where that is more than to delete it."""
        async with self.locked(call) as (connection, record):
            if remove is None:
                await self.table.delete(connection, record)
            else:
                await remove(connection, record, call.now)
            await self.note(connection, call, f"{self.name}.delete", record)
        self.tell(record)
        return Reply(204)

    # Routes --------------------------------------------------------------------------------------------------------

    def route(
        self, target: str, operation_id: str, summary: str, handler: Handler, **options: Unpack[RouteOptions]
    ) -> Route:
        """The operation of a method and a path (`GET /numbers/{id}`). What those do not tell is said by `options`.

        It answers the record, or a page of them where it reads all, unless `responses` says otherwise.
        """
        method, path = target.split()
        usual: RouteOptions = {"responses": {204: None} if method == "DELETE" else {200: self.out}}
        if path == self.path or path.startswith(self.path + "/"):
            shows = path == self.path or method != "GET"
            usual["versioned"] = self.table.versioned and shows and not options.get("matches", False)
            usual["load"] = self.find
            usual["path_ids"] = {self._parameter: self.prefix} if self._parameter else {}
        elif path == self._all and method == "GET":
            usual["responses"] = {200: self.page}
        elif path == self._all and method == "POST":
            usual |= {"creates": True, "versioned": self.table.versioned, "responses": {201: self.out}}
        said: RouteOptions = {**usual, **options}
        return self.group.route(target, operation_id, summary, handler, **said)

    @property
    def _all(self) -> str:
        """The path of all records."""
        return self.path.partition("/{")[0]

    @property
    def _parameter(self) -> str:
        """The name of the path's parameter; empty where there is only one record."""
        return self.path.partition("/{")[2].rstrip("}")
