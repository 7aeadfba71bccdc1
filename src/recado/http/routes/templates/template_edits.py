"""Edits of a template and its submission, each a rule of C11 over the stored record."""

from dataclasses import replace
from typing import Any

from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import IdSource
from recado.domain.templates.template import CATEGORY_EDITABLE, TEMPLATE_MACHINE, TemplateEvent
from recado.domain.templates.template_content import submission_errors
from recado.http.api.audit import record
from recado.http.api.call import Call
from recado.http.routes.templates.template_models import stored_components, template_view
from recado.http.wire.reply import Reply
from recado.services.templates.template_flows import as_there
from recado.services.templates.template_review import submitted, without_step
from recado.storage.core.statements.rows import Executor
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number
from recado.storage.templates import templates
from recado.storage.templates.templates import Template


def template_reply(template: Template, status: int = 200) -> Reply:
    return Reply(status, template_view(template), revision=template.revision)


def edited(template: Template, changes: dict[str, Any]) -> Template:
    """The template with an edit (C11.1): a new version, and a draft again. An edit that changes nothing is none."""
    fields = dict(changes)
    if "components" in fields:
        fields["components"] = stored_components(fields["components"])
    after = replace(template, **fields)
    status = TEMPLATE_MACHINE.move(template.status, TemplateEvent.EDIT)
    if after == template:
        return template
    if after.category is not template.category and template.status not in CATEGORY_EDITABLE:
        raise conflict(
            "INVALID_STATE",
            "The category can change only while the template is draft or rejected.",
            status=template.status.value,
        )
    return replace(without_step(after), status=status, version=template.version + 1)


async def submit(connection: Executor, template: Template, call: Call, ids: IdSource) -> Template:
    """Hand the template in for review, once it keeps the provider's rules.

    Raises `IllegalMove` (409) by its state, `Problem` TEMPLATE_RULES with one entry a fault.
    """
    after = submitted(template, call.now)
    number = await _number_of(connection, template)
    faults = submission_errors(
        template.name,
        template.category,
        template.components,
        template.header_example_url,
        env=number.env,
        number_id=number.id,
        number_status=number.status,
    )
    faults = faults or (await as_there(connection, template))[1]
    if faults:
        rules = "a rule" if len(faults) == 1 else counted(len(faults), "rule")
        first = faults[0]
        raise Problem(
            "TEMPLATE_RULES",
            f"The template breaks {rules} of the provider: {first.path or '/'}: {first.message}",
            errors=faults,
        )
    await record(connection, ids, call, "template.submit", template.id, {"version": template.version})
    return await templates.save(connection, template, after, call.now)


async def _number_of(executor: Executor, template: Template) -> Number:
    number = await numbers.get(executor, template.organization_id, template.env, template.number_id)
    if number is None:
        raise conflict("INVALID_STATE", "The number of the template was deleted.", status=template.status.value)
    return number
