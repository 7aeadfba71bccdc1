"""Chat-app templates: create, read, edit, delete, hand in for review, fetch from the provider (C11.1)."""

from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any

from recado.channels.core.adapters import ReviewerFor
from recado.channels.core.provider import ProviderError
from recado.domain.core.errors import Problem, not_found
from recado.domain.core.ids import NUMBER, TEMPLATE, IdSource, created_at
from recado.domain.core.references import reference_not_found
from recado.domain.messages.changes import OnChange
from recado.http.api.audit import record
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems, each
from recado.http.api.provider_failures import answered_with_502
from recado.http.api.route import Idempotency, Route
from recado.http.routes.core.lists import shown
from recado.http.routes.templates.template_edits import edited, submit, template_reply
from recado.http.routes.templates.template_models import (
    SyncStarted,
    TemplateCreate,
    TemplateOut,
    TemplatePage,
    TemplatePatch,
    TemplateQuery,
    TemplateSyncRequest,
    stored_components,
    template_view,
)
from recado.http.wire.reply import Reply
from recado.services.senders.accounts import account_of, required
from recado.services.templates.template_review import change_of, without_step
from recado.services.templates.template_sync import TemplateSync
from recado.storage.core.changing import changing
from recado.storage.core.crypto import KeyRing
from recado.storage.core.postgres import Connection, Database
from recado.storage.core.rows import Page
from recado.storage.senders import numbers
from recado.storage.templates import templates
from recado.storage.templates.templates import Template


class TemplateOperations:
    """The handlers."""

    def __init__(
        self,
        database: Database,
        ids: IdSource,
        keys: KeyRing,
        provider_for: ReviewerFor,
        sync: TemplateSync,
        changed: OnChange,
    ) -> None:
        self._database = database
        self._ids = ids
        self._keys = keys
        self._provider_for = provider_for
        self._sync = sync
        self._changed = changed

    async def find(self, call: Call) -> Template:
        principal = call.principal
        template = await templates.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if template is None:
            raise not_found()
        return template

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        read = partial(
            templates.list_page,
            self._database,
            principal.organization_id,
            principal.env,
            status=query.status,
            category=query.category,
            language=query.language,
            number_id=query.number_id,
        )

        def rest(last: Template, left: int) -> Awaitable[Page[Template]]:
            return read(limit=left, before_id=last.id)

        first = await read(limit=query.limit, skip=query.skip)
        return await shown(PageItems(first, each(template_view), rest, query.limit))

    async def read(self, call: Call) -> Reply:
        return template_reply(call.resource)

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        async with self._database.transaction() as connection:
            number = await numbers.get(connection, principal.organization_id, principal.env, body.number_id)
            if number is None:
                raise Problem(
                    "NUMBER_NOT_OWNED", "`numberId` is not a number of this organization in this environment."
                )
            template_id = self._ids.new(TEMPLATE)
            template = await templates.insert(
                connection,
                Template(
                    organization_id=principal.organization_id,
                    id=template_id,
                    env=principal.env,
                    number_id=number.id,
                    name=body.name,
                    language=body.language,
                    category=body.category,
                    components=stored_components(body.components),
                    header_example_url=body.header_example_url,
                    updated_at=created_at(template_id),
                ),
            )
        return template_reply(template, 201)

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        async with changing(self._database, self._changed, change_of(call.resource)) as connection:
            before = await self.locked(connection, call)
            after = await templates.save(connection, before, edited(before, changes), call.now)
        if after is not before:
            self._changed(change_of(after))
        return template_reply(after)

    async def submit(self, call: Call) -> Reply:
        async with changing(self._database, self._changed, change_of(call.resource)) as connection:
            before = await self.locked(connection, call)
            after = await submit(connection, before, call, self._ids)
        self._changed(change_of(after))
        return template_reply(after, 202)

    async def delete(self, call: Call) -> Reply:
        found: Template = call.resource
        call.check_revision(found.revision)
        await self._delete_at_provider(found)
        async with changing(self._database, self._changed, change_of(found)) as connection:
            before = await self.locked(connection, call)
            after = await templates.save(
                connection, before, replace(without_step(before), deleted_at=call.now), call.now
            )
            await record(connection, self._ids, call, "template.delete", after.id)
        self._changed(change_of(after))
        return Reply(204)

    async def sync(self, call: Call) -> Reply:
        principal = call.principal
        number = await numbers.get(self._database, principal.organization_id, principal.env, call.body.number_id)
        if number is None:
            raise reference_not_found("numberId", NUMBER, call.body.number_id, principal.env)
        self._sync.begin(number)
        return Reply(202, {"started": True})

    async def locked(self, connection: Connection, call: Call) -> Template:
        """The path's template, held until the transaction ends, in a version that the caller accepts."""
        found: Template = call.resource
        template = await templates.get_locked(connection, found.organization_id, found.env, found.id)
        if template is None:
            raise not_found()
        call.check_revision(template.revision)
        return template

    async def _delete_at_provider(self, template: Template) -> None:
        """Remove what had been submitted there. A provider that refuses has nothing to remove (any more)."""
        if template.provider_template_id is None:
            return
        number = await numbers.get(self._database, template.organization_id, template.env, template.number_id)
        if number is None:
            return
        with answered_with_502():
            provider = required(self._provider_for(template.env))
            try:
                await provider.delete_template(
                    account_of(number, self._keys), template.name, template.provider_template_id
                )
            except ProviderError as error:
                if error.kind != "refused":
                    raise


