"""Simulation: what a provider would report of numbers and templates, said by the caller (C29.4). Test only."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from recado.domain.core.errors import not_found, test_only
from recado.domain.core.ids import NUMBER, TEMPLATE, IdSource
from recado.domain.messages.changes import NumberChanged, OnChange
from recado.domain.senders.number import MessagingTier, NumberStatus, QualityRating
from recado.domain.templates.template import TemplateStatus
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, PatchModel, unset
from recado.http.api.route import Idempotency, Route
from recado.http.routes.senders.number_models import NumberOut, Removal, number_replay, number_reply
from recado.http.routes.templates.template_edits import submit, template_reply
from recado.http.routes.templates.template_models import TemplateOut
from recado.http.wire.reply import Reply
from recado.services.effects.record_events import announce, number_moved, template_moved
from recado.services.templates.template_review import change_of, without_step
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number
from recado.storage.templates import templates
from recado.storage.templates.templates import Template

TEST = "test"


class NumberSimulation(PatchModel):
    """What becomes of the number. `partnerRemovedReason: null` clears the mark."""

    status: NumberStatus = unset()
    quality_rating: QualityRating = unset()
    messaging_tier: MessagingTier = unset()
    partner_removed_reason: Removal | None = None


class TemplateSimulation(ApiModel):
    """The state to set. `submitted` hands the template in: the rules are checked and the sandbox reviews it."""

    status: TemplateStatus
    rejection_reason: Annotated[str | None, Field(min_length=1, max_length=512)] = None


class SandboxOperations:
    """The handlers. A live credential meets nothing here: 404."""

    def __init__(self, database: Database, ids: IdSource, keys: KeyRing, changed: OnChange) -> None:
        self._database = database
        self._ids = ids
        self._keys = keys
        self._changed = changed

    async def find_number(self, call: Call) -> Number:
        principal = call.principal
        if principal.env != TEST:
            raise test_only()
        number = await numbers.get(self._database, principal.organization_id, TEST, call.path["id"])
        if number is None:
            raise not_found()
        return number

    async def find_template(self, call: Call) -> Template:
        principal = call.principal
        if principal.env != TEST:
            raise test_only()
        template = await templates.get(self._database, principal.organization_id, TEST, call.path["id"])
        if template is None:
            raise not_found()
        return template

    async def number(self, call: Call) -> Reply:
        found: Number = call.resource
        change = NumberChanged(found.organization_id, found.env, found.id)
        async with changing(self._database, self._changed, change) as connection:
            before = await numbers.get_locked(connection, found.organization_id, found.env, found.id)
            if before is None:
                raise not_found()
            call.check_revision(before.revision)
            after = await numbers.save(connection, before, simulated(before, call), call.now)
            queued = await number_moved(connection, self._ids, before, after, self._keys)
        if after is not before:
            self._changed(change)
            announce(self._changed, queued)
        return number_reply(call, after)

    async def template(self, call: Call) -> Reply:
        found: Template = call.resource
        wanted: TemplateSimulation = call.body
        async with changing(self._database, self._changed, change_of(found)) as connection:
            before = await templates.get_locked(connection, found.organization_id, found.env, found.id)
            if before is None:
                raise not_found()
            call.check_revision(before.revision)
            if wanted.status is TemplateStatus.SUBMITTED:
                after = await submit(connection, before, call, self._ids)
            else:
                after = await templates.save(connection, before, decided(before, wanted), call.now)
            queued = await template_moved(connection, self._ids, before, after)
        if after is not before:
            self._changed(change_of(after))
            announce(self._changed, queued)
        return template_reply(after)


def simulated(number: Number, call: Call) -> Number:
    """The number as the caller wants it, whatever its state machine says. A pending one is verified once more."""
    fields: dict[str, Any] = call.body.changes()
    if "partner_removed_reason" in fields:
        fields["partner_removed_at"] = call.now if fields["partner_removed_reason"] else None
    if fields.get("status") is NumberStatus.PENDING:
        fields["verify_at"] = call.now
    return replace(number, **fields)


def decided(template: Template, wanted: TemplateSimulation) -> Template:
    """The template in the state that the caller sets; whatever review was under way ends."""
    rejected = wanted.status is TemplateStatus.REJECTED
    approved = wanted.status is TemplateStatus.APPROVED
    return replace(
        without_step(template),
        status=wanted.status,
        approved_version=template.version if approved else template.approved_version,
        rejection_reason=(wanted.rejection_reason or "rejected in simulation") if rejected else None,
    )


def sandbox_record_routes(*, database: Database, ids: IdSource, keys: KeyRing, changed: OnChange) -> tuple[Route, ...]:
    """Two operations, for test credentials."""
    operations = SandboxOperations(database, ids, keys, changed)
    return (
        Route(
            method="POST",
            path="/v2/sandbox/numbers/{id}",
            handler=operations.number,
            load=operations.find_number,
            operation_id="simulateNumber",
            summary="Simulate what the provider reports of a number",
            tag="Sandbox",
            scope="numbers:write",
            rate_class="write",
            body=NumberSimulation,
            responses={200: NumberOut},
            idempotency=Idempotency.ACCEPTED,
            replay=number_replay,
            versioned=True,
            path_ids={"id": NUMBER},
        ),
        Route(
            method="POST",
            path="/v2/sandbox/templates/{id}",
            handler=operations.template,
            load=operations.find_template,
            operation_id="simulateTemplate",
            summary="Set a template's state, or submit it to the sandbox's review",
            tag="Sandbox",
            scope="templates:write",
            rate_class="write",
            body=TemplateSimulation,
            responses={200: TemplateOut},
            errors=("INVALID_STATE", "TEMPLATE_RULES"),
            idempotency=Idempotency.ACCEPTED,
            versioned=True,
            path_ids={"id": TEMPLATE},
        ),
    )
