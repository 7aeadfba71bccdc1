"""Numbers: register, read, change, connect, disconnect, delete (C14.1). Health and usage have files of their own."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from recado.channels.core.adapters import AdminFor
from recado.channels.core.errors import ProviderError
from recado.domain.access.scopes import PII
from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import NUMBER
from recado.domain.messages.changes import NumberChanged
from recado.domain.senders.number import NUMBER_MACHINE, NumberEvent, what_to_do
from recado.http.api.call import Call
from recado.http.api.route import Route
from recado.http.problems.provider_failures import answered_with_502
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.phones import phone_at
from recado.http.routes.core.resource import Resource
from recado.http.routes.senders.number_models import (
    NumberCreate,
    NumberOut,
    NumberPage,
    NumberPatch,
    NumberQuery,
    number_replay,
    number_reply,
    number_view,
)
from recado.http.wire.reply import Reply
from recado.services.senders.accounts import ACCESS_TOKEN, account_of, required
from recado.services.senders.number_refresh import ASK_AGAIN
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys.uses import refuse_while_used
from recado.storage.senders import numbers
from recado.storage.senders.numbers import NUMBERS, Number


@dataclass(frozen=True, slots=True)
class NumberOperations:
    """The provider is called outside of transactions; the row is looked at again inside.

    `provider_for`: the chat-app provider of an environment, None where none is configured.
    """

    numbers: Resource[Number]
    keys: KeyRing
    provider_for: AdminFor

    def examine(self, call: Call) -> str:
        """The phone of the body, as it is kept. Raises `Problem` 403 and 422."""
        if call.body.byo:
            raise Problem("FORBIDDEN", "byo is set by the installation's administrator alone.", meta={"field": "byo"})
        return phone_at("/displayPhone", call.body.display_phone)

    async def create(self, call: Call) -> Reply:
        principal, body, phone = call.principal, call.body, self.examine(call)
        born = self.numbers.born(call)
        provider = self.provider_for(principal.env)
        wait = ASK_AGAIN if provider is None else timedelta(seconds=provider.verification_delay)
        rate = body.rate_limit.changes() if body.rate_limit else {}
        new = Number(
            **born,
            phone_number_id=body.phone_number_id,
            business_account_id=body.business_account_id,
            display_phone=phone,
            profile=body.profile.merged({}) if body.profile else {},
            access_token_cipher=self._sealed(born["organization_id"], born["env"], born["id"], body.access_token),
            verify_at=call.now + wait,
            **rate,
        )
        return number_reply(call, await self.numbers.add(new, numbers.insert), 201)

    async def patch(self, call: Call) -> Reply:
        found: Number = call.resource
        changes = call.body.changes()
        call.check_revision(found.revision)
        if "profile" in changes:
            await self._publish_profile(found, _profile(found, changes["profile"]))
        return await self._changed(call, lambda number: self._patched(number, changes))

    async def connect(self, call: Call) -> Reply:
        found: Number = call.resource
        call.check_revision(found.revision)
        if found.status not in NUMBER_MACHINE.sources(NumberEvent.CONNECT):
            what = what_to_do(found.status, found.env, found.id)
            detail = f"The number {found.id} is {found.status.value}: {what}."
            raise conflict("INVALID_STATE", detail, status=found.status.value)
        with answered_with_502():
            await required(self.provider_for(found.env)).connect(account_of(found, self.keys))
        return await self._changed(call, _connected)

    async def disconnect(self, call: Call) -> Reply:
        reply = await self._changed(
            call,
            lambda number: replace(number, status=NUMBER_MACHINE.move(number.status, NumberEvent.DISCONNECT)),
        )
        provider = self.provider_for(call.principal.env)
        if provider is not None:
            # Sending has stopped here already; whether the provider hears of it now changes nothing about that.
            with suppress(ProviderError):
                await provider.disconnect(account_of(call.resource, self.keys))
        return reply

    async def _changed(self, call: Call, edit: Callable[[Number], Number]) -> Reply:
        return number_reply(call, await self.numbers.change(call, edit))

    async def _publish_profile(self, number: Number, profile: dict[str, str]) -> None:
        if profile == number.profile:
            return
        with answered_with_502():
            await required(self.provider_for(number.env)).update_profile(account_of(number, self.keys), profile)

    def _patched(self, number: Number, changes: dict[str, Any]) -> Number:
        fields: dict[str, Any] = {}
        if "rate_limit" in changes:
            fields |= changes["rate_limit"].changes()
        if "profile" in changes:
            fields["profile"] = _profile(number, changes["profile"])
        if "access_token" in changes:
            fields["access_token_cipher"] = self._sealed(
                number.organization_id, number.env, number.id, changes["access_token"]
            )
        return replace(number, **fields)

    def _sealed(self, organization_id: str, env: str, number_id: str, token: str | None) -> str | None:
        """The encrypted access token. The sandbox asks for none, so test keeps none (C14.1)."""
        if token is None or env == "test":
            return None
        return self.keys.encrypt(token, organization_id=organization_id, record_id=number_id, field=ACCESS_TOKEN)


def _profile(number: Number, sent: Any) -> dict[str, str]:
    return {} if sent is None else sent.merged(number.profile)


def _connected(number: Number) -> Number:
    """In service; the mark that the customer removed us is cleared with it (C14.2)."""
    return replace(
        number,
        status=NUMBER_MACHINE.move(number.status, NumberEvent.CONNECT),
        partner_removed_at=None,
        partner_removed_reason=None,
    )


async def _views(call: Call, _: Executor, found: list[Number]) -> Iterable[dict[str, Any]]:
    full = call.can(PII)
    return (number_view(number, full) for number in found)


async def _delete(connection: Executor, number: Number, now: datetime) -> None:
    await refuse_while_used(connection, number.organization_id, number.env, number.id)
    await numbers.delete(connection, number, now)


def number_resource(dependencies: Dependencies) -> Resource[Number]:
    """The chat-app senders of an organization."""
    return Resource(
        dependencies=dependencies,
        table=NUMBERS,
        path="/numbers/{id}",
        prefix=NUMBER,
        name="number",
        group=Group("Numbers", "numbers:read", "numbers:write"),
        out=NumberOut,
        page=NumberPage,
        views=_views,
        tell=lambda number: dependencies.changed(NumberChanged(number.organization_id, number.env, number.id)),
    )


def number_routes(dependencies: Dependencies, *, provider_for: AdminFor) -> tuple[Route, ...]:
    """`provider_for`: the chat-app provider of an environment, None where none is configured."""
    resource = number_resource(dependencies)
    operations = NumberOperations(resource, dependencies.keys, provider_for)
    return (
        resource.route(
            "GET /numbers", "listNumbers", "List numbers",
            resource.listing(lambda query: (query.status, query.quality_rating)), query=NumberQuery,
        ),
        resource.route(
            "POST /numbers", "createNumber", "Register a number", operations.create,
            body=NumberCreate, examine=operations.examine, errors=("FORBIDDEN", "NUMBER_TAKEN", "PHONE_INVALID"),
            replay=number_replay,
            description="It is pending until the provider has verified it, then available to be connected.",
        ),
        resource.route("GET /numbers/{id}", "getNumber", "Read a number", resource.read),
        resource.route(
            "PATCH /numbers/{id}", "updateNumber", "Change a number's pace, profile or access token",
            operations.patch, body=NumberPatch, errors=("DEPENDENCY_FAILED",),
        ),
        resource.route(
            "DELETE /numbers/{id}", "deleteNumber", "Delete a number", partial(resource.delete, remove=_delete),
            errors=("RESOURCE_IN_USE",),
        ),
        resource.route(
            "POST /numbers/{id}/connect", "connectNumber", "Put a number into service", operations.connect,
            errors=("INVALID_STATE", "DEPENDENCY_FAILED"), replay=number_replay,
        ),
        resource.route(
            "POST /numbers/{id}/disconnect", "disconnectNumber", "Take a number out of service",
            operations.disconnect, errors=("INVALID_STATE",), replay=number_replay,
        ),
    )  # fmt: skip
