"""Templates of e-mails: made, read, changed, archived, seen with values (C10.4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recado.domain.core.errors import FieldError, conflict, validation_error
from recado.domain.core.ids import EMAIL_TEMPLATE
from recado.domain.core.names import name_key
from recado.domain.email.rendering import EmailPart, undeclared
from recado.domain.email.template import EmailTemplateStatus
from recado.engine.turns import turns
from recado.http.api.call import Call
from recado.http.api.route import MIB, Idempotency, Route
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.email.mjml_document import compile_mjml
from recado.http.routes.email.template_models import (
    EmailPreview,
    EmailPreviewOut,
    EmailTemplateCreate,
    EmailTemplateOut,
    EmailTemplatePage,
    EmailTemplatePatch,
    EmailTemplateQuery,
    stored_variables,
    template_item_view,
    template_view,
)
from recado.http.wire.reply import Reply
from recado.storage.core.connections.postgres import Connection
from recado.storage.email.templates import TEMPLATES, EmailTemplate
from recado.storage.journeys.uses import refuse_while_used

BODY_LIMIT = 8 * MIB

_CONTENT = ("subject", "html", "text", "mjml", "variables")
Names = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class EmailTemplateOperations:
    """What is particular to them: MJML, which `workers` compile, and variables, which are declared."""

    templates: Resource[EmailTemplate]
    workers: BodyWorkers

    async def examine(self, call: Call) -> EmailTemplate:
        """The template of the body, compiled. Raises `Problem` 422."""
        body: EmailTemplateCreate = call.body
        html, names = body.html, dict(body.names)
        if html is None:
            html, names[EmailPart.HTML] = await self._compiled(call, body.mjml or "")
        new = EmailTemplate(
            **self.templates.born(call),
            name=body.name,
            subject=body.subject,
            html=html,
            text=body.text,
            mjml=body.mjml,
            variables=stored_variables(body.variables),
            placeholders=_stored(names),
            created_by_id=call.principal.actor_id,
        )
        _refuse_undeclared(new, compiled=body.html is None)
        return new

    async def create(self, call: Call) -> Reply:
        return await self.templates.reply(call, await self.templates.add(await self.examine(call)), 201)

    async def patch(self, call: Call) -> Reply:
        body: EmailTemplatePatch = call.body
        changes, names = body.changes(), dict(body.names)
        compiled = body.mjml is not None and "html" not in changes
        if compiled:
            changes["html"], names[EmailPart.HTML] = await self._compiled(call, body.mjml or "")
        elif "html" in changes:
            changes.setdefault("mjml", None)
        if "variables" in changes:
            changes["variables"] = stored_variables(changes["variables"])

        def edited(before: EmailTemplate) -> EmailTemplate:
            _refuse_archived(before)
            after = replace(before, **changes, placeholders={**before.placeholders, **_stored(names)})
            _refuse_undeclared(after, compiled=compiled)
            same = all(getattr(after, name) == getattr(before, name) for name in _CONTENT)
            return after if same else replace(after, version=before.version + 1)

        return await self.templates.reply(call, await self.templates.change(call, edited))

    async def archive(self, call: Call) -> Reply:
        return await self.templates.delete(call, _archive)

    async def preview(self, call: Call) -> Reply:
        template: EmailTemplate = call.resource
        await turns.next()
        content = template.content()
        await turns.next()
        rendered = content.render(call.body.variables)
        call.check_revision(template.revision)
        shown = {"subject": rendered.subject, "html": rendered.html, "missing": list(rendered.missing)}
        return Reply(200, shown if rendered.text is None else {**shown, "text": rendered.text})

    async def _compiled(self, call: Call, source: str) -> tuple[str, list[str]]:
        return await compile_mjml(self.workers, source, caller=call.principal.organization_id)


def _stored(names: Mapping[EmailPart, Sequence[str]]) -> dict[str, list[str]]:
    return {part.value: list(used) for part, used in names.items()}


def _refuse_undeclared(template: EmailTemplate, *, compiled: bool) -> None:
    """VARIABLE_NOT_DECLARED, at the part that uses the variable; `compiled`: what `html` uses stands in `mjml`."""
    used = {EmailPart(part): names for part, names in template.placeholders.items()}
    found = undeclared(used, (each["name"] for each in template.variables))
    if found:
        errors = [
            FieldError(
                "/mjml" if compiled and part is EmailPart.HTML else f"/{part}",
                "VARIABLE_NOT_DECLARED",
                f"uses {name}, which variables does not declare",
            )
            for part, name in found
        ]
        raise validation_error(errors, code="VARIABLE_NOT_DECLARED")


def _refuse_archived(template: EmailTemplate) -> None:
    if template.status is EmailTemplateStatus.ARCHIVED:
        raise conflict("INVALID_STATE", "An archived template stays as it is.", status=template.status.value)


async def _archive(connection: Connection, template: EmailTemplate, now: datetime) -> None:
    """Nothing becomes of one that is archived already."""
    await refuse_while_used(connection, template.organization_id, template.env, template.id)
    await TEMPLATES.save(connection, template, replace(template, status=EmailTemplateStatus.ARCHIVED), now)


def _matching(query: EmailTemplateQuery) -> tuple[Any, ...]:
    return query.status, query.q and name_key(query.q)


def email_template_routes(
    dependencies: Dependencies, *, workers: BodyWorkers, changed: Callable[[EmailTemplate], None]
) -> tuple[Route, ...]:
    """`workers`: processes that compile MJML; `changed`: is told of what changed, after its commit."""
    resource = Resource(
        dependencies=dependencies,
        table=TEMPLATES,
        path="/v2/email/templates/{id}",
        prefix=EMAIL_TEMPLATE,
        name="email_template",
        group=Group("E-mail", "email:read", "email:write"),
        out=EmailTemplateOut,
        page=EmailTemplatePage,
        views=each(template_view),
        tell=changed,
    )
    items = replace(resource, views=each(template_item_view))
    operations = EmailTemplateOperations(resource, workers)
    return (
        resource.route(
            "GET /v2/email/templates", "listEmailTemplates", "List templates of e-mails, newest first",
            items.listing(_matching), query=EmailTemplateQuery,
        ),
        resource.route(
            "POST /v2/email/templates", "createEmailTemplate", "Make a template of e-mails", operations.create,
            body=EmailTemplateCreate, body_limit=BODY_LIMIT, examine=operations.examine,
            errors=("MJML_INVALID", "VARIABLE_NOT_DECLARED", "EMAIL_TEMPLATE_NAME_TAKEN", "LIMIT_REACHED"),
            description="`{{name}}` in subject, html or text is a variable, and every variable is declared.",
        ),
        resource.route("GET /v2/email/templates/{id}", "getEmailTemplate", "Read a template of e-mails", resource.read),
        resource.route(
            "PATCH /v2/email/templates/{id}", "updateEmailTemplate", "Change a template of e-mails", operations.patch,
            body=EmailTemplatePatch, body_limit=BODY_LIMIT,
            errors=("MJML_INVALID", "VARIABLE_NOT_DECLARED", "EMAIL_TEMPLATE_NAME_TAKEN", "INVALID_STATE"),
            description="A change of its content raises `version`.",
        ),
        resource.route(
            "DELETE /v2/email/templates/{id}", "deleteEmailTemplate",
            "Archive a template of e-mails: nothing is sent with it any more", operations.archive,
            errors=("RESOURCE_IN_USE",), description="It can still be read. Its name is free.",
        ),
        resource.route(
            "POST /v2/email/templates/{id}/preview", "previewEmailTemplate", "See a template of e-mails with values",
            operations.preview, scope="email:read", rate_class="bulk", versioned=False, matches=True, body=EmailPreview,
            body_limit=BODY_LIMIT, idempotency=Idempotency.NONE, responses={200: EmailPreviewOut},
            errors=("TEXT_TOO_LONG",),
            description="A variable without a value takes its example; without an example it is empty.",
        ),
    )  # fmt: skip
