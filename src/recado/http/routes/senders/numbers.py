"""Numbers: register, read, change, connect, disconnect, delete (C14.1). Health and usage have files of their own."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from recado.channels.core.adapters import AdminFor
from recado.channels.core.provider import ProviderError
from recado.domain.access.scopes import PII
from recado.domain.core.errors import Problem, conflict, not_found
from recado.domain.core.ids import NUMBER, IdSource, created_at
from recado.domain.messages.changes import NumberChanged, OnChange
from recado.domain.senders.number import NUMBER_MACHINE, NumberEvent, what_to_do
from recado.http.api.audit import record
from recado.http.api.call import Call
from recado.http.api.provider_failures import answered_with_502
from recado.http.api.route import Idempotency, Route
from recado.http.routes.core.lists import listed
from recado.http.routes.core.phones import phone_at
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
from recado.storage.core.changing import changing
from recado.storage.core.crypto import KeyRing
from recado.storage.core.postgres import Database
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number


class NumberOperations:
    """The handlers. A provider is called outside of transactions; the row is looked at again inside."""

    def __init__(
        self, database: Database, ids: IdSource, keys: KeyRing, provider_for: AdminFor, changed: OnChange
    ) -> None:
        self._database = database
        self._ids = ids
        self._keys = keys
        self._provider_for = provider_for
        self._changed = changed

    async def find(self, call: Call) -> Number:
        principal = call.principal
        number = await numbers.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if number is None:
            raise not_found()
        return number

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await numbers.list_page(
            self._database,
            principal.organization_id,
            principal.env,
            status=query.status,
            quality_rating=query.quality_rating,
            limit=query.limit,
            skip=query.skip,
        )
        full = call.can(PII)
        return await listed(page, lambda number: number_view(number, full=full))

    async def read(self, call: Call) -> Reply:
        return number_reply(call, call.resource)

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        if body.byo:
            raise Problem("FORBIDDEN", "byo is set by the installation's administrator alone.", meta={"field": "byo"})
        number_id = self._ids.new(NUMBER)
        provider = self._provider_for(principal.env)
        wait = ASK_AGAIN if provider is None else timedelta(seconds=provider.verification_delay)
        rate = body.rate_limit.changes() if body.rate_limit else {}
        new = Number(
            organization_id=principal.organization_id,
            id=number_id,
            env=principal.env,
            phone_number_id=body.phone_number_id,
            business_account_id=body.business_account_id,
            display_phone=phone_at("/displayPhone", body.display_phone),
            profile=body.profile.merged({}) if body.profile else {},
            access_token_cipher=self._sealed(principal.organization_id, principal.env, number_id, body.access_token),
            verify_at=call.now + wait,
            updated_at=created_at(number_id),
            **rate,
        )
        async with self._database.transaction() as connection:
            number = await numbers.insert(connection, new)
        self._tell(number)
        return number_reply(call, number, 201)

    async def patch(self, call: Call) -> Reply:
        found: Number = call.resource
        changes = call.body.changes()
        call.check_revision(found.revision)
        if "profile" in changes:
            await self._publish_profile(found, _profile(found, changes["profile"]))
        return await self._change(call, lambda number: self._patched(number, changes))

    async def connect(self, call: Call) -> Reply:
        found: Number = call.resource
        call.check_revision(found.revision)
        if found.status not in NUMBER_MACHINE.sources(NumberEvent.CONNECT):
            what = what_to_do(found.status, found.env, found.id)
            detail = f"The number {found.id} is {found.status.value}: {what}."
            raise conflict("INVALID_STATE", detail, status=found.status.value)
        with answered_with_502():
            await required(self._provider_for(found.env)).connect(account_of(found, self._keys))
        return await self._change(call, _connected)

    async def disconnect(self, call: Call) -> Reply:
        reply = await self._change(
            call,
            lambda number: replace(number, status=NUMBER_MACHINE.move(number.status, NumberEvent.DISCONNECT)),
        )
        provider = self._provider_for(call.principal.env)
        if provider is not None:
            # Sending has stopped here already; whether the provider hears of it now changes nothing about that.
            with suppress(ProviderError):
                await provider.disconnect(account_of(call.resource, self._keys))
        return reply

    async def delete(self, call: Call) -> Reply:
        found: Number = call.resource
        async with changing(self._database, self._changed, _change_of(found)) as connection:
            number = await numbers.get_locked(connection, found.organization_id, found.env, found.id)
            if number is None:
                raise not_found()
            call.check_revision(number.revision)
            await numbers.delete(connection, number, call.now)
            await record(connection, self._ids, call, "number.delete", number.id)
        self._tell(number)
        return Reply(204)

    async def _change(self, call: Call, change: Callable[[Number], Number]) -> Reply:
        found: Number = call.resource
        async with changing(self._database, self._changed, _change_of(found)) as connection:
            before = await numbers.get_locked(connection, found.organization_id, found.env, found.id)
            if before is None:
                raise not_found()
            call.check_revision(before.revision)
            after = await numbers.save(connection, before, change(before), call.now)
        if after is not before:
            self._tell(after)
        return number_reply(call, after)

    async def _publish_profile(self, number: Number, profile: dict[str, str]) -> None:
        if profile == number.profile:
            return
        with answered_with_502():
            await required(self._provider_for(number.env)).update_profile(account_of(number, self._keys), profile)

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
        return self._keys.encrypt(token, organization_id=organization_id, record_id=number_id, field=ACCESS_TOKEN)

    def _tell(self, number: Number) -> None:
        self._changed(_change_of(number))


def _change_of(number: Number) -> NumberChanged:
    return NumberChanged(number.organization_id, number.env, number.id)


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


def number_routes(
    *, database: Database, ids: IdSource, keys: KeyRing, provider_for: AdminFor, changed: OnChange
) -> tuple[Route, ...]:
    """`provider_for`: the chat-app provider of an environment, None where none is configured."""
    operations = NumberOperations(database, ids, keys, provider_for, changed)
    read: dict[str, Any] = {"tag": "Numbers", "scope": "numbers:read", "rate_class": "read"}
    write: dict[str, Any] = {"tag": "Numbers", "scope": "numbers:write", "rate_class": "write"}
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": NUMBER}, "versioned": True}
    return (
        Route(
            method="GET",
            path="/numbers",
            handler=operations.list,
            operation_id="listNumbers",
            summary="List numbers",
            query=NumberQuery,
            responses={200: NumberPage},
            **read,
        ),
        Route(
            method="POST",
            path="/numbers",
            handler=operations.create,
            operation_id="createNumber",
            summary="Register a number",
            description="It is pending until the provider has verified it, then available to be connected.",
            body=NumberCreate,
            responses={201: NumberOut},
            errors=("FORBIDDEN", "NUMBER_TAKEN", "PHONE_INVALID"),
            idempotency=Idempotency.ACCEPTED,
            replay=number_replay,
            versioned=True,
            creates=True,
            **write,
        ),
        Route(
            method="GET",
            path="/numbers/{id}",
            handler=operations.read,
            operation_id="getNumber",
            summary="Read a number",
            responses={200: NumberOut},
            **one,
            **read,
        ),
        Route(
            method="PATCH",
            path="/numbers/{id}",
            handler=operations.patch,
            operation_id="updateNumber",
            summary="Change a number's pace, profile or access token",
            body=NumberPatch,
            responses={200: NumberOut},
            errors=("DEPENDENCY_FAILED",),
            **one,
            **write,
        ),
        Route(
            method="DELETE",
            path="/numbers/{id}",
            handler=operations.delete,
            operation_id="deleteNumber",
            summary="Delete a number",
            responses={204: None},
            errors=("RESOURCE_IN_USE",),
            **one,
            **write,
        ),
        Route(
            method="POST",
            path="/numbers/{id}/connect",
            handler=operations.connect,
            operation_id="connectNumber",
            summary="Put a number into service",
            responses={200: NumberOut},
            errors=("INVALID_STATE", "DEPENDENCY_FAILED"),
            idempotency=Idempotency.ACCEPTED,
            replay=number_replay,
            **one,
            **write,
        ),
        Route(
            method="POST",
            path="/numbers/{id}/disconnect",
            handler=operations.disconnect,
            operation_id="disconnectNumber",
            summary="Take a number out of service",
            responses={200: NumberOut},
            errors=("INVALID_STATE",),
            idempotency=Idempotency.ACCEPTED,
            replay=number_replay,
            **one,
            **write,
        ),
    )
