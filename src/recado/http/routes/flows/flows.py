"""Flows of chat-app: create, read, edit, publish, pause, resume, deprecate, archive, delete (C19)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from recado.channels.core.adapters import FlowAdminFor
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account, FlowDefinition
from recado.domain.core.errors import FieldError, Problem, conflict
from recado.domain.core.ids import FLOW, NUMBER
from recado.domain.core.references import reference_not_found
from recado.domain.flows.flow import FLOW_MACHINE, FlowEvent, FlowProviderStatus, FlowStatus
from recado.domain.messages.changes import FlowChanged
from recado.http.api.call import Call
from recado.http.api.route import MIB, Route
from recado.http.problems.provider_failures import answered_with_502
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.flows.flow_models import FlowCreate, FlowOut, FlowPage, FlowPatch, FlowQuery, flow_view
from recado.http.wire.reply import Reply
from recado.services.senders.accounts import account_of, required
from recado.storage.core.connections.postgres import Connection
from recado.storage.core.crypto import KeyRing
from recado.storage.flows import flows
from recado.storage.flows.flows import FLOWS, Flow
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number

BODY_LIMIT: Final = 4 * MIB


@dataclass(frozen=True, slots=True)
class FlowOperations:
    """What is particular to flows: their states, and what the provider holds of them."""

    flows: Resource[Flow]
    keys: KeyRing
    provider_for: FlowAdminFor

    async def examine(self, call: Call) -> Number:
        """The number that the body names. Raises `Problem` 422."""
        principal, number_id = call.principal, call.body.number_id
        number = await numbers.get(self.flows.database, principal.organization_id, principal.env, number_id)
        if number is None:
            raise reference_not_found("numberId", NUMBER, number_id, principal.env)
        return number

    async def create(self, call: Call) -> Reply:
        body, number = call.body, await self.examine(call)
        new = Flow(
            **self.flows.born(call),
            number_id=number.id,
            name=body.name,
            description=body.description,
            provider_categories=tuple(body.provider_categories),
            flow_json=body.flow_json,
        )
        return await self.flows.reply(call, await self.flows.add(new, flows.insert), 201)

    async def publish(self, call: Call) -> Reply:
        found: Flow = call.resource
        call.check_revision(found.revision)
        FLOW_MACHINE.move(found.status, FlowEvent.PUBLISH)
        account = await self._account(found)
        # Names are unique at the provider, which keeps those of earlier versions and of attempts that failed.
        named = f"{found.name} {self.flows.dependencies.ids.new(FLOW)}"
        definition = FlowDefinition(named, [each.value for each in found.provider_categories], found.flow_json)
        with answered_with_502():
            provider = required(self.provider_for(found.env))
            try:
                provider_flow_id = await provider.create_flow(account, definition)
                await provider.publish_flow(account, provider_flow_id)
            except ProviderError as error:
                if error.kind == "refused":
                    raise _refused(error) from error
                raise

        def published(flow: Flow) -> Flow:
            return replace(
                moved(flow, FlowEvent.PUBLISH),
                provider_status=FlowProviderStatus.PUBLISHED,
                provider_flow_id=provider_flow_id,
                published_at=call.now,
            )

        return await self._store(call, "publish", published, of=found)

    async def pause(self, call: Call) -> Reply:
        return await self._store(
            call, "pause", lambda flow: replace(moved(flow, FlowEvent.PAUSE), paused_by_customer=True)
        )

    async def resume(self, call: Call) -> Reply:
        return await self._store(call, "resume", resumed)

    async def deprecate(self, call: Call) -> Reply:
        found: Flow = call.resource
        call.check_revision(found.revision)
        FLOW_MACHINE.move(found.status, FlowEvent.DEPRECATE)
        account = await self._account(found)
        with answered_with_502():
            await required(self.provider_for(found.env)).deprecate_flow(account, found.provider_flow_id or "")

        def deprecated(flow: Flow) -> Flow:
            if flow.status is FlowStatus.DEPRECATED:
                return flow
            return replace(moved(flow, FlowEvent.DEPRECATE), provider_status=FlowProviderStatus.DEPRECATED)

        return await self._store(call, "deprecate", deprecated, of=found)

    async def archive(self, call: Call) -> Reply:
        return await self._store(call, "archive", lambda flow: moved(flow, FlowEvent.ARCHIVE))

    async def delete(self, call: Call) -> Reply:
        return await self.flows.delete(call, _delete)

    async def _store(self, call: Call, action: str, change: Callable[[Flow], Flow], of: Flow | None = None) -> Reply:
        """Change the flow of the path, and note it. `of`: what the provider was told of must be what is stored."""
        async with self.flows.locked(call) as (connection, before):
            # News that it is deprecated may be here before the provider's answer that it did so.
            if of is not None and before.revision != of.revision and before.status is not FlowStatus.DEPRECATED:
                raise Problem("VERSION_MISMATCH", "Another request changed the flow at the same time: read it again.")
            after = await FLOWS.save(connection, before, change(before), call.now)
            await self.flows.note(connection, call, f"flow.{action}", after, {"version": after.version})
        self.flows.tell(after)
        return await self.flows.reply(call, after)

    async def _account(self, flow: Flow) -> Account:
        number = await numbers.get(self.flows.database, flow.organization_id, flow.env, flow.number_id)
        if number is None:
            raise conflict("INVALID_STATE", "The number of the flow was deleted.", status=flow.status.value)
        return account_of(number, self.keys)


def moved(flow: Flow, event: FlowEvent) -> Flow:
    """The flow after an event; raises `IllegalMove` (409) where its state does not know it."""
    return replace(flow, status=FLOW_MACHINE.move(flow.status, event), paused_by_customer=False)


def resumed(flow: Flow) -> Flow:
    """Sendable again, unless the provider blocks it."""
    after = moved(flow, FlowEvent.RESUME)
    if flow.provider_status is FlowProviderStatus.BLOCKED:
        raise conflict("INVALID_STATE", "The provider blocks the flow: it must clear it first.", status="paused")
    told_at = flow.reported_at
    if told_at is not None:  # what was told before this may be told again, and pauses nothing then
        told_at += timedelta(microseconds=1)
    return replace(after, provider_status=FlowProviderStatus.PUBLISHED, reported_at=told_at)


def edited(flow: Flow, changes: Mapping[str, Any]) -> Flow:
    """The flow with an edit: of what was published a new version, a draft. One that changes nothing is none."""
    fields = dict(changes)
    if "provider_categories" in fields:
        fields["provider_categories"] = tuple(fields["provider_categories"])
    status = FLOW_MACHINE.move(flow.status, FlowEvent.EDIT)
    after = replace(flow, **fields)
    if after == flow or flow.status is FlowStatus.DRAFT:
        return after
    draft = FlowProviderStatus.DRAFT
    return replace(after, status=status, provider_status=draft, version=flow.version + 1, paused_by_customer=False)


def _refused(error: ProviderError) -> Problem:
    detail = f"The provider refused the flow: {error.text}"
    return Problem("FLOW_JSON_INVALID", detail, errors=[FieldError("/flowJson", "NOT_ALLOWED", detail)])


async def _delete(connection: Connection, flow: Flow, now: datetime) -> None:
    if flow.status is not FlowStatus.DRAFT or flow.published_at is not None:
        detail = "Only a draft that was never published can be deleted: archive the flow."
        raise conflict("INVALID_STATE", detail, status=flow.status.value)
    await FLOWS.delete(connection, flow)


def flow_routes(dependencies: Dependencies, *, provider_for: FlowAdminFor) -> tuple[Route, ...]:
    """`provider_for`: who keeps flows in an environment, None where nobody does."""
    resource = Resource(
        dependencies=dependencies,
        table=FLOWS,
        path="/v2/flows/{id}",
        prefix=FLOW,
        name="flow",
        group=Group("Flows", "flows:read", "flows:write"),
        out=FlowOut,
        page=FlowPage,
        views=each(flow_view),
        tell=lambda flow: dependencies.changed(FlowChanged(flow.organization_id, flow.env, flow.id)),
    )
    operations = FlowOperations(resource, dependencies.keys, provider_for)
    return (
        resource.route(
            "GET /v2/flows", "listFlows", "List flows, newest first",
            resource.listing(lambda query: (query.status, query.meta_status, query.category, query.number_id)),
            query=FlowQuery,
        ),
        resource.route(
            "POST /v2/flows", "createFlow", "Create a flow as a draft", operations.create, body=FlowCreate,
            body_limit=BODY_LIMIT, errors=("REFERENCE_NOT_FOUND", "FLOW_NAME_TAKEN", "LIMIT_REACHED"),
            examine=operations.examine,
            description="Nothing goes to the provider until it is published.",
        ),
        resource.route("GET /v2/flows/{id}", "getFlow", "Read a flow", resource.read),
        resource.route(
            "PATCH /v2/flows/{id}", "updateFlow", "Edit a flow", resource.changing(edited), body=FlowPatch,
            body_limit=BODY_LIMIT, errors=("INVALID_STATE", "FLOW_NAME_TAKEN"),
            description="An active or paused flow is a draft again, in its next version, until that is published.",
        ),
        resource.route(
            "DELETE /v2/flows/{id}", "deleteFlow", "Delete a draft that was never published", operations.delete,
            errors=("INVALID_STATE",),
        ),
        resource.route(
            "POST /v2/flows/{id}/publish", "publishFlow", "Publish a draft at the provider", operations.publish,
            errors=("INVALID_STATE", "FLOW_JSON_INVALID", "DEPENDENCY_FAILED"),
            description="From then on interactive messages may open it.",
        ),
        resource.route(
            "POST /v2/flows/{id}/pause", "pauseFlow", "Let no more messages open a flow", operations.pause,
            errors=("INVALID_STATE",),
        ),
        resource.route(
            "POST /v2/flows/{id}/resume", "resumeFlow", "Let messages open a paused flow again", operations.resume,
            errors=("INVALID_STATE",), description="Not while the provider blocks it.",
        ),
        resource.route(
            "POST /v2/flows/{id}/deprecate", "deprecateFlow", "Take a published flow out of use, also at the provider",
            operations.deprecate, errors=("INVALID_STATE", "DEPENDENCY_FAILED"),
        ),
        resource.route(
            "POST /v2/flows/{id}/archive", "archiveFlow", "Archive a draft or a deprecated flow", operations.archive,
            errors=("INVALID_STATE",), description="It stays so.",
        ),
    )  # fmt: skip