def template_routes(
    *,
    database: Database,
    ids: IdSource,
    keys: KeyRing,
    provider_for: ReviewerFor,
    sync: TemplateSync,
    changed: OnChange,
) -> tuple[Route, ...]:
    """`provider_for`: the chat-app provider of an environment, None where none is configured."""
    operations = TemplateOperations(database, ids, keys, provider_for, sync, changed)
    read: dict[str, Any] = {"tag": "Templates", "scope": "templates:read", "rate_class": "read"}
    write: dict[str, Any] = {"tag": "Templates", "scope": "templates:write", "rate_class": "write"}
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": TEMPLATE}, "versioned": True}
    return (
        Route(
            method="GET",
            path="/v2/templates",
            handler=operations.list,
            operation_id="listTemplates",
            summary="List templates",
            query=TemplateQuery,
            responses={200: TemplatePage},
            **read,
        ),
        Route(
            method="POST",
            path="/v2/templates",
            handler=operations.create,
            operation_id="createTemplate",
            summary="Create a template as a draft",
            description="Nothing goes to the provider. Its rules are checked when the template is submitted.",
            body=TemplateCreate,
            responses={201: TemplateOut},
            errors=("NUMBER_NOT_OWNED", "TEMPLATE_NAME_TAKEN", "LIMIT_REACHED"),
            idempotency=Idempotency.ACCEPTED,
            versioned=True,
            creates=True,
            **write,
        ),
        Route(
            method="POST",
            path="/v2/templates/sync",
            handler=operations.sync,
            operation_id="syncTemplates",
            summary="Import and refresh a number's templates from the provider",
            body=TemplateSyncRequest,
            description="It goes on in the background, one run of a number at a time.",
            responses={202: SyncStarted},
            errors=("REFERENCE_NOT_FOUND",),
            idempotency=Idempotency.ACCEPTED,
            **write,
        ),
        Route(
            method="GET",
            path="/v2/templates/{id}",
            handler=operations.read,
            operation_id="getTemplate",
            summary="Read a template",
            responses={200: TemplateOut},
            **one,
            **read,
        ),
        Route(
            method="PATCH",
            path="/v2/templates/{id}",
            handler=operations.patch,
            operation_id="updateTemplate",
            summary="Edit a template",
            description="Raises its version. An approved template is a draft again until it is approved again.",
            body=TemplatePatch,
            responses={200: TemplateOut},
            errors=("INVALID_STATE",),
            **one,
            **write,
        ),
        Route(
            method="DELETE",
            path="/v2/templates/{id}",
            handler=operations.delete,
            operation_id="deleteTemplate",
            summary="Delete a template, also at the provider",
            responses={204: None},
            errors=("DEPENDENCY_FAILED",),
            **one,
            **write,
        ),
        Route(
            method="POST",
            path="/v2/templates/{id}/submit",
            handler=operations.submit,
            operation_id="submitTemplate",
            summary="Hand a template in for the provider's review",
            session_only=True,
            responses={202: TemplateOut},
            errors=("INVALID_STATE", "TEMPLATE_RULES"),
            idempotency=Idempotency.ACCEPTED,
            **one,
            **write,
        ),
    )
