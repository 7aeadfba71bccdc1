"""Origin links: listed, made, changed, deleted (C27.4). What opens them is in `opened_links.py`."""

from dataclasses import dataclass, replace
from typing import Any

from recado.channels.core.adapters import OpenerFor
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.errors import FieldError, no_provider, validation_error
from recado.domain.core.ids import NUMBER, ORIGIN_LINK
from recado.domain.core.references import reference_not_found
from recado.domain.links.codes import link_code
from recado.domain.links.origin import Fonte
from recado.http.api.call import Call
from recado.http.api.paging import PageQuery
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.links.origin_link_models import (
    OriginLinkCreate,
    OriginLinkOut,
    OriginLinkPage,
    OriginLinkPatch,
    origin_link_view,
)
from recado.http.wire.reply import Reply
from recado.services.links.origin_clicks import OriginClicks
from recado.storage.core.statements.rows import Executor
from recado.storage.links.origin_links import ORIGIN_LINKS, OriginLink
from recado.storage.senders import numbers


@dataclass(frozen=True, slots=True)
class OriginLinkOperations:
    """What a link refers to has to be there when the link is made, and when that is changed."""

    links: Resource[OriginLink]
    opener_for: OpenerFor

    async def examine(self, call: Call) -> OriginLink:
        """The link of the body. Raises `Problem` 422."""
        body, parts = call.body, self.links.dependencies
        new = OriginLink(
            **self.links.born(call),
            name=body.name,
            number_id=body.number_id,
            text=body.text,
            fonte=body.fonte,
            fonte_rotulo=body.fonte_rotulo,
            slug=link_code(parts.random_bytes),
        )
        _check_label(new)
        await self._check_number(parts.database, new)
        return new

    async def create(self, call: Call) -> Reply:
        new = await self.examine(call)
        if self.opener_for(call.principal.env) is None:
            raise no_provider(CHATAPP)
        return await self.links.reply(call, await self.links.add(new), 201)

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        async with self.links.locked(call) as (connection, before):
            after = _changed(before, changes)
            if after.number_id != before.number_id:
                await self._check_number(connection, after)
            saved = await self.links.table.save(connection, before, after, call.now)
        self.links.tell(saved)
        return await self.links.reply(call, saved)

    async def _check_number(self, executor: Executor, link: OriginLink) -> None:
        if await numbers.get(executor, link.organization_id, link.env, link.number_id) is None:
            raise reference_not_found("numberId", NUMBER, link.number_id, link.env)


def _changed(before: OriginLink, changes: dict[str, Any]) -> OriginLink:
    """Another source has no label of the one before."""
    if changes.get("fonte", Fonte.OUTRA) is not Fonte.OUTRA:
        changes = {"fonte_rotulo": None, **changes}
    after = replace(before, **changes)
    _check_label(after)
    return after


def _check_label(link: OriginLink) -> None:
    if link.fonte_rotulo is not None and link.fonte is not Fonte.OUTRA:
        message = "`fonteRotulo` names a source where `fonte` is `outra`, and no other."
        raise validation_error([FieldError("/fonteRotulo", "NOT_ALLOWED", message)])


def origin_link_routes(
    dependencies: Dependencies, *, opener_for: OpenerFor, clicks: OriginClicks, link_base: str
) -> tuple[Route, ...]:
    """`clicks`: who opens them, and is told of changes; `link_base`: under which their addresses are."""
    links = Resource(
        dependencies=dependencies,
        table=ORIGIN_LINKS,
        path="/v2/origin-links/{id}",
        prefix=ORIGIN_LINK,
        name="origin_link",
        group=Group("Links", "numbers:read", "numbers:write"),
        out=OriginLinkOut,
        page=OriginLinkPage,
        views=each(origin_link_view(link_base)),
        tell=clicks.changed,
    )
    operations = OriginLinkOperations(links, opener_for)
    return (
        links.route(
            "GET /v2/origin-links", "listOriginLinks", "List links that lead to a chat, newest first", links.listing(),
            query=PageQuery,
        ),
        links.route(
            "POST /v2/origin-links", "createOriginLink", "Make a link that leads to the chat of a number",
            operations.create, body=OriginLinkCreate, examine=operations.examine,
            errors=("REFERENCE_NOT_FOUND", "LIMIT_REACHED", "DEPENDENCY_FAILED"),
            description=(
                "Who opens `url` comes to the chat, with `text` and a code in parentheses written there. The message "
                "that brings the code within 30 days shows where the link was found, in `origemDoLink`."
            ),
        ),
        links.route(
            "PATCH /v2/origin-links/{id}", "updateOriginLink", "Change a link; its address stays", operations.patch,
            body=OriginLinkPatch, errors=("REFERENCE_NOT_FOUND",),
        ),
        links.route(
            "DELETE /v2/origin-links/{id}", "deleteOriginLink",
            "Delete a link; codes that people have already stay good", links.delete,
        ),
    )  # fmt: skip
