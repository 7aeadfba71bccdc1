"""What is done with API keys (C24.4): issued, changed, rotated, revoked. None grants what its maker does not hold."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from recado.domain.access.scopes import PII
from recado.domain.core.errors import FieldError, Problem, conflict, not_found, validation_error
from recado.domain.core.ids import IdSource
from recado.domain.core.tokens import token_hash
from recado.domain.messages.changes import OnChange
from recado.http.api.audit import record, record_pii_grant
from recado.http.api.call import Call
from recado.http.api.escalation import refuse_escalation
from recado.http.api.rate_limits import Limit
from recado.http.middleware.idempotency import rotated_since
from recado.http.routes.access.api_key_models import ClassLimit, key_view
from recado.http.routes.core.lists import listed
from recado.http.wire.reply import Reply
from recado.services.effects.record_events import announce, key_created, key_rotated
from recado.storage.access import api_keys
from recado.storage.access.api_keys import ApiKey
from recado.storage.access.key_directory import KeyDirectory
from recado.storage.core.changing import changing
from recado.storage.core.postgres import Connection, Database


class ApiKeyOperations:
    """The handlers."""

    def __init__(
        self,
        database: Database,
        ids: IdSource,
        keys: KeyDirectory,
        ceilings: Mapping[str, Limit],
        random_bytes: Callable[[int], bytes],
        changed: OnChange,
    ) -> None:
        self._database = database
        self._ids = ids
        self._keys = keys
        self._ceilings = ceilings
        self._random_bytes = random_bytes
        self._changed = changed

    async def find(self, call: Call) -> ApiKey:
        principal = call.principal
        key = await api_keys.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if key is None:
            raise not_found()
        return key

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await api_keys.list_page(
            self._database, principal.organization_id, principal.env, limit=query.limit, skip=query.skip
        )
        return await listed(page, lambda key: key_view(key, call.now))

    async def read(self, call: Call) -> Reply:
        return Reply(200, key_view(call.resource, call.now))

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        refuse_escalation(call, body.scopes)
        _refuse_past(call, body.expires_at)
        _refuse_above(self._ceilings, body.rate_limits or {})
        limits = {name: limit.model_dump(by_alias=True) for name, limit in (body.rate_limits or {}).items()}
        async with self._database.transaction() as connection:
            await api_keys.refuse_beyond_limit(connection, principal.organization_id, principal.env, call.now)
            key, token = await api_keys.issue_key(
                connection,
                self._ids,
                organization_id=principal.organization_id,
                env=principal.env,
                name=body.name,
                scopes=set(body.scopes),
                random_bytes=self._random_bytes,
                expires_at=body.expires_at,
                allowed_ips=body.allowed_ips or (),
                rate_limits=limits or None,
                created_by_id=principal.actor_id,
            )
            await record(connection, self._ids, call, "api_key.create", key.id, {"scopes": sorted(key.scopes)})
            if PII in key.scopes:
                await record_pii_grant(connection, self._ids, call, key.id)
            queued = await key_created(connection, self._ids, key)
        announce(self._changed, queued)
        return _issued(call, key, token, 201)

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        _refuse_past(call, changes.get("expires_at"))
        async with self._changing(call) as connection:
            before = await self._changeable(connection, call)
            after = _changed(before, changes)
            added = after.scopes - before.scopes
            refuse_escalation(call, after.scopes if _reaches_further(before, after) else added)
            if before.status(call.now) != "active" and after.status(call.now) == "active":
                await api_keys.refuse_beyond_limit(connection, before.organization_id, before.env, call.now)
            if after != before:
                saved = await api_keys.save(connection, after)
                if saved is None:
                    raise _revoked()
                after = saved
                details = {"fields": call.body.named(), "scopesAdded": sorted(added)}
                await record(connection, self._ids, call, "api_key.update", after.id, details)
                if PII in added:
                    await record_pii_grant(connection, self._ids, call, after.id)
        self._keys.forget_key(after.id)
        return Reply(200, key_view(after, call.now))

    async def rotate(self, call: Call) -> Reply:
        grace = timedelta(seconds=call.body.grace_seconds)
        async with self._changing(call) as connection:
            before = await self._changeable(connection, call)
            if before.status(call.now) == "expired":
                raise conflict("INVALID_STATE", "The key has expired.", status="expired")
            # The answer holds a token of that key: anyone who lacks one of its scopes would gain it.
            refuse_escalation(call, before.scopes)
            details: dict[str, Any] = {"graceSeconds": call.body.grace_seconds}
            if call.unshown is not None:
                rotated = await api_keys.replace_token(
                    connection, before, bytes.fromhex(call.unshown), random_bytes=self._random_bytes
                )
                if rotated is None:
                    raise rotated_since()
                details["repeated"] = True
            else:
                rotated = await api_keys.rotate(
                    connection, before, grace=grace, now=call.now, random_bytes=self._random_bytes
                )
                if rotated is None:
                    raise _revoked()
            key, token = rotated
            call.made = token_hash(token).hex()
            await record(connection, self._ids, call, "api_key.rotate", key.id, details)
            queued = await key_rotated(connection, self._ids, key)
        self._keys.forget_key(key.id)
        announce(self._changed, queued)
        return _issued(call, key, token, 200)

    async def revoke(self, call: Call) -> Reply:
        key: ApiKey = call.resource
        async with self._changing(call) as connection:
            revoked = await api_keys.revoke(connection, key.organization_id, key.env, key.id, call.now)
            if revoked is not None:
                await record(connection, self._ids, call, "api_key.revoke", revoked.id)
        self._keys.forget_key(key.id)
        return Reply(204)

    def _changing(self, call: Call) -> AbstractAsyncContextManager[Connection]:
        """A change of the path's key: also when its answer is lost, the key that was known counts no more."""
        return changing(self._database, self._keys.forget_key, call.resource.id)

    async def _changeable(self, connection: Connection, call: Call) -> ApiKey:
        found: ApiKey = call.resource
        key = await api_keys.get_locked(connection, found.organization_id, found.env, found.id)
        if key is None:
            raise not_found()
        if key.revoked_at is not None:
            raise _revoked()
        return key


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


def _revoked() -> Problem:
    return conflict("INVALID_STATE", "The API key was revoked: use another one.", status="revoked")


def _issued(call: Call, key: ApiKey, token: str, status: int) -> Reply:
    view = key_view(key, call.now)
    return Reply(status, {**view, "token": token}, stored=view)
