"""Static lists: made, read, changed, deleted, and their members (C7.1). Contacts of a list: GET /contacts?listId=."""

from dataclasses import replace
from datetime import datetime
from functools import partial

from recado.domain.audience.members import reading
from recado.domain.core.errors import Problem
from recado.domain.core.ids import LIST
from recado.domain.core.names import name_key
from recado.engine.steps import in_steps
from recado.http.api.call import Call
from recado.http.api.route import MIB, Handler, Idempotency, Route, as_modelled
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
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.wire.reply import Reply
from recado.storage.audience.lists import LISTS, MemberChange, StaticList, change_members, nobody_matched
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys.uses import refuse_while_used

MEMBERS_LIMIT = 64 * MIB


def members(lists: Resource[StaticList], change: MemberChange) -> Handler:
    """Those whom a call names join, leave, or are all that the list has."""

    async def changed(call: Call) -> Reply:
        body: Members = call.body
        named = await in_steps(reading(body.contact_ids, body.phones, body.external_ids))
        if not len(named):
            if change is MemberChange.REPLACE:
                raise nobody_matched()
            raise Problem("VALIDATION_ERROR", "The call names no contact: give contactIds, externalIds or phones.")
        async with lists.database.bulk.transaction() as connection:
            static_list = await lists.hold(connection, call, call.resource)
            outcome = await change_members(connection, static_list, change, named, call.now)
        return Reply(200, membership_view(static_list.id, outcome), revision=static_list.revision)

    return changed


async def _delete(connection: Executor, static_list: StaticList, _: datetime) -> None:
    await refuse_while_used(connection, static_list.organization_id, static_list.env, static_list.id)
    await LISTS.delete(connection, static_list)


def static_list_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """The operations on lists."""
    lists = Resource(
        dependencies=dependencies,
        table=LISTS,
        path="/v2/lists/{id}",
        prefix=LIST,
        name="list",
        group=Group("Lists", "contacts:read", "contacts:write"),
        out=ListOut,
        page=ListPage,
        views=each(list_view),
    )
    of_members = partial(
        lists.route, rate_class="bulk", body=Members, body_limit=MEMBERS_LIMIT, responses={200: MembershipOut},
        idempotency=Idempotency.NONE,
    )  # fmt: skip
    return (
        lists.route(
            "GET /v2/lists", "listLists", "List static lists, newest first",
            lists.listing(lambda query: (query.q and name_key(query.q),)), query=ListQuery,
        ),
        lists.route(
            "POST /v2/lists", "createList", "Make a list",
            lists.adding(lambda born, call: StaticList(**born, name=call.body.name, description=call.body.description)),
            body=ListCreate, errors=("LIST_NAME_TAKEN", "LIMIT_REACHED"), examine=as_modelled,
        ),
        lists.route("GET /v2/lists/{id}", "getList", "Read a list", lists.read),
        lists.route(
            "PATCH /v2/lists/{id}", "updateList", "Rename or describe a list",
            lists.changing(lambda before, changes: replace(before, **changes)),
            body=ListPatch, errors=("LIST_NAME_TAKEN",),
        ),
        lists.route(
            "DELETE /v2/lists/{id}", "deleteList", "Delete a list; its contacts stay",
            partial(lists.delete, remove=_delete), errors=("RESOURCE_IN_USE",),
        ),
        of_members(
            "POST /v2/lists/{id}/members", "addListMembers", "Add contacts to a list",
            members(lists, MemberChange.ADD), errors=("TOO_MANY_IDENTIFIERS",),
            description="Nobody leaves. Identifiers without a contact come back: contacts are never made here.",
        ),
        of_members(
            "PUT /v2/lists/{id}/members", "replaceListMembers", "Make a list of exactly these contacts",
            members(lists, MemberChange.REPLACE), errors=("TOO_MANY_IDENTIFIERS", "NO_MEMBER_MATCHED"),
            description="Refused when nobody matches, so that a mistake does not empty a list.",
        ),
        of_members(
            "POST /v2/lists/{id}/members/remove", "removeListMembers",
            "Take contacts out of a list; they stay contacts",
            members(lists, MemberChange.REMOVE), errors=("TOO_MANY_IDENTIFIERS",),
        ),
    )  # fmt: skip
