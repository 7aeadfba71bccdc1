"""Chat-app templates: create, read, edit, delete, hand in for review, fetch from the provider (C11.1)."""

from dataclasses import dataclass, replace
from datetime import datetime

from recado.channels.core.adapters import ReviewerFor
from recado.channels.core.errors import ProviderError
from recado.domain.core.errors import Problem
from recado.domain.core.ids import NUMBER, TEMPLATE
from recado.domain.core.references import reference_not_found
from recado.http.api.call import Call
from recado.http.api.route import Route
from recado.http.problems.provider_failures import answered_with_502
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
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
from recado.storage.core.connections.postgres import Connection
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys.uses import refuse_while_used
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number
from recado.storage.templates import templates
from recado.storage.templates.templates import TEMPLATES, Template


@dataclass(frozen=True, slots=True)
class TemplateOperations:
    """What is particular to templates: their review, and what the provider has of them.

    `provider_for`: the chat-app provider of an environment, None where none is configured.
    """

    templates: Resource[Template]
    keys: KeyRing
    provider_for: ReviewerFor
    sync: TemplateSync

    async def examine(self, call: Call) -> None:
        """Raise `Problem` 400 for a number that is not the caller's."""
        await _number(self.templates.database, call)

    async def create(self, call: Call) -> Reply:
        body = call.body
        async with self.templates.database.transaction() as connection:
            number = await _number(connection, call)
            template = await templates.insert(
                connection,
                Template(
                    **self.templates.born(call),
                    number_id=number.id,
                    name=body.name,
                    language=body.language,
                    category=body.category,
                    components=stored_components(body.components),
                    header_example_url=body.header_example_url,
                ),
            )
        return template_reply(template, 201)

    async def submit(self, call: Call) -> Reply:
        async with self.templates.locked(call) as (connection, before):
            after = await submit(connection, before, call, self.templates.dependencies.ids)
        self.templates.tell(after)
        return template_reply(after, 202)

    async def delete(self, call: Call) -> Reply:
        found: Template = call.resource
        call.check_revision(found.revision)
        await _refuse_while_used(self.templates.database, found)
        await self._delete_at_provider(found)
        return await self.templates.delete(call, _delete)

    async def start_sync(self, call: Call) -> Reply:
        principal = call.principal
        number = await numbers.get(
            self.templates.database, principal.organization_id, principal.env, call.body.number_id
        )
        if number is None:
            raise reference_not_found("numberId", NUMBER, call.body.number_id, principal.env)
        self.sync.begin(number)
        return Reply(202, {"started": True})

    async def _delete_at_provider(self, template: Template) -> None:
        """Remove what had been submitted there. A provider that refuses has nothing to remove (any more)."""
        if template.provider_template_id is None:
            return
        number = await numbers.get(self.templates.database, template.organization_id, template.env, template.number_id)
        if number is None:
            return
        with answered_with_502():
            provider = required(self.provider_for(template.env))
            try:
                await provider.delete_template(
                    account_of(number, self.keys), template.name, template.provider_template_id
                )
            except ProviderError as error:
                if error.kind != "refused":
                    raise


async def _number(executor: Executor, call: Call) -> Number:
    """The number that the body of a new template names."""
    principal = call.principal
    number = await numbers.get(executor, principal.organization_id, principal.env, call.body.number_id)
    if number is None:
        raise Problem("NUMBER_NOT_OWNED", "`numberId` is not a number of this organization in this environment.")
    return number


async def _refuse_while_used(executor: Executor, template: Template) -> None:
    await refuse_while_used(executor, template.organization_id, template.env, template.id)


async def _delete(connection: Connection, template: Template, now: datetime) -> None:
    """One that the provider had is gone there already, and goes here too though a journey began to use it meanwhile."""
    if template.provider_template_id is None:
        await _refuse_while_used(connection, template)
    await templates.save(connection, template, replace(without_step(template), deleted_at=now), now)


def template_routes(dependencies: Dependencies, *, provider_for: ReviewerFor, sync: TemplateSync) -> tuple[Route, ...]:
    """`provider_for`: the chat-app provider of an environment, None where none is configured."""
    resource = Resource(
        dependencies=dependencies,
        table=TEMPLATES,
        path="/v2/templates/{id}",
        prefix=TEMPLATE,
        name="template",
        group=Group("Templates", "templates:read", "templates:write"),
        out=TemplateOut,
        page=TemplatePage,
        views=each(template_view),
        tell=lambda template: dependencies.changed(change_of(template)),
    )
    operations = TemplateOperations(resource, dependencies.keys, provider_for, sync)
    return (
        resource.route(
            "GET /v2/templates", "listTemplates", "List templates",
            resource.listing(lambda query: (query.status, query.category, query.language, query.number_id)),
            query=TemplateQuery,
        ),
        resource.route(
            "POST /v2/templates", "createTemplate", "Create a template as a draft", operations.create,
            body=TemplateCreate, errors=("NUMBER_NOT_OWNED", "TEMPLATE_NAME_TAKEN", "LIMIT_REACHED"),
            examine=operations.examine,
            description="Nothing goes to the provider. Its rules are checked when the template is submitted.",
        ),
        resource.route(
            "POST /v2/templates/sync", "syncTemplates", "Import and refresh a number's templates from the provider",
            operations.start_sync, body=TemplateSyncRequest, responses={202: SyncStarted},
            errors=("REFERENCE_NOT_FOUND",),
            description="It goes on in the background, one run of a number at a time.",
        ),
        resource.route("GET /v2/templates/{id}", "getTemplate", "Read a template", resource.read),
        resource.route(
            "PATCH /v2/templates/{id}", "updateTemplate", "Edit a template", resource.changing(edited),
            body=TemplatePatch, errors=("INVALID_STATE",),
            description="Raises its version. An approved template is a draft again until it is approved again.",
        ),
        resource.route(
            "DELETE /v2/templates/{id}", "deleteTemplate", "Delete a template, also at the provider",
            operations.delete, errors=("RESOURCE_IN_USE", "DEPENDENCY_FAILED"),
        ),
        resource.route(
            "POST /v2/templates/{id}/submit", "submitTemplate", "Hand a template in for the provider's review",
            operations.submit, session_only=True, responses={202: TemplateOut},
            errors=("INVALID_STATE", "TEMPLATE_RULES"),
        ),
    )  # fmt: skip
