"""Static lists: made, read, changed, deleted, and their members (C7.1). Contacts of a list: GET /contacts?listId=."""

from dataclasses import replace
from typing import Any

from recado.domain.audience.members import reading
from recado.domain.core.errors import Problem, not_found
from recado.domain.core.ids import LIST, IdSource, created_at
from recado.engine.steps import in_steps
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import MIB, Idempotency, Route
from recado.http.routes.audience.static_list_models import (
    ListCreate,
    ListOut,
    ListPage,
    ListPatch,
    ListQuery,
    Members,
    MembershipOut,
    list_view,
    membership_view,
)
from recado.http.routes.core.lists import listed
from recado.http.wire.reply import Reply
from recado.storage.audience import lists
from recado.storage.audience.lists import MemberChange, StaticList
from recado.storage.core import audit
from recado.storage.core.postgres import Connection, Database

MEMBERS_LIMIT = 64 * MIB


class StaticListOperations:
    """The handlers."""

    def __init__(self, database: Database, ids: IdSource) -> None:
        self._database = database
        self._ids = ids

    async def find(self, call: Call) -> StaticList:
        principal = call.principal
        found = await lists.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if found is None:
            raise not_found()
        return found

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await lists.list_page(
            self._database,
            principal.organization_id,
            principal.env,
            q=query.q,
            limit=query.limit,
            skip=query.skip,
        )
        return await listed(page, list_view)

    async def read(self, call: Call) -> Reply:
        return _reply(call.resource)

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        list_id = self._ids.new(LIST)
        new = StaticList(
            organization_id=principal.organization_id,
            env=principal.env,
            id=list_id,
            name=body.name,
            description=body.description or None,
            updated_at=created_at(list_id),
        )
        async with self._database.transaction() as connection:
            made = await lists.insert(connection, new)
        return _reply(made, 201)

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        if "description" in changes:
            changes["description"] = changes["description"] or None
        async with self._database.transaction() as connection:
            before = await self._locked(connection, call)
            saved = await lists.save(connection, before, replace(before, **changes), call.now)
        return _reply(saved)

    async def delete(self, call: Call) -> Reply:
        async with self._database.transaction() as connection:
            static_list = await self._locked(connection, call)
            await lists.delete(connection, static_list)
            await audit.write(
                connection,
                self._ids,
                actor_of(call),
                "list.delete",
                organization_id=static_list.organization_id,
                env=static_list.env,
                target_id=static_list.id,
            )
        return Reply(204)

    async def add(self, call: Call) -> Reply:
        return await self._change(call, MemberChange.ADD)

    async def replace(self, call: Call) -> Reply:
        return await self._change(call, MemberChange.REPLACE)

    async def remove(self, call: Call) -> Reply:
        return await self._change(call, MemberChange.REMOVE)

    async def _change(self, call: Call, change: MemberChange) -> Reply:
        body: Members = call.body
        named = await in_steps(reading(body.contact_ids, body.phones, body.external_ids))
        if not len(named):
            if change is MemberChange.REPLACE:
                raise lists.nobody_matched()
            raise Problem("VALIDATION_ERROR", "The call names no contact: give contactIds, externalIds or phones.")
        async with self._database.bulk.transaction() as connection:
            static_list = await self._locked(connection, call)
            outcome = await lists.change_members(connection, static_list, change, named, call.now)
        return Reply(200, membership_view(static_list.id, outcome), revision=static_list.revision)

    async def _locked(self, connection: Connection, call: Call) -> StaticList:
        found: StaticList = call.resource
        static_list = await lists.get_locked(connection, found.organization_id, found.env, found.id)
        if static_list is None:
            raise not_found()
        call.check_revision(static_list.revision)
        return static_list


def _reply(static_list: StaticList, status: int = 200) -> Reply:
    return Reply(status, list_view(static_list), revision=static_list.revision)


def static_list_routes(*, database: Database, ids: IdSource) -> tuple[Route, ...]:
    """The operations on lists."""
    operations = StaticListOperations(database, ids)
    read: dict[str, Any] = {"tag": "Lists", "scope": "contacts:read", "rate_class": "read"}
    write: dict[str, Any] = {"tag": "Lists", "scope": "contacts:write", "rate_class": "write"}
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": LIST}, "versioned": True}
    members: dict[str, Any] = {
        **one,
        **write,
        "rate_class": "bulk",
        "body": Members,
        "body_limit": MEMBERS_LIMIT,
        "responses": {200: MembershipOut},
    }
    return (
        Route(
            method="GET",
            path="/v2/lists",
            handler=operations.list,
            operation_id="listLists",
            summary="List static lists, newest first",
            query=ListQuery,
            responses={200: ListPage},
            **read,
        ),
        Route(
            method="POST",
            path="/v2/lists",
            handler=operations.create,
            operation_id="createList",
            summary="Make a list",
            body=ListCreate,
            responses={201: ListOut},
            errors=("LIST_NAME_TAKEN", "LIMIT_REACHED"),
            idempotency=Idempotency.ACCEPTED,
            versioned=True,
            creates=True,
            **write,
        ),
        Route(
            method="GET",
            path="/v2/lists/{id}",
            handler=operations.read,
            operation_id="getList",
            summary="Read a list",
            responses={200: ListOut},
            **one,
            **read,
        ),
        Route(
            method="PATCH",
            path="/v2/lists/{id}",
            handler=operations.patch,
            operation_id="updateList",
            summary="Rename or describe a list",
            body=ListPatch,
            responses={200: ListOut},
            errors=("LIST_NAME_TAKEN",),
            **one,
            **write,
        ),
        Route(
            method="DELETE",
            path="/v2/lists/{id}",
            handler=operations.delete,
            operation_id="deleteList",
            summary="Delete a list; its contacts stay",
            responses={204: None},
            **one,
            **write,
        ),
        Route(
            method="POST",
            path="/v2/lists/{id}/members",
            handler=operations.add,
            operation_id="addListMembers",
            summary="Add contacts to a list",
            description="Nobody leaves. Identifiers without a contact come back: contacts are never made here.",
            errors=("TOO_MANY_IDENTIFIERS",),
            **members,
        ),
        Route(
            method="PUT",
            path="/v2/lists/{id}/members",
            handler=operations.replace,
            operation_id="replaceListMembers",
            summary="Make a list of exactly these contacts",
            description="Refused when nobody matches, so that a mistake does not empty a list.",
            errors=("TOO_MANY_IDENTIFIERS", "NO_MEMBER_MATCHED"),
            **members,
        ),
        Route(
            method="POST",
            path="/v2/lists/{id}/members/remove",
            handler=operations.remove,
            operation_id="removeListMembers",
            summary="Take contacts out of a list; they stay contacts",
            errors=("TOO_MANY_IDENTIFIERS",),
            **members,
        ),
    )
