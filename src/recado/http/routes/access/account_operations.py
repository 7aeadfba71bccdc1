"""What is done with accounts (C24.2): invited, changed, disabled.

The caller holds every scope that the account has before and after.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from recado.domain.access.account import AccountStatus, Role, scopes_of
from recado.domain.core.errors import Problem, not_found
from recado.domain.core.ids import IdSource
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.escalation import refuse_change_of_superior, refuse_escalation
from recado.http.api.principal import ACCOUNT
from recado.http.middleware.authentication import unauthorized
from recado.http.routes.access.account_models import account_view
from recado.http.routes.core.lists import listed
from recado.http.wire.reply import Reply
from recado.storage.access import accounts, organizations, sessions
from recado.storage.access.accounts import Account
from recado.storage.access.passwords import Passwords
from recado.storage.access.session_directory import SessionDirectory
from recado.storage.core import audit
from recado.storage.core.audit import Actor
from recado.storage.core.changing import changing
from recado.storage.core.postgres import Connection, Database

PII = "pii:full"


class AccountOperations:
    """The handlers."""

    def __init__(
        self,
        database: Database,
        ids: IdSource,
        directory: SessionDirectory,
        passwords: Passwords,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._database = database
        self._ids = ids
        self._directory = directory
        self._passwords = passwords
        self._random_bytes = random_bytes

    async def find(self, call: Call) -> Account:
        account = await accounts.get(self._database, call.principal.organization_id, call.path["id"])
        if account is None:
            raise not_found()
        return account

    async def list(self, call: Call) -> Reply:
        query = call.query
        page = await accounts.list_page(
            self._database, call.principal.organization_id, limit=query.limit, skip=query.skip
        )
        return await listed(page, account_view)

    async def create(self, call: Call) -> Reply:
        body, role = call.body, Role(call.body.role)
        refuse_escalation(call, scopes_of(role, body.extra_scopes))
        async with self._database.transaction() as connection:
            account, token = await accounts.create(
                connection,
                self._ids,
                organization_id=call.principal.organization_id,
                name=body.name,
                email=body.email,
                role=role,
                extra_scopes=set(body.extra_scopes),
                invited_by_id=call.principal.actor_id,
                now=call.now,
                random_bytes=self._random_bytes,
            )
            await self._record(connection, actor_of(call), account, "account.create", _granted(account))
            await self._record_pii(connection, call, account, PII in account.scopes)
        return _invited(account, token, 201)

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        async with self._changing(call) as connection:
            before = await self._locked(connection, call)
            after = _changed(before, changes)
            added = after.scopes - before.scopes
            refuse_change_of_superior(call, before.scopes)
            refuse_escalation(call, added)
            if _is_active_owner(before) and not _is_active_owner(after):
                await accounts.refuse_without_owner(connection, before)
            if after != before:
                after = await accounts.save(connection, after, call.now)
                details = {"fields": sorted(changes), "scopesAdded": sorted(added), "role": after.role.value}
                await self._record(connection, actor_of(call), after, "account.update", details)
                await self._record_pii(connection, call, after, PII in added)
        self._directory.forget_account(after.id)
        return Reply(200, account_view(after))

    async def invite(self, call: Call) -> Reply:
        async with self._database.transaction() as connection:
            before = await self._locked(connection, call)
            # The answer also holds the way into that account: a caller who lacks one of its scopes would gain it.
            refuse_change_of_superior(call, before.scopes)
            account, token = await accounts.invite_again(
                connection, before, now=call.now, random_bytes=self._random_bytes
            )
            await self._record(connection, actor_of(call), account, "account.invite", _granted(account))
        return _invited(account, token, 200)

    async def disable(self, call: Call) -> Reply:
        async with self._changing(call) as connection:
            before = await self._locked(connection, call)
            refuse_change_of_superior(call, before.scopes)
            if _is_active_owner(before):
                await accounts.refuse_without_owner(connection, before)
            after = await accounts.disable(connection, before, call.now)
            if after is not before:
                await sessions.end_of_account(connection, after.id, call.now)
                await self._record(connection, actor_of(call), after, "account.disable", {})
        self._directory.forget_account(after.id)
        return Reply(204)

    async def accept(self, call: Call) -> Reply:
        """Without a credential: the invitation is one. Only a valid one costs the derivation of a password."""
        body = call.body
        invited = await accounts.invited(self._database, body.token, call.now)
        if invited is None:
            raise _no_invitation()
        organization = await organizations.get(self._database, invited.organization_id)
        if organization is None or organization.suspended:
            raise Problem("ORGANIZATION_SUSPENDED", "The organization is suspended.")
        password_hash = await self._passwords.hash(body.password)
        async with self._database.transaction() as connection:
            account = await accounts.accept(connection, body.token, password_hash=password_hash, now=call.now)
            if account is None:
                raise _no_invitation()
            actor = Actor(ACCOUNT, account.id, ip=call.client_ip, request_id=call.request_id)
            await self._record(connection, actor, account, "account.accept", {})
        return Reply(200, account_view(account))

    def _changing(self, call: Call) -> AbstractAsyncContextManager[Connection]:
        """A change of the path's account: also when its answer is lost, its sessions are looked up again."""
        return changing(self._database, self._directory.forget_account, call.resource.id)

    async def _locked(self, connection: Connection, call: Call) -> Account:
        found: Account = call.resource
        # In this order everywhere: two owners who remove each other at once must not wait for one another.
        await accounts.lock_organization(connection, found.organization_id)
        account = await accounts.get_locked(connection, found.organization_id, found.id)
        if account is None:
            raise not_found()
        return account

    async def _record(
        self, connection: Connection, actor: Actor, account: Account, action: str, details: dict[str, Any]
    ) -> None:
        await audit.write(
            connection,
            self._ids,
            actor,
            action,
            organization_id=account.organization_id,
            env=None,
            target_id=account.id,
            details=details,
        )

    async def _record_pii(self, connection: Connection, call: Call, account: Account, granted: bool) -> None:
        """Anyone who may read phones in the clear can be found in the audit by one action (C24.5)."""
        if granted:
            await self._record(connection, actor_of(call), account, "pii_full.grant", {})


def _changed(account: Account, changes: dict[str, Any]) -> Account:
    fields = dict(changes)
    if "role" in fields:
        fields["role"] = Role(fields["role"])
    if "extra_scopes" in fields:
        fields["extra_scopes"] = frozenset(fields["extra_scopes"])
    return replace(account, **fields)


def _is_active_owner(account: Account) -> bool:
    return account.role is Role.OWNER and account.status is AccountStatus.ACTIVE


def _granted(account: Account) -> dict[str, Any]:
    return {"role": account.role.value, "extraScopes": sorted(account.extra_scopes)}


def _invited(account: Account, token: str, status: int) -> Reply:
    view = account_view(account)
    return Reply(status, {**view, "inviteToken": token}, stored=view)


def _no_invitation() -> Problem:
    return unauthorized("The invitation is unknown, was used or has expired: ask for a new one.")
