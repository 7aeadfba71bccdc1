"""API keys (C24.4): issued, changed, rotated, revoked. None grants what its maker does not hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from recado.domain.access.scopes import PII
from recado.domain.core.errors import FieldError, conflict, validation_error
from recado.domain.core.ids import API_KEY
from recado.domain.core.tokens import token_hash
from recado.domain.messages.changes import KeyChanged
from recado.http.api.audit import PII_GRANT
from recado.http.api.call import Call
from recado.http.api.paging import PageQuery
from recado.http.api.route import Route
from recado.http.callers.escalation import refuse_escalation
from recado.http.callers.rate_limits import Limit
from recado.http.middleware.idempotency import rotated_since
from recado.http.routes.access.api_key_models import (
    ApiKeyCreate,
    ApiKeyOut,
    ApiKeyPage,
    ApiKeyPatch,
    ClassLimit,
    IssuedKey,
    Rotation,
    key_view,
)
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource
from recado.http.wire.reply import Reply
from recado.services.effects.record_events import announce, key_created, key_rotated
from recado.storage.access import api_keys
from recado.storage.access.api_keys import API_KEYS, ApiKey
from recado.storage.core.statements.rows import Executor


@dataclass(frozen=True, slots=True)
class ApiKeyOperations:
    """What is particular to keys: their tokens, and what they may grant. `ceilings`: the most that one may ask for."""

    keys: Resource[ApiKey]
    ceilings: Mapping[str, Limit]

    def examine(self, call: Call) -> None:
        """Raise `Problem` 403 and 422 for a key that the caller cannot issue."""
        refuse_escalation(call, call.body.scopes)
        _refuse_past(call, call.body.expires_at)
        _refuse_above(self.ceilings, call.body.rate_limits or {})

    async def create(self, call: Call) -> Reply:
        self.examine(call)
        principal, body, dependencies = call.principal, call.body, self.keys.dependencies
        limits = {name: limit.model_dump(by_alias=True) for name, limit in (body.rate_limits or {}).items()}
        async with self.keys.database.transaction() as connection:
            await api_keys.refuse_beyond_limit(connection, principal.organization_id, principal.env, call.now)
            key, token = await api_keys.issue_key(
                connection,
                dependencies.ids,
                organization_id=principal.organization_id,
                env=principal.env,
                name=body.name,
                scopes=set(body.scopes),
                random_bytes=dependencies.random_bytes,
                expires_at=body.expires_at,
                allowed_ips=body.allowed_ips or (),
                rate_limits=limits or None,
                created_by_id=principal.actor_id,
            )
            await self.keys.note(connection, call, "api_key.create", key, {"scopes": sorted(key.scopes)})
            if PII in key.scopes:
                await self.keys.note(connection, call, PII_GRANT, key)
            queued = await key_created(connection, dependencies.ids, key)
        announce(dependencies.changed, queued)
        return await self.keys.reply(call, key, 201, once={"token": token})

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        _refuse_past(call, changes.get("expires_at"))
        async with self.keys.locked(call) as (connection, before):
            _refuse_revoked(before)
            wanted = _changed(before, changes)
            added = wanted.scopes - before.scopes
            refuse_escalation(call, wanted.scopes if _reaches_further(before, wanted) else added)
            if before.status(call.now) != "active" and wanted.status(call.now) == "active":
                await api_keys.refuse_beyond_limit(connection, before.organization_id, before.env, call.now)
            after = await API_KEYS.save(connection, before, wanted, call.now)
            if after is not before:
                details = {"fields": call.body.named(), "scopesAdded": sorted(added)}
                await self.keys.note(connection, call, "api_key.update", after, details)
                if PII in added:
                    await self.keys.note(connection, call, PII_GRANT, after)
        self.keys.tell(after)
        return await self.keys.reply(call, after)

    async def rotate(self, call: Call) -> Reply:
        dependencies, grace = self.keys.dependencies, timedelta(seconds=call.body.grace_seconds)
        async with self.keys.locked(call) as (connection, before):
            _refuse_revoked(before)
            if before.status(call.now) == "expired":
                raise conflict("INVALID_STATE", "The key has expired.", status="expired")
            # The answer holds a token of that key: anyone who lacks one of its scopes would gain it.
            refuse_escalation(call, before.scopes)
            details: dict[str, Any] = {"graceSeconds": call.body.grace_seconds}
            if call.unshown is not None:
                rotated = await api_keys.replace_token(
                    connection, before, bytes.fromhex(call.unshown), random_bytes=dependencies.random_bytes
                )
                if rotated is None:
                    raise rotated_since()
                details["repeated"] = True
            else:
                rotated = await api_keys.rotate(
                    connection, before, grace=grace, now=call.now, random_bytes=dependencies.random_bytes
                )
            key, token = rotated
            call.made = token_hash(token).hex()
            await self.keys.note(connection, call, "api_key.rotate", key, details)
            queued = await key_rotated(connection, dependencies.ids, key)
        self.keys.tell(key)
        announce(dependencies.changed, queued)
        return await self.keys.reply(call, key, once={"token": token})

    async def revoke(self, call: Call) -> Reply:
        async with self.keys.locked(call) as (connection, key):
            revoked = await api_keys.revoke(connection, key.organization_id, key.env, key.id, call.now)
            if revoked is not None:
                await self.keys.note(connection, call, "api_key.revoke", revoked)
        self.keys.tell(key)
        return Reply(204)


async def _views(call: Call, _: Executor, found: list[ApiKey]) -> Iterable[dict[str, Any]]:
    return (key_view(key, call.now) for key in found)


def _changed(key: ApiKey, changes: dict[str, Any]) -> ApiKey:
    fields = dict(changes)
    if "scopes" in fields:
        fields["scopes"] = frozenset(fields["scopes"])
    if "allowed_ips" in fields:
        fields["allowed_ips"] = tuple(fields["allowed_ips"] or ())
    return replace(key, **fields)


def _reaches_further(before: ApiKey, after: ApiKey) -> bool:
    """Whether the key holds for longer, or from more addresses: that, too, grants its scopes."""
    ends = before.expires_at
    longer = ends is not None and (after.expires_at is None or after.expires_at > ends)
    networks = set(before.allowed_ips)
    return longer or (bool(networks) and not (after.allowed_ips and networks.issuperset(after.allowed_ips)))


def _refuse_past(call: Call, expires_at: Any) -> None:
    if expires_at is not None and expires_at <= call.now:
        raise validation_error([FieldError("/expiresAt", "NOT_ALLOWED", "must be in the future")])


def _refuse_above(ceilings: Mapping[str, Limit], asked: Mapping[str, ClassLimit]) -> None:
    """Raise VALIDATION_ERROR when a key would have more than its organization may have in all (C6.1)."""
    faults: list[FieldError] = []
    exceeded: dict[str, dict[str, float]] = {}
    for name, limit in asked.items():
        ceiling = dict(zip(("perSecond", "capacity"), ceilings[name], strict=True))
        wanted = limit.model_dump(by_alias=True)
        for field, most in ceiling.items():
            if wanted[field] > most:
                message = f"must be at most {most:,}, the ceiling of this installation"
                faults.append(FieldError(f"/rateLimits/{name}/{field}", "OUT_OF_RANGE", message))
                exceeded[name] = ceiling
    if faults:
        raise validation_error(faults, ceilings=exceeded)


def _refuse_revoked(key: ApiKey) -> None:
    if key.revoked_at is not None:
        raise conflict("INVALID_STATE", "The API key was revoked: use another one.", status="revoked")


def api_key_routes(dependencies: Dependencies, *, ceilings: Mapping[str, Limit]) -> tuple[Route, ...]:
    """`ceilings`: what a key may ask for by class (C6.1)."""
    keys = Resource(
        dependencies=dependencies,
        table=API_KEYS,
        path="/v2/api-keys/{id}",
        prefix=API_KEY,
        name="api_key",
        group=Group("API keys", "apikeys:read", "apikeys:write"),
        out=ApiKeyOut,
        page=ApiKeyPage,
        views=_views,
        tell=lambda key: dependencies.changed(KeyChanged(key.id)),
    )
    operations = ApiKeyOperations(keys, ceilings)
    return (
        keys.route(
            "GET /v2/api-keys", "listApiKeys", "List the keys of the environment",
            keys.listing(), query=PageQuery,
        ),
        keys.route(
            "POST /v2/api-keys", "createApiKey", "Issue a key", operations.create,
            body=ApiKeyCreate, responses={201: IssuedKey}, errors=("SCOPE_ESCALATION", "LIMIT_REACHED"),
            examine=operations.examine,
            description="The token is shown in this answer and never again.",
        ),
        keys.route("GET /v2/api-keys/{id}", "getApiKey", "Read a key", keys.read),
        keys.route(
            "PATCH /v2/api-keys/{id}", "updateApiKey", "Change a key", operations.patch,
            body=ApiKeyPatch, errors=("SCOPE_ESCALATION", "INVALID_STATE", "LIMIT_REACHED"),
        ),
        keys.route(
            "POST /v2/api-keys/{id}/rotate", "rotateApiKey", "Give a key a new token", operations.rotate,
            body=Rotation, responses={200: IssuedKey}, errors=("SCOPE_ESCALATION", "INVALID_STATE"), rotates=True,
            description="The former token holds for the grace; any older one ends now.",
        ),
        keys.route("DELETE /v2/api-keys/{id}", "revokeApiKey", "Revoke a key at once", operations.revoke),
    )  # fmt: skip
